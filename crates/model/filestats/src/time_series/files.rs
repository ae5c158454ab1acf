//! Spells of a file's name -> its course.

use super::{FileEpoch, FileSeries, Lifetime, Parts, Step, TimeSeries, add, heirs};
use crate::interval::between;
use crate::{Counters, Figure, Interval, Ops, Reason, Rules, Sample};
use std::collections::BTreeMap;

impl TimeSeries {
    /// The course of one file from all spells of its name. A file whose counters came to stand for something else has
    /// a course for each meaning.
    pub fn file(&self, mut spells: Vec<FileEpoch>, rules: Rules) -> Vec<FileSeries> {
        spells.sort_by_key(|spell| (spell.life.first, spell.life.born));
        let lives: Vec<Lifetime> = spells.iter().map(|spell| spell.life).collect();
        let same = |a: usize, b: usize| spells[a].sample.file.file_id == spells[b].sample.file.file_id;
        let before = heirs(&lives, same);
        let mut courses: Vec<(FileSeries, Parts<Counters>)> = Vec::new();
        for (spell, before) in spells.iter().zip(&before) {
            let meaning = spell.sample.meaning;
            let at = courses.iter().position(|(course, _)| course.meaning == meaning).unwrap_or_else(|| {
                courses.push((FileSeries::new(&spell.sample), BTreeMap::new()));
                courses.len() - 1
            });
            let (course, parts) = &mut courses[at];
            course.file.clone_from(&spell.sample.file);
            if spell.sample.size_bytes.known().is_some() || course.size_bytes.known().is_none() {
                course.size_bytes = spell.sample.size_bytes;
            }
            if let Some(first) = self.first_sight(spell, before.map(|before| &spells[before]), rules) {
                add_counters(parts, spell.life.first, first);
            }
            self.go_through(course, parts, spell, rules);
        }
        for (n, spell) in spells.iter().enumerate() {
            if let Some(gone) = spell.life.gone.filter(|_| !before.contains(&Some(n)))
                && let Some((_, parts)) =
                    courses.iter_mut().find(|(course, _)| course.meaning == spell.sample.meaning)
            {
                add_counters(parts, gone, Figure::unknown(Reason::Gone));
            }
        }
        courses.into_iter().map(|(course, parts)| self.steps(course, parts, rules)).collect()
    }

    /// What was done before a spell was first seen; `None` at the first tick, before which there is no interval.
    fn first_sight(
        &self,
        spell: &FileEpoch,
        before: Option<&FileEpoch>,
        rules: Rules,
    ) -> Option<Figure<Counters>> {
        let at = spell.life.first;
        if at == 0 {
            return None;
        }
        let elapsed_ns = self.clock_ns(at);
        Some(match before {
            Some(before) if before.sample.meaning != spell.sample.meaning => {
                Figure::unknown(Reason::IdentityChanged)
            }
            Some(before) => known(between(&before.last(), &spell.sample, elapsed_ns, rules)),
            None if spell.life.from_zero => {
                known(between(&spell.sample.at_zero(), &spell.sample, elapsed_ns, rules))
            }
            None => Figure::unknown(Reason::FirstSight),
        })
    }

    /// All that a spell did after it was first seen.
    fn go_through(
        &self,
        course: &mut FileSeries,
        parts: &mut Parts<Counters>,
        spell: &FileEpoch,
        rules: Rules,
    ) {
        let mut counters = spell.sample.counters;
        let mut changes = spell.changes.iter().peekable();
        let Lifetime { first, gone, .. } = spell.life;
        for at in first..=gone.unwrap_or(self.ticks.len().saturating_sub(1)) {
            // The first tick has an interval before it only where there is a tick before it.
            let there_all_along = at > first && gone != Some(at);
            if changes.peek().is_none_or(|(tick, _)| *tick != at) && !there_all_along {
                continue;
            }
            let elapsed = self.elapsed_ns(at, rules);
            let mut idle = true;
            while let Some((_, now)) = changes.next_if(|(tick, _)| *tick == at) {
                let added = match elapsed {
                    Figure::Unknown { unknown } => Figure::unknown(unknown),
                    Figure::Known(_) => match now.since(counters) {
                        Some(added) => Figure::Known(added),
                        None => Figure::unknown(Reason::CounterFell),
                    },
                };
                counters = *now;
                idle = false;
                add_counters(parts, at, added);
            }
            match elapsed {
                Figure::Known(elapsed_ns) if idle => {
                    course.known_ns = course.known_ns.saturating_add(elapsed_ns);
                }
                Figure::Unknown { unknown } if idle => add_counters(parts, at, Figure::unknown(unknown)),
                _ => {}
            }
        }
    }

    fn steps(&self, mut course: FileSeries, parts: Parts<Counters>, rules: Rules) -> FileSeries {
        for (at, part) in parts {
            if part.known.is_some() {
                let elapsed_ns = self.elapsed_ns(at, rules).known().unwrap_or(0);
                course.known_ns = course.known_ns.saturating_add(elapsed_ns);
            } else {
                course.unknown_ns = course.unknown_ns.saturating_add(self.wall_ns(at));
            }
            let known = part.known.filter(|added| !is_idle(added)).map(Figure::Known);
            let unknown = part.unknown.into_iter().map(Figure::unknown);
            course.steps.extend(known.into_iter().chain(unknown).map(|added| Step { at, added }));
        }
        course
    }
}

fn add_counters(parts: &mut Parts<Counters>, at: usize, added: Figure<Counters>) {
    add(parts, at, added, |sum, next| match (is_idle(&sum), is_idle(&next)) {
        // What did not happen takes no knowledge away from what did.
        (true, _) => next,
        (false, true) => sum,
        (false, false) => sum.followed_by(next),
    });
}

/// Whether nothing was added. A time may be, without an operation: one that had been counted in the interval before.
fn is_idle(added: &Counters) -> bool {
    let sync = added.sync.known().unwrap_or(Ops::ZERO);
    [added.read, added.write, sync].iter().all(|ops| ops.count == 0 && ops.stall_ns.known().unwrap_or(0) == 0)
        && added.busy_ns.known().unwrap_or(0) == 0
}

fn known(interval: Interval) -> Figure<Counters> {
    match interval {
        Interval::Known(delta) => Figure::Known(delta.counters),
        Interval::Unknown(reason) => Figure::unknown(reason),
    }
}

impl FileEpoch {
    /// As it was last seen.
    fn last(&self) -> Sample {
        let counters = self.changes.last().map_or(self.sample.counters, |(_, counters)| *counters);
        Sample { counters, latencies: None, ..self.sample.clone() }
    }
}

impl FileSeries {
    fn new(sample: &Sample) -> FileSeries {
        FileSeries {
            file: sample.file.clone(),
            meaning: sample.meaning,
            size_bytes: sample.size_bytes,
            steps: Vec::new(),
            known_ns: 0,
            unknown_ns: 0,
        }
    }
}
