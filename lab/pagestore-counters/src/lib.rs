//! The counters of an open page store. Those that any engine has are in the format of the crate `published`, which Headroom
//! reads; a board in shared memory has the page store's own, which `headroom log` reads. Neither reader needs the engine.
//!
//! ```text
//! engine   Publisher::new(directory) ─┬─ published::Writer: files, commits, log records, the writer's time
//!          announce(opening)          └─ Board: atomics in a file under /dev/shm ──> Reader::open(directory)
//!          log, engine                     head      process, store, directory         owner()
//!          record_commit(..)               commits   the parts of each commit's time   commit_times()
//!          state.answer(..)                state     the state of the log, on request  log_state(patience)
//! ```
//! Main path: a store calls [`Publisher::new`], counts and calls [`Publisher::announce`] once it is open. A reader calls
//! [`Reader::open`] with the store's directory.
//!
//! A reader copies the board with system calls and trusts a file only if it belongs to the user of its process.
//! Counting takes no lock and makes no system call. A store opens and works even when its counters cannot be shared.

mod board;
mod commits;
mod file;
mod log_state;
mod lsn;
mod publisher;
mod reader;

pub use board::{Board, Counts, EngineCounts, LOG_HEAD_BYTES, LogCounts, Opening, Owner};
pub use commits::{CommitBoard, CommitPart, CommitTimes, Instants, PartTimes, SlowCommit};
pub use file::{FileId, FileStatistics};
pub use log_state::{Certificate, LogState, StateBoard, VlfState};
pub use lsn::{Lsn, PageNo};
pub use publisher::Publisher;
pub use reader::{ReadError, Reader};

/// CLOCK_MONOTONIC in nanoseconds, without a system call.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
