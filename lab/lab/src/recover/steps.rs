//! The steps of the experiment: the running one, and the time left.

use super::{Engine, Plan, Progress, Strategy};
use experiments::{Pace, Step};
use pagestore::{RecoveryPhase, RecoveryProgress};
use std::time::{Duration, Instant};

/// Progress is reported this often.
pub(super) const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// A step of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepKind {
    Making,
    Copying,
    Recovering(Strategy),
}

/// The steps of the experiment and how long they take.
pub(super) struct Steps<'a> {
    report: &'a mut (dyn FnMut(&Progress) + Send),
    pace: Pace,
    to_come: Vec<(Engine, Step)>,
    running: Option<(Engine, Step, Instant)>,
    reported: Instant,
}

impl<'a> Steps<'a> {
    pub(super) fn new(plan: &Plan, report: &'a mut (dyn FnMut(&Progress) + Send)) -> Steps<'a> {
        let pages = plan.work.pages;
        let step =
            |engine: Engine, kind| (engine, Step { name: name(engine, kind), commits: pages, rows: pages });
        let to_come = plan.engines.iter().flat_map(|engine| {
            let recoveries = engine.strategies(plan).into_iter().map(StepKind::Recovering);
            [StepKind::Making]
                .into_iter()
                .chain(recoveries)
                .map(|kind| step(*engine, kind))
                .collect::<Vec<_>>()
        });
        Steps {
            to_come: to_come.collect(),
            report,
            pace: Pace::default(),
            running: None,
            reported: Instant::now(),
        }
    }

    pub(super) fn begin(&mut self, engine: Engine, kind: StepKind) {
        let name = name(engine, kind);
        let found = self.to_come.iter().position(|(other, step)| *other == engine && step.name == name);
        self.running =
            found.map(|at| self.to_come.remove(at)).map(|(engine, step)| (engine, step, Instant::now()));
        self.reported = Instant::now();
        self.report(kind, 0.0, "");
    }

    pub(super) fn report_share(&mut self, kind: StepKind, share: f64) {
        if self.reported.elapsed() >= REPORT_INTERVAL {
            self.reported = Instant::now();
            self.report(kind, share, "");
        }
    }

    /// Reports a recovery, with its own progress if it has any.
    pub(super) fn report_recovery(&mut self, strategy: Strategy, progress: Option<RecoveryProgress>) {
        if self.reported.elapsed() >= REPORT_INTERVAL {
            self.reported = Instant::now();
            let (share, pace) = progress.as_ref().map_or((0.0, String::new()), describe_recovery);
            self.report(StepKind::Recovering(strategy), share, &pace);
        }
    }

    fn report(&mut self, kind: StepKind, share: f64, pace: &str) {
        let Some((engine, step, began)) = &self.running else { return };
        let later: Vec<Step> = self.to_come.iter().map(|(_, step)| step.clone()).collect();
        let left = self.pace.left_s(step, share, began.elapsed().as_secs_f64(), &later);
        let mut doing = name(*engine, kind);
        if share > 0.0 {
            doing.push_str(&format!(", {:.0} %", share.min(1.0) * 100.0));
        }
        doing.push_str(pace);
        let left = left.filter(|left| *left < 1e9).map(Duration::from_secs_f64);
        (self.report)(&Progress { doing, left });
    }

    /// Reports something short that is not among the timed steps.
    pub(super) fn announce(&mut self, engine: Engine, kind: StepKind) {
        (self.report)(&Progress { doing: name(engine, kind), left: None });
    }

    pub(super) fn end(&mut self) {
        if let Some((_, step, began)) = self.running.take() {
            self.pace.record(step, began.elapsed().as_secs_f64());
        }
    }

    pub(super) fn leave_out(&mut self, engine: Engine) {
        self.to_come.retain(|(other, _)| *other != engine);
    }
}

fn name(engine: Engine, kind: StepKind) -> String {
    let engine = engine.name();
    match kind {
        StepKind::Making => format!("{engine}: writing until it is killed"),
        StepKind::Copying => format!("{engine}: copying the crashed image"),
        StepKind::Recovering(Strategy::Own) => format!("{engine}: recovering"),
        StepKind::Recovering(strategy) => format!("{engine}: recovering, {}", strategy.name()),
    }
}

/// The share of its pages that a recovery has written, and its speed as text. The share is 0 while it reads the log, which
/// takes a small part of the time: the number of pages is known only after that.
fn describe_recovery(progress: &RecoveryProgress) -> (f64, String) {
    let mb_per_s = progress.mb_per_s();
    match progress.phase {
        RecoveryPhase::ReadingLog => {
            let [read, all] = [progress.bytes, progress.bytes_total].map(|bytes| bytes / 1_000_000);
            (0.0, format!(", {read} of {all} MB of log read, {mb_per_s:.0} MB/s"))
        }
        RecoveryPhase::WritingPages => {
            let share = 1.0 - progress.pages_left as f64 / progress.pages.max(1) as f64;
            (share, format!(", {:.0} pages/s, {mb_per_s:.1} MB/s", progress.pages_per_s()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_reports_bytes_read_and_then_pages_and_megabytes_per_second() {
        let reading = RecoveryProgress {
            phase: RecoveryPhase::ReadingLog,
            pages: 0,
            pages_left: 0,
            bytes: 300_000_000,
            bytes_total: 1_080_000_000,
            elapsed: Duration::from_secs(2),
        };
        assert_eq!(describe_recovery(&reading), (0.0, ", 300 of 1080 MB of log read, 150 MB/s".into()));
        let writing = RecoveryProgress {
            phase: RecoveryPhase::WritingPages,
            pages: 200_000,
            pages_left: 150_000,
            bytes: 50_000 * 4_096,
            bytes_total: 200_000 * 4_096,
            ..reading
        };
        assert_eq!(describe_recovery(&writing), (0.25, ", 25000 pages/s, 102.4 MB/s".into()));
        let nothing = RecoveryProgress { pages: 0, pages_left: 0, bytes: 0, bytes_total: 0, ..writing };
        assert_eq!(describe_recovery(&nothing), (1.0, ", 0 pages/s, 0.0 MB/s".into()));
    }
}
