//! The progress as a capability.

use crate::progress::{CurveEnd, Progress, ShapeProgress};
use capability::{Capability, Conditions, Curve, Effort, Origin, find_knee};
use measure::knee_context;
use workload::{Backend, Caching, Shape, TargetFacts};

/// Facts that the conditions of a capability need besides the measured ones.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    /// The facts of the storage.
    pub facts: &'a TargetFacts,
    /// How I/Os were handed over.
    pub backend: Backend,
    /// Bytes of the files that were read.
    pub region_bytes: u64,
    /// How exactly.
    pub effort: Effort,
    /// Now, nanoseconds since 1970.
    pub now_unix_ns: u64,
    /// Kernel release.
    pub kernel: String,
}

const KIB: u32 = 1024;

/// The kinds of reads of an effort.
pub fn shapes(effort: Effort) -> Vec<Shape> {
    let (small, large) = (Shape::random_read(8 * KIB), Shape::sequential_read(512 * KIB));
    match effort {
        Effort::Quick | Effort::Preliminary => vec![small, large],
        Effort::Default => vec![small, Shape::random_read(64 * KIB), large],
        Effort::Thorough => {
            vec![small, Shape::random_read(64 * KIB), Shape::sequential_read(64 * KIB), large]
        }
    }
}

/// The capability that the progress shows; `None` before the first point.
pub fn capability(progress: &Progress, measured: &Measured<'_>) -> Option<Capability> {
    let limits = knee_context(measured.facts);
    let curve = |shape: &ShapeProgress| {
        let points = shape.points();
        let knee = find_knee(&shape.shape, &points, &limits);
        (!points.is_empty()).then_some(Curve { workload: shape.shape, points, knee })
    };
    let curves: Vec<Curve> = progress.shapes.iter().filter_map(curve).collect();
    if curves.is_empty() {
        return None;
    }
    let steps = || progress.shapes.iter().flat_map(|shape| &shape.steps);
    let seconds: f64 = steps().map(|step| step.seconds).sum();
    let others: f64 = steps().map(|step| step.others_ios).sum();
    Some(Capability {
        target: measured.facts.clone(),
        measured_unix_ns: measured.now_unix_ns,
        conditions: Conditions {
            headroom_version: env!("CARGO_PKG_VERSION").into(),
            kernel: measured.kernel.clone(),
            backend: measured.backend,
            caching: Caching::Direct,
            region_bytes: measured.region_bytes,
            foreign_iops: Some(others / seconds.max(f64::MIN_POSITIVE)),
            took_s: progress.elapsed_s,
            effort: measured.effort,
            remarks: remarks(progress),
            target_changes: Vec::new(),
        },
        curves,
        cost_model: None,
        origin: Origin::Gentle,
    })
}

fn remarks(progress: &Progress) -> Vec<String> {
    let share = |seconds: f64| seconds / progress.elapsed_s.max(f64::MIN_POSITIVE) * 100.0;
    let mut remarks = vec![format!(
        "measured gently beside what others did: reads in flight for {:.1} % of the time, others' I/O maybe slower for {:.2} %",
        share(progress.loaded_s),
        share(progress.disturbed_s)
    )];
    remarks.push("writes were not measured: their side is what the storage is seen to give".into());
    for shape in &progress.shapes {
        let why = match shape.ended {
            None => "it is not measured to its end yet",
            Some(CurveEnd::Guard) => "more outstanding would take latency over the guard",
            Some(CurveEnd::Rate) => "more would be over the permitted rate",
            Some(CurveEnd::Flat | CurveEnd::Outstanding) => continue,
        };
        remarks.push(format!("{}: {why}", shape.shape));
    }
    remarks
}
