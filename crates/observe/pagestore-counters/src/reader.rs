//! The reading side: the counters of a store that a process has open, for any process of the same user or of root.

use crate::board::{BOARD_BYTES, Board, Counts, FILE_PREFIX, FILE_SUFFIX, Owner, directory_id};
use crate::commits::CommitTimes;
use crate::file::FileStatistics;
use crate::log_state::LogState;
use published::{Access, Mapping, counters_dir};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The interval at which a reader checks whether its request was answered.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Why counters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such directory, or no page store in it.
    #[error("cannot watch {path}: {why}")]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
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
    /// What is known about the error, one line each.
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

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotAStore { .. } => "give the directory of a page store",
            Self::NotPublished { .. } => {
                "watch it while a program has it open, with the same HEADROOM_COUNTERS_DIR if that is set; headroom log \
                 looks into a store that nobody has open"
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

/// Whether a file's name is that of a board.
fn is_board_name(name: &str) -> bool {
    name.starts_with(FILE_PREFIX) && name.ends_with(FILE_SUFFIX)
}

/// Removes the files of dead processes from `dir`.
pub(crate) fn remove_dead(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_board_name)
            && let Ok(Some(mapping)) = Mapping::open(&entry.path(), BOARD_BYTES, Access::Write)
        {
            Reader::from_mapping(mapping, &entry.path());
        }
    }
}

/// The counters of one opening of a store.
pub struct Reader {
    mapping: Mapping,
    owner: Owner,
}

impl Reader {
    /// Finds the process that has the store in `directory` open, by the files in `HEADROOM_COUNTERS_DIR` or /dev/shm.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn open(directory: &Path) -> Result<Self, ReadError> {
        if let Err(error) = std::fs::metadata(directory.join("control")) {
            let why = if error.kind() == io::ErrorKind::NotFound {
                "there is no page store in it".into()
            } else {
                error.to_string()
            };
            return Err(ReadError::NotAStore { path: directory.into(), why });
        }
        let dir = counters_dir();
        let unlisted = |error| ReadError::CountersDir { dir: dir.clone(), error };
        let wanted = directory_id(directory);
        let mut unreadable = Vec::new();
        for entry in std::fs::read_dir(&dir).map_err(unlisted)? {
            let entry = entry.map_err(unlisted)?;
            if !entry.file_name().to_str().is_some_and(is_board_name) {
                continue;
            }
            match Mapping::open(&entry.path(), BOARD_BYTES, Access::Write) {
                Ok(mapping) => {
                    let reader = mapping.and_then(|mapping| Self::from_mapping(mapping, &entry.path()));
                    if let Some(reader) = reader
                        && Some(reader.owner.directory) == wanted
                    {
                        return Ok(reader);
                    }
                }
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
            None => Err(ReadError::NotPublished { path: directory.into(), dir }),
        }
    }

    /// The counters of a process that runs. Removes the file of a dead one.
    fn from_mapping(mapping: Mapping, path: &Path) -> Option<Self> {
        let head = &mapping.as_board::<Board>().head;
        match head.process()?.is_alive() {
            Some(true) => {
                let owner = head.owner()?;
                Some(Self { mapping, owner })
            }
            Some(false) => {
                let _ = std::fs::remove_file(path);
                None
            }
            None => None,
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
        self.board().is_some_and(|board| board.head.closed.load(Relaxed) == 0)
            && self.owner.process.is_alive() == Some(true)
    }

    /// The board; `None` if its file was truncated.
    fn board(&self) -> Option<&Board> {
        self.mapping.is_whole().then(|| self.mapping.as_board())
    }

    /// The I/O of its three files since it was opened.
    #[must_use]
    pub fn file_statistics(&self) -> Option<[FileStatistics; 3]> {
        self.board().map(Board::file_statistics)
    }

    /// The counts of the engine.
    #[must_use]
    pub fn counts(&self) -> Option<Counts> {
        self.board().map(Board::counts)
    }

    /// The times of its commits.
    #[must_use]
    pub fn commit_times(&self) -> Option<CommitTimes> {
        self.board().map(|board| board.commits.read())
    }

    /// Requests the state of the store's log and waits for the answer up to `patience`. After that it returns the last
    /// state that the store wrote, if any.
    #[must_use]
    pub fn log_state(&self, patience: Duration) -> Option<LogState> {
        let request = self.board()?.state.request();
        let until = Instant::now() + patience;
        loop {
            let state = &self.board()?.state;
            let late = Instant::now() >= until;
            if (late || state.is_answered(request))
                && let Some(state) = state.read()
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
