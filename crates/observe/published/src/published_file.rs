//! A counters file of another process.
//!
//! It is read with system calls, never mapped: its owner may truncate it at any time, which would kill a process that
//! has it mapped, and reading a hole of a mapped file allocates memory.

use crate::{Mapping, ProcessIdentity};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Access for which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

/// A counters file that is open.
#[derive(Debug)]
pub struct PublishedFile {
    file: File,
    user: u32,
}

impl PublishedFile {
    /// Opens it; `None` for everything that is not a file of this size.
    ///
    /// # Errors
    /// If it cannot be opened, as a link cannot.
    pub fn open(path: &Path, bytes: usize, access: Access) -> io::Result<Option<PublishedFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(access == Access::Write);
        // No link is followed; neither a pipe nor a lease that its owner holds delays the open.
        let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
        let metadata = file.metadata()?;
        let is_one = metadata.is_file() && metadata.len() == bytes as u64;
        Ok(is_one.then(|| PublishedFile { file, user: metadata.uid() }))
    }

    /// The user that it belongs to.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Whether it may publish counters of a process: it belongs to the user that the process runs as, or to root. `false` once
    /// the process ended.
    pub fn is_trusted_for(&self, process: &ProcessIdentity) -> bool {
        process.user().is_some_and(|user| self.user == user || self.user == 0)
    }

    /// Copies a part of it to the same place of private memory. The copy is not made at one instant.
    ///
    /// # Errors
    /// If the file was truncated, or cannot be read.
    pub fn read(&self, part: Range<usize>, copy: &mut Mapping) -> io::Result<()> {
        self.file.read_exact_at(&mut copy.bytes_mut()[part.clone()], part.start as u64)
    }

    /// Writes one number into it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, at: usize, number: u64) -> io::Result<()> {
        self.file.write_all_at(&number.to_ne_bytes(), at as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    const BYTES: usize = 1 << 20;

    fn open(path: &Path) -> io::Result<Option<PublishedFile>> {
        PublishedFile::open(path, BYTES, Access::Read)
    }

    /// A directory in shared memory, where a file's holes become memory when they are touched through a mapping.
    fn directory() -> tempfile::TempDir {
        let shared = Path::new("/dev/shm");
        tempfile::tempdir_in(if shared.is_dir() { shared.into() } else { std::env::temp_dir() }).unwrap()
    }

    #[test]
    fn a_file_that_is_truncated_while_it_is_read_is_an_error_and_no_signal() {
        let dir = directory();
        let path = dir.path().join("a.counters");
        let hostile = File::create(&path).unwrap();
        hostile.set_len(BYTES as u64).unwrap();
        let file = open(&path).unwrap().unwrap();
        let mut copy = Mapping::private(BYTES).unwrap();
        file.read(0..BYTES, &mut copy).unwrap();
        hostile.set_len(10).unwrap();
        assert_eq!(file.read(0..BYTES, &mut copy).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(open(&path).unwrap().is_none(), "another size is another layout");
    }

    #[test]
    fn reading_a_hole_allocates_nothing_in_the_file() {
        let dir = directory();
        let path = dir.path().join("a.counters");
        File::create(&path).unwrap().set_len(BYTES as u64).unwrap();
        let mut copy = Mapping::private(BYTES).unwrap();
        open(&path).unwrap().unwrap().read(0..BYTES, &mut copy).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().blocks(), 0);
    }

    #[test]
    fn links_pipes_sockets_and_directories_are_refused_without_waiting() {
        let dir = directory();
        let path = |name: &str| dir.path().join(name);
        File::create(path("file")).unwrap().set_len(BYTES as u64).unwrap();
        symlink(path("file"), path("link")).unwrap();
        symlink("/dev/zero", path("zero")).unwrap();
        fs::create_dir(path("directory")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        for name in ["link", "zero", "directory", "socket", "pipe"] {
            for access in [Access::Read, Access::Write] {
                assert!(!matches!(PublishedFile::open(&path(name), BYTES, access), Ok(Some(_))), "{name}");
            }
        }
        assert!(open(&path("file")).unwrap().is_some());
    }

    #[test]
    fn a_file_is_trusted_for_processes_of_its_owner_only() {
        let own = ProcessIdentity::own().unwrap();
        let dir = directory();
        let path = dir.path().join("a.counters");
        File::create(&path).unwrap().set_len(BYTES as u64).unwrap();
        assert!(open(&path).unwrap().unwrap().is_trusted_for(&own));
        let ended = ProcessIdentity { start_ticks: own.start_ticks - 1, ..own.clone() };
        assert!(!open(&path).unwrap().unwrap().is_trusted_for(&ended));
        match chown(&path, Some(65534), None) {
            Ok(()) => assert!(!open(&path).unwrap().unwrap().is_trusted_for(&own)),
            Err(error) => println!("skipped: a file of another user: {error}"),
        }
    }
}
