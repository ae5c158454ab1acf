//! Whether two results may be compared at all: each condition in which they differ, by name.

use crate::comparison::{Method, Mismatch, Side};
use capability::Capability;
use workload::{Arrival, Caching, Distribution, Durability, RunResult, Workload, format_bytes};

/// The conditions whose text differs between A and B.
fn differing<T>(a: &T, b: &T, conditions: &dyn Fn(&T) -> Vec<(&'static str, String)>) -> Vec<Mismatch> {
    let both = conditions(a).into_iter().zip(conditions(b));
    both.filter(|((_, a), (_, b))| a != b)
        .map(|((what, a), (_, b))| Mismatch { what: what.into(), a, b })
        .collect()
}

/// Conditions in which the runs of B are not like those of A, or those of one side not like each other.
pub(crate) fn runs(a: &[RunResult], b: &[RunResult]) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    if let (Some(a), Some(b)) = (a.first(), b.first()) {
        mismatches = differing(a, b, &run_conditions);
    }
    for (name, side) in [("A", a), ("B", b)] {
        let Some((first, others)) = side.split_first() else { continue };
        for other in others {
            for mismatch in differing(first, other, &run_conditions) {
                let what = format!("{} among the runs of {name}", mismatch.what);
                if !mismatches.iter().any(|known| known.what == what) {
                    mismatches.push(Mismatch { what, ..mismatch });
                }
            }
        }
    }
    mismatches
}

fn run_conditions(run: &RunResult) -> Vec<(&'static str, String)> {
    let mut conditions = workload_conditions(&run.workload);
    if run.settings_unreported {
        // Both follow from the counts.
        let is_counted = |what: &str| matches!(what, "block size" | "share of writes");
        let unknown = conditions.iter_mut().filter(|(what, _)| !is_counted(what));
        unknown.for_each(|(_, value)| *value = "not reported".into());
    }
    conditions.extend([
        ("target", run.target.clone()),
        ("size of the target", size(run.target_bytes)),
        ("backend", name(&run.backend)),
        ("tool", run.tool.clone().unwrap_or_else(|| "headroom".into())),
    ]);
    conditions
}

fn workload_conditions(workload: &Workload) -> Vec<(&'static str, String)> {
    let mut conditions = shape_conditions(workload).to_vec();
    conditions.extend(load_conditions(workload));
    conditions.extend(access_conditions(workload));
    conditions
}

fn shape_conditions(workload: &Workload) -> [(&'static str, String); 5] {
    let shape = &workload.shape;
    let caching = match shape.caching {
        Caching::Direct => "direct",
        Caching::Buffered => "through the page cache",
        Caching::Mapped => "mapped",
    };
    let durability = match shape.durability {
        Durability::Cached => "as the storage says",
        Durability::WriteThrough => "write-through",
        Durability::Synced => "synced",
    };
    let sizes = match workload.sizes.as_slice() {
        [] => format_bytes(u64::from(shape.block_bytes)),
        mix => mix
            .iter()
            .map(|size| format!("{} {} %", format_bytes(u64::from(size.block_bytes)), size.percent))
            .collect::<Vec<_>>()
            .join(", "),
    };
    [
        ("block size", sizes),
        ("pattern", shape.pattern.to_string()),
        ("share of writes", format!("{} %", shape.write_percent)),
        ("caching", caching.into()),
        ("durability of writes", durability.into()),
    ]
}

fn load_conditions(workload: &Workload) -> [(&'static str, String); 6] {
    let arrival = match workload.arrival {
        Arrival::Closed => "closed loop".into(),
        Arrival::Constant { iops } => format!("{iops} a second, even"),
        Arrival::Poisson { iops } => format!("{iops} a second, Poisson"),
        Arrival::Recorded { speed } => format!("recorded, {speed} x"),
    };
    let limit = [
        workload.limit.iops.map(|iops| format!("{iops} IOPS")),
        workload.limit.bytes_per_s.map(|bytes| format!("{} a second", size(bytes as u64))),
    ];
    let limit: Vec<String> = limit.into_iter().flatten().collect();
    let burst =
        workload.burst.map_or("none".into(), |burst| format!("{} I/Os, then {:?}", burst.ios, burst.pause));
    let sync = workload.sync.map_or("none".into(), |sync| format!("every {} writes", sync.writes));
    [
        ("outstanding I/Os a thread", workload.outstanding.to_string()),
        ("threads", workload.threads.to_string()),
        ("arrival", arrival),
        ("limit", if limit.is_empty() { "none".into() } else { limit.join(", ") }),
        ("bursts", burst),
        ("syncs", sync),
    ]
}

fn access_conditions(workload: &Workload) -> [(&'static str, String); 5] {
    let access = &workload.access;
    let distribution = match &access.distribution {
        Distribution::Uniform => "uniform".into(),
        other => name(other),
    };
    let length = access.length_bytes.map_or("the end".into(), |bytes| format!("+ {}", size(bytes)));
    let order = format!(
        "{}{}{}{}",
        access.align_bytes.map_or(String::new(), |bytes| format!("aligned to {} ", size(bytes))),
        access.stride_bytes.map_or(String::new(), |bytes| format!("stride {} ", size(bytes))),
        access.random_percent.map_or(String::new(), |percent| format!("{percent} % random ")),
        name(&access.walk)
    );
    [
        ("distribution", distribution),
        ("part of the target", format!("{} to {length}", format_bytes(access.base_bytes))),
        ("order", order),
        ("content", name(&workload.content)),
        ("verification", workload.verify.map_or("none".into(), |verify| name(&verify))),
    ]
}

/// Conditions in which capability B was not measured like A.
pub(crate) fn capabilities(a: &Capability, b: &Capability) -> Vec<Mismatch> {
    differing(a, b, &|capability: &Capability| {
        let conditions = &capability.conditions;
        let device = capability.target.devices.first();
        vec![
            ("target", capability.target.path.clone()),
            ("device", device.map_or("not known".into(), |device| device.name.clone())),
            ("caching", name(&conditions.caching)),
            ("backend", name(&conditions.backend)),
            ("size of the target", size(conditions.region_bytes)),
            ("effort", conditions.effort.to_string()),
            ("kernel", conditions.kernel.clone()),
            ("version of Headroom", conditions.headroom_version.clone()),
        ]
    })
}

/// Further doubts that the reader must know.
pub(crate) fn doubts(a: Side<'_>, b: Side<'_>, method: Method) -> Vec<String> {
    let mut doubts = Vec::new();
    if method == Method::WithinRuns {
        doubts.push(
            "one run each: the noise is that within the runs; what changes from run to run is not in it \
             (repeat the runs, or use --interleave)"
                .into(),
        );
    }
    for (name, side) in [(a.name, a.runs), (b.name, b.runs)] {
        let interrupted = side.iter().filter(|run| run.interrupted).count();
        if interrupted > 0 {
            doubts.push(format!("{name}: {interrupted} of {} runs were ended early", side.len()));
        }
        let failed: u64 = side.iter().map(RunResult::failed).fold(0, u64::saturating_add);
        if failed > 0 {
            doubts.push(format!("{name}: {failed} I/Os failed, and are in no figure"));
        }
        if side.iter().any(|run| run.thread_busy_max() > THREAD_FULL) {
            doubts.push(format!("{name}: a load thread used all of its core, so the storage may give more"));
        }
    }
    doubts
}

/// A load thread above this share of its core had nothing left of it: beyond what makes a run
/// [CPU-bound](capability::THREAD_BUSY_MIN).
const THREAD_FULL: f64 = 0.95;

fn size(bytes: u64) -> String {
    if bytes == 0 { "not known".into() } else { format_bytes(bytes) }
}

/// The name of a variant in words: "IoUring" is "io uring".
fn name(value: &impl std::fmt::Debug) -> String {
    let mut words = String::new();
    for c in format!("{value:?}").chars() {
        if c.is_ascii_uppercase() && words.ends_with(|c: char| c.is_ascii_lowercase()) {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{Backend, Shape};

    #[test]
    fn each_condition_that_differs_is_named() {
        let a = RunResult::empty(Workload::from(Shape::random_read(8192)), "/data".into());
        let mut b =
            RunResult::empty(Workload::from(Shape::random_write(4096)).with_outstanding(8), "/old".into());
        b.backend = Backend::Foreign;
        b.tool = Some("fio-3.33".into());
        let found = runs(std::slice::from_ref(&a), std::slice::from_ref(&b));
        let named: Vec<&str> = found.iter().map(|mismatch| mismatch.what.as_str()).collect();
        assert_eq!(
            named,
            ["block size", "share of writes", "outstanding I/Os a thread", "target", "backend", "tool"]
        );
        assert_eq!((found[0].a.as_str(), found[0].b.as_str()), ("8 KiB", "4 KiB"));
        assert_eq!(runs(std::slice::from_ref(&a), std::slice::from_ref(&a)), []);
        let mixed = runs(&[a.clone(), b], &[a]);
        assert_eq!(mixed[0].what, "block size among the runs of A");
    }
}
