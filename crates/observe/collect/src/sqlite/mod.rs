//! SQLite programs with the VFS shim (`sqlite-vfs`), linked in or loaded as an extension.
//!
//! A sample is one file of one process: the data, its log ("-wal"), its journal ("-journal", and "-mj"
//! for the super-journals of transactions over several databases), and the sum of the process's
//! temporary files, which belong to no single database.

mod discover;
mod error;

pub use error::SqliteError;

use crate::error::SourceError;
use crate::source::{ArgumentError, Discovery, Source, SourceArgument, SourceKind, SqlTarget};
use crate::volume::{inode_id, mount_point};
use filestats::{Epoch, Figure, FileIdentity, FileKind, Meaning, Reason, Sample, Snapshot};
use host::Mounts;
use published::{CountersFile, FileReading, ProcessIdentity, counters_dir, published_in};
use sqlite_vfs::Registry;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A database that running programs have open with the extension loaded.
pub static KIND: SourceKind = SourceKind {
    schemes: &["sqlite"],
    help: "sqlite:PATH",
    forms: "sqlite:PATH",
    discovery: Discovery::Never,
    parse,
    find: discover::find,
};

fn parse(text: &str) -> Result<SourceArgument, ArgumentError> {
    if text.is_empty() {
        return Err(ArgumentError::Missing);
    }
    let (database, shown) = (PathBuf::from(text), format!("sqlite:{text}"));
    Ok(SourceArgument {
        sql_target: Some(SqlTarget::Sqlite(database.clone())),
        ..SourceArgument::new(shown, move |_, _| Live::open(&database))
    })
}

/// The databases of this process.
#[derive(Debug)]
pub struct InProcess {
    registry: &'static Registry,
}

impl InProcess {
    /// Observes all files that `registry` counts.
    pub fn new(registry: &'static Registry) -> InProcess {
        InProcess { registry }
    }
}

impl Source for InProcess {
    fn name(&self) -> &str {
        "sqlite in this process"
    }

    /// SQLite has one writer for each database.
    fn commits_one_by_one(&self) -> bool {
        true
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let process = ProcessIdentity::own().ok_or_else(|| SourceError::System {
            path: "/proc/self".into(),
            error: std::io::Error::other("the start time of this process is not there"),
        })?;
        let files = latest_of_each_path(self.registry.files().collect());
        let mounts = Mounts::read().unwrap_or_default();
        let samples = files.iter().map(|file| sample(file, &files, &process, &mounts)).collect();
        Ok(snapshot("sqlite".into(), samples))
    }
}

/// One database, in all processes that have it open and publish counters.
#[derive(Debug)]
pub struct Live {
    name: String,
    database: PathBuf,
    dir: PathBuf,
    processes: Vec<u32>,
}

impl Live {
    /// Finds the processes that have the database open, by the files in `HEADROOM_COUNTERS_DIR` or /dev/shm.
    ///
    /// # Errors
    /// [`SqliteError`]: the database does not exist, no process publishes counters for it, or those that might be its
    /// counters cannot be read.
    pub fn open(database: &Path) -> Result<Live, SourceError> {
        Live::open_in(database, counters_dir())
    }

    /// Opens it with another directory of counters.
    ///
    /// # Errors
    /// As for [`Live::open`].
    pub fn open_in(database: &Path, dir: PathBuf) -> Result<Live, SourceError> {
        let not_found = |error| SqliteError::DatabaseNotFound { path: database.into(), error };
        let path = fs::canonicalize(database).map_err(not_found)?;
        let mut live =
            Live { name: format!("sqlite {}", path.display()), database: path, dir, processes: Vec::new() };
        let (samples, unreadable) = live.samples()?;
        match (samples.is_empty(), unreadable.first()) {
            (false, _) => Ok(live),
            (true, Some(first)) => Err(SqliteError::CountersUnreadable {
                path: live.database,
                count: unreadable.len(),
                first: first.clone(),
            }
            .into()),
            (true, None) => Err(SqliteError::NotPublished { path: live.database, dir: live.dir }.into()),
        }
    }

    /// The samples of all processes, and why some counters files could not be read.
    fn samples(&mut self) -> Result<(Vec<Sample>, Vec<String>), SourceError> {
        let unlisted = |error| SqliteError::CountersDir { dir: self.dir.clone(), error };
        let found = published_in(&self.dir).map_err(unlisted)?;
        let database = fs::metadata(&self.database).ok();
        let identity = database.as_ref().map(inode_id);
        let mounts = Mounts::read().unwrap_or_default();
        let mut unreadable: Vec<String> = found.unreadable.iter().map(ToString::to_string).collect();
        let mut samples = Vec::new();
        let mut processes = Vec::new();
        let may_open = |user| database.as_ref().is_none_or(|database| may_open(user, database));
        let is_of_sqlite =
            |counters: &&CountersFile| counters.engine.as_str() == "sqlite" && may_open(counters.user);
        for counters in found.live.iter().filter(is_of_sqlite) {
            match counters.files() {
                Ok(files) => {
                    let files = latest_of_each_path(files);
                    let belongs =
                        |file: &&FileReading| self.belongs_to_database(file, &files, identity.as_deref());
                    let chosen: Vec<&FileReading> = files.iter().filter(belongs).collect();
                    if chosen.iter().any(|file| file.kind == FileKind::Data) {
                        let process = &counters.process;
                        processes.push(process.pid);
                        samples.extend(chosen.iter().map(|file| sample(file, &files, process, &mounts)));
                    }
                }
                Err(error) => unreadable.push(error.to_string()),
            }
        }
        if !processes.is_empty() {
            self.processes = processes;
        }
        Ok((samples, unreadable))
    }

    /// Whether the file is the database (by name, or by inode under another name), or its log, journal or temporary file.
    fn belongs_to_database(&self, file: &FileReading, files: &[FileReading], identity: Option<&str>) -> bool {
        let is_database = |file: &FileReading| {
            let same_inode = identity.is_some() && published_inode_id(file).as_deref() == identity;
            file.kind == FileKind::Data && (file.path == self.database || same_inode)
        };
        match file.kind {
            FileKind::Data => is_database(file),
            FileKind::Temp => true,
            _ => main_file(file, files).is_some_and(is_database),
        }
    }
}

impl Source for Live {
    fn name(&self) -> &str {
        &self.name
    }

    fn processes(&self) -> &[u32] {
        &self.processes
    }

    fn directory(&self) -> Option<&Path> {
        self.database.parent()
    }

    /// SQLite has one writer for each database.
    fn commits_one_by_one(&self) -> bool {
        true
    }

    /// A snapshot has the processes that run now, perhaps none.
    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let source = format!("sqlite:{}", self.database.display());
        self.samples().map(|(samples, _)| snapshot(source, samples))
    }
}

/// Whether the database's permissions let a user open it. A process of another user may publish counters under the
/// database's name, but did no I/O on it. Groups are not looked up.
fn may_open(user: u32, database: &Metadata) -> bool {
    const GROUP_AND_OTHERS_READ_OR_WRITE: u32 = 0o066;
    user == 0 || user == database.uid() || database.mode() & GROUP_AND_OTHERS_READ_OR_WRITE != 0
}

fn snapshot(source: String, samples: Vec<Sample>) -> Snapshot {
    Snapshot {
        source,
        taken_unix_ns: host::unix_ns(),
        clock_ns: host::monotonic_ns(),
        samples,
        ..Snapshot::default()
    }
}

/// The last of the files that replaced each other under one name: a path is sampled once.
fn latest_of_each_path(files: Vec<FileReading>) -> Vec<FileReading> {
    let mut latest: Vec<FileReading> = Vec::with_capacity(files.len());
    for file in files {
        match latest.iter_mut().find(|other| other.path == file.path) {
            Some(other) => *other = file,
            None => latest.push(file),
        }
    }
    latest
}

/// The database that a log or journal belongs to.
fn main_file<'a>(file: &FileReading, files: &'a [FileReading]) -> Option<&'a FileReading> {
    let name = file.path.as_os_str().as_bytes();
    let suffix: &[u8] = match file.kind {
        FileKind::Log => b"-wal",
        FileKind::Journal if name.ends_with(b"-mj") => b"-mj",
        FileKind::Journal => b"-journal",
        _ => return None,
    };
    let main = name.strip_suffix(suffix)?;
    files.iter().find(|other| other.kind == FileKind::Data && other.path.as_os_str().as_bytes() == main)
}

fn sample(file: &FileReading, files: &[FileReading], process: &ProcessIdentity, mounts: &Mounts) -> Sample {
    let main = if file.kind == FileKind::Data { Some(file) } else { main_file(file, files) };
    let stem = |file: &FileReading| file.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let temporary = file.kind == FileKind::Temp;
    let command = process.command().map_or_else(String::new, |command| format!(" ({command})"));
    // A log or journal is created and deleted repeatedly: it is another file only when its database is.
    let generation = main.map_or(file.generation, |main| main.generation);
    let ProcessIdentity { pid, start_ticks, boot_id, .. } = process;
    Sample {
        file: FileIdentity {
            instance: format!("sqlite pid {pid}{command}"),
            database: main.and_then(stem),
            file_id: published_inode_id(file).unwrap_or_else(|| file.path.to_string_lossy().into_owned()),
            kind: file.kind,
            path: file.path.to_string_lossy().into_owned(),
            drive: mount_point(mounts, &file.path).filter(|_| !temporary),
            ..FileIdentity::default()
        }
        .into(),
        epoch: Epoch::for_run(format!("{pid}:{start_ticks}:{boot_id}:{generation}")),
        meaning: Meaning::REQUESTS,
        counters: file.counters,
        size_bytes: match fs::metadata(&file.path) {
            Ok(found) if !temporary => Figure::Known(found.len()),
            // A journal between two transactions, or a deleted file.
            _ => Figure::unknown(if temporary { Reason::NotCounted } else { Reason::Gone }),
        },
        latencies: Some(file.latencies.clone()),
    }
}

/// "MAJOR:MINOR:INODE" as the process published it; `None` if it could not find out.
fn published_inode_id(file: &FileReading) -> Option<String> {
    let ((major, minor), inode) = (file.device?, file.inode?);
    Some(format!("{major}:{minor}:{inode}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_private_database_has_no_counters_of_other_users() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let with_mode = |mode| {
            file.as_file().set_permissions(Permissions::from_mode(mode)).unwrap();
            file.as_file().metadata().unwrap()
        };
        let (owner, other) = (with_mode(0o600).uid(), with_mode(0o600).uid() + 1);
        assert!(may_open(owner, &with_mode(0o600)) && may_open(0, &with_mode(0o600)));
        assert!(!may_open(other, &with_mode(0o600)));
        assert!(may_open(other, &with_mode(0o640)) && may_open(other, &with_mode(0o604)));
    }
}
