use crate::{Counters, Figure, FileIdentity, Latencies, Meaning, Ops, Reason, Sample, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bounds of a usable interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The longest interval that is still taken for one: beyond it an average means nothing.
    pub gap_ns_max: u64,
}

impl Default for Rules {
    /// One day: longer averages say nothing.
    fn default() -> Self {
        Rules { gap_ns_max: 24 * 3600 * 1_000_000_000 }
    }
}

impl Rules {
    /// The time between two captures of one epoch, or why it is none. Within an epoch the source's clock cannot run
    /// backwards; if it seems to, it is another clock.
    pub(crate) fn elapsed_ns(&self, elapsed_ns: Option<u64>) -> Figure<u64> {
        match elapsed_ns {
            None => Figure::unknown(Reason::Restart),
            Some(0) => Figure::unknown(Reason::NoTimePassed),
            Some(elapsed_ns) if elapsed_ns > self.gap_ns_max => Figure::unknown(Reason::GapTooLong),
            Some(elapsed_ns) => Figure::Known(elapsed_ns),
        }
    }
}

/// I/O of one file between two captures, or why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Interval {
    /// Both captures lie in one epoch.
    Known(Delta),
    /// They do not, or cannot be compared.
    Unknown(Reason),
}

/// The difference of two captures of one epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "IntervalDelta"))]
pub struct Delta {
    /// Time between the captures on the source's clock.
    pub elapsed_ns: u64,
    /// Growth of the counters.
    pub counters: Counters,
    /// Growth of the histograms, where kept at both ends.
    pub latencies: Option<Latencies>,
}

/// One file's interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileInterval {
    /// The file, as the later capture names it.
    pub file: Arc<FileIdentity>,
    /// Meaning of its counters.
    pub meaning: Meaning,
    /// When the interval ends, wall clock.
    pub ended_unix_ns: u64,
    /// The file's I/O.
    pub interval: Interval,
}

impl FileInterval {
    /// Returns the identity of its file, to be changed.
    pub fn file_mut(&mut self) -> &mut FileIdentity {
        Arc::make_mut(&mut self.file)
    }
}

/// The intervals between two snapshots of one source, a row for each file seen in either.
///
/// Files of the later snapshot come first, in its order; files that are gone follow.
pub fn intervals(earlier: &Snapshot, later: &Snapshot, rules: Rules) -> Vec<FileInterval> {
    let before: BTreeMap<_, &Sample> =
        earlier.samples.iter().map(|sample| (sample.file.key(), sample)).collect();
    let elapsed_ns = later.clock_ns.checked_sub(earlier.clock_ns);
    let from_zero = earlier.missing_is_zero_until(later);
    let mut rows: Vec<FileInterval> = later
        .samples
        .iter()
        .map(|now| FileInterval {
            file: now.file.clone(),
            meaning: now.meaning,
            ended_unix_ns: later.taken_unix_ns,
            interval: match before.get(&now.file.key()) {
                Some(then) => between(then, now, elapsed_ns, rules),
                None if from_zero => between(&now.at_zero(), now, elapsed_ns, rules),
                None => Interval::Unknown(Reason::FirstSight),
            },
        })
        .collect();
    let after: std::collections::BTreeSet<_> = later.samples.iter().map(|sample| sample.file.key()).collect();
    rows.extend(earlier.samples.iter().filter(|then| !after.contains(&then.file.key())).map(|then| {
        FileInterval {
            file: then.file.clone(),
            meaning: then.meaning,
            ended_unix_ns: later.taken_unix_ns,
            interval: Interval::Unknown(Reason::Gone),
        }
    }));
    rows
}

pub(crate) fn between(then: &Sample, now: &Sample, elapsed_ns: Option<u64>, rules: Rules) -> Interval {
    if then.file.file_id != now.file.file_id {
        return Interval::Unknown(Reason::IdentityChanged);
    }
    if let Some(reason) = then.epoch.ended(&now.epoch) {
        return Interval::Unknown(reason);
    }
    if then.file.handle.is_some() && now.file.handle.is_some() && then.file.handle != now.file.handle {
        return Interval::Unknown(Reason::Reopened);
    }
    let elapsed_ns = match rules.elapsed_ns(elapsed_ns) {
        Figure::Known(elapsed_ns) => elapsed_ns,
        Figure::Unknown { unknown } => return Interval::Unknown(unknown),
    };
    let latencies = match (&now.latencies, &then.latencies) {
        (Some(now), Some(then)) => match now.since(then) {
            Some(difference) => Some(difference),
            None => return Interval::Unknown(Reason::CounterFell),
        },
        _ => None,
    };
    match now.counters.since(then.counters) {
        Some(counters) => Interval::Known(Delta { elapsed_ns, counters, latencies }),
        None => Interval::Unknown(Reason::CounterFell),
    }
}

impl Latencies {
    /// `self - earlier`, or `None` where a counter fell.
    pub fn since(&self, earlier: &Latencies) -> Option<Latencies> {
        Some(Latencies {
            read: self.read.since(&earlier.read)?,
            write: self.write.since(&earlier.write)?,
            sync: self.sync.since(&earlier.sync)?,
        })
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Latencies) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.sync.merge(&other.sync);
    }
}

impl Interval {
    /// The difference, if it is known.
    pub fn known(&self) -> Option<&Delta> {
        match self {
            Interval::Known(delta) => Some(delta),
            Interval::Unknown(_) => None,
        }
    }

    /// The reason, if it is not known.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Interval::Known(_) => None,
            Interval::Unknown(reason) => Some(*reason),
        }
    }
}

impl Delta {
    /// Mean time of one read in nanoseconds.
    pub fn read_latency_ns(&self) -> Figure<f64> {
        self.counters.read.latency_ns()
    }

    /// Mean time of one write in nanoseconds.
    pub fn write_latency_ns(&self) -> Figure<f64> {
        self.counters.write.latency_ns()
    }

    /// Mean time of one sync in nanoseconds.
    pub fn sync_latency_ns(&self) -> Figure<f64> {
        self.counters.sync_latency_ns()
    }

    /// Operations of one kind a second.
    pub fn per_second(&self, ops: &Ops) -> f64 {
        ops.count as f64 / self.elapsed_s()
    }

    /// Transfers (reads and writes) a second.
    pub fn iops(&self) -> f64 {
        self.per_second(&self.counters.transfers())
    }

    /// Bytes a second of reads and writes, in MiB.
    pub fn mib_per_s(&self) -> f64 {
        self.counters.transfers().bytes as f64 / self.elapsed_s() / (1024.0 * 1024.0)
    }

    /// Mean number of operations outstanding, N = stall / elapsed (Little 1961). Syncs take part, where
    /// counted: a session that waits for one waits for storage.
    pub fn outstanding(&self) -> Figure<f64> {
        self.counters.stall_ns().map(|stall| stall as f64 / self.elapsed_ns as f64)
    }

    /// Elapsed seconds.
    pub fn elapsed_s(&self) -> f64 {
        self.elapsed_ns as f64 / 1e9
    }

    /// Mean number of transfers outstanding while there was any, where the time that there was is kept:
    /// what each of them encountered, however bursty the interval.
    pub fn outstanding_while_busy(&self) -> Figure<f64> {
        let stall = self.counters.transfers().stall_ns;
        match self.counters.busy_ns {
            Figure::Known(0) => Figure::unknown(Reason::NoOperations),
            busy => stall.zip(busy, |stall, busy| stall as f64 / busy as f64),
        }
    }

    /// This interval and the one that follows it, as one.
    #[must_use]
    pub fn followed_by(mut self, next: &Delta) -> Delta {
        self.elapsed_ns = self.elapsed_ns.saturating_add(next.elapsed_ns);
        self.counters = self.counters.followed_by(next.counters);
        self.latencies = merged(self.latencies, next.latencies.as_ref());
        self
    }

    /// Adds another file's interval over the same time.
    pub fn add(&mut self, other: &Delta) {
        self.counters = self.counters.beside(other.counters);
        self.latencies = merged(self.latencies.take(), other.latencies.as_ref());
    }
}

fn merged(mine: Option<Latencies>, theirs: Option<&Latencies>) -> Option<Latencies> {
    let mut sum = mine?;
    sum.merge(theirs?);
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Epoch, FileKind};
    use proptest::prelude::*;

    fn snapshot(clock_ns: u64, epoch: u64, counters: Counters) -> Snapshot {
        Snapshot {
            source: "test".into(),
            taken_unix_ns: clock_ns,
            clock_ns,
            samples: vec![Sample {
                file: FileIdentity {
                    instance: "engine".into(),
                    database: Some("sales".into()),
                    database_id: None,
                    file_id: "8:1:77".into(),
                    kind: FileKind::Data,
                    path: "/data/sales.db".into(),
                    drive: None,
                    handle: None,
                    object: None,
                }
                .into(),
                epoch: Epoch::for_run(epoch.to_string()),
                meaning: Meaning::REQUESTS,
                counters,
                size_bytes: Figure::Known(0),
                latencies: None,
            }],
            complete: None,
            waits: vec![],
            notes: vec![],
        }
    }

    fn reads(count: u64, bytes: u64, stall_ns: u64) -> Counters {
        Counters { read: Ops::timed(count, bytes, stall_ns), ..Counters::ZERO }
    }

    fn only(earlier: &Snapshot, later: &Snapshot) -> Interval {
        let mut rows = intervals(earlier, later, Rules::default());
        assert_eq!(rows.len(), 1);
        rows.remove(0).interval
    }

    #[test]
    fn an_index_rebuild_shows_in_its_interval_and_not_in_the_next() {
        const MS: u64 = 1_000_000;
        const S: u64 = 1_000 * MS;
        let write = |count, stall_ms: u64| Counters {
            write: Ops::timed(count, count * 8192, stall_ms * MS),
            ..Counters::ZERO
        };
        let start = snapshot(0, 1, write(0, 0));
        let everyday = snapshot(60 * S, 1, write(1_000, 2_000));
        let rebuild = snapshot(120 * S, 1, write(2_000, 1_202_000));
        let after = snapshot(180 * S, 1, write(3_000, 1_204_000));
        let latency_ms = |a, b| only(a, b).known().unwrap().write_latency_ns().known().unwrap() / MS as f64;
        assert_eq!(latency_ms(&start, &everyday), 2.0);
        assert_eq!(latency_ms(&everyday, &rebuild), 1_200.0);
        assert_eq!(latency_ms(&rebuild, &after), 2.0);
        assert!(latency_ms(&start, &after) > 400.0, "the cumulative figure misleads");
    }

    #[test]
    fn a_latency_below_a_millisecond_is_kept() {
        let delta = only(&snapshot(0, 1, reads(0, 0, 0)), &snapshot(9, 1, reads(3, 0, 250_000)));
        assert_eq!(delta.known().unwrap().read_latency_ns(), Figure::Known(250_000.0 / 3.0));
    }

    #[test]
    fn no_reads_have_no_latency_rather_than_zero() {
        let delta = only(&snapshot(0, 1, reads(5, 5, 5)), &snapshot(9, 1, reads(5, 5, 5)));
        let delta = delta.known().unwrap();
        assert_eq!(delta.read_latency_ns(), Figure::unknown(Reason::NoOperations));
        assert_eq!(delta.outstanding(), Figure::Known(0.0));
    }

    #[test]
    fn timing_off_leaves_counts_and_takes_latency() {
        let untimed = Ops { count: 9, bytes: 9, stall_ns: Figure::unknown(Reason::TimingOff) };
        let later = Counters { read: untimed, ..Counters::ZERO };
        let interval = only(&snapshot(0, 1, reads(0, 0, 0)), &snapshot(9, 1, later));
        let delta = interval.known().unwrap();
        assert_eq!(delta.counters.read.count, 9);
        assert_eq!(delta.read_latency_ns(), Figure::unknown(Reason::TimingOff));
        assert_eq!(delta.outstanding(), Figure::unknown(Reason::TimingOff));
    }

    #[test]
    fn a_burst_shows_in_the_outstanding_while_busy_and_not_in_the_mean() {
        const MS: u64 = 1_000_000;
        let burst = Counters {
            write: Ops::timed(1_000, 0, 3_000 * MS),
            busy_ns: Figure::Known(20 * MS),
            ..Counters::ZERO
        };
        let idle = Counters { busy_ns: Figure::Known(0), ..Counters::ZERO };
        let interval = only(&snapshot(0, 1, idle), &snapshot(1_000 * MS, 1, burst));
        let delta = interval.known().unwrap();
        assert_eq!(delta.outstanding(), Figure::Known(3.0));
        assert_eq!(delta.outstanding_while_busy(), Figure::Known(150.0));
    }

    #[test]
    fn each_end_of_an_epoch_has_its_reason() {
        let then = snapshot(1_000, 1, reads(5, 5, 5));
        let unknown = |later: &Snapshot| match only(&then, later) {
            Interval::Unknown(reason) => reason,
            Interval::Known(_) => panic!("must not be known"),
        };
        let mut swapped = snapshot(2_000, 1, reads(9, 9, 9));
        swapped.samples[0].file_mut().file_id = "8:1:78".into();
        assert_eq!(unknown(&swapped), Reason::IdentityChanged);
        assert_eq!(unknown(&snapshot(2_000, 2, reads(9, 9, 9))), Reason::Restart);
        let mut reset = snapshot(2_000, 1, reads(9, 9, 9));
        reset.samples[0].epoch.reset = "2026-11-21 12:00".into();
        assert_eq!(unknown(&reset), Reason::StatsReset);
        assert_eq!(unknown(&snapshot(2_000, 1, reads(9, 9, 4))), Reason::CounterFell);
        assert_eq!(unknown(&snapshot(1_000, 1, reads(5, 5, 5))), Reason::NoTimePassed);
        let late = Rules::default().gap_ns_max + 1_001;
        assert_eq!(unknown(&snapshot(late, 1, reads(9, 9, 9))), Reason::GapTooLong);
    }

    #[test]
    fn a_file_in_one_capture_only_is_named() {
        let empty = Snapshot { samples: vec![], ..snapshot(0, 1, Counters::ZERO) };
        let one = snapshot(5, 1, Counters::ZERO);
        assert_eq!(only(&empty, &one), Interval::Unknown(Reason::FirstSight));
        assert_eq!(only(&one, &empty), Interval::Unknown(Reason::Gone));
    }

    #[test]
    fn a_file_that_a_complete_source_shows_for_the_first_time_began_at_zero() {
        let complete =
            |run: &str, snapshot: Snapshot| Snapshot { complete: Some(Epoch::for_run(run)), ..snapshot };
        let empty = complete("1", Snapshot { samples: vec![], ..snapshot(0, 1, Counters::ZERO) });
        let one = complete("1", snapshot(5, 1, reads(3, 4096, 70)));
        assert_eq!(only(&empty, &one).known().unwrap().counters.read, Ops::timed(3, 4096, 70));
        let restarted = complete("2", one);
        assert_eq!(only(&empty, &restarted), Interval::Unknown(Reason::FirstSight));
    }

    /// Growing counters: what an engine does in one epoch, up to the extremes of `u64`.
    fn growth() -> impl Strategy<Value = Vec<(u64, Counters)>> {
        let step = (
            1_u64..1_000_000_000,
            prop::array::uniform9(prop_oneof![0_u64..1_000_000, Just(u64::MAX / 40),]),
        );
        prop::collection::vec(step, 2..30).prop_map(|steps| {
            let mut clock = 0_u64;
            let mut sum = [0_u64; 9];
            steps
                .into_iter()
                .map(|(elapsed, adds)| {
                    clock += elapsed;
                    sum.iter_mut().zip(adds).for_each(|(sum, add)| *sum += add);
                    let op = |at: usize| Ops::timed(sum[at], sum[at + 1], sum[at + 2]);
                    let busy_ns = Figure::Known(sum[2]);
                    (clock, Counters { read: op(0), write: op(3), sync: Figure::Known(op(6)), busy_ns })
                })
                .collect()
        })
    }

    fn total(snapshots: &[Snapshot]) -> Delta {
        snapshots
            .windows(2)
            .map(|pair| match only(&pair[0], &pair[1]) {
                Interval::Known(delta) => delta,
                Interval::Unknown(reason) => panic!("{reason}"),
            })
            .reduce(|sum, next| sum.followed_by(&next))
            .unwrap()
    }

    proptest! {
        #[test]
        fn intervals_add_up_and_thinning_changes_nothing(
            steps in growth(),
            keep in prop::collection::vec(any::<bool>(), 30),
        ) {
            let all: Vec<Snapshot> =
                steps.iter().map(|(clock, counters)| snapshot(*clock, 1, *counters)).collect();
            let last = all.len() - 1;
            let thinned: Vec<Snapshot> = all
                .iter()
                .enumerate()
                .filter(|(at, _)| *at == 0 || *at == last || keep[*at])
                .map(|(_, snapshot)| snapshot.clone())
                .collect();
            prop_assert_eq!(total(&all), total(&thinned));
            prop_assert_eq!(Interval::Known(total(&all)), only(&all[0], &all[last]));
        }

        #[test]
        fn a_reset_anywhere_costs_exactly_the_interval_it_falls_into(
            steps in growth(),
            at in any::<prop::sample::Index>(),
        ) {
            let at = at.index(steps.len() - 1) + 1;
            let (_, base) = steps[at];
            let snapshots: Vec<Snapshot> = steps
                .iter()
                .enumerate()
                .map(|(i, (clock, counters))| {
                    if i < at {
                        snapshot(*clock, 1, *counters)
                    } else {
                        snapshot(*clock, 2, counters.since(base).unwrap())
                    }
                })
                .collect();
            for (i, pair) in snapshots.windows(2).enumerate() {
                let interval = only(&pair[0], &pair[1]);
                if i + 1 == at {
                    prop_assert_eq!(interval, Interval::Unknown(Reason::Restart));
                } else {
                    prop_assert!(interval.known().is_some());
                }
            }
        }

        #[test]
        fn nothing_overflows_at_the_extremes(a in any::<[u64; 9]>(), b in any::<[u64; 9]>()) {
            let counters = |v: [u64; 9]| Counters {
                read: Ops::timed(v[0], v[1], v[2]),
                write: Ops::timed(v[3], v[4], v[5]),
                sync: Figure::Known(Ops::timed(v[6], v[7], v[8])),
                busy_ns: Figure::unknown(Reason::NotCounted),
            };
            let interval = only(&snapshot(0, 1, counters(a)), &snapshot(1, 1, counters(b)));
            let grew = a.iter().zip(&b).all(|(then, now)| now >= then);
            prop_assert_eq!(interval.known().is_some(), grew);
            if let Interval::Known(delta) = interval {
                let mut doubled = delta.clone();
                doubled.add(&delta);
                for figure in [doubled.iops(), doubled.mib_per_s()] {
                    prop_assert!(figure.is_finite());
                }
                let _ = (doubled.outstanding(), doubled.counters.transfers().latency_ns());
            }
        }
    }
}
