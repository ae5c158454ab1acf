//! Assigns a slot to each file that is opened.

use crate::abi::{
    SQLITE_OPEN_DELETEONCLOSE, SQLITE_OPEN_MAIN_DB, SQLITE_OPEN_MAIN_JOURNAL, SQLITE_OPEN_SUBJOURNAL,
    SQLITE_OPEN_SUPER_JOURNAL, SQLITE_OPEN_TEMP_DB, SQLITE_OPEN_TEMP_JOURNAL, SQLITE_OPEN_TRANSIENT_DB,
    SQLITE_OPEN_WAL,
};
use filestats::FileKind;
use published::{Engine, FileReading, FileToCount, Slot, Way, Writer};
use std::collections::HashMap;
use std::ffi::{OsStr, c_int};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The path of the slot that sums all temporary files.
pub const TEMP_FILES: &str = "(temporary files)";
/// SQLite has one writer for each database, whose commits come one by one. The shim sees files, not transactions.
const ENGINE: Engine = Engine {
    name: "sqlite",
    counts_commits: false,
    counts_writer_time: false,
    counts_log_records: false,
    commits_one_by_one: true,
};

/// Who may read the counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publish {
    /// This process only, through its [`Registry`].
    Private,
    /// Also other processes of the same user, through a file.
    Shared {
        /// The directory of the file, best in memory ([`published::counters_dir`]).
        dir: PathBuf,
    },
}

/// The counters of all files that this process opened through the shim.
#[derive(Debug)]
pub struct Registry {
    writer: Writer,
    publish: Publish,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    pid: u32,
    slots: HashMap<Key, usize>,
    generations: HashMap<Vec<u8>, u32>,
}

/// Identifies a file: files with equal keys share a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// All temporary files, which are many and short-lived.
    Temp,
    /// A database: a file that replaces it is another file.
    File { path: Vec<u8>, device: u64, inode: u64 },
    /// A journal or log, which SQLite creates and deletes repeatedly: only the name stays the same.
    Name(Vec<u8>),
}

impl Registry {
    pub(crate) fn new(publish: Publish) -> io::Result<Registry> {
        let registry = Registry {
            writer: Writer::private(ENGINE)?,
            publish,
            state: Mutex::new(State { pid: 0, slots: HashMap::new(), generations: HashMap::new() }),
        };
        registry.begin(&mut registry.locked());
        Ok(registry)
    }

    /// The counters of every file opened so far, in the order of first opening. The first one is the sum
    /// of all temporary files.
    pub fn files(&self) -> impl Iterator<Item = FileReading> + '_ {
        self.writer.files()
    }

    /// Number of files that were opened while all [`published::FILES_MAX`] slots were taken; they are not counted.
    pub fn files_lost(&self) -> u64 {
        self.writer.files_lost()
    }

    /// The file through which other processes read these counters.
    ///
    /// # Errors
    /// Why the file could not be created, or that the counters are [`Publish::Private`].
    pub fn published(&self) -> Result<PathBuf, String> {
        self.writer.path()
    }

    /// Removes the published file; counting continues.
    pub(crate) fn withdraw(&self) {
        self.writer.withdraw();
    }

    /// The slot of a file that was just opened; `None` if no slot is free or its name is too long.
    pub(crate) fn slot_for(&'static self, name: Option<&OsStr>, flags: c_int) -> Option<&'static Slot> {
        let mut state = self.locked();
        if state.pid != std::process::id() {
            self.begin(&mut state);
        }
        let (kind, name) = file_use(name, flags);
        let key = match kind {
            FileKind::Temp => Key::Temp,
            FileKind::Data => {
                let (device, inode) = identity(name);
                Key::File { path: name.as_bytes().to_vec(), device, inode }
            }
            _ => Key::Name(name.as_bytes().to_vec()),
        };
        if let Some(index) = state.slots.get(&key) {
            return Some(self.writer.slot(*index));
        }
        self.claim(&mut state, kind, name, key)
    }

    fn claim(&self, state: &mut State, kind: FileKind, name: &OsStr, key: Key) -> Option<&Slot> {
        let identity = match &key {
            Key::Temp => (0, 0),
            Key::File { device, inode, .. } => (*device, *inode),
            Key::Name(_) => identity(name),
        };
        let generation = state.generations.get(name.as_bytes()).unwrap_or(&0) + 1;
        // The next one: nothing else counts files in it.
        let index = self.writer.files_counted();
        let file = FileToCount { kind, path: name.as_bytes(), identity, generation, way: Way::default() };
        let slot = self.writer.count_file(&file)?;
        state.generations.insert(name.as_bytes().to_vec(), generation);
        state.slots.insert(key, index);
        Some(slot)
    }

    /// Starts counting from zero, for this process. Called once, and again in the child of a fork.
    fn begin(&self, state: &mut State) {
        state.pid = std::process::id();
        state.slots.clear();
        state.generations.clear();
        match &self.publish {
            Publish::Private => self.writer.keep_private(),
            Publish::Shared { dir } => {
                if let Err(error) = self.writer.share(dir)
                    && std::env::var_os("HEADROOM_VERBOSE").is_some()
                {
                    let dir = dir.display();
                    eprintln!(
                        "headroom: cannot publish the counters in {dir}: {error}; they stay private to this process"
                    );
                }
            }
        }
        self.claim(state, FileKind::Temp, OsStr::new(TEMP_FILES), Key::Temp);
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// SQLite's use of the file, and the name under which it is counted.
fn file_use(name: Option<&OsStr>, flags: c_int) -> (FileKind, &OsStr) {
    const TEMP: c_int = SQLITE_OPEN_DELETEONCLOSE
        | SQLITE_OPEN_TEMP_DB
        | SQLITE_OPEN_TRANSIENT_DB
        | SQLITE_OPEN_TEMP_JOURNAL
        | SQLITE_OPEN_SUBJOURNAL;
    match name {
        Some(name) if !name.is_empty() && flags & TEMP == 0 => {
            let is = |flag| flags & flag != 0;
            if is(SQLITE_OPEN_MAIN_DB) {
                (FileKind::Data, name)
            } else if is(SQLITE_OPEN_WAL) {
                (FileKind::Log, name)
            } else if is(SQLITE_OPEN_MAIN_JOURNAL) {
                (FileKind::Journal, name)
            } else if is(SQLITE_OPEN_SUPER_JOURNAL) {
                (FileKind::Journal, without_random_part(name))
            } else {
                (FileKind::Other, name)
            }
        }
        _ => (FileKind::Temp, OsStr::new(TEMP_FILES)),
    }
}

/// The name of a super-journal is "NAME-mjXXXXXX9XX" with a random number, different for each transaction over
/// several databases (`vdbeCommit`). All of those of one database are counted as "NAME-mj".
fn without_random_part(name: &OsStr) -> &OsStr {
    const RANDOM_BYTES: usize = 9;
    let bytes = name.as_bytes();
    let cut = bytes.len().saturating_sub(RANDOM_BYTES);
    if bytes[..cut].ends_with(b"-mj") { OsStr::from_bytes(&bytes[..cut]) } else { name }
}

fn identity(path: &OsStr) -> (u64, u64) {
    fs::metadata(path).map_or((0, 0), |found| {
        let (major, minor) = (libc::major(found.dev()), libc::minor(found.dev()));
        (u64::from(major) << 32 | u64::from(minor), found.ino())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use published::{FILES_MAX, PATH_BYTES_MAX};
    use std::path::Path;

    fn registry(publish: Publish) -> &'static Registry {
        Box::leak(Box::new(Registry::new(publish).unwrap()))
    }

    #[test]
    fn a_file_that_replaces_another_is_counted_from_zero() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sales.db");
        let registry = registry(Publish::Private);
        let open = || registry.slot_for(Some(path.as_os_str()), SQLITE_OPEN_MAIN_DB).unwrap();
        fs::write(&path, "one").unwrap();
        open().count_read(10, 1);
        open().count_read(10, 1);
        fs::rename(&path, dir.path().join("old.db")).unwrap();
        fs::write(&path, "two").unwrap();
        open().count_read(7, 1);
        let found: Vec<_> = registry.files().filter(|file| file.path == path).collect();
        let counts: Vec<_> = found.iter().map(|file| (file.generation, file.counters.read.bytes)).collect();
        assert_eq!(counts, [(1, 20), (2, 7)]);
        assert_ne!(found[0].inode, found[1].inode);
    }

    #[test]
    fn temporary_files_share_a_slot_and_so_do_a_databases_super_journals() {
        let registry = registry(Publish::Private);
        let slot = |name: Option<&str>, flags| registry.slot_for(name.map(OsStr::new), flags).unwrap();
        assert!(std::ptr::eq(slot(None, SQLITE_OPEN_TEMP_DB), slot(Some(""), SQLITE_OPEN_MAIN_DB)));
        let first = slot(Some("/d/a.db-mj1A2B3C9D4"), SQLITE_OPEN_SUPER_JOURNAL);
        let second = slot(Some("/d/a.db-mjFFFFFF900"), SQLITE_OPEN_SUPER_JOURNAL);
        assert!(std::ptr::eq(first, second));
        let paths: Vec<_> = registry.files().map(|file| file.path).collect();
        assert_eq!(paths, [Path::new(TEMP_FILES), Path::new("/d/a.db-mj")]);
    }

    #[test]
    fn files_beyond_the_limit_are_counted_as_lost() {
        let registry = registry(Publish::Private);
        let open = |n: usize| {
            let name = format!("/nowhere/{n}.db");
            registry.slot_for(Some(OsStr::new(&name)), SQLITE_OPEN_MAIN_DB)
        };
        // One slot is that of the temporary files.
        assert!((1..FILES_MAX).all(|n| open(n).is_some()));
        assert!(open(FILES_MAX).is_none() && open(1).is_some());
        let long = "x".repeat(PATH_BYTES_MAX + 1);
        assert!(registry.slot_for(Some(OsStr::new(&long)), SQLITE_OPEN_MAIN_DB).is_none());
        assert_eq!((registry.files().count(), registry.files_lost()), (FILES_MAX, 2));
    }

    #[test]
    fn counters_that_cannot_be_published_still_count() {
        let missing = PathBuf::from("/nowhere/at/all");
        let registry = registry(Publish::Shared { dir: missing });
        registry.slot_for(None, SQLITE_OPEN_TEMP_DB).unwrap().count_write(5, 1);
        assert!(registry.published().unwrap_err().contains("/nowhere/at/all"));
        assert_eq!(registry.files().next().unwrap().counters.write.bytes, 5);
    }
}
