use crate::{DiskModel, LunCap, LunError};
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use workload::format_bytes;

/// The LUN to create.
#[derive(Clone, Debug, Default)]
pub struct LunSpec {
    /// Its size, bytes: a multiple of 4096.
    pub bytes: u64,
    /// The directory of its file; `None`: beside its record.
    pub directory: Option<PathBuf>,
    /// Allocates the file's space now; otherwise the file is sparse and grows as it is written.
    pub allocate: bool,
    /// Limits that the kernel keeps.
    pub caps: Vec<LunCap>,
    /// The disk that Headroom models on it.
    pub model: Option<DiskModel>,
}

/// The block size of common file systems: a last block in part could not be used.
const ALIGN_BYTES: u64 = 4096;

impl LunSpec {
    pub(crate) fn validate(&self) -> Result<(), LunError> {
        if self.bytes == 0 || !self.bytes.is_multiple_of(ALIGN_BYTES) {
            let size = format_bytes(self.bytes);
            return Err(LunError::Invalid(format!("a size of {size}: give a multiple of 4K above 0")));
        }
        if let Some(model) = &self.model {
            model.validate().map_err(LunError::Invalid)?;
        }
        if self.caps.iter().any(|cap| cap.per_second == 0) {
            return Err(LunError::Invalid("a limit of 0 a second: leave it out for none".into()));
        }
        Ok(())
    }

    /// Creates the file and returns its device and inode.
    pub(crate) fn create_file(&self, path: &Path) -> Result<(u64, u64), LunError> {
        let directory = path.parent().unwrap_or(path);
        if self.allocate {
            let space =
                statvfs(directory).map_err(|errno| LunError::io("look at", directory)(errno.into()))?;
            let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
            if free_bytes < self.bytes {
                return Err(LunError::NoRoom { directory: directory.into(), bytes: self.bytes, free_bytes });
            }
        }
        // Data written to the device is for those who may read the device.
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(LunError::io("make", path))?;
        let sized = match self.allocate {
            true => fallocate(&file, FallocateFlags::empty(), 0, self.bytes).map_err(io::Error::from),
            false => file.set_len(self.bytes),
        };
        let inode = sized.and_then(|()| file.metadata()).map(|metadata| (metadata.dev(), metadata.ino()));
        inode.map_err(|error| {
            let _ = fs::remove_file(path);
            LunError::io("make", path)(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_owner_can_read_what_is_written_to_a_lun() {
        let dir = tempfile::tempdir().unwrap();
        for allocate in [false, true] {
            let path = dir.path().join(format!("{allocate}.img"));
            LunSpec { bytes: ALIGN_BYTES, allocate, ..LunSpec::default() }.create_file(&path).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        }
    }
}
