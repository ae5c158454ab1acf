//! Where the time of commits goes.
//!
//! ```text
//! Store::write ──queued──> the turn … commit() ──appended──> in the log's block ──buffered──> its write begins
//!    ──submitted──> written ──durable──> all before it too ──acknowledged──> commit() returns
//! ```
//! Of every commit that is acknowledged as durable, the parts add up to the whole: the wait for the writer's turn and
//! the time in `commit`. What the program does between the two is its own.

use super::now_ns;
use filestats::LatencyBuckets;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{SystemTime, UNIX_EPOCH};

/// A part of a commit's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Another transaction writes.
    Queued,
    /// Its records are made and put into the log's open block.
    Appended,
    /// They are there; the write that takes them has not begun.
    Buffered,
    /// The write is in flight.
    Submitted,
    /// The write is done, one before it is not.
    Durable,
    /// It is durable; the thread that committed does not run yet.
    Acknowledged,
}

impl Part {
    /// In the order in which a commit goes through them.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Appended, Self::Buffered, Self::Submitted, Self::Durable, Self::Acknowledged];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Appended => "appended",
            Self::Buffered => "buffered",
            Self::Submitted => "submitted",
            Self::Durable => "durable",
            Self::Acknowledged => "acknowledged",
        }
    }

    /// What happens meanwhile.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Queued => "another transaction has the turn to write",
            Self::Appended => "its records are made and put into the log's block",
            Self::Buffered => "in the block, until a write takes it",
            Self::Submitted => "its write is in flight",
            Self::Durable => "written, one before it is not yet",
            Self::Acknowledged => "durable, until its thread runs again",
        }
    }
}

/// Of all commits, one part or the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartTimes {
    /// Summed, in nanoseconds.
    pub sum_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// All of them.
    pub latencies: LatencyBuckets,
}

/// One commit that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowCommit {
    /// Which.
    pub sequence: u64,
    /// When it was acknowledged, in nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Its parts, in the order of [`Part::ALL`], in nanoseconds.
    pub parts_ns: [u64; Part::ALL.len()],
}

impl SlowCommit {
    /// All of it.
    #[must_use]
    pub fn whole_ns(&self) -> u64 {
        self.parts_ns.iter().sum()
    }
}

/// Where the time of the commits went that were acknowledged as durable, since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitTimes {
    /// From the wait for the turn to the return of `commit`, without the program's own time in between.
    pub whole: PartTimes,
    /// In the order of [`Part::ALL`].
    pub parts: [PartTimes; Part::ALL.len()],
    /// A commit is kept as a slow one from this on: longer than 99 of 100 before it.
    pub slow_from_ns: u64,
    /// The last slow ones, the oldest first.
    pub slow: Vec<SlowCommit>,
}

impl CommitTimes {
    /// How many there were.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.whole.latencies.count()
    }
}

/// The instants of one commit, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instants {
    pub queued_ns: u64,
    pub called: u64,
    pub appended: u64,
    pub submitted: u64,
    pub written: u64,
    pub durable: u64,
}

/// Slow commits that are kept.
const SLOW_KEPT: usize = 16;
/// What is slow is asked again after so many commits; before the first time it is `SLOW_AT_FIRST_NS`.
const SLOW_EVERY: u64 = 256;
const SLOW_AT_FIRST_NS: u64 = 10_000_000;

/// The parts, and the whole after them.
const COLUMNS: usize = Part::ALL.len() + 1;
const WHOLE: usize = Part::ALL.len();

/// A commit has just come back from its write, and little of this is in the processor's caches: so what one commit
/// adds to lies together. A line of `buckets` has the counts of all parts in one band of time, and parts often share
/// one (buffered and appended, submitted and the whole); a part that took no time at all is not counted anywhere.
#[repr(C, align(64))]
pub(crate) struct CommitBoard {
    sums_ns: [AtomicU64; COLUMNS],
    /// Commits since `slow_from_ns` was asked.
    since: AtomicU64,
    longest_ns: [AtomicU64; COLUMNS],
    /// 0: not asked yet.
    slow_from_ns: AtomicU64,
    buckets: [[AtomicU64; COLUMNS + 1]; LatencyBuckets::LEN],
    slow_count: AtomicU64,
    slow: [SlowBoard; SLOW_KEPT],
}

const _: () = assert!(std::mem::offset_of!(CommitBoard, buckets) == 128);

/// `version` is odd while it is written, and twice its number in the order of all when it is whole.
#[repr(C, align(64))]
struct SlowBoard {
    version: AtomicU64,
    sequence: AtomicU64,
    at_unix_ns: AtomicU64,
    parts_ns: [AtomicU64; Part::ALL.len()],
}

impl CommitBoard {
    /// Takes in a commit whose thread runs again now.
    pub(crate) fn record(&self, sequence: u64, at: &Instants) {
        // What another thread noted may lie a little before what this one did: no part is less than nothing, and
        // each begins where the one before it ended.
        let mut last = at.called;
        let mut until = |instant: u64| {
            let instant = instant.max(last);
            instant - std::mem::replace(&mut last, instant)
        };
        let parts_ns = [
            at.queued_ns,
            until(at.appended),
            until(at.submitted),
            until(at.written),
            until(at.durable),
            until(now_ns()),
        ];
        let whole_ns = parts_ns.iter().sum();
        for (part, ns) in parts_ns.into_iter().enumerate().filter(|(_, ns)| *ns > 0) {
            self.add(part, ns);
        }
        self.add(WHOLE, whole_ns);
        if self.since.fetch_add(1, Relaxed) + 1 >= SLOW_EVERY {
            self.since.store(0, Relaxed);
            let slow = self.histogram(WHOLE).at_most_ns(99.0).unwrap_or(u64::MAX);
            self.slow_from_ns.store(slow, Relaxed);
        }
        if whole_ns >= self.slow_from_ns() {
            self.keep_slow(sequence, &parts_ns);
        }
    }

    fn add(&self, column: usize, ns: u64) {
        self.sums_ns[column].fetch_add(ns, Relaxed);
        if ns > self.longest_ns[column].load(Relaxed) {
            self.longest_ns[column].fetch_max(ns, Relaxed);
        }
        self.buckets[LatencyBuckets::index(ns)][column].fetch_add(1, Relaxed);
    }

    fn histogram(&self, column: usize) -> LatencyBuckets {
        LatencyBuckets::from_counts(std::array::from_fn(|at| self.buckets[at][column].load(Relaxed)))
    }

    fn slow_from_ns(&self) -> u64 {
        match self.slow_from_ns.load(Relaxed) {
            0 => SLOW_AT_FIRST_NS,
            ns => ns,
        }
    }

    fn keep_slow(&self, sequence: u64, parts_ns: &[u64; Part::ALL.len()]) {
        let number = self.slow_count.fetch_add(1, Relaxed) + 1;
        let slot = &self.slow[number as usize % SLOW_KEPT];
        slot.version.store(2 * number - 1, Relaxed);
        std::sync::atomic::fence(Release);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        slot.sequence.store(sequence, Relaxed);
        slot.at_unix_ns.store(now.as_nanos() as u64, Relaxed);
        for (to, from) in slot.parts_ns.iter().zip(parts_ns) {
            to.store(*from, Relaxed);
        }
        slot.version.store(2 * number, Release);
    }

    pub(crate) fn read(&self) -> CommitTimes {
        let whole = self.histogram(WHOLE);
        let commits = whole.count();
        let times = |column: usize| {
            let mut counts: [u64; LatencyBuckets::LEN] =
                std::array::from_fn(|at| self.buckets[at][column].load(Relaxed));
            // What took no time was not counted.
            counts[0] = commits.saturating_sub(counts[1..].iter().sum());
            PartTimes {
                latencies: LatencyBuckets::from_counts(counts),
                sum_ns: self.sums_ns[column].load(Relaxed),
                longest_ns: self.longest_ns[column].load(Relaxed),
            }
        };
        let mut slow: Vec<(u64, SlowCommit)> = self.slow.iter().filter_map(SlowBoard::read).collect();
        slow.sort_unstable_by_key(|(version, _)| *version);
        CommitTimes {
            whole: times(WHOLE),
            parts: std::array::from_fn(times),
            slow_from_ns: self.slow_from_ns(),
            slow: slow.into_iter().map(|(_, slow)| slow).collect(),
        }
    }
}

impl SlowBoard {
    fn read(&self) -> Option<(u64, SlowCommit)> {
        let version = self.version.load(Acquire);
        let slow = SlowCommit {
            sequence: self.sequence.load(Relaxed),
            at_unix_ns: self.at_unix_ns.load(Relaxed),
            parts_ns: std::array::from_fn(|part| self.parts_ns[part].load(Relaxed)),
        };
        std::sync::atomic::fence(Acquire);
        let whole = version > 0 && version.is_multiple_of(2) && version == self.version.load(Relaxed);
        whole.then_some((version, slow))
    }
}
