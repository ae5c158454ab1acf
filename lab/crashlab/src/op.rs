//! The operations of the simulated disk, as its trace records them.

use pagestore_disk::FileId;
use std::path::PathBuf;

/// An operation of the disk.
#[derive(Clone, Debug)]
pub enum Op {
    /// A write; with `through` it is durable at once, otherwise after the next sync of the file.
    Write {
        /// The file.
        file: FileId,
        /// The offset.
        offset: u64,
        /// The data.
        bytes: Vec<u8>,
        /// Durable on return.
        through: bool,
    },
    /// Everything written to the file becomes durable.
    Sync {
        /// The file.
        file: FileId,
    },
    /// A sync that was acknowledged and not done.
    IgnoredSync {
        /// The file.
        file: FileId,
    },
    /// The file is cut to this length; durable after the next sync.
    Truncate {
        /// The file.
        file: FileId,
        /// The length.
        length: u64,
    },
    /// A cut that failed: it may be on the medium.
    FailedTruncate {
        /// The file.
        file: FileId,
        /// The length.
        length: u64,
    },
    /// A write that was acknowledged and not done.
    Lost {
        /// The file.
        file: FileId,
        /// The offset.
        offset: u64,
        /// The length.
        bytes: usize,
    },
    /// A write that failed: parts of it may be on the medium.
    FailedWrite {
        /// The file.
        file: FileId,
        /// The offset.
        offset: u64,
        /// The data.
        bytes: Vec<u8>,
    },
    /// A sync that failed: pending writes may be on the medium or not, and no later sync makes them durable.
    FailedSync {
        /// The file.
        file: FileId,
    },
    /// An operation on a name.
    Name(NameOp),
}

/// An operation on a name of a file or directory. It is durable after a sync of the directory that holds the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameOp {
    /// A directory was made.
    MakeDirectory(PathBuf),
    /// An empty file was made: the one of this number.
    Create(PathBuf, u32),
    /// A file was removed.
    Remove(PathBuf),
    /// The names in a directory became durable.
    SyncDirectory(PathBuf),
    /// The content of the file of this number was replaced, durably.
    Replace(u32, Vec<u8>),
}
