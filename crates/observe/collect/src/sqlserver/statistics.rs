//! The queries of a snapshot, and their answers as types.
//!
//! `dm_io_virtual_file_stats` is read with all its columns, which are found by name: they differ between versions (queued
//! stalls since 2014, a wider `sample_ms` since 2016, pushed reads since 2022), and Azure reports no useful version.

use super::error::SqlServerError;
use super::session::Session;
use std::collections::BTreeMap;
use std::time::Instant;
use tds::Row;

const FILES: &str = "SELECT vfs.*, os.ms_ticks AS ms_ticks, CONVERT(nvarchar(40), os.sqlserver_start_time, 126) AS started, \
     CAST(DB_NAME(vfs.database_id) AS nvarchar(128)) AS database_name, \
     CONVERT(nvarchar(40), db.create_date, 126) AS database_created, \
     CONVERT(nvarchar(36), mf.file_guid) AS file_guid, CAST(mf.type AS int) AS file_type, \
     CAST(mf.physical_name AS nvarchar(520)) AS physical_name, \
     HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW ANY DEFINITION') AS sees_names \
     FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS vfs CROSS JOIN sys.dm_os_sys_info AS os \
     LEFT JOIN sys.databases AS db ON db.database_id = vfs.database_id \
     LEFT JOIN sys.master_files AS mf ON mf.database_id = vfs.database_id AND mf.file_id = vfs.file_id";
/// The connected database, tempdb (2), and Hyperscale's cache on local storage (0). In `sys.databases` the database may
/// have another number than DB_ID().
const FILES_OF_SINGLE_DATABASE: &str = "SELECT vfs.*, os.ms_ticks AS ms_ticks, \
     CONVERT(nvarchar(40), os.sqlserver_start_time, 126) AS started, \
     CAST(CASE vfs.database_id WHEN 2 THEN N'tempdb' WHEN DB_ID() THEN DB_NAME() END AS nvarchar(128)) AS database_name, \
     CONVERT(nvarchar(40), db.create_date, 126) AS database_created, \
     CONVERT(nvarchar(36), mf.file_guid) AS file_guid, CAST(mf.type AS int) AS file_type, \
     CAST(mf.physical_name AS nvarchar(520)) AS physical_name, 1 AS sees_names \
     FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS vfs CROSS JOIN sys.dm_os_sys_info AS os \
     LEFT JOIN sys.databases AS db ON vfs.database_id = DB_ID() AND db.name = DB_NAME() \
     LEFT JOIN (SELECT DB_ID() AS database_id, file_id, file_guid, type, \
     physical_name COLLATE DATABASE_DEFAULT AS physical_name FROM sys.database_files UNION ALL \
     SELECT 2, file_id, file_guid, type, physical_name COLLATE DATABASE_DEFAULT FROM tempdb.sys.database_files) AS mf \
     ON mf.database_id = vfs.database_id AND mf.file_id = vfs.file_id WHERE vfs.database_id IN (DB_ID(), 2, 0)";
/// Idle waits too: a reset shows in them first.
const WAITS: &str = "SELECT wait_type, waiting_tasks_count, wait_time_ms, signal_wait_time_ms FROM sys.dm_os_wait_stats \
     WHERE waiting_tasks_count > 0";
const WAITS_OF_SINGLE_DATABASE: &str = "SELECT wait_type, waiting_tasks_count, wait_time_ms, signal_wait_time_ms \
     FROM sys.dm_db_wait_stats WHERE waiting_tasks_count > 0";
/// The server opens each volume for this query: it is run only if there are new files.
const VOLUMES: &str = "SELECT vfs.database_id, vfs.file_id, CAST(v.volume_mount_point AS nvarchar(512)) AS mount_point \
     FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS vfs CROSS APPLY \
     sys.dm_os_volume_stats(vfs.database_id, vfs.file_id) AS v";
/// Two clocks of one machine, read at nearly the same time, are this near to each other.
const CLOCKS_APART_MS_MAX: u64 = 60_000;

/// Numbers of database and file. The server reuses numbers.
pub(super) type FileKey = (i64, i64);

/// The server's statistics at one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    /// When the server started, by its own clock.
    pub started: String,
    /// Since the server's machine started.
    pub clock_ms: u64,
    pub taken_unix_ns: u64,
    pub files: Vec<FileRow>,
    pub waits: Vec<WaitRow>,
    /// Why there are no waits, if there are none.
    pub waits_error: Option<String>,
    /// The login may see the names of all files.
    pub sees_names: bool,
    /// Some rows are left out or malformed.
    pub is_cut: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileRow {
    pub database_id: i64,
    pub file_id: i64,
    pub database: Option<String>,
    pub database_created: String,
    /// Empty where the server does not report it.
    pub guid: String,
    /// Of `sys.master_files`: 0 rows, 1 log, 2 FILESTREAM.
    pub kind: Option<i64>,
    pub path: Option<String>,
    pub handle: String,
    pub size_bytes: Option<u64>,
    pub read: Timed,
    pub write: Timed,
    /// Part of the stalls that Resource Governor, or the cloud's, added. Since 2014.
    pub queued_read_ms: Option<u64>,
    pub queued_write_ms: Option<u64>,
    /// Since 2022.
    pub pushed_reads: u64,
}

/// Operations of one kind, cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timed {
    pub count: u64,
    pub bytes: u64,
    pub stall_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WaitRow {
    pub event: String,
    pub count: u64,
    /// With the signal wait.
    pub wait_ms: u64,
    /// Between the end of the wait and a processor.
    pub signal_ms: u64,
}

impl Statistics {
    /// Whether every file and wait is here, with its permanent name: one that is not here and appears later began at zero.
    pub fn is_complete(&self) -> bool {
        !self.is_cut
            && self.waits_error.is_none()
            && (self.sees_names || !self.files.iter().any(FileRow::lacks_name))
    }
}

impl Session {
    /// Runs all queries, that of the files last.
    pub fn read_statistics(&mut self, deadline: Instant) -> Result<Statistics, SqlServerError> {
        if self.server.is_synapse {
            let why = "Azure Synapse keeps its statistics elsewhere, which Headroom does not read".into();
            return Err(SqlServerError::Failed(why));
        }
        let single = self.server.is_single_database;
        let mut statistics = Statistics::default();
        match self.query(if single { WAITS_OF_SINGLE_DATABASE } else { WAITS }, deadline) {
            Ok(table) => {
                statistics.is_cut = table.is_cut;
                for row in table.rows() {
                    match wait_row(&row) {
                        Some(wait) => statistics.waits.push(wait),
                        None => statistics.is_cut = true,
                    }
                }
            }
            // The server rejects this query. Where it denies permission, the files are denied too; after a malformed answer
            // the connection cannot be used.
            Err(SqlServerError::Failed(why)) => statistics.waits_error = Some(why),
            Err(error) => return Err(error),
        }
        let files = self.query(if single { FILES_OF_SINGLE_DATABASE } else { FILES }, deadline)?;
        statistics.taken_unix_ns = host::unix_ns();
        statistics.is_cut |= files.is_cut;
        for row in files.rows() {
            match file_row(&row) {
                Some(file) => statistics.files.push(file),
                None => statistics.is_cut = true,
            }
            statistics.clock_ms = statistics.clock_ms.max(clock_ms(&row).unwrap_or_default());
            statistics.started = row.text("started").unwrap_or_default().into();
            statistics.sees_names = row.int("sees_names") == Some(1);
        }
        if statistics.started.is_empty() || statistics.clock_ms == 0 {
            let why = "it does not report when it started".into();
            return Err(SqlServerError::Failed(why));
        }
        Ok(statistics)
    }

    /// Where each file's volume is mounted; empty where the server does not report it.
    pub fn volumes(&mut self, deadline: Instant) -> Result<BTreeMap<FileKey, String>, SqlServerError> {
        if self.server.is_single_database {
            return Ok(BTreeMap::new());
        }
        let table = match self.query(VOLUMES, deadline) {
            Ok(table) => table,
            Err(SqlServerError::Failed(_) | SqlServerError::Denied { .. }) => return Ok(BTreeMap::new()),
            Err(error) => return Err(error),
        };
        let volume = |row: Row| {
            let key = (row.int("database_id")?, row.int("file_id")?);
            Some((key, row.text("mount_point")?.to_owned()))
        };
        Ok(table.rows().filter_map(volume).collect())
    }
}

/// `None` if a figure is missing or negative, which no documented server returns.
fn file_row(row: &Row) -> Option<FileRow> {
    let timed = |count, bytes, stall| {
        Some(Timed { count: row.count(count)?, bytes: row.count(bytes)?, stall_ms: row.count(stall)? })
    };
    let text = |name| row.text(name).unwrap_or_default().to_owned();
    Some(FileRow {
        database_id: row.int("database_id")?,
        file_id: row.int("file_id")?,
        database: row.text("database_name").map(Into::into),
        database_created: text("database_created"),
        guid: text("file_guid"),
        kind: row.int("file_type"),
        path: row.text("physical_name").filter(|path| !path.is_empty()).map(Into::into),
        handle: row.bytes("file_handle").map(hexadecimal).unwrap_or_default(),
        size_bytes: row.count("size_on_disk_bytes"),
        read: timed("num_of_reads", "num_of_bytes_read", "io_stall_read_ms")?,
        write: timed("num_of_writes", "num_of_bytes_written", "io_stall_write_ms")?,
        queued_read_ms: row.count("io_stall_queued_read_ms"),
        queued_write_ms: row.count("io_stall_queued_write_ms"),
        pushed_reads: row.count("num_of_pushed_reads").unwrap_or_default(),
    })
}

fn wait_row(row: &Row) -> Option<WaitRow> {
    Some(WaitRow {
        event: row.text("wait_type")?.to_owned(),
        count: row.count("waiting_tasks_count")?,
        wait_ms: row.count("wait_time_ms")?,
        signal_ms: row.count("signal_wait_time_ms")?,
    })
}

/// When the row was made. `sample_ms` is an int up to 2014: it wraps after 49.7 days and is negative half of the time.
/// `ms_ticks` is the same clock in 64 bits, read at nearly the same time: the result is the nearest time with the 32 bits
/// of `sample_ms`.
fn clock_ms(row: &Row) -> Option<u64> {
    let ticks = row.count("ms_ticks")?;
    let Some(sample) = row.int("sample_ms") else { return Some(ticks) };
    let apart = (sample as u32).wrapping_sub(ticks as u32).cast_signed();
    let unwrapped = ticks.checked_add_signed(apart.into())?;
    Some(if unwrapped.abs_diff(ticks) > CLOCKS_APART_MS_MAX { ticks } else { unwrapped })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02X}"))
}
