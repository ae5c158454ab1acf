//! Reads that the kernel or the database issues before a session wants them. Their number for each transaction changes with the
//! load: MariaDB reads a third of the pages of scans ahead where few sessions scan, and none where 192 do; in a page cache with
//! many sessions, pages are evicted before they are used.

use super::Headroom;
use crate::case::Case;
use crate::demand::page_writes;
use crate::figures::IOS_TO_COMPARE;

/// A database that bypasses the page cache reads ahead where its reads take at most this part of the storage's: it times the
/// submission of those that no session waits for.
const LATENCY_PART_MAX: f64 = 0.5;
/// The kernel reads ahead where the storage's reads are at least this many times as large as the database's.
const TIMES_LARGER_MIN: f64 = 4.0;
/// Reads of the database count as no smaller than this: a page cache reads pages.
const READ_BYTES_MIN: f64 = 4096.0;
/// The low end is the figure to plan with divided by the first, the high end the figure times the second. Measured for scans: 0.89 to
/// 1.38 times the figure (`scripts/bench headroom`).
pub(super) const READ_AHEAD_LOW: f64 = 1.2;
pub(super) const READ_AHEAD_HIGH: f64 = 1.4;
pub(super) const READ_AHEAD_REASON: &str = "the share of reads that are read ahead changes with the load";

impl Case<'_> {
    /// A wider range where reads are read ahead.
    pub(super) fn with_read_ahead(&self, room: Headroom) -> Headroom {
        let (low, high) = (room.plan / READ_AHEAD_LOW, room.plan * READ_AHEAD_HIGH);
        if !self.reads_ahead() || low >= room.low && high <= room.high {
            return room;
        }
        let reason = room
            .reason
            .map_or(READ_AHEAD_REASON.to_owned(), |reason| format!("{reason}; {READ_AHEAD_REASON}"));
        Headroom { low: room.low.min(low), high: room.high.max(high), reason: Some(reason), ..room }
    }

    /// Whether the database's reads are read ahead, and are most of what the storage does. Not known beside another program that
    /// does much.
    pub(super) fn reads_ahead(&self) -> bool {
        let (figures, observation) = (&self.figures, self.observation);
        let (Some(database), Some(device)) = (&figures.database, &figures.device) else { return false };
        let (own, below) = (database.counters.read, device.counters.read);
        let is_most = below.count >= device.counters.write.count;
        let has_neighbour = observation.neighbours.iter().any(crate::Neighbour::does_much);
        if !is_most || has_neighbour || below.count < IOS_TO_COMPARE || own.count == 0 {
            return false;
        }
        let bytes = |ops: filestats::Ops| ops.average_bytes().known().unwrap_or(0.0);
        let by_kernel = bytes(below) >= bytes(own).max(READ_BYTES_MIN) * TIMES_LARGER_MIN;
        let latencies = figures.storage_reads.latency_ns().known().zip(below.latency_ns().known());
        let is_early = latencies.is_some_and(|(own_ns, below_ns)| own_ns <= below_ns * LATENCY_PART_MAX);
        by_kernel || is_early && page_writes(&observation.moments).is_direct
    }
}
