//! A capability from limits that somebody states, without any I/O.
//!
//! ```text
//! X(N) = min(N / R0, Xmax)     the asymptotes of a curve: R0 the stated latency, Xmax the smallest stated limit
//! U    = the largest of rate / limit, over the stated limits
//! ```

use crate::{
    Binding, Burst, Capability, Conditions, CostModel, Curve, Demand, Effort, Knee, KneeReason, Origin,
    Point, RateLimit, Sharing,
};
use workload::{Backend, Caching, Shape, TargetFacts};

/// Declared limits of a storage: rates a second, and times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declared {
    /// The limits.
    pub limits: Vec<RateLimit>,
    /// Time of a small I/O with nothing in its way.
    pub latency_ns: Option<f64>,
    /// Where the figures come from, for people.
    pub remarks: Vec<String>,
}

/// Figures that a declaration lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeclarationError {
    /// No limit of the I/Os of a direction.
    #[error("the most {0} a second are not declared")]
    NoOperations(&'static str),
    /// No latency.
    #[error("the latency is not declared")]
    NoLatency,
    /// A figure that is not above 0.
    #[error("a declared figure is not above 0")]
    NotPositive,
}

/// Sizes of the curves: pages, and what a scan or a backup reads at once.
const PAGE_BYTES: u32 = 8192;
const LARGE_BYTES: u32 = 524_288;
/// Sizes of log writes that a verdict asks for.
const LOG_BYTES: [u32; 2] = [4096, 61_440];
/// A curve ends at this multiple of its knee.
const BEYOND_KNEE: f64 = 4.0;
/// Most outstanding I/Os of a point.
const OUTSTANDING_MAX: u32 = 1 << 16;

impl Declared {
    /// Sets a limit; a second one of the same resource replaces the first.
    pub fn set(&mut self, of: Binding, per_second: f64) {
        self.limits.retain(|limit| limit.of != of);
        self.limits.push(RateLimit { of, per_second, burst: None });
    }

    /// Sets the rate that a limit allows for a limited time, beyond its own.
    pub fn set_burst(&mut self, of: Binding, burst: Burst) {
        let limit = self.limits.iter_mut().find(|limit| limit.of == of);
        limit.into_iter().for_each(|limit| limit.burst = Some(burst));
    }

    /// The capability of a target of which this is stated.
    ///
    /// # Errors
    /// Where a verdict would need a figure that is not stated.
    pub fn capability(
        &self,
        target: TargetFacts,
        declared_unix_ns: u64,
        headroom_version: &str,
    ) -> Result<Capability, DeclarationError> {
        let latency_ns = self.latency_ns.ok_or(DeclarationError::NoLatency)?;
        let limits_reads = |of| matches!(of, Binding::ReadOperations | Binding::Operations);
        let limits_writes = |of| matches!(of, Binding::WriteOperations | Binding::Operations);
        for (name, is_limited) in [("reads", limits_reads as fn(Binding) -> bool), ("writes", limits_writes)]
        {
            if !self.limits.iter().any(|limit| is_limited(limit.of)) {
                return Err(DeclarationError::NoOperations(name));
            }
        }
        let is_positive = |figure: f64| figure.is_finite() && figure > 0.0;
        if !is_positive(latency_ns) || !self.limits.iter().all(|limit| is_positive(limit.per_second)) {
            return Err(DeclarationError::NotPositive);
        }
        let model = self.cost_model();
        let mut curves: Vec<Curve> = [
            Shape::random_read(PAGE_BYTES),
            Shape::sequential_read(LARGE_BYTES),
            Shape::random_read(PAGE_BYTES).with_writes(30),
            Shape::random_write(PAGE_BYTES),
            Shape::sequential_write(LARGE_BYTES),
        ]
        .iter()
        .map(|shape| curve(*shape, latency_ns, model.iops_max(shape)))
        .collect();
        curves.extend(LOG_BYTES.map(|bytes| {
            let shape = Shape::log_write(bytes);
            Curve { workload: shape, points: vec![point(&shape, 1, latency_ns)], knee: None }
        }));
        Ok(Capability {
            target,
            measured_unix_ns: declared_unix_ns,
            conditions: Conditions {
                headroom_version: headroom_version.to_owned(),
                kernel: String::new(),
                backend: Backend::Foreign,
                caching: Caching::Direct,
                region_bytes: 0,
                foreign_iops: None,
                took_s: 0.0,
                effort: Effort::Default,
                remarks: self.remarks.clone(),
                target_changes: Vec::new(),
            },
            curves,
            cost_model: Some(model),
            origin: Origin::Declared,
        })
    }

    fn cost_model(&self) -> CostModel {
        let nothing = Demand { fixed_ns: 0.0, per_byte_ns: 0.0 };
        CostModel {
            read_random: nothing,
            read_sequential: nothing,
            write_random: nothing,
            write_sequential: nothing,
            sharing: Sharing::ALL,
            held_out: Vec::new(),
            error: None,
            limits: self.limits.clone(),
        }
    }
}

/// The curve of the two asymptotes, with points at powers of two up to some times its knee.
fn curve(workload: Shape, latency_ns: f64, iops_max: f64) -> Curve {
    let knee = iops_max * latency_ns / 1e9;
    let steps = (0..).map(|power| 1_u32 << power);
    let last = (knee * BEYOND_KNEE).clamp(4.0, f64::from(OUTSTANDING_MAX));
    let steps = steps.take_while(|outstanding| f64::from(*outstanding) < 2.0 * last);
    let points: Vec<Point> = steps
        .map(|outstanding| {
            let served_ns = f64::from(outstanding) * 1e9 / iops_max;
            point(&workload, outstanding, latency_ns.max(served_ns))
        })
        .collect();
    let full = points.iter().find(|point| point.iops >= 0.95 * iops_max);
    let outstanding_full = full.map_or(OUTSTANDING_MAX, |point| point.outstanding);
    let knee = Knee {
        outstanding: knee,
        iops: iops_max,
        low: knee,
        high: knee,
        iops_interval: (iops_max, iops_max),
        latency_ns_floor: latency_ns,
        outstanding_full,
        above_bounds: 0.0,
        reason: KneeReason::Cap,
        why: format!("declared: at most {iops_max:.0} I/Os a second, none of them measured"),
    };
    Curve { workload, points, knee: Some(knee) }
}

fn point(shape: &Shape, outstanding: u32, latency_ns: f64) -> Point {
    let iops = f64::from(outstanding) * 1e9 / latency_ns;
    Point {
        outstanding,
        iops,
        iops_half_width: 0.0,
        mib_per_s: iops * f64::from(shape.block_bytes) / f64::from(1 << 20),
        latency_ns,
        latency_ns_p50: latency_ns as u64,
        latency_ns_p99: None,
        latency_ns_max: latency_ns as u64,
        outstanding_measured: f64::from(outstanding),
        ios: 0,
        failed: 0,
        seconds: 0.0,
        steady: true,
        cpu_ns_per_io: 0.0,
        client_busy: 0.0,
        humps: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bound, Flow, ResourceName, Side};
    use workload::{Cap, CapKind, Pattern, TargetKind};

    fn facts() -> TargetFacts {
        TargetFacts {
            path: "/data".into(),
            kind: TargetKind::Directory,
            filesystem: None,
            mount: None,
            free_bytes: 0,
            devices: Vec::new(),
            direct_align_bytes: None,
            memory_align_bytes: 512,
            caps: Vec::new(),
        }
    }

    fn declared() -> Declared {
        let mut declared = Declared { latency_ns: Some(0.6e6), ..Declared::default() };
        declared.set(Binding::Operations, 16_000.0);
        declared.set(Binding::Bandwidth, 1e9);
        declared
    }

    fn flow(side: Side, per_second: f64, bytes: f64) -> Flow {
        Flow { side, pattern: Pattern::Random, per_second, bytes }
    }

    #[test]
    fn the_limit_that_is_used_most_is_the_utilisation() {
        let model = declared().capability(facts(), 1, "0").unwrap().cost_model.unwrap();
        let small =
            model.utilisation(&[flow(Side::Read, 4_000.0, 8192.0), flow(Side::Write, 4_000.0, 8192.0)]);
        assert_eq!((small.value, small.binding), (0.5, Binding::Operations));
        let large = model.utilisation(&[flow(Side::Read, 900.0, 1e6)]);
        assert_eq!((large.value, large.binding), (0.9, Binding::Bandwidth));
    }

    #[test]
    fn its_curves_are_the_asymptotes() {
        let capability = declared().capability(facts(), 1, "0").unwrap();
        let curve = capability.curve(&Shape::random_read(8192)).unwrap();
        assert_eq!(curve.latency_ns_at(1.0), Some(0.6e6));
        assert_eq!(curve.latency_ns_at(64.0), Some(4e6), "64 outstanding at 16,000 a second");
        let knee = curve.knee.as_ref().unwrap();
        assert!((knee.outstanding - 9.6).abs() < 1e-9, "{knee:?}");
        let resources = capability.resources();
        let value = |name| {
            let found = resources.iter().find(|one| one.name == name).unwrap();
            assert_eq!((found.from, found.bound), (Origin::Declared, Bound::Exact));
            found.value
        };
        assert_eq!(value(ResourceName::ReadOperations).round(), 16_000.0);
        assert_eq!(value(ResourceName::WriteBandwidth).round(), 1e9);
        assert_eq!(value(ResourceName::ReadLatency), 0.6e6);
    }

    #[test]
    fn a_cap_that_was_there_at_a_measurement_is_exact_and_what_was_declared_stays() {
        let cap =
            |kind, per_second| Cap { kind, per_second, device: "7:0".into(), origin: "/g/io.max".into() };
        let caps = vec![cap(CapKind::ReadIops, 3_000), cap(CapKind::WriteBytes, 40_000_000)];
        let mut capability = declared().capability(TargetFacts { caps, ..facts() }, 1, "0").unwrap();
        let values = |capability: &Capability| {
            let resources = capability.resources();
            let value = |name| resources.iter().find(|one| one.name == name).unwrap().value.round();
            [
                value(ResourceName::ReadOperations),
                value(ResourceName::WriteOperations),
                value(ResourceName::WriteBandwidth),
            ]
        };
        assert_eq!(values(&capability), [16_000.0, 16_000.0, 1e9]);
        capability.origin = Origin::Measured;
        // Writes of 8 KiB: bytes run out first.
        assert_eq!(values(&capability), [3_000.0, 4_883.0, 40_000_000.0]);
    }

    #[test]
    fn what_a_verdict_needs_must_be_declared() {
        let mut lacking = Declared::default();
        let error = |declared: &Declared| declared.capability(facts(), 1, "0").unwrap_err();
        assert_eq!(error(&lacking), DeclarationError::NoLatency);
        lacking.latency_ns = Some(1e6);
        assert_eq!(error(&lacking), DeclarationError::NoOperations("reads"));
        lacking.set(Binding::ReadOperations, 100.0);
        assert_eq!(error(&lacking), DeclarationError::NoOperations("writes"));
        lacking.set(Binding::WriteOperations, 0.0);
        assert_eq!(error(&lacking), DeclarationError::NotPositive);
    }
}
