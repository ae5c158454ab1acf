/// Methods of [`Disk`](crate::Disk) that a disk forwards to the disk below it, its field `disk`. It implements the others
/// itself, to count, change or delay I/O, or leaves them to the trait's defaults.
///
/// ```
/// use pagestore_disk::{Disk, FileId, forward_to_disk};
/// use std::io;
///
/// struct ReadOnly<D> {
///     disk: D,
/// }
///
/// impl<D: Disk> Disk for ReadOnly<D> {
///     forward_to_disk!(read, len);
///
///     fn write(&self, _: FileId, _: u64, _: &[u8]) -> io::Result<()> {
///         Err(io::ErrorKind::ReadOnlyFilesystem.into())
///     }
///
///     fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
///         self.write(file, offset, bytes)
///     }
///
///     fn sync(&self, _: FileId) -> io::Result<()> {
///         Ok(())
///     }
/// }
/// ```
#[macro_export]
macro_rules! forward_to_disk {
    (@read) => {
        fn read(&self, file: $crate::FileId, offset: u64, buffer: &mut [u8]) -> ::std::io::Result<()> {
            self.disk.read(file, offset, buffer)
        }
    };
    (@write) => {
        fn write(&self, file: $crate::FileId, offset: u64, bytes: &[u8]) -> ::std::io::Result<()> {
            self.disk.write(file, offset, bytes)
        }
    };
    (@write_through) => {
        fn write_through(&self, file: $crate::FileId, offset: u64, bytes: &[u8]) -> ::std::io::Result<()> {
            self.disk.write_through(file, offset, bytes)
        }
    };
    (@reserve) => {
        fn reserve(&self, file: $crate::FileId, length: u64) -> ::std::io::Result<()> {
            self.disk.reserve(file, length)
        }
    };
    (@truncate) => {
        fn truncate(&self, file: $crate::FileId, length: u64) -> ::std::io::Result<()> {
            self.disk.truncate(file, length)
        }
    };
    (@sync) => {
        fn sync(&self, file: $crate::FileId) -> ::std::io::Result<()> {
            self.disk.sync(file)
        }
    };
    (@len) => {
        fn len(&self, file: $crate::FileId) -> ::std::io::Result<u64> {
            self.disk.len(file)
        }
    };
    (@directory) => {
        fn directory(&self) -> ::std::option::Option<&::std::path::Path> {
            self.disk.directory()
        }
    };
    (@scratch) => {
        fn scratch(&self) -> ::std::io::Result<::std::sync::Arc<dyn $crate::Scratch>> {
            self.disk.scratch()
        }
    };
    ($($method:ident),+) => {
        $($crate::forward_to_disk!(@$method);)+
    };
}
