//! Where a file of this machine is.

use host::Mounts;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// "MAJOR:MINOR:INODE".
pub(crate) fn inode_id(file: &Metadata) -> String {
    format!("{}:{}:{}", libc::major(file.dev()), libc::minor(file.dev()), file.ino())
}

/// The mount point of the file system that the path is in.
pub(crate) fn mount_point(mounts: &Mounts, path: &Path) -> Option<String> {
    mounts.point_of(path).map(|point| point.to_string_lossy().into_owned())
}
