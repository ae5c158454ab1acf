//! Rows of `dm_io_virtual_file_stats` as samples: the kind of each file, its database, and the meaning of its counters.
//!
//! ```text
//! tempdb                      temp
//! type 0, rows                data
//! type 1, log                 log
//! another type, or unknown    other; without a type, file 1 of a database is data, file 2 its log
//! ```

use super::statistics::{FileKey, FileRow, Statistics, Timed};
use filestats::{
    Cache, Counters, Epoch, Figure, FileIdentity, FileKind, Meaning, Ops, Reason, Sample, WaitClass,
    WaitSample,
};
use std::collections::BTreeMap;

const TEMPDB: i64 = 2;
/// The read-only resource database, which sys.databases does not list.
const RESOURCE: i64 = 32_767;
/// In a single database: Hyperscale's cache of pages on the local disk.
const LOCAL_CACHE: i64 = 0;
const NS_PER_MS: u64 = 1_000_000;

/// The server that samples are of, and its epoch.
pub(super) struct Owner<'a> {
    pub name: &'a str,
    pub run: &'a str,
    /// The mount point of each file's volume, if it is known.
    pub volumes: &'a BTreeMap<FileKey, Option<String>>,
}

/// A sample of each file.
pub(super) fn samples(statistics: &Statistics, owner: &Owner) -> Vec<Sample> {
    statistics.files.iter().map(|row| sample(row, owner)).collect()
}

fn sample(row: &FileRow, owner: &Owner) -> Sample {
    let file = FileIdentity {
        instance: owner.name.into(),
        database: row.database.clone(),
        database_id: row.database_id.try_into().ok(),
        file_id: row.identity(),
        kind: row.file_kind(),
        path: row.name(),
        drive: owner.volumes.get(&row.key()).cloned().flatten(),
        handle: Some(row.opening()),
        object: None,
    };
    let counters = Counters::without_syncs(ops(row.read), ops(row.write));
    Sample {
        size_bytes: row.size_bytes.map_or(Figure::unknown(Reason::NotCounted), Figure::Known),
        ..Sample::new(file, Epoch::for_run(owner.run), MEANING, counters)
    }
}

/// Requests that bypass the page cache (FILE_FLAG_NO_BUFFERING, on Linux O_DIRECT), timed from issue to completion in whole
/// milliseconds. The stall includes the time that Resource Governor delayed them.
const MEANING: Meaning = Meaning { cache: Cache::Missed, ..Meaning::REQUESTS };

fn ops(Timed { count, bytes, stall_ms }: Timed) -> Ops {
    Ops { count, bytes, stall_ns: nanoseconds(stall_ms) }
}

/// Converts milliseconds; unknown if the nanoseconds overflow.
pub(super) fn nanoseconds(ms: u64) -> Figure<u64> {
    ms.checked_mul(NS_PER_MS).map_or(Figure::unknown(Reason::NotCounted), Figure::Known)
}

/// How long Resource Governor, or that of the cloud, delayed each file's I/O. It is part of the stall, not a wait of a
/// session.
pub(super) fn queued(statistics: &Statistics, owner: &Owner) -> Vec<WaitSample> {
    let of_file = |row: &FileRow| {
        let kinds = [
            ("io_stall_queued_read_ms", row.queued_read_ms),
            ("io_stall_queued_write_ms", row.queued_write_ms),
        ];
        kinds.map(|(column, ms)| {
            // A file that was not delayed has no row, as a wait that never happened has none.
            let ms = ms.filter(|ms| *ms > 0)?;
            Some(WaitSample {
                instance: owner.name.into(),
                event: format!("{column} of {}", row.name()),
                class: WaitClass::Throttled,
                epoch: Epoch {
                    run: owner.run.into(),
                    reset: format!("{}, {}", row.identity(), row.opening()),
                },
                count: Figure::unknown(Reason::NotCounted),
                wait_ns: nanoseconds(ms),
            })
        })
    };
    statistics.files.iter().flat_map(of_file).flatten().collect()
}

impl FileRow {
    pub fn key(&self) -> FileKey {
        (self.database_id, self.file_id)
    }

    /// The physical name, or a substitute from database and number.
    pub fn name(&self) -> String {
        if let Some(path) = &self.path {
            return path.clone();
        }
        let database = match (self.database_id, &self.database) {
            (RESOURCE, None) => "mssqlsystemresource",
            (LOCAL_CACHE, None) => "local cache (RBPEX)",
            (_, Some(database)) => database,
            (id, None) => return format!("database {id}/file {}", self.file_id),
        };
        format!("{database}/file {}", self.file_id)
    }

    /// Whether its name is unknown although a login with the permission would see it.
    pub fn lacks_name(&self) -> bool {
        self.path.is_none() && ![RESOURCE, LOCAL_CACHE].contains(&self.database_id)
    }

    /// Identity of the file that stays after its database is detached and attached again, when its numbers change.
    fn identity(&self) -> String {
        match self.guid.is_empty() {
            true => format!("{}:{}", self.database_id, self.file_id),
            false => self.guid.clone(),
        }
    }

    /// Changes when the server opens the file again and its counters begin at zero: after detach and attach, offline and
    /// online, restore. A handle's number may be reused; then the database's number and date differ, unless it was only
    /// offline.
    fn opening(&self) -> String {
        format!("{} of database {} created {}", self.handle, self.database_id, self.database_created)
    }

    pub fn file_kind(&self) -> FileKind {
        match (self.database_id, self.kind) {
            (TEMPDB, _) => FileKind::Temp,
            (LOCAL_CACHE, _) => FileKind::Other,
            (_, Some(0)) => FileKind::Data,
            (_, Some(1)) => FileKind::Log,
            (_, Some(_)) => FileKind::Other,
            (_, None) => match self.file_id {
                1 => FileKind::Data,
                2 => FileKind::Log,
                _ => FileKind::Other,
            },
        }
    }
}
