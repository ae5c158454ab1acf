//! Runs workloads on targets, and measures every I/O: closed loops that keep N outstanding in each of T
//! threads, open loops with a schedule, recorded traces, several at once.
//!
//! ```text
//! run_jobs(jobs, options, watch)
//!   check, thread_plan    refuse what is out of range; which threads, with which buffers
//!   workers: each thread  Lane per job: stream::IoStream (when, where) -> Writer (what)
//!     ring_loop             Ring: queue().push (a batch) -> submit -> reap
//!     blocking_loop         pread, pwrite, or a copy from and to a mapping
//!                           -> accounting: what a completion counts -> Recorder
//!   supervisor            every 20 ms: watch(LiveStats) -> continue | end the warm-up | end
//! -> results: a RunResult per job; blocks in the Ledger are read and checked (verification)
//! ```
//!
//! Latency is submission to completion. The clock is read twice in each turn of the loop, on both edges of the batch:
//! before the system call that submits up to [`BATCH`] I/Os ([`BATCH_DIRECT`] of direct I/O), and after it returns. So
//! the last I/O of a batch includes the time that the kernel took for the others (about 0.5 us each, cached), and one
//! that completed while the thread slept includes its wake-up: a database would see both. In return the clock costs
//! nothing per I/O, and equal latencies of a batch are counted at once. A single read at a time through the page cache
//! is first tried without the ring (`preadv2` with `RWF_NOWAIT`).
//!
//! Where io_uring is unavailable, T x N threads do blocking `pread` and `pwrite`, and the result names the backend; a
//! pool that shares its outstanding I/Os is refused there. Never opens or creates a target: `storage` does, and refuses.

mod accounting;
mod blocking_loop;
mod check;
mod clock;
mod content;

mod error;
mod io_buffers;
mod job;
mod lane;
mod ledger;
mod live;
mod mapping;
mod recorder;
mod results;
mod ring;
mod ring_loop;
mod run;
mod start_gate;
mod supervisor;
mod thread_plan;
mod thread_setup;
mod verification;
mod workers;

pub use check::check_content;
pub use error::{LoadError, MemoryUse};
pub use io_buffers::HugePages;
pub use job::{Affinity, Job, RunControl, RunOptions, THREADS_MAX};
pub use live::{LiveStats, RecentStats, RunStage};
pub use ring::check_ring;
pub use ring_loop::{BATCH, BATCH_DIRECT};
pub use run::{run, run_jobs, run_with_backend};
