//! Reads that the kernel or the database issues before a session wants them. How many there are for each transaction changes with
//! the load: MariaDB reads a third of the pages of scans ahead where few sessions scan, and none where 192 do; in a page cache with
//! many sessions, pages are evicted before they are used.

use super::Headroom;
use crate::case::Case;
use crate::figures::IOS_TO_COMPARE;

/// The part of a storage's read time that sessions wait for, at most, where a database reads ahead.
const WAITED_PART_MAX: f64 = 0.5;
/// So many times larger are the storage's reads than the database's, at least, where the kernel reads ahead.
const TIMES_LARGER_MIN: f64 = 4.0;
/// The truth is at most so many times less and more than the figure to plan with. Measured for scans: 0.89 to 1.38 of it
/// (`scripts/bench headroom`).
const TIMES_LESS: f64 = 1.2;
const TIMES_MORE: f64 = 1.4;
const REASON: &str = "how much is read ahead of the sessions changes with the load";

impl Case<'_> {
    /// A wider range where most reads are read ahead.
    pub(super) fn with_read_ahead(&self, room: Headroom) -> Headroom {
        if !self.reads_ahead() {
            return room;
        }
        Headroom {
            low: room.low.min(room.plan / TIMES_LESS),
            high: room.high.max(room.plan * TIMES_MORE),
            reason: Some(room.reason.map_or(REASON.to_owned(), |reason| format!("{reason}; {REASON}"))),
            ..room
        }
    }

    /// Whether most of the storage's I/Os are such reads.
    fn reads_ahead(&self) -> bool {
        let figures = &self.figures;
        let (Some(database), Some(device)) = (&figures.database, &figures.device) else { return false };
        let (own, below) = (database.counters.read, device.counters.read);
        let is_most = below.count >= device.counters.write.count;
        if !is_most || below.count < IOS_TO_COMPARE || own.count == 0 {
            return false;
        }
        let [own_bytes, below_bytes] = [own, below].map(|ops| ops.average_bytes().known().unwrap_or(0.0));
        let waited = figures.storage_reads.latency_ns().known().zip(below.latency_ns().known());
        let is_waited_for = waited.is_none_or(|(own_ns, below_ns)| own_ns > below_ns * WAITED_PART_MAX);
        below_bytes >= own_bytes * TIMES_LARGER_MIN || !is_waited_for
    }
}
