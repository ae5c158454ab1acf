//! A page store that a program has open, through the counters that it publishes (`pagestore_counters`).
//!
//! A sample is one of its three files. Its commits' waits for the log are beside them as a wait.

mod discover;

use crate::error::{SourceError, SourceFault};
use crate::source::{ArgumentError, Discovery, Source, SourceArgument, SourceKind};
use crate::volume::{inode_id, mount_point};
use filestats::{
    Cache, Durable, Epoch, Figure, FileIdentity, FileKind, Meaning, Reason, Sample, Snapshot, WaitClass,
    WaitSample,
};
use host::Mounts;
use pagestore_counters::{CommitPart, CommitTimes, FileId, FileStatistics, ReadError, Reader};
use std::fs;
use std::path::{Path, PathBuf};

/// A page store that a program has open.
pub static KIND: SourceKind = SourceKind {
    schemes: &["pagestore"],
    help: "pagestore:DIR",
    forms: "pagestore:DIR",
    discovery: Discovery::Never,
    parse,
    find: discover::find,
};

fn parse(text: &str) -> Result<SourceArgument, ArgumentError> {
    if text.is_empty() {
        return Err(ArgumentError::Missing);
    }
    let (directory, shown) = (PathBuf::from(text), format!("pagestore:{text}"));
    Ok(SourceArgument::new(shown, move |_, _| Live::open(&directory)))
}

/// One store, in the process that has it open.
pub struct Live {
    name: String,
    directory: PathBuf,
    reader: Option<Reader>,
    processes: Vec<u32>,
    /// Commits, and how long they had the turn to write; of the last snapshot.
    commits: Option<(u64, u64)>,
    /// Bytes of the records in the log, at the last snapshot.
    log_record_bytes: Option<u64>,
}

impl Live {
    /// Finds the process that has the store open, by the files in `HEADROOM_COUNTERS_DIR` or /dev/shm.
    ///
    /// # Errors
    /// [`ReadError`]: there is no store, or no process publishes counters of it.
    pub fn open(directory: &Path) -> Result<Live, SourceError> {
        let reader = Reader::open(directory)?;
        let directory = fs::canonicalize(directory)
            .map_err(|error| SourceError::System { path: directory.into(), error })?;
        let processes = vec![reader.owner().process.pid];
        Ok(Live {
            name: format!("pagestore {}", directory.display()),
            directory,
            reader: Some(reader),
            processes,
            commits: None,
            log_record_bytes: None,
        })
    }

    /// The counters of the process that has the store open now.
    fn current(&mut self) -> Result<Option<&Reader>, SourceError> {
        if !self.reader.as_ref().is_some_and(Reader::is_open) {
            self.reader = match Reader::open(&self.directory) {
                Ok(reader) => {
                    self.processes = vec![reader.owner().process.pid];
                    Some(reader)
                }
                // Programs come and go.
                Err(ReadError::NotPublished { .. }) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.reader.as_ref())
    }
}

impl SourceFault for ReadError {
    fn facts(&self) -> Vec<String> {
        ReadError::facts(self)
    }

    fn remedy(&self) -> Option<&'static str> {
        Some(ReadError::remedy(self))
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
        Some(&self.directory)
    }

    fn commits(&self) -> Option<u64> {
        self.commits.map(|(count, _)| count)
    }

    fn writer_ns(&self) -> Option<u64> {
        self.commits.map(|(_, turns_ns)| turns_ns)
    }

    fn log_record_bytes(&self) -> Option<u64> {
        self.log_record_bytes
    }

    /// While no process has the store open, a snapshot is empty.
    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let directory = self.directory.clone();
        let counters = self.current()?.and_then(|reader| {
            let owner = reader.owner();
            let process = &owner.process;
            let command = process.command().map_or_else(String::new, |command| format!(" ({command})"));
            let epoch = Epoch::for_run(format!(
                "{:032x}:{}:{}:{}:{}",
                owner.opening.store, owner.opening.epoch, process.pid, process.start_ticks, process.boot_id
            ));
            let instance = format!("pagestore pid {}{command}", process.pid);
            let bytes = reader.counts()?.log_record_bytes;
            Some((instance, epoch, bytes, reader.file_statistics()?, reader.commit_times()?))
        });
        self.commits = counters.as_ref().map(|(.., times)| (times.commits(), times.turns_ns));
        self.log_record_bytes = counters.as_ref().map(|(_, _, bytes, ..)| *bytes).filter(|bytes| *bytes > 0);
        Ok(match counters {
            Some((instance, epoch, _, files, times)) => snapshot(&directory, instance, epoch, files, &times),
            None => empty(&directory),
        })
    }
}

/// The counters of a store in this process; `run` tells one opening of it from another.
pub fn in_process(directory: &Path, run: &str, files: [FileStatistics; 3], times: &CommitTimes) -> Snapshot {
    snapshot(directory, "pagestore".into(), Epoch::for_run(run.to_owned()), files, times)
}

fn empty(directory: &Path) -> Snapshot {
    Snapshot {
        source: format!("pagestore:{}", directory.display()),
        taken_unix_ns: host::unix_ns(),
        clock_ns: host::monotonic_ns(),
        ..Snapshot::default()
    }
}

fn snapshot(
    directory: &Path,
    instance: String,
    epoch: Epoch,
    files: [FileStatistics; 3],
    times: &CommitTimes,
) -> Snapshot {
    let mounts = Mounts::read().unwrap_or_default();
    let samples = files.into_iter().map(|file| sample(file, directory, &instance, &epoch, &mounts)).collect();
    // The parts before are work of the commit, or the wait for another transaction.
    let waited = [CommitPart::Buffered, CommitPart::Submitted, CommitPart::Durable, CommitPart::Acknowledged];
    let waits = vec![WaitSample {
        instance,
        event: "commit".into(),
        class: WaitClass::LogWrite,
        epoch: epoch.clone(),
        count: Figure::Known(times.commits()),
        wait_ns: Figure::Known(waited.iter().map(|part| times.parts[*part as usize].sum_ns).sum()),
    }];
    Snapshot { samples, waits, complete: Some(epoch), ..empty(directory) }
}

fn sample(file: FileStatistics, directory: &Path, instance: &str, epoch: &Epoch, mounts: &Mounts) -> Sample {
    let path = directory.join(file.file.name());
    let metadata = fs::metadata(&path).ok();
    let id = metadata.as_ref().map(inode_id);
    Sample {
        file: FileIdentity {
            instance: instance.into(),
            database: directory.file_name().map(|name| name.to_string_lossy().into_owned()),
            file_id: id.unwrap_or_else(|| path.to_string_lossy().into_owned()),
            kind: match file.file {
                FileId::Control => FileKind::Other,
                FileId::Data => FileKind::Data,
                FileId::Log => FileKind::Log,
            },
            path: path.to_string_lossy().into_owned(),
            drive: mount_point(mounts, &path),
            ..FileIdentity::default()
        }
        .into(),
        epoch: epoch.clone(),
        // All of it is direct I/O.
        meaning: Meaning {
            cache: Cache::Missed,
            durable: if file.file == FileId::Data { Durable::BySync } else { Durable::ByItself },
            ..Meaning::REQUESTS
        },
        counters: file.counters,
        size_bytes: metadata.map_or(Figure::unknown(Reason::Gone), |metadata| Figure::Known(metadata.len())),
        latencies: Some(file.latencies),
    }
}
