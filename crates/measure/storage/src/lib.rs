//! What a target is, what limits it, and how load gets at it without harm. Linux only.
//!
//! ```text
//! Target::open(path) ──> TargetFacts   file system, device chain (sysfs), alignment (statx), caps (cgroups)
//!    │
//!    ├─ a directory:  Workspace::open(dir) ──> test_file(bytes) ──> TestFile::region ─┐
//!    ├─ a lasting file of Headroom's own:  MadeFile::find / create, marked ────────┤
//!    └─ a file or block device:  open_for(Access, Caching) ──────────────────────────┴─> Region
//!                                                                                             │
//!                                   ring::Ring: io_uring over the region's file, with IoBuffers <─┘
//! ```
//!
//! In a directory, everything Headroom makes lies in `headroom.tmp/`, marked and locked, and is removed by
//! the next Headroom if this one is killed. `foreign_load` tells whether others use the device meanwhile.
//!
//! Never: writes into a file that Headroom did not make unless the caller says `destroy_data`, and into
//! storage in use not even then; follows a symlink inside a target directory; takes "unknown" for 0.

mod alignment;
mod buffer;
mod error;
mod extents;
mod fill;
mod foreign_load;
mod made_file;
mod overwrite_guard;
mod region;
mod target;
mod test_file;
mod workspace;

pub use buffer::AlignedBuffer;
pub use error::{Refused, StorageError};
pub use foreign_load::foreign_load;
pub use made_file::{FoundFile, MadeFile};
pub use overwrite_guard::Access;
pub use region::{ExpectedAccess, MEMBERS_MAX, Region, Volume};
pub use target::Target;
pub use test_file::{FillProgress, RESERVE_BYTES_MAX, RESERVE_BYTES_MIN, TestFile, reserve_bytes};
pub use workspace::Workspace;
