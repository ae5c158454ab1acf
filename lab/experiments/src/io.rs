use filestats::{Cache, Counters, Figure, FileInterval, FileKind, Interval, Reason};

/// Writes and syncs of files of some kinds, summed, in one interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoFigures {
    /// Writes.
    pub writes: Figure<u64>,
    /// Bytes written.
    pub write_bytes: Figure<u64>,
    /// Syncs.
    pub syncs: Figure<u64>,
    /// Summed time of writes and syncs, nanoseconds.
    pub wait_ns: Figure<u64>,
}

impl IoFigures {
    /// All figures unknown.
    pub const fn unknown(reason: Reason) -> IoFigures {
        IoFigures {
            writes: Figure::unknown(reason),
            write_bytes: Figure::unknown(reason),
            syncs: Figure::unknown(reason),
            wait_ns: Figure::unknown(reason),
        }
    }

    /// The sum over the files of these kinds, as requested by their users: the same I/O below the page cache is not
    /// added. One file without a known interval makes all figures unknown.
    pub fn from_intervals(intervals: &[FileInterval], kinds: &[FileKind]) -> IoFigures {
        let files = intervals
            .iter()
            .filter(|row| kinds.contains(&row.file.kind) && row.meaning.cache == Cache::Included);
        let mut all = Counters::ZERO;
        for row in files {
            match &row.interval {
                Interval::Known(delta) => all = all.beside(delta.counters),
                Interval::Unknown(reason) => return IoFigures::unknown(*reason),
            }
        }
        IoFigures {
            writes: Figure::Known(all.write.count),
            write_bytes: Figure::Known(all.write.bytes),
            syncs: all.sync.map(|sync| sync.count),
            wait_ns: all.write.stall_ns.zip(sync_ns(all), u64::saturating_add),
        }
    }

    /// Mean size of a write.
    pub fn write_bytes_mean(&self) -> Figure<f64> {
        match (self.writes, self.write_bytes) {
            (Figure::Known(0), Figure::Known(_)) => Figure::unknown(Reason::NoOperations),
            (writes, bytes) => bytes.zip(writes, |bytes, writes| bytes as f64 / writes as f64),
        }
    }
}

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
        let all = files.into_iter().fold(Counters::ZERO, Counters::beside);
        let stall_ns = all.read.stall_ns.zip(all.write.stall_ns, u64::saturating_add);
        RecoveryIo {
            reads: Figure::Known(all.read.count),
            read_bytes: Figure::Known(all.read.bytes),
            writes: Figure::Known(all.write.count),
            write_bytes: Figure::Known(all.write.bytes),
            syncs: all.sync.map(|sync| sync.count),
            stall_ns: stall_ns.zip(sync_ns(all), u64::saturating_add),
            n_max: Figure::unknown(Reason::NotCounted),
        }
    }

    /// Reads, writes and syncs.
    pub fn ios(&self) -> Figure<u64> {
        self.reads.zip(self.writes, u64::saturating_add).zip(self.syncs, u64::saturating_add)
    }
}

fn sync_ns(counters: Counters) -> Figure<u64> {
    match counters.sync {
        Figure::Known(sync) => sync.stall_ns,
        Figure::Unknown { unknown } => Figure::unknown(unknown),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use filestats::{Delta, FileIdentity, Meaning, Ops};

    pub(crate) fn file(kind: FileKind, cache: Cache, write: Ops, sync: Ops) -> FileInterval {
        let counters = Counters { write, sync: Figure::Known(sync), ..Counters::ZERO };
        FileInterval {
            file: FileIdentity {
                instance: "engine".into(),
                database: None,
                database_id: None,
                file_id: "1".into(),
                kind,
                path: "/log".into(),
                drive: None,
                handle: None,
                object: None,
            }
            .into(),
            meaning: Meaning { cache, ..Meaning::REQUESTS },
            ended_unix_ns: 0,
            interval: Interval::Known(Delta { elapsed_ns: 1_000_000_000, counters, latencies: None }),
        }
    }

    #[test]
    fn files_of_the_kind_are_summed_without_the_layer_below() {
        let intervals = [
            file(FileKind::Log, Cache::Included, Ops::timed(3, 12_288, 30), Ops::timed(2, 0, 500)),
            file(FileKind::Log, Cache::Included, Ops::timed(1, 4_096, 10), Ops::timed(1, 0, 100)),
            file(FileKind::Log, Cache::Below, Ops::timed(9, 90_000, 9), Ops::ZERO),
            file(FileKind::Data, Cache::Included, Ops::timed(5, 40_960, 50), Ops::ZERO),
        ];
        let log = IoFigures::from_intervals(&intervals, &[FileKind::Log]);
        let known = (log.writes, log.write_bytes, log.syncs, log.wait_ns);
        assert_eq!(known, (Figure::Known(4), Figure::Known(16_384), Figure::Known(3), Figure::Known(640)));
        assert_eq!(log.write_bytes_mean(), Figure::Known(4_096.0));
        assert_eq!(IoFigures::from_intervals(&intervals, &[FileKind::Data]).writes, Figure::Known(5));
    }

    #[test]
    fn one_unknown_file_makes_the_sum_unknown() {
        let known = file(FileKind::Log, Cache::Included, Ops::timed(3, 12_288, 30), Ops::ZERO);
        let unknown = FileInterval { interval: Interval::Unknown(Reason::CounterFell), ..known.clone() };
        let log = IoFigures::from_intervals(&[known, unknown], &[FileKind::Log]);
        assert_eq!(log, IoFigures::unknown(Reason::CounterFell));
        assert_eq!(log.write_bytes_mean().reason(), Some(Reason::CounterFell));
    }

    #[test]
    fn without_writes_their_mean_size_is_unknown() {
        let none = IoFigures::from_intervals(&[], &[FileKind::Log]);
        assert_eq!(
            (none.writes, none.write_bytes_mean()),
            (Figure::Known(0), Figure::unknown(Reason::NoOperations))
        );
    }
}
