//! Files that a database has in use, opened to be read and never written.

use crate::extents::Unwritten;
use crate::region::{PARTS_MAX, Region};
use crate::{StorageError, Target};
use rustix::fs::OFlags;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use workload::{Caching, Layout, TargetFacts, TargetKind};

/// Files in use as one region, and the storage that they are on.
#[derive(Debug)]
pub struct LiveFiles {
    /// All of them, one behind the other.
    pub region: Region,
    /// The facts of their storage, under the name of the directory.
    pub facts: TargetFacts,
    /// Number of them.
    pub count: usize,
}

/// The smallest file that is worth reading: smaller ones fit into caches.
pub const LIVE_FILE_BYTES_MIN: u64 = 16 << 20;
/// Files that are read as one, at most; a database may have thousands.
const FILES_MAX: usize = PARTS_MAX;
/// Files that are opened, at most: each opening reads the file's list of extents.
const TRIED_MAX: usize = 256;
/// A directory tree is searched this deep, and no further than this many entries.
const DEPTH_MAX: usize = 16;
const ENTRIES_MAX: usize = 200_000;

struct Candidate {
    path: PathBuf,
    bytes: u64,
}

impl LiveFiles {
    /// The largest files below a directory that lie on its file system; those with holes, and those that may not be read, are
    /// left out. Symbolic links are not followed.
    ///
    /// # Errors
    /// [`StorageError::NoLiveFile`]; those of the file system and the kernel.
    pub fn in_directory(directory: &Path) -> Result<LiveFiles, StorageError> {
        let directory = std::path::absolute(directory)
            .map_err(|error| StorageError::from_io("open", directory, error))?;
        let mut files = largest_files(&directory)?;
        files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
        let (opened, refused) = first_that_open(&files, open);
        if opened.is_empty() {
            return Err(refused.unwrap_or(StorageError::NoLiveFile { path: directory }));
        }
        combine(opened, &directory, TargetKind::Directory)
    }

    /// These files, which must lie on one file system.
    ///
    /// # Errors
    /// [`StorageError::TooManyFiles`] and [`StorageError::OtherStorage`]; as [`LiveFiles::in_directory`], for each of them.
    pub fn open(paths: &[PathBuf]) -> Result<LiveFiles, StorageError> {
        if paths.len() > FILES_MAX {
            return Err(StorageError::TooManyFiles { count: paths.len(), most: FILES_MAX });
        }
        let opened = paths.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
        let first = opened.first().ok_or_else(|| StorageError::NoLiveFile { path: PathBuf::new() })?;
        let directory = first.0.path.parent().unwrap_or(Path::new("/")).to_owned();
        combine(opened, &directory, TargetKind::Directory)
    }

    /// A block device that may be mounted.
    ///
    /// # Errors
    /// As [`Target::open_for`].
    pub fn device(target: &Target) -> Result<LiveFiles, StorageError> {
        let region = target.open_for(crate::Access::ReadOnly, Caching::Direct)?;
        Ok(LiveFiles { region, facts: target.facts().clone(), count: 1 })
    }
}

/// Regular files below a directory, on its file system.
fn largest_files(directory: &Path) -> Result<Vec<Candidate>, StorageError> {
    let failed = |error| StorageError::from_io("read", directory, error);
    let device = fs::metadata(directory).map_err(failed)?.dev();
    let mut found = Vec::new();
    let mut waiting = vec![(directory.to_owned(), 0)];
    let mut entries = 0;
    while let Some((place, depth)) = waiting.pop() {
        // A directory below that may not be read, or is gone, holds nothing for us.
        let listed = fs::read_dir(&place);
        let listed = if depth == 0 {
            listed.map_err(failed)?
        } else {
            let Ok(listed) = listed else { continue };
            listed
        };
        for entry in listed.flatten() {
            entries += 1;
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.dev() != device || entries > ENTRIES_MAX {
                continue;
            }
            if metadata.is_dir() && depth < DEPTH_MAX {
                waiting.push((entry.path(), depth + 1));
            } else if metadata.is_file() && metadata.len() >= LIVE_FILE_BYTES_MIN {
                found.push(Candidate { path: entry.path(), bytes: metadata.len() });
            }
        }
    }
    Ok(found)
}

/// Opens files in their order until there are as many as are read as one. Also returns the first error.
fn first_that_open<T>(
    files: &[Candidate],
    open: impl Fn(&Path) -> Result<T, StorageError>,
) -> (Vec<T>, Option<StorageError>) {
    let (mut opened, mut refused) = (Vec::new(), None);
    for file in files.iter().take(TRIED_MAX) {
        match open(&file.path) {
            Ok(one) => opened.push(one),
            Err(error) => refused = refused.or(Some(error)),
        }
        if opened.len() == FILES_MAX {
            break;
        }
    }
    (opened, refused)
}

/// Opens a file to read it directly.
fn open(path: &Path) -> Result<(Region, TargetFacts), StorageError> {
    let target = Target::open(path)?;
    let path = target.path();
    if target.facts().kind != TargetKind::File {
        return Err(StorageError::NotATarget { path: path.into(), found: "thing that is no regular file" });
    }
    let file = crate::overwrite_guard::open_regular(path, OFlags::RDONLY)?;
    let metadata = file.metadata().map_err(|error| StorageError::from_io("look at", path, error))?;
    let bytes = metadata.len();
    // Without writing what the page cache holds of it: that would be a load of writes on the database's storage.
    let unwritten = Unwritten::scan_unsynced(&file, bytes);
    let unwritten = unwritten.map_err(|error| StorageError::from_io("map", path, error))?;
    crate::overwrite_guard::check_written(path, unwritten, bytes)?;
    let region = Region::reopen(&file, path, OFlags::RDONLY, bytes, target.mode(Caching::Direct))?;
    Ok((region, target.facts().clone()))
}

fn combine(
    mut opened: Vec<(Region, TargetFacts)>,
    directory: &Path,
    kind: TargetKind,
) -> Result<LiveFiles, StorageError> {
    let first = opened[0].1.clone();
    let other = opened
        .iter()
        .find(|(_, facts)| facts.mount != first.mount || facts.device_number() != first.device_number());
    if let Some((region, _)) = other {
        let (path, first) = (region.path.clone(), opened[0].0.path.clone());
        return Err(StorageError::OtherStorage { path, first });
    }
    let count = opened.len();
    let region = match count {
        1 => opened.remove(0).0,
        _ => Region::combine(Layout::Span, opened.into_iter().map(|(region, _)| region).collect())?,
    };
    let facts = TargetFacts { path: directory.display().to_string(), kind, ..first };
    Ok(LiveFiles { region, facts, count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    const MIB: usize = 1 << 20;

    fn write(path: &Path, mib: usize) {
        let mut file = fs::File::create(path).unwrap();
        file.write_all(&vec![7; mib * MIB]).unwrap();
        file.sync_all().unwrap();
    }

    #[test]
    fn the_large_files_of_a_tree_are_read_and_none_is_changed() {
        let place = tempfile::tempdir_in(".").unwrap();
        let below = place.path().join("base/16384");
        fs::create_dir_all(&below).unwrap();
        write(&below.join("1259"), 20);
        write(&place.path().join("wal"), 16);
        write(&place.path().join("small"), 1);
        fs::File::create(place.path().join("sparse")).unwrap().set_len(64 << 20).unwrap();
        symlink(below.join("1259"), place.path().join("link")).unwrap();
        let live = match LiveFiles::in_directory(place.path()) {
            Ok(live) => live,
            Err(StorageError::NoDirectIo { why, .. }) => return eprintln!("skipped: {why}"),
            Err(error) => panic!("{error}"),
        };
        assert_eq!((live.count, live.region.bytes), (2, 36 << 20));
        assert_eq!(live.facts.path, place.path().canonicalize().unwrap().display().to_string());
        let flags = rustix::fs::fcntl_getfl(&live.region.members()[0].file).unwrap();
        assert!(
            flags.contains(OFlags::DIRECT) && !flags.intersects(OFlags::WRONLY | OFlags::RDWR),
            "{flags:?}"
        );
    }

    #[test]
    fn a_directory_without_a_large_file_is_refused_with_what_to_do() {
        let place = tempfile::tempdir_in(".").unwrap();
        write(&place.path().join("small"), 1);
        let error = LiveFiles::in_directory(place.path()).unwrap_err();
        assert!(matches!(error, StorageError::NoLiveFile { .. }), "{error}");
        assert!(error.remedy().unwrap().contains("--files"));
    }

    #[test]
    fn of_many_files_the_largest_are_read() {
        let place = tempfile::tempdir_in(".").unwrap();
        let paths: Vec<PathBuf> = (0..=FILES_MAX).map(|n| place.path().join(n.to_string())).collect();
        let Err(StorageError::TooManyFiles { count, .. }) = LiveFiles::open(&paths) else {
            panic!("not refused")
        };
        assert_eq!(count, FILES_MAX + 1);
        let files: Vec<Candidate> =
            paths.into_iter().map(|path| Candidate { path, bytes: 16 << 20 }).collect();
        let is_refused = |path: &Path| path.ends_with("0") || path.ends_with("7");
        let open = |path: &Path| match path.to_owned() {
            path if is_refused(&path) => Err(StorageError::NoLiveFile { path }),
            path => Ok(path),
        };
        let (opened, refused) = first_that_open(&files, open);
        assert_eq!((opened.len(), &opened[0]), (FILES_MAX - 1, &files[1].path));
        assert!(matches!(refused, Some(StorageError::NoLiveFile { path }) if path == files[0].path));
        let (opened, refused) = first_that_open(&files, |path| Ok(path.to_owned()));
        assert_eq!((opened.len(), refused.is_none()), (FILES_MAX, true));
    }

    #[test]
    fn files_on_two_file_systems_are_refused() {
        let (here, memory) = (tempfile::tempdir_in(".").unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
        let paths = [here.path().join("a"), memory.path().join("b")];
        paths.iter().for_each(|path| write(path, 16));
        let error = LiveFiles::open(&paths).unwrap_err();
        let is_refused = matches!(error, StorageError::OtherStorage { .. } | StorageError::NoDirectIo { .. });
        assert!(is_refused, "{error}");
    }
}
