//! The writing side: the counters of one database that an engine of this process has open.

use crate::layout::{
    BOOT_ID_BYTES, COMMITS, CommitCounters, FILES_MAX, FileToCount, Head, LOG_RECORDS, MAGIC, ONE_BY_ONE,
    PATH_BYTES_MAX, SLOT_BYTES, Slot, TABLE_BYTES, TIMES, Table, VERSION, WRITER_TIME, store_bytes,
};
use crate::own_file::OwnFile;
use crate::reader::{CommitReading, FileReading, Reading, read_commits, read_slot};
use crate::{EngineName, Mapping, ProcessIdentity};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An engine, and which counters it keeps besides those of its files.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// "sqlite": 1 to 16 of a-z and 0-9.
    pub name: &'static str,
    /// Commits, and their waits for the log.
    pub counts_commits: bool,
    /// The time that one transaction at a time has the only turn to write.
    pub counts_writer_time: bool,
    /// Records of the log.
    pub counts_log_records: bool,
    /// Commits come one by one: they cannot share a write of the log.
    pub commits_one_by_one: bool,
}

impl Engine {
    /// Bits of the head for the counters that this engine keeps.
    fn counted(&self) -> u32 {
        let kept = [
            (self.counts_commits, COMMITS),
            (self.counts_writer_time, WRITER_TIME),
            (self.counts_log_records, LOG_RECORDS),
            (self.commits_one_by_one, ONE_BY_ONE),
        ];
        kept.iter().filter(|(is_kept, _)| *is_kept).fold(TIMES, |all, (_, bit)| all | bit)
    }
}

/// The counters. They are private to this process until they are shared. Dropping it removes the file.
#[derive(Debug)]
pub struct Writer {
    engine: Engine,
    mapping: Mapping,
    /// The file that other processes read, or why there is none.
    file: Mutex<Result<OwnFile, String>>,
}

const PRIVATE: &str = "the counters are private";

impl Writer {
    /// Counters at zero that only this process sees.
    ///
    /// # Errors
    /// If there is no memory for them.
    ///
    /// # Panics
    /// If the engine's name is none.
    pub fn private(engine: Engine) -> io::Result<Writer> {
        assert!(EngineName::parse(engine.name).is_some(), "{} is no name of an engine", engine.name);
        let mapping = Mapping::private(TABLE_BYTES)?;
        Ok(Writer { engine, mapping, file: Mutex::new(Err(PRIVATE.into())) })
    }

    /// Starts again at zero, in a file that other processes of this user can read; without one the counters stay private.
    /// Called once, before anything is counted, and again in the child of a fork.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn share(&self, dir: &Path) -> io::Result<()> {
        let shared = self.try_share(dir);
        let mut file = self.locked();
        match shared {
            Ok(own) => {
                *file = Ok(own);
                Ok(())
            }
            Err(error) => {
                *file = Err(format!("cannot publish the counters in {}: {error}", dir.display()));
                // On failure (no memory for a mapping) the old counters stay mapped: useless, but safe.
                let _ = self.mapping.replace(None);
                Err(error)
            }
        }
    }

    /// Starts again at zero in private memory, as in the child of a fork whose counters are private.
    pub fn keep_private(&self) {
        let mut file = self.locked();
        // On failure (no memory for a mapping) the old counters stay: they are private, too.
        let _ = self.mapping.replace(None);
        *file = Err(PRIVATE.into());
    }

    fn try_share(&self, dir: &Path) -> io::Result<OwnFile> {
        let process = ProcessIdentity::own().ok_or_else(|| io::Error::other("/proc cannot be read"))?;
        let (own, file) = OwnFile::create(dir, process.pid)?;
        match self.mapping.replace(Some(&file)) {
            Ok(()) => {
                self.table().head.begin(&self.engine, &process);
                Ok(own)
            }
            Err(error) => {
                own.remove();
                Err(error)
            }
        }
    }

    /// Names the database that the engine has open now: its file or directory. From here on, readers find it.
    pub fn announce(&self, database: &Path) {
        let Ok(metadata) = std::fs::metadata(database) else { return };
        let path = std::fs::canonicalize(database).unwrap_or_else(|_| database.into());
        let path = path.as_os_str().as_bytes();
        if path.len() <= PATH_BYTES_MAX {
            let head = &self.table().head;
            head.device.store(device_number(&metadata), Relaxed);
            head.inode.store(metadata.ino(), Relaxed);
            store_bytes(&head.path, path);
            head.path_bytes.store(path.len() as u32, Release);
        }
    }

    /// A slot for a file that was just opened; `None` if no slot is free or its name is too long, and it is counted as lost.
    pub fn count_file(&self, file: &FileToCount<'_>) -> Option<&Slot> {
        let own = self.locked();
        let Table { head, slots } = self.table();
        let index = head.slots_used.load(Relaxed) as usize;
        let has_space = index < FILES_MAX && file.path.len() <= PATH_BYTES_MAX;
        if !has_space || own.as_ref().is_ok_and(|own| own.reserve_slot(index).is_err()) {
            head.files_lost.fetch_add(1, Relaxed);
            return None;
        }
        slots[index].publish(file);
        head.slots_used.store(index as u32 + 1, Release);
        Some(&slots[index])
    }

    /// The counters of commits, which the engine adds to if it keeps them.
    pub fn commits(&self) -> &CommitCounters {
        &self.table().head.commits
    }

    /// All counters so far, as another process reads them.
    pub fn read(&self) -> Reading {
        Reading { files: self.files().collect(), commits: self.read_commits(), is_closed: false }
    }

    /// The counters of commits so far.
    pub fn read_commits(&self) -> CommitReading {
        read_commits(&self.table().head.commits, self.engine.counted())
    }

    /// Every file so far, in the order of first opening.
    pub fn files(&self) -> impl Iterator<Item = FileReading> + '_ {
        let slots = &self.table().slots[..self.files_counted()];
        slots.iter().enumerate().filter_map(|(index, slot)| read_slot(index, slot, true))
    }

    /// The slot with that index, in the order of [`files`](Self::files).
    pub fn slot(&self, index: usize) -> &Slot {
        &self.table().slots[index]
    }

    /// How many files have a slot; the next one has this index.
    pub fn files_counted(&self) -> usize {
        (self.table().head.slots_used.load(Acquire) as usize).min(FILES_MAX)
    }

    /// Files that were opened while all [`FILES_MAX`] slots were taken; they are not counted.
    pub fn files_lost(&self) -> u64 {
        self.table().head.files_lost.load(Relaxed)
    }

    /// The file through which other processes read these counters.
    ///
    /// # Errors
    /// Why there is none.
    pub fn path(&self) -> Result<PathBuf, String> {
        self.locked().as_ref().map(|own| own.path.clone()).map_err(String::clone)
    }

    /// Removes the file; counting continues.
    pub fn withdraw(&self) {
        // The child of a fork that has counted nothing yet still has its parent's file, which stays.
        if let Ok(own) = std::mem::replace(&mut *self.locked(), Err(PRIVATE.into())) {
            own.remove();
        }
    }

    fn table(&self) -> &Table {
        self.mapping.as_board()
    }

    fn locked(&self) -> MutexGuard<'_, Result<OwnFile, String>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Not in the child of a fork, whose memory may still be its parent's.
        if self.locked().as_ref().is_ok_and(OwnFile::is_of_this_process) {
            self.table().head.closed.store(1, Relaxed);
        }
        self.withdraw();
    }
}

impl Head {
    /// Fills in the engine and its process. The magic is written last, so that a reader sees a complete head or none.
    fn begin(&self, engine: &Engine, process: &ProcessIdentity) {
        self.version.store(VERSION, Relaxed);
        self.slot_bytes.store(SLOT_BYTES as u32, Relaxed);
        self.slots_max.store(FILES_MAX as u32, Relaxed);
        self.counted.store(engine.counted(), Relaxed);
        self.pid.store(process.pid, Relaxed);
        self.start_ticks.store(process.start_ticks, Relaxed);
        self.pid_namespace.store(process.pid_namespace, Relaxed);
        store_bytes(&self.boot_id, &process.boot_id.as_bytes()[..process.boot_id.len().min(BOOT_ID_BYTES)]);
        store_bytes(&self.engine, engine.name.as_bytes());
        self.opened_ns.store(host::monotonic_ns(), Relaxed);
        self.magic.store(MAGIC, Release);
    }
}

/// The device of a file as counters have it: major << 32 | minor.
pub fn device_number(metadata: &std::fs::Metadata) -> u64 {
    let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
    u64::from(major) << 32 | u64::from(minor)
}
