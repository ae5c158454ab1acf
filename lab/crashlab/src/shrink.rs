//! Reduces a failure after several crashes: replays its path with fewer crashes, steps and changes.
//!
//! A crash is stored by the operation that it interrupted (the third operation of a step) and by the state of the generator
//! before its draws, so that it can be replayed with other steps left out. The crash image differs then: if the replay does
//! not fail, other draws are tried.

use crate::crashes::tear;
use crate::lab::{Lab, catch_panic};
use crate::oracle::Tolerance;
use crate::path::{AfterCrash, Counterexample, CrashImage, CrashPoint, crashed, show};
use crate::reduce::reduce;
use crate::run::{Place, Run, Start, perform, perform_from};
use crate::workload::WorkloadKind;
use crate::{Chance, Files, Op, SimDisk, Step, cuts, units};
use pagestore::{Durability, Recovery};

/// Bounds the replays of one reduction.
const TRIES_MAX: u32 = 400;
/// Other draws that are tried for each candidate.
const DRAWS: u64 = 4;

/// A step, with the index that it had when it was drawn.
type NumberedStep = (usize, Step);

/// One run of a path, and its crash.
#[derive(Clone)]
struct PathSegment {
    /// The recovery that it begins with; `None` for the first run.
    recovery: Option<Recovery>,
    steps: Vec<NumberedStep>,
    /// The crash that it ends with; `None` if the last run failed before any crash.
    crash: Option<CrashPoint>,
}

#[derive(Clone)]
struct CrashPath {
    kind: WorkloadKind,
    segments: Vec<PathSegment>,
    /// Selects the draws: 0 for the original ones.
    draw: u64,
}

/// The failure of a replay.
struct Reproduction {
    what: String,
    /// The run that failed.
    segment: usize,
    /// The crashes before.
    crashes: Vec<String>,
}

impl CrashPath {
    fn new(kind: WorkloadKind, steps: &[Step], found: &Counterexample) -> CrashPath {
        let segment = |recovery, steps: &[Step], crash| PathSegment {
            recovery,
            steps: steps.iter().cloned().enumerate().collect(),
            crash,
        };
        let crashes = found
            .path
            .iter()
            .map(|continuation| Some(continuation.point.clone()))
            .chain([found.last.clone()]);
        let runs = [(None, steps)].into_iter().chain(
            found
                .path
                .iter()
                .map(|continuation| (Some(continuation.recovery), continuation.steps.as_slice())),
        );
        CrashPath {
            kind,
            segments: runs
                .zip(crashes)
                .map(|((recovery, steps), crash)| segment(recovery, steps, crash))
                .collect(),
            draw: 0,
        }
    }

    /// Without a run: the next one starts from the crash before it.
    fn without_segment(&self, segment: usize) -> CrashPath {
        let mut path = self.clone();
        let gone = path.segments.remove(segment);
        if segment == path.segments.len() {
            // The crash of the last run moves to the run before.
            path.segments[segment - 1].crash = gone.crash;
        }
        path
    }
}

impl Lab {
    /// Reduces a failure after several crashes: its text, the steps of the first run, and the crashes and runs after it.
    pub(crate) fn shrink_path(
        &self,
        kind: WorkloadKind,
        steps: &[Step],
        found: Counterexample,
    ) -> (String, Vec<Step>, Vec<AfterCrash>) {
        let path = CrashPath::new(kind, steps, &found);
        let unchanged = Reproduction {
            what: found.what,
            segment: path.segments.len() - 1,
            crashes: found
                .path
                .iter()
                .map(|continuation| format!("{:?}", continuation.point.place))
                .collect(),
        };
        // The original path is replayed as well: that tells the operations of its crashes.
        let reproduction = self.replay(&path).unwrap_or(unchanged);
        let mut shrinker = Shrinker { lab: self, tries: TRIES_MAX, path, reproduction };
        if self.minimise {
            shrinker.reduce();
        }
        shrinker.into_parts()
    }

    /// Replays a path; returns its failure.
    fn replay(&self, path: &CrashPath) -> Option<Reproduction> {
        let (mut setting, _) = self.setting(path.kind);
        let mut crashes = Vec::new();
        let mut start: Option<Start> = None;
        for (index, segment) in path.segments.iter().enumerate() {
            let failure = |what, crashes: &Vec<String>| {
                Some(Reproduction { what, segment: index, crashes: crashes.clone() })
            };
            let steps: Vec<Step> = segment.steps.iter().map(|(_, step)| step.clone()).collect();
            let done = match (start.take(), segment.recovery) {
                (Some(start), Some(recovery)) => {
                    setting.options.recovery = recovery;
                    catch_panic(|| perform_from(setting, start, &steps))
                }
                _ => catch_panic(|| perform(setting, SimDisk::new(), None, &steps).map(Some)),
            };
            let run = match done {
                Ok(run) => run?,
                Err(what) => return failure(format!("generation {index}: {what}"), &crashes),
            };
            let point = segment.crash.as_ref()?;
            let at = place_among(&run, point.place, &segment.steps);
            let judged = self.crash_at(&run, at, point, path.draw, index as u32);
            match judged {
                Some(Err(what)) => {
                    return failure(crashed(index as u32, at, run.trace.get(at), &what), &crashes);
                }
                Some(Ok(next)) if index + 1 < path.segments.len() => start = Some(next?),
                _ if index + 1 < path.segments.len() => return None,
                // No failure there: tries every operation of the last run, once, since it takes long.
                _ if path.draw == 0 => {
                    let (at, what) = (0..=run.trace.len()).find_map(|at| {
                        Some((at, self.crash_at(&run, at, point, path.draw, index as u32)?.err()?))
                    })?;
                    return failure(crashed(index as u32, at, run.trace.get(at), &what), &crashes);
                }
                _ => return None,
            }
            let torn = match point.image {
                CrashImage::Plain(_) | CrashImage::Cut | CrashImage::Units => String::new(),
                CrashImage::Killed => ", the process is killed".into(),
                CrashImage::Torn(torn) => format!(", {torn:?} of it landed"),
            };
            crashes.push(format!("operation {at} ({}){torn}", show(run.trace.get(at))));
        }
        None
    }

    /// Crashes during operation `at` as `point` describes, and judges: returns the start of the next run, if any, or the
    /// violation. `None`: there is no such crash.
    fn crash_at(
        &self,
        run: &Run,
        at: usize,
        point: &CrashPoint,
        draw: u64,
        generation: u32,
    ) -> Option<Result<Option<Start>, String>> {
        let mut medium = run.start.clone();
        run.trace[..at].iter().for_each(|op| medium.apply(op));
        let mut drawn = draws_of(&point.drawn, draw);
        let (in_flight, mut expected) = (run.trace.get(at), run.expected(at));
        let mut judging = draws_of(&point.judging, draw);
        let mut judge = |files: &Files, expected| self.judge(run, files, expected, &mut judging, generation);
        let files = match point.image {
            CrashImage::Plain(image) => {
                let mut images = self.images_at(run, &medium, at, &mut drawn, generation);
                images.swap_remove(image.min(images.len() - 1))
            }
            CrashImage::Torn(torn) => {
                let several = |op: &&Op| matches!(op, Op::Write { bytes, .. } if bytes.len() > 512);
                let mut files = tear(&medium, in_flight.filter(several)?, torn, &mut drawn);
                return Some(judge(&files, expected).map(|found| {
                    let found = found?;
                    let rotten = torn.spoil_control_if_needed(&mut files);
                    Some(Start { rotten, ..Start::after_power_failure(files, found) })
                }));
            }
            CrashImage::Cut => {
                expected.tolerance = Tolerance::Reported;
                cuts::cut(&medium, in_flight, run.setting.layout.vlf_bytes, &mut drawn)
            }
            CrashImage::Units => {
                let (files, own) = units::crash(run, &medium, at, &mut drawn)?;
                expected = own;
                files
            }
            CrashImage::Killed => {
                let left = medium.killed(in_flight, &mut drawn);
                return Some(judge(&left.cached(), expected).map(|found| {
                    let commits = expected.least..=found?.0;
                    Some(Start::after_kill(left, run, expected.created, commits))
                }));
            }
        };
        let found = judge(&files, expected);
        Some(found.map(|found| Some(Start::after_power_failure(files, found?))))
    }
}

/// The operation of a run at a place whose step has its original index; the end if the step was left out.
fn place_among(run: &Run, place: Place, steps: &[NumberedStep]) -> usize {
    match place.step {
        None => run.at(place),
        Some(number) => match steps.iter().position(|(own, _)| *own == number) {
            Some(step) => run.at(Place { step: Some(step), ..place }),
            None => run.trace.len(),
        },
    }
}

fn draws_of(chance: &Chance, draw: u64) -> Chance {
    let mut chance = chance.clone();
    (0..draw).for_each(|_| chance = Chance::new(chance.draw()));
    chance
}

/// A failing path that is being reduced.
struct Shrinker<'a> {
    lab: &'a Lab,
    tries: u32,
    path: CrashPath,
    reproduction: Reproduction,
}

impl Shrinker<'_> {
    fn reduce(&mut self) {
        for segment in (1..self.path.segments.len()).rev() {
            if segment < self.path.segments.len() {
                let path = self.path.without_segment(segment);
                self.fails(&path);
            }
        }
        self.replace_torn_crashes();
        self.replace_checkpoints();
        let mut segment = 0;
        while segment < self.path.segments.len() {
            let steps = self.path.segments[segment].steps.clone();
            reduce(steps, &mut |fewer: &[NumberedStep]| {
                self.fails_with(segment, |steps| *steps = fewer.to_vec())
            });
            self.reduce_changes(segment);
            segment += 1;
        }
    }

    /// Replaces crashes that tear the write in flight, which needs a step that writes, by those that do not.
    fn replace_torn_crashes(&mut self) {
        for segment in 0..self.path.segments.len() {
            let mut path = self.path.clone();
            let crash = path.segments.get_mut(segment).and_then(|own| own.crash.as_mut());
            if let Some(point) = crash.filter(|point| !matches!(point.image, CrashImage::Plain(_))) {
                point.image = CrashImage::Plain(0);
                self.fails(&path);
            }
        }
    }

    /// Replaces checkpoints by commits of the changes between their writes: those need earlier commits, whose pages are
    /// written.
    fn replace_checkpoints(&mut self) {
        for segment in 0..self.path.segments.len() {
            let steps = self.path.segments.get(segment).map(|own| own.steps.clone()).unwrap_or_default();
            for (at, (_, step)) in steps.into_iter().enumerate() {
                if let Step::Checkpoint { during } = step
                    && during.iter().any(|changes| !changes.is_empty())
                {
                    let commit = Step::committed(during.concat(), Durability::Full);
                    self.fails_with(segment, |steps| steps[at].1 = commit);
                }
            }
        }
    }

    /// Leaves out changes of the remaining steps of a run.
    fn reduce_changes(&mut self, segment: usize) {
        let lists = |path: &CrashPath| -> Vec<(usize, usize)> {
            let steps = path.segments.get(segment).map(|segment| segment.steps.clone()).unwrap_or_default();
            let of_step = |(at, (_, mut step)): (usize, NumberedStep)| {
                (0..step.changes_mut().len()).map(move |list| (at, list)).collect::<Vec<_>>()
            };
            steps.into_iter().enumerate().flat_map(of_step).collect()
        };
        for (step, list) in lists(&self.path) {
            let Some(own) = self.path.segments.get(segment) else { return };
            let changes = own.steps[step].1.clone().changes_mut()[list].clone();
            reduce(changes, &mut |fewer| {
                self.fails_with(segment, |steps| *steps[step].1.changes_mut()[list] = fewer.to_vec())
            });
        }
    }

    fn fails_with(&mut self, segment: usize, change: impl FnOnce(&mut Vec<NumberedStep>)) -> bool {
        let mut path = self.path.clone();
        // An earlier replay may have shortened the path.
        let Some(own) = path.segments.get_mut(segment) else { return false };
        change(&mut own.steps);
        self.fails(&path)
    }

    /// Whether the candidate fails, too: then it replaces the path, up to the run that failed.
    fn fails(&mut self, path: &CrashPath) -> bool {
        for draw in 0..DRAWS {
            if self.tries == 0 {
                return false;
            }
            self.tries -= 1;
            let mut path = CrashPath { draw, ..path.clone() };
            if let Some(reproduction) = self.lab.replay(&path) {
                path.segments.truncate(reproduction.segment + 1);
                (self.path, self.reproduction) = (path, reproduction);
                return true;
            }
        }
        false
    }

    fn into_parts(self) -> (String, Vec<Step>, Vec<AfterCrash>) {
        let mut segments = self.path.segments.into_iter().map(|segment| {
            (segment.recovery, segment.steps.into_iter().map(|(_, step)| step).collect::<Vec<Step>>())
        });
        let first = segments.next().map(|(_, steps)| steps).unwrap_or_default();
        let crashes = segments.zip(self.reproduction.crashes).map(|((recovery, steps), crash)| AfterCrash {
            crash,
            recovery: recovery.unwrap_or_default(),
            steps,
        });
        let crashes = crashes.collect();
        (self.reproduction.what, first, crashes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Model;
    use crate::{Change, Failure};

    fn small(broken: fn(u32, &Model) -> bool) -> Lab {
        let creation_and_threads = false;
        Lab { steps: 16, images: 1, faults: 0, creation_and_threads, broken: Some(broken), ..Lab::default() }
    }

    /// The reduced failures of the first seeds that fail.
    fn failures(broken: fn(u32, &Model) -> bool) -> Vec<Failure> {
        let fails = |seed| {
            let lab = Lab { seed, ..small(broken) };
            lab.run().err().map(|failure| *failure)
        };
        (0..12).filter_map(fails).take(3).collect()
    }

    fn has_long_value(model: &Model) -> bool {
        model.values().any(|value| value.len() >= 200)
    }

    #[test]
    fn a_failure_after_two_crashes_is_reduced_to_the_one_change_that_it_needs() {
        let failures = failures(|generation, found| generation == 2 && has_long_value(found));
        assert_eq!(failures.len(), 3);
        for failure in failures {
            let text = failure.to_string();
            assert_eq!(failure.crashes.len(), 2, "{text}");
            assert!(failure.what.starts_with("generation 2, crash at operation"), "{text}");
            let all = failure
                .crashes
                .iter()
                .fold(failure.needed.clone(), |all, crash| [all, crash.steps.clone()].concat());
            let puts_one_long_value = |step: &Step| {
                let mut step = step.clone();
                let changes: Vec<Change> =
                    step.changes_mut().into_iter().flatten().map(|own| own.clone()).collect();
                matches!(changes[..], [Change::Put { bytes: 200.., .. }])
            };
            assert!(all.len() == 1 && puts_one_long_value(&all[0]), "{text}");
            assert_eq!(text.matches("crash at operation").count(), 3, "{text}");
            assert!(text.contains(&format!("again: headroom lab crash --seed {}", failure.seed)), "{text}");
        }
    }

    #[test]
    fn a_failure_that_needs_one_crash_is_reduced_to_one() {
        let failures = failures(|generation, found| generation >= 1 && has_long_value(found));
        assert!(failures.len() == 3 && failures.iter().all(|failure| failure.crashes.len() == 1));
    }

    #[test]
    fn a_path_that_is_not_reduced_is_reported_unchanged() {
        let broken: fn(u32, &Model) -> bool = |generation, found| generation == 2 && has_long_value(found);
        let lab = small(broken);
        let whole = |seed| Lab { seed, minimise: false, ..lab.clone() }.run().err();
        let failure = (0..12).find_map(whole).expect("one of them has a long value");
        assert_eq!((failure.needed.len() >= 16, failure.crashes.len()), (true, 2), "{failure}");
        assert!(failure.crashes.iter().all(|crash| crash.crash.starts_with("operation")), "{failure}");
    }
}
