//! A crashed image is copied byte for byte for each recovery, and evicted from the page cache.

use crate::Error;
use everyday::PageCache;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

/// Copies a directory durably: by shared blocks if the file system supports them, else by bytes. The server
/// may run as another user: its links are not followed, and that user owns the copy only once it is complete.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    for_each_file(from, to, &mut |from, to| {
        let mut source = open_itself(from, libc::O_NONBLOCK).map_err(Error::io("open", from))?;
        let mut target = File::create_new(to).map_err(Error::io("make", to))?;
        if rustix::fs::ioctl_ficlone(&target, &source).is_err() {
            io::copy(&mut source, &mut target).map_err(Error::io("copy", from))?;
        }
        target.sync_all().map_err(Error::io("sync", to))?;
        same_rights(&source, to)
    })
}

/// Opens a file or directory, never through a link in its last name.
fn open_itself(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | flags).open(path)
}

/// Gives `to` the owner and permissions of `from`: a server opens nothing else.
fn same_rights(from: &File, to: &Path) -> Result<(), Error> {
    let metadata = from.metadata().map_err(Error::io("look at the origin of", to))?;
    fs::set_permissions(to, metadata.permissions()).map_err(Error::io("set the rights of", to))?;
    chown(to, Some(metadata.uid()), Some(metadata.gid())).map_err(Error::io("give away", to))
}

/// Writes out all files of a directory and evicts them from the page cache.
pub(super) fn evict(dir: &Path) -> Result<(), Error> {
    for_each_file(dir, dir, &mut |file, _| {
        let cache = PageCache::open(file)?;
        cache.write_out()?;
        Ok(cache.evict()?)
    })
}

/// Calls `work` with each file below `from` and its path below `to`, and creates missing directories there.
fn for_each_file(
    from: &Path,
    to: &Path,
    work: &mut dyn FnMut(&Path, &Path) -> Result<(), Error>,
) -> Result<(), Error> {
    let opened = open_itself(from, libc::O_DIRECTORY).map_err(Error::io("open", from))?;
    let is_new = !to.exists();
    if is_new {
        DirBuilder::new().mode(0o700).create(to).map_err(Error::io("make", to))?;
    }
    // Read through the descriptor: the path may lead elsewhere by now.
    let held = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    for entry in fs::read_dir(held).map_err(Error::io("read", from))? {
        let entry = entry.map_err(Error::io("read", from))?;
        let kind = entry.file_type().map_err(Error::io("look at", &entry.path()))?;
        let to = to.join(entry.file_name());
        if kind.is_dir() {
            for_each_file(&entry.path(), &to, work)?;
        } else if kind.is_file() {
            work(&entry.path(), &to)?;
        }
    }
    if is_new { same_rights(&opened, to) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_copy_has_the_same_bytes_in_the_same_places() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("below")).unwrap();
        fs::write(from.join("log"), vec![7; 100_000]).unwrap();
        fs::write(from.join("below/data"), "bytes").unwrap();
        fs::create_dir(from.join("empty")).unwrap();
        fs::set_permissions(from.join("empty"), fs::Permissions::from_mode(0o700)).unwrap();
        copy(&from, &to).unwrap();
        evict(&to).unwrap();
        assert_eq!(fs::read(to.join("log")).unwrap(), vec![7; 100_000]);
        assert_eq!(fs::read_to_string(to.join("below/data")).unwrap(), "bytes");
        let rights = fs::metadata(to.join("empty")).unwrap().permissions().mode();
        assert_eq!(rights & 0o777, 0o700, "PostgreSQL requires its directory to be private");
        assert!(copy(&from, &to).is_err(), "nothing is overwritten");
    }

    #[test]
    fn no_link_of_a_server_s_user_is_copied_from() {
        let dir = tempfile::tempdir().unwrap();
        let (from, precious) = (dir.path().join("from"), dir.path().join("precious"));
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("key"), "secret").unwrap();
        std::os::unix::fs::symlink(&precious, &from).unwrap();
        assert!(copy(&from, &dir.path().join("to")).is_err(), "as if it became a link meanwhile");
        assert!(open_itself(&from, 0).is_err());
        assert!(!dir.path().join("to").exists());
    }
}
