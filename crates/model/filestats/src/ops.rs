use crate::{Figure, Reason};
use serde::{Deserialize, Serialize};

/// Operations of one kind: cumulative in a [`crate::Sample`], a difference in a [`crate::Delta`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ops {
    /// Operations completed.
    pub count: u64,
    /// Bytes moved (returned, not requested). 0 for syncs.
    pub bytes: u64,
    /// Summed time of the operations in nanoseconds, or why it is not kept.
    pub stall_ns: Figure<u64>,
}

/// The counters of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {
    /// Reads.
    pub read: Ops,
    /// Writes.
    pub write: Ops,
    /// Syncs (fsync, fdatasync, device flushes), where the source counts them.
    pub sync: Figure<Ops>,
    /// Time with at least one operation outstanding, nanoseconds: kept for devices, not for files.
    pub busy_ns: Figure<u64>,
}

impl Ops {
    /// Nothing happened.
    pub const ZERO: Ops = Ops { count: 0, bytes: 0, stall_ns: Figure::Known(0) };

    /// Operations whose time is known.
    pub const fn timed(count: u64, bytes: u64, stall_ns: u64) -> Ops {
        Ops { count, bytes, stall_ns: Figure::Known(stall_ns) }
    }

    fn at_zero(self) -> Ops {
        Ops { count: 0, bytes: 0, stall_ns: self.stall_ns.map(|_| 0) }
    }

    /// `self - earlier`, or `None` where a counter fell. A stall that was not kept at either end is
    /// unknown in the difference; counts and bytes still stand.
    pub(crate) fn since(self, earlier: Ops) -> Option<Ops> {
        Some(Ops {
            count: self.count.checked_sub(earlier.count)?,
            bytes: self.bytes.checked_sub(earlier.bytes)?,
            stall_ns: self.stall_ns.zip(earlier.stall_ns, u64::checked_sub).transpose()?,
        })
    }

    /// The sum of two differences, saturating at `u64::MAX`. No operations took no time, timed or not.
    #[must_use]
    pub fn plus(self, other: Ops) -> Ops {
        let nothing = |ops: Ops| ops.count == 0 && ops.stall_ns.reason().is_some();
        Ops {
            count: self.count.saturating_add(other.count),
            bytes: self.bytes.saturating_add(other.bytes),
            stall_ns: match (nothing(self), nothing(other)) {
                (_, true) => self.stall_ns,
                (true, false) => other.stall_ns,
                (false, false) => self.stall_ns.zip(other.stall_ns, u64::saturating_add),
            },
        }
    }

    /// Mean time of one operation in nanoseconds. No operation takes no time: where a clock of milliseconds counted none, it is
    /// unknown.
    pub fn latency_ns(&self) -> Figure<f64> {
        match (self.count, self.stall_ns) {
            (0, _) => Figure::unknown(Reason::NoOperations),
            (_, Figure::Known(0)) => Figure::unknown(Reason::BelowResolution),
            (count, stall_ns) => stall_ns.map(|stall| stall as f64 / count as f64),
        }
    }

    /// Mean bytes of one operation.
    pub fn average_bytes(&self) -> Figure<f64> {
        match self.count {
            0 => Figure::unknown(Reason::NoOperations),
            count => Figure::Known(self.bytes as f64 / count as f64),
        }
    }
}

impl Counters {
    /// A file that was opened and not used yet.
    pub const ZERO: Counters = Counters {
        read: Ops::ZERO,
        write: Ops::ZERO,
        sync: Figure::Known(Ops::ZERO),
        busy_ns: Figure::unknown(Reason::NotCounted),
    };

    /// Those of a source that counts no syncs.
    pub const fn without_syncs(read: Ops, write: Ops) -> Counters {
        Counters { read, write, sync: Figure::unknown(Reason::NotCounted), ..Counters::ZERO }
    }

    /// Mean time of one sync in nanoseconds.
    pub fn sync_latency_ns(&self) -> Figure<f64> {
        self.sync.map(|sync| sync.latency_ns()).flatten()
    }

    /// Zero wherever anything is known.
    pub(crate) fn at_zero(self) -> Counters {
        Counters {
            read: self.read.at_zero(),
            write: self.write.at_zero(),
            sync: self.sync.map(Ops::at_zero),
            busy_ns: self.busy_ns.map(|_| 0),
        }
    }

    /// `self - earlier`, or `None` where a counter fell. A figure that is unknown at either end is unknown in the
    /// difference.
    pub fn since(self, earlier: Counters) -> Option<Counters> {
        Some(Counters {
            read: self.read.since(earlier.read)?,
            write: self.write.since(earlier.write)?,
            sync: self.sync.zip(earlier.sync, Ops::since).transpose()?,
            busy_ns: self.busy_ns.zip(earlier.busy_ns, u64::checked_sub).transpose()?,
        })
    }

    /// Sums two files over one time, saturating at `u64::MAX`. An unknown sync count stays unknown; the busy
    /// time of both together is not known.
    #[must_use]
    pub fn beside(self, other: Counters) -> Counters {
        Counters { busy_ns: Figure::unknown(Reason::NotCounted), ..self.followed_by(other) }
    }

    /// Sums one file over two consecutive intervals, saturating at `u64::MAX`.
    #[must_use]
    pub fn followed_by(self, next: Counters) -> Counters {
        Counters {
            read: self.read.plus(next.read),
            write: self.write.plus(next.write),
            sync: self.sync.zip(next.sync, Ops::plus),
            busy_ns: self.busy_ns.zip(next.busy_ns, u64::saturating_add),
        }
    }

    /// Reads and writes together ("transfers").
    pub fn transfers(&self) -> Ops {
        self.read.plus(self.write)
    }

    /// Reads, writes and syncs, where counted.
    pub fn operations(&self) -> u64 {
        let syncs = self.sync.known().map_or(0, |sync| sync.count);
        self.read.count.saturating_add(self.write.count).saturating_add(syncs)
    }

    /// Summed time of everything that is timed: reads, writes and, where counted, syncs.
    pub fn stall_ns(&self) -> Figure<u64> {
        let transfers = self.transfers().stall_ns;
        match self.sync {
            Figure::Known(sync) => transfers.zip(sync.stall_ns, u64::saturating_add),
            Figure::Unknown { .. } => transfers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_that_took_less_than_the_clock_resolves_have_no_latency_of_zero() {
        assert_eq!(Ops::timed(40, 163_840, 0).latency_ns(), Figure::unknown(Reason::BelowResolution));
        assert_eq!(Ops::timed(40, 163_840, 1_000_000).latency_ns(), Figure::Known(25_000.0));
        assert_eq!(Ops::ZERO.latency_ns(), Figure::unknown(Reason::NoOperations));
    }

    #[test]
    fn what_did_not_happen_takes_no_known_time_away() {
        let untimed = |count| Ops { count, bytes: 0, stall_ns: Figure::unknown(Reason::TimingOff) };
        let timed = Ops::timed(2, 8192, 70);
        assert_eq!(timed.plus(untimed(0)), timed);
        assert_eq!(untimed(0).plus(timed), timed);
        assert_eq!(timed.plus(untimed(1)).stall_ns, Figure::unknown(Reason::TimingOff));
        assert_eq!(untimed(0).plus(untimed(0)).stall_ns, Figure::unknown(Reason::TimingOff));
    }
}
