//! Bounds of a history that another user may have made: what its schema may do, how large a value may be, and how much
//! processor time one read or write may take.

use crate::paths::{beside, real_path};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ffi};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of one value. The largest are results as JSON, a few MiB.
const VALUE_BYTES_MAX: i32 = 64 << 20;
/// Bytes of a statement, one in the schema of the file included. The longest of ours has 5 KiB.
const STATEMENT_BYTES_MAX: i32 = 256 << 10;
/// Columns of a table or result. The widest of ours has 30.
const COLUMNS_MAX: i32 = 200;
/// Instructions of a prepared statement. The longest of ours has about 500.
const INSTRUCTIONS_MAX: i32 = 50_000;
/// Instructions between two checks of the clock: less than a millisecond.
const INSTRUCTIONS_PER_LOOK: i32 = 10_000;

/// Processor time that each read or write may take, however small the file is. It is not wall-clock time: a slow disk costs none.
const CPU_MIN: Duration = Duration::from_secs(2);
/// Bytes of the file for which it may take a second more. SQLite reads 100 MiB of rows a second and more.
const BYTES_PER_CPU_SECOND: u64 = 4 << 20;
/// The most processor time, for a file of any size: ten times what a check of 30 GiB takes.
const CPU_MAX: Duration = Duration::from_secs(300);

/// Rows that a query may return, however small the file is: two months of minutes.
const ROWS_MIN: u64 = 100_000;
/// Bytes on the disk that a returned row takes at least. Its number and its time have 8, and a file system may compress them.
const BYTES_PER_ROW_MIN: u64 = 1;

/// The processor time that is left for a connection.
#[derive(Clone, Debug)]
pub(crate) struct CpuBudget {
    files: Files,
    /// The calling thread's processor time at which it is spent, nanoseconds.
    until_ns: Arc<AtomicU64>,
}

impl CpuBudget {
    /// Begins one read or write on this thread.
    pub fn begin(&self) {
        let allowed_ns = u64::try_from(self.files.cpu_max().as_nanos()).unwrap_or(u64::MAX);
        self.until_ns.store(thread_cpu_ns().saturating_add(allowed_ns), Ordering::Relaxed);
    }

    /// Ends a statement of this connection with `SQLITE_INTERRUPT` once the time is spent, or its result is no longer wanted. It
    /// replaces the handler of before: SQLite has one a connection.
    pub fn watch(&self, connection: &Connection, mut is_wanted: impl FnMut() -> bool + Send + 'static) {
        let until_ns = Arc::clone(&self.until_ns);
        let ends = move || !is_wanted() || thread_cpu_ns() > until_ns.load(Ordering::Relaxed);
        connection.progress_handler(INSTRUCTIONS_PER_LOOK, Some(ends));
    }

    /// Rows that a query may return.
    pub fn rows_max(&self) -> u64 {
        ROWS_MIN + self.files.bytes_on_disk() / BYTES_PER_ROW_MIN
    }
}

/// The error of a query that returns more rows, or takes more time, than a sound file can.
pub(crate) fn too_costly() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None)
}

/// Processor time that one read or write of the history at this path may take.
pub(crate) fn cpu_max(path: &Path) -> Duration {
    Files::new(path).cpu_max()
}

/// A history and its WAL.
#[derive(Clone, Debug)]
struct Files([PathBuf; 2]);

impl Files {
    fn new(path: &Path) -> Files {
        let real = real_path(path);
        let wal = beside(&real, "-wal");
        Files([real, wal])
    }

    /// Their blocks, not their length, which costs their owner nothing.
    fn bytes_on_disk(&self) -> u64 {
        self.0
            .iter()
            .filter_map(|file| fs::metadata(file).ok())
            .map(|found| found.blocks().saturating_mul(512))
            .sum()
    }

    fn cpu_max(&self) -> Duration {
        (CPU_MIN + Duration::from_secs(self.bytes_on_disk() / BYTES_PER_CPU_SECOND)).min(CPU_MAX)
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Bounds all that this connection does, its first statement included. A statement that exceeds its processor time ends with
/// `SQLITE_INTERRUPT`.
pub(crate) fn bound(connection: &Connection, path: &Path) -> rusqlite::Result<CpuBudget> {
    for (config, value) in [
        // Functions with effects, and virtual tables, do nothing in views, indexes and constraints of the file.
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        // The schema and the pages of other tables cannot be written as data.
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        // The schema of Headroom has no triggers.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
    ] {
        connection.set_db_config(config, value)?;
    }
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, STATEMENT_BYTES_MAX),
        (Limit::SQLITE_LIMIT_COLUMN, COLUMNS_MAX),
        (Limit::SQLITE_LIMIT_VDBE_OP, INSTRUCTIONS_MAX),
        // VACUUM attaches its copy.
        (Limit::SQLITE_LIMIT_ATTACHED, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, most)?;
    }
    let budget = CpuBudget { files: Files::new(path), until_ns: Arc::default() };
    budget.begin();
    budget.watch(connection, || true);
    // A file that is cut short meanwhile would raise SIGBUS.
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(budget)
}
