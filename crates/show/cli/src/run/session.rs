//! A plan run from opening its targets to the answer and the history.

use crate::progress_line::ProgressLine;
use crate::targets::{self, Opened};
use crate::traces::Traces;
use charts::NamedRun;
use findings::RunConditions;
use history::History;
use load::{Job, RunControl, RunOptions};
use report::html::{RunsPage, Validity};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;
use terminal::{Done, FINE, Failure, Output, failure::DMESG, interrupt, page, problem_found};
use workload::{Phase, PhaseResult, Plan, RunResult, TargetChange, TargetFacts};

/// A plan run from opening its targets to the answer, for all commands that run a plan unchanged.
pub struct Run<'a> {
    pub plan: &'a Plan,
    /// Named by the person as what may be written over.
    pub destroy: &'a [PathBuf],
    pub traces: &'a Traces,
    /// How the workloads of a phase, by its number, run together; the targets are open by then.
    pub how: &'a dyn Fn(usize, &Phase, &Opened) -> Result<RunOptions, Failure>,
    /// Prints the results.
    pub answer: &'a dyn Fn(&Measured<'_>, &mut Output) -> Result<(), Failure>,
}

/// Results of a run, and the facts beside them.
pub struct Measured<'a> {
    pub phases: &'a [PhaseResult],
    /// Its number in the history.
    pub session: Option<i64>,
    facts: &'a HashMap<String, TargetFacts>,
    history: &'a History,
}

impl Measured<'_> {
    /// Findings on a result.
    pub fn findings(&self, result: &RunResult) -> Vec<findings::Finding> {
        findings::findings(result, &run_conditions(result, self.facts.get(&result.target), self.history))
    }

    /// All of it: `{"phases", "session"}`.
    pub fn json(&self) -> serde_json::Value {
        report::json::session(self.phases, |result| self.findings(result), self.session)
    }

    /// A page with charts, and what is not good in words.
    pub fn page(&self) -> String {
        let results = || self.phases.iter().flat_map(|phase| &phase.results);
        let findings: Vec<findings::Finding> = results().flat_map(|result| self.findings(result)).collect();
        let bad = findings.iter().filter(|finding| finding.weight != findings::Weight::Good);
        let sentences: Vec<String> = bad.map(|finding| finding.text.clone()).collect();
        report::html::runs(&RunsPage {
            title: &title(self.phases),
            runs: &NamedRun::phases(self.phases),
            charts: &[],
            sentences: &sentences,
            validity: Validity::of_findings(&findings),
            command: &page::command_line(),
            version: env!("CARGO_PKG_VERSION"),
        })
    }
}

/// The conditions of a run. Without the facts of its target only those of the machine are known.
pub fn run_conditions(result: &RunResult, facts: Option<&TargetFacts>, history: &History) -> RunConditions {
    let device = facts.and_then(|facts| facts.devices.first());
    let capability = facts.and_then(|facts| history.latest_capability(facts).ok().flatten());
    let measured = capability.filter(|(_, capability)| capability.origin.is_measured());
    let knee = measured.and_then(|(_, capability)| {
        let same = capability.curves.into_iter().find(|curve| curve.workload == result.workload.shape);
        same?.knee
    });
    RunConditions {
        memory_bytes: host::memory_figures().get("MemTotal").copied(),
        sector_bytes: device.and_then(|device| device.physical_block_bytes),
        cores: std::thread::available_parallelism().ok().and_then(|cores| u32::try_from(cores.get()).ok()),
        rotational: device.and_then(|device| device.rotational),
        knee,
        ..RunConditions::default()
    }
}

impl Run<'_> {
    /// Opens the targets, runs phase after phase, answers, keeps the results and takes away what was made.
    pub fn conduct(&self, history: &mut History, out: &mut Output) -> Done {
        interrupt::install();
        for phase in &self.plan.phases {
            load::check_content(phase.workloads.iter().map(|placed| &placed.workload))?;
        }
        let opened = targets::open(self.plan, self.traces, self.destroy, history, out)?;
        let (mut phases, failure) = self.run_phases(&opened, out);
        let facts = opened.facts();
        for result in phases.iter_mut().flat_map(|phase| &mut phase.results) {
            result.devices = facts.get(&result.target).map(|facts| facts.devices.clone()).unwrap_or_default();
        }
        // The answer first, whatever fails after it; and what was measured before something failed is an answer.
        let removed = opened.remove(history, out);
        let measured = phases.iter().any(|phase| phase.results.iter().any(|result| result.elapsed_ns > 0));
        let mut saved = Ok(());
        if measured {
            let kept = history.save_session(&phases);
            let session = kept.as_ref().ok().map(|(session, _)| session.0);
            let answered = (self.answer)(&Measured { phases: &phases, session, facts: &facts, history }, out);
            saved = kept.map(drop).map_err(Failure::from).and(answered);
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        saved?;
        removed?;
        if !measured {
            return Err(Failure::new("ended before anything was measured"));
        }
        Ok(judge(&phases, out))
    }

    /// Runs phase after phase, until one fails or the user ends it.
    pub fn run_phases(&self, opened: &Opened, out: &mut Output) -> (Vec<PhaseResult>, Option<Failure>) {
        let mut phases = Vec::new();
        for (at, phase) in self.plan.phases.iter().enumerate() {
            let later = &self.plan.phases[at + 1..];
            let after =
                later.iter().map(|phase| phase.length.ios_max.is_none().then(|| phase.length.total()));
            let after: Option<Duration> = after.sum();
            let mut line = ProgressLine::new(phase);
            let mut watch = |live: &load::LiveStats| {
                line.update(live);
                out.progress(&line, line.left().zip(after).map(|(left, after)| left + after));
                if interrupt::requested() { RunControl::Interrupt } else { RunControl::Continue }
            };
            match self.run_phase(at, phase, opened, &mut watch) {
                Ok(results) => phases.push(PhaseResult { name: phase.name.clone(), results }),
                Err(failure) => return (phases, Some(failure)),
            }
            if interrupt::requested() {
                break;
            }
        }
        (phases, None)
    }

    /// Runs the workloads of a phase at once.
    fn run_phase(
        &self,
        at: usize,
        phase: &Phase,
        opened: &Opened,
        watch: &mut dyn FnMut(&load::LiveStats) -> RunControl,
    ) -> Result<Vec<RunResult>, Failure> {
        let mut jobs = Vec::new();
        for placed in &phase.workloads {
            jobs.push(Job {
                region: opened.region(placed.target, placed.workload.shape.caching),
                workload: &placed.workload,
                weight: placed.weight,
                trace: self.traces.replayed_by(placed),
            });
        }
        let how = (self.how)(at, phase, opened)?;
        Ok(load::run_jobs(&jobs, &how, watch)?)
    }
}

/// The names of phases and workloads; of what has none, what its I/Os were like.
fn title(phases: &[PhaseResult]) -> String {
    let mut names = Vec::new();
    for phase in phases {
        for result in &phase.results {
            let shape = result.workload.shape.to_string();
            let all = [phase.name.as_str(), result.workload.name.as_str(), shape.as_str()];
            let name = all.into_iter().find(|name| !name.is_empty()).unwrap_or_default().to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.join(", ")
}

/// As the phase says, and nothing beside it.
pub fn plain(_: usize, phase: &Phase, _: &Opened) -> Result<RunOptions, Failure> {
    Ok(RunOptions { slice: phase.slice, pool: phase.pool, ..RunOptions::from(phase.length) })
}

/// Text of a warning about a run for which [`RunResult::was_stopped`] holds.
pub const STOPPED: &str = "this program was stopped, or the machine suspended, while the load ran";
/// Runs of one kind that are repeated because the program was stopped meanwhile.
pub const RUNS_AGAIN_MAX: u32 = 3;

/// Reports what other programs did to a target; returns whether there is any.
pub fn warn_of_changes(changes: &[TargetChange], out: &mut Output) -> bool {
    changes.iter().for_each(|change| out.warn(change));
    !changes.is_empty()
}

/// Failed I/Os, blocks that were not as written, a target that other programs changed, and a stop of this program are a problem.
fn judge(phases: &[PhaseResult], out: &mut Output) -> std::process::ExitCode {
    let results = || phases.iter().flat_map(|phase| &phase.results);
    let mut bad = false;
    for result in results() {
        let failed = result.failed() + result.sync.failed();
        if failed > 0 {
            out.warn(format_args!("{failed} I/Os on {} failed: {DMESG}", result.target));
            bad = true;
        }
        bad |= warn_of_changes(&result.target_changes, out);
        if result.was_stopped() {
            out.warn(format_args!("{STOPPED}: the figures of {} are not valid", result.target));
            bad = true;
        }
        if let Some(found) = result.verification.as_ref().filter(|found| found.bad > 0) {
            out.warn(format_args!(
                "{} of {} blocks on {} are not as they were written",
                found.bad, found.blocks, result.target
            ));
            bad = true;
        }
    }
    if results().any(|result| result.interrupted) {
        out.warn("ended early: what was measured until then is printed and kept");
    }
    if bad { problem_found() } else { FINE }
}
