//! The rules that a run and its simulation have in common, so that they cannot differ: what one thread of a workload
//! asks for next, and what of it is counted.
//!
//! ```text
//! Stream    the next I/O or sync of a thread, or when to ask again
//!   Chooser   where, how large, read or write
//!   Pace      when it may or must be asked for
//! Window    whether what came back counts
//! Record    what is kept of it: a row for each slice of time, totals, responses
//! weighted  of threads that share what is outstanding: whose turn it is
//! ```
//!
//! Everything follows from the workload, its seed and the thread's number. This crate does no I/O and reads no clock:
//! times are given to it.

mod chooser;
mod pace;
mod record;
mod skew;
mod stream;

pub use chooser::{Choice, Chooser, used, weighted};
pub use pace::Pace;
pub use record::{Record, Responses, Window, whole};
pub use stream::{Ask, Stream, Want};
