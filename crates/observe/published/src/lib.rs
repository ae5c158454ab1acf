//! Counters that a running program publishes through a file in shared memory: where such files lie, which process owns one
//! and whether it still runs, and the memory itself.
//!
//! ```text
//! writer   Mapping::create(counters_dir()/NAME) -> as_board::<T>() -> atomics, without a lock or a system call
//! reader   Mapping::open(NAME) -> is_whole() -> as_board::<T>() -> the same atomics; ProcessIdentity::is_alive()
//! ```
//! A file outlives a killed process: a reader recognises it by pid, start time and boot, and skips or removes it.

mod mapping;

pub use host::ProcessIdentity;
pub use mapping::{Access, Board, Mapping, reserve};

use std::path::{Path, PathBuf};

/// The directory of counters files: `HEADROOM_COUNTERS_DIR`, else /dev/shm, else the directory for temporary files.
pub fn counters_dir() -> PathBuf {
    match std::env::var_os("HEADROOM_COUNTERS_DIR") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ if Path::new("/dev/shm").is_dir() => PathBuf::from("/dev/shm"),
        _ => std::env::temp_dir(),
    }
}
