//! Fits a model to a measured capability, and tests it on points that were kept out of the fit.

use crate::curve::simulate_alone;
use crate::model::{Cost, Disk, Flash, Limit, Mechanics, Metered, Storage, Time};
use capability::{Capability, Curve, Demand as LinearCost};
use serde::{Deserialize, Serialize};
use workload::{CapKind, Durability, Pattern, Shape, Workload};

/// A model of a measured storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The model: one disk, whatever the storage consists of.
    pub storage: Storage,
    /// Mean relative error of the simulated I/Os a second on the points kept out of the fit (0.05 = 5 %); `None` where too
    /// little was measured to keep any out.
    pub error: Option<f64>,
    /// Those points.
    pub held_out: Vec<HeldOutPoint>,
    /// Number of points that were fitted.
    pub trained: usize,
    /// Parts of the capability that the model does not cover, as text.
    pub not_covered: Vec<String>,
    /// Duration of a commit, where log writes were measured.
    pub commit: Option<LinearCost>,
}

/// A measured point that was kept out of the fit, and what the model predicts for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldOutPoint {
    /// Shape of the I/Os.
    pub workload: Shape,
    /// I/Os kept outstanding.
    pub outstanding: u32,
    /// I/Os a second measured.
    pub measured_iops: f64,
    /// I/Os a second simulated.
    pub simulated_iops: f64,
}

/// Why there is no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// There is no curve to fit.
    #[error("it has no curve of random reads or writes of two points or more")]
    NothingMeasured,
}

/// A measured point.
#[derive(Clone, Copy, Debug)]
struct Sample {
    shape: Shape,
    outstanding: u32,
    iops: f64,
}

/// I/Os of a simulated point while candidates are compared.
const IOS_TO_CHOOSE: u64 = 3_000;
/// I/Os of a simulated point in the result.
const IOS_TO_REPORT: u64 = 20_000;
/// Factors by which a curve may be slower than the best of its points, alone and at its end.
const SLOWER: [f64; 5] = [1.0, 1.05, 1.12, 1.2, 1.35];
/// Most units that are tried, in powers of two.
const UNITS_MAX: u32 = 256;

fn times(line: LinearCost, factor: f64) -> LinearCost {
    LinearCost { fixed_ns: line.fixed_ns * factor, per_byte_ns: line.per_byte_ns * factor }
}

/// Least squares of the relative errors over (bytes, nanoseconds); neither term below 0.
fn fit_line(points: &[(f64, f64)]) -> Option<LinearCost> {
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|(b, t)| of(*b, *t)).sum::<f64>();
    let (ones, bytes, squares) =
        (sum(&|_, t| 1.0 / (t * t)), sum(&|b, t| b / (t * t)), sum(&|b, t| b * b / (t * t)));
    let (times, products) = (sum(&|_, t| 1.0 / t), sum(&|b, t| b / t));
    let determinant = ones * squares - bytes * bytes;
    let fixed = LinearCost { fixed_ns: times / ones, per_byte_ns: 0.0 };
    if points.is_empty() {
        return None;
    }
    if determinant <= 1e-9 * ones * squares {
        return Some(fixed);
    }
    let fixed_ns = (times * squares - products * bytes) / determinant;
    let per_byte_ns = (products * ones - times * bytes) / determinant;
    Some(match () {
        () if per_byte_ns < 0.0 => fixed,
        () if fixed_ns < 0.0 => LinearCost { fixed_ns: 0.0, per_byte_ns: products / squares },
        () => LinearCost { fixed_ns, per_byte_ns },
    })
}

/// Fits parallel units, or stages in series, to the curves of random I/Os: the latency of an I/O alone, its demand on the
/// bottleneck (one over its highest rate), the number of units or stages that share the demand, the variance of their
/// times, and whether writes have their own. Every third point of a curve, and all points of the shapes that the cost
/// model kept out, are kept out of the fit and give its error.
///
/// # Errors
/// Where no curve can be fitted to.
pub fn fit(capability: &Capability) -> Result<Fit, FitError> {
    let kept_out: Vec<Shape> =
        capability.cost_model.iter().flat_map(|model| &model.held_out).map(|held| held.workload).collect();
    let (mut train, mut test) = (Vec::new(), Vec::new());
    let curves: Vec<&Curve> = capability.curves.iter().filter(|curve| is_covered(curve)).collect();
    for curve in &curves {
        let last = curve.points.len() - 1;
        for (at, point) in curve.points.iter().enumerate().filter(|(_, point)| point.iops > 0.0) {
            let sample = Sample { shape: curve.workload, outstanding: point.outstanding, iops: point.iops };
            let inner = at % 3 == 1 && at != last;
            if inner || kept_out.contains(&curve.workload) { test.push(sample) } else { train.push(sample) }
        }
    }
    let outstanding_max =
        train.iter().map(|sample| sample.outstanding).max().ok_or(FitError::NothingMeasured)?;
    for held in capability.cost_model.iter().flat_map(|model| &model.held_out) {
        let shape = held.workload;
        let on_curve = curves.iter().any(|curve| curve.workload == shape);
        if shape.pattern == Pattern::Random && shape.durability == Durability::Cached && !on_curve {
            test.push(Sample { shape, outstanding: outstanding_max, iops: held.measured_iops });
        }
    }
    let sides = Costs::from_samples(&train).ok_or(FitError::NothingMeasured)?;
    let limits = measured_limits(capability);
    let size_bytes = capability.conditions.region_bytes.max(64 << 20);
    let model = |sides: &Costs, candidate: &Candidate| {
        let disk = Disk::plain(size_bytes, Mechanics::Flash(sides.flash(candidate)));
        Storage::single(Disk { limits: limits.clone(), ..disk })
    };
    let mixed = train.iter().any(|sample| (1..100).contains(&sample.shape.write_percent));
    let candidates = Candidate::all(sides.units_max(), mixed);
    let error = |model: &Storage| mean_error(model, &train, IOS_TO_CHOOSE);
    let errors = candidates.iter().map(|candidate| (error(&model(&sides, candidate)), candidate));
    let (_, best) = errors.min_by(|a, b| a.0.total_cmp(&b.0)).ok_or(FitError::NothingMeasured)?;
    // The best of several noisy points is too fast: the rest of the curve shows by how much.
    let scaled = SLOWER.iter().flat_map(|alone| SLOWER.iter().map(|demand| sides.times(*alone, *demand)));
    let storages = scaled.map(|sides| model(&sides, best)).map(|storage| (error(&storage), storage));
    let (_, mut storage) = storages.min_by(|a, b| a.0.total_cmp(&b.0)).ok_or(FitError::NothingMeasured)?;
    let commit = commit_line(capability);
    if let Some(commit) = commit {
        let write_ns = sides.write.map_or(0.0, |(alone, _)| alone.at_bytes(4096.0));
        storage.disks[0].sync = Time::Fixed { ns: (commit.at_bytes(4096.0) - write_ns).max(0.0) as u64 };
    }
    let held_out: Vec<HeldOutPoint> = test
        .iter()
        .map(|sample| HeldOutPoint {
            workload: sample.shape,
            outstanding: sample.outstanding,
            measured_iops: sample.iops,
            simulated_iops: simulated_iops(&storage, sample, IOS_TO_REPORT),
        })
        .collect();
    let off = |held: &HeldOutPoint| (held.simulated_iops / held.measured_iops - 1.0).abs();
    let error = (!held_out.is_empty()).then(|| held_out.iter().map(off).sum::<f64>() / held_out.len() as f64);
    Ok(Fit {
        storage,
        error,
        held_out,
        trained: train.len(),
        not_covered: not_covered(capability, &sides),
        commit,
    })
}

/// Whether a fit covers that curve.
pub fn is_fitted(capability: &Capability, shape: &Shape) -> bool {
    capability.curve(shape).is_some_and(is_covered)
}

fn is_covered(curve: &Curve) -> bool {
    let shape = &curve.workload;
    shape.pattern == Pattern::Random && shape.durability == Durability::Cached && curve.points.len() >= 2
}

fn simulated_iops(storage: &Storage, sample: &Sample, ios: u64) -> f64 {
    let workload = Workload::from(sample.shape).with_outstanding(sample.outstanding);
    simulate_alone(storage, &workload, ios).map_or(0.0, |result| result.iops())
}

fn mean_error(storage: &Storage, samples: &[Sample], ios: u64) -> f64 {
    let off = |sample: &Sample| (simulated_iops(storage, sample, ios) / sample.iops - 1.0).abs();
    samples.iter().map(off).sum::<f64>() / samples.len() as f64
}

/// For reads and writes: the latency of an I/O alone, and its demand on all units together.
struct Costs {
    read: Option<(LinearCost, LinearCost)>,
    write: Option<(LinearCost, LinearCost)>,
}

impl Costs {
    fn from_samples(samples: &[Sample]) -> Option<Costs> {
        let side = |percent: u8| {
            let mut alone: Vec<(f64, f64)> = Vec::new();
            let mut demand: Vec<(f64, f64)> = Vec::new();
            let mut shapes: Vec<Shape> = Vec::new();
            for sample in samples.iter().filter(|sample| sample.shape.write_percent == percent) {
                if shapes.contains(&sample.shape) {
                    continue;
                }
                shapes.push(sample.shape);
                let of_shape = || samples.iter().filter(|other| other.shape == sample.shape);
                let latency_ns = |point: &Sample| f64::from(point.outstanding) * 1e9 / point.iops;
                let bytes = f64::from(sample.shape.block_bytes);
                alone.push((bytes, of_shape().map(latency_ns).fold(f64::MAX, f64::min)));
                demand.push((bytes, of_shape().map(|point| 1e9 / point.iops).fold(f64::MAX, f64::min)));
            }
            Some((fit_line(&alone)?, fit_line(&demand)?))
        };
        let (read, write) = (side(0), side(100));
        (read.is_some() || write.is_some()).then_some(Costs { read, write })
    }

    /// The costs scaled by factors, alone and at the highest rate.
    fn times(&self, alone: f64, demand: f64) -> Costs {
        let side = |(line, most): (LinearCost, LinearCost)| (times(line, alone), times(most, demand));
        Costs { read: self.read.map(side), write: self.write.map(side) }
    }

    /// With more units a unit's service time would exceed the latency of an I/O alone.
    fn units_max(&self) -> u32 {
        let ratio = |(alone, demand): &(LinearCost, LinearCost)| {
            alone.at_bytes(4096.0) / demand.at_bytes(4096.0).max(1.0)
        };
        let most = self.read.iter().chain(&self.write).map(ratio).fold(f64::from(UNITS_MAX), f64::min);
        (most.round() as u32).clamp(1, UNITS_MAX)
    }

    fn flash(&self, candidate: &Candidate) -> Flash {
        let cost = |(alone, demand): (LinearCost, LinearCost)| {
            // Units in parallel, or stages in series, multiply the demand to the time of one I/O.
            let busy = f64::from(candidate.units.max(candidate.stages));
            let rest = Cost {
                delay: Time::Fixed { ns: (alone.fixed_ns - demand.fixed_ns * busy).max(0.0) as u64 },
                delay_byte_ns: (alone.per_byte_ns - demand.per_byte_ns * busy).max(0.0),
                ..Cost::default()
            };
            if candidate.stages > 0 {
                let channel = candidate.spread.time(demand.fixed_ns);
                return Cost { channel, channel_byte_ns: demand.per_byte_ns, ..rest };
            }
            let service = candidate.spread.time(demand.fixed_ns * busy);
            Cost { service, service_byte_ns: demand.per_byte_ns * busy, ..rest }
        };
        let any = self.read.or(self.write).expect("one of them is there");
        Flash {
            // Behind stages, enough units that no I/O waits for one.
            units: if candidate.stages > 0 { UNITS_MAX } else { candidate.units },
            stages: candidate.stages.max(1),
            duplex: candidate.duplex,
            read: cost(self.read.unwrap_or(any)),
            write: cost(self.write.unwrap_or(any)),
        }
    }
}

/// Parameters that do not follow from the curves but are tried.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// Units or stages; the other is 0.
    units: u32,
    stages: u32,
    duplex: bool,
    spread: Spread,
}

/// Variance of the times of a unit or stage.
#[derive(Clone, Copy, Debug)]
enum Spread {
    None,
    /// Standard deviation half the mean.
    Some,
    /// As large as the mean.
    Full,
}

impl Spread {
    fn time(self, mean_ns: f64) -> Time {
        match self {
            Spread::None => Time::Fixed { ns: mean_ns as u64 },
            Spread::Some => {
                let sigma = 1.25_f64.ln().sqrt();
                Time::Lognormal { median_ns: mean_ns / (sigma * sigma / 2.0).exp(), sigma }
            }
            Spread::Full => Time::Exponential { mean_ns },
        }
    }
}

impl Candidate {
    fn all(most: u32, mixed: bool) -> Vec<Candidate> {
        let mut units: Vec<u32> = std::iter::successors(Some(1), |units| Some(units * 2))
            .take_while(|units| *units < most)
            .collect();
        units.push(most);
        // Stages with constant times are equivalent to one: only those that vary soften the knee.
        let stages = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32].into_iter().filter(|stages| *stages <= most + 1);
        let duplex = if mixed { &[false, true][..] } else { &[false][..] };
        let mut all = Vec::new();
        for duplex in duplex.iter().copied() {
            for units in units.iter().copied() {
                let spreads = [Spread::None, Spread::Some, Spread::Full];
                all.extend(spreads.map(|spread| Candidate { units, stages: 0, duplex, spread }));
            }
            for stages in stages.clone() {
                let spreads = [Spread::Some, Spread::Full];
                all.extend(spreads.map(|spread| Candidate { units: 0, stages, duplex, spread }));
            }
        }
        all
    }
}

/// The throttles of the measurement, which hold for any device below. The kernel adds tokens ten times a second
/// (block/blk-throttle.c).
fn measured_limits(capability: &Capability) -> Vec<Limit> {
    let limit = |cap: &workload::Cap| {
        let of = match cap.kind {
            CapKind::ReadIops => Metered::Reads,
            CapKind::WriteIops => Metered::Writes,
            CapKind::ReadBytes => Metered::ReadBytes,
            CapKind::WriteBytes => Metered::WriteBytes,
        };
        Limit { of, per_second: cap.per_second.max(1) as f64, burst: 0.0, refill_ns: 100_000_000 }
    };
    capability.target.caps.iter().map(limit).collect()
}

/// Duration of a durable log write, by its size.
fn commit_line(capability: &Capability) -> Option<LinearCost> {
    let points = |durability: Durability| -> Vec<(f64, f64)> {
        let logs = capability.curves.iter().filter(|curve| {
            let shape = &curve.workload;
            shape.durability == durability
                && shape.write_percent == 100
                && shape.pattern == Pattern::Sequential
        });
        let alone = |curve: &Curve| {
            let point = curve.points.first().filter(|point| point.latency_ns > 0.0)?;
            Some((f64::from(curve.workload.block_bytes), point.latency_ns))
        };
        logs.filter_map(alone).collect()
    };
    fit_line(&points(Durability::Synced)).or_else(|| fit_line(&points(Durability::WriteThrough)))
}

fn not_covered(capability: &Capability, sides: &Costs) -> Vec<String> {
    let mut missing = Vec::new();
    if capability.curves.iter().any(|curve| {
        curve.workload.pattern == Pattern::Sequential && curve.workload.durability == Durability::Cached
    }) {
        missing.push("sequential I/Os: the model serves them like random ones".to_owned());
    }
    for (side, name) in [(&sides.read, "reads"), (&sides.write, "writes")] {
        if side.is_none() {
            missing.push(format!("{name} were not measured: the model serves them like the others"));
        }
    }
    missing
}
