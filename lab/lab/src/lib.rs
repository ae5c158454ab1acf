//! Experiments: engines doing known work in databases of our own, whose I/O is counted.
//!
//! ```text
//! commit::run            rows committed in batches by embedded engines and servers; what they ask of their logs
//! recover::run           scattered pages, a kill in the middle, and what it takes to serve again
//! footprint::footprint   what one query moves: values, rows, pages, files, storage, client
//! ```
//!
//! Each engine of an experiment is a file in its folder. SQLite is counted through the VFS of `sqlite-vfs`, the page
//! store by its own counters, servers by their processes' I/O.
//!
//! It judges nothing, and it never writes into a file that it did not make.

pub mod commit;
mod error;
pub mod footprint;
pub mod recover;

pub use error::Error;

use collect::SourceError;
use collect::process::{Process, Selection};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

/// Progress of an experiment.
#[derive(Clone, Debug)]
pub struct Progress {
    /// "sqlite-wal: 10 rows a commit, 40 %".
    pub doing: String,
    /// Time left of all steps, once it can be estimated.
    pub left: Option<Duration>,
}

/// Counts the I/Os of a process and of those that it starts, in the kernel; the error is the reason why that is impossible.
fn open_process(pid: u32) -> Result<Process, String> {
    Process::open(&Selection { pids: vec![pid], ..Selection::default() }).map_err(|error| with_remedy(&error))
}

fn with_remedy(error: &SourceError) -> String {
    let remedy = error.remedy().map_or(String::new(), |remedy| format!(" ({remedy})"));
    format!("{error}{remedy}")
}

/// Adds the notes that are not yet there.
fn add_notes(notes: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for note in more {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// Makes a directory for an engine that no other user may enter; a server lets in its own user.
fn private_directory(path: &Path) -> Result<(), Error> {
    DirBuilder::new().mode(0o700).create(path).map_err(Error::io("make", path))
}
