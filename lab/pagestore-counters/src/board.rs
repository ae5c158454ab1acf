//! The layout of the board of one store: a table of atomics, in native byte order.
//!
//! ```text
//! head      magic "HDRMPGS4" (written last), sizes, process, store, directory, opening, closed
//! log       writes of the journal                engine   counts of pages and checkpoints
//! commits   a sum and a histogram for each part of a commit's time; the last slow commits, each under a sequence lock
//! state     the log's state under a sequence lock, written when `requested` is ahead of `answered`
//! ```
//! The I/O of the store's files, its commits and its log's records are in its published counters (`published`), which any reader
//! of that format reads; this board is the page store's own.

use crate::commits::CommitBoard;
use crate::log_state::StateBoard;
use crate::monotonic_ns;
use published::{Board as Shown, CommitReading, ProcessIdentity};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use std::time::Duration;

const MAGIC: u64 = u64::from_ne_bytes(*b"HDRMPGS4");
/// Until the store is open: only the process is known.
const OPENING: u64 = u64::from_ne_bytes(*b"HDRMPGS0");
pub(crate) const BOARD_BYTES: usize = size_of::<Board>().next_multiple_of(4096);
const BOOT_ID_BYTES: usize = 36;
/// The place of the number that requests the state of the log.
pub(crate) const REQUESTED_AT: usize = std::mem::offset_of!(Board, state.requested);
const FILE_PREFIX: &str = "headroom-pagestore-";
const FILE_SUFFIX: &str = ".board";

/// The name of a board's file.
pub(crate) fn file_name(pid: u32, number: u32) -> String {
    format!("{FILE_PREFIX}{pid}-{number}{FILE_SUFFIX}")
}

/// The process that a board's file belongs to by its name; `None` for other names.
pub(crate) fn pid_in_name(name: &OsStr) -> Option<u32> {
    let (pid, _) = name.to_str()?.strip_prefix(FILE_PREFIX)?.strip_suffix(FILE_SUFFIX)?.split_once('-')?;
    pid.parse().ok()
}

/// Bytes before the first slot of the log file.
pub const LOG_HEAD_BYTES: u64 = 8 << 10;

/// All counters of one store.
#[repr(C)]
pub struct Board {
    pub(crate) head: Head,
    /// Counts of the journal.
    pub log: LogCounts,
    /// Counts of the rest of the engine.
    pub engine: EngineCounts,
    /// The times of commits.
    pub commits: CommitBoard,
    /// The state of the log.
    pub state: StateBoard,
}

// SAFETY: it consists of atomics, in structs and arrays; aligned to 64 at most.
unsafe impl Shown for Board {}

#[repr(C, align(64))]
pub(crate) struct Head {
    magic: AtomicU64,
    bytes: AtomicU64,
    pid: AtomicU32,
    /// The number of this opening of the store.
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

/// The store that the counters belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The store's identity.
    pub store: u128,
    /// The number of this opening.
    pub epoch: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Log blocks are padded to this.
    pub log_sector_bytes: u64,
    /// Bytes of a virtual log file.
    pub vlf_bytes: u64,
}

/// The process and the store that a board belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process that has the store open.
    pub process: ProcessIdentity,
    /// The store, and how it was opened.
    pub opening: Opening,
    opened_ns: u64,
    /// Device and inode of its directory.
    pub(crate) directory: [u64; 2],
}

impl Owner {
    /// Device and inode of the store's directory.
    #[must_use]
    pub fn directory_id(&self) -> [u64; 2] {
        self.directory
    }

    /// The time since it was opened.
    #[must_use]
    pub fn open_for(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.opened_ns))
    }

    /// The offset of a slot, the place of a virtual log file, in the log file.
    #[must_use]
    pub fn slot_offset(&self, slot: usize) -> u64 {
        LOG_HEAD_BYTES.saturating_add((slot as u64).saturating_mul(self.opening.vlf_bytes))
    }
}

impl Head {
    /// Records the process, so that the file of one that is killed before its store is open is recognised as dead.
    pub(crate) fn begin(&self, process: &ProcessIdentity) {
        self.bytes.store(BOARD_BYTES as u64, Relaxed);
        self.pid.store(process.pid, Relaxed);
        self.start_ticks.store(process.start_ticks, Relaxed);
        self.pid_namespace.store(process.pid_namespace, Relaxed);
        for (to, from) in self.boot_id.iter().zip(process.boot_id.bytes()) {
            to.store(from, Relaxed);
        }
        self.magic.store(OPENING, Release);
    }

    /// Records the store, once it is open.
    pub(crate) fn announce(&self, directory: &Path, opening: &Opening) {
        let Some(id) = directory_id(directory) else { return };
        if self.magic.load(Relaxed) != OPENING {
            return;
        }
        self.epoch.store(opening.epoch, Relaxed);
        self.store[0].store(opening.store as u64, Relaxed);
        self.store[1].store((opening.store >> 64) as u64, Relaxed);
        for (to, from) in self.directory.iter().zip(id) {
            to.store(from, Relaxed);
        }
        self.page_bytes.store(opening.page_bytes, Relaxed);
        self.sector_bytes.store(opening.log_sector_bytes, Relaxed);
        self.vlf_bytes.store(opening.vlf_bytes, Relaxed);
        self.opened_ns.store(monotonic_ns(), Relaxed);
        self.magic.store(MAGIC, Release);
    }

    /// The process that made it; `None` for another version of the layout.
    pub(crate) fn process(&self) -> Option<ProcessIdentity> {
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

    /// The owner; `None` if the store is not open yet, or for another version of the layout.
    pub(crate) fn owner(&self) -> Option<Owner> {
        if self.magic.load(Acquire) != MAGIC {
            return None;
        }
        let [low, high] = [0, 1].map(|at: usize| u128::from(self.store[at].load(Relaxed)));
        Some(Owner {
            process: self.process()?,
            opening: Opening {
                store: high << 64 | low,
                epoch: self.epoch.load(Relaxed),
                page_bytes: self.page_bytes.load(Relaxed),
                log_sector_bytes: self.sector_bytes.load(Relaxed),
                vlf_bytes: self.vlf_bytes.load(Relaxed),
            },
            opened_ns: self.opened_ns.load(Relaxed),
            directory: [0, 1].map(|at: usize| self.directory[at].load(Relaxed)),
        })
    }
}

/// Device and inode: a directory has many names.
pub(crate) fn directory_id(directory: &Path) -> Option<[u64; 2]> {
    let metadata = std::fs::metadata(directory).ok()?;
    Some([metadata.dev(), metadata.ino()])
}

/// Counts of the engine since the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Writes of blocks to the log.
    pub log_writes: u64,
    /// Their bytes.
    pub log_write_bytes: u64,
    /// Their time, in nanoseconds.
    pub log_write_ns: u64,
    /// Bytes of the records that were appended.
    pub log_record_bytes: u64,
    /// Transactions that committed.
    pub commits: u64,
    /// Pages read from the data file.
    pub page_reads: u64,
    /// Pages reconstructed from the log.
    pub pages_redone: u64,
    /// Writes to the data file; one may hold many pages.
    pub page_writes: u64,
    /// Their bytes.
    pub page_write_bytes: u64,
    /// Syncs of the data file.
    pub data_syncs: u64,
    /// Checkpoints that have ended.
    pub checkpoints: u64,
}

/// Counts of the journal.
#[repr(C, align(64))]
pub struct LogCounts {
    /// Writes of blocks.
    pub writes: AtomicU64,
    /// Their bytes.
    pub write_bytes: AtomicU64,
    /// Their time.
    pub write_ns: AtomicU64,
    /// Commits.
    pub commits: AtomicU64,
}

/// Counts of the rest of the engine.
#[repr(C, align(64))]
pub struct EngineCounts {
    /// Pages read from the data file.
    pub page_reads: AtomicU64,
    /// Pages reconstructed from the log.
    pub page_redone: AtomicU64,
    /// Writes to the data file; one may hold many pages.
    pub page_writes: AtomicU64,
    /// Their bytes.
    pub page_write_bytes: AtomicU64,
    /// Syncs of the data file.
    pub data_syncs: AtomicU64,
    /// Checkpoints that have ended.
    pub checkpoints: AtomicU64,
}

impl Board {
    /// The counts of the engine so far, with those that it publishes.
    pub(crate) fn counts(&self, published: &CommitReading) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        Counts {
            log_writes: load(&self.log.writes),
            log_write_bytes: load(&self.log.write_bytes),
            log_write_ns: load(&self.log.write_ns),
            log_record_bytes: published.log_record_bytes.unwrap_or_default(),
            commits: load(&self.log.commits),
            page_reads: load(&self.engine.page_reads),
            pages_redone: load(&self.engine.page_redone),
            page_writes: load(&self.engine.page_writes),
            page_write_bytes: load(&self.engine.page_write_bytes),
            data_syncs: load(&self.engine.data_syncs),
            checkpoints: load(&self.engine.checkpoints),
        }
    }
}
