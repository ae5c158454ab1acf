//! Targets of load: their facts and limits, and how they are opened without loss of data. Linux only.
//!
//! ```text
//! Target::open(path) ──> TargetFacts   file system, device chain (sysfs), alignment (statx), caps (cgroups)
//!    │
//!    ├─ a directory:  Workspace::open(dir) ──> test_file(bytes) ──> TestFile::region ─┐
//!    ├─ files that a database has in use, only to be read:  LiveFiles ──────────────┤
//!    ├─ a permanent file that Headroom made:  MadeFile::find / create, marked ─────┤
//!    └─ a file or block device:  open_for(Access, Caching) ──────────────────────────┴─> Region
//! ```
//!
//! In a directory, all files of Headroom are in `headroom.tmp/`, marked and locked; the next Headroom removes them if
//! this one is killed. `foreign_load` measures the I/O of other processes on a device.
//!
//! Never: writes into a file that Headroom did not make, unless the caller passes `destroy_data`, and into storage in
//! use not even then (`overwrite_guard`); follows a symlink inside a target directory, or uses what another user left there;
//! removes what is mounted below a workspace; treats "unknown" as 0.

mod alignment;
mod beneath;
mod buffer;
mod error;
mod extents;
mod fill;
mod foreign_load;
mod live_files;
mod made_file;
mod mark;
mod overwrite_guard;
mod region;
mod region_state;
mod target;
mod test_file;
mod workspace;

pub use buffer::AlignedBuffer;
pub use error::{Refused, StorageError};
pub use foreign_load::foreign_load;
pub use live_files::{LIVE_FILE_BYTES_MIN, LiveFiles};
pub use made_file::{FoundFile, MadeFile};
pub use overwrite_guard::Access;
pub use region::{ExpectedAccess, MEMBERS_MAX, PARTS_MAX, Region, Volume};
pub use region_state::RegionState;
pub use target::Target;
pub use test_file::{
    BEGUN_BYTES_MIN, FillProgress, RESERVE_BYTES_MAX, RESERVE_BYTES_MIN, TestFile, reserve_bytes,
};
pub use workspace::Workspace;
