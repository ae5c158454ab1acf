//! The reading side: the board of a store that a process has open, for any process of the same user or of root.

use crate::board::{BOARD_BYTES, Board, Counts, Owner, REQUESTED_AT, directory_id, pid_in_name};
use crate::commits::CommitTimes;
use crate::log_state::LogState;
use published::{Access, CountersFile, Mapping, PublishedFile, Reading, counters_dir, published_in};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The interval at which a reader checks whether its request was answered.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Bounds the search of a directory that every user may fill.
const ENTRIES_SEARCHED_MAX: usize = 1 << 16;

/// Why counters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such directory, or no page store in it.
    #[error("cannot watch {path}: {why}")]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// The defect.
        why: String,
    },
    /// It is a page store, and no process publishes counters of it.
    #[error("cannot watch {path}: no running program publishes counters of this page store")]
    NotPublished {
        /// The directory.
        path: PathBuf,
        /// The directory that was searched.
        dir: PathBuf,
    },
    /// No counters of it were found, and some files could not be read: theirs may be among them.
    #[error("cannot watch {path}: {count} counters file(s) cannot be read")]
    Unreadable {
        /// The store's directory.
        path: PathBuf,
        /// The number of unreadable files.
        count: usize,
        /// The error of the first one.
        first: String,
    },
    /// The directory of counters cannot be listed.
    #[error("cannot look for counters in {dir}: {error}")]
    CountersDir {
        /// The directory.
        dir: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

impl ReadError {
    /// Facts about the error, one line each.
    #[must_use]
    pub fn facts(&self) -> Vec<String> {
        match self {
            Self::NotPublished { dir, .. } => {
                vec![format!("looked for counters in: {}", dir.display())]
            }
            Self::Unreadable { first, .. } => vec![format!("the first one: {first}")],
            Self::NotAStore { .. } | Self::CountersDir { .. } => Vec::new(),
        }
    }

    /// Remedy.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotAStore { .. } => "give the directory of a page store",
            Self::NotPublished { .. } => {
                "watch it while a program has it open, with the same HEADROOM_COUNTERS_DIR if that is set; headroom log \
                 reads a store that no process has open"
            }
            Self::Unreadable { .. } => {
                "run headroom as the user whose program has the store open, or as root"
            }
            Self::CountersDir { .. } => {
                "set HEADROOM_COUNTERS_DIR to the directory that the program publishes in"
            }
        }
    }
}

/// Removes the files of dead processes from `dir`.
pub(crate) fn remove_dead(dir: &Path) {
    // It removes those that it finds.
    let _ = published_in(dir);
    let entries = std::fs::read_dir(dir).into_iter().flatten().take(ENTRIES_SEARCHED_MAX).flatten();
    for entry in entries.filter(|entry| pid_in_name(&entry.file_name()).is_some()) {
        let _ = Reader::open_file(&entry.path(), Access::Read);
    }
}

/// The counters of one opening of a store.
pub struct Reader {
    file: PublishedFile,
    owner: Owner,
    /// The store's counters in the format of any engine; `None` until they are searched, and where there are none.
    published: Option<CountersFile>,
}

impl Reader {
    /// Finds the process that has the store in `directory` open, by the files in `HEADROOM_COUNTERS_DIR` or /dev/shm.
    /// Only processes of the store's owner and of root are searched.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn open(directory: &Path) -> Result<Self, ReadError> {
        Self::open_in(directory, &counters_dir())
    }

    /// Finds it with another directory of counters.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn open_in(directory: &Path, dir: &Path) -> Result<Self, ReadError> {
        let control = std::fs::metadata(directory.join("control")).map_err(|error| {
            let why = if error.kind() == io::ErrorKind::NotFound {
                "there is no page store in it".into()
            } else {
                error.to_string()
            };
            ReadError::NotAStore { path: directory.into(), why }
        })?;
        let may_open = |user| user == 0 || user == control.uid();
        let unlisted = |error| ReadError::CountersDir { dir: dir.into(), error };
        let wanted = directory_id(directory);
        // Also where no board is found: files of dead processes go.
        let published = published_in(dir).map(|found| found.live).unwrap_or_default();
        let mut unreadable = Vec::new();
        for (at, entry) in std::fs::read_dir(dir).map_err(unlisted)?.enumerate() {
            if at == ENTRIES_SEARCHED_MAX {
                let why = format!("it has more than {ENTRIES_SEARCHED_MAX} entries");
                return Err(unlisted(io::Error::other(why)));
            }
            let entry = entry.map_err(unlisted)?;
            if pid_in_name(&entry.file_name()).is_none() {
                continue;
            }
            match Self::open_file(&entry.path(), Access::Write) {
                Ok(Some(reader))
                    if may_open(reader.file.user()) && Some(reader.owner.directory) == wanted =>
                {
                    let published = reader.find_published(published);
                    return Ok(Self { published, ..reader });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => unreadable.push(format!("{}: {error}", entry.path().display())),
            }
        }
        match unreadable.first() {
            Some(first) => Err(ReadError::Unreadable {
                path: directory.into(),
                count: unreadable.len(),
                first: first.clone(),
            }),
            None => Err(ReadError::NotPublished { path: directory.into(), dir: dir.into() }),
        }
    }

    /// The counters of a process that runs. Removes the file of a dead one. `None` also for a file that does not belong to the
    /// process that it claims.
    fn open_file(path: &Path, access: Access) -> io::Result<Option<Self>> {
        let Some(file) = PublishedFile::open(path, BOARD_BYTES, access)? else { return Ok(None) };
        let Some(copy) = copy(&file) else { return Ok(None) };
        let head = &copy.as_board::<Board>().head;
        let named = path.file_name().and_then(pid_in_name);
        let Some(process) = head.process().filter(|process| Some(process.pid) == named) else {
            return Ok(None);
        };
        match process.is_alive() {
            Some(true) if file.is_trusted_for(&process) => {
                Ok(head.owner().map(|owner| Self { file, owner, published: None }))
            }
            Some(false) => {
                let _ = std::fs::remove_file(path);
                Ok(None)
            }
            Some(true) | None => Ok(None),
        }
    }

    /// The process and the store.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Whether the store is still open, in a process that runs.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.copy().is_some_and(|copy| copy.as_board::<Board>().head.closed.load(Relaxed) == 0)
            && self.owner.process.is_alive() == Some(true)
    }

    /// A copy of the board; `None` if its file was truncated.
    fn copy(&self) -> Option<Mapping> {
        copy(&self.file)
    }

    /// The counters that the store publishes as any engine.
    fn find_published(&self, live: Vec<CountersFile>) -> Option<CountersFile> {
        let is_it = |counters: &CountersFile| {
            let inode = counters.database.as_ref().map(|database| database.identity.1);
            counters.process == self.owner.process && inode == Some(self.owner.directory[1])
        };
        live.into_iter().find(is_it)
    }

    /// The I/O of its files, its commits and its log's records, as any reader finds them.
    #[must_use]
    pub fn published(&self) -> Option<Reading> {
        self.published.as_ref()?.read().ok()
    }

    /// The counts of the engine.
    #[must_use]
    pub fn counts(&self) -> Option<Counts> {
        let published = self.published().map(|reading| reading.commits).unwrap_or_default();
        self.copy().map(|copy| copy.as_board::<Board>().counts(&published))
    }

    /// The times of its commits.
    #[must_use]
    pub fn commit_times(&self) -> Option<CommitTimes> {
        let [before, mut times] =
            [self.copy()?, self.copy()?].map(|copy| copy.as_board::<Board>().commits.read());
        // A copy is not made at one instant. What two copies agree on was not written in between.
        times.slow.retain(|slow| before.slow.contains(slow));
        Some(times)
    }

    /// Requests the state of the store's log and waits for the answer up to `patience`. After that it returns the last
    /// state that the store wrote, if any.
    #[must_use]
    pub fn log_state(&self, patience: Duration) -> Option<LogState> {
        let request = self.copy()?.as_board::<Board>().state.next_request();
        self.file.write(REQUESTED_AT, request).ok()?;
        let until = Instant::now() + patience;
        loop {
            let copies = [self.copy()?, self.copy()?];
            let [before, after] = copies.each_ref().map(|copy| &copy.as_board::<Board>().state);
            let late = Instant::now() >= until;
            if (late || before.is_answered(request))
                && let Some(state) = after.read()
                && before.read().as_ref() == Some(&state)
            {
                return Some(state);
            }
            if late {
                return None;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

fn copy(file: &PublishedFile) -> Option<Mapping> {
    let mut copy = Mapping::private(BOARD_BYTES).ok()?;
    file.read(0..BOARD_BYTES, &mut copy).ok()?;
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Head, file_name};
    use crate::{Opening, Publisher, SlowCommit};
    use proptest::prelude::*;
    use published::ProcessIdentity;
    use std::fs::{self, File};
    use std::os::unix::fs::{FileExt, chown};
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    const OTHER_USER: u32 = 65534;
    const OPENING: Opening =
        Opening { store: 7, epoch: 1, page_bytes: 4096, log_sector_bytes: 512, vlf_bytes: u64::MAX };

    /// A store that this process has open, its counters, and a directory in shared memory with a copy of them.
    struct Place {
        store: tempfile::TempDir,
        counters: tempfile::TempDir,
        publisher: Arc<Publisher>,
    }

    impl Place {
        fn new() -> Place {
            let shared = Path::new("/dev/shm");
            let shared = if shared.is_dir() { shared.into() } else { std::env::temp_dir() };
            let (store, counters) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in(shared).unwrap());
            fs::write(store.path().join("control"), "").unwrap();
            let publisher = Publisher::new(Some(store.path()));
            publisher.announce(store.path(), &OPENING);
            Place { store, counters, publisher }
        }

        fn copy(&self) -> PathBuf {
            let published = self.publisher.board_path().unwrap();
            let copy = self.counters.path().join(published.file_name().unwrap());
            fs::copy(published, &copy).unwrap();
            copy
        }

        fn open(&self) -> Result<Reader, ReadError> {
            Reader::open_in(self.store.path(), self.counters.path())
        }
    }

    /// Gives a file to another user; `false` where this test may not.
    fn give_away(path: &Path) -> bool {
        let given = chown(path, Some(OTHER_USER), None);
        if let Err(error) = &given {
            println!("skipped: a file of another user needs root: {error}");
        }
        given.is_ok()
    }

    #[test]
    fn another_users_file_claims_no_process_of_this_user() {
        let place = Place::new();
        let path = place.copy();
        assert_eq!(place.open().unwrap().owner().process.pid, std::process::id());
        if give_away(&path) {
            assert!(matches!(place.open(), Err(ReadError::NotPublished { .. })));
            remove_dead(place.counters.path());
            assert!(path.exists());
        }
    }

    #[test]
    fn another_users_process_publishes_no_counters_of_this_users_store() {
        let place = Place::new();
        let mut sleeper = match Command::new("sleep").arg("600").uid(OTHER_USER).spawn() {
            Ok(sleeper) => sleeper,
            Err(error) => return println!("skipped: a process of another user needs root: {error}"),
        };
        let (pid, start_ticks) = (sleeper.id(), host::start_ticks(sleeper.id()).unwrap());
        let own = ProcessIdentity::own().unwrap();
        place.publisher.head.begin(&ProcessIdentity { pid, start_ticks, ..own });
        place.publisher.announce(place.store.path(), &OPENING);
        let path = place.counters.path().join(file_name(pid, 0));
        fs::copy(place.publisher.board_path().unwrap(), &path).unwrap();
        assert!(give_away(&path));
        assert!(matches!(place.open(), Err(ReadError::NotPublished { .. })));
        // Unless the store is that user's.
        assert!(give_away(&place.store.path().join("control")));
        assert_eq!(place.open().unwrap().owner().process.pid, pid);
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }

    #[test]
    fn the_process_in_a_files_name_is_the_one_in_its_header() {
        let place = Place::new();
        let path = place.copy();
        fs::rename(path, place.counters.path().join("headroom-pagestore-1-0.board")).unwrap();
        assert!(matches!(place.open(), Err(ReadError::NotPublished { .. })));
    }

    #[test]
    fn a_file_that_is_truncated_all_the_time_ends_no_reader() {
        let place = Place::new();
        let path = place.copy();
        let (reader, ended) = (place.open().unwrap(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let file = File::options().write(true).open(&path).unwrap();
                let content = fs::read(&path).unwrap();
                while !ended.load(Relaxed) {
                    file.set_len(0).unwrap();
                    file.write_all_at(&content, 0).unwrap();
                }
            });
            let until = Instant::now() + Duration::from_millis(300);
            while Instant::now() < until {
                let _ = (reader.counts(), reader.commit_times(), reader.is_open());
                let _ = (reader.log_state(Duration::ZERO), place.open());
                remove_dead(place.counters.path());
            }
            ended.store(true, Relaxed);
        });
    }

    #[test]
    fn any_numbers_are_read() {
        let place = Place::new();
        let path = place.copy();
        let reader = place.open().unwrap();
        let numbers = vec![255; BOARD_BYTES - size_of::<Head>()];
        let file = File::options().write(true).open(path).unwrap();
        file.write_all_at(&numbers, size_of::<Head>() as u64).unwrap();
        assert_eq!(reader.counts().unwrap().commits, u64::MAX);
        let _ =
            (reader.commit_times(), reader.log_state(Duration::ZERO), reader.owner().slot_offset(usize::MAX));
    }

    fn read_all(reader: &Reader) {
        let _ = (reader.owner().open_for(), reader.owner().slot_offset(usize::MAX), reader.is_open());
        let _ = reader.counts();
        let _ = reader.commit_times().map(|times| times.slow.iter().map(SlowCommit::whole_ns).max());
        if let Some(state) = reader.log_state(Duration::ZERO) {
            let _ = (state.age(), state.redo.bytes_to(state.next, reader.owner().opening.vlf_bytes));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_damaged_file_is_read_or_refused(
            parts in prop::collection::vec((0..BOARD_BYTES, prop::collection::vec(any::<u8>(), 1..32)), 1..8),
        ) {
            let place = Place::new();
            let path = place.copy();
            let opened_before = place.open().unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            for (at, bytes) in parts {
                let bytes = &bytes[..bytes.len().min(BOARD_BYTES - at)];
                file.write_all_at(bytes, at as u64).unwrap();
            }
            read_all(&opened_before);
            place.open().iter().for_each(read_all);
        }
    }
}
