//! What is asked of storage ([`Workload`]), of which storage ([`TargetFacts`]), and what came out
//! ([`RunResult`]).
//!
//! ```text
//! Workload  Shape (block size, pattern, write share, caching, durability), outstanding I/Os, threads
//!    │  (the load crate runs it)
//!    v
//! RunResult  read, write: Direction { count, bytes, stall_ns, LatencyHistogram, errors by errno }
//!            seconds: one row a second       cores: CPU use of each core       threads: fair shares
//! ```
//!
//! One value carries a result to every output: text, JSON, charts and the history are views of it.
//! This crate does no I/O and reads no clock.

mod facts;
mod histogram;
mod quantity;
mod result;
mod spec;

pub use facts::{Cap, CapKind, DeviceFacts, TargetFacts, TargetKind, WriteCache};
pub use histogram::LatencyHistogram;
pub use quantity::{BadQuantity, Mib, format_bytes, format_ns, parse_bytes, parse_duration};
pub use result::{Backend, CoreUse, Direction, RunResult, Second, ThreadShare};
pub use spec::{Caching, Durability, InvalidWorkload, Pattern, RunLength, Shape, Workload};
