//! Rows of `file_summary_by_instance` as samples: the kind of each file, its database, and the meaning of its counters.
//!
//! ```text
//! instrument                                kind    file_id begins with
//! innodb/innodb_data_file                   data
//!   ibtmp1, *.ibt                           temp
//!   *.dblwr, innodb/innodb_dblwr_file       other   doublewrite:
//! innodb/innodb_log_file                    log     redo:
//!   in #innodb_redo (by event, since the log moves on through files that are renamed and deleted)
//! sql/binlog, sql/relaylog                  log     binlog:, relaylog:
//! aria/translog                             log     aria-log:
//! aria, myisam, csv, archive                data
//! sql/io_cache, binlog_cache, ... (by event, since such files live for a statement)   temp
//! ```

use super::statistics::{Counted, EventRow, FileRow, Switches, Timed};
use super::{Resets, Server};
use crate::volume::mount_point;
use filestats::{Cache, Counters, Epoch, Figure, FileIdentity, FileKind, Meaning, Ops, Reason, Sample, Time};
use host::Mounts;
use std::path::Path;

/// The purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Data,
    /// InnoDB's data, whose I/O is partly asynchronous.
    InnodbData,
    InnodbTemp,
    Doublewrite,
    Redo,
    AriaLog,
    Binlog,
    Relaylog,
    Temp,
    Other,
}

/// The server that samples are of, and its epoch.
pub(super) struct Owner<'a> {
    pub name: &'a str,
    pub run: &'a str,
    pub server: &'a Server,
    pub resets: &'a Resets,
}

/// A sample of each file whose instrument is on, and one of each kind of short-lived file.
pub(super) fn samples(counted: &Counted, owner: &Owner) -> Vec<Sample> {
    let mounts = Mounts::read().unwrap_or_default();
    let switches = &counted.switches;
    let files = counted.files.iter().filter(|row| switches.counts(&row.event) && !is_short_lived(&row.event));
    let events =
        counted.events.iter().filter(|row| switches.counts(&row.event) && is_short_lived(&row.event));
    let files = files.map(|row| file_sample(row, switches, owner, &mounts));
    let temporary = drive(&owner.server.temporary_directory, owner.server, &mounts);
    let events = events.map(|row| event_sample(row, switches, owner, temporary.clone()));
    files.chain(events).chain(rotating_redo(counted, owner, &mounts)).collect()
}

/// The redo log of MySQL 8.0.30 and later as one sample, from the sums of its instrument, which include deleted files.
/// Counted by file, most intervals would begin with a new file.
fn rotating_redo(counted: &Counted, owner: &Owner, mounts: &Mounts) -> Option<Sample> {
    let event = &counted.redo_parts.first()?.event;
    let switches = &counted.switches;
    let row = counted.events.iter().find(|row| row.event == *event && switches.counts(event))?;
    let server = owner.server;
    let parts = counted.redo_parts.iter().map(|part| server.data_directory.join(&part.path));
    // A renamed file is not found, and then the sum is unknown.
    let sizes =
        parts.map(|path| server.find_file(&path).map(|found| found.size_bytes)).collect::<Option<Vec<_>>>();
    let directory = server.data_directory.join(&counted.redo_parts.first()?.path);
    let directory = directory.parent()?;
    let path = directory.to_string_lossy().into_owned();
    let file = FileIdentity {
        file_id: format!("{}{path}", Role::Redo.prefix()),
        drive: drive(directory, server, mounts),
        ..aggregate(owner, Role::Redo.kind(), &path)
    };
    let counters = counters(row.read, row.write, switches.times(event));
    let sample = Sample::new(file, epoch(owner, event), meaning(Role::Redo, server), counters);
    Some(match sizes {
        Some(sizes) => Sample {
            size_bytes: Figure::Known(sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size))),
            ..sample
        },
        None => sample,
    })
}

/// The mount point, if the server is in the same mount namespace.
fn drive(path: &Path, server: &Server, mounts: &Mounts) -> Option<String> {
    let shares_mounts = server.process.as_ref().is_some_and(super::server::Process::shares_mounts);
    mount_point(mounts, path).filter(|_| shares_mounts)
}

/// The mount point of the redo log's directory, which may be a link.
pub(super) fn log_drive(server: &Server) -> Option<String> {
    let directory = &server.log_directory;
    let directory = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.clone());
    drive(&directory, server, &Mounts::read().unwrap_or_default())
}

fn file_sample(row: &FileRow, switches: &Switches, owner: &Owner, mounts: &Mounts) -> Sample {
    let server = owner.server;
    let path = server.data_directory.join(&row.path);
    let role = role(&row.event, &path);
    let found = row.found.as_ref();
    let file = FileIdentity {
        database: database(&path, &server.data_directory),
        file_id: format!("{}{}", role.prefix(), found.map_or(&row.path, |found| &found.inode)),
        drive: drive(&path, server, mounts),
        handle: Some(row.instance.clone()),
        ..aggregate(owner, role.kind(), &path.to_string_lossy())
    };
    let counters = counters(row.read, row.write, switches.times(&row.event));
    let sample = Sample::new(file, epoch(owner, &row.event), meaning(role, server), counters);
    match found {
        Some(found) => Sample { size_bytes: Figure::Known(found.size_bytes), ..sample },
        None => sample,
    }
}

fn event_sample(row: &EventRow, switches: &Switches, owner: &Owner, drive: Option<String>) -> Sample {
    let path = format!("temporary files ({})", short(&row.event));
    let counters = counters(row.read, row.write, switches.times(&row.event));
    Sample::new(
        FileIdentity { drive, ..aggregate(owner, FileKind::Temp, &path) },
        epoch(owner, &row.event),
        Meaning::REQUESTS,
        counters,
    )
}

/// The identity of a sample that is of no single file.
pub(super) fn aggregate(owner: &Owner, kind: FileKind, path: &str) -> FileIdentity {
    FileIdentity {
        instance: owner.name.into(),
        file_id: path.into(),
        kind,
        path: path.into(),
        ..FileIdentity::default()
    }
}

pub(super) fn epoch(owner: &Owner, event: &str) -> Epoch {
    Epoch { run: owner.run.into(), reset: owner.resets.reset_of(event) }
}

/// Syncs are in COUNT_MISC together with opens, closes and stats, and cannot be separated.
fn counters(read: Timed, write: Timed, timed: bool) -> Counters {
    let ops = |kind: Timed| Ops {
        count: kind.count,
        bytes: kind.bytes,
        stall_ns: if timed { Figure::Known(kind.ns) } else { Figure::unknown(Reason::TimingOff) },
    };
    Counters::without_syncs(ops(read), ops(write))
}

/// InnoDB submits page writes and read-ahead to the kernel and stops the clock there (os_aio() of os0file.cc in MariaDB,
/// pfs_os_aio_func() in MySQL), whatever innodb_use_native_aio is: on a device of 100 writes a second, such a "write" took
/// 5 us. Reads that a session waits for are timed to completion, read-ahead is not.
fn meaning(role: Role, server: &Server) -> Meaning {
    match role {
        Role::InnodbData | Role::InnodbTemp => Meaning {
            write_time: Time::ToSubmission,
            cache: if server.direct_io { Cache::Missed } else { Cache::Included },
            ..Meaning::REQUESTS
        },
        _ => Meaning::REQUESTS,
    }
}

/// "innodb/innodb_data_file" of "wait/io/file/innodb/innodb_data_file".
pub(super) fn short(event: &str) -> &str {
    event.strip_prefix("wait/io/file/").unwrap_or(event)
}

/// Files that are deleted when they are closed. Their rows disappear; the sums by event stay.
fn is_short_lived(event: &str) -> bool {
    let names = [
        "sql/io_cache",
        "sql/binlog_cache",
        "sql/hash_join",
        "sql/binlog_index_cache",
        "sql/relaylog_cache",
        "sql/relaylog_index_cache",
        "innodb/innodb_temp_file",
        "myisam/data_tmp",
    ];
    names.contains(&short(event))
}

pub(super) fn role(event: &str, path: &Path) -> Role {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match short(event) {
        "innodb/innodb_data_file" | "innodb/innodb_tablespace_open_file" => match () {
            () if name.ends_with(".dblwr") => Role::Doublewrite,
            () if name.starts_with("ibtmp") || name.ends_with(".ibt") => Role::InnodbTemp,
            () => Role::InnodbData,
        },
        "innodb/innodb_dblwr_file" => Role::Doublewrite,
        "innodb/innodb_log_file" => Role::Redo,
        "aria/translog" => Role::AriaLog,
        "sql/binlog" => Role::Binlog,
        "sql/relaylog" => Role::Relaylog,
        "aria/MAD" | "aria/MAI" | "myisam/dfile" | "myisam/kfile" | "csv/data" | "archive/data" => {
            // Temporary tables of a statement.
            if name.starts_with("#sql") { Role::Temp } else { Role::Data }
        }
        event if is_short_lived(event) => Role::Temp,
        _ => Role::Other,
    }
}

impl Role {
    pub fn kind(self) -> FileKind {
        match self {
            Role::Data | Role::InnodbData => FileKind::Data,
            Role::Redo | Role::AriaLog | Role::Binlog | Role::Relaylog => FileKind::Log,
            Role::InnodbTemp | Role::Temp => FileKind::Temp,
            // Every flushed page is written there first. As data it would be counted twice.
            Role::Doublewrite | Role::Other => FileKind::Other,
        }
    }

    /// Begins the file's identity, so that logs are recognised whatever their names are.
    pub fn prefix(self) -> &'static str {
        match self {
            Role::Redo => "redo:",
            Role::AriaLog => "aria-log:",
            Role::Binlog => "binlog:",
            Role::Relaylog => "relaylog:",
            Role::Doublewrite => "doublewrite:",
            _ => "",
        }
    }
}

/// The schema: the name of the directory of a table's file.
fn database(path: &Path, data_directory: &Path) -> Option<String> {
    const TABLE_FILES: [&str; 12] =
        ["ibd", "frm", "MYD", "MYI", "MAD", "MAI", "CSV", "CSM", "ARZ", "sdi", "opt", "par"];
    let extension = path.extension()?.to_str()?;
    let directory = path.parent()?;
    let is_schema = directory != data_directory && TABLE_FILES.contains(&extension);
    let name = directory.file_name()?.to_str().filter(|_| is_schema)?;
    (!name.starts_with('#')).then(|| decode_name(name))
}

/// Decodes a file name, in which `@` and four hexadecimal digits stand for other characters than letters and digits.
fn decode_name(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        let code = rest.strip_prefix('@').and_then(|after| after.get(..4));
        let decoded = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        match decoded {
            Some(decoded) => {
                text.push(decoded);
                rest = &rest[5..];
            }
            None => {
                text.push(character);
                rest = &rest[character.len_utf8()..];
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn role_of(event: &str, path: &str) -> Role {
        role(&format!("wait/io/file/{event}"), Path::new(path))
    }

    #[test]
    fn logs_data_doublewrite_and_temporary_files_have_different_roles() {
        assert_eq!(role_of("innodb/innodb_data_file", "/d/shop/orders.ibd"), Role::InnodbData);
        assert_eq!(role_of("innodb/innodb_data_file", "/d/ibdata1"), Role::InnodbData);
        assert_eq!(role_of("innodb/innodb_data_file", "/d/ibtmp1"), Role::InnodbTemp);
        assert_eq!(role_of("innodb/innodb_data_file", "/d/#innodb_temp/temp_3.ibt"), Role::InnodbTemp);
        assert_eq!(role_of("innodb/innodb_dblwr_file", "/d/#ib_16384_0.dblwr"), Role::Doublewrite);
        assert_eq!(role_of("innodb/innodb_log_file", "/d/#innodb_redo/#ib_redo9"), Role::Redo);
        assert_eq!(role_of("sql/binlog", "/d/mysql-bin.000007"), Role::Binlog);
        assert_eq!(role_of("sql/binlog_index", "/d/mysql-bin.index"), Role::Other);
        assert_eq!(role_of("aria/MAD", "/tmp/#sql-temptable-30-5-0.MAD"), Role::Temp);
        assert_eq!(role_of("aria/MAD", "/d/mysql/db.MAD"), Role::Data);
        assert_eq!(role_of("sql/io_cache", "/tmp/MYfd=42"), Role::Temp);
        assert_eq!(role_of("sql/slow_log", "/d/slow.log"), Role::Other);
    }

    #[test]
    fn a_table_belongs_to_the_schema_of_its_directory() {
        let schema = |path: &str| database(Path::new(path), Path::new("/d"));
        assert_eq!(schema("/d/shop/orders.ibd").as_deref(), Some("shop"));
        assert_eq!(schema("/fast/shop/orders#P#p0.ibd").as_deref(), Some("shop"), "DATA DIRECTORY");
        assert_eq!(schema("/d/my@002dshop/orders.ibd").as_deref(), Some("my-shop"));
        assert_eq!(schema("/d/mysql.ibd"), None, "the dictionary of MySQL 8");
        assert_eq!(schema("/d/ibdata1"), None);
        assert_eq!(schema("/d/#innodb_redo/#ib_redo9"), None);
    }

    #[test]
    fn a_redo_log_of_several_files_is_one_sample() {
        const EVENT: &str = "wait/io/file/innodb/innodb_log_file";
        let part = |path: &str, count| FileRow {
            path: path.into(),
            event: EVENT.into(),
            count,
            write: Timed { count, bytes: 512 * count, ns: 100 * count },
            ..FileRow::default()
        };
        assert!(part("/d/#innodb_redo/#ib_redo9", 1).is_part_of_redo());
        assert!(part("./#innodb_redo/#ib_redo10_tmp", 0).is_part_of_redo());
        assert!(!part("/d/ib_logfile0", 1).is_part_of_redo(), "MySQL 5.7: files that stay");
        // Files 1 to 8 are deleted: only the sum includes their writes.
        let write = Timed { count: 400, bytes: 204_800, ns: 40_000 };
        let counted = Counted {
            switches: Switches { global: true, instruments: [(EVENT.to_owned(), (true, true))].into() },
            redo_parts: vec![
                part("/d/#innodb_redo/#ib_redo9", 41),
                part("/d/#innodb_redo/#ib_redo10_tmp", 0),
            ],
            events: vec![EventRow { event: EVENT.into(), write, ..EventRow::default() }],
            ..Counted::default()
        };
        let (server, resets) = (Server::default(), Resets::new());
        let owner = Owner { name: "mysql db", run: "1", server: &server, resets: &resets };
        let samples = samples(&counted, &owner);
        let [sample] = &samples[..] else { panic!("{samples:?}") };
        assert_eq!((sample.file.path.as_str(), sample.file.kind), ("/d/#innodb_redo", FileKind::Log));
        assert!(sample.file.file_id.starts_with("redo:"));
        assert_eq!((sample.counters.write.count, sample.counters.write.bytes), (400, 204_800));
        assert_eq!(sample.counters.write.stall_ns, Figure::Known(40_000));
    }

    proptest! {
        #[test]
        fn any_name_is_decoded(name in any::<String>(), near in "[@a-f0-9é]{0,20}") {
            decode_name(&name);
            decode_name(&near);
            database(Path::new(&name), Path::new("/d"));
        }
    }
}
