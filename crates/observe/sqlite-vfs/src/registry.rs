//! Assigns a slot to each file that is opened.

use crate::abi::{
    SQLITE_OPEN_DELETEONCLOSE, SQLITE_OPEN_MAIN_DB, SQLITE_OPEN_MAIN_JOURNAL, SQLITE_OPEN_SUBJOURNAL,
    SQLITE_OPEN_SUPER_JOURNAL, SQLITE_OPEN_TEMP_DB, SQLITE_OPEN_TEMP_JOURNAL, SQLITE_OPEN_TRANSIENT_DB,
    SQLITE_OPEN_WAL,
};
use crate::counters_file::{Publish, Published, create, write_header};
use crate::layout::{FILES_MAX, PATH_BYTES_MAX, Slot, Table};
use crate::reader::{FileReading, read_slot};
use crate::region::Region;
use filestats::FileKind;
use published::ProcessIdentity;
use std::collections::HashMap;
use std::ffi::{OsStr, c_int};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The path of the slot that sums all temporary files.
pub const TEMP_FILES: &str = "(temporary files)";
const PRIVATE: &str = "the counters are private";

/// The counters of all files that this process opened through the shim.
#[derive(Debug)]
pub struct Registry {
    region: Region,
    publish: Publish,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    pid: u32,
    slots: HashMap<Key, usize>,
    generations: HashMap<Vec<u8>, u32>,
    /// The file that other processes read, or why there is none.
    published: Result<Published, String>,
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
            region: Region::private()?,
            publish,
            state: Mutex::new(State {
                pid: 0,
                slots: HashMap::new(),
                generations: HashMap::new(),
                published: Err(PRIVATE.into()),
            }),
        };
        registry.begin(&mut registry.locked());
        Ok(registry)
    }

    /// The counters of every file opened so far, in the order of first opening. The first one is the sum
    /// of all temporary files.
    pub fn files(&self) -> impl Iterator<Item = FileReading> + '_ {
        let Table { header, slots } = self.region.table();
        let used = (header.slots_used.load(Acquire) as usize).min(FILES_MAX);
        slots[..used].iter().enumerate().filter_map(|(index, slot)| read_slot(index, slot, true))
    }

    /// Number of files that were opened while all [`FILES_MAX`] slots were taken; they are not counted.
    pub fn files_lost(&self) -> u64 {
        self.region.table().header.files_lost.load(Relaxed)
    }

    /// The file through which other processes read these counters.
    ///
    /// # Errors
    /// Why the file could not be created, or that the counters are [`Publish::Private`].
    pub fn published(&self) -> Result<PathBuf, String> {
        let state = self.locked();
        state.published.as_ref().map(|published| published.path.clone()).map_err(String::clone)
    }

    /// Removes the published file; counting continues.
    pub(crate) fn withdraw(&self) {
        let mut state = self.locked();
        // The child of a fork that has opened no file still has its parent's state.
        if state.pid == std::process::id()
            && let Ok(published) = std::mem::replace(&mut state.published, Err(PRIVATE.into()))
        {
            published.remove();
        }
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
            return Some(&self.region.table().slots[*index]);
        }
        let index = self.claim(&mut state, kind, name, key);
        if index.is_none() {
            self.region.table().header.files_lost.fetch_add(1, Relaxed);
        }
        index.map(|index| &self.region.table().slots[index])
    }

    fn claim(&self, state: &mut State, kind: FileKind, name: &OsStr, key: Key) -> Option<usize> {
        let index = self.region.table().header.slots_used.load(Relaxed) as usize;
        if index >= FILES_MAX || name.len() > PATH_BYTES_MAX {
            return None;
        }
        if let Ok(published) = &state.published {
            published.reserve_slot(index).ok()?;
        }
        let identity = match &key {
            Key::Temp => (0, 0),
            Key::File { device, inode, .. } => (*device, *inode),
            Key::Name(_) => identity(name),
        };
        let generation = state.generations.entry(name.as_bytes().to_vec()).or_insert(0);
        *generation += 1;
        self.region.table().slots[index].publish(kind, name.as_bytes(), identity, *generation);
        self.region.table().header.slots_used.store(index as u32 + 1, Release);
        state.slots.insert(key, index);
        Some(index)
    }

    /// Starts counting from zero, for this process. Called once, and again in the child of a fork.
    fn begin(&self, state: &mut State) {
        state.pid = std::process::id();
        state.slots.clear();
        state.generations.clear();
        state.published = match &self.publish {
            Publish::Private => Err(PRIVATE.into()),
            Publish::Shared { dir } => self.share(dir).map_err(|error| {
                let why = format!("cannot publish the counters in {}: {error}", dir.display());
                if std::env::var_os("HEADROOM_VERBOSE").is_some() {
                    eprintln!("headroom: {why}; they stay private to this process");
                }
                why
            }),
        };
        if state.published.is_err() {
            // On failure (no memory for a mapping) the old counters stay mapped: useless, but safe.
            let _ = self.region.replace(None);
        }
        self.claim(state, FileKind::Temp, OsStr::new(TEMP_FILES), Key::Temp);
    }

    fn share(&self, dir: &Path) -> io::Result<Published> {
        let process = ProcessIdentity::own().ok_or_else(|| io::Error::other("/proc cannot be read"))?;
        let (published, file) = create(dir, process.pid)?;
        match self.region.replace(Some(&file)) {
            Ok(()) => {
                write_header(&self.region, &process);
                Ok(published)
            }
            Err(error) => {
                published.remove();
                Err(error)
            }
        }
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
