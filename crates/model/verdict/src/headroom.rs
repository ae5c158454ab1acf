//! How many times today's work the storage could carry, and this host with it.
//!
//! ```text
//! work grows x times           then                                                        in the range
//! reads, page writes           x times as many                                             low, plan, high
//! bytes of log records         x times as many; the rest of a block is rewritten less often
//! log writes                   F(x) = min(x F, 1 / L): one follows the other, and the      low: L of a storage at rest
//!                              commits that arrive during one share the next one           plan: L at the knee
//!                                                                                          high: none
//! commits of one session       x times their time, where only one session can commit       low, plan, high
//! processors                   x times those of the database, beside others                 low and plan
//!
//! headroom = the largest x at which no resource of the storage, no session and no processor is needed all of the time
//! ```
//!
//! Linear growth is the utilisation law (Denning and Buzen 1978). That commits share log writes is group commit (DeWitt et
//! al. 1984). At the knee N I/Os are outstanding, and one of them is the log's: it gets 1 / (N + 1) of the operations.

use crate::case::Case;
use crate::figures::{expected_commit_ns, utilisation};
use capability::{Flow, Side};
use workload::Pattern;

/// How many times today's demand can be carried.
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

/// PostgreSQL writes its log in blocks of 8 KiB, and writes the last one again for the next commit. Engines with smaller blocks
/// rewrite less: this counts only where writes of the log are that large.
const LOG_BLOCK_BYTES: f64 = 8192.0;
/// Bytes of a page write. What the device wrote besides the log is counted in these.
const PAGE_BYTES: f64 = 8192.0;
/// Device writes for one write of the log and its sync, at most: the log's own, a flush that a stacked device counts, and the
/// file system's journal.
const WRITES_PER_SYNC_MAX: f64 = 4.0;
/// Outstanding I/Os at the knee where no curve has one.
const KNEE_DEFAULT: f64 = 16.0;
/// Processors need up to this many times less for each transaction when there are many: fewer wake-ups, warm caches, shared
/// log writes. Measured for single-row commits of PostgreSQL: 5 (`scripts/bench headroom`).
const PROCESSOR_ECONOMY: f64 = 6.0;
/// Part of the processors that the scheduler leaves to many sessions beside other programs that would take all of them.
const FAIR_SHARE: f64 = 0.5;
/// The smallest write of a log.
const LOG_WRITE_BYTES_MIN: f64 = 512.0;
/// The largest write of a log whose time is measured.
const LOG_WRITE_BYTES_FULL: f64 = 61_440.0;
const MIB: f64 = 1024.0 * 1024.0;
/// Seconds between the I/Os of a flow whose bytes alone count.
const ONE_IO_SECONDS: f64 = 1e6;
/// A range whose ends differ by less needs no reason.
const RANGE_WORTH_SAYING: f64 = 1.25;

/// Today's flows, with the log's writes apart, which commits share.
struct Growth {
    /// What grows with the work if few of the device's writes belong to the log.
    rest_most: Vec<Flow>,
    /// The same if many of them do, without the part of a block that each write of the log rewrites.
    rest_least: Vec<Flow>,
    /// The device's writes for the log if many of them do, for each commit that waited.
    log_writes_each: f64,
    /// Bytes of the log a second, without rewritten parts of blocks.
    records_per_s: f64,
    log_bytes_each: f64,
}

impl Case<'_> {
    /// How far today's demand could grow; `None` without a capability or without I/O.
    pub(crate) fn headroom(&self) -> Option<Headroom> {
        let used = self.figures.utilisation.filter(|used| used.value > 0.0)?.value;
        let now = 1.0 / used;
        let single = Headroom { plan: now, low: now, high: now, reason: None };
        let storage = if self.observation.commits_one_by_one {
            self.one_by_one(single)
        } else {
            self.growth().and_then(|growth| self.shared_log(&growth, now)).unwrap_or(single)
        };
        Some(self.with_processors(storage))
    }

    fn growth(&self) -> Option<Growth> {
        let (figures, all) = (&self.figures, self.figures.flows()?);
        let writes = *all.iter().find(|flow| flow.side == Side::Write && flow.per_second > 0.0)?;
        let commits = figures.commits;
        if commits.count == 0 || figures.elapsed_s <= 0.0 {
            return None;
        }
        let log_per_s = (commits.count as f64 / figures.elapsed_s).min(writes.per_second);
        let log_bytes_each = commits.average_bytes().known().unwrap_or(0.0);
        let other_bytes = (writes.per_second * writes.bytes - log_per_s * log_bytes_each).max(0.0);
        let most = (log_per_s * WRITES_PER_SYNC_MAX).min(writes.per_second - other_bytes / PAGE_BYTES);
        let device_per_s = most.max(log_per_s);
        let kept = match log_bytes_each {
            LOG_BLOCK_BYTES.. => log_bytes_each - LOG_BLOCK_BYTES + 1.0,
            bytes => bytes,
        };
        let rest = |log_ios: f64, record_bytes_each: f64| {
            let mut flows: Vec<Flow> = all.iter().filter(|flow| flow.side == Side::Read).copied().collect();
            let left = writes.per_second - log_ios;
            if left > 0.0 {
                flows.push(Flow { per_second: left, bytes: other_bytes / left, ..writes });
            }
            // Their bytes alone: as one large I/O, whose own cost does not count.
            let bytes = log_per_s * record_bytes_each * ONE_IO_SECONDS;
            let pattern = Pattern::Sequential;
            flows.push(Flow { side: Side::Write, pattern, per_second: 1.0 / ONE_IO_SECONDS, bytes });
            flows
        };
        Some(Growth {
            rest_most: rest(log_per_s, log_bytes_each),
            rest_least: rest(device_per_s, kept),
            log_writes_each: device_per_s / log_per_s,
            records_per_s: log_per_s * kept,
            log_bytes_each,
        })
    }

    /// Commits of many sessions share the writes of the log.
    fn shared_log(&self, growth: &Growth, now: f64) -> Option<Headroom> {
        let capability = self.capability?;
        let used = |flows: &[Flow]| utilisation(capability, flows).map(|used| used.value);
        let bytes = growth.log_bytes_each.max(LOG_WRITE_BYTES_MIN);
        // One after the other, at a storage at rest.
        let each_ns = expected_commit_ns(capability, bytes).or_else(|| self.figures.commit_ns())?;
        let log = Flow {
            side: Side::Write,
            pattern: Pattern::Random,
            per_second: growth.log_writes_each * 1e9 / each_ns,
            bytes,
        };
        let (most, least) = (used(&growth.rest_most)?, used(&growth.rest_least)?);
        // Full log writes of 60 KiB, one after the other.
        let records_per_s = growth.records_per_s;
        let full_ns = expected_commit_ns(capability, LOG_WRITE_BYTES_FULL).unwrap_or(each_ns);
        let full_writes = LOG_WRITE_BYTES_FULL * 1e9 / full_ns / records_per_s;
        let low = ((1.0 - used(&[log])?).max(0.0) / most).min(full_writes).max(now);
        let curve = self.figures.reads_place.as_ref().and_then(|place| capability.curve(&place.curve));
        let knee = curve.and_then(|curve| curve.knee.as_ref());
        let outstanding = knee.map_or(KNEE_DEFAULT, |knee| knee.outstanding.max(1.0));
        let plan = (outstanding / (outstanding + 1.0) / least).min(full_writes).max(low);
        let fastest = capability.curves.iter().flat_map(|curve| &curve.points).map(|point| point.mib_per_s);
        let bandwidth = fastest.fold(0.0, f64::max) * MIB / records_per_s;
        let high = (1.0 / least).min(bandwidth).max(plan);
        if !high.is_finite() {
            return None;
        }
        let reason = (high > low * RANGE_WORTH_SAYING)
            .then(|| "commits share log writes as they become many".to_owned());
        Some(Headroom { plan, low, high, reason })
    }

    /// One session can commit at a time: their time adds up.
    fn one_by_one(&self, room: Headroom) -> Headroom {
        let share = self.figures.commit_share();
        if share <= 0.0 || 1.0 / share >= room.low {
            return room;
        }
        let chain = 1.0 / share;
        Headroom {
            plan: chain,
            low: chain,
            high: chain,
            reason: Some(format!(
                "one session at a time can commit, and commits take {:.0} % of the time",
                share * 100.0
            )),
        }
    }

    /// The database's processes need their part of the processors x times; others keep theirs.
    fn with_processors(&self, room: Headroom) -> Headroom {
        let Some(used) = self.observation.processors().filter(|used| used.own > 0.0) else { return room };
        let strict = ((1.0 - used.others) / used.own).max(1.0);
        let limit = strict.max(FAIR_SHARE / used.own);
        let high = room.high.min(PROCESSOR_ECONOMY / used.own);
        if limit >= room.plan {
            return Headroom { low: room.low.min(strict), high: high.max(room.plan), ..room };
        }
        let reason = format!(
            "the processors of this host run out first: the database uses {:.0} % of them, others {:.0} %, and the storage alone \
             would carry {:.0} x",
            used.own * 100.0,
            used.others * 100.0,
            room.plan
        );
        Headroom { plan: limit, low: room.low.min(strict), high: high.max(limit), reason: Some(reason) }
    }
}
