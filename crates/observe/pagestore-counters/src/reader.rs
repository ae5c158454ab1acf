//! The counters of a store that a process has open, read from any other process of the same user, or by root.

use super::anatomy::CommitTimes;
use super::board::{BOARD_BYTES, Board, Owner, directory_id};
use super::state::LogState;
use super::{Counts, FileStatistics, is_board_name};
use published::{Mapping, counters_dir};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How often it is looked whether a question was answered.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Why there are no counters.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// There is no such directory, or no page store in it.
    #[error("cannot watch {path}: {why}")]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It is a page store, and no process shows counters of it.
    #[error("cannot watch {path}: no running program publishes counters of this page store")]
    NobodyPublishes {
        /// The directory.
        path: PathBuf,
        /// Where counters were looked for.
        dir: PathBuf,
    },
    /// No counters of it were found, and some could not be read: they may be those.
    #[error("cannot watch {path}: {count} counters file(s) cannot be read")]
    Unreadable {
        /// The store's directory.
        path: PathBuf,
        /// How many.
        count: usize,
        /// What is wrong with the first one.
        first: String,
    },
    /// The directory of counters cannot be listed.
    #[error("cannot look for counters in {dir}: {error}")]
    CountersDir {
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl LiveError {
    /// What is known about the case, a line each.
    #[must_use]
    pub fn facts(&self) -> Vec<String> {
        match self {
            Self::NobodyPublishes { dir, .. } => {
                vec![format!("looked for counters in: {}", dir.display())]
            }
            Self::Unreadable { first, .. } => vec![format!("the first one: {first}")],
            Self::NotAStore { .. } | Self::CountersDir { .. } => Vec::new(),
        }
    }

    /// What the person can do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotAStore { .. } => "give the directory of a page store",
            Self::NobodyPublishes { .. } => {
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

/// Removes what killed programs left in `dir`.
pub(super) fn remove_dead(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_board_name)
            && let Ok(Some(mapping)) = Mapping::open(&entry.path(), BOARD_BYTES)
        {
            Live::of(mapping, &entry.path());
        }
    }
}

/// The counters of one opening of a store.
pub struct Live {
    mapping: Mapping,
    owner: Owner,
}

impl Live {
    /// Finds who has the store in `directory` open; looks in `HEADROOM_COUNTERS_DIR` or /dev/shm.
    ///
    /// # Errors
    /// [`LiveError`].
    pub fn open(directory: &Path) -> Result<Self, LiveError> {
        let not_a_store = |why: String| LiveError::NotAStore { path: directory.into(), why };
        if let Err(error) = std::fs::metadata(directory.join("control")) {
            let what = if error.kind() == io::ErrorKind::NotFound {
                "there is no page store in it".into()
            } else {
                error.to_string()
            };
            return Err(not_a_store(what));
        }
        let dir = counters_dir();
        let unlisted = |error| LiveError::CountersDir { dir: dir.clone(), error };
        let wanted = directory_id(directory);
        let mut unreadable = Vec::new();
        for entry in std::fs::read_dir(&dir).map_err(unlisted)? {
            let entry = entry.map_err(unlisted)?;
            if !entry.file_name().to_str().is_some_and(is_board_name) {
                continue;
            }
            match Mapping::open(&entry.path(), BOARD_BYTES) {
                Ok(mapping) => {
                    let found = mapping.and_then(|mapping| Self::of(mapping, &entry.path()));
                    if let Some(live) = found
                        && Some(live.owner.directory) == wanted
                    {
                        return Ok(live);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => unreadable.push(format!("{}: {error}", entry.path().display())),
            }
        }
        match unreadable.first() {
            Some(first) => Err(LiveError::Unreadable {
                path: directory.into(),
                count: unreadable.len(),
                first: first.clone(),
            }),
            None => Err(LiveError::NobodyPublishes { path: directory.into(), dir }),
        }
    }

    /// Of a process that runs; what a dead one left is removed.
    fn of(mapping: Mapping, path: &Path) -> Option<Self> {
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

    /// Whose counters they are.
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

    /// The board; `None` where its file was cut.
    fn board(&self) -> Option<&Board> {
        self.mapping.is_whole().then(|| self.mapping.as_board())
    }

    /// The I/O of its three files since it was opened.
    #[must_use]
    pub fn file_statistics(&self) -> Option<[FileStatistics; 3]> {
        self.board().map(Board::file_statistics)
    }

    /// What the engine did.
    #[must_use]
    pub fn counts(&self) -> Option<Counts> {
        self.board().map(Board::counts)
    }

    /// Where the time of its commits went.
    #[must_use]
    pub fn commit_times(&self) -> Option<CommitTimes> {
        self.board().map(|board| board.commits.read())
    }

    /// Asks the store for the state of its log, and waits for the answer up to `patience`; after that the last one
    /// that it gave, if there is one.
    #[must_use]
    pub fn log_state(&self, patience: Duration) -> Option<LogState> {
        let question = self.board()?.state.ask();
        let until = Instant::now() + patience;
        loop {
            let state = &self.board()?.state;
            let late = Instant::now() >= until;
            if (late || state.is_answered(question))
                && let Some(state) = state.read()
            {
                return Some(state);
            }
            if late {
                return None;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
