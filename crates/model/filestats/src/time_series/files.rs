//! The epochs of a file's name -> its series.

use super::{FileEpoch, FileSeries, Lifetime, Parts, Step, TimeSeries, add, predecessors};
use crate::interval::between;
use crate::{Counters, Figure, Interval, Ops, Reason, Rules, Sample};
use std::collections::BTreeMap;

impl TimeSeries {
    /// The series of one file from all epochs of its name. A file whose counters changed their meaning has a series for
    /// each meaning.
    pub fn file(&self, mut epochs: Vec<FileEpoch>, rules: Rules) -> Vec<FileSeries> {
        epochs.sort_by_key(|epoch| (epoch.life.first, epoch.life.born));
        let lives: Vec<Lifetime> = epochs.iter().map(|epoch| epoch.life).collect();
        let same = |a: usize, b: usize| epochs[a].sample.file.file_id == epochs[b].sample.file.file_id;
        let before = predecessors(&lives, same);
        let mut all_series: Vec<(FileSeries, Parts<Counters>)> = Vec::new();
        for (epoch, before) in epochs.iter().zip(&before) {
            let meaning = epoch.sample.meaning;
            let at =
                all_series.iter().position(|(series, _)| series.meaning == meaning).unwrap_or_else(|| {
                    all_series.push((FileSeries::new(&epoch.sample), BTreeMap::new()));
                    all_series.len() - 1
                });
            let (series, parts) = &mut all_series[at];
            series.file.clone_from(&epoch.sample.file);
            if epoch.sample.size_bytes.known().is_some() || series.size_bytes.known().is_none() {
                series.size_bytes = epoch.sample.size_bytes;
            }
            if let Some(first) = self.first_sight(epoch, before.map(|before| &epochs[before]), rules) {
                add_counters(parts, epoch.life.first, first);
            }
            self.add_changes(series, parts, epoch, rules);
        }
        for (n, epoch) in epochs.iter().enumerate() {
            if let Some(gone) = epoch.life.gone.filter(|_| !before.contains(&Some(n)))
                && let Some((_, parts)) =
                    all_series.iter_mut().find(|(series, _)| series.meaning == epoch.sample.meaning)
            {
                add_counters(parts, gone, Figure::unknown(Reason::Gone));
            }
        }
        all_series.into_iter().map(|(series, parts)| self.steps(series, parts, rules)).collect()
    }

    /// Operations before an epoch was first seen; `None` at the first tick, before which there is no interval.
    fn first_sight(
        &self,
        epoch: &FileEpoch,
        before: Option<&FileEpoch>,
        rules: Rules,
    ) -> Option<Figure<Counters>> {
        let at = epoch.life.first;
        if at == 0 {
            return None;
        }
        let elapsed_ns = self.clock_ns(at);
        Some(match before {
            Some(before) if before.sample.meaning != epoch.sample.meaning => {
                Figure::unknown(Reason::IdentityChanged)
            }
            Some(before) => known(between(&before.last(), &epoch.sample, elapsed_ns, rules)),
            None if epoch.life.from_zero => {
                known(between(&epoch.sample.at_zero(), &epoch.sample, elapsed_ns, rules))
            }
            None => Figure::unknown(Reason::FirstSight),
        })
    }

    /// All that was added in an epoch after it was first seen.
    fn add_changes(
        &self,
        series: &mut FileSeries,
        parts: &mut Parts<Counters>,
        epoch: &FileEpoch,
        rules: Rules,
    ) {
        let mut counters = epoch.sample.counters;
        let mut changes = epoch.changes.iter().peekable();
        let Lifetime { first, gone, .. } = epoch.life;
        for at in first..=gone.unwrap_or(self.ticks.len().saturating_sub(1)) {
            // The first tick has an interval before it only where there is a tick before it.
            let there_all_along = at > first && gone != Some(at);
            if changes.peek().is_none_or(|(tick, _)| *tick != at) && !there_all_along {
                continue;
            }
            let elapsed = self.elapsed_ns(at, rules);
            let mut idle = true;
            while let Some((_, now)) = changes.next_if(|(tick, _)| *tick == at) {
                let since =
                    |_| now.since(counters).map_or(Figure::unknown(Reason::CounterFell), Figure::Known);
                let added = elapsed.map(since).flatten();
                counters = *now;
                idle = false;
                add_counters(parts, at, added);
            }
            match elapsed {
                Figure::Known(elapsed_ns) if idle => {
                    series.known_ns = series.known_ns.saturating_add(elapsed_ns);
                }
                Figure::Unknown { unknown } if idle => add_counters(parts, at, Figure::unknown(unknown)),
                _ => {}
            }
        }
    }

    fn steps(&self, mut series: FileSeries, parts: Parts<Counters>, rules: Rules) -> FileSeries {
        for (at, part) in self.existing(parts) {
            if part.known.is_some() {
                let elapsed_ns = self.elapsed_ns(at, rules).known().unwrap_or(0);
                series.known_ns = series.known_ns.saturating_add(elapsed_ns);
            } else {
                series.unknown_ns = series.unknown_ns.saturating_add(self.wall_ns(at));
            }
            let known = part.known.filter(|added| !is_idle(added)).map(Figure::Known);
            let unknown = part.unknown.into_iter().map(Figure::unknown);
            series.steps.extend(known.into_iter().chain(unknown).map(|added| Step { at, added }));
        }
        series
    }
}

fn add_counters(parts: &mut Parts<Counters>, at: usize, added: Figure<Counters>) {
    add(parts, at, added, |sum, next| match (is_idle(&sum), is_idle(&next)) {
        // An idle part does not make a known one unknown.
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
