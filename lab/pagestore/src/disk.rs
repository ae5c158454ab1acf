//! The files of a store: real ones in a directory, and the counting of their I/O.

pub(crate) mod aligned;
pub(crate) mod counted;
pub(crate) mod real;

use crate::error::Result;
pub use pagestore_disk::{Apply, Disk, FileId, IoEvent, PageWrite, Scratch, forward_to_disk};
use std::path::Path;
use std::sync::Arc;

/// The files of the store in a directory, for [`Store::open_on`](crate::Store::open_on), with a disk around them that
/// counts, delays or refuses their I/O.
///
/// # Errors
/// When there is no store, or another process has it open.
pub fn open_directory(directory: &Path) -> Result<Arc<dyn Disk>> {
    Ok(Arc::new(real::RealDisk::open(directory, real::Access::Write)?))
}
