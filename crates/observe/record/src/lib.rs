//! Keeps the counters of many sources in the history, every some seconds, for weeks.
//!
//! ```text
//! a thread a source: tick ─> open, or again after a failure ─> snapshot ─┐  bounded in number and bytes: a snapshot that
//! a thread a source: tick ─> …                                          ─┤  finds no room is dropped, told, and a gap
//!                                                                        └─> the recorder's thread: History::save_snapshot,
//!                                                                            gaps, thinning, words for the log
//! ```
//!
//! Main path: [`Recorder::new`], then [`Recorder::run`] until its flag is set. Every source has one thread and one
//! connection, so that a slow server delays nobody; one that fails is tried again at growing intervals, and the gap is
//! kept with its reason. A disk that is full (or fuller than the reserve) stops the adding, not the recorder: counters
//! are cumulative, so that the first snapshot after it makes one long interval and nothing that was kept is touched.
//! What is older than the retention has it is thinned, a little after each tick.
//!
//! It never subtracts, averages or fills a gap.

mod backoff;
mod notify;
mod recorder;
mod sampler;
mod waiting;

pub use notify::Supervisor;
pub use recorder::{Event, Recorder, Settings};

use collect::{Source, SourceError};

/// A source that can be opened again and again: its name, without credentials, and how.
pub struct Recorded {
    /// What it is called in words and in gaps.
    pub name: String,
    /// Opens it.
    pub open: Box<dyn FnMut() -> Result<Box<dyn Source + Send>, SourceError> + Send>,
}
