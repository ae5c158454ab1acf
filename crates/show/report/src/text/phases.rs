//! Several workloads, at once or in phases: a table of all, then each.

use super::run;
use super::style::{Ink, Style};
use super::table::{Cell, Table};
use super::wrap::clean;
use crate::{Tone, number};
use findings::{Finding, Weight};
use workload::{PhaseResult, RunResult};

/// All results of a run. `findings_of` says what one of them means; a single one is shown as [`run`] does.
pub fn phases(
    phases: &[PhaseResult],
    findings_of: impl Fn(&RunResult) -> Vec<Finding>,
    style: &Style,
) -> String {
    let each: Vec<PhaseFindings> =
        phases.iter().map(|phase| PhaseFindings::new(phase, &findings_of)).collect();
    if let [only] = each.as_slice()
        && let [(result, findings)] = only.results.as_slice()
    {
        return run(result, findings, style);
    }
    let rows = each.iter().enumerate().flat_map(|(at, PhaseFindings { phase, results })| {
        results.iter().map(move |(result, findings)| (name(phase, at), *result, findings))
    });
    let latency = |ns: Option<f64>| ns.map_or(number::NONE.into(), number::time);
    let table = Table::from_items(rows)
        .left("phase", |(phase, ..)| phase.clone())
        .left("workload", |(_, result, _)| match result.workload.name.as_str() {
            "" => result.shape_words(),
            name => name.to_owned(),
        })
        .right("IOPS", |(_, result, _)| number::rate(result.iops()))
        .right("MiB/s", |(_, result, _)| number::rate(result.mib_per_s()))
        .right("mean", |(_, result, _)| latency(result.mean_latency_ns()))
        .right("99 %", |(_, result, _)| {
            latency(result.total_latency().supported_percentile_ns(99.0).map(|ns| ns as f64))
        })
        .right("failed", |(_, result, _)| number::count(result.failed().saturating_add(result.sync.failed())))
        .right("warnings", |(.., findings)| warnings(findings))
        .flexible(1);
    let mut pages = Vec::new();
    for (at, PhaseFindings { phase, results }) in each.iter().enumerate() {
        let texts = results.iter().map(|(result, findings)| run(result, findings, style));
        let heading = style.heading(&format!("== {} ==", name(phase, at)));
        pages.push(format!("{heading}\n\n{}", texts.collect::<Vec<String>>().join("\n")));
    }
    format!("{}\n\n{}", table.lines(style).join("\n"), pages.join("\n"))
}

/// A phase with the findings of each of its results.
struct PhaseFindings<'a> {
    phase: &'a PhaseResult,
    results: Vec<(&'a RunResult, Vec<Finding>)>,
}

impl<'a> PhaseFindings<'a> {
    fn new(phase: &'a PhaseResult, findings_of: impl Fn(&RunResult) -> Vec<Finding>) -> PhaseFindings<'a> {
        PhaseFindings {
            phase,
            results: phase.results.iter().map(|result| (result, findings_of(result))).collect(),
        }
    }
}

fn name(phase: &PhaseResult, at: usize) -> String {
    if phase.name.is_empty() { format!("phase {}", at + 1) } else { clean(&phase.name) }
}

fn warnings(findings: &[Finding]) -> Cell {
    let warnings = findings.iter().filter(|finding| finding.weight == Weight::Warning).count();
    Cell::inked(warnings.to_string(), if warnings > 0 { Ink::Tone(Tone::Warning) } else { Ink::Plain })
}
