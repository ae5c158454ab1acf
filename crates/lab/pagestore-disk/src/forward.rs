/// Implements methods of [`Disk`](crate::disk::Disk) by delegating to the wrapped disk in the field `disk`. The
/// wrapper implements the other methods itself, to count, change or delay them, or keeps the trait's defaults.
///
/// ```
/// use pagestore::disk::{Disk, FileId};
/// use std::io;
///
/// struct ReadOnly<D> {
///     disk: D,
/// }
///
/// impl<D: Disk> Disk for ReadOnly<D> {
///     pagestore::from_disk_beneath!(read, len);
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
///
/// let disk = ReadOnly { disk: pagestore::sim::SimDisk::new() };
/// assert_eq!(disk.len(FileId::Data).unwrap(), 0);
/// assert!(disk.write(FileId::Data, 0, b"page").is_err());
/// ```
#[macro_export]
macro_rules! from_disk_beneath {
    (@read) => {
        fn read(&self, file: $crate::disk::FileId, offset: u64, buffer: &mut [u8]) -> ::std::io::Result<()> {
            self.disk.read(file, offset, buffer)
        }
    };
    (@write) => {
        fn write(&self, file: $crate::disk::FileId, offset: u64, bytes: &[u8]) -> ::std::io::Result<()> {
            self.disk.write(file, offset, bytes)
        }
    };
    (@write_through) => {
        fn write_through(&self, file: $crate::disk::FileId, offset: u64, bytes: &[u8]) -> ::std::io::Result<()> {
            self.disk.write_through(file, offset, bytes)
        }
    };
    (@reserve) => {
        fn reserve(&self, file: $crate::disk::FileId, length: u64) -> ::std::io::Result<()> {
            self.disk.reserve(file, length)
        }
    };
    (@sync) => {
        fn sync(&self, file: $crate::disk::FileId) -> ::std::io::Result<()> {
            self.disk.sync(file)
        }
    };
    (@len) => {
        fn len(&self, file: $crate::disk::FileId) -> ::std::io::Result<u64> {
            self.disk.len(file)
        }
    };
    (@directory) => {
        fn directory(&self) -> ::std::option::Option<&::std::path::Path> {
            self.disk.directory()
        }
    };
    ($($method:ident),+) => {
        $($crate::from_disk_beneath!(@$method);)+
    };
}
