//! How a store is made and used.

use crate::delta::MAX_PAGE_BYTES;
use crate::error::{Error, Result};
use crate::log::{Geometry, LOG_HEAD_BYTES, MAX_BLOCK_BYTES};
use crate::types::Lsn;
use std::time::Duration;

/// What is fixed when a store is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a page: 4, 8 or 16 KiB.
    pub page_bytes: usize,
    /// Log blocks are padded to this: the unit that the device writes without reading, 4 KiB almost everywhere. The device is
    /// not asked for it, only whether it takes writes of this size.
    pub log_sector_bytes: usize,
    /// Bytes of a virtual log file, a multiple of 4 KiB from 120 KiB to less than 512 MiB. Opening after a crash reads the
    /// last one as a whole, and of the others an index.
    pub vlf_bytes: u64,
    /// Virtual log files that are made, and written with zeros, at the beginning: two at least, and no more than
    /// `Options::log_limit_bytes` lets the log have.
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
        // Small ones are for tests, which must go round often.
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

    /// The bytes of all virtual log files that are made at the beginning.
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

/// How a store that was not closed is brought up to its last commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Recovery {
    /// Reads of 32 KiB, pages written one by one in the log's order, a sync for every virtual log file: as the
    /// engines of the study do it.
    Serial,
    /// The log in large reads, many at once; then pages one by one, and one sync.
    Prefetch,
    /// All pages known first, then written in order of place, neighbours together, many at once; one sync.
    Wide,
    /// Opens when the log has been read; pages are put together from the log as they are asked for, and written
    /// as with `Wide` in the background.
    #[default]
    Instant,
}

/// Whether the processor of a thread that commits alone is kept from sleeping while its log write is in flight: its way out
/// of sleep is part of the commit, in a virtual machine a third of it.
///
/// While such commits follow one another within a millisecond, and their writes take less than half of one, a thread of the
/// lowest policy (`SCHED_IDLE`) turns on that processor until the write is done. What else wants to run goes before it;
/// but where control groups share a processor by weight, it is their group's time that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeepAwake {
    /// The processor is the system's.
    Never,
    /// Where it was found to take a tenth off a log write, tried anew every few thousand. Not with one processor, under a
    /// quota of processor time, or with a battery.
    #[default]
    Auto,
    /// It is known to pay.
    Always,
}

/// How recovery writes pages to the data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Apply {
    /// By direct I/O.
    #[default]
    Direct,
    /// Through a memory mapping, to compare: the kernel writes back, and a sync waits for all of it. Where the device
    /// cannot read a page in, the process ends.
    Mapped,
}

/// How a store is used while it is open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Memory for pages, in bytes: three quarters for what was read or committed, the rest for the transaction that
    /// writes. It may change more than fits: what does not fit goes to the log early. Beside it the store takes
    ///
    /// * what the pages of that transaction were before, where they left the cache: a quarter of this at most;
    /// * 300 bytes for each page that is not in the data file yet, and for each that was changed after the oldest snapshot
    ///   began and has left the cache;
    /// * 100 bytes for each older version in the files that a snapshot may need, of those that are more than the pages that
    ///   are not in the data file yet (of this and the latter an eighth of this at most, then the snapshot is given up);
    /// * during a checkpoint its batch, a quarter of this (1 MiB at least, 1 GiB at most), 2 MiB of the log, and the
    ///   versions that it has yet to write of pages that leave the cache meanwhile, three quarters of this at most;
    /// * 4 MiB for the log on its way.
    ///
    /// `tests/memory.rs` holds it to that. What the system's allocator adds to it is not counted.
    pub cache_bytes: usize,
    /// The log grows up to this, and is not made larger.
    pub log_limit_bytes: u64,
    /// Recovery shall not take longer than this to redo what the data file does not have: a checkpoint begins early
    /// enough, and is written slowly enough not to be noticed, by what reading log and writing pages were measured
    /// to take. With background threads.
    pub redo_target: Duration,
    /// A checkpoint begins at the latest when the log since the last one has this length; `u64::MAX`: none begins
    /// for the sake of recovery.
    pub checkpoint_bytes: u64,
    /// A delayed commit is durable at the latest after this time (with background threads) …
    pub delayed_time: Duration,
    /// … or when this many bytes of log wait, beside those of a write that is on its way.
    pub delayed_bytes: usize,
    /// Log writes in flight at once. More than one are smaller ones: on a virtual disk whose writes take 130 us, one was the
    /// quickest for 16 and 64 threads that commit, two for four.
    pub log_writes_in_flight: usize,
    /// Writes of pages in flight at once where pages are written as fast as can be: after a crash, and by a checkpoint
    /// that somebody waits for. Of reads of the log, up to 16. 0 is taken for 1.
    pub parallel: usize,
    /// How it is recovered.
    pub recovery: Recovery,
    /// How recovery writes pages; afterwards it is always direct I/O.
    pub apply: Apply,
    /// Whether checkpoints and delayed commits have threads of their own. Without, a commit that finds a
    /// checkpoint due does it itself: everything happens in the order of the calls.
    pub background: bool,
    /// Whether the processor of a thread that commits alone is kept awake while its log write is in flight. With background
    /// threads.
    pub keep_awake: KeepAwake,
    /// Read back what a checkpoint wrote before its part of the log is freed. Finds writes that the device
    /// acknowledged and lost or put elsewhere, at the price of reading every written page.
    pub verify_writes: bool,
    /// Show the counters to other processes of the same user, through a file in shared memory: for `headroom log`
    /// and the source `pagestore:`. Of a store in a directory.
    pub publish: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            log_limit_bytes: 4 << 30,
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
    /// At once; it is on the medium within the bounds of `delayed_time` and `delayed_bytes`, and with the next
    /// full commit or `rollback`.
    Delayed,
}
