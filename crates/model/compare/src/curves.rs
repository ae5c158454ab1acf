//! Two capabilities, curve by curve: the plateau of each (its knee's throughput) decides, the points at the
//! same number of outstanding I/Os describe.

use crate::comparison::{Candidate, Comparison, Method, Rules};
use crate::evidence::Evidence;
use crate::figure::{Figure, FigureUnit, Measure, Operations};
use crate::stated::Stated;
use crate::{comparable, words};
use capability::{Capability, Curve, KneeReason, Point};
use statistics::student;

/// Compares capability B with A.
pub fn capabilities(name_a: &str, a: &Capability, name_b: &str, b: &Capability, rules: &Rules) -> Comparison {
    let mut doubts = vec![
        "one measurement each: the noise is that within it; what changes from day to day is not in it".into(),
    ];
    let mut candidates = Vec::new();
    for curve_a in &a.curves {
        let Some(curve_b) = b.curve(&curve_a.workload) else {
            doubts.push(format!("{} was measured only in {name_a}", words::shape(&curve_a.workload)));
            continue;
        };
        of_curve(curve_a, curve_b, rules, &mut candidates);
    }
    for curve in b.curves.iter().filter(|curve| a.curve(&curve.workload).is_none()) {
        doubts.push(format!("{} was measured only in {name_b}", words::shape(&curve.workload)));
    }
    for (name, capability) in [(name_a, a), (name_b, b)] {
        doubts.extend(capability.conditions.remarks.iter().map(|remark| format!("{name}: {remark}")));
    }
    words::with_summary(Comparison {
        mismatches: comparable::capabilities(a, b),
        doubts,
        ..Comparison::judge((name_a, 1), (name_b, 1), Method::Curves, &candidates, rules)
    })
}

/// Compares what a capability shows at best (B) with stated figures (A): IOPS and throughput are the
/// highest of all its curves, the mean latency is the lowest.
pub fn stated_capability(
    stated: &[Stated],
    name: &str,
    capability: &Capability,
    rules: &Rules,
) -> Comparison {
    let candidates: Vec<Candidate> = stated.iter().map(|stated| best(stated, capability, rules)).collect();
    let doubts = vec!["the best point of any curve is compared with what is stated".into()];
    words::with_summary(Comparison {
        doubts,
        ..Comparison::judge(("stated", 0), (name, 1), Method::Curves, &candidates, rules)
    })
}

/// A value and half the width of its 95 % interval.
type Known = (f64, f64);

fn of_curve(a: &Curve, b: &Curve, rules: &Rules, into: &mut Vec<Candidate>) {
    let subject = Some(words::shape(&a.workload));
    let mut push = |candidate| into.push(Candidate { subject: subject.clone(), ..candidate });
    let compared = |measure, figure, [a, b]: [Result<Known, String>; 2], noise| Candidate {
        a: value(&a),
        b: value(&b),
        evidence: a.and_then(|a| given(a, b?, noise)),
        ..Candidate::new(measure, figure, rules)
    };
    let name = if a.knee.is_some() && b.knee.is_some() { "IOPS on the plateau" } else { "IOPS" };
    let noise = noise_of_points(a, b);
    // A plateau rests on two points at least.
    let plateau = compared(Measure::Iops, name.into(), [a, b].map(top), noise / std::f64::consts::SQRT_2);
    push(Candidate { headline: true, ..plateau });
    for (point_a, point_b) in same_outstanding(a, b) {
        let (at, both) = (format!("at N={}", point_a.outstanding), [point_a, point_b]);
        let iops = |point: &Point| known(point.iops, point.iops_half_width);
        push(compared(Measure::Iops, format!("IOPS {at}"), both.map(iops), noise));
        // With N outstanding latency is N / X: it is known as surely as the throughput.
        let mean = |point: &Point| {
            known(
                point.latency_ns,
                point.iops_half_width / point.iops.max(f64::MIN_POSITIVE) * point.latency_ns,
            )
        };
        push(compared(Measure::Mean, format!("mean {at}"), both.map(mean), noise));
        let p99 = |point: &Point| {
            point.latency_ns_p99.map(|ns| ns as f64).ok_or_else(|| "too few I/Os behind it".to_owned())
        };
        push(Candidate {
            a: p99(point_a),
            b: p99(point_b),
            evidence: Err("a point keeps no interval of it".to_owned()),
            ..Candidate::new(Measure::P99, format!("p99 {at}"), rules)
        });
    }
    if let (Some(knee_a), Some(knee_b)) = (&a.knee, &b.knee) {
        let reached = |knee: &capability::Knee| {
            if knee.reason == KneeReason::NotReached {
                return Err("the knee was not reached".to_owned());
            }
            known(knee.outstanding, (knee.high - knee.low) / 2.0)
        };
        let knees = compared(Measure::Iops, "knee".into(), [knee_a, knee_b].map(reached), noise);
        push(Candidate { unit: FigureUnit::Outstanding, margin: None, ..knees });
    }
}

/// The plateau of a curve, or its best point where it has no knee.
fn top(curve: &Curve) -> Result<Known, String> {
    if let Some(knee) = &curve.knee {
        let (low, high) = knee.iops_interval;
        return known(knee.iops, (high - low) / 2.0);
    }
    let best = curve.points.iter().max_by(|a, b| a.iops.total_cmp(&b.iops));
    best.map_or_else(
        || Err("the curve has no points".into()),
        |point| known(point.iops, point.iops_half_width),
    )
}

fn best(stated: &Stated, capability: &Capability, rules: &Rules) -> Candidate {
    let Stated { figure, value: stated } = *stated;
    let points = || {
        let all =
            capability.curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
        all.filter(move |(curve, _)| match figure.operations {
            Operations::Reads => curve.workload.write_percent == 0,
            Operations::Writes => curve.workload.write_percent == 100,
            _ => true,
        })
    };
    let relative = |point: &Point| point.iops_half_width / point.iops.max(f64::MIN_POSITIVE);
    let found = match figure.measure {
        Measure::Iops => points().max_by(|a, b| a.1.iops.total_cmp(&b.1.iops)),
        Measure::Throughput => points().max_by(|a, b| a.1.mib_per_s.total_cmp(&b.1.mib_per_s)),
        Measure::Mean => points().min_by(|a, b| a.1.latency_ns.total_cmp(&b.1.latency_ns)),
        _ => None,
    };
    let shown = found.map(|(curve, point)| {
        let value = match figure.measure {
            Measure::Iops => point.iops,
            Measure::Throughput => point.mib_per_s,
            _ => point.latency_ns,
        };
        (words::shape(&curve.workload), known(value, relative(point) * value))
    });
    let (subject, measured) = shown.map_or_else(
        || (None, Err(format!("a capability has no {figure}: compare a run of that workload"))),
        |(shape, known)| (Some(shape), known),
    );
    let evidence = measured.clone().and_then(|measured| given((stated, 0.0), measured, 0.0));
    Candidate {
        subject,
        headline: true,
        a: Ok(stated),
        b: value(&measured),
        evidence,
        ..Candidate::new(figure.measure, Figure { operations: Operations::All, ..figure }.to_string(), rules)
    }
}

fn same_outstanding<'a>(a: &'a Curve, b: &'a Curve) -> impl Iterator<Item = (&'a Point, &'a Point)> {
    let partner = |point: &Point| b.points.iter().find(|other| other.outstanding == point.outstanding);
    a.points.iter().filter_map(move |point| Some((point, partner(point)?)))
}

fn known(value: f64, half_width: f64) -> Result<Known, String> {
    if !(value.is_finite() && value > 0.0) {
        return Err("nothing was measured".into());
    }
    if !(half_width.is_finite() && half_width >= 0.0) {
        return Err("its interval is not known".into());
    }
    Ok((value, half_width))
}

fn value(of: &Result<Known, String>) -> Result<f64, String> {
    of.clone().map(|(value, _)| value)
}

fn given(a: Known, b: Known, half_width_min: f64) -> Result<Evidence, String> {
    let half_width = (a.1 / a.0).hypot(b.1 / b.0).max(half_width_min);
    Ok(Evidence::Given { ln_ratio: (b.0 / a.0).ln(), half_width })
}

/// Half the width of the 95 % interval of a point's ratio, as the ratios of neighbouring points differ: what one
/// second of a point does not show of the noise, the next point does. By successive differences (von
/// Neumann 1941), so that a difference of the whole curve, or of one end of it, is no noise. 0 where too few
/// points are common.
fn noise_of_points(a: &Curve, b: &Curve) -> f64 {
    let ratios: Vec<f64> = same_outstanding(a, b)
        .map(|(a, b)| (b.iops / a.iops).ln())
        .filter(|ratio| ratio.is_finite())
        .collect();
    if ratios.len() < POINTS_MIN {
        return 0.0;
    }
    let steps = (ratios.len() - 1) as f64;
    let squares: f64 = ratios.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    student::quantile(0.95, steps) * (squares / (2.0 * steps)).sqrt()
}

/// Fewer common points do not show their noise.
const POINTS_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use capability::{Conditions, Effort};
    use workload::{Backend, Caching, Shape, TargetFacts, TargetKind};

    fn capability(iops: f64) -> Capability {
        let point = |outstanding: u32, iops: f64| Point {
            outstanding,
            iops,
            iops_half_width: 0.01 * iops,
            mib_per_s: iops / 128.0,
            latency_ns: f64::from(outstanding) / iops * 1e9,
            latency_ns_p50: 0,
            latency_ns_p99: None,
            latency_ns_max: 0,
            outstanding_measured: f64::from(outstanding),
            ios: 1000,
            failed: 0,
            seconds: 1.0,
            steady: true,
            cpu_ns_per_io: 0.0,
            client_busy: 0.0,
            humps: None,
        };
        Capability {
            target: TargetFacts {
                path: "/data".into(),
                kind: TargetKind::Directory,
                filesystem: None,
                mount: None,
                free_bytes: 0,
                devices: Vec::new(),
                direct_align_bytes: None,
                memory_align_bytes: 512,
                caps: Vec::new(),
            },
            measured_unix_ns: 1,
            conditions: Conditions {
                headroom_version: "0".into(),
                kernel: "6".into(),
                backend: Backend::IoUring,
                caching: Caching::Direct,
                region_bytes: 1 << 30,
                foreign_iops: None,
                took_s: 1.0,
                effort: Effort::Quick,
                remarks: Vec::new(),
                target_changes: Vec::new(),
            },
            curves: vec![Curve {
                workload: Shape::random_read(8192),
                points: vec![point(1, iops / 10.0), point(64, iops)],
                knee: None,
            }],
            cost_model: None,
            origin: capability::Origin::Measured,
        }
    }

    #[test]
    fn a_slower_plateau_is_found_curve_by_curve() {
        let found = capabilities(
            "capability 1",
            &capability(10_000.0),
            "capability 2",
            &capability(8_000.0),
            &Rules::default(),
        );
        assert_eq!(found.verdict, Verdict::Slower);
        assert_eq!(
            found.summary,
            "random 8 KiB reads: 20 % fewer IOPS than capability 1, beyond noise (95 %: 19 to 21 % fewer)"
        );
        let at_64: Vec<_> = found.rows.iter().filter(|row| row.figure.ends_with("at N=64")).collect();
        assert_eq!(at_64.len(), 3);
        let same = capabilities("a", &capability(10_000.0), "b", &capability(10_010.0), &Rules::default());
        assert_eq!(same.verdict, Verdict::NoDifference);
    }

    #[test]
    fn what_wavers_from_point_to_point_is_noise() {
        let with = |iops: [f64; 6]| {
            let mut capability = capability(10_000.0);
            let point = capability.curves[0].points[1].clone();
            let points = iops.iter().zip([1, 2, 4, 8, 16, 32]);
            capability.curves[0].points = points
                .map(|(iops, outstanding)| Point { outstanding, iops: *iops, ..point.clone() })
                .collect();
            capability
        };
        let a = with([1e3, 2e3, 4e3, 8e3, 10e3, 10e3]);
        let wavers = with([1.3e3, 1.6e3, 5e3, 6.8e3, 11.5e3, 9e3]);
        let found = |b| capabilities("a", &a, "b", &b, &Rules::default());
        assert_eq!(found(wavers).verdict, Verdict::CannotTell);
        let capped = with([1e3, 2e3, 4e3, 8e3, 8e3, 8e3]);
        assert_eq!(found(capped).verdict, Verdict::Slower);
    }

    #[test]
    fn a_stated_figure_is_held_against_the_best_point() {
        let stated = |text| {
            stated_capability(
                &Stated::parse(text).unwrap(),
                "capability 1",
                &capability(8_000.0),
                &Rules::default(),
            )
        };
        assert_eq!(stated("iops=10000").verdict, Verdict::Slower);
        assert_eq!(stated("iops=6000").verdict, Verdict::Faster);
        let p99 = stated("p99 1ms");
        assert_eq!(p99.verdict, Verdict::CannotTell);
        assert!(p99.summary.contains("compare a run of that workload"), "{}", p99.summary);
    }
}
