//! Runs workloads on targets, and measures every I/O: closed loops that keep N outstanding in each of T
//! threads, open loops with times of their own, recorded traces, several at once.
//!
//! ```text
//! run_together(jobs, how, watch)
//!   thread   Lane per job: stream::Stream (when, where) -> Writer (what)
//!              -> ring Queue::push (a batch) -> Ring::submit -> Ring::reap -> Recorder (a stream::Record)
//!   this one every 20 ms: watch(Live) -> go on | measure from now | stop
//! -> gather -> RunResult per job; blocks whose writing the Ledger kept account of are read and checked
//! ```
//!
//! Latency is submission to completion. The clock is read twice a turn of the loop, on both edges of
//! the batch: just before the system call that hands up to [`BATCH`] I/Os over ([`BATCH_DIRECT`] of direct
//! I/O), and just after it returns, before the completions are reaped. What that costs in accuracy: an I/O
//! handed over as the last of a batch carries the time the kernel took for those before it (about 0.5 us
//! each, cached), one that completed while the thread slept carries its wake-up. Both are time that a
//! database would see as well. In return a read of the clock costs nothing per I/O, and equal latencies of
//! one batch are counted at once. A single read at a time through the page cache is first tried without the
//! ring (`preadv2` that does not wait), which is the shortest way to what is cached.
//!
//! Where io_uring is not to be had, T x N threads do blocking `pread` and `pwrite` instead, and the result
//! names the backend; a pool that shares its outstanding I/Os is refused there. This crate never opens or
//! creates a target: `storage` does, and refuses.

mod blocking_loop;
mod content;
mod course;
mod cpu;
mod crew;
mod gather;
mod lane;
mod ledger;
mod live;
mod mapped;
mod recorder;
mod ring_loop;
mod run;
mod verification;

pub use live::{Live, Recent, Stage};
pub use ring_loop::{BATCH, BATCH_DIRECT};
pub use run::{Affinity, Job, LoadError, Next, THREADS_MAX, Together, run, run_together, run_with};
