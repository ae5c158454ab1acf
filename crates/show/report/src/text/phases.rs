//! Several workloads, at once or in phases: a table of all, then each.

use super::run;
use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
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
    let mut table = Table::new(&[
        ("phase", Align::Left),
        ("workload", Align::Left),
        ("IOPS", Align::Right),
        ("MiB/s", Align::Right),
        ("mean", Align::Right),
        ("99 %", Align::Right),
        ("failed", Align::Right),
        ("warnings", Align::Right),
    ])
    .flexible(1);
    let mut pages = Vec::new();
    for (at, PhaseFindings { phase, results }) in each.iter().enumerate() {
        for (result, findings) in results {
            table.push(summary(&name(phase, at), result, findings));
        }
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

fn summary(phase: &str, result: &RunResult, findings: &[Finding]) -> Vec<Cell> {
    let latency = result.latency();
    let workload = &result.workload;
    let name = if workload.name.is_empty() { workload.shape.to_string() } else { workload.name.clone() };
    let p99 = latency.percentile_ns(99.0).filter(|_| latency.supports_percentile(99.0));
    let warnings = findings.iter().filter(|finding| finding.weight == Weight::Warning).count();
    let ink = if warnings > 0 { Ink::Tone(Tone::Warning) } else { Ink::Plain };
    vec![
        phase.into(),
        name.into(),
        number::rate(result.iops()).into(),
        number::rate(result.mib_per_s()).into(),
        latency.mean_ns().map_or(number::NONE.into(), number::time).into(),
        p99.map_or(number::NONE.into(), |ns| number::time(ns as f64)).into(),
        number::count(result.failed().saturating_add(result.sync.failed())).into(),
        Cell::inked(warnings.to_string(), ink),
    ]
}
