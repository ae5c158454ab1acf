//! Simulates storage in virtual time: what a workload would get from disks that do not exist.
//!
//! ```text
//! read(text)                   a workload file with a [storage] table -> Plan, Storage
//! simulate(plan, storage)      Machine: a PhaseRun per phase
//!   Lane       a stream::IoStream, as in the load crate: what is issued next        <--+
//!   DiskArray  limits -> layout -> DiskState: limits, channel, units or arm, cache     |
//!   Events     the next event                         -> completion -> stream::IoRecord
//! -> Simulated: PhaseResults as a run gives them
//!
//! curve(storage, shape)        a Curve and its knee, as measure gives it
//! fit(capability)              a Storage that gives such curves, and its error on points that it was not fitted to
//! predict(model, what_if)      curves before and after a change
//! remedies(fit, demand)        how much of a demand each remedy would carry
//! ```
//!
//! Where a disk serves I/Os in order of arrival an I/O is one event: when channel and units become free is known, and so
//! is its completion. Deterministic by seed. This crate does no I/O and reads no clock.

mod arm;
mod bucket;
mod curve;
mod disk;
mod disk_array;
mod events;
mod file;
mod fit;
mod interval;
mod job;
mod lane;
mod machine;
mod model;
mod phase;
mod plan;
mod remedy;
mod sampler;
mod what_if;

pub use curve::{curve, point, simulate_alone};
pub use disk_array::DiskUse;
pub use file::read;
pub use fit::{Fit, FitError, HeldOutPoint, fit, is_fitted};
pub use interval::{Interval, intervals};
pub use job::Job;
pub use machine::{Machine, OUTSTANDING_MAX};
pub use model::{
    Cost, Disk, Flash, Limit, Mechanics, Metered, Rotating, SimulationError, Stall, Storage, Time, WriteCache,
};
pub use phase::TOOL;
pub use plan::{Simulated, SimulationProgress, simulate};
pub use remedy::{Advice, Demand, Remedy, remedies};
pub use what_if::{InvalidChange, PredictedModel, Prediction, WhatIf, predict};
