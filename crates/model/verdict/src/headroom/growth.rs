//! Today's demand in parts that grow differently, and what they are when the work is more.

use crate::case::Case;
use crate::demand::page_writes;
use crate::figures::expected_commit_ns;
use capability::{Flow, Side};
use workload::{CapKind, Pattern};

/// Bytes of a page write. Device writes besides the log are counted in these.
pub(super) const PAGE_BYTES: f64 = 8192.0;
/// The largest page of a database: InnoDB's.
const PAGE_BYTES_MAX: f64 = 65_536.0;
/// The smallest write of a log.
pub(super) const LOG_WRITE_BYTES_MIN: f64 = 512.0;
/// The largest write of a log whose time is measured, and the largest of SQL Server.
pub(super) const LOG_WRITE_BYTES_FULL: f64 = 61_440.0;
/// PostgreSQL writes its log in blocks of 8 KiB, and writes the last one again for the next commit. Engines with smaller blocks
/// rewrite less: this counts only where writes of the log are that large.
const LOG_BLOCK_BYTES: f64 = 8192.0;
/// Where each write of the log is a multiple of this, blocks are filled up: the bytes of its records are not known.
const LOG_SECTOR_BYTES: f64 = 4096.0;
/// Device writes for one write of the log and its sync, at most: the log's own, a flush that a stacked device counts, and the
/// file system's journal.
const WRITES_PER_SYNC_MAX: f64 = 4.0;
/// Bytes written for each byte of a page that was read or filled: once, or twice where a doublewrite buffer has them too. More
/// are writes of the same pages again.
const WRITES_PER_PAGE: f64 = 1.5;
/// Bytes written for each byte of a page that was read or filled, at least. Also the writes for each page where pages are
/// written, and counted, one by one: a doublewrite buffer writes many at once.
pub(super) const WRITES_PER_PAGE_MIN: f64 = 1.0;
/// A database that needs all of the storage has at least this many I/Os outstanding beside that of its log, even where a cap
/// puts the knee at one. Measured for updates and bulk loads of MariaDB (`scripts/bench headroom`).
const OUTSTANDING_MIN: f64 = 4.0;
/// I/Os outstanding beside that of the log, whatever the knee, where the kernel writes the pages, in bursts: between them the
/// log has the storage for itself. Measured for updates of PostgreSQL.
const OUTSTANDING_CACHED: f64 = 2.0;
/// Seconds between the I/Os of a flow whose bytes alone count.
const ONE_IO_SECONDS: f64 = 1e6;
/// The log's part of all bytes, from which commits that fill a write each are a bulk load.
const LOG_OF_BULK_LOAD_MIN: f64 = 0.1;

/// Today's flows, with the log's writes apart, which commits share.
#[derive(Clone)]
pub(super) struct Growth {
    pub(super) reads: Vec<Flow>,
    /// Page writes if few of the device's writes belong to the log, and its bytes as one flow.
    pub(super) most: [Flow; 2],
    /// Page writes and the log's bytes if many of the device's writes belong to the log, without the part of a block that
    /// each write of the log rewrites.
    pub(super) least: [Flow; 2],
    /// Page writes that the page cache still holds: what records of the log fill is written as pages too.
    pub(super) held_back: Flow,
    /// `held_back` and the page writes that the database still holds, for a checkpoint or until it needs the
    /// memory.
    pub(super) dirty: Flow,
    /// Pages that were read or that records filled, for each that was written.
    pub(super) fresh: f64,
    /// The device's writes for the log a second, if many of all are: now, and at most, sequentially and below new caps.
    pub(super) log_ios: f64,
    pub(super) log_ios_max: f64,
    /// A new cap limits these: one that was not there when the storage was measured.
    log_is_capped: bool,
    /// Nanoseconds of one write of the log at a storage at rest.
    pub(super) log_write_ns: f64,
    /// Bytes of the log a second, without rewritten parts of blocks.
    pub(super) records_per_s: f64,
    /// The part of these that is records at least, where blocks are filled up.
    pub(super) records_part_min: f64,
    pub(super) log_per_s: f64,
    pub(super) log_bytes_each: f64,
    /// The database's page writes bypass the page cache.
    pub(super) is_direct: bool,
    /// Writes for each page that was read or filled; more are writes of the same pages again, or of pages that were changed
    /// before.
    pub(super) writes_per_page: f64,
}

impl Growth {
    /// All I/O but the log's when the work is `factor` times as much, if pages are written `writes_per_page` times for each
    /// time that they are read or filled, and otherwise stay as many; `still_held` are those that were not written yet.
    pub(super) fn grown(&self, factor: f64, writes_per_page: f64, still_held: &Flow) -> Vec<Flow> {
        let fresh = (self.fresh * writes_per_page).min(1.0);
        let times = |flow: &Flow, factor: f64| Flow { per_second: flow.per_second * factor, ..*flow };
        let [pages, log] = &self.least;
        let reads = self.reads.iter().map(|flow| times(flow, factor));
        let pages = times(pages, 1.0 + fresh * (factor - 1.0));
        reads.chain([pages, times(still_held, factor), times(log, factor)]).collect()
    }

    /// Returns the growth if the records of the log are as few as its writes allow.
    pub(super) fn with_fewest_records(&self) -> Growth {
        let fewest = |flow: &Flow| Flow { bytes: flow.bytes * self.records_part_min, ..*flow };
        let [pages, log] = &self.least;
        Growth {
            least: [*pages, fewest(log)],
            held_back: fewest(&self.held_back),
            records_per_s: self.records_per_s * self.records_part_min,
            ..self.clone()
        }
    }

    /// The part of the operations that is not the log's when all are needed, if at the knee `knee` I/Os are outstanding.
    pub(super) fn beside_log(&self, knee: f64) -> f64 {
        let outstanding = if self.is_direct { knee.max(OUTSTANDING_MIN) } else { OUTSTANDING_CACHED };
        outstanding / (outstanding + 1.0)
    }

    /// Whether much of the I/O is that of commits that fill a write of the log each: they share none.
    pub(super) fn is_bulk_load(&self) -> bool {
        let log = self.log_per_s * self.log_bytes_each;
        let flows = self.reads.iter().chain(&self.most);
        let all: f64 = flows.map(|flow| flow.per_second * flow.bytes).sum();
        self.log_bytes_each >= LOG_WRITE_BYTES_FULL && log >= LOG_OF_BULK_LOAD_MIN * all
    }

    /// Growth of the log's writes at this growth of the work: one follows the other.
    pub(super) fn log_writes_grown(&self, factor: f64) -> f64 {
        factor.min(self.log_writes_grown_max())
    }

    fn log_writes_grown_max(&self) -> f64 {
        (self.log_ios_max / self.log_ios).max(1.0)
    }

    /// Writes of the log a second, at most.
    pub(super) fn log_writes_per_s_max(&self) -> f64 {
        self.log_ios_max * self.log_per_s / self.log_ios
    }

    /// The factor from which the writes of the log wait for a new cap.
    pub(super) fn log_waits_for_cap_from(&self) -> f64 {
        if self.log_is_capped { self.log_writes_grown_max() } else { f64::INFINITY }
    }

    /// Growth of all I/Os at this growth of the work.
    pub(super) fn ios_grown(&self, factor: f64) -> f64 {
        let ios = |factor: f64| {
            let others = self.grown(factor, self.writes_per_page, &self.dirty);
            others.iter().map(|flow| flow.per_second).sum::<f64>()
                + self.log_ios * self.log_writes_grown(factor)
        };
        ios(factor) / ios(1.0)
    }
}

impl Case<'_> {
    /// Multiple of today's writes that the new caps let pass.
    fn writes_below_new_caps(&self) -> f64 {
        let of_writes =
            self.new_caps().filter(|(cap, rate, _)| cap.kind == CapKind::WriteIops && *rate > 0.0);
        of_writes.fold(f64::INFINITY, |least, (cap, rate, _)| least.min(cap.per_second as f64 / rate))
    }

    /// The parts of today's demand; `None` without writes and commits, or where no time of a commit is known.
    pub(super) fn growth(&self) -> Option<Growth> {
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
        let counted_per_s =
            self.observation.log_records_per_s().map(|bytes| bytes.min(log_per_s * log_bytes_each));
        let records_per_s = counted_per_s.unwrap_or(log_per_s * kept);
        let is_filled_up = counted_per_s.is_none()
            && log_bytes_each >= LOG_SECTOR_BYTES
            && log_bytes_each % LOG_SECTOR_BYTES == 0.0;
        let records_part_min = if is_filled_up {
            ((log_bytes_each - LOG_SECTOR_BYTES + LOG_WRITE_BYTES_MIN) / kept.max(1.0)).min(1.0)
        } else {
            1.0
        };
        let bytes_written_per_s = written.bytes as f64 / figures.elapsed_s;
        let held_back = (bytes_written_per_s.min(records_per_s) - page_bytes).max(0.0);
        let read_per_s: f64 = reads.iter().map(|flow| flow.per_second).sum();
        let changed_per_s = log_per_s.min(read_per_s);
        let brought = reads.iter().map(|flow| flow.per_second * flow.bytes).sum::<f64>() + records_per_s;
        // Where pages are read and written one by one, the reads show how large they are.
        let each_bytes = match reads.first() {
            Some(read) if written.is_direct => read.bytes.clamp(PAGE_BYTES, PAGE_BYTES_MAX),
            _ => PAGE_BYTES,
        };
        let dirty = if written.is_direct {
            let per_second = (changed_per_s - direct_per_s.unwrap_or(0.0)).max(0.0);
            Flow { per_second, bytes: each_bytes * WRITES_PER_PAGE, ..writes }
        } else {
            let bytes_per_s = (changed_per_s * PAGE_BYTES - page_bytes).max(held_back);
            Flow { per_second: bytes_per_s / PAGE_BYTES, bytes: PAGE_BYTES, ..writes }
        };
        let fresh = match direct_per_s {
            Some(direct_per_s) => (read_per_s + records_per_s / each_bytes) / direct_per_s,
            None => brought / page_bytes.max(1.0),
        };
        let pages = |ios: f64| match ios {
            0.0 => Flow { per_second: 0.0, bytes: PAGE_BYTES, ..writes },
            ios => Flow { per_second: ios, bytes: page_bytes / ios, ..writes },
        };
        let log_ios_max = log_ios / log_per_s * 1e9 / log_write_ns;
        let cap = (writes.per_second * self.writes_below_new_caps()).max(log_ios);
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
            dirty,
            fresh,
            log_ios,
            log_ios_max: log_ios_max.min(cap),
            log_is_capped: cap < log_ios_max,
            log_write_ns,
            records_per_s,
            records_part_min,
            log_per_s,
            log_bytes_each,
            is_direct: written.is_direct,
            writes_per_page: if direct_per_s.is_some() { WRITES_PER_PAGE_MIN } else { WRITES_PER_PAGE },
        })
    }
}
