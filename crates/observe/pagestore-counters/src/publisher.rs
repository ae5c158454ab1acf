//! The writing side: the counters of a store that this process opens.

use crate::board::{BOARD_BYTES, Board, Opening, file_name};
use crate::reader;
use published::{Mapping, ProcessIdentity, counters_dir};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bounds the search for a free file name. A process of another pid namespace, or a dead one, may have taken some.
const NAMES_TRIED: u32 = 1000;

/// The board of an open store.
pub struct Publisher {
    mapping: Mapping,
    /// Why other processes cannot read it.
    private: Option<String>,
}

impl Deref for Publisher {
    type Target = Board;

    fn deref(&self) -> &Board {
        self.mapping.as_board()
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
        let (mapping, private) = match directory.map(|_| create_shared()) {
            Some(Ok(mapping)) => (mapping, None),
            Some(Err(error)) => (create_private(), Some(error.to_string())),
            None => (create_private(), Some("the store lies in no directory".into())),
        };
        let publisher = Self { mapping, private };
        if publisher.private.is_none()
            && let Some(process) = ProcessIdentity::own()
        {
            publisher.head.begin(&process);
        }
        Arc::new(publisher)
    }

    /// Records which store the counters belong to. From here on, readers find them.
    pub fn announce(&self, directory: &Path, opening: &Opening) {
        self.head.announce(directory, opening);
    }

    /// The file in which other processes read them, or the reason why there is none.
    ///
    /// # Errors
    /// The reason.
    pub fn path(&self) -> Result<&Path, &str> {
        let reason = self.private.as_deref().unwrap_or("the counters are private");
        self.mapping.path().ok_or(reason)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.head.closed.store(1, Relaxed);
    }
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
    Err(std::io::Error::other("every name for a counters file is taken"))
}

fn create_private() -> Mapping {
    Mapping::private(BOARD_BYTES).expect("there is memory for a store's counters")
}
