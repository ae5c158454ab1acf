//! A page store that a program has open, through the counters that it publishes (`pagestore::counters`).
//!
//! A sample is one of its three files. What its commits waited for the log stands beside them as a wait.

use crate::mounts::Mounts;
use crate::{Source, SourceError, time};
use ::pagestore::counters::anatomy::{CommitTimes, Part};
use ::pagestore::counters::live;
use ::pagestore::disk::FileId;
use ::pagestore::{FileStatistics, Store};
use filestats::{
    Cache, Durable, Epoch, Figure, FileIdentity, FileKind, Meaning, Reason, Sample, Snapshot, WaitClass,
    WaitSample,
};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One store, whoever has it open.
pub struct Live {
    name: String,
    directory: PathBuf,
    opened: Option<live::Live>,
    processes: Vec<u32>,
}

impl Live {
    /// Finds out who has the store open; looks in `HEADROOM_COUNTERS_DIR` or /dev/shm.
    ///
    /// # Errors
    /// [`SourceError::Pagestore`], which says what to do: there is no store, or nobody publishes counters of it.
    pub fn open(directory: &Path) -> Result<Live, SourceError> {
        let opened = live::Live::open(directory)?;
        let directory = fs::canonicalize(directory)
            .map_err(|error| SourceError::System { path: directory.into(), error })?;
        let processes = vec![opened.owner().process.pid];
        Ok(Live {
            name: format!("pagestore {}", directory.display()),
            directory,
            opened: Some(opened),
            processes,
        })
    }

    /// The counters of whoever has the store open now.
    fn current(&mut self) -> Result<Option<&live::Live>, SourceError> {
        if !self.opened.as_ref().is_some_and(live::Live::is_open) {
            self.opened = match live::Live::open(&self.directory) {
                Ok(opened) => {
                    self.processes = vec![opened.owner().process.pid];
                    Some(opened)
                }
                // Programs come and go.
                Err(live::LiveError::NobodyPublishes { .. }) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.opened.as_ref())
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

    /// While nobody has the store open, a snapshot is empty.
    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let directory = self.directory.clone();
        let found = self.current()?.and_then(|live| {
            let owner = live.owner();
            let process = &owner.process;
            let command = process.command().map_or_else(String::new, |command| format!(" ({command})"));
            let epoch = Epoch::of_run(format!(
                "{:032x}:{}:{}:{}:{}",
                owner.store, owner.epoch, process.pid, process.start_ticks, process.boot_id
            ));
            let instance = format!("pagestore pid {}{command}", process.pid);
            Some((instance, epoch, live.file_statistics()?, live.commit_times()?))
        });
        Ok(match found {
            Some((instance, epoch, files, times)) => told(&directory, instance, epoch, files, &times),
            None => empty(&directory),
        })
    }
}

/// What a store of this program has counted since it was opened; `run` tells one opening from another.
pub fn in_process(store: &Store, directory: &Path, run: &str) -> Snapshot {
    let (files, times) = (store.file_statistics(), store.commit_times());
    told(directory, "pagestore".into(), Epoch::of_run(run.to_owned()), files, &times)
}

fn empty(directory: &Path) -> Snapshot {
    Snapshot {
        source: format!("pagestore:{}", directory.display()),
        taken_unix_ns: time::unix_ns(),
        clock_ns: time::monotonic_ns(),
        samples: vec![],
        complete: None,
        waits: vec![],
        notes: vec![],
    }
}

fn told(
    directory: &Path,
    instance: String,
    epoch: Epoch,
    files: [FileStatistics; 3],
    times: &CommitTimes,
) -> Snapshot {
    let mounts = Mounts::now();
    let samples = files.into_iter().map(|file| sample(file, directory, &instance, &epoch, &mounts)).collect();
    // What came before was the commit's own work, or the wait for another transaction.
    let waited = [Part::Buffered, Part::Submitted, Part::Durable, Part::Acknowledged];
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
    let found = fs::metadata(&path).ok();
    let id = found
        .as_ref()
        .map(|found| format!("{}:{}:{}", libc::major(found.dev()), libc::minor(found.dev()), found.ino()));
    Sample {
        file: FileIdentity {
            instance: instance.into(),
            database: directory.file_name().map(|name| name.to_string_lossy().into_owned()),
            database_id: None,
            file_id: id.unwrap_or_else(|| path.to_string_lossy().into_owned()),
            kind: match file.file {
                FileId::Control => FileKind::Other,
                FileId::Data => FileKind::Data,
                FileId::Log => FileKind::Log,
            },
            path: path.to_string_lossy().into_owned(),
            drive: mounts.point_of(&path).map(|point| point.to_string_lossy().into_owned()),
            handle: None,
            object: None,
        },
        epoch: epoch.clone(),
        // All of it is direct I/O.
        meaning: Meaning {
            cache: Cache::Missed,
            durable: if file.file == FileId::Data { Durable::BySync } else { Durable::ByItself },
            ..Meaning::REQUESTS
        },
        counters: file.counters,
        size_bytes: found.map_or(Figure::unknown(Reason::Gone), |found| Figure::Known(found.len())),
        latencies: Some(file.latencies),
    }
}
