//! Without a source: measures a directory and runs a workload of our own in it. On storage that was never measured the first
//! answer comes within a minute, and the rest is measured afterwards.
//!
//! ```text
//!  0 s   make the test file            a slow disk: as much of it as is written in 8 s
//!  2 s   the points that decide        about 12 s
//! 14 s   make the everyday database
//! 17 s   the everyday workload         20 s; less on a slow disk, so that the first answer is in time
//! 37 s   rebuild its indexes
//! 40 s   the first answer              at 55 s at the latest, by what was observed until then
//!        the rest of the test file, all other points
//! 110 s  the answer                    the same observation, judged by the whole measurement
//! ```

use super::{CheckArgs, DURATION, Seen, answer, failure, measure_now};
use crate::measure::{Staged, TestPlace, keep};
use capability::Capability;
use everyday::{JudgedVolume, Known, Listener, Observer, Scope, judge_volumes};
use history::History;
use report::{FirstAnswer, Phase};
use sqlite_vfs::VFS_NAME;
use std::convert::Infallible;
use std::time::{Duration, Instant};
use storage::{Target, Workspace};
use terminal::{Failure, Output, interrupt, page, workspace};
use workload::Caching;

/// A capability measured longer ago than this is measured again when that is free to do.
const FRESH: Duration = Duration::from_secs(7 * 24 * 3600);
/// The first answer is begun at the latest this long after the beginning: judging takes a moment.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(55);
/// Of that, the time left for the index rebuild.
const REBUILD_TIME: Duration = Duration::from_secs(14);
/// The everyday workload is watched for at least this long, however slow the storage is.
const DURATION_MIN: Duration = Duration::from_secs(10);

/// Measures the directory where its storage is not known well enough, and runs a workload of our own in it.
pub fn run(
    args: &CheckArgs,
    began: Instant,
    target: &Target,
    history: &mut History,
    out: &mut Output,
) -> Result<Seen, Failure> {
    let workspace = workspace::open(target.path(), history, out)?;
    let plan = plan(args);
    // A workload that fills the disk half-way would harm everybody on it.
    workspace.check_room(plan.bytes_max()).map_err(|error| {
        let what = "cannot run an everyday workload in";
        let dir = target.path().display();
        let failure = Failure::new(format_args!("{what} {dir}: not enough room"))
            .with_remedy("free some space, or name another directory on the same storage");
        error.facts().into_iter().fold(failure, Failure::with_fact)
    })?;
    let stored = history.latest_capability(target.facts())?.map(|(_, capability)| capability);
    let fresh = stored.filter(|stored| !args.measure && is_fresh(stored, target, args.how.caching()));
    let everyday = Everyday { args, began, plan, workspace: &workspace, target };
    let seen = match fresh {
        Some(capability) => {
            let age_h = host::unix_ns().saturating_sub(capability.measured_unix_ns) / 3_600_000_000_000;
            out.note(format_args!("using the capability measured {age_h} h ago (--measure for a new one)"));
            everyday.run(&capability, First::Never, out)
        }
        None => everyday.measure_and_run(history, out),
    }?;
    workspace::remove(workspace, out)?;
    Ok(seen)
}

/// The everyday workload of one check.
struct Everyday<'a> {
    args: &'a CheckArgs,
    began: Instant,
    plan: everyday::Plan,
    workspace: &'a Workspace,
    target: &'a Target,
}

impl Everyday<'_> {
    fn measure_and_run(&self, history: &mut History, out: &mut Output) -> Result<Seen, Failure> {
        let place = TestPlace { target: self.target, workspace: self.workspace };
        let both_bytes = self.args.how.test_bytes(self.target).saturating_add(self.plan.bytes_max());
        if self.workspace.check_room(both_bytes).is_err() {
            // The test file must go before there is room for the database.
            let capability = measure_now(self.args, self.target, self.workspace, history, out)?;
            return if interrupt::requested() {
                Err(ended())
            } else {
                self.run(&capability, First::Never, out)
            };
        }
        let mut staged = Staged::begin(&place, &self.args.how, history, out)?;
        let seen = self.in_stages(&mut staged, history, out);
        // Whatever happened, the file goes, and its record with it.
        staged.remove(history)?;
        seen
    }

    fn in_stages(
        &self,
        staged: &mut Staged<'_>,
        history: &mut History,
        out: &mut Output,
    ) -> Result<Seen, Failure> {
        staged.measure_first(self.began, out)?;
        if interrupt::requested() {
            return Err(ended());
        }
        // With --preliminary the first answer is the only one.
        let first = if self.args.preliminary { First::Never } else { First::Due };
        let seen = self.run(&staged.capability()?, first, out);
        let mut seen = match seen {
            Ok(seen) => seen,
            Err(failure) => {
                history.save_capability(&staged.capability()?)?;
                return Err(failure);
            }
        };
        if !self.args.preliminary
            && !interrupt::requested()
            && let Err(error) = staged.complete(out)
        {
            out.warn(format_args!(
                "the answer stays preliminary, since the measurement cannot go on: {error}"
            ));
        }
        let capability = staged.capability()?;
        keep(&capability, history, out)?;
        for volume in &mut seen.volumes {
            volume.judge_again(capability.clone(), &self.args.service_level);
        }
        Ok(seen)
    }

    /// Runs the workload and judges it.
    fn run(&self, capability: &Capability, first: First, out: &mut Output) -> Result<Seen, Failure> {
        // The directory may be another user's, who may put a link in the place of the workspace at any time.
        let database = self.workspace.entry_by_descriptor("everyday.db");
        // Before the database is made: its VFS keeps that name.
        let counted = everyday::counted_sqlite().map_err(failure)?;
        let mut preparing = |done: u64, total: u64| {
            out.progress(format_args!("making an everyday database, {} %", 100 * done / total.max(1)), None);
        };
        everyday::prepare(&database, &self.plan, &mut preparing).map_err(failure)?;
        if interrupt::requested() {
            return Err(ended());
        }
        let mut plan = self.plan.clone();
        if first == First::Due && self.args.duration.is_none() {
            plan.duration = duration_within(self.began.elapsed());
        }
        let source = collect::sqlite::InProcess::new(counted);
        let mut observer = Observer::new(Box::new(source), self.target.clone(), Scope::One);
        let mut listening = Listening { args: self.args, began: self.began, capability, first, out };
        let phases = everyday::experiment(&database, &plan, &mut observer, interrupt::flag(), &mut listening);
        let phases = report_phases(&phases.map_err(failure)?);
        let volumes = judged(self.args, &mut observer, capability);
        if listening.first == First::Due && !interrupt::requested() {
            listening.give(volumes.clone(), &phases);
        }
        let first_answer = match listening.first {
            First::Given(answer) => Some(answer),
            First::Never | First::Due => None,
        };
        Ok(Seen { observer, volumes, phases, first_answer })
    }
}

/// The first answer.
#[derive(Clone, Debug, PartialEq)]
enum First {
    /// There is only one answer.
    Never,
    Due,
    Given(FirstAnswer),
}

/// Shows progress, and gives the first answer when its time has come.
struct Listening<'a> {
    args: &'a CheckArgs,
    began: Instant,
    capability: &'a Capability,
    first: First,
    out: &'a mut Output,
}

impl Listener for Listening<'_> {
    fn progress(&mut self, phase: &'static str, left: Duration) {
        self.out.progress(format_args!("observing: {phase}"), Some(left));
    }

    fn is_answer_due(&self) -> bool {
        self.first == First::Due && self.began.elapsed() >= FIRST_ANSWER_MAX
    }

    fn answer(&mut self, observer: &mut Observer, phases: &[everyday::Phase]) {
        let volumes = judged(self.args, observer, self.capability);
        self.give(volumes, &report_phases(phases));
    }
}

impl Listening<'_> {
    fn give(&mut self, volumes: Vec<JudgedVolume>, phases: &[Phase]) {
        let check = answer(self.args, volumes, phases);
        // Before the answer is drawn: what is printed after it would stand in its place.
        if let Err(error) = page::write(self.args.html.as_deref(), || report::html::check(&check), self.out) {
            self.out.warn(error);
        }
        let first = FirstAnswer::new(&check.verdict, self.began.elapsed());
        self.out.preliminary(|style| report::text::check(&check, style), &first);
        self.first = First::Given(first);
    }
}

/// The verdicts by what was just measured.
fn judged(args: &CheckArgs, observer: &mut Observer<'_>, capability: &Capability) -> Vec<JudgedVolume> {
    let known = |_: &Target| Ok::<_, Infallible>(Known::measured(capability.clone()));
    let Ok(volumes) = judge_volumes(observer, &args.service_level, known);
    volumes
}

fn report_phases(phases: &[everyday::Phase]) -> Vec<Phase> {
    let phase = |phase: &everyday::Phase| Phase {
        name: phase.name.into(),
        from_unix_ns: phase.from_unix_ns,
        to_unix_ns: phase.to_unix_ns,
    };
    phases.iter().map(phase).collect()
}

fn plan(args: &CheckArgs) -> everyday::Plan {
    everyday::Plan {
        duration: args.duration.unwrap_or(DURATION),
        vfs: Some(VFS_NAME.into()),
        ..everyday::Plan::default()
    }
}

/// Duration of the watched everyday workload that begins `elapsed` after the command: the first answer is to be in time.
fn duration_within(elapsed: Duration) -> Duration {
    FIRST_ANSWER_MAX.saturating_sub(REBUILD_TIME + elapsed).clamp(DURATION_MIN, DURATION)
}

fn ended() -> Failure {
    Failure::new("ended before the everyday workload: there is nothing to judge")
}

/// Young enough, measured whole and the same way, and under the same caps as now.
fn is_fresh(capability: &Capability, target: &Target, caching: Caching) -> bool {
    let age_ns = host::unix_ns().saturating_sub(capability.measured_unix_ns);
    Duration::from_nanos(age_ns) <= FRESH
        && capability.conditions.caching == caching
        && capability.target.caps == target.facts().caps
        && capability.cost_model.is_some()
        && capability.origin.is_measured()
        && !capability.is_preliminary()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workload_is_watched_for_less_where_making_its_files_took_long() {
        let seconds = |elapsed| duration_within(Duration::from_secs(elapsed)).as_secs();
        assert_eq!([seconds(0), seconds(18), seconds(21)], [20, 20, 20]);
        assert_eq!([seconds(25), seconds(30)], [16, 11]);
        assert_eq!([seconds(31), seconds(300)], [10, 10], "the least that a verdict stands on");
    }
}
