//! Options for creating and opening a store.

use crate::error::{Error, Result};
use crate::format::delta::MAX_PAGE_BYTES;
use crate::format::geometry::{Geometry, LOG_HEAD_BYTES, MAX_BLOCK_BYTES};
use crate::types::Lsn;
pub use pagestore_disk::Apply;
use std::time::Duration;

/// Properties that are fixed when a store is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a page: 4096, 8192 or 16384.
    pub page_bytes: usize,
    /// Log blocks are padded to a multiple of this: the unit that the device writes without reading, almost always
    /// 4 KiB. It is not detected; only whether the device accepts writes of this size is checked.
    pub log_sector_bytes: usize,
    /// Bytes of a virtual log file, a multiple of 4 KiB from 120 KiB to less than 512 MiB. Opening after a crash
    /// reads the last one in full, and an index of each of the others.
    pub vlf_bytes: u64,
    /// Virtual log files that are created, and filled with zeros, with the store: at least two, and within
    /// `Options::log_limit_bytes`.
    pub vlfs: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Self { page_bytes: 4096, log_sector_bytes: 4096, vlf_bytes: 8 << 20, vlfs: 8 }
    }
}

impl Layout {
    pub(crate) fn geometry(&self, store: u128) -> Result<Geometry> {
        let bad = |option, why: &str| Err(Error::BadOption { option, why: why.into() });
        if !self.page_bytes.is_power_of_two() || !(4096..=MAX_PAGE_BYTES).contains(&self.page_bytes) {
            return bad("page_bytes", "a page has 4096, 8192 or 16384 bytes");
        }
        if !matches!(self.log_sector_bytes, 512 | 1024 | 2048 | 4096) {
            return bad("log_sector_bytes", "a power of two from 512 to 4096");
        }
        // Small ones are for tests, in which slots must be reused often.
        let least = 2 * MAX_BLOCK_BYTES as u64;
        if !(least..Lsn::MAX_VLF_BYTES).contains(&self.vlf_bytes) || !self.vlf_bytes.is_multiple_of(4096) {
            return bad("vlf_bytes", "a multiple of 4 KiB from 120 KiB (122880 bytes) to less than 512 MiB");
        }
        if self.vlfs < 2 {
            return bad("vlfs", "at least 2: one is written while the other is freed");
        }
        Ok(Geometry {
            store: store as u64,
            page_bytes: self.page_bytes,
            sector_bytes: self.log_sector_bytes,
            vlf_bytes: self.vlf_bytes,
        })
    }

    /// Bytes of all virtual log files that are created with the store.
    pub(crate) fn log_bytes(&self, limit: u64) -> Result<u64> {
        let file_bytes_max = i64::MAX as u64 - LOG_HEAD_BYTES;
        let bytes =
            u32::try_from(self.vlfs).ok().and_then(|vlfs| u64::from(vlfs).checked_mul(self.vlf_bytes));
        bytes.filter(|bytes| *bytes <= limit.min(file_bytes_max)).ok_or_else(|| {
            let Self { vlfs, vlf_bytes, .. } = self;
            let why = format!(
                "{vlfs} virtual log files of {vlf_bytes} bytes are more than the log may have: make fewer, or raise \
                 log_limit_bytes ({limit})"
            );
            Error::BadOption { option: "vlfs", why }
        })
    }
}

/// How a store that was not closed is recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Recovery {
    /// Log reads of 32 KiB, pages written one by one in log order, a sync for every virtual log file: conventional
    /// redo, as a baseline.
    Serial,
    /// The log in large concurrent reads; then pages one by one, and one sync.
    Prefetch,
    /// All pages are collected first, then written in file order, neighbours together, many writes at once; one
    /// sync.
    Wide,
    /// Opens when the log has been read. Pages are rebuilt from the log when they are read, and written in the
    /// background as with `Wide`.
    #[default]
    Instant,
}

/// Whether the processor of a thread that commits alone is kept from going idle while its log write is in flight.
/// Its wake-up is part of the commit; in a virtual machine a third of it.
///
/// While such commits follow one another within a millisecond, and their writes take less than half of one, a
/// thread with the policy `SCHED_IDLE` spins on that processor until the write is done. Any other thread preempts
/// it; but where control groups share a processor by weight, it uses the time of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeepAwake {
    /// Never.
    Never,
    /// If a trial shows that it shortens log writes by a tenth; the trial is repeated every few thousand writes.
    /// Not with one processor, under a quota of processor time, or in a machine with a battery.
    #[default]
    Auto,
    /// Always, without a trial.
    Always,
}

/// Options of an open store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Memory for pages, in bytes: three quarters for pages that were read or committed, the rest for the changed
    /// pages of the writing transaction. A larger transaction takes
    /// up to seven eighths; what it changes beyond that is set aside in a file without a name, until it ends.
    /// The store also uses
    ///
    /// * for the earlier versions of that transaction's pages, if they are evicted: at most a quarter of this;
    /// * for the changes that `retain` and `extract_if` encode before the commit: at most a fourteenth of this, or 72 KiB, and
    ///   320 pages that wait for it;
    /// * 300 bytes for each page that is not in the data file yet, and for each that changed after the oldest snapshot began
    ///   and was evicted;
    /// * 100 bytes for each older version in the files that a snapshot may need, beyond the number of pages that are not in
    ///   the data file yet (these and the evicted pages take at most an eighth of this, then the snapshot is ended);
    /// * during a checkpoint its batch, a quarter of this (at least 1 MiB, at most 1 GiB), 2 MiB of log, and the captured
    ///   versions of pages that change or are evicted meanwhile, at most three quarters of this;
    /// * 4 MiB for log in flight.
    ///
    /// Memory of pages comes in blocks, in huge pages of the processor where the kernel has any: free places and the next block
    /// take at most a quarter of this more, or 4 MiB. Blocks are kept until the store is closed and the last `Page` is dropped,
    /// so what was needed once stays.
    ///
    /// `tests/memory.rs` verifies this. The overhead of the system's allocator is not included.
    pub cache_bytes: usize,
    /// The largest size of the log, in bytes.
    pub log_limit_bytes: u64,
    /// The log is shortened to this size, in bytes, when it was not needed for a minute; `Store::compact` shortens it
    /// further. It stays longer where that, or twice what it needed, is less than a quarter shorter.
    pub log_keep_bytes: u64,
    /// The longest time that recovery may take to redo what the data file lacks. A checkpoint begins early enough
    /// for that, and is written slowly enough not to disturb commits, according to the measured cost of reading log
    /// and writing pages. For commits of many pages it pauses, up to half a second in all. Requires background threads.
    pub redo_target: Duration,
    /// A checkpoint begins at the latest when the log since the last one has this length; `u64::MAX`: none begins
    /// for the sake of recovery.
    pub checkpoint_bytes: u64,
    /// A delayed commit is durable at the latest after this time (with background threads) …
    pub delayed_time: Duration,
    /// … or when this many bytes of log wait, beside those of a write in flight.
    pub delayed_bytes: usize,
    /// Log writes in flight at once; one more while a commit of 512 pages or more appends its records. With more than one, each is smaller: on a virtual disk whose writes take 130
    /// us, one was fastest for 16 and 64 committing threads, two for four.
    pub log_writes_in_flight: usize,
    /// Concurrent page writes where pages are written at full speed: after a crash, and in a checkpoint that a
    /// thread waits for. Also concurrent log reads, up to 16. 0 means 1.
    pub parallel: usize,
    /// The strategy of recovery.
    pub recovery: Recovery,
    /// How recovery writes pages; afterwards direct I/O is used.
    pub apply: Apply,
    /// Whether checkpoints, delayed commits and the pages that a large transaction sets aside have threads of their own.
    /// Otherwise a commit that makes a checkpoint due does it itself, and everything happens in the order of the calls.
    pub background: bool,
    /// Whether the processor of a thread that commits alone is kept from going idle during its log write. Requires
    /// background threads.
    pub keep_awake: KeepAwake,
    /// Read back what a checkpoint wrote before its part of the log is freed. This detects writes that the device
    /// acknowledged and lost or misplaced, at the cost of reading every written page.
    pub verify_writes: bool,
    /// Publish the counters to other processes of the same user, in a file in shared memory: for `headroom log` and
    /// the source `pagestore:`. Only for a store in a directory.
    pub publish: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            log_limit_bytes: 4 << 30,
            log_keep_bytes: 64 << 20,
            redo_target: Duration::from_secs(2),
            checkpoint_bytes: 256 << 20,
            delayed_time: Duration::from_millis(10),
            delayed_bytes: 60 << 10,
            log_writes_in_flight: 1,
            parallel: 128,
            recovery: Recovery::default(),
            apply: Apply::default(),
            background: true,
            keep_awake: KeepAwake::Auto,
            verify_writes: false,
            publish: true,
        }
    }
}

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// When its log records are on the medium.
    #[default]
    Full,
    /// At once. It is on the medium within the bounds of `delayed_time` and `delayed_bytes`, and after the next
    /// full commit or `rollback`.
    Delayed,
}
