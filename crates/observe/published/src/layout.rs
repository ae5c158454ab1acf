//! The counters as bytes: a head and a slot for each file of the engine.
//!
//! Native byte order: writer and readers are on one machine. Fields marked * are atomic and may change at any time.
//!
//! ```text
//!  offset  bytes  head, one page of 4096
//!       0      8  magic* "HDRMPUB1", written last: before it the file is not ready
//!       8      4  version of this layout: 1
//!      12      4  slot bytes: 5120
//!      16      4  slots at most: 1024
//!      20      4  slots used*: slots below this index are published
//!      24      4  pid
//!      28      4  counted: 1 times, 2 commits, 4 the writer's time, 8 log records, 16 commits come one by one
//!      32      8  start time of the process, clock ticks since boot (/proc/PID/stat, field 22)
//!      40      8  inode of the pid namespace (/proc/PID/ns/pid)
//!      48      8  files lost*: opened while all slots were taken, not counted
//!      56      8  device of the database: major << 32 | minor; 0 where the process has none or several
//!      64      8  its inode
//!      72     36  boot id, text (/proc/sys/kernel/random/boot_id)
//!     108      4  closed*: 1 once the engine has closed the database
//!     112     16  name of the engine, a-z and 0-9, filled up with zeros
//!     128     64  commits*: commits, log wait ns, writer ns, log records, log record bytes, -
//!     192      4  bytes of the database's path
//!     196      4  -
//!     200   1024  path of the database, a file or a directory
//!    1224      8  when it was opened, CLOCK_MONOTONIC in nanoseconds
//!
//!  offset  bytes  slot i, at 4096 + 5120 i
//!       0      4  state*: 0 free, 1 published (release; a reader acquires)
//!       4      4  generation: nth file of this path, from 1
//!       8      4  kind: 0 data, 1 log, 2 journal, 3 temp, 4 other
//!      12      4  path bytes
//!      16      8  device: major << 32 | minor; 0 if not known
//!      24      8  inode; 0 if not known
//!      32      4  way: 1 reads bypass the page cache, 2 a write that has ended is durable without a sync
//!      36     28  -
//!      64     64  reads*: bytes, stall ns, short, empty, errors, fetches, fetched bytes, -
//!     128     64  writes*: bytes, stall ns, errors, -
//!     192     64  others*: sync stall ns, sync errors, truncates, truncate stall ns, truncate errors, -
//!     256   1024  path
//!    1280   1248  histogram of reads*, LatencyBuckets::LEN counters
//!    2528   1248  histogram of writes*
//!    3776   1248  histogram of syncs*
//!    5024     96  -
//! ```
//!
//! The number of reads, writes and syncs is the sum of their histogram: this saves one add for each, and the two cannot
//! disagree. Reads, writes and syncs are in separate cache lines. A slot is never freed or reused: the counters of a closed
//! file remain. Each counter is exact; a reader that loads them while an I/O completes may see it in the bytes and not yet
//! in the stall time or the histogram. Short and empty reads, fetches and truncates are 0 where an engine has none.

use crate::Board;
use filestats::{FileKind, LatencyBuckets};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release};

/// Files that one engine of a process can count; further files are counted as lost.
pub const FILES_MAX: usize = 1024;
/// Longest path that a slot holds, in bytes.
pub const PATH_BYTES_MAX: usize = 1024;
/// Longest name of an engine, in bytes.
pub const ENGINE_BYTES_MAX: usize = 16;

pub(crate) const MAGIC: u64 = u64::from_ne_bytes(*b"HDRMPUB1");
pub(crate) const VERSION: u32 = 1;
pub(crate) const HEAD_BYTES: usize = size_of::<Head>();
pub(crate) const SLOT_BYTES: usize = size_of::<Slot>();
pub(crate) const TABLE_BYTES: usize = size_of::<Table>();
pub(crate) const BOOT_ID_BYTES: usize = 36;
pub(crate) const PUBLISHED: u32 = 1;

pub(crate) const TIMES: u32 = 1;
pub(crate) const COMMITS: u32 = 2;
pub(crate) const WRITER_TIME: u32 = 4;
pub(crate) const LOG_RECORDS: u32 = 8;
pub(crate) const ONE_BY_ONE: u32 = 16;

pub(crate) const BYPASSES_CACHE: u32 = 1;
pub(crate) const DURABLE_AT_END: u32 = 2;

#[repr(C, align(4096))]
#[derive(Debug)]
pub(crate) struct Head {
    pub magic: AtomicU64,
    pub version: AtomicU32,
    pub slot_bytes: AtomicU32,
    pub slots_max: AtomicU32,
    pub slots_used: AtomicU32,
    pub pid: AtomicU32,
    pub counted: AtomicU32,
    pub start_ticks: AtomicU64,
    pub pid_namespace: AtomicU64,
    pub files_lost: AtomicU64,
    pub device: AtomicU64,
    pub inode: AtomicU64,
    pub boot_id: [AtomicU8; BOOT_ID_BYTES],
    pub closed: AtomicU32,
    pub engine: [AtomicU8; ENGINE_BYTES_MAX],
    pub commits: CommitCounters,
    pub path_bytes: AtomicU32,
    pub unused: AtomicU32,
    pub path: [AtomicU8; PATH_BYTES_MAX],
    pub opened_ns: AtomicU64,
}

/// Counters of an engine's commits. Those that it does not keep stay 0, and a reader finds them unknown.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct CommitCounters {
    /// Transactions that committed.
    pub commits: AtomicU64,
    /// Time that they waited for the log, nanoseconds.
    pub log_wait_ns: AtomicU64,
    /// Time that one of them had the only turn to write, nanoseconds.
    pub writer_ns: AtomicU64,
    /// Records appended to the log.
    pub log_records: AtomicU64,
    /// Their bytes, without what fills up blocks.
    pub log_record_bytes: AtomicU64,
}

#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Reads {
    pub bytes: AtomicU64,
    pub stall_ns: AtomicU64,
    pub short: AtomicU64,
    pub empty: AtomicU64,
    pub errors: AtomicU64,
    pub fetches: AtomicU64,
    pub fetched_bytes: AtomicU64,
}

#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Writes {
    pub bytes: AtomicU64,
    pub stall_ns: AtomicU64,
    pub errors: AtomicU64,
}

#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Others {
    pub sync_stall_ns: AtomicU64,
    pub sync_errors: AtomicU64,
    pub truncates: AtomicU64,
    pub truncate_stall_ns: AtomicU64,
    pub truncate_errors: AtomicU64,
}

pub(crate) type Histogram = [AtomicU64; LatencyBuckets::LEN];

/// The counters of one file. Counting takes no lock and makes no system call.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Slot {
    pub(crate) state: AtomicU32,
    pub(crate) generation: AtomicU32,
    pub(crate) kind: AtomicU32,
    pub(crate) path_bytes: AtomicU32,
    pub(crate) device: AtomicU64,
    pub(crate) inode: AtomicU64,
    pub(crate) way: AtomicU32,
    pub(crate) reads: Reads,
    pub(crate) writes: Writes,
    pub(crate) others: Others,
    pub(crate) path: [AtomicU8; PATH_BYTES_MAX],
    pub(crate) read_latencies: Histogram,
    pub(crate) write_latencies: Histogram,
    pub(crate) sync_latencies: Histogram,
    unused: [AtomicU64; 12],
}

/// The whole of the memory.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Table {
    pub head: Head,
    pub slots: [Slot; FILES_MAX],
}

// SAFETY: it consists of atomics, in structs and arrays; aligned to 4096.
unsafe impl Board for Table {}

// The compiler's layout is the one drawn above.
const _: () = {
    use std::mem::offset_of;
    assert!(HEAD_BYTES == 4096 && SLOT_BYTES == 5120);
    assert!(offset_of!(Head, slots_used) == 20 && offset_of!(Head, counted) == 28);
    assert!(offset_of!(Head, files_lost) == 48 && offset_of!(Head, boot_id) == 72);
    assert!(offset_of!(Head, closed) == 108 && offset_of!(Head, engine) == 112);
    assert!(
        offset_of!(Head, commits) == 128
            && offset_of!(Head, path_bytes) == 192
            && offset_of!(Head, path) == 200
    );
    assert!(offset_of!(Head, opened_ns) == 1224);
    assert!(offset_of!(Slot, inode) == 24 && offset_of!(Slot, way) == 32 && offset_of!(Slot, reads) == 64);
    assert!(offset_of!(Slot, writes) == 128 && offset_of!(Slot, others) == 192);
    assert!(offset_of!(Slot, path) == 256 && offset_of!(Slot, read_latencies) == 1280);
    assert!(offset_of!(Slot, write_latencies) == 2528 && offset_of!(Slot, sync_latencies) == 3776);
};

/// The number of a kind in a slot is its place here; further kinds have the next number.
const KINDS: [FileKind; 4] = [FileKind::Data, FileKind::Log, FileKind::Journal, FileKind::Temp];

pub(crate) fn kind_from_number(number: u32) -> FileKind {
    KINDS.get(number as usize).copied().unwrap_or(FileKind::Other)
}

pub(crate) fn store_bytes(to: &[AtomicU8], from: &[u8]) {
    to.iter().zip(from).for_each(|(to, from)| to.store(*from, Relaxed));
}

pub(crate) fn load_bytes(from: &[AtomicU8]) -> Vec<u8> {
    from.iter().map(|byte| byte.load(Relaxed)).collect()
}

/// How a file is read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Reads bypass the page cache: all of them reach the storage.
    pub bypasses_cache: bool,
    /// A write that has ended is durable, without a sync.
    pub is_durable_at_end: bool,
}

/// A file to be counted.
#[derive(Clone, Copy, Debug)]
pub struct FileToCount<'a> {
    /// Use of the file by the engine.
    pub kind: FileKind,
    /// Its full name.
    pub path: &'a [u8],
    /// Device (major << 32 | minor) and inode; 0 if not known.
    pub identity: (u64, u64),
    /// Nth file of this path that the process opened, from 1.
    pub generation: u32,
    /// How it is read and written.
    pub way: Way,
}

impl Slot {
    /// Writes the file's identity into the slot and makes the slot visible to readers.
    pub(crate) fn publish(&self, file: &FileToCount<'_>) {
        assert!(file.path.len() <= PATH_BYTES_MAX, "longer paths were refused");
        self.generation.store(file.generation, Relaxed);
        let kind = KINDS.iter().position(|known| *known == file.kind).unwrap_or(KINDS.len());
        self.kind.store(kind as u32, Relaxed);
        self.device.store(file.identity.0, Relaxed);
        self.inode.store(file.identity.1, Relaxed);
        let bypasses = if file.way.bypasses_cache { BYPASSES_CACHE } else { 0 };
        let durable = if file.way.is_durable_at_end { DURABLE_AT_END } else { 0 };
        self.way.store(bypasses | durable, Relaxed);
        self.path_bytes.store(file.path.len() as u32, Relaxed);
        store_bytes(&self.path, file.path);
        self.state.store(PUBLISHED, Release);
    }

    /// Counts a read that returned something.
    #[inline(always)]
    pub fn count_read(&self, bytes: u64, stall_ns: u64) {
        self.reads.bytes.fetch_add(bytes, Relaxed);
        self.reads.stall_ns.fetch_add(stall_ns, Relaxed);
        self.read_latencies[LatencyBuckets::index(stall_ns)].fetch_add(1, Relaxed);
    }

    /// Counts a write.
    #[inline(always)]
    pub fn count_write(&self, bytes: u64, stall_ns: u64) {
        self.writes.bytes.fetch_add(bytes, Relaxed);
        self.writes.stall_ns.fetch_add(stall_ns, Relaxed);
        self.write_latencies[LatencyBuckets::index(stall_ns)].fetch_add(1, Relaxed);
    }

    /// Counts a sync.
    pub fn count_sync(&self, stall_ns: u64) {
        self.others.sync_stall_ns.fetch_add(stall_ns, Relaxed);
        self.sync_latencies[LatencyBuckets::index(stall_ns)].fetch_add(1, Relaxed);
    }

    /// Counts a truncate.
    pub fn count_truncate(&self, stall_ns: u64) {
        self.others.truncates.fetch_add(1, Relaxed);
        self.others.truncate_stall_ns.fetch_add(stall_ns, Relaxed);
    }

    /// Counts a read that returned fewer bytes than requested, because it crossed the end of the file or began beyond it.
    pub fn count_short_read(&self, bytes: u64, stall_ns: u64) {
        if bytes > 0 {
            self.count_read(bytes, stall_ns);
            self.reads.short.fetch_add(1, Relaxed);
        } else {
            self.reads.empty.fetch_add(1, Relaxed);
        }
    }

    /// Counts bytes that a memory map handed out.
    pub fn count_fetch(&self, bytes: u64) {
        self.reads.fetches.fetch_add(1, Relaxed);
        self.reads.fetched_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts an operation that has ended, with or without an error.
    pub fn ended(&self, operation: Operation, bytes: u64, stall_ns: u64, done: bool) {
        match (done, operation) {
            (false, _) => self.count_error(operation),
            (true, Operation::Read) => self.count_read(bytes, stall_ns),
            (true, Operation::Write) => self.count_write(bytes, stall_ns),
            (true, Operation::Sync) => self.count_sync(stall_ns),
            (true, Operation::Truncate) => self.count_truncate(stall_ns),
        }
    }

    /// Bytes read so far.
    pub fn read_bytes(&self) -> u64 {
        self.reads.bytes.load(Relaxed)
    }

    /// Bytes written so far.
    pub fn write_bytes(&self) -> u64 {
        self.writes.bytes.load(Relaxed)
    }

    /// Counts a failed operation.
    pub fn count_error(&self, operation: Operation) {
        let errors = match operation {
            Operation::Read => &self.reads.errors,
            Operation::Write => &self.writes.errors,
            Operation::Sync => &self.others.sync_errors,
            Operation::Truncate => &self.others.truncate_errors,
        };
        errors.fetch_add(1, Relaxed);
    }
}

/// An operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A sync.
    Sync,
    /// A truncate.
    Truncate,
}
