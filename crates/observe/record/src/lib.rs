//! Records the counters of many sources in the history, every few seconds, for weeks.
//!
//! ```text
//! a thread a source: tick ─> open, or again after a failure ─> snapshot ─┐  a queue bounded in number and bytes: a snapshot
//! a thread a source: tick ─> …                                          ─┤  that does not fit is dropped, reported, and a gap
//!                                                                        └─> the recorder's thread: History::save_snapshot,
//!                                                                            gaps, retention, events for the log; what
//!                                                                            storages were seen to give
//! ```
//!
//! Main path: [`Recorder::run`] until its flag is set. Every source has one thread and one
//! connection, so that a slow server delays no other source. A source that fails is tried again at growing intervals,
//! and the gap is kept with its reason. On a full disk (or below the reserve) the recorder stops saving but keeps running:
//! counters are cumulative, so the first snapshot after it makes one long interval. Old captures are removed by the
//! retention, a few at a time.
//!
//! It never subtracts, averages or fills a gap.

mod backoff;
mod learning;
mod notify;
mod presence;
mod queue_memory;
mod recorder;
mod sampler;

pub use notify::Supervisor;
pub use presence::{Presence, PresenceChange};
pub use recorder::{Event, Recorder, Settings};

use collect::{Source, SourceError};

/// A source that can be opened again after a failure.
pub struct RecordedSource {
    /// Its name in messages and gaps, without credentials.
    pub name: String,
    /// Opens it.
    pub open: Box<dyn FnMut() -> Result<Box<dyn Source + Send>, SourceError> + Send>,
}
