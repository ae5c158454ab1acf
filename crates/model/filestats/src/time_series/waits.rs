//! The epochs of a wait event -> its series.

use super::{Lifetime, Parts, TimeSeries, WaitEpoch, WaitSeries, add, predecessors};
use crate::waits::between;
use crate::{Figure, Reason, Rules, WaitDelta, WaitSample};
use std::collections::BTreeMap;

impl TimeSeries {
    /// The series of one wait event from all its epochs; `None` without any.
    pub fn wait(&self, mut epochs: Vec<WaitEpoch>, rules: Rules) -> Option<WaitSeries> {
        epochs.sort_by_key(|epoch| (epoch.life.first, epoch.life.born));
        let lives: Vec<Lifetime> = epochs.iter().map(|epoch| epoch.life).collect();
        let before = predecessors(&lives, |_, _| true);
        let mut parts: Parts<WaitDelta> = BTreeMap::new();
        for (epoch, before) in epochs.iter().zip(before) {
            let Lifetime { first, gone, from_zero, .. } = epoch.life;
            let between =
                |at: usize, then: &WaitSample, now: &WaitSample| between(then, now, self.clock_ns(at), rules);
            if first > 0 {
                let added = match before {
                    Some(before) => between(first, &epochs[before].last(), &epoch.sample),
                    None if from_zero => between(first, &epoch.sample.at_zero(), &epoch.sample),
                    None => Figure::unknown(Reason::FirstSight),
                };
                add(&mut parts, first, added, together);
            }
            let mut then = epoch.sample.clone();
            let mut changes = epoch.changes.iter().peekable();
            for at in first..=gone.unwrap_or(self.ticks.len().saturating_sub(1)) {
                let mut idle = at > first && gone != Some(at);
                while let Some((_, count, wait_ns)) = changes.next_if(|(tick, ..)| *tick == at) {
                    let now = WaitSample { count: *count, wait_ns: *wait_ns, ..then.clone() };
                    add(&mut parts, at, between(at, &then, &now), together);
                    (then, idle) = (now, false);
                }
                if idle {
                    let added = between(at, &then, &then);
                    if !is_idle(&added) {
                        add(&mut parts, at, added, together);
                    }
                }
            }
        }
        let WaitEpoch { sample, .. } = epochs.pop()?;
        let steps = self.existing(parts).into_iter().flat_map(|(at, part)| {
            let known = part.known.map(Figure::Known);
            let all = known.into_iter().chain(part.unknown.into_iter().map(Figure::unknown));
            all.filter(|added| !is_idle(added)).map(move |added| (at, added)).collect::<Vec<_>>()
        });
        let steps = steps.collect();
        Some(WaitSeries { instance: sample.instance, event: sample.event, class: sample.class, steps })
    }
}

/// Sums two parts of one interval's waits.
fn together(sum: WaitDelta, next: WaitDelta) -> WaitDelta {
    match (is_idle(&Figure::Known(sum)), is_idle(&Figure::Known(next))) {
        (true, _) => next,
        (false, true) => sum,
        (false, false) => WaitDelta {
            elapsed_ns: sum.elapsed_ns,
            count: sum.count.zip(next.count, u64::saturating_add),
            wait_ns: sum.wait_ns.zip(next.wait_ns, u64::saturating_add),
        },
    }
}

fn is_idle(added: &Figure<WaitDelta>) -> bool {
    match added {
        Figure::Known(delta) => delta.wait_ns == Figure::Known(0) && delta.count.known().unwrap_or(0) == 0,
        Figure::Unknown { unknown } => *unknown == Reason::NoTimePassed,
    }
}

impl WaitEpoch {
    /// As it was last seen.
    fn last(&self) -> WaitSample {
        let (count, wait_ns) = self
            .changes
            .last()
            .map_or((self.sample.count, self.sample.wait_ns), |(_, count, wait_ns)| (*count, *wait_ns));
        WaitSample { count, wait_ns, ..self.sample.clone() }
    }
}
