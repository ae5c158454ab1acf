//! The rules that a run and its simulation share, so that they cannot differ: what one thread of a workload issues
//! next, and what is counted of it.
//!
//! ```text
//! IoStream         the next I/O or sync of a thread, or when to call again
//!   Chooser        offset, size, direction
//!   Pace           when it may or must be issued
//! MeasuredWindow   whether a completion counts
//! IoRecord         the measurements: a row for each slice of time, totals, response times
//! choose_weighted  which thread issues the next of the I/Os that threads share
//! random           the generators
//! ```
//!
//! Everything follows from the workload, its seed and the thread's index. This crate does no I/O and reads no clock: the
//! caller passes the time.

mod chooser;
mod pace;
pub mod random;
mod record;
mod skew;
mod stream;

pub use chooser::{Choice, Chooser, ThreadIndex, choose_weighted, used_range};
pub use pace::Pace;
pub use record::{IoRecord, MeasuredWindow, Responses, complete_series};
pub use stream::{IoRequest, IoStream, NextStep};
