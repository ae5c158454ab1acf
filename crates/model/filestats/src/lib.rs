//! File statistics: the cumulative counters that an engine keeps of each file it opened, and what
//! the difference of two captures of them says.
//!
//! ```text
//! Snapshot (one instant, many files)
//!   Sample = FileIdentity + Epoch + Counters { read, write, sync: Ops { count, bytes, stall_ns } }
//!
//! earlier Snapshot ─┐
//!                   ├─ intervals() ─> FileInterval = Known(Delta) | Unknown(Reason)
//! later Snapshot  ──┘                   Delta: IOPS, MiB/s, latency, average bytes, outstanding (N)
//!                                         └─ Profile::band(), ServiceLevel::kept()
//! the same two ─────> wait_intervals() ─> waits beside stalls, see [`waits`]
//! both, as they come ─> SourceTotals: counters by class of file and of wait, for metrics
//! ```
//!
//! Counters only grow within one [`Epoch`]; a restart, a reset, a file swap or a counter that fell ends it, and
//! the interval across that point is [`Interval::Unknown`] with its [`Reason`], never a zero. Every
//! count is an exact `u64` (nanoseconds, bytes, operations); a ratio becomes `f64` at the last moment.
//!
//! The mean number of I/Os outstanding over an interval needs no sampling: N = stall time / elapsed
//! time (Little 1961), from the same counters.
//!
//! A single I/O of a trace is a [`TracedIo`]; counters are not made of those.
//!
//! This crate does no I/O and reads no clock.

mod band;
mod buckets;
mod figure;
mod interval;
mod ops;
mod sample;
mod service_level;
mod time_series;
mod totals;
mod traced;
pub mod varint;
pub mod waits;

pub use band::{Band, BandLimits, IoClass, Profile, UnknownProfile};
pub use buckets::LatencyBuckets;
pub use figure::{Figure, Reason};
pub use interval::{Delta, FileInterval, Interval, Rules, intervals};
pub use ops::{Counters, Ops};
pub use sample::{
    Cache, Counts, Durable, Epoch, FileIdentity, FileKind, Latencies, Meaning, Sample, Snapshot, Time,
};
pub use service_level::{ServiceLevel, UnknownServiceLevel};
pub use time_series::{FileEpoch, FileSeries, Lifetime, Step, Tick, TimeSeries, WaitEpoch, WaitSeries};
pub use totals::{FileClass, FileTotals, LatencyTotals, OpTotals, SourceTotals, WaitTotals};
pub use traced::{IoFlags, Served, TracedIo, TracedOp};
pub use waits::{WaitClass, WaitDelta, WaitInterval, WaitSample, wait_intervals};
