//! Runs a workload on a target: a closed loop that keeps N I/Os outstanding in each of T threads, and
//! measures every one of them.
//!
//! ```text
//! run(region, workload, length, watch)
//!   thread x T   Chooser -> Ring::push (a batch) -> Ring::submit -> Ring::reap -> Recorder
//!   this thread  every 20 ms: watch(Live) -> go on | measure from now | stop
//! -> RunResult
//! ```
//!
//! Latency is submission to completion. The clock is read twice a turn of the loop, on both edges of
//! the batch: just before the system call that hands up to [`BATCH`] I/Os over ([`BATCH_DIRECT`] of direct
//! I/O), and just after it returns, before the completions are reaped. What that costs in accuracy: an I/O
//! handed over as the last of a batch carries the time the kernel took for those before it (about 0.5 us
//! each, cached), one that completed while the thread slept carries its wake-up. Both are time that a database would see as well. In return
//! a read of the clock costs nothing per I/O, and equal latencies of one batch are counted at once.
//!
//! Where io_uring is not to be had, T x N threads do blocking `pread` and `pwrite` instead; the result
//! names the backend. This crate never opens or creates a target: `storage` does, and refuses.

mod chooser;
mod cpu;
mod recorder;
mod run;
mod worker;

pub use run::{Live, LoadError, Next, run, run_with};
pub use worker::{BATCH, BATCH_DIRECT};
