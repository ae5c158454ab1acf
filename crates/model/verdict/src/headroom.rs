//! Headroom: the multiple of today's work that the storage could carry, and this host with it.
//!
//! ```text
//! work grows x times           then                                                        in the range
//! reads                        x times as many                                             low, plan, high
//!                              more or fewer where the database or the kernel reads ahead  low, high
//! page writes                  x times as many                                             low
//!                              x times as many as pages were read or filled; more are      plan, high
//!                              the same pages again, and those do not become more
//!                              those that the page cache still holds are added             low, plan, high
//!                              those that the database still holds are added: a page
//!                              that was read for each write of the log, if as many were    low, plan
//! bytes of log records         x times as many, where counted as such; else of log writes, whose blocks are rewritten less often
//!                              blocks that are filled up to 4 KiB have records in their    high
//!                              first 512 bytes only
//! log writes                   F(x) = min(x F, 1 / L, new cap): one follows the other,     low: L of a storage at rest
//!                              and the commits that arrive during one share the next one   plan: L at the knee
//!                                                                                          high: none
//!                              x times as many where each commit fills one: bulk loads       plan
//! writing transactions         x times their time, where only one session can commit: SQLite low, plan, high
//!                              the same in a part of the time, where most reads are of     low, plan
//!                              transactions that only read: several sessions write
//!                              x times that of their turns to write, one at a time         low, plan
//! what a cap counted           x times, of a cap that was not there when the storage was   low
//!                              measured
//!                              the same, but page writes and log writes as above           plan, high
//!                              log writes of bulk loads x times too, and three quarters    plan
//!                              of it, but for an engine with one writer; 3/4 of x          low
//! processors                   x times those of the database and of its clients on this    low and plan
//!                              host, and those of the kernel for I/O as the I/Os grow,
//!                              beside others
//!                              a tenth less where the log waits for a new cap              plan
//!
//! headroom = the largest x at which no resource of the storage, no session and no processor is needed all of the time
//! ```
//!
//! Linear growth is the utilisation law (Denning and Buzen 1978). That commits share log writes is group commit (DeWitt et
//! al. 1984). At the knee N I/Os are outstanding, and one of them is the log's: it gets at most 1 / (N + 1) of the operations.

mod caps;
mod growth;
mod processors;
mod read_ahead;

use crate::VerdictKind;
use crate::case::Case;
use crate::figures::{expected_commit_ns, shape, utilisation};
use capability::{Flow, Side};
use growth::{Growth, LOG_WRITE_BYTES_FULL, LOG_WRITE_BYTES_MIN, PAGE_BYTES, WRITES_PER_PAGE_MIN};
use workload::Pattern;

/// Factor by which today's demand can grow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Headroom {
    /// The figure to plan with.
    pub plan: f64,
    /// The low end of its range, for what must not fail.
    pub low: f64,
    /// The high end of its range.
    pub high: f64,
    /// Why it is a range, or what else than the storage limits it.
    pub reason: Option<String>,
}

/// Outstanding I/Os at the knee where no curve has one.
const KNEE_DEFAULT: f64 = 16.0;
/// Bytes that PostgreSQL and InnoDB write at once where commits bring that much: their buffers hold 16 MiB by
/// default.
const LOG_WRITE_BYTES_LARGE: f64 = 1_048_576.0;
/// A writer that never sleeps needs this many times less processor time for each transaction: its caches are warm. Measured
/// for SQLite in Python: 2.2 to 2.5.
const WRITER_ECONOMY: f64 = 2.0;
/// The part of the time in which the lock of SQLite can be held where several sessions write: one that finds it taken sleeps for 1 to
/// 100 ms (the busy timeout of SQLite), and it may be free meanwhile. Measured for writes that take 8 ms: 0.5 with 16 sessions that
/// read and write, 0.33 with 128, 0.2 with 192.
const SHARED_LOCK_HELD: f64 = 0.5;
const SHARED_LOCK_HELD_LOW: f64 = 0.33;
/// Several sessions write where at most this part of the reads is of pages that are changed: the others are of transactions that only
/// read.
const READS_OF_SEVERAL_WRITERS: f64 = 0.15;
/// From this part on one session may do all of it.
const READS_OF_ONE_WRITER: f64 = 0.5;
const MIB: f64 = 1024.0 * 1024.0;
/// The storage performs as measured within this factor, from one hour to the next.
const MEASURED_WITHIN: f64 = 1.1;
/// Such a factor for a preliminary measurement, whose points are short and few (`scripts/bench
/// first-answer`).
const PRELIMINARY_WITHIN: f64 = 1.5;
/// Part of the storage that a database with a log is taken to get at least: its sessions wait for the log together, and nothing else
/// is requested then. Measured for bulk loads: 0.6 to 0.9.
const BESIDE_LOG_MIN: f64 = 0.75;
/// A range whose ends differ by less needs no reason.
const RANGE_WORTH_SAYING: f64 = 1.25;
/// From the end of a turn to write until the thread of the next transaction runs. Inferred from batches of an engine with one writer: one every
/// 52 us, of which the turn takes 24.
const HANDOVER_NS: f64 = 25_000.0;
/// A turn to write is this many times shorter where the next one follows at once, at most: the caches are warm. Assumed, not
/// measured.
const TURN_ECONOMY_MAX: f64 = 4.0;
/// Meaning of the headroom of saturated storage.
const OVER: &str = "none: the demand is more than the storage gives";
const AT_KNEE: &str = "at the knee: more gets through, but waits longer";
/// The largest factor that is searched for.
const FACTOR_MAX: f64 = 1e9;

impl Headroom {
    /// A figure that is known as well as what was measured.
    fn measured(plan: f64) -> Headroom {
        Headroom { plan, low: plan / MEASURED_WITHIN, high: plan * MEASURED_WITHIN, reason: None }
    }

    /// Widens the range where the measurement is preliminary: both of its ends are less sure.
    fn preliminary(self) -> Headroom {
        let wider = PRELIMINARY_WITHIN / MEASURED_WITHIN;
        let reason = self.reason.unwrap_or_else(|| "the measurement is preliminary".to_owned());
        Headroom { low: self.low / wider, high: self.high * wider, reason: Some(reason), ..self }
    }

    /// The reason beside a verdict. Saturated storage may still give more I/Os, and each of them waits longer: the figure must
    /// not read as room.
    pub(crate) fn reason_beside(self, kind: VerdictKind) -> Option<String> {
        let saturated = match kind {
            VerdictKind::DemandExceedsCapability if self.plan < 1.0 => OVER,
            VerdictKind::DemandExceedsCapability => AT_KNEE,
            _ => return self.reason,
        };
        Some(self.reason.map_or(saturated.to_owned(), |reason| format!("{saturated}; {reason}")))
    }

    fn at_most(self, most: f64) -> Headroom {
        let (plan, low) = (self.plan.min(most), self.low.min(most));
        Headroom { plan, low, high: self.high.min(most * MEASURED_WITHIN), ..self }
    }
}

impl Case<'_> {
    /// How far today's demand could grow; `None` without I/O, and where nothing is known of the storage.
    pub(crate) fn headroom(&self) -> Option<Headroom> {
        let used = self.figures.utilisation.map(|used| used.value).filter(|used| *used > 0.0);
        let Some(capability) = self.capability.filter(|_| !self.lacks_writes()) else {
            // The reads by their curve, and all by what was seen: the smaller holds.
            return Some(self.seen_headroom()?.at_most(used.map_or(f64::INFINITY, |used| 1.0 / used)));
        };
        let used = used?;
        let single = Headroom::measured(1.0 / used);
        let sure = |room: Headroom| if capability.is_preliminary() { room.preliminary() } else { room };
        if self.observation.commits_one_by_one {
            let room = self.one_by_one(sure(self.with_read_ahead(single)));
            return Some(self.with_processors(self.below_caps(room, None), None));
        }
        let growth = self.growth();
        let room = growth.as_ref().and_then(|growth| self.shared_log(growth)).unwrap_or(single);
        let room = self.below_caps(sure(self.with_read_ahead(room)), growth.as_ref());
        Some(self.with_processors(self.with_one_writer(room), growth.as_ref()))
    }

    /// Headroom by the performance that the storage was seen to reach. Without an upper end where its limit
    /// was not seen.
    fn seen_headroom(&self) -> Option<Headroom> {
        let (least, high, reason) = self.seen_room()?.headroom()?;
        let high = high.unwrap_or(f64::INFINITY);
        let room = Headroom { plan: least, low: least, high, reason: Some(reason) };
        let room = if self.observation.commits_one_by_one { self.one_by_one(room) } else { room };
        Some(self.with_processors(self.with_one_writer(self.below_caps(room, None)), None))
    }

    /// Commits of many sessions share the writes of the log.
    fn shared_log(&self, growth: &Growth) -> Option<Headroom> {
        let capability = self.capability?;
        let used = |flows: &[Flow]| utilisation(capability, flows).map(|used| used.value);
        // If all of it grew alike.
        let linear = 1.0 / used(&[self.figures.flows()?, vec![growth.dirty]].concat())?;
        let log = Flow {
            side: Side::Write,
            pattern: Pattern::Random,
            per_second: growth.log_ios_max,
            bytes: growth.log_bytes_each.max(LOG_WRITE_BYTES_MIN),
        };
        let fastest = capability.curves.iter().flat_map(|curve| &curve.points).map(|point| point.mib_per_s);
        let bytes_per_s_max = fastest.fold(0.0, f64::max) * MIB;
        // Consecutive full log writes.
        let full_ns = expected_commit_ns(capability, LOG_WRITE_BYTES_FULL).unwrap_or(growth.log_write_ns);
        let large_ns = full_ns + (LOG_WRITE_BYTES_LARGE - LOG_WRITE_BYTES_FULL) / bytes_per_s_max * 1e9;
        let writes_per_s = |each_ns: f64| (1e9 / each_ns).min(growth.log_writes_per_s_max());
        let full_writes = LOG_WRITE_BYTES_FULL * writes_per_s(full_ns) / growth.records_per_s;
        let large_writes = LOG_WRITE_BYTES_LARGE * writes_per_s(large_ns) / growth.records_per_s;
        let most: Vec<Flow> =
            growth.reads.iter().chain(&growth.most).chain([&growth.dirty]).copied().collect();
        let most = used(&most)?;
        let low = ((1.0 - used(&[log])?).max(0.0) / most).min(full_writes).max(linear * BESIDE_LOG_MIN);
        let place = self.figures.reads_place.as_ref().and_then(|place| capability.curve(&place.curve));
        let curve = place.or_else(|| capability.nearest_curve(&shape(PAGE_BYTES, 100)));
        let knee = curve.and_then(|curve| curve.knee.as_ref()).map_or(KNEE_DEFAULT, |knee| knee.outstanding);
        let beside_log = growth.beside_log(knee);
        // The log needs no more operations than today's grown alike. Where commits share them, it gets no more than its part of the
        // knee.
        let is_bulk_load = growth.is_bulk_load();
        let log_now = used(&[Flow { per_second: growth.log_ios, bytes: LOG_WRITE_BYTES_MIN, ..log }])?;
        let least_left = if is_bulk_load { 0.0 } else { beside_log };
        let left = |factor: f64| (1.0 - factor * log_now).max(least_left);
        let until = |growth: &Growth, left: &dyn Fn(f64) -> f64, writes_per_page: f64, still_held: &Flow| {
            largest_factor(|factor| {
                let others = used(&growth.grown(factor, writes_per_page, still_held));
                others.is_none_or(|used| used <= left(factor))
            })
        };
        let plan = until(growth, &left, growth.writes_per_page, &growth.dirty);
        let (plan, sure) = if is_bulk_load {
            (plan * self.part_of_bulk_loads(), BESIDE_LOG_MIN)
        } else {
            (plan, beside_log)
        };
        let plan = plan.min(large_writes).max(linear * sure).max(low);
        let low = low.min(plan / MEASURED_WITHIN);
        let least = growth.with_fewest_records();
        let high = until(&least, &|_| 1.0, WRITES_PER_PAGE_MIN, &least.held_back);
        let high =
            (high * MEASURED_WITHIN).min(bytes_per_s_max / least.records_per_s).max(plan * MEASURED_WITHIN);
        if !high.is_finite() {
            return None;
        }
        let reason = (high > low * RANGE_WORTH_SAYING).then(|| "many commits share a log write".to_owned());
        Some(Headroom { plan, low, high, reason })
    }

    /// The part of what their I/O alone would allow that bulk loads reach. Measured: 0.6 to 0.9, for those of an engine with one writer 0.8 to 1.3.
    fn part_of_bulk_loads(&self) -> f64 {
        if self.observation.writer_share().is_some() { 1.0 } else { BESIDE_LOG_MIN }
    }

    /// One transaction can write at a time, though commits share log writes. The times of their turns add up.
    fn with_one_writer(&self, room: Headroom) -> Headroom {
        let Some(share) = self.observation.writer_share().filter(|share| *share > 0.0) else { return room };
        let share = share + self.observation.commits_per_s().unwrap_or(0.0) * HANDOVER_NS / 1e9;
        let plan = 1.0 / share;
        let high = room.high.min(plan * TURN_ECONOMY_MAX);
        if plan >= room.plan {
            return Headroom { high: high.max(room.plan), ..room };
        }
        Headroom {
            plan,
            low: room.low.min(plan / MEASURED_WITHIN),
            high: high.max(plan),
            reason: Some(format!(
                "one transaction at a time can write, and that takes {:.1} % of the time",
                share * 100.0
            )),
        }
    }

    /// One session can write at a time: the times of its transactions add up.
    fn one_by_one(&self, room: Headroom) -> Headroom {
        let [least, share, most] = [0.0, 1.0 / WRITER_ECONOMY, 1.0].map(|part| self.writer_share(part));
        let usable = self.usable_of_lock(SHARED_LOCK_HELD);
        if share <= 0.0 || usable / share >= room.low {
            return room;
        }
        let sleeps =
            if usable < 1.0 { "; sessions that find the lock taken sleep, also once it is free" } else { "" };
        Headroom {
            plan: usable / share,
            low: self.usable_of_lock(SHARED_LOCK_HELD_LOW) / most / MEASURED_WITHIN,
            high: (1.0 / least * MEASURED_WITHIN).min(room.high),
            reason: Some(format!(
                "one session at a time can write, and that takes {:.0} % of the time{sleeps}",
                share * 100.0
            )),
        }
    }

    /// The part of the time in which sessions can write sequentially, if it is `shared` where several do.
    fn usable_of_lock(&self, shared: f64) -> f64 {
        let several = (READS_OF_ONE_WRITER - self.reads_of_writers())
            / (READS_OF_ONE_WRITER - READS_OF_SEVERAL_WRITERS);
        1.0 - several.clamp(0.0, 1.0) * (1.0 - shared)
    }

    /// The share of the time in which a transaction writes: its commit, the pages that it reads before, and this part of its
    /// processor time.
    fn writer_share(&self, part_of_processors: f64) -> f64 {
        let figures = &self.figures;
        let read_share = figures.storage_reads.stall_ns.known().unwrap_or(0) as f64
            / 1e9
            / figures.elapsed_s.max(f64::MIN_POSITIVE);
        let processors = part_of_processors * self.busy_processors();
        figures.commit_share() + self.reads_of_writers() * (read_share + processors)
    }

    /// The part of the reads that is of pages which are changed then, 0 to 1. The others are of transactions that do not write.
    fn reads_of_writers(&self) -> f64 {
        let (reads, commits) = (self.figures.storage_reads, self.figures.commits);
        let page_bytes = reads.average_bytes().known().filter(|bytes| *bytes > 0.0).unwrap_or(PAGE_BYTES);
        let changed_each = (commits.average_bytes().known().unwrap_or(0.0) / page_bytes).floor().max(1.0);
        match reads.count {
            0 => 1.0,
            count => (commits.count as f64 * changed_each / count as f64).min(1.0),
        }
    }
}

/// The largest factor for which a condition holds that fails for all larger ones; infinite where it always holds.
fn largest_factor(holds: impl Fn(f64) -> bool) -> f64 {
    if holds(FACTOR_MAX) {
        return f64::INFINITY;
    }
    let (mut yes, mut no) = (0.0, FACTOR_MAX);
    // To one part in 2^52, whatever the size.
    for _ in 0..f64::MANTISSA_DIGITS + FACTOR_MAX.log2() as u32 {
        let middle = f64::midpoint(yes, no);
        if holds(middle) { yes = middle } else { no = middle }
    }
    yes
}
