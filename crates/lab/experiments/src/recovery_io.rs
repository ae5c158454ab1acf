use filestats::{Counters, Figure, Reason};

/// The I/Os of a recovery, of all files of the engine, from opening until all pages were written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryIo {
    /// Reads.
    pub reads: Figure<u64>,
    /// Bytes read.
    pub read_bytes: Figure<u64>,
    /// Writes.
    pub writes: Figure<u64>,
    /// Bytes written.
    pub write_bytes: Figure<u64>,
    /// Syncs.
    pub syncs: Figure<u64>,
    /// Summed time of all, nanoseconds.
    pub stall_ns: Figure<u64>,
    /// The most I/Os in flight at the same time.
    pub n_max: Figure<u64>,
}

impl RecoveryIo {
    /// All figures unknown.
    pub const fn unknown(reason: Reason) -> RecoveryIo {
        RecoveryIo {
            reads: Figure::unknown(reason),
            read_bytes: Figure::unknown(reason),
            writes: Figure::unknown(reason),
            write_bytes: Figure::unknown(reason),
            syncs: Figure::unknown(reason),
            stall_ns: Figure::unknown(reason),
            n_max: Figure::unknown(reason),
        }
    }

    /// The sum of files' counters, which started at 0 with the recovery.
    pub fn from_counters(files: impl IntoIterator<Item = Counters>) -> RecoveryIo {
        let zero = Figure::Known(0);
        let mut all = RecoveryIo {
            reads: zero,
            read_bytes: zero,
            writes: zero,
            write_bytes: zero,
            syncs: zero,
            stall_ns: zero,
            n_max: Figure::unknown(Reason::NotCounted),
        };
        let sum = |a: Figure<u64>, b: Figure<u64>| a.zip(b, u64::saturating_add);
        for counters in files {
            let (read, write) = (counters.read, counters.write);
            all.reads = sum(all.reads, Figure::Known(read.count));
            all.read_bytes = sum(all.read_bytes, Figure::Known(read.bytes));
            all.writes = sum(all.writes, Figure::Known(write.count));
            all.write_bytes = sum(all.write_bytes, Figure::Known(write.bytes));
            all.syncs = sum(all.syncs, counters.sync.map(|sync| sync.count));
            let sync_ns = match counters.sync {
                Figure::Known(sync) => sync.stall_ns,
                Figure::Unknown { unknown } => Figure::unknown(unknown),
            };
            all.stall_ns = [read.stall_ns, write.stall_ns, sync_ns].into_iter().fold(all.stall_ns, sum);
        }
        all
    }

    /// Reads, writes and syncs.
    pub fn ios(&self) -> Figure<u64> {
        self.reads.zip(self.writes, u64::saturating_add).zip(self.syncs, u64::saturating_add)
    }
}
