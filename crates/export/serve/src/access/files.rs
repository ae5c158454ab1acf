//! The files of access control: read within bounds, and compared with their former contents.

use super::AccessError;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// More than any certificate chain or list of users.
const BYTES_MAX: u64 = 1 << 20;

/// The files that were read, each with its state before it was.
#[derive(Debug, Default)]
pub(super) struct Files(Vec<(PathBuf, Option<State>)>);

/// Two equal states are the same content: a change sets the time of the change, and a replacement has another inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Files {
    /// Reads one.
    pub fn read(&mut self, path: &Path) -> Result<Vec<u8>, AccessError> {
        self.read_if(path, |_| Ok(()))
    }

    /// Reads one that only its owner may read.
    pub fn read_private(&mut self, path: &Path) -> Result<Vec<u8>, AccessError> {
        self.read_if(path, |found| match host::is_private(path, found) {
            true => Ok(()),
            false => Err(AccessError::Exposed(path.to_owned())),
        })
    }

    fn read_if(
        &mut self,
        path: &Path,
        check: impl Fn(&Metadata) -> Result<(), AccessError>,
    ) -> Result<Vec<u8>, AccessError> {
        // Before it is read: a change in the meantime is seen as one.
        self.0.push((path.to_owned(), state(path)));
        let unreadable =
            |why: &dyn std::fmt::Display| AccessError::Unreadable(path.to_owned(), why.to_string());
        let file = host::open_regular_file(path).map_err(|error| unreadable(&error))?;
        let found = file.metadata().map_err(|error| unreadable(&error))?;
        check(&found)?;
        let mut bytes = Vec::new();
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
        match bytes.len() as u64 > BYTES_MAX {
            true => Err(unreadable(&"it is larger than 1 MiB")),
            false => Ok(bytes),
        }
    }

    /// Whether one of them has changed.
    pub fn have_changed(&self) -> bool {
        self.0.iter().any(|(path, before)| state(path) != *before)
    }
}

fn state(path: &Path) -> Option<State> {
    let found = std::fs::metadata(path).ok()?;
    let changed = (found.ctime(), found.ctime_nsec());
    Some(State { device: found.dev(), inode: found.ino(), bytes: found.len(), changed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_change_a_replacement_and_a_removal_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("cert"), dir.path().join("other"));
        let mut files = Files::default();
        assert!(files.read(&path).is_err());
        assert!(!files.have_changed());
        std::fs::write(&path, "a").unwrap();
        assert!(files.have_changed());

        let mut files = Files::default();
        assert_eq!(files.read(&path).unwrap(), b"a");
        assert!(!files.have_changed());
        std::fs::write(&other, "b").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(files.have_changed());

        let mut files = Files::default();
        assert_eq!(files.read(&path).unwrap(), b"b");
        std::fs::remove_file(&path).unwrap();
        assert!(files.have_changed());
    }

    #[test]
    fn a_private_file_is_refused_where_others_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        std::fs::write(&path, "a").unwrap();
        for (mode, readable) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = Files::default().read_private(&path);
            assert_eq!(read.is_ok(), readable, "{mode:o}");
        }
    }

    #[test]
    fn an_endless_file_is_refused() {
        let error = |path: &Path| Files::default().read(path).unwrap_err().to_string();
        assert!(error(Path::new("/dev/zero")).contains("it is a device"));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(error(&path).contains("larger than 1 MiB"), "{}", error(&path));
    }
}
