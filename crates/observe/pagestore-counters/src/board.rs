//! The counters as bytes: one table of atomics, in native byte order, of one store.
//!
//! ```text
//! head      magic "HDRMPGS2" (written last), sizes, process, store, directory, opening, closed
//! files     for control, data, log: reads, writes, syncs with bytes, stalls, errors and histograms
//! log       the journal's counts                 engine   the pages' and checkpoints' counts
//! commits   a sum and a histogram for each part of a commit's time; the last slow ones, each under a sequence lock
//! state     the log's state under a sequence lock, filled in when `asked` is ahead of `answered`
//! ```
//! How many operations there were is the sum of their histogram: one add less, and the two cannot disagree.

use super::anatomy::CommitBoard;
use super::state::StateBoard;
use super::{Counts, FileStatistics, now_ns};
use crate::control::Control;
use crate::disk::FileId;
use crate::log::LOG_HEAD_BYTES;
use filestats::{Counters as FileCounters, Figure, Latencies, LatencyBuckets, Ops, Reason};
use published::{Board as Shown, ProcessIdentity};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use std::time::Duration;

const MAGIC: u64 = u64::from_ne_bytes(*b"HDRMPGS2");
/// Until the store is open: only the process is there.
const OPENING: u64 = u64::from_ne_bytes(*b"HDRMPGS0");
pub(crate) const BOARD_BYTES: usize = size_of::<Board>().next_multiple_of(4096);
const BOOT_ID_BYTES: usize = 36;

#[repr(C)]
pub(crate) struct Board {
    pub head: Head,
    pub files: [FileBoard; 3],
    pub log: LogCounts,
    pub engine: EngineCounts,
    pub commits: CommitBoard,
    pub state: StateBoard,
}

// SAFETY: all of it is atomics, in structs and arrays of them; aligned to 64 at most.
unsafe impl Shown for Board {}

#[repr(C, align(64))]
pub(crate) struct Head {
    magic: AtomicU64,
    bytes: AtomicU64,
    pid: AtomicU32,
    /// How often the store has been opened: this opening's number.
    epoch: AtomicU32,
    start_ticks: AtomicU64,
    pid_namespace: AtomicU64,
    store: [AtomicU64; 2],
    directory: [AtomicU64; 2],
    page_bytes: AtomicU64,
    sector_bytes: AtomicU64,
    vlf_bytes: AtomicU64,
    opened_ns: AtomicU64,
    pub closed: AtomicU32,
    boot_id: [AtomicU8; BOOT_ID_BYTES],
}

/// Whose a board is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process that has the store open.
    pub process: ProcessIdentity,
    /// The store's identity.
    pub store: u128,
    /// How often it has been opened: this is the number of this opening.
    pub epoch: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Log blocks are padded to this.
    pub log_sector_bytes: u64,
    /// Bytes of a virtual log file.
    pub vlf_bytes: u64,
    opened_ns: u64,
    /// Device and inode of its directory.
    pub(crate) directory: [u64; 2],
}

impl Owner {
    /// How long it has been open.
    #[must_use]
    pub fn open_for(&self) -> Duration {
        Duration::from_nanos(now_ns().saturating_sub(self.opened_ns))
    }

    /// Where a virtual log file's place begins in the log file.
    #[must_use]
    pub fn slot_offset(&self, slot: usize) -> u64 {
        LOG_HEAD_BYTES + slot as u64 * self.vlf_bytes
    }
}

impl Head {
    /// Says which process it is: what one leaves that is killed before its store is open is known for dead too.
    pub(super) fn begin(&self, process: &ProcessIdentity) {
        self.bytes.store(BOARD_BYTES as u64, Relaxed);
        self.pid.store(process.pid, Relaxed);
        self.start_ticks.store(process.start_ticks, Relaxed);
        self.pid_namespace.store(process.pid_namespace, Relaxed);
        for (to, from) in self.boot_id.iter().zip(process.boot_id.bytes()) {
            to.store(from, Relaxed);
        }
        self.magic.store(OPENING, Release);
    }

    /// Says which store it is, once it is open.
    pub(super) fn announce(&self, directory: &Path, control: &Control) {
        let Some(place) = directory_id(directory) else { return };
        if self.magic.load(Relaxed) != OPENING {
            return;
        }
        self.epoch.store(control.epoch, Relaxed);
        self.store[0].store(control.store as u64, Relaxed);
        self.store[1].store((control.store >> 64) as u64, Relaxed);
        for (to, from) in self.directory.iter().zip(place) {
            to.store(from, Relaxed);
        }
        self.page_bytes.store(control.geometry.page_bytes as u64, Relaxed);
        self.sector_bytes.store(control.geometry.sector_bytes as u64, Relaxed);
        self.vlf_bytes.store(control.geometry.vlf_bytes, Relaxed);
        self.opened_ns.store(now_ns(), Relaxed);
        self.magic.store(MAGIC, Release);
    }

    /// The process that made it; `None` of another version.
    pub(super) fn process(&self) -> Option<ProcessIdentity> {
        let known = matches!(self.magic.load(Acquire), MAGIC | OPENING);
        if !known || self.bytes.load(Relaxed) != BOARD_BYTES as u64 {
            return None;
        }
        let boot_id: [u8; BOOT_ID_BYTES] = std::array::from_fn(|at| self.boot_id[at].load(Relaxed));
        Some(ProcessIdentity {
            pid: self.pid.load(Relaxed),
            start_ticks: self.start_ticks.load(Relaxed),
            boot_id: std::str::from_utf8(&boot_id).ok()?.to_owned(),
            pid_namespace: self.pid_namespace.load(Relaxed),
        })
    }

    /// Whose it is; `None` where the store is not open yet, or of another version.
    pub(super) fn owner(&self) -> Option<Owner> {
        if self.magic.load(Acquire) != MAGIC {
            return None;
        }
        let [low, high] = [0, 1].map(|at: usize| u128::from(self.store[at].load(Relaxed)));
        Some(Owner {
            process: self.process()?,
            store: high << 64 | low,
            epoch: self.epoch.load(Relaxed),
            page_bytes: self.page_bytes.load(Relaxed),
            log_sector_bytes: self.sector_bytes.load(Relaxed),
            vlf_bytes: self.vlf_bytes.load(Relaxed),
            opened_ns: self.opened_ns.load(Relaxed),
            directory: [0, 1].map(|at: usize| self.directory[at].load(Relaxed)),
        })
    }
}

/// Device and inode: a directory has many names.
pub(super) fn directory_id(directory: &Path) -> Option<[u64; 2]> {
    let found = std::fs::metadata(directory).ok()?;
    Some([found.dev(), found.ino()])
}

/// Counts of the journal.
#[repr(C, align(64))]
pub(crate) struct LogCounts {
    pub writes: AtomicU64,
    pub write_bytes: AtomicU64,
    pub write_ns: AtomicU64,
    pub commits: AtomicU64,
    pub records: AtomicU64,
}

/// Counts of the rest of the engine.
#[repr(C, align(64))]
pub(crate) struct EngineCounts {
    pub page_reads: AtomicU64,
    pub page_redone: AtomicU64,
    pub page_writes: AtomicU64,
    pub page_write_bytes: AtomicU64,
    pub data_syncs: AtomicU64,
    pub checkpoints: AtomicU64,
}

/// Operations of one kind on one file: what each adds to lies in two cache lines.
#[repr(C, align(64))]
pub(crate) struct OpsBoard {
    bytes: AtomicU64,
    errors: AtomicU64,
    stall_ns: AtomicU64,
    buckets: [AtomicU64; LatencyBuckets::LEN],
}

impl OpsBoard {
    pub(super) fn count<T>(&self, bytes: usize, result: std::io::Result<T>, ns: u64) -> std::io::Result<T> {
        self.ended(bytes, ns, result.is_ok());
        result
    }

    /// An I/O has come back, with or without an error.
    pub(super) fn ended(&self, bytes: usize, ns: u64, done: bool) {
        if done {
            self.bytes.fetch_add(bytes as u64, Relaxed);
            self.stall_ns.fetch_add(ns, Relaxed);
            self.buckets[LatencyBuckets::index(ns)].fetch_add(1, Relaxed);
        } else {
            self.errors.fetch_add(1, Relaxed);
        }
    }

    /// Bytes of those that came back without an error.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    fn read(&self) -> (Ops, LatencyBuckets) {
        let histogram = LatencyBuckets::from_counts(std::array::from_fn(|at| self.buckets[at].load(Relaxed)));
        let stall_ns = self.stall_ns.load(Relaxed);
        (Ops::timed(histogram.count(), self.bytes.load(Relaxed), stall_ns), histogram)
    }
}

/// The I/O of one file.
#[repr(C, align(64))]
pub(crate) struct FileBoard {
    pub reads: OpsBoard,
    pub writes: OpsBoard,
    pub syncs: OpsBoard,
}

impl Board {
    pub(crate) fn counts(&self) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        Counts {
            log_writes: load(&self.log.writes),
            log_write_bytes: load(&self.log.write_bytes),
            log_write_ns: load(&self.log.write_ns),
            commits: load(&self.log.commits),
            page_reads: load(&self.engine.page_reads),
            pages_redone: load(&self.engine.page_redone),
            page_writes: load(&self.engine.page_writes),
            page_write_bytes: load(&self.engine.page_write_bytes),
            data_syncs: load(&self.engine.data_syncs),
            checkpoints: load(&self.engine.checkpoints),
        }
    }

    pub(crate) fn file(&self, file: FileId) -> &FileBoard {
        // In the order of `FileId::ALL`.
        &self.files[file as usize]
    }

    pub(crate) fn file_statistics(&self) -> [FileStatistics; 3] {
        FileId::ALL.map(|file| {
            let board = self.file(file);
            let ((read, reads), (write, writes), (sync, syncs)) =
                (board.reads.read(), board.writes.read(), board.syncs.read());
            let errors = [&board.reads, &board.writes, &board.syncs];
            FileStatistics {
                file,
                counters: FileCounters {
                    read,
                    write,
                    sync: Figure::Known(sync),
                    busy_ns: Figure::unknown(Reason::NotCounted),
                },
                latencies: Latencies { read: reads, write: writes, sync: syncs },
                errors: errors.iter().map(|ops| ops.errors.load(Relaxed)).sum(),
            }
        })
    }
}
