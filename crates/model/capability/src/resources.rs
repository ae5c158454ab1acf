//! Known limits of a storage as a short list: one figure for each resource, and whether it is a limit or was only reached.

use crate::{Capability, Curve, Knee, KneeReason, Origin};
use serde::{Deserialize, Serialize};
use std::fmt;
use workload::{Cap, CapKind, Durability, Pattern, Shape, Unit};

/// A resource of a storage, or a time that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ResourceName {
    /// Reads a second.
    ReadOperations,
    /// Writes a second.
    WriteOperations,
    /// Reads and writes a second together.
    Operations,
    /// Bytes read a second.
    ReadBandwidth,
    /// Bytes written a second.
    WriteBandwidth,
    /// Bytes read and written a second together.
    Bandwidth,
    /// Nanoseconds of a read with nothing in its way.
    ReadLatency,
    /// Nanoseconds of a write with nothing in its way.
    WriteLatency,
    /// Nanoseconds of an append and its sync.
    CommitLatency,
}

/// Whether a figure is a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// It is what the storage gives.
    Exact,
    /// It was reached; the storage may give more.
    AtLeast,
}

/// One figure of what a storage gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// The resource.
    pub name: ResourceName,
    /// Its figure, in `unit`.
    pub value: f64,
    /// I/Os a second, bytes a second or nanoseconds.
    pub unit: Unit,
    /// Whether it is a limit.
    pub bound: Bound,
    /// The range in which it lies, where that is known.
    pub interval: Option<(f64, f64)>,
    /// Mean bytes of the I/Os that it was found with.
    pub io_bytes: Option<f64>,
    /// Share of writes among them, in percent.
    pub write_percent: Option<u8>,
    /// Where it comes from.
    pub from: Origin,
    /// When it was measured, declared or last seen, nanoseconds since 1970.
    pub at_unix_ns: u64,
}

/// Sizes from here on show what a storage gives in bytes rather than in operations.
const BANDWIDTH_BYTES_MIN: f64 = 65_536.0;
/// Block size for which the cost model is evaluated where no curve has large I/Os.
const LARGE_BYTES: u32 = 524_288;

impl ResourceName {
    /// The unit of its figures.
    pub fn unit(self) -> Unit {
        match self {
            ResourceName::ReadOperations | ResourceName::WriteOperations | ResourceName::Operations => {
                Unit::PerSecond
            }
            ResourceName::ReadBandwidth | ResourceName::WriteBandwidth | ResourceName::Bandwidth => {
                Unit::BytesPerSecond
            }
            ResourceName::ReadLatency | ResourceName::WriteLatency | ResourceName::CommitLatency => Unit::Ns,
        }
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A rate of I/Os of one kind, as measured.
struct Rate {
    shape: Shape,
    iops: f64,
    half_width: f64,
    bound: Bound,
}

impl Rate {
    fn bytes_per_s(&self) -> f64 {
        self.iops * f64::from(self.shape.block_bytes)
    }

    /// The I/Os a second that a cap allows, if it is one on such I/Os.
    fn most_under(&self, cap: &Cap) -> Option<f64> {
        let (writes, in_bytes) = match cap.kind {
            CapKind::ReadIops => (0, false),
            CapKind::WriteIops => (100, false),
            CapKind::ReadBytes => (0, true),
            CapKind::WriteBytes => (100, true),
        };
        let each = if in_bytes { f64::from(self.shape.block_bytes) } else { 1.0 };
        (self.shape.write_percent == writes).then_some(cap.per_second as f64 / each)
    }
}

impl Capability {
    /// Its figures, a few: the highest rate of each direction in operations and in bytes, and the times at rest.
    pub fn resources(&self) -> Vec<Resource> {
        let rates = self.rates();
        let mut found = Vec::new();
        for (writes, operations, bandwidth) in [
            (0, ResourceName::ReadOperations, ResourceName::ReadBandwidth),
            (100, ResourceName::WriteOperations, ResourceName::WriteBandwidth),
        ] {
            let of_side = || rates.iter().filter(move |rate| rate.shape.write_percent == writes);
            let random = of_side().filter(|rate| rate.shape.pattern == Pattern::Random);
            let most = random.max_by(|a, b| a.iops.total_cmp(&b.iops));
            found.extend(most.map(|rate| self.resource(operations, rate, 1.0)));
            let most = of_side().max_by(|a, b| a.bytes_per_s().total_cmp(&b.bytes_per_s()));
            let scale = |rate: &Rate| f64::from(rate.shape.block_bytes);
            let bytes = most.map(|rate| {
                let is_large = scale(rate) >= BANDWIDTH_BYTES_MIN;
                let bound = if is_large { rate.bound } else { Bound::AtLeast };
                Resource { bound, ..self.resource(bandwidth, rate, scale(rate)) }
            });
            found.extend(bytes);
        }
        found.extend(self.times_at_rest());
        found
    }

    /// The highest rates: of the curves, and of the cost model where no curve has large I/Os.
    fn rates(&self) -> Vec<Rate> {
        let cached = |curve: &&Curve| curve.workload.durability == Durability::Cached;
        let curves = self.curves.iter().filter(cached).filter_map(|curve| {
            let shape = curve.workload;
            Some(match &curve.knee {
                Some(knee) => {
                    let (low, high) = knee.iops_interval;
                    Rate { shape, iops: knee.iops, half_width: (high - low) / 2.0, bound: bound_of(knee) }
                }
                None => Rate { shape, iops: curve.iops_max()?, half_width: 0.0, bound: Bound::AtLeast },
            })
        });
        let measured: Vec<Rate> = curves.collect();
        // Large writes have no curve, but take part in the fit.
        let is_large = |rate: &Rate| f64::from(rate.shape.block_bytes) >= BANDWIDTH_BYTES_MIN;
        let fitted = self.cost_model.iter().flat_map(|model| {
            let shapes = [Shape::sequential_read(LARGE_BYTES), Shape::sequential_write(LARGE_BYTES)];
            let lacks = |shape: &Shape| {
                let of_side = |rate: &Rate| rate.shape.write_percent == shape.write_percent;
                !measured.iter().any(|rate| of_side(rate) && is_large(rate))
            };
            let lacking = shapes.into_iter().filter(lacks);
            let rate =
                |shape| Rate { shape, iops: model.iops_max(&shape), half_width: 0.0, bound: Bound::Exact };
            lacking.map(rate).filter(|rate| rate.iops.is_finite()).collect::<Vec<Rate>>()
        });
        let fitted: Vec<Rate> = fitted.collect();
        measured.into_iter().chain(fitted).map(|rate| self.within_caps(rate)).collect()
    }

    /// The caps that were there at the measurement are exact, where a curve or a fit is above them. Declared limits stay.
    fn within_caps(&self, rate: Rate) -> Rate {
        let caps =
            self.target.caps.iter().filter(|_| matches!(self.origin, Origin::Measured | Origin::Gentle));
        let most = caps.filter_map(|cap| rate.most_under(cap)).fold(f64::INFINITY, f64::min);
        if rate.iops <= most {
            rate
        } else {
            Rate { iops: most, half_width: 0.0, bound: Bound::Exact, ..rate }
        }
    }

    fn resource(&self, name: ResourceName, rate: &Rate, scale: f64) -> Resource {
        let interval = (rate.half_width > 0.0)
            .then(|| ((rate.iops - rate.half_width).max(0.0) * scale, (rate.iops + rate.half_width) * scale));
        Resource {
            name,
            value: rate.iops * scale,
            unit: name.unit(),
            bound: rate.bound,
            interval,
            io_bytes: Some(f64::from(rate.shape.block_bytes)),
            write_percent: Some(rate.shape.write_percent),
            from: self.origin,
            at_unix_ns: self.measured_unix_ns,
        }
    }

    fn times_at_rest(&self) -> Vec<Resource> {
        let time = |name, is_it: &dyn Fn(&Shape) -> bool| {
            let curves = self.curves.iter().filter(|curve| is_it(&curve.workload));
            let smallest = curves.min_by_key(|curve| curve.workload.block_bytes)?;
            Some(Resource {
                name,
                value: smallest.latency_ns_min()?,
                unit: Unit::Ns,
                bound: Bound::Exact,
                interval: None,
                io_bytes: Some(f64::from(smallest.workload.block_bytes)),
                write_percent: Some(smallest.workload.write_percent),
                from: self.origin,
                at_unix_ns: self.measured_unix_ns,
            })
        };
        let random =
            |shape: &Shape| shape.pattern == Pattern::Random && shape.durability == Durability::Cached;
        let times = [
            time(ResourceName::ReadLatency, &|shape| random(shape) && shape.write_percent == 0),
            time(ResourceName::WriteLatency, &|shape| random(shape) && shape.write_percent == 100),
            time(ResourceName::CommitLatency, &|shape| shape.durability == Durability::Synced),
        ];
        times.into_iter().flatten().collect()
    }
}

fn bound_of(knee: &Knee) -> Bound {
    match knee.reason {
        KneeReason::NotReached | KneeReason::Client => Bound::AtLeast,
        KneeReason::Device | KneeReason::Cap | KneeReason::KernelQueue => Bound::Exact,
    }
}
