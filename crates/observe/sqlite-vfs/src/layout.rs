//! The counters as bytes, in a mapping that is private or a file in shared memory.
//!
//! Native byte order: writer and readers are on one machine. Fields marked * are atomic.
//! The file is called headroom-sqlite-PID.counters.
//!
//! ```text
//!  offset  bytes  header, one page of 4096
//!       0      8  magic* "HDRMSQL1", written last: before it the file is not ready
//!       8      4  version of this layout: 1
//!      12      4  header bytes: 4096
//!      16      4  slot bytes: 5120
//!      20      4  slots at most: 1024
//!      24      4  slots used*: slots below this index are published
//!      28      4  timing: 1 when stalls are kept
//!      32      4  pid
//!      36      4  -
//!      40      8  start time of the process, clock ticks since boot (/proc/PID/stat, field 22)
//!      48      8  inode of the pid namespace (/proc/PID/ns/pid)
//!      56      8  files lost*: opened while all slots were taken, not counted
//!      64     36  boot id, text (/proc/sys/kernel/random/boot_id)
//!
//!  offset  bytes  slot i, at 4096 + 5120 i
//!       0      4  state*: 0 free, 1 published (release; a reader acquires)
//!       4      4  generation: nth file of this path, from 1
//!       8      4  kind: 0 data, 1 log, 2 journal, 3 temp, 4 other
//!      12      4  path bytes
//!      16      8  device: major << 32 | minor; 0 if not known
//!      24      8  inode; 0 if not known
//!      64     64  reads*: bytes, stall ns, short, empty, errors, fetches, fetched bytes, -
//!     128     64  writes*: bytes, stall ns, errors, -
//!     192     64  others*: sync stall ns, sync errors, truncates, truncate stall ns,
//!                          truncate errors, -
//!     256   1024  path
//!    1280   1248  histogram of reads*, LatencyBuckets::LEN counters
//!    2528   1248  histogram of writes*
//!    3776   1248  histogram of syncs*
//!    5024     96  -
//! ```
//!
//! The number of reads, writes and syncs is the sum of their histogram: this saves one add for each, and the
//! two cannot disagree. Reads, writes and syncs are in separate cache lines. A slot is never freed or reused: the
//! counters of a closed file remain. Each counter is exact; a reader that loads them while an I/O completes
//! may see it in the bytes and not yet in the stall time or the histogram.

use filestats::{FileKind, LatencyBuckets};
use published::Board;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release};

/// Number of files that one process can count; further files are counted as lost.
pub const FILES_MAX: usize = 1024;
/// Longest path that fits a slot, in bytes (SQLite's own limit on Linux is 512).
pub const PATH_BYTES_MAX: usize = 1024;

pub(crate) const MAGIC: u64 = u64::from_ne_bytes(*b"HDRMSQL1");
pub(crate) const VERSION: u32 = 1;
pub(crate) const HEADER_BYTES: usize = 4096;
pub(crate) const SLOT_BYTES: usize = 5120;
pub(crate) const REGION_BYTES: usize = size_of::<Table>();
pub(crate) const BOOT_ID_BYTES: usize = 36;
pub(crate) const PUBLISHED: u32 = 1;

const NAME_PREFIX: &str = "headroom-sqlite-";
const NAME_SUFFIX: &str = ".counters";

/// The name of a process's counters file.
pub(crate) fn file_name(pid: u32) -> String {
    format!("{NAME_PREFIX}{pid}{NAME_SUFFIX}")
}

/// The process that a counters file belongs to by its name; `None` for other names.
pub(crate) fn pid_in_name(name: &str) -> Option<u32> {
    let pid = name.strip_prefix(NAME_PREFIX)?.strip_suffix(NAME_SUFFIX)?.parse().ok()?;
    (name == file_name(pid)).then_some(pid)
}

#[repr(C, align(4096))]
pub(crate) struct Header {
    pub magic: AtomicU64,
    pub version: AtomicU32,
    pub header_bytes: AtomicU32,
    pub slot_bytes: AtomicU32,
    pub slots_max: AtomicU32,
    pub slots_used: AtomicU32,
    pub timing: AtomicU32,
    pub pid: AtomicU32,
    pub unused: AtomicU32,
    pub start_ticks: AtomicU64,
    pub pid_namespace: AtomicU64,
    pub files_lost: AtomicU64,
    pub boot_id: [AtomicU8; BOOT_ID_BYTES],
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

#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Slot {
    pub state: AtomicU32,
    pub generation: AtomicU32,
    pub kind: AtomicU32,
    pub path_bytes: AtomicU32,
    pub device: AtomicU64,
    pub inode: AtomicU64,
    pub reads: Reads,
    pub writes: Writes,
    pub others: Others,
    pub path: [AtomicU8; PATH_BYTES_MAX],
    pub read_latencies: Histogram,
    pub write_latencies: Histogram,
    pub sync_latencies: Histogram,
    unused: [AtomicU64; 12],
}

/// The whole of the memory.
#[repr(C)]
pub(crate) struct Table {
    pub header: Header,
    pub slots: [Slot; FILES_MAX],
}

// SAFETY: it consists of atomics, in structs and arrays; aligned to 4096.
unsafe impl Board for Table {}

// The compiler's layout is the one drawn above.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Header>() == HEADER_BYTES && size_of::<Slot>() == SLOT_BYTES);
    assert!(offset_of!(Header, slots_used) == 24 && offset_of!(Header, pid) == 32);
    assert!(offset_of!(Header, files_lost) == 56 && offset_of!(Header, boot_id) == 64);
    assert!(offset_of!(Slot, inode) == 24 && offset_of!(Slot, reads) == 64);
    assert!(offset_of!(Slot, writes) == 128 && offset_of!(Slot, others) == 192);
    assert!(offset_of!(Slot, path) == 256 && offset_of!(Slot, read_latencies) == 1280);
    assert!(offset_of!(Slot, write_latencies) == 2528 && offset_of!(Slot, sync_latencies) == 3776);
};

/// The number of a kind in a slot is its place here; further kinds have the next number.
const KINDS: [FileKind; 4] = [FileKind::Data, FileKind::Log, FileKind::Journal, FileKind::Temp];

pub(crate) fn kind_from_number(number: u32) -> FileKind {
    KINDS.get(number as usize).copied().unwrap_or(FileKind::Other)
}

impl Slot {
    /// Writes the file's identity into the slot and makes the slot visible to readers.
    pub fn publish(&self, kind: FileKind, path: &[u8], (device, inode): (u64, u64), generation: u32) {
        assert!(path.len() <= PATH_BYTES_MAX, "the registry refuses longer paths");
        self.generation.store(generation, Relaxed);
        let kind = KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len());
        self.kind.store(kind as u32, Relaxed);
        self.device.store(device, Relaxed);
        self.inode.store(inode, Relaxed);
        self.path_bytes.store(path.len() as u32, Relaxed);
        for (to, from) in self.path.iter().zip(path) {
            to.store(*from, Relaxed);
        }
        self.state.store(PUBLISHED, Release);
    }

    #[inline(always)]
    pub fn count_read(&self, bytes: u64, stall_ns: u64) {
        self.reads.bytes.fetch_add(bytes, Relaxed);
        self.reads.stall_ns.fetch_add(stall_ns, Relaxed);
        self.read_latencies[LatencyBuckets::index(stall_ns)].fetch_add(1, Relaxed);
    }

    #[inline(always)]
    pub fn count_write(&self, bytes: u64, stall_ns: u64) {
        self.writes.bytes.fetch_add(bytes, Relaxed);
        self.writes.stall_ns.fetch_add(stall_ns, Relaxed);
        self.write_latencies[LatencyBuckets::index(stall_ns)].fetch_add(1, Relaxed);
    }

    /// A read that returned fewer bytes than requested, because it crossed the end of the file or began beyond it.
    pub fn count_short_read(&self, bytes: u64, stall_ns: u64) {
        if bytes > 0 {
            self.count_read(bytes, stall_ns);
            self.reads.short.fetch_add(1, Relaxed);
        } else {
            self.reads.empty.fetch_add(1, Relaxed);
        }
    }

    pub fn count_sync(&self, stall_ns: u64) {
        self.others.sync_stall_ns.fetch_add(stall_ns, Relaxed);
        self.sync_latencies[LatencyBuckets::index(stall_ns)].fetch_add(1, Relaxed);
    }

    pub fn count_truncate(&self, stall_ns: u64) {
        self.others.truncates.fetch_add(1, Relaxed);
        self.others.truncate_stall_ns.fetch_add(stall_ns, Relaxed);
    }
}
