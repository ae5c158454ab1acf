//! The parts of the time that commits take.
//!
//! ```text
//! Store::write ──queued──> the turn … commit() ──appended──> in the log's block ──buffered──> its write begins
//!    ──submitted──> written ──durable──> all writes before it too ──acknowledged──> commit() returns
//! ```
//! For every commit that is acknowledged as durable, the parts add up to the whole: the wait for the writer's turn and
//! the time in `commit`. The time that the program takes between the two is not counted.

use crate::monotonic_ns;
use filestats::LatencyBuckets;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{SystemTime, UNIX_EPOCH};

/// A part of a commit's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommitPart {
    /// Another transaction has the turn to write.
    Queued,
    /// Its records are built and copied into the log's open block.
    Appended,
    /// The records are in the block; its write has not begun.
    Buffered,
    /// The write is in flight.
    Submitted,
    /// The write has ended, an earlier one has not.
    Durable,
    /// The commit is durable; its thread does not run yet.
    Acknowledged,
}

impl CommitPart {
    /// In the order in which a commit passes through them.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Appended, Self::Buffered, Self::Submitted, Self::Durable, Self::Acknowledged];

    /// The name in text and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// A description of what happens in it.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Queued => ("queued", "another transaction has the turn to write"),
            Self::Appended => ("appended", "its records are made and put into the log's block"),
            Self::Buffered => ("buffered", "in the block, until a write takes it"),
            Self::Submitted => ("submitted", "its write is in flight"),
            Self::Durable => ("durable", "written, one before it is not yet"),
            Self::Acknowledged => ("acknowledged", "durable, until its thread runs again"),
        }
    }
}

/// The times of one part of all commits, or of whole commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartTimes {
    /// The sum, in nanoseconds.
    pub sum_ns: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
    /// The histogram.
    pub latencies: LatencyBuckets,
}

/// A slow commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowCommit {
    /// The number of the commit.
    pub sequence: u64,
    /// When it was acknowledged, in nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Its parts, in the order of [`CommitPart::ALL`], in nanoseconds.
    pub parts_ns: [u64; CommitPart::ALL.len()],
}

impl SlowCommit {
    /// The sum of its parts, in nanoseconds.
    #[must_use]
    pub fn whole_ns(&self) -> u64 {
        self.parts_ns.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }
}

/// The times of all commits that were acknowledged as durable since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitTimes {
    /// From the wait for the turn to the return of `commit`, without the program's time between the two.
    pub whole: PartTimes,
    /// In the order of [`CommitPart::ALL`].
    pub parts: [PartTimes; CommitPart::ALL.len()],
    /// The threshold of slow commits: the 99th percentile of the commits before.
    pub slow_from_ns: u64,
    /// The last slow commits, the oldest first.
    pub slow: Vec<SlowCommit>,
}

impl CommitTimes {
    /// The number of commits.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.whole.latencies.count()
    }
}

/// The instants of one commit, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Instants {
    /// Nanoseconds that it waited for the writer's turn.
    pub queued_ns: u64,
    /// `commit` was called.
    pub called: u64,
    /// Its records were in the log's open block.
    pub appended: u64,
    /// The write of the block began.
    pub submitted: u64,
    /// The write ended.
    pub written: u64,
    /// Every write before it had ended, too.
    pub durable: u64,
}

/// Slow commits that are kept.
const SLOW_KEPT: usize = 16;
/// The threshold of slow commits is computed again after this many commits; before the first time it is
/// `SLOW_AT_FIRST_NS`.
const SLOW_EVERY: u64 = 256;
const SLOW_AT_FIRST_NS: u64 = 10_000_000;

/// The parts, and the whole after them.
const COLUMNS: usize = CommitPart::ALL.len() + 1;
const WHOLE: usize = CommitPart::ALL.len();

/// A commit that returns from its write finds little of this in the processor's caches, so the counters that one commit
/// changes are adjacent. A line of `buckets` has the counts of all parts in one band of time, and parts often share a
/// band (buffered and appended, submitted and the whole). A part that took no time is not counted.
#[repr(C, align(64))]
pub struct CommitBoard {
    sums_ns: [AtomicU64; COLUMNS],
    /// Commits since `slow_from_ns` was computed.
    since: AtomicU64,
    longest_ns: [AtomicU64; COLUMNS],
    /// 0: not computed yet.
    slow_from_ns: AtomicU64,
    buckets: [[AtomicU64; COLUMNS + 1]; LatencyBuckets::LEN],
    slow_count: AtomicU64,
    slow: [SlowBoard; SLOW_KEPT],
}

const _: () = assert!(std::mem::offset_of!(CommitBoard, buckets) == 128);

/// `version` is odd during a write, and twice the number of the slow commit afterwards.
#[repr(C, align(64))]
struct SlowBoard {
    version: AtomicU64,
    sequence: AtomicU64,
    at_unix_ns: AtomicU64,
    parts_ns: [AtomicU64; CommitPart::ALL.len()],
}

impl CommitBoard {
    /// Counts a commit whose thread runs again now. Returns how long it waited for the log, in nanoseconds: the parts before are
    /// work of the commit, or the wait for another transaction.
    pub(crate) fn record(&self, sequence: u64, at: &Instants) -> u64 {
        // Instants that another thread took may lie slightly before those of this thread: no part is negative, and each
        // begins where the one before it ended.
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
            until(monotonic_ns()),
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
        parts_ns[CommitPart::Buffered as usize..].iter().sum()
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

    fn keep_slow(&self, sequence: u64, parts_ns: &[u64; CommitPart::ALL.len()]) {
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

    /// The times so far.
    pub fn read(&self) -> CommitTimes {
        let whole = self.histogram(WHOLE);
        let commits = whole.count();
        let times = |column: usize| {
            let mut counts: [u64; LatencyBuckets::LEN] =
                std::array::from_fn(|at| self.buckets[at][column].load(Relaxed));
            // Parts that took no time were not counted.
            counts[0] = counts[1..].iter().fold(commits, |rest, count| rest.saturating_sub(*count));
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
