//! A SQLite VFS that counts and times every read, write, sync and truncate of every file that a
//! connection opens, and shows the counters to other processes while the program runs.
//!
//! ```text
//! SQLite ── xRead, xWrite, xSync, xTruncate ──> shim ──> the default VFS below it ("unix")
//!                                                │ two clock reads, three relaxed adds
//!                                                v
//!    Registry: one slot per file ──(published::Writer)──> /dev/shm/headroom-PID-N.counters
//!                                                          │
//!                        another process: published::CountersFile::open, read()
//! ```
//!
//! Two ways to use it: call [`register`] in a program that links the shim, and open databases with the VFS
//! [`VFS_NAME`]; or load `libheadroom_sqlite.so` (`sqlite-extension`) as an SQLite extension, which makes the shim the
//! default VFS for every connection opened afterwards.
//!
//! The VFS counts reads that returned at least one byte, with the bytes returned; writes; syncs. These equal
//! the system calls of SQLite's unix VFS one to one (tested against strace). Reads at the end of the file
//! that return nothing, short reads, errors, truncates and fetches through a memory map have counters of
//! their own in [`published::Details`].
//!
//! The shim links against no SQLite and changes nothing that passes through it. It never fails an
//! operation that the VFS below did not fail. One name is kept from it: that of a file below an open directory, see
//! [`register`].

mod abi;
mod file;
mod registry;
mod vfs;

pub use abi::{SqliteFile, SqliteFunctions, SqliteVfs, VfsFind, VfsRegister};
pub use registry::{Publish, Registry, TEMP_FILES};
pub use vfs::{RegisterError, VFS_NAME, path_of_descriptor, register};
