//! Many captures of a source, and one file through all of them: the intervals of [`intervals`](crate::intervals), file
//! by file, so that a week of five hundred files need not be in memory at once.
//!
//! ```text
//! ticks        0    1    2    3    4    5        one a capture; interval n ends at tick n
//! epoch A      a    a    a'   a    -             one file in one epoch, with its changes (') and the tick that lacks it
//! epoch B                          b    b'       the same name in another epoch, or another file
//! FileSeries        .    *    .    ?    *        steps: * known, ? unknown; . nothing happened, which is known
//! ```
//!
//! Where retention removed captures between two ticks, an interval is the sum of those between: several changes of an
//! epoch, or several epochs, may fall into it. Its known part and its unknown part are two steps.

mod files;
mod waits;

use crate::{Counters, Epoch, Figure, FileIdentity, Meaning, Reason, Rules, Sample, WaitDelta, WaitSample};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One capture without its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Wall clock, nanoseconds since 1970.
    pub taken_unix_ns: u64,
    /// The source's monotonic clock, nanoseconds.
    pub clock_ns: u64,
    /// As [`Snapshot::complete`](crate::Snapshot::complete).
    pub complete: Option<Epoch>,
}

/// How long a file or wait event existed in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The first tick that has it, or the first after it began if no tick does.
    pub first: usize,
    /// The first tick after it ended.
    pub gone: Option<usize>,
    /// The number of the capture in which it began, whether that is a tick or not.
    pub born: i64,
    /// The number of the first later capture without it: an epoch that begins in that one continues this one.
    pub died: Option<i64>,
    /// Its first counters were all added since the capture before.
    pub from_zero: bool,
}

/// One file in one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEpoch {
    /// When it existed.
    pub life: Lifetime,
    /// The first sample, or that of the first tick if it began before.
    pub sample: Sample,
    /// Its counters where they changed after that, each with the tick that shows it first.
    pub changes: Vec<(usize, Counters)>,
}

/// One wait event in one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitEpoch {
    /// When it existed.
    pub life: Lifetime,
    /// As in [`FileEpoch::sample`].
    pub sample: WaitSample,
    /// Its count and time where they changed, as in [`FileEpoch::changes`].
    pub changes: Vec<(usize, Figure<u64>, Figure<u64>)>,
}

/// One interval of a file that was not idle, or is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Index of the interval: it ends at this tick, and began at the one before.
    pub at: usize,
    /// Growth of the counters, or why it cannot be known.
    pub added: Figure<Counters>,
}

/// One file over all ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSeries {
    /// The file as its last epoch names it.
    pub file: Arc<FileIdentity>,
    /// Meaning of its counters.
    pub meaning: Meaning,
    /// Bytes on disk, as last reported.
    pub size_bytes: Figure<u64>,
    /// The intervals that were not idle, in their order. One that is known in part has two steps.
    pub steps: Vec<Step>,
    /// Time of the intervals of which anything is known, idle ones included.
    pub known_ns: u64,
    /// Wall-clock time of those of which nothing is.
    pub unknown_ns: u64,
}

/// One wait event over all ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitSeries {
    /// The instance that waited.
    pub instance: String,
    /// The event, as the engine names it.
    pub event: String,
    /// Its class.
    pub class: crate::WaitClass,
    /// The intervals in which there was any wait, or of which nothing is known: as in [`FileSeries::steps`].
    pub steps: Vec<(usize, Figure<WaitDelta>)>,
}

/// The captures of a source over a stretch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSeries {
    /// The source.
    pub source: String,
    /// Its captures, the oldest first.
    pub ticks: Vec<Tick>,
}

impl TimeSeries {
    /// Time of the interval that ends at that tick on the source's clock, or why there is none.
    pub fn elapsed_ns(&self, at: usize, rules: Rules) -> Figure<u64> {
        rules.elapsed_ns(self.clock_ns(at))
    }

    /// When the interval that ends at that tick began and ended, wall clock.
    pub fn span_unix_ns(&self, at: usize) -> (u64, u64) {
        (self.ticks[at - 1].taken_unix_ns, self.ticks[at].taken_unix_ns)
    }

    /// Wall-clock time of it; 0 where the clock was set back.
    pub fn wall_ns(&self, at: usize) -> u64 {
        let (from, until) = self.span_unix_ns(at);
        until.saturating_sub(from)
    }

    /// Its time on the source's clock; `None` where that fell, or where no interval ends at that tick.
    fn clock_ns(&self, at: usize) -> Option<u64> {
        let began = self.ticks.get(at.checked_sub(1)?)?.clock_ns;
        self.ticks.get(at)?.clock_ns.checked_sub(began)
    }

    /// Keeps the parts whose intervals exist. A damaged history may have changes at the first tick, before which there is
    /// no interval, or past the last one: they say nothing.
    fn existing<T>(&self, mut parts: Parts<T>) -> Parts<T> {
        parts.retain(|at, _| (1..self.ticks.len()).contains(at));
        parts
    }
}

/// For each lifetime the one that it continues, if any: each has one successor at most, the same file preferred.
fn predecessors(lives: &[Lifetime], same: impl Fn(usize, usize) -> bool) -> Vec<Option<usize>> {
    let mut continued = vec![false; lives.len()];
    let mut before = Vec::with_capacity(lives.len());
    for (n, life) in lives.iter().enumerate() {
        let ended = (0..n).filter(|other| !continued[*other] && lives[*other].died == Some(life.born));
        let found = ended.clone().find(|other| same(*other, n)).or_else(|| ended.clone().next());
        if let Some(found) = found {
            continued[found] = true;
        }
        before.push(found);
    }
    before
}

/// One interval: the sum of its known parts, and why the rest is unknown.
#[derive(Clone, Debug)]
struct Part<T> {
    known: Option<T>,
    unknown: Vec<Reason>,
}

/// The parts by tick.
type Parts<T> = BTreeMap<usize, Part<T>>;

fn add<T: Copy>(parts: &mut Parts<T>, at: usize, added: Figure<T>, plus: impl Fn(T, T) -> T) {
    let part = parts.entry(at).or_insert(Part { known: None, unknown: Vec::new() });
    match added {
        Figure::Known(added) => part.known = Some(part.known.map_or(added, |known| plus(known, added))),
        Figure::Unknown { unknown } if !part.unknown.contains(&unknown) => part.unknown.push(unknown),
        Figure::Unknown { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileKind, WaitClass};
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn three_ticks() -> TimeSeries {
        let tick = |at: u64| Tick { taken_unix_ns: at * S, clock_ns: at * S, complete: None };
        TimeSeries { source: "test".into(), ticks: (1..=3).map(tick).collect() }
    }

    fn waited(count: u64) -> (Figure<u64>, Figure<u64>) {
        (Figure::Known(count), Figure::Known(count * 1_000))
    }

    proptest! {
        /// A damaged history can have any tick anywhere.
        #[test]
        fn a_change_where_no_interval_ends_says_nothing(
            (first, gone) in (0..5_usize, prop::option::of(0..5_usize)),
            ticks in prop::collection::vec(0..5_usize, 0..4),
            from_zero: bool,
        ) {
            let life = Lifetime { first, gone, born: 1, died: None, from_zero };
            let epoch = Epoch::for_run("1");
            let (count, wait_ns) = waited(1);
            let (instance, event) = (String::from("server"), String::from("DataFileRead"));
            let sample =
                WaitSample { instance, event, class: WaitClass::DataRead, epoch: epoch.clone(), count, wait_ns };
            let change = |(n, tick): (usize, &usize)| {
                let (count, wait_ns) = waited(n as u64 + 2);
                (*tick, count, wait_ns)
            };
            let changes = ticks.iter().enumerate().map(change).collect();
            let waits = three_ticks().wait(vec![WaitEpoch { life, sample, changes }], Rules::default()).unwrap();
            prop_assert!(waits.steps.iter().all(|(at, _)| (1..3).contains(at)), "{waits:?}");

            let file = FileIdentity {
                instance: "server".into(),
                database: None,
                database_id: None,
                file_id: "1".into(),
                kind: FileKind::Data,
                path: "/data/1".into(),
                drive: None,
                handle: None,
                object: None,
            };
            let counters = |n: u64| Counters { read: crate::Ops::timed(n, n * 8192, n * 1_000), ..Counters::ZERO };
            let sample = Sample {
                file: file.into(),
                epoch,
                meaning: Meaning::REQUESTS,
                counters: counters(1),
                size_bytes: Figure::Known(0),
                latencies: None,
            };
            let changes = ticks.iter().enumerate().map(|(n, tick)| (*tick, counters(n as u64 + 2))).collect();
            for series in three_ticks().file(vec![FileEpoch { life, sample, changes }], Rules::default()) {
                prop_assert!(series.steps.iter().all(|step| (1..3).contains(&step.at)), "{series:?}");
            }
        }
    }
}
