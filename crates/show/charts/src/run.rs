//! Runs with their names, as charts and pages show them.

use crate::factor::{Factor, Level};
use crate::number;
use crate::words::capitalised;
use std::borrow::Cow;
use std::collections::BTreeSet;
use workload::{PhaseResult, RunResult};

/// A result with names that distinguish it from others.
#[derive(Clone, Debug)]
pub struct NamedRun<'a> {
    /// The result.
    pub result: Cow<'a, RunResult>,
    /// Distinguishes results of the same workload: "run 12"; may be empty.
    pub name: String,
    /// Its side of a comparison: "before", "after". Results of two groups never share a line; may be empty.
    pub group: String,
}

impl<'a> NamedRun<'a> {
    /// Results of one group, named by their workloads.
    pub fn all(results: &'a [RunResult]) -> Vec<NamedRun<'a>> {
        NamedRun::group("", results)
    }

    /// Results of a group.
    pub fn group(group: &str, results: &'a [RunResult]) -> Vec<NamedRun<'a>> {
        let named = |result: &'a RunResult| NamedRun {
            result: Cow::Borrowed(result),
            name: result.workload.name.clone(),
            group: group.into(),
        };
        results.iter().map(named).collect()
    }

    /// All results of a run's phases; each is named after its phase and its workload.
    pub fn phases(phases: &'a [PhaseResult]) -> Vec<NamedRun<'a>> {
        let of_phase = |phase: &'a PhaseResult| {
            phase.results.iter().map(|result| {
                let names = [phase.name.as_str(), result.workload.name.as_str()];
                let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
                NamedRun { result: Cow::Borrowed(result), name: names.join(": "), group: String::new() }
            })
        };
        phases.iter().flat_map(of_phase).collect()
    }
}

/// The different levels of a factor in runs, sorted.
pub(crate) fn levels(factor: Factor, runs: &[NamedRun]) -> Vec<Level> {
    let levels: BTreeSet<Level> = runs.iter().map(|run| factor.level(&run.result)).collect();
    levels.into_iter().collect()
}

/// Short names of runs: their differences, and no more.
pub fn labels(runs: &[NamedRun]) -> Vec<String> {
    let differ = |of: &dyn Fn(&NamedRun) -> String| {
        let first = runs.first().map(of);
        runs.iter().any(|run| Some(of(run)) != first)
    };
    let mut labels: Vec<Vec<String>> = vec![Vec::new(); runs.len()];
    let mut add = |of: &dyn Fn(&NamedRun) -> String| {
        if differ(of) {
            let each = labels.iter_mut().zip(runs);
            each.for_each(|(label, run)| label.extend(Some(of(run)).filter(|part| !part.is_empty())));
        }
    };
    add(&|run| run.group.clone());
    add(&|run| run.name.clone());
    for factor in Factor::ALL {
        add(&|run| factor.level(&run.result).name);
    }
    add(&|run| factor_rest(&run.result));
    let mut labels: Vec<String> = labels.into_iter().map(|parts| parts.join(", ")).collect();
    for at in 0..labels.len() {
        if labels.len() > 1 && (labels[at].is_empty() || labels[..at].contains(&labels[at])) {
            let text = [labels[at].as_str(), &format!("no. {}", at + 1)].join(" ");
            labels[at] = text.trim().to_owned();
        }
    }
    labels
}

/// A workload except for its factors: durability, caching, rates. Empty for a plain one.
pub(crate) fn factor_rest(result: &RunResult) -> String {
    use workload::{Arrival, Caching, Durability};
    let workload = &result.workload;
    let mut words = Vec::new();
    match workload.shape.durability {
        Durability::Cached => {}
        Durability::WriteThrough => words.push("write-through".to_owned()),
        Durability::Synced => words.push("synced".to_owned()),
    }
    match workload.shape.caching {
        Caching::Direct => {}
        Caching::Buffered => words.push("buffered".to_owned()),
        Caching::Mapped => words.push("mapped".to_owned()),
    }
    match workload.arrival {
        Arrival::Closed => {}
        Arrival::Constant { iops } => words.push(format!("{} IOPS requested", number::rate(iops))),
        Arrival::Poisson { iops } => words.push(format!("{} IOPS requested (Poisson)", number::rate(iops))),
        Arrival::Recorded { speed } => words.push(format!("trace at {}", number::times(speed))),
    }
    if let Some(iops) = workload.limit.iops {
        words.push(format!("at most {} IOPS", number::rate(iops)));
    }
    if let Some(bytes) = workload.limit.bytes_per_s {
        words.push(format!("at most {}/s", number::bytes(bytes)));
    }
    words.extend(result.tool.clone());
    words.join(" ")
}

/// A workload in short: "random read 8 KiB, 8 x 2 outstanding".
pub fn workload_words(result: &RunResult) -> String {
    let workload = &result.workload;
    let outstanding = if result.settings_unreported {
        "outstanding unknown".to_owned()
    } else if workload.is_open_loop() {
        factor_rest(result)
    } else {
        format!("{} x {} outstanding", workload.outstanding, workload.threads)
    };
    format!("{}, {outstanding}", result.shape_words())
}

/// The configuration of runs as a heading: their common factors, and those in which they differ. "Random read
/// 8 KiB, 8 x 2 outstanding", "Random read 8 KiB by outstanding I/Os and threads".
pub fn title(runs: &[NamedRun]) -> String {
    let Some(first) = runs.first() else { return "No runs".into() };
    let same = |words: &dyn Fn(&RunResult) -> String| {
        runs.iter().all(|run| words(&run.result) == words(&first.result))
    };
    if same(&workload_words) && levels(Factor::Target, runs).len() == 1 {
        return capitalised(&workload_words(&first.result));
    }
    let common = if same(&RunResult::shape_words) {
        first.result.shape_words()
    } else {
        let fixed = |factor: Factor| levels(factor, runs).len() == 1;
        let operations = match first.result.workload.shape.write_percent {
            _ if !fixed(Factor::WriteShare) => "I/Os".to_owned(),
            0 => "read".into(),
            100 => "write".into(),
            writes => format!("{}/{writes}", 100_u8.saturating_sub(writes)),
        };
        let name = |factor: Factor| Some(factor.level(&first.result).name).filter(|_| fixed(factor));
        let words = [name(Factor::Pattern), Some(operations), name(Factor::BlockSize)];
        words.into_iter().flatten().collect::<Vec<String>>().join(" ")
    };
    let varied = Factor::ALL.into_iter().filter(|factor| levels(*factor, runs).len() > 1);
    let varied: Vec<&str> = varied.map(Factor::title).collect();
    let by = match varied.split_last() {
        None => String::new(),
        Some((last, [])) => format!(" by {last}"),
        Some((last, others)) => format!(" by {} and {last}", others.join(", ")),
    };
    capitalised(&common) + &by
}

/// A file records the settings of at most this many runs.
const SETTINGS_MAX: usize = 200;

/// The settings of the shown runs that a file records.
pub(crate) fn settings(runs: &[NamedRun]) -> Vec<(String, String)> {
    let mut settings: Vec<(String, String)> = runs
        .iter()
        .take(SETTINGS_MAX)
        .enumerate()
        .map(|(at, run)| {
            let result = &run.result;
            let names = [run.group.as_str(), run.name.as_str()].map(|name| name.replace('\0', " "));
            let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
            let workload = serde_json::to_string(&result.workload).unwrap_or_default();
            let value = format!(
                "{}; {} on {}; {} measured from {}; {} IOPS; workload {workload}",
                names.join(", "),
                workload_words(result),
                result.target,
                number::duration(result.elapsed_s()),
                number::instant(result.started_unix_ns),
                number::rate(result.iops()),
            );
            (format!("run {}", at + 1), value.trim_start_matches("; ").to_owned())
        })
        .collect();
    if runs.len() > SETTINGS_MAX {
        settings.push(("runs left out".into(), (runs.len() - SETTINGS_MAX).to_string()));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{Shape, Workload};

    fn run(outstanding: u32, block_bytes: u32) -> RunResult {
        let workload = Workload::from(Shape::random_read(block_bytes)).with_outstanding(outstanding);
        RunResult::empty(workload, "/data".into())
    }

    #[test]
    fn runs_are_named_by_what_differs_between_them() {
        let runs = [run(1, 4096), run(8, 4096)];
        assert_eq!(labels(&NamedRun::all(&runs)), ["1 outstanding", "8 outstanding"]);
        let alike = [run(1, 4096), run(1, 4096)];
        assert_eq!(labels(&NamedRun::all(&alike)), ["no. 1", "no. 2"]);
        let mut groups = NamedRun::group("before", &runs[..1]);
        groups.extend(NamedRun::group("after", &alike[..1]));
        assert_eq!(labels(&groups), ["before", "after"]);
        assert_eq!(labels(&NamedRun::all(&runs[..1])), [""]);
    }
}
