//! Counters that a running program publishes through a file in shared memory: where such files lie, which process owns one
//! and whether it still runs, and the memory itself.
//!
//! ```text
//! writer   Mapping::create(counters_dir()/NAME) -> as_board::<T>() -> atomics, without a lock or a system call
//! reader   PublishedFile::open(NAME) -> read(part, copy) -> copy.as_board::<T>(); is_trusted_for(process), is_alive()
//! ```
//! Everyone may put files there. A reader trusts none of them: it copies instead of mapping, and accepts counters of a
//! process only from a file that belongs to that process's user.
//!
//! A file outlives a killed process: a reader recognises it by pid, start time and boot, and skips or removes it.

mod mapping;
mod published_file;

pub use host::ProcessIdentity;
pub use mapping::{Board, Mapping, reserve};
pub use published_file::{Access, PublishedFile};

use std::path::{Path, PathBuf};

/// The directory of counters files: `HEADROOM_COUNTERS_DIR`, else /dev/shm, else the directory for temporary files.
pub fn counters_dir() -> PathBuf {
    match std::env::var_os("HEADROOM_COUNTERS_DIR") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ if Path::new("/dev/shm").is_dir() => PathBuf::from("/dev/shm"),
        _ => std::env::temp_dir(),
    }
}
