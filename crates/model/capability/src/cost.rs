//! Cost of an I/O, and the share of the storage that a set of demands uses up.
//!
//! ```text
//! D(b) = c0 + c1 b          seconds of the storage that one I/O of b bytes takes: 1 / its highest rate
//!
//! resource       what each I/O takes of it            example of the binding one
//! shared         f c0 + s c1 b   (reads and writes)    8 KiB mixes: "operations"
//! reads          D(b)            (reads only)          64 KiB reads: "read bandwidth"
//! writes         D(b)            (writes only)         64 KiB writes: "write bandwidth"
//!
//! U = max over resources of  sum over flows  rate x demand      headroom = 1 / U
//! ```
//!
//! With f = s = 1 the shared resource is all there is and U is the plain sum (the plane of Seastar and of
//! the kernel's blk-iocost). Where mixes of large I/Os run above that sum, reads and writes have limits of
//! their own and share less: f and s are taken from measured mixes, and only as far as predicting a mix
//! that was left out of the fit becomes better for it. Of all that predict the mixes equally well the
//! largest are taken, which never promise more than was seen.

use serde::{Deserialize, Serialize};
use std::fmt;
use workload::{Pattern, Shape};

/// Direction of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

/// Service demand of one I/O: D(b) = c0 + c1 x b.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "IoCost"))]
pub struct Demand {
    /// c0, nanoseconds for each I/O.
    pub fixed_ns: f64,
    /// c1, nanoseconds for each byte.
    pub per_byte_ns: f64,
}

/// Parts of an I/O's demand that fall on the resource shared by reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sharing {
    /// Share of the fixed cost c0 that reads and writes share, 0 to 1.
    pub fixed: f64,
    /// Share of the cost of bytes c1 x b that they share, 0 to 1.
    pub bytes: f64,
}

/// The highest rate measured for a shape.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Maximum {
    /// Shape of each I/O.
    pub workload: Shape,
    /// I/Os a second at saturation.
    pub iops: f64,
    /// Half the width of its 95 % confidence interval.
    pub iops_half_width: f64,
}

/// A maximum that took no part in the fit, and what the model says it should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldOut {
    /// Shape of each I/O.
    pub workload: Shape,
    /// I/Os a second measured.
    pub measured_iops: f64,
    /// I/Os a second predicted.
    pub predicted_iops: f64,
}

/// The cost model of one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostModel {
    /// Random reads.
    pub read_random: Demand,
    /// Sequential reads.
    pub read_sequential: Demand,
    /// Random writes.
    pub write_random: Demand,
    /// Sequential writes.
    pub write_sequential: Demand,
    /// Parts of the demands that fall on the resource shared by reads and writes; all of them in the
    /// one-resource model.
    pub sharing: Sharing,
    /// Mixes and sizes kept out of the fit.
    pub held_out: Vec<HeldOut>,
    /// Mean absolute error over them, as a share (0.05 = 5 %); `None` where nothing was held out.
    pub error: Option<f64>,
    /// Limits that somebody states, each for itself; none of a measured model, which has them in its demands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<RateLimit>,
}

/// The most I/Os or bytes a second of one resource, as its provider states it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateLimit {
    /// The limited resource.
    pub of: Binding,
    /// I/Os or bytes a second.
    pub per_second: f64,
    /// Rate beyond that, for a limited time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
}

/// Rate that a limit allows for a limited time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BurstLimit"))]
pub struct Burst {
    /// I/Os or bytes a second while any credit is left.
    pub per_second: f64,
    /// I/Os or bytes that can be saved.
    pub saved_max: f64,
}

impl RateLimit {
    /// The part of it that these flows use.
    fn utilisation(&self, flows: &[Flow]) -> Utilisation {
        Utilisation { value: self.demand(flows) / self.per_second, binding: self.of }
    }

    /// Demand of these flows on it, a second.
    pub fn demand(&self, flows: &[Flow]) -> f64 {
        let (side, in_bytes) = match self.of {
            Binding::Operations => (None, false),
            Binding::Bandwidth => (None, true),
            Binding::ReadOperations => (Some(Side::Read), false),
            Binding::ReadBandwidth => (Some(Side::Read), true),
            Binding::WriteOperations => (Some(Side::Write), false),
            Binding::WriteBandwidth => (Some(Side::Write), true),
        };
        let limited = flows.iter().filter(|flow| side.is_none_or(|side| side == flow.side));
        let rates = limited.map(|flow| flow.per_second * if in_bytes { flow.bytes } else { 1.0 });
        rates.sum()
    }
}

/// I/Os of one kind at a steady rate: a part of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Reads or writes.
    pub side: Side,
    /// Where they go.
    pub pattern: Pattern,
    /// I/Os a second.
    pub per_second: f64,
    /// Mean bytes of each.
    pub bytes: f64,
}

/// The resource that runs out first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// The resource that reads and writes share, where the cost of each I/O dominates.
    Operations,
    /// The resource that reads and writes share, where bytes dominate.
    Bandwidth,
    /// Reads, and the cost of each dominates.
    ReadOperations,
    /// Reads, and their bytes dominate.
    ReadBandwidth,
    /// Writes, and the cost of each dominates.
    WriteOperations,
    /// Writes, and their bytes dominate.
    WriteBandwidth,
}

/// Share of the storage that a demand uses: 1 is all of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    /// U of the resource that binds.
    pub value: f64,
    /// The resource that binds.
    pub binding: Binding,
}

/// Why no model can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A direction without any measured maximum.
    #[error("no saturated {0} were measured, which a cost model needs")]
    NothingMeasured(&'static str),
}

/// Two maxima measured minutes apart agree to about this share at best.
const NOISE: f64 = 0.02;
/// A richer sharing must lower the left-out error by this much (a share) to be in the model.
const WORTH_A_RESOURCE: f64 = 0.01;
/// Errors that differ by less are the same.
const AS_GOOD: f64 = 0.001;

impl Demand {
    /// Demand of an I/O of that many bytes, nanoseconds.
    pub fn at_bytes(&self, bytes: f64) -> f64 {
        self.fixed_ns + self.per_byte_ns * bytes
    }

    /// Least squares on relative errors over (bytes, nanoseconds, relative half width), the surer points
    /// counting more; neither term goes below zero.
    fn fit(points: &[(f64, f64, f64)]) -> Option<Demand> {
        let weight = |doubt: f64| 1.0 / (doubt.powi(2) + NOISE.powi(2));
        let weighted = |f: &dyn Fn(f64, f64) -> f64| {
            points.iter().map(|(b, d, doubt)| weight(*doubt) * f(*b, *d) / (d * d)).sum::<f64>()
        };
        let (ones, bytes, squares) = (weighted(&|_, _| 1.0), weighted(&|b, _| b), weighted(&|b, _| b * b));
        let (sums, products) = (weighted(&|_, d| d), weighted(&|b, d| b * d));
        let determinant = ones * squares - bytes * bytes;
        let fixed_only = || Demand { fixed_ns: sums / ones, per_byte_ns: 0.0 };
        if points.is_empty() {
            return None;
        }
        if points.len() == 1 || determinant.abs() < 1e-9 * ones * squares {
            return Some(fixed_only());
        }
        let fixed_ns = (sums * squares - products * bytes) / determinant;
        let per_byte_ns = (products * ones - sums * bytes) / determinant;
        Some(if per_byte_ns < 0.0 {
            fixed_only()
        } else if fixed_ns < 0.0 {
            Demand { fixed_ns: 0.0, per_byte_ns: products / squares }
        } else {
            Demand { fixed_ns, per_byte_ns }
        })
    }
}

impl Sharing {
    /// One resource for everything.
    pub const ALL: Sharing = Sharing { fixed: 1.0, bytes: 1.0 };

    /// From the smallest model to the largest: one resource; shared operations and a bandwidth for each
    /// direction; bytes partly shared; both partly shared.
    fn candidates() -> [Vec<Sharing>; 4] {
        let tenths = || (0..=10).map(|tenth| f64::from(tenth) / 10.0);
        let both = tenths().flat_map(|fixed| tenths().map(move |bytes| Sharing { fixed, bytes }));
        [
            vec![Sharing::ALL],
            vec![Sharing { fixed: 1.0, bytes: 0.0 }],
            tenths().map(|bytes| Sharing { fixed: 1.0, bytes }).collect(),
            both.collect(),
        ]
    }
}

impl CostModel {
    /// Fits a model to measured maxima. Shapes of one direction give the demands, mixes the sharing;
    /// `held_out` takes no part and gives the error.
    ///
    /// # Errors
    /// Where reads or writes were not measured at all.
    pub fn fit(maxima: &[Maximum], held_out: &[Maximum]) -> Result<CostModel, ModelError> {
        let demand = |writes: u8, pattern: Pattern| {
            let points: Vec<(f64, f64, f64)> = maxima
                .iter()
                .filter(|max| max.workload.write_percent == writes && max.workload.pattern == pattern)
                .filter(|max| max.iops > 0.0)
                .map(|max| {
                    (f64::from(max.workload.block_bytes), 1e9 / max.iops, max.iops_half_width / max.iops)
                })
                .collect();
            Demand::fit(&points)
        };
        let side = |writes, name| {
            let (random, sequential) = (demand(writes, Pattern::Random), demand(writes, Pattern::Sequential));
            let any = random.or(sequential).ok_or(ModelError::NothingMeasured(name))?;
            Ok((random.unwrap_or(any), sequential.unwrap_or(any)))
        };
        let (read_random, read_sequential) = side(0, "reads")?;
        let (write_random, write_sequential) = side(100, "writes")?;
        let mut model = CostModel {
            read_random,
            read_sequential,
            write_random,
            write_sequential,
            sharing: Sharing::ALL,
            held_out: Vec::new(),
            error: None,
            limits: Vec::new(),
        };
        let mixes: Vec<Maximum> =
            maxima.iter().filter(|max| (1..100).contains(&max.workload.write_percent)).copied().collect();
        model.sharing = model.choose_sharing(&mixes);
        model.held_out = held_out
            .iter()
            .map(|max| HeldOut {
                workload: max.workload,
                measured_iops: max.iops,
                predicted_iops: model.iops_max(&max.workload),
            })
            .collect();
        model.error = (!held_out.is_empty()).then(|| model.mean_error(held_out));
        // The error is known now, so the mixes that gave it can narrow the sharing.
        let is_mix = |max: &&Maximum| (1..100).contains(&max.workload.write_percent);
        let all_mixes: Vec<Maximum> = mixes.iter().chain(held_out.iter().filter(is_mix)).copied().collect();
        model.sharing = model.choose_sharing(&all_mixes);
        Ok(model)
    }

    /// The smallest sharing whose leave-one-out error on the mixes no larger one beats clearly.
    fn choose_sharing(&self, mixes: &[Maximum]) -> Sharing {
        let best_of = |candidates: &[Sharing], mixes: &[Maximum]| {
            let error = |sharing: &Sharing| CostModel { sharing: *sharing, ..self.clone() }.mean_error(mixes);
            let least = candidates.iter().map(error).fold(f64::INFINITY, f64::min);
            let as_good = candidates.iter().filter(|sharing| error(sharing) <= least + AS_GOOD);
            let most_shared =
                |a: &&Sharing, b: &&Sharing| (a.fixed + a.bytes).total_cmp(&(b.fixed + b.bytes));
            as_good.max_by(most_shared).copied().unwrap_or(Sharing::ALL)
        };
        let left_out_error = |candidates: &[Sharing]| {
            let errors = (0..mixes.len()).map(|at| {
                let mut others = mixes.to_vec();
                let left_out = others.remove(at);
                let sharing = if others.is_empty() { candidates[0] } else { best_of(candidates, &others) };
                CostModel { sharing, ..self.clone() }.mean_error(&[left_out])
            });
            errors.sum::<f64>() / mixes.len() as f64
        };
        if mixes.is_empty() {
            return Sharing::ALL;
        }
        let [smallest, larger @ ..] = Sharing::candidates();
        let mut chosen = smallest;
        let mut error = left_out_error(&chosen);
        for candidates in larger {
            let lower = left_out_error(&candidates);
            if lower < error - WORTH_A_RESOURCE {
                (chosen, error) = (candidates, lower);
            }
        }
        best_of(&chosen, mixes)
    }

    fn mean_error(&self, maxima: &[Maximum]) -> f64 {
        let error = |max: &Maximum| (self.iops_max(&max.workload) / max.iops - 1.0).abs();
        maxima.iter().map(error).sum::<f64>() / maxima.len() as f64
    }

    /// The demand of one I/O.
    pub fn demand(&self, side: Side, pattern: Pattern) -> Demand {
        match (side, pattern) {
            (Side::Read, Pattern::Random) => self.read_random,
            (Side::Read, Pattern::Sequential) => self.read_sequential,
            (Side::Write, Pattern::Random) => self.write_random,
            (Side::Write, Pattern::Sequential) => self.write_sequential,
        }
    }

    /// Share of the storage that these flows use together (utilisation law).
    pub fn utilisation(&self, flows: &[Flow]) -> Utilisation {
        let parts = |side: Option<Side>, sharing: Sharing| {
            flows.iter().filter(|flow| side.is_none_or(|side| side == flow.side)).fold(
                (0.0, 0.0),
                |(fixed, bytes), flow| {
                    let demand = self.demand(flow.side, flow.pattern);
                    let rate = flow.per_second / 1e9;
                    (
                        fixed + rate * sharing.fixed * demand.fixed_ns,
                        bytes + rate * sharing.bytes * demand.per_byte_ns * flow.bytes,
                    )
                },
            )
        };
        let resources = [
            (parts(None, self.sharing), Binding::Operations, Binding::Bandwidth),
            (parts(Some(Side::Read), Sharing::ALL), Binding::ReadOperations, Binding::ReadBandwidth),
            (parts(Some(Side::Write), Sharing::ALL), Binding::WriteOperations, Binding::WriteBandwidth),
        ];
        let utilisation = |((fixed, bytes), operations, bandwidth): ((f64, f64), Binding, Binding)| {
            Utilisation { value: fixed + bytes, binding: if fixed >= bytes { operations } else { bandwidth } }
        };
        let [shared, reads, writes] = resources.map(utilisation);
        // On a tie the shared resource is named: then there is no other one in the model.
        let larger = |a: Utilisation, b: Utilisation| if b.value > a.value * (1.0 + 1e-9) { b } else { a };
        let fitted = larger(larger(shared, reads), writes);
        self.limits.iter().map(|limit| limit.utilisation(flows)).fold(fitted, larger)
    }

    /// The highest rate (I/Os a second) the model predicts for a shape.
    pub fn iops_max(&self, shape: &Shape) -> f64 {
        let writes = f64::from(shape.write_percent) / 100.0;
        let flow = |side, per_second| Flow {
            side,
            pattern: shape.pattern,
            per_second,
            bytes: f64::from(shape.block_bytes),
        };
        let at_one = self.utilisation(&[flow(Side::Read, 1.0 - writes), flow(Side::Write, writes)]);
        1.0 / at_one.value
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Binding::Operations => "operations",
            Binding::Bandwidth => "bandwidth",
            Binding::ReadOperations => "read operations",
            Binding::ReadBandwidth => "read bandwidth",
            Binding::WriteOperations => "write operations",
            Binding::WriteBandwidth => "write bandwidth",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn max(shape: Shape, iops: f64) -> Maximum {
        Maximum { workload: shape, iops, iops_half_width: 0.01 * iops }
    }

    fn random(bytes: u32, writes: u8, iops: f64) -> Maximum {
        max(Shape::random_read(bytes).with_writes(writes), iops)
    }

    /// Figures measured with fio on the development disk, direct, 64 outstanding.
    fn development_disk() -> Vec<Maximum> {
        vec![
            random(4096, 0, 97_000.0),
            random(65536, 0, 20_900.0),
            random(4096, 100, 47_000.0),
            random(65536, 100, 29_200.0),
            random(4096, 70, 55_300.0),
            random(65536, 30, 33_100.0),
        ]
    }

    #[test]
    fn large_mixes_that_run_above_the_sum_get_bandwidths_of_their_own() {
        let model = CostModel::fit(&development_disk(), &[]).unwrap();
        assert!(model.sharing.bytes < 0.5, "{:?}", model.sharing);
        let plain = CostModel { sharing: Sharing::ALL, ..model.clone() };
        let mix = Shape::random_read(65536).with_writes(30);
        let error = |model: &CostModel| (model.iops_max(&mix) / 33_100.0 - 1.0).abs();
        assert!(error(&plain) > 0.25 && error(&model) < 0.15, "{} {}", error(&plain), error(&model));
        let reads = Flow { side: Side::Read, pattern: Pattern::Random, per_second: 20_000.0, bytes: 65536.0 };
        assert_eq!(model.utilisation(&[reads]).binding, Binding::ReadBandwidth);
    }

    #[test]
    fn a_device_whose_mixes_follow_the_sum_keeps_one_resource() {
        let sum = |writes: f64| 1.0 / ((1.0 - writes) / 100_000.0 + writes / 50_000.0);
        let maxima = [
            random(8192, 0, 100_000.0),
            random(8192, 100, 50_000.0),
            random(8192, 30, sum(0.3) * 1.01),
            random(8192, 70, sum(0.7) * 0.99),
        ];
        let model = CostModel::fit(&maxima, &[random(8192, 50, sum(0.5))]).unwrap();
        assert_eq!(model.sharing, Sharing::ALL);
        assert!(model.error.unwrap() < 0.001);
    }

    #[test]
    fn a_device_with_a_cap_for_each_direction_shares_no_operations() {
        // 3,000 reads and 3,000 writes a second: a mix of halves runs at 6,000.
        let maxima = [random(8192, 0, 3_000.0), random(8192, 100, 3_000.0), random(8192, 30, 4_290.0)];
        let held_out = [random(16_384, 50, 6_000.0), random(32_768, 0, 3_000.0)];
        let model = CostModel::fit(&maxima, &held_out).unwrap();
        let flow = |side, per_second| Flow { side, pattern: Pattern::Random, per_second, bytes: 8192.0 };
        let used = model.utilisation(&[flow(Side::Read, 2_900.0), flow(Side::Write, 2_900.0)]);
        assert!(used.value < 1.0, "{used:?} {:?}", model.sharing);
        // The error is that of the model which had not seen them.
        assert!(model.error.unwrap() > 0.1, "{:?}", model.error);
    }

    #[test]
    fn a_capped_device_costs_the_same_at_every_size() {
        let maxima = [random(8192, 0, 800.0), random(65536, 0, 800.0), random(8192, 100, 1_000.0)];
        let model = CostModel::fit(&maxima, &[]).unwrap();
        assert!(model.read_random.per_byte_ns < 1e-6);
        let reads = Flow { side: Side::Read, pattern: Pattern::Random, per_second: 400.0, bytes: 16384.0 };
        let used = model.utilisation(&[reads]);
        assert!((used.value - 0.5).abs() < 1e-6);
        assert_eq!(used.binding, Binding::Operations);
    }

    #[test]
    fn without_writes_there_is_no_model() {
        let error = CostModel::fit(&[random(8192, 0, 800.0)], &[]).unwrap_err();
        assert_eq!(error, ModelError::NothingMeasured("writes"));
    }

    proptest! {
        #[test]
        fn a_fit_gives_back_the_demand_it_was_made_from(
            fixed_ns in 0.0_f64..1e6,
            per_byte_ns in 0.001_f64..10.0,
        ) {
            let truth = Demand { fixed_ns, per_byte_ns };
            let points = [4096.0, 8192.0, 65536.0].map(|bytes| (bytes, truth.at_bytes(bytes), 0.01));
            let fitted = Demand::fit(&points).unwrap();
            for (bytes, demand, _) in points {
                prop_assert!((fitted.at_bytes(bytes) / demand - 1.0).abs() < 1e-3);
            }
        }

        #[test]
        fn twice_the_demand_is_twice_the_utilisation(rate in 1.0_f64..1e6, bytes in 512.0_f64..1e6) {
            let model = CostModel::fit(&development_disk(), &[]).unwrap();
            let flow = |per_second| Flow { side: Side::Write, pattern: Pattern::Random, per_second, bytes };
            let (once, twice) = (model.utilisation(&[flow(rate)]), model.utilisation(&[flow(2.0 * rate)]));
            prop_assert!((twice.value / once.value - 2.0).abs() < 1e-9);
        }
    }
}
