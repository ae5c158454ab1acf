//! How many times today's work the storage could carry, and this host with it.
//!
//! ```text
//! work grows x times           then                                                        in the range
//! reads                        x times as many                                             low, plan, high
//! page writes                  x times as many                                             low
//!                              x times as many as pages were read or filled; more are      plan, high
//!                              the same pages again, and those do not become more
//!                              those that the page cache still holds are added             low, plan, high
//!                              those that the database still holds are added: a page
//!                              that was read for each write of the log, if as many were    low, plan
//! bytes of log records         x times as many; the rest of a block is rewritten less often
//!                              blocks that are filled up to 4 KiB have records in their    high
//!                              first 512 bytes only
//! log writes                   F(x) = min(x F, 1 / L): one follows the other, and the      low: L of a storage at rest
//!                              commits that arrive during one share the next one           plan: L at the knee
//!                                                                                          high: none
//! writing transactions         x times their time, where only one session can commit: SQLite low, plan, high
//! what a cap counted           x times, of a cap that was not there when the storage was   low
//!                              measured
//!                              the same, but page writes and log writes as above           plan, high
//! processors                   x times those of the database and of its clients on this    low and plan
//!                              host, and those of the kernel for I/O as the I/Os grow,
//!                              beside others
//!
//! headroom = the largest x at which no resource of the storage, no session and no processor is needed all of the time
//! ```
//!
//! Linear growth is the utilisation law (Denning and Buzen 1978). That commits share log writes is group commit (DeWitt et
//! al. 1984). At the knee N I/Os are outstanding, and one of them is the log's: it gets 1 / (N + 1) of the operations.

mod caps;
mod processors;

use crate::VerdictKind;
use crate::case::Case;
use crate::demand::page_writes;
use crate::figures::{expected_commit_ns, shape, utilisation};
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
/// Where each write of the log is a multiple of this, blocks are filled up: the bytes of its records are not known.
const LOG_SECTOR_BYTES: f64 = 4096.0;
/// Bytes of a page write. What the device wrote besides the log is counted in these.
const PAGE_BYTES: f64 = 8192.0;
/// Device writes for one write of the log and its sync, at most: the log's own, a flush that a stacked device counts, and the
/// file system's journal.
const WRITES_PER_SYNC_MAX: f64 = 4.0;
/// Bytes written for each byte of a page that was read or filled: once, or twice where a doublewrite buffer has them too. More
/// are writes of the same pages again.
const WRITES_PER_PAGE: f64 = 1.5;
/// The same at least. Also the writes for each page where pages are written, and counted, one by one: a doublewrite buffer writes
/// many at once.
const WRITES_PER_PAGE_MIN: f64 = 1.0;
/// Outstanding I/Os at the knee where no curve has one.
const KNEE_DEFAULT: f64 = 16.0;
/// A database that needs all of the storage has at least this many I/Os outstanding beside that of its log, even where a cap
/// puts the knee at one. Measured for updates and bulk loads of MariaDB (`scripts/bench headroom`).
const OUTSTANDING_MIN: f64 = 4.0;
/// The same where the kernel writes the pages, in bursts: between them the log has the storage for itself. Measured for updates
/// of PostgreSQL.
const OUTSTANDING_CACHED_MIN: f64 = 2.0;
/// The smallest write of a log.
const LOG_WRITE_BYTES_MIN: f64 = 512.0;
/// The largest write of a log whose time is measured, and the largest of SQL Server.
const LOG_WRITE_BYTES_FULL: f64 = 61_440.0;
/// What PostgreSQL and InnoDB write at once where commits bring so much: their buffers hold 16 MiB by default.
const LOG_WRITE_BYTES_LARGE: f64 = 1_048_576.0;
/// A writer that never sleeps needs so many times less processor time for each transaction: its caches are warm. Measured for
/// SQLite in Python: 2.2 to 2.5.
const WRITER_ECONOMY: f64 = 2.0;
const MIB: f64 = 1024.0 * 1024.0;
/// Seconds between the I/Os of a flow whose bytes alone count.
const ONE_IO_SECONDS: f64 = 1e6;
/// What the storage gives is as much as was measured within this factor, from one hour to the next.
const MEASURED_WITHIN: f64 = 1.1;
/// The same of a preliminary measurement, whose points are short and few (`scripts/bench first-answer`).
const PRELIMINARY_WITHIN: f64 = 1.5;
/// Part of the storage that a database with a log gets at least: its sessions wait for the log together, and nothing else is
/// asked for then. Measured for bulk loads.
const BESIDE_LOG_MIN: f64 = 0.8;
/// A range whose ends differ by less needs no reason.
const RANGE_WORTH_SAYING: f64 = 1.25;
/// What the headroom of saturated storage means.
const OVER: &str = "none: the demand is more than the storage gives";
const AT_KNEE: &str = "at the knee: more gets through, but waits longer";
/// The largest factor that is searched for.
const FACTOR_MAX: f64 = 1e9;

/// Today's flows, with the log's writes apart, which commits share.
#[derive(Clone)]
struct Growth {
    reads: Vec<Flow>,
    /// Page writes if few of the device's writes belong to the log, and its bytes as one flow.
    most: [Flow; 2],
    /// The same if many of them do, without the part of a block that each write of the log rewrites.
    least: [Flow; 2],
    /// Page writes that the page cache still holds: what records of the log fill is written as pages too.
    held_back: Flow,
    /// The same and those that the database still holds, for a checkpoint or until it needs the memory.
    dirty: Flow,
    /// Pages that were read or that records filled, for each that was written.
    fresh: f64,
    /// The device's writes for the log a second, if many of them do: now, and at most.
    log_ios: f64,
    log_ios_max: f64,
    /// Nanoseconds of one write of the log at a storage at rest.
    log_write_ns: f64,
    /// Bytes of the log a second, without rewritten parts of blocks.
    records_per_s: f64,
    /// The part of these that is records at least, where blocks are filled up.
    records_part_min: f64,
    log_per_s: f64,
    log_bytes_each: f64,
    /// The database's page writes bypass the page cache.
    is_direct: bool,
    /// Writes for each page that was read or filled; more are writes of the same pages again, or of pages that were changed
    /// before.
    writes_per_page: f64,
}

impl Growth {
    /// All I/O but the log's when the work is `factor` times as much, if pages are written so often for each time that they
    /// are read or filled, and otherwise stay as many; `still_held` are those that were not written yet.
    fn grown(&self, factor: f64, writes_per_page: f64, still_held: &Flow) -> Vec<Flow> {
        let fresh = (self.fresh * writes_per_page).min(1.0);
        let times = |flow: &Flow, factor: f64| Flow { per_second: flow.per_second * factor, ..*flow };
        let [pages, log] = &self.least;
        let reads = self.reads.iter().map(|flow| times(flow, factor));
        let pages = times(pages, 1.0 + fresh * (factor - 1.0));
        reads.chain([pages, times(still_held, factor), times(log, factor)]).collect()
    }

    /// The same if the records of the log are as few as its writes allow.
    fn with_fewest_records(&self) -> Growth {
        let fewest = |flow: &Flow| Flow { bytes: flow.bytes * self.records_part_min, ..*flow };
        let [pages, log] = &self.least;
        Growth {
            least: [*pages, fewest(log)],
            held_back: fewest(&self.held_back),
            records_per_s: self.records_per_s * self.records_part_min,
            ..self.clone()
        }
    }

    /// The part of the operations that is not the log's when all are needed, if at the knee so many I/Os are outstanding.
    fn beside_log(&self, knee: f64) -> f64 {
        let outstanding = knee.max(if self.is_direct { OUTSTANDING_MIN } else { OUTSTANDING_CACHED_MIN });
        outstanding / (outstanding + 1.0)
    }

    /// How many times as many writes of the log there are then: one follows the other.
    fn log_writes_grown(&self, factor: f64) -> f64 {
        factor.min((self.log_ios_max / self.log_ios).max(1.0))
    }

    /// How many times as many all I/Os are then.
    fn ios_grown(&self, factor: f64) -> f64 {
        let ios = |factor: f64| {
            let others = self.grown(factor, self.writes_per_page, &self.dirty);
            others.iter().map(|flow| flow.per_second).sum::<f64>()
                + self.log_ios * self.log_writes_grown(factor)
        };
        ios(factor) / ios(1.0)
    }
}

impl Headroom {
    /// A figure that is known as well as what was measured.
    fn measured(plan: f64) -> Headroom {
        Headroom { plan, low: plan / MEASURED_WITHIN, high: plan * MEASURED_WITHIN, reason: None }
    }

    /// The same where the measurement is preliminary: both ends of the range are less sure.
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
            let room = self.below_caps(self.one_by_one(sure(single)), None);
            return Some(self.with_processors(room, None));
        }
        let growth = self.growth();
        let room = growth.as_ref().and_then(|growth| self.shared_log(growth)).unwrap_or(single);
        let room = self.below_caps(sure(room), growth.as_ref());
        Some(self.with_processors(room, growth.as_ref()))
    }

    /// By what the storage was seen to give. Without an upper end where its limit was not seen.
    fn seen_headroom(&self) -> Option<Headroom> {
        let (least, high, reason) = self.seen_room()?.headroom()?;
        let high = high.unwrap_or(f64::INFINITY);
        let room = Headroom { plan: least, low: least, high, reason: Some(reason) };
        let room = if self.observation.commits_one_by_one { self.one_by_one(room) } else { room };
        Some(self.with_processors(self.below_caps(room, None), None))
    }

    fn growth(&self) -> Option<Growth> {
        let (figures, capability, all) = (&self.figures, self.capability?, self.figures.flows()?);
        let writes = *all.iter().find(|flow| flow.side == Side::Write && flow.per_second > 0.0)?;
        let reads: Vec<Flow> = all.into_iter().filter(|flow| flow.side == Side::Read).collect();
        let commits = figures.commits;
        if commits.count == 0 || figures.elapsed_s <= 0.0 {
            return None;
        }
        let log_per_s = (commits.count as f64 / figures.elapsed_s).min(writes.per_second);
        let log_bytes_each = commits.average_bytes().known().unwrap_or(0.0);
        let page_bytes = (writes.per_second * writes.bytes - log_per_s * log_bytes_each).max(0.0);
        // One after the other, at a storage at rest.
        let log_write_ns = expected_commit_ns(capability, log_bytes_each.max(LOG_WRITE_BYTES_MIN));
        let log_write_ns = log_write_ns.or_else(|| figures.commit_ns())?;
        let written = page_writes(&self.observation.moments);
        // A doublewrite buffer writes the bytes of many pages at once.
        let direct_per_s =
            (written.is_direct && written.count > 0).then(|| written.count as f64 / figures.elapsed_s);
        let pages_per_s = (page_bytes / PAGE_BYTES).min(direct_per_s.unwrap_or(f64::INFINITY));
        let besides_pages = (log_per_s * WRITES_PER_SYNC_MAX).min(writes.per_second - pages_per_s);
        // Devices split large writes.
        let split = (log_bytes_each / LOG_WRITE_BYTES_FULL).ceil().max(1.0);
        let log_ios = besides_pages.max(log_per_s * split).min(writes.per_second);
        let kept = match log_bytes_each {
            LOG_BLOCK_BYTES.. => log_bytes_each - LOG_BLOCK_BYTES + 1.0,
            bytes => bytes,
        };
        let records_per_s = log_per_s * kept;
        let is_filled_up = log_bytes_each >= LOG_SECTOR_BYTES && log_bytes_each % LOG_SECTOR_BYTES == 0.0;
        let filler = if is_filled_up { LOG_SECTOR_BYTES - LOG_WRITE_BYTES_MIN } else { 0.0 };
        let records_part_min = ((log_bytes_each - filler) / kept.max(1.0)).min(1.0);
        let bytes_written_per_s = written.bytes as f64 / figures.elapsed_s;
        let held_back = (bytes_written_per_s.min(records_per_s) - page_bytes).max(0.0);
        let read_per_s: f64 = reads.iter().map(|flow| flow.per_second).sum();
        let dirtied = (log_per_s.min(read_per_s) * PAGE_BYTES - page_bytes).max(held_back);
        let brought = reads.iter().map(|flow| flow.per_second * flow.bytes).sum::<f64>() + records_per_s;
        let fresh = match direct_per_s {
            // Pages are read and written one by one.
            Some(direct_per_s) => (read_per_s + records_per_s / PAGE_BYTES) / direct_per_s,
            None => brought / page_bytes.max(1.0),
        };
        let pages = |ios: f64| match ios {
            0.0 => Flow { per_second: 0.0, bytes: PAGE_BYTES, ..writes },
            ios => Flow { per_second: ios, bytes: page_bytes / ios, ..writes },
        };
        // Bytes of the log alone: as one large I/O, whose own cost does not count.
        let log = |bytes_per_s: f64| Flow {
            pattern: Pattern::Sequential,
            per_second: 1.0 / ONE_IO_SECONDS,
            bytes: bytes_per_s * ONE_IO_SECONDS,
            ..writes
        };
        Some(Growth {
            reads,
            most: [pages(writes.per_second - log_per_s), log(log_per_s * log_bytes_each)],
            least: [pages(writes.per_second - log_ios), log(records_per_s)],
            held_back: Flow { per_second: held_back / PAGE_BYTES, bytes: PAGE_BYTES, ..writes },
            dirty: Flow { per_second: dirtied / PAGE_BYTES, bytes: PAGE_BYTES, ..writes },
            fresh,
            log_ios,
            log_ios_max: log_ios / log_per_s * 1e9 / log_write_ns,
            log_write_ns,
            records_per_s,
            records_part_min,
            log_per_s,
            log_bytes_each,
            is_direct: written.is_direct,
            writes_per_page: if direct_per_s.is_some() { WRITES_PER_PAGE_MIN } else { WRITES_PER_PAGE },
        })
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
        // Full log writes, one after the other.
        let full_ns = expected_commit_ns(capability, LOG_WRITE_BYTES_FULL).unwrap_or(growth.log_write_ns);
        let large_ns = full_ns + (LOG_WRITE_BYTES_LARGE - LOG_WRITE_BYTES_FULL) / bytes_per_s_max * 1e9;
        let full_writes = LOG_WRITE_BYTES_FULL * 1e9 / full_ns / growth.records_per_s;
        let large_writes = LOG_WRITE_BYTES_LARGE * 1e9 / large_ns / growth.records_per_s;
        let most: Vec<Flow> =
            growth.reads.iter().chain(&growth.most).chain([&growth.dirty]).copied().collect();
        let most = used(&most)?;
        let low = ((1.0 - used(&[log])?).max(0.0) / most).min(full_writes).max(linear * BESIDE_LOG_MIN);
        let place = self.figures.reads_place.as_ref().and_then(|place| capability.curve(&place.curve));
        let curve = place.or_else(|| capability.nearest_curve(&shape(PAGE_BYTES, 100)));
        let knee = curve.and_then(|curve| curve.knee.as_ref()).map_or(KNEE_DEFAULT, |knee| knee.outstanding);
        let until = |growth: &Growth, share: f64, writes_per_page: f64, still_held: &Flow| {
            largest_factor(|factor| {
                used(&growth.grown(factor, writes_per_page, still_held)).is_none_or(|used| used <= share)
            })
        };
        let beside_log = growth.beside_log(knee);
        let plan = until(growth, beside_log, growth.writes_per_page, &growth.dirty).min(large_writes);
        let plan = plan.max(linear * beside_log).max(low);
        let least = growth.with_fewest_records();
        let high = until(&least, 1.0, WRITES_PER_PAGE_MIN, &least.held_back);
        let high = high.min(bytes_per_s_max / least.records_per_s).max(plan * MEASURED_WITHIN);
        if !high.is_finite() {
            return None;
        }
        let reason = (high > low * RANGE_WORTH_SAYING).then(|| "many commits share a log write".to_owned());
        Some(Headroom { plan, low, high, reason })
    }

    /// One session can write at a time: the times of its transactions add up.
    fn one_by_one(&self, room: Headroom) -> Headroom {
        let [least, share, most] = [0.0, 1.0 / WRITER_ECONOMY, 1.0].map(|part| self.writer_share(part));
        if share <= 0.0 || 1.0 / share >= room.low {
            return room;
        }
        Headroom {
            plan: 1.0 / share,
            low: 1.0 / most / MEASURED_WITHIN,
            high: (1.0 / least * MEASURED_WITHIN).min(room.high),
            reason: Some(format!(
                "one session at a time can commit, and that takes {:.0} % of the time",
                share * 100.0
            )),
        }
    }

    /// The share of the time in which a transaction writes: its commit, the pages that it reads before, and this part of its
    /// processor time.
    fn writer_share(&self, part_of_processors: f64) -> f64 {
        let figures = &self.figures;
        let reads = figures.storage_reads;
        // A page that is changed is read before. Other reads are of transactions that do not write.
        let page_bytes = reads.average_bytes().known().filter(|bytes| *bytes > 0.0).unwrap_or(PAGE_BYTES);
        let changed_each =
            (figures.commits.average_bytes().known().unwrap_or(0.0) / page_bytes).floor().max(1.0);
        let of_writers = match reads.count {
            0 => 1.0,
            count => (figures.commits.count as f64 * changed_each / count as f64).min(1.0),
        };
        let read_share =
            reads.stall_ns.known().unwrap_or(0) as f64 / 1e9 / figures.elapsed_s.max(f64::MIN_POSITIVE);
        figures.commit_share() + of_writers * (read_share + part_of_processors * self.busy_processors())
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
