//! Reduces a failure after several crashes: replays its path with fewer crashes, steps and changes.
//!
//! A crash is stored by the operation that it interrupted (the third operation of a step) and by the state of the generator
//! before its draws, so that it can be replayed with other steps left out. The crash image differs then: if the replay does
//! not fail, other draws are tried.

use crate::crashes::{Torn, crashed, show, tear};
use crate::cuts;
use crate::kind::Kind;
use crate::lab::{Lab, caught, without};
use crate::oracle::Tolerance;
use crate::run::{Place, Run, Start, perform, perform_from};
use crate::{Chance, Medium, Op, SimDisk, Step};
use pagestore::Recovery;
use std::fmt;

/// Bounds the replays of one reduction.
const TRIES_MAX: u32 = 400;
/// Other draws that are tried for each candidate.
const DRAWS: u64 = 4;

/// The image of a crash that was judged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Image {
    Plain(usize),
    Torn(Torn),
    /// With a truncated file.
    Cut,
}

/// A crash and the draws behind it.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub place: Place,
    pub image: Image,
    /// The generator before its images were drawn.
    pub drawn: Chance,
    /// The generator before the judgement.
    pub judging: Chance,
}

/// The run that went on from a crash.
#[derive(Clone, Debug)]
pub(crate) struct Onward {
    pub point: Point,
    pub recovery: Recovery,
    pub steps: Vec<Step>,
}

/// A failure and the path that led to it.
#[derive(Clone, Debug)]
pub(crate) struct Fell {
    pub what: String,
    /// The runs after the first one.
    pub way: Vec<Onward>,
    /// The crash after which the last run failed; `None`: it failed before any crash.
    last: Option<Point>,
}

/// A crash on the path to a failure, and the run after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Then {
    /// "operation 9 (sync data)".
    pub crash: String,
    /// The strategy of its recovery.
    pub recovery: Recovery,
    /// The steps of the run after it.
    pub steps: Vec<Step>,
}

impl fmt::Display for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.steps.is_empty() { ", and nothing more" } else { ", then:" };
        write!(f, "crash at {}, {:?} recovery{end}", self.crash, self.recovery)
    }
}

impl Fell {
    pub(crate) fn of(what: String) -> Fell {
        Fell { what, way: Vec::new(), last: None }
    }

    pub(crate) fn at(what: String, point: Point) -> Fell {
        Fell { last: Some(point), ..Fell::of(what) }
    }

    /// The same failure, after this crash.
    pub(crate) fn after(mut self, onward: Onward) -> Fell {
        self.way.insert(0, onward);
        self
    }
}

/// A step, with the index that it had when it was drawn.
type Numbered = (usize, Step);

/// One run of a path, and its crash.
#[derive(Clone)]
struct Leg {
    /// The recovery that it begins with; `None` for the first run.
    recovery: Option<Recovery>,
    steps: Vec<Numbered>,
    /// The crash that it ends with; `None` if the last run failed before any crash.
    crash: Option<Point>,
}

#[derive(Clone)]
struct Way {
    kind: Kind,
    legs: Vec<Leg>,
    /// Selects the draws: 0 for the original ones.
    draw: u64,
}

/// The failure of a replay.
struct Fallen {
    what: String,
    /// The run that failed.
    leg: usize,
    /// The crashes before.
    crashes: Vec<String>,
}

impl Way {
    fn of(kind: Kind, steps: &[Step], fell: &Fell) -> Way {
        let leg = |recovery, steps: &[Step], crash| Leg {
            recovery,
            steps: steps.iter().cloned().enumerate().collect(),
            crash,
        };
        let crashes = fell.way.iter().map(|onward| Some(onward.point.clone())).chain([fell.last.clone()]);
        let runs = [(None, steps)]
            .into_iter()
            .chain(fell.way.iter().map(|onward| (Some(onward.recovery), onward.steps.as_slice())));
        Way {
            kind,
            legs: runs.zip(crashes).map(|((recovery, steps), crash)| leg(recovery, steps, crash)).collect(),
            draw: 0,
        }
    }

    /// Without a run: the next one starts from the crash before it.
    fn without_leg(&self, leg: usize) -> Way {
        let mut way = self.clone();
        let gone = way.legs.remove(leg);
        if leg == way.legs.len() {
            // The crash of the last run moves to the run before.
            way.legs[leg - 1].crash = gone.crash;
        }
        way
    }
}

impl Lab {
    /// Reduces a failure after several crashes: its text, the steps of the first run, and the crashes and runs after it.
    pub(crate) fn along(&self, kind: Kind, steps: &[Step], fell: Fell) -> (String, Vec<Step>, Vec<Then>) {
        let way = Way::of(kind, steps, &fell);
        let as_it_was = Fallen {
            what: fell.what,
            leg: way.legs.len() - 1,
            crashes: fell.way.iter().map(|onward| format!("{:?}", onward.point.place)).collect(),
        };
        // The original path is replayed as well: that tells the operations of its crashes.
        let fallen = self.again(&way).unwrap_or(as_it_was);
        let mut fewer = Fewer { lab: self, tries: TRIES_MAX, way, fallen };
        if self.minimise {
            fewer.reduce();
        }
        fewer.told()
    }

    /// Replays a path; returns its failure.
    fn again(&self, way: &Way) -> Option<Fallen> {
        let (mut setting, _) = self.setting(way.kind);
        let mut crashes = Vec::new();
        let mut start: Option<Start> = None;
        for (index, leg) in way.legs.iter().enumerate() {
            let fell =
                |what, crashes: &Vec<String>| Some(Fallen { what, leg: index, crashes: crashes.clone() });
            let steps: Vec<Step> = leg.steps.iter().map(|(_, step)| step.clone()).collect();
            let done = match (start.take(), leg.recovery) {
                (Some(start), Some(recovery)) => {
                    setting.options.recovery = recovery;
                    caught(|| perform_from(setting, start, &steps))
                }
                _ => caught(|| perform(setting, SimDisk::new(), None, &steps).map(Some)),
            };
            let run = match done {
                Ok(run) => run?,
                Err(what) => return fell(format!("generation {index}: {what}"), &crashes),
            };
            let point = leg.crash.as_ref()?;
            let at = place_among(&run, point.place, &leg.steps);
            let judged = self.crash_at(&run, at, point, way.draw, index as u32);
            match judged {
                Some(Err(what)) => {
                    return fell(crashed(index as u32, at, run.trace.get(at), &what), &crashes);
                }
                Some(Ok(next)) if index + 1 < way.legs.len() => start = Some(next?),
                _ if index + 1 < way.legs.len() => return None,
                // No failure there: tries every operation of the last run, once, since it takes long.
                _ if way.draw == 0 => {
                    let (at, what) = (0..=run.trace.len()).find_map(|at| {
                        Some((at, self.crash_at(&run, at, point, way.draw, index as u32)?.err()?))
                    })?;
                    return fell(crashed(index as u32, at, run.trace.get(at), &what), &crashes);
                }
                _ => return None,
            }
            let torn = match point.image {
                Image::Plain(_) | Image::Cut => String::new(),
                Image::Torn(torn) => format!(", {torn:?} of it landed"),
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
        point: &Point,
        draw: u64,
        generation: u32,
    ) -> Option<Result<Option<Start>, String>> {
        let mut medium = Medium::holding(run.start.clone());
        run.trace[..at].iter().for_each(|op| medium.apply(op));
        let mut drawn = other(&point.drawn, draw);
        let mut tolerance = Tolerance::None;
        let (mut files, torn) = match point.image {
            Image::Plain(image) => {
                let mut images = self.images_at(run, &medium, at, &mut drawn, generation);
                (images.swap_remove(image.min(images.len() - 1)), None)
            }
            Image::Torn(torn) => {
                let several = |op: &&Op| matches!(op, Op::Write { bytes, .. } if bytes.len() > 512);
                (tear(&medium, run.trace.get(at).filter(several)?, torn, &mut drawn), Some(torn))
            }
            Image::Cut => {
                tolerance = Tolerance::Reported;
                let vlf_bytes = run.setting.layout.vlf_bytes;
                (cuts::cut(&medium, run.trace.get(at), vlf_bytes, &mut drawn), None)
            }
        };
        let (expected, mut judging) = (run.expected(at), other(&point.judging, draw));
        let judged = self.judge(run, &files, expected, &mut judging, tolerance, generation);
        Some(judged.map(|found| {
            let (sequence, model) = found?;
            let rotten = torn.is_some_and(|torn| torn.rots(&mut files));
            Some(Start { files, sequence, model, rotten })
        }))
    }
}

/// The operation of a run at a place whose step has its original index; the end if the step was left out.
fn place_among(run: &Run, place: Place, steps: &[Numbered]) -> usize {
    match place.step {
        None => run.at(place),
        Some(number) => match steps.iter().position(|(own, _)| *own == number) {
            Some(step) => run.at(Place { step: Some(step), ..place }),
            None => run.trace.len(),
        },
    }
}

fn other(chance: &Chance, draw: u64) -> Chance {
    let mut chance = chance.clone();
    (0..draw).for_each(|_| chance = Chance::new(chance.draw()));
    chance
}

/// A failing path that is being reduced.
struct Fewer<'a> {
    lab: &'a Lab,
    tries: u32,
    way: Way,
    fallen: Fallen,
}

impl Fewer<'_> {
    fn reduce(&mut self) {
        for leg in (1..self.way.legs.len()).rev() {
            if leg < self.way.legs.len() {
                let way = self.way.without_leg(leg);
                self.fails(&way);
            }
        }
        let mut leg = 0;
        while leg < self.way.legs.len() {
            let steps = self.way.legs[leg].steps.clone();
            without(steps, &mut |fewer: &[Numbered]| self.fails_with(leg, |steps| *steps = fewer.to_vec()));
            self.reduce_changes(leg);
            leg += 1;
        }
    }

    /// Leaves out changes of the remaining steps of a run.
    fn reduce_changes(&mut self, leg: usize) {
        let lists = |way: &Way| -> Vec<(usize, usize)> {
            let steps = way.legs.get(leg).map(|leg| leg.steps.clone()).unwrap_or_default();
            let of_step = |(at, (_, mut step)): (usize, Numbered)| {
                (0..step.changes_mut().len()).map(move |list| (at, list)).collect::<Vec<_>>()
            };
            steps.into_iter().enumerate().flat_map(of_step).collect()
        };
        for (step, list) in lists(&self.way) {
            let Some(own) = self.way.legs.get(leg) else { return };
            let changes = own.steps[step].1.clone().changes_mut()[list].clone();
            without(changes, &mut |fewer| {
                self.fails_with(leg, |steps| *steps[step].1.changes_mut()[list] = fewer.to_vec())
            });
        }
    }

    fn fails_with(&mut self, leg: usize, change: impl FnOnce(&mut Vec<Numbered>)) -> bool {
        let mut way = self.way.clone();
        // An earlier replay may have shortened the path.
        let Some(own) = way.legs.get_mut(leg) else { return false };
        change(&mut own.steps);
        self.fails(&way)
    }

    /// Whether the candidate fails, too: then it replaces the path, up to the run that failed.
    fn fails(&mut self, way: &Way) -> bool {
        for draw in 0..DRAWS {
            if self.tries == 0 {
                return false;
            }
            self.tries -= 1;
            let mut way = Way { draw, ..way.clone() };
            if let Some(fallen) = self.lab.again(&way) {
                way.legs.truncate(fallen.leg + 1);
                (self.way, self.fallen) = (way, fallen);
                return true;
            }
        }
        false
    }

    fn told(self) -> (String, Vec<Step>, Vec<Then>) {
        let mut legs =
            self.way.legs.into_iter().map(|leg| {
                (leg.recovery, leg.steps.into_iter().map(|(_, step)| step).collect::<Vec<Step>>())
            });
        let first = legs.next().map(|(_, steps)| steps).unwrap_or_default();
        let then = legs.zip(self.fallen.crashes).map(|((recovery, steps), crash)| Then {
            crash,
            recovery: recovery.unwrap_or_default(),
            steps,
        });
        let then = then.collect();
        (self.fallen.what, first, then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Model;
    use crate::{Change, Failure};

    /// The reduced failures of the first seeds that fail.
    fn failures(broken: fn(u32, &Model) -> bool) -> Vec<Failure> {
        let fails = |seed| {
            let lab = Lab { seed, steps: 16, images: 1, faults: 0, broken: Some(broken), ..Lab::default() };
            lab.run().err().map(|failure| *failure)
        };
        (0..12).filter_map(fails).take(3).collect()
    }

    fn has_long_value(model: &Model) -> bool {
        model.values().any(|value| value.len() >= 200)
    }

    #[test]
    fn a_failure_after_two_crashes_is_told_with_the_one_change_that_it_needs() {
        let failures = failures(|generation, found| generation == 2 && has_long_value(found));
        assert_eq!(failures.len(), 3);
        for failure in failures {
            let text = failure.to_string();
            assert_eq!(failure.then.len(), 2, "{text}");
            assert!(failure.what.starts_with("generation 2, crash at operation"), "{text}");
            let all = failure
                .then
                .iter()
                .fold(failure.needed.clone(), |all, then| [all, then.steps.clone()].concat());
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
    fn what_fails_after_one_crash_as_well_is_told_with_one() {
        let failures = failures(|generation, found| generation >= 1 && has_long_value(found));
        assert!(failures.len() == 3 && failures.iter().all(|failure| failure.then.len() == 1));
    }

    #[test]
    fn a_way_that_is_not_made_shorter_is_told_as_it_was() {
        let broken: fn(u32, &Model) -> bool = |generation, found| generation == 2 && has_long_value(found);
        let lab = Lab { seed: 0, steps: 16, images: 1, faults: 0, broken: Some(broken), ..Lab::default() };
        let whole = |seed| Lab { seed, minimise: false, ..lab.clone() }.run().err();
        let failure = (0..12).find_map(whole).expect("one of them has a long value");
        assert_eq!((failure.needed.len() >= 16, failure.then.len()), (true, 2), "{failure}");
        assert!(failure.then.iter().all(|then| then.crash.starts_with("operation")), "{failure}");
    }
}
