//! The load on storage ([`Workload`]), the storage ([`TargetFacts`]), and the result
//! ([`RunResult`]).
//!
//! ```text
//! Workload  Shape (block size, pattern, write share, caching, durability), outstanding I/Os, threads
//!    │  (the load crate runs it)
//!    v
//! RunResult  read, write: Direction { count, bytes, stall_ns, LatencyHistogram, errors by errno }
//!            seconds: one row a second       cores: CPU use of each core       threads: fair shares
//!    │  read_latency(), write_latency(), sync_latency(), total_latency()
//!    v
//! LatencyFigures  counted in a histogram, or the mean, deviation and percentiles that another tool reported
//! ```
//!
//! One value carries a result to every output: text, JSON, charts and the history are views of it.
//! This crate does no I/O and reads no clock.

mod access;
mod demand;
mod facts;
mod histogram;
mod latency_figures;
mod layout;
mod plan;
mod quantity;
mod result;
mod result_latency;
mod spec;
mod tally;
mod target_change;
mod trace;
mod trouble;
mod unit;

pub use access::{Access, Distribution, Extent, Walk, Zone};
pub use demand::{Arrival, Burst, Content, Limit, SizeShare, SyncEvery, SyncKind, Verify};
pub use facts::{Cap, CapKind, DeviceFacts, DeviceKind, DeviceLayout, TargetFacts, TargetKind, WriteCache};
pub use histogram::{LatencyCounts, LatencyHistogram};
pub use latency_figures::{LatencyFigures, ReportedLatency};
pub use layout::{BadLayout, Layout, LayoutMap, Part};
pub use plan::{Phase, PhaseResult, Placed, Plan, PlanLayout, PlanTarget, Pool};
pub use quantity::{BadQuantity, Mib, format_bytes, format_count, format_ns, parse_bytes, parse_duration};
pub use result::{
    Backend, BadBlock, CoreUse, Direction, MemberShare, Response, RunResult, ThreadShare, Verification,
};
pub use spec::{Caching, Durability, InvalidWorkload, Pattern, RunLength, Shape, Workload};
pub use tally::{Latencies, Slice, Tally};
pub use target_change::{TargetChange, TargetChangeKind};
pub use trace::{Trace, TraceIo, TraceKind};
pub use trouble::DeviceTrouble;
pub use unit::Unit;

/// Leaves out of JSON what says nothing.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
