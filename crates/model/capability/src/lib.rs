//! Performance of one target: capability curves, their knees and a cost model, dated and with the conditions they
//! were measured under.
//!
//! ```text
//! Point   N outstanding -> IOPS, MiB/s, latency          (one steady stretch of load)
//! Curve   points of one Shape + Knee                     N* = Xmax x R0, where the asymptotes cross
//! CostModel   D(b) = c0 + c1 x b, for reads and writes, random and sequential;
//!             resources: shared, reads, writes           U = the largest sum of rate x demand
//! Sweep   steps of one target + Saturation: knee, levels, linear range, floor, crossings; two of them compared
//! Capability = TargetFacts + curves + CostModel + Conditions + Origin   measured, declared by its provider, borrowed
//! Resource    one figure of it for people and scripts, with its bound and origin
//! ```
//!
//! A verdict needs [`Capability::expected_latency_ns`] (the latency of an I/O at that concurrency) and
//! [`CostModel::utilisation`] (the share of the storage that a demand uses).
//!
//! Sources: asymptotic bounds X(N) <= min(N / R0, Xmax) are operational analysis (Denning and Buzen
//! 1978; Lazowska et al. 1984, ch. 5); the linear demand is the form of the kernel's block/blk-iocost.c;
//! intervals are Student's t over batch means (Law and Kelton). This crate does no I/O.

mod cost;
mod credit;
mod curve;
mod declared;
mod humps;
mod knee;
mod limits;
mod origin;
mod resources;
mod saturation;
mod slices;
mod sweep;
mod volume_types;

pub use cost::{
    Binding, Burst, CostModel, Demand, Flow, HeldOut, Maximum, ModelError, RateLimit, Sharing, Side,
    Utilisation,
};
pub use credit::Credit;
pub use curve::{Curve, Point};
pub use declared::{DeclarationError, Declared};
pub use humps::{Humps, humps};
pub use knee::{Knee, KneeReason, StorageLimits, find_knee};
pub use limits::{METERED_SPREAD_MAX, OTHER_STORAGE_RATIO, THREAD_BUSY_MIN};
pub use origin::Origin;
pub use resources::{Bound, Resource, ResourceName};
pub use saturation::{CRITICAL_NS, Crossing, DEGRADED_NS, Level, Linear, Saturation};
pub use slices::{MeanInterval, ThroughputSlices};
pub use sweep::{QueueSeen, RatioIs, Sweep, SweepComparison, SweepStep};
pub use volume_types::{VolumeError, VolumeSize, VolumeType};

use serde::{Deserialize, Serialize};
use std::fmt;
use workload::{Backend, Caching, Shape, TargetChange, TargetFacts};

/// Under which conditions a capability was measured: compare two only where these agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conditions {
    /// Version of Headroom.
    pub headroom_version: String,
    /// Kernel release.
    pub kernel: String,
    /// How I/Os were handed over.
    pub backend: Backend,
    /// Direct, or through the page cache where direct I/O was not available.
    pub caching: Caching,
    /// Bytes of the region that load ran on.
    pub region_bytes: u64,
    /// I/Os a second that others did on the device just before.
    pub foreign_iops: Option<f64>,
    /// Seconds that the whole measurement took.
    pub took_s: f64,
    /// Effort that was permitted.
    pub effort: Effort,
    /// Remarks that the reader must know to trust the figures ("ended early by the user").
    pub remarks: Vec<String>,
    /// Changes of the target by other programs during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target_changes: Vec<TargetChange>,
}

/// Time that a measurement may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// About 12 s: the points that decide a first verdict, the widest intervals. Also the result of a longer measurement
    /// that was ended early.
    Preliminary,
    /// About half a minute: the curves a verdict needs most, wider intervals.
    Quick,
    /// About 75 seconds.
    #[default]
    Default,
    /// About five minutes: more points, narrow intervals, higher N.
    Thorough,
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Measured, learned or declared performance of one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capability {
    /// The target and the devices below it.
    pub target: TargetFacts,
    /// When it was measured, nanoseconds since 1970.
    pub measured_unix_ns: u64,
    /// Under which conditions.
    pub conditions: Conditions,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Cost of an I/O; `None` where too little was measured to fit a model.
    pub cost_model: Option<CostModel>,
    /// Where its figures come from.
    #[serde(default, skip_serializing_if = "Origin::is_measured")]
    pub origin: Origin,
}

impl Capability {
    /// Whether it was measured, and only by the points that decide a first verdict.
    pub fn is_preliminary(&self) -> bool {
        self.conditions.effort == Effort::Preliminary && self.origin != Origin::Declared
    }

    /// The measured curve of exactly that shape.
    pub fn curve(&self, shape: &Shape) -> Option<&Curve> {
        self.curves.iter().find(|curve| curve.workload == *shape)
    }

    /// The measured curve nearest to a demand: same durability, then write share, then size, then pattern.
    pub fn nearest_curve(&self, shape: &Shape) -> Option<&Curve> {
        let distance = |curve: &&Curve| {
            let other = curve.workload;
            let octaves = (f64::from(other.block_bytes) / f64::from(shape.block_bytes)).log2().abs();
            let share = f64::from(other.write_percent.abs_diff(shape.write_percent)) / 10.0;
            let pattern = if other.pattern == shape.pattern { 0.0 } else { 1.5 };
            share + octaves + pattern
        };
        self.curves
            .iter()
            .filter(|curve| curve.workload.durability == shape.durability && !curve.points.is_empty())
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    /// The mean latency (ns) to expect of one I/O of that shape with `outstanding` in flight.
    ///
    /// Taken from the nearest curve. Where the size differs, it is scaled by the ratio of the cost model's service
    /// demands for the two sizes. `None` without a curve of the same durability.
    pub fn expected_latency_ns(&self, shape: &Shape, outstanding: f64) -> Option<f64> {
        let curve = self.nearest_curve(shape)?;
        let on_curve = curve.latency_ns_at(outstanding)?;
        let scale = self.cost_model.as_ref().map_or(1.0, |model| {
            let side = if shape.write_percent >= 50 { Side::Write } else { Side::Read };
            let demand_ns =
                |shape: &Shape| model.demand(side, shape.pattern).at_bytes(f64::from(shape.block_bytes));
            let scale = demand_ns(shape) / demand_ns(&curve.workload);
            if scale.is_finite() { scale } else { 1.0 }
        });
        Some(on_curve * scale)
    }
}
