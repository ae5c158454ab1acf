//! A database of any engine that publishes its counters in the format of the crate `published`.
//!
//! A sample is one of its files. What its commits waited for the log stands beside them as a wait. An engine that many
//! programs share in one process, such as SQLite, names no database: its source is its own.

mod discover;
mod error;

pub use error::PublishedError;

use crate::error::SourceError;
use crate::source::{ArgumentError, Discovery, Source, SourceArgument, SourceKind};
use crate::volume::{inode_id, mount_point};
use filestats::{
    Cache, Durable, Epoch, Figure, FileIdentity, Meaning, Reason, Sample, Snapshot, WaitClass, WaitSample,
};
use host::Mounts;
use published::{
    CommitReading, CountersFile, FileReading, ReadError, Reading, counters_dir, device_number, published_in,
};
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A database of an engine that publishes counters.
pub static KIND: SourceKind = SourceKind {
    schemes: &["published"],
    help: "published:PATH",
    forms: "published:PATH",
    discovery: Discovery::Never,
    parse,
    find: discover::find,
};

fn parse(text: &str) -> Result<SourceArgument, ArgumentError> {
    if text.is_empty() {
        return Err(ArgumentError::Missing);
    }
    let (database, shown) = (PathBuf::from(text), format!("published:{text}"));
    Ok(SourceArgument::new(shown, move |_, _| Live::open(&database)))
}

/// One database, in the process that has it open.
#[derive(Debug)]
pub struct Live {
    name: String,
    database: PathBuf,
    dir: PathBuf,
    counters: Option<CountersFile>,
    processes: Vec<u32>,
    /// Of the last snapshot.
    commits: CommitReading,
}

impl Live {
    /// Finds the process that has the database open, by the files in `HEADROOM_COUNTERS_DIR` or /dev/shm.
    ///
    /// # Errors
    /// [`PublishedError`]: there is no such database, or no process publishes counters of it.
    pub fn open(database: &Path) -> Result<Live, SourceError> {
        Live::open_in(database, counters_dir())
    }

    /// Opens it with another directory of counters.
    ///
    /// # Errors
    /// As for [`Live::open`].
    pub fn open_in(database: &Path, dir: PathBuf) -> Result<Live, SourceError> {
        let not_found = |error| PublishedError::DatabaseNotFound { path: database.into(), error };
        let database = fs::canonicalize(database).map_err(not_found)?;
        let counters = find(&database, &dir)?;
        Ok(Live {
            name: format!("{} {}", counters.engine, database.display()),
            processes: vec![counters.process.pid],
            counters: Some(counters),
            database,
            dir,
            commits: CommitReading::default(),
        })
    }

    /// The counters of the process that has the database open now, and what they say; `None` where none has.
    fn read(&mut self) -> Result<Option<(CountersFile, Reading)>, SourceError> {
        if let Some(counters) = self.counters.take()
            && let Some(reading) = read_live(&counters)
        {
            self.counters = Some(counters.clone());
            return Ok(Some((counters, reading)));
        }
        let counters = match find(&self.database, &self.dir) {
            Ok(counters) => counters,
            // Programs come and go.
            Err(PublishedError::NotPublished { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.processes = vec![counters.process.pid];
        self.counters = Some(counters.clone());
        Ok(read_live(&counters).map(|reading| (counters, reading)))
    }
}

/// Reads the counters; `None` once their process has ended or has closed the database.
fn read_live(counters: &CountersFile) -> Option<Reading> {
    let reading = counters.read().ok().filter(|reading| !reading.is_closed)?;
    (counters.process.is_alive() == Some(true)).then_some(reading)
}

/// The counters of the process that has the database open. Only processes of its owner and of root are searched: another
/// user's may claim it.
fn find(database: &Path, dir: &Path) -> Result<CountersFile, PublishedError> {
    let not_found = |error| PublishedError::DatabaseNotFound { path: database.into(), error };
    let metadata = fs::metadata(database).map_err(not_found)?;
    let identity = (device_number(&metadata), metadata.ino());
    let may_open = |user| user == 0 || user == metadata.uid();
    let found = published_in(dir).map_err(|error| PublishedError::CountersDir { dir: dir.into(), error })?;
    let is_it = |counters: &CountersFile| {
        let named = counters.database.as_ref().map(|database| database.identity);
        named == Some(identity) && may_open(counters.user)
    };
    if let Some(counters) = found.live.into_iter().find(is_it) {
        return Ok(counters);
    }
    Err(match found.unreadable.first() {
        Some(first) => PublishedError::Unreadable {
            path: database.into(),
            count: found.unreadable.len(),
            first: ReadError::to_string(first),
        },
        None => PublishedError::NotPublished { path: database.into(), dir: dir.into() },
    })
}

impl Source for Live {
    fn name(&self) -> &str {
        &self.name
    }

    fn processes(&self) -> &[u32] {
        &self.processes
    }

    fn directory(&self) -> Option<&Path> {
        if self.database.is_dir() { Some(&self.database) } else { self.database.parent() }
    }

    fn commits_one_by_one(&self) -> bool {
        self.counters.as_ref().is_some_and(|counters| counters.commits_one_by_one)
    }

    fn commits(&self) -> Option<u64> {
        self.commits.commits
    }

    fn writer_ns(&self) -> Option<u64> {
        self.commits.writer_ns
    }

    fn log_record_bytes(&self) -> Option<u64> {
        self.commits.log_record_bytes
    }

    /// While no process has the database open, a snapshot is empty.
    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let read = self.read()?;
        self.commits = read.as_ref().map(|(_, reading)| reading.commits).unwrap_or_default();
        let source = format!("published:{}", self.database.display());
        let Some((counters, reading)) = read else { return Ok(empty(source)) };
        let process = &counters.process;
        let command = process.command().map_or_else(String::new, |command| format!(" ({command})"));
        let instance = format!("{} pid {}{command}", counters.engine, process.pid);
        let run =
            format!("{}:{}:{}:{}", process.pid, process.start_ticks, process.boot_id, counters.opened_ns);
        Ok(snapshot(source, &self.database, &instance, &run, &reading))
    }
}

/// The counters of a database in this process; `run` tells one opening of it from another.
pub fn in_process(database: &Path, engine: &str, run: &str, reading: &Reading) -> Snapshot {
    snapshot(format!("published:{}", database.display()), database, engine, run, reading)
}

fn empty(source: String) -> Snapshot {
    Snapshot { source, taken_unix_ns: host::unix_ns(), clock_ns: host::monotonic_ns(), ..Snapshot::default() }
}

fn snapshot(source: String, database: &Path, instance: &str, run: &str, reading: &Reading) -> Snapshot {
    let mounts = Mounts::read().unwrap_or_default();
    let name = database.file_name().map(|name| name.to_string_lossy().into_owned());
    let sample = |file: &FileReading| {
        // A file that replaced another of its name began at zero later than the database was opened.
        let epoch = if file.generation > 1 { format!("{run}:{}", file.generation) } else { run.to_owned() };
        sample(file, name.clone(), instance, Epoch::for_run(epoch), &mounts)
    };
    let numbered = || reading.files.iter().enumerate();
    let latest: HashMap<&Path, usize> = numbered().map(|(at, file)| (file.path.as_path(), at)).collect();
    let files = numbered().filter(|(at, file)| latest.get(file.path.as_path()) == Some(at));
    let samples = files.map(|(_, file)| sample(file)).collect();
    let run = Epoch::for_run(run.to_owned());
    let wait = reading.commits.commits.zip(reading.commits.log_wait_ns).map(|(count, wait_ns)| WaitSample {
        instance: instance.into(),
        event: "commit".into(),
        class: WaitClass::LogWrite,
        epoch: run.clone(),
        count: Figure::Known(count),
        wait_ns: Figure::Known(wait_ns),
    });
    Snapshot { samples, waits: wait.into_iter().collect(), complete: Some(run), ..empty(source) }
}

fn sample(
    file: &FileReading,
    database: Option<String>,
    instance: &str,
    epoch: Epoch,
    mounts: &Mounts,
) -> Sample {
    // A program may name what is no file of its own, such as a sum of several: that one has no size.
    let metadata = fs::metadata(&file.path).ok().filter(Metadata::is_file);
    let id = metadata.as_ref().map(inode_id);
    Sample {
        file: FileIdentity {
            instance: instance.into(),
            database,
            file_id: id.unwrap_or_else(|| file.path.to_string_lossy().into_owned()),
            kind: file.kind,
            path: file.path.to_string_lossy().into_owned(),
            drive: mount_point(mounts, &file.path),
            ..FileIdentity::default()
        }
        .into(),
        epoch,
        meaning: Meaning {
            cache: if file.way.bypasses_cache { Cache::Missed } else { Cache::Included },
            durable: if file.way.is_durable_at_end { Durable::ByItself } else { Durable::BySync },
            ..Meaning::REQUESTS
        },
        counters: file.counters,
        size_bytes: metadata.map_or(Figure::unknown(Reason::Gone), |metadata| Figure::Known(metadata.len())),
        latencies: Some(file.latencies.clone()),
    }
}
