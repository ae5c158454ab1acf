//! The writing side: the counters of a store that this process opens.

use crate::board::{BOARD_BYTES, Board, Counts, Opening, file_name};
use crate::commits::Instants;
use crate::file::{FileId, FileStatistics};
use crate::reader;
use published::{
    CommitCounters, Engine, FileToCount, Mapping, ProcessIdentity, Reading, Slot, Writer, counters_dir,
};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The name under which the store publishes its counters.
const ENGINE: Engine = Engine {
    name: "pagestore",
    counts_commits: true,
    counts_writer_time: true,
    counts_log_records: true,
    commits_one_by_one: false,
};

/// Bounds the search for a free file name. A process of another pid namespace, or a dead one, may have taken some.
const NAMES_TRIED: u32 = 1000;

/// The published counters and the board of an open store.
pub struct Publisher {
    writer: Writer,
    board: Mapping,
}

impl Deref for Publisher {
    type Target = Board;

    fn deref(&self) -> &Board {
        self.board.as_board()
    }
}

impl Publisher {
    /// Counters at zero. They are in shared memory for a store in a directory, and in private memory where that is
    /// unavailable: an error here never keeps a store from opening.
    ///
    /// # Panics
    /// When there is no memory for them.
    #[must_use]
    pub fn new(directory: Option<&Path>) -> Arc<Self> {
        let writer = Writer::private(ENGINE).expect("there is memory for a store's counters");
        let is_shared = directory.is_some_and(|_| writer.share(&counters_dir()).is_ok());
        if !count_files(&writer, directory) {
            writer.keep_private();
            assert!(count_files(&writer, directory), "private memory has the slots");
        }
        let shared = is_shared.then(|| ProcessIdentity::own().zip(create_shared().ok())).flatten();
        let publisher = match shared {
            Some((process, board)) => {
                let publisher = Self { writer, board };
                publisher.head.begin(&process);
                publisher
            }
            None => Self { writer, board: create_private() },
        };
        Arc::new(publisher)
    }

    /// Records which store the counters belong to. From here on, readers find them.
    pub fn announce(&self, directory: &Path, opening: &Opening) {
        self.writer.announce(directory);
        self.head.announce(directory, opening);
    }

    /// The counters of one file.
    pub fn file(&self, file: FileId) -> &Slot {
        // In the order of `FileId::ALL`.
        self.writer.slot(file as usize)
    }

    /// The counters of commits and of the log's records that any reader finds.
    pub fn published(&self) -> &CommitCounters {
        self.writer.commits()
    }

    /// Counts a commit whose thread runs again now.
    pub fn record_commit(&self, sequence: u64, at: &Instants) {
        let waited_ns = self.commits.record(sequence, at);
        self.published().commits.fetch_add(1, Relaxed);
        self.published().log_wait_ns.fetch_add(waited_ns, Relaxed);
    }

    /// Counts that a transaction had the turn to write for so long: from the turn until its records were in the log's block, the
    /// program's time and reads of pages included. Also of commits that do not wait to be durable.
    pub fn record_turn(&self, ns: u64) {
        self.published().writer_ns.fetch_add(ns, Relaxed);
    }

    /// All that other processes read of any engine.
    pub fn reading(&self) -> Reading {
        self.writer.read()
    }

    /// The I/O of the three files so far.
    pub fn file_statistics(&self) -> [FileStatistics; 3] {
        let mut files = self.writer.files();
        FileId::ALL.map(|file| FileStatistics::new(file, files.next().expect("a slot for each file")))
    }

    /// The counts of the engine so far.
    pub fn counts(&self) -> Counts {
        self.board.as_board::<Board>().counts(&self.writer.read_commits())
    }

    /// The file in which other processes read the counters, or the reason why there is none.
    ///
    /// # Errors
    /// The reason.
    pub fn path(&self) -> Result<PathBuf, String> {
        self.writer.path()
    }

    /// The file of the board; `None` where it is private.
    pub fn board_path(&self) -> Option<&Path> {
        self.board.path()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.head.closed.store(1, Relaxed);
    }
}

/// Takes a slot for each file; `false` where one is not to be taken, in shared memory that is full.
fn count_files(writer: &Writer, directory: Option<&Path>) -> bool {
    FileId::ALL.into_iter().all(|file| {
        let path =
            directory.map_or_else(|| PathBuf::from(file.name()), |directory| directory.join(file.name()));
        let path = std::path::absolute(&path).unwrap_or(path);
        let counted = FileToCount {
            kind: file.kind(),
            path: path.as_os_str().as_bytes(),
            // The file may not exist yet.
            identity: (0, 0),
            generation: 1,
            way: file.way(),
        };
        writer.count_file(&counted).is_some()
    })
}

fn create_shared() -> std::io::Result<Mapping> {
    static STORES: AtomicU32 = AtomicU32::new(0);
    let (dir, pid) = (counters_dir(), std::process::id());
    // A program that is killed and restarted repeatedly leaves one file at most.
    reader::remove_dead(&dir);
    for _ in 0..NAMES_TRIED {
        let name = file_name(pid, STORES.fetch_add(1, Relaxed));
        match Mapping::create(&dir.join(name), BOARD_BYTES) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            other => return other,
        }
    }
    Err(std::io::Error::other("every name for a board is taken"))
}

fn create_private() -> Mapping {
    Mapping::private(BOARD_BYTES).expect("there is memory for a store's board")
}
