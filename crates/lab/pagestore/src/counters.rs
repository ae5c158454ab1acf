//! What a store counts while it is open, where other processes can read it: every I/O of every file, what the engine
//! did, where the time of commits went, and, when somebody asks, the state of the log.
//!
//! ```text
//! disk::Disk ── watched ── counts and times ──┐
//! journal, checkpoint ── the engine's counts ─┼─> board (atomics) ──(shared memory)──> live::Live, in any process
//! tx ── anatomy: the parts of each commit ────┤
//! delayed thread ── state, when asked ────────┘
//! ```
//! Nothing here takes a lock or makes a system call while a commit waits, and nothing depends on what is counted.

pub mod anatomy;
mod board;
pub mod live;
pub mod state;
mod watched;

pub use board::Owner;

use crate::control::Control;
use crate::disk::{Disk, FileId};
use board::{BOARD_BYTES, Board, EngineCounts, LogCounts};
use filestats::{Counters as FileCounters, Latencies};
use published::{Mapping, ProcessIdentity, counters_dir};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The cumulative counters of one file of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatistics {
    /// Which.
    pub file: FileId,
    /// Reads, writes (written through or not) and syncs.
    pub counters: FileCounters,
    /// Their histograms.
    pub latencies: Latencies,
    /// Reads, writes and syncs that failed; not in the counters.
    pub errors: u64,
}

/// What the engine did since the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Writes of blocks to the log.
    pub log_writes: u64,
    /// Their bytes.
    pub log_write_bytes: u64,
    /// Their time.
    pub log_write_ns: u64,
    /// Transactions that committed.
    pub commits: u64,
    /// Pages read from the data file.
    pub page_reads: u64,
    /// Pages put together from the log.
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

/// CLOCK_MONOTONIC in nanoseconds, without a system call.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The board of an open store.
pub(crate) struct Counters {
    mapping: Mapping,
    /// Why other processes do not see it.
    private: Option<String>,
}

impl Deref for Counters {
    type Target = Board;

    fn deref(&self) -> &Board {
        self.mapping.as_board()
    }
}

impl Counters {
    /// Zeros: in shared memory for a store in a directory, where that can be had, else of this process alone.
    /// Counting never keeps a store from being opened.
    pub(crate) fn begin(directory: Option<&Path>) -> Arc<Self> {
        let (mapping, private) = match directory.map(|_| share()) {
            Some(Ok(mapping)) => (mapping, None),
            Some(Err(error)) => (own_memory(), Some(error.to_string())),
            None => (own_memory(), Some("the store lies in no directory".into())),
        };
        let counters = Arc::new(Self { mapping, private });
        if counters.private.is_none()
            && let Some(process) = ProcessIdentity::own()
        {
            counters.head.begin(&process);
        }
        counters
    }

    /// The same disk, counted.
    pub(crate) fn watch(self: &Arc<Self>, disk: Arc<dyn Disk>) -> Arc<dyn Disk> {
        Arc::new(watched::Watched::new(disk, Arc::clone(self)))
    }

    /// Says whose these are; from here on others find them.
    pub(crate) fn announce(&self, directory: Option<&Path>, control: &Control) {
        if let Some(directory) = directory {
            self.head.announce(directory, control);
        }
    }

    /// Where others see them, or why they do not.
    pub(crate) fn published(&self) -> Result<&Path, &str> {
        let why = self.private.as_deref().unwrap_or("the counters are private");
        self.mapping.path().ok_or(why)
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        self.head.closed.store(1, Relaxed);
    }
}

const PREFIX: &str = "headroom-pagestore-";
const SUFFIX: &str = ".counters";

/// Whether a file's name is that of a board.
fn is_board_name(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

fn share() -> std::io::Result<Mapping> {
    static STORES: AtomicU32 = AtomicU32::new(0);
    /// Names that a process of another pid namespace, or a dead one, may have taken.
    const NAMES_TRIED: u32 = 1000;
    let (dir, pid) = (counters_dir(), std::process::id());
    // A program that is killed and started again and again leaves no more than one.
    live::remove_dead(&dir);
    for _ in 0..NAMES_TRIED {
        let name = format!("{PREFIX}{pid}-{}{SUFFIX}", STORES.fetch_add(1, Relaxed));
        match Mapping::create(&dir.join(name), BOARD_BYTES) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            other => return other,
        }
    }
    Err(std::io::Error::other("every name for a counters file is taken"))
}

fn own_memory() -> Mapping {
    Mapping::private(BOARD_BYTES).expect("there is memory for a store's counters")
}

/// The part of the board that the journal counts in.
#[derive(Clone)]
pub(crate) struct OfLog(pub Arc<Counters>);

impl Deref for OfLog {
    type Target = LogCounts;

    fn deref(&self) -> &LogCounts {
        &self.0.log
    }
}

/// … and the rest of the engine.
pub(crate) struct OfEngine(pub Arc<Counters>);

impl Deref for OfEngine {
    type Target = EngineCounts;

    fn deref(&self) -> &EngineCounts {
        &self.0.engine
    }
}
