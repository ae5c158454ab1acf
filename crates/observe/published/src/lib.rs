//! Counters that a storage engine publishes in shared memory, for Headroom and any other process of the same user: what its
//! files were asked for, its commits, its log's records, its writer's time. One format, version 1, that any engine can write.
//!
//! ```text
//! engine   Writer::private(ENGINE).share(dir), announce(database)        C: headroom_open          include/published.h
//!          count_file(..) -> Slot: count_read, count_write, count_sync      headroom_file, headroom_read ...
//!          commits() -> CommitCounters                                      headroom_commit ...
//!             │ atomics, without a lock or a system call
//!             v
//!          /dev/shm/headroom-PID-N.counters     the layout is drawn in layout.rs
//!             │ read(2)
//!             v
//! reader   published_in(dir) -> CountersFile -> read() -> Reading { files, commits }
//! ```
//!
//! The SQLite shim (`sqlite-vfs`) and the page store of the laboratory write it; `examples/engine.c` is a small engine in C.
//!
//! **Versions.** The magic names the format and the version its layout. A reader refuses others: a program and a Headroom of
//! different versions find no counters, and never wrong ones. What an engine does not keep is unknown, not 0 (`counted`).
//!
//! **Bounds.** Files of a process: `INSTANCES_MAX`; files of an engine that are counted: [`FILES_MAX`]; files that are read of one
//! user: `FILES_PER_USER_MAX`.
//!
//! **Safety of a reader.** Everyone may put files into the directory. A reader trusts none of them: it copies with read(2)
//! instead of mapping, so that a file that is cut raises no signal; it follows no link and waits for no pipe; it accepts counters
//! of a process only from a file that belongs to that process's user or to root; every number and path is bounded. A file
//! outlives a killed process: it is recognised by pid, start time and boot, and removed.

mod directory;
mod engine_name;
mod layout;
mod mapping;
mod name;
mod own_file;
mod published_file;
mod reader;
mod writer;

pub use directory::{CountersFiles, published_in};
pub use engine_name::EngineName;
pub use host::ProcessIdentity;
pub use layout::{CommitCounters, FILES_MAX, FileToCount, Operation, PATH_BYTES_MAX, Slot, Way};
pub use mapping::{Board, Mapping, reserve};
pub use published_file::{Access, PublishedFile};
pub use reader::{CommitReading, CountersFile, Database, Details, FileReading, ReadError, Reading};
pub use writer::{Engine, Writer, device_number};

use std::path::{Path, PathBuf};

/// The directory of counters files: `HEADROOM_COUNTERS_DIR`, else /dev/shm, else the directory for temporary files.
pub fn counters_dir() -> PathBuf {
    match std::env::var_os("HEADROOM_COUNTERS_DIR") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ if Path::new("/dev/shm").is_dir() => PathBuf::from("/dev/shm"),
        _ => std::env::temp_dir(),
    }
}
