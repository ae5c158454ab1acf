//! Storage in virtual time: what a workload would get from disks that are not there.
//!
//! ```text
//! read(text)                   a workload file with a [storage] of its own -> Plan, Storage
//! simulate(plan, storage)      Machine: a Run per phase
//!   Lane   a stream::Stream, as the load crate has it: what comes next   <-------+
//!   Store  limits -> layout -> Disk: limits, channel, units or arm, cache        |
//!   Events the next thing that happens                      -> done -> stream::Record
//! -> Simulated: PhaseResults as a run gives them
//!
//! curve(storage, shape)        a Curve and its knee, as measure gives it
//! fit(capability)              a Storage that gives such curves, and how far it is off on points it never saw
//! predict(storage, what_if)    curves before and after a change
//! remedies(fit, demand)        how far each remedy would carry a demand
//! ```
//!
//! An I/O is one event where its disk serves in the order of coming: when channel and units become free is known, so
//! that its end is known when it comes. Deterministic by seed. This crate does no I/O and reads no clock.

mod bucket;
mod client;
mod curve;
mod disk;
mod events;
mod file;
mod fit;
mod interval;
mod machine;
mod model;
mod phase;
mod plan;
mod remedy;
mod store;
mod time;
mod what_if;

pub use curve::{curve, point, simulate_alone};
pub use file::read;
pub use fit::{Fit, FitError, Held, Line, fit, is_fitted};
pub use interval::{Interval, intervals};
pub use machine::{DiskUse, Job, Machine, OUTSTANDING_MAX, TOOL};
pub use model::{
    Cost, Disk, Flash, Impossible, Limit, Mechanics, Metered, Rotating, Stall, Storage, Time, WriteCache,
};
pub use plan::{Progress, Simulated, simulate};
pub use remedy::{Advice, Demand, Remedy, remedies};
pub use what_if::{BadChange, Prediction, WhatIf, predict};
