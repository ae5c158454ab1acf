//! The counters files of all processes, in a directory that everyone may write.

use crate::name::{INSTANCES_MAX, file_name, parse_name};
use crate::reader::{CountersFile, ReadError};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::Path;

/// Bounds what one user can make a reader read: 5 MiB for each of this many files. Those beyond are reported as unreadable.
const FILES_PER_USER_MAX: usize = 1024;
/// Bounds the search of a directory. In one with more entries the running processes are searched for their files.
const ENTRIES_SEARCHED_MAX: usize = 1 << 16;

/// The counters files of a directory.
#[derive(Debug, Default)]
pub struct CountersFiles {
    /// Those of processes that run.
    pub live: Vec<CountersFile>,
    /// Those that cannot be read, mostly because they are another user's.
    pub unreadable: Vec<ReadError>,
}

/// Finds the counters files of the processes that run, in a directory that everyone may write. Files of processes that
/// have ended are removed where that is permitted; files of other pid namespaces, forged files and files that are not
/// counters files are ignored. What another user puts into the directory hides no file of a process.
///
/// # Errors
/// The directory cannot be listed.
pub fn published_in(dir: &Path) -> io::Result<CountersFiles> {
    let mut found = CountersFiles::default();
    let mut per_user: HashMap<u32, usize> = HashMap::new();
    for (pid, instance) in instances(dir, ENTRIES_SEARCHED_MAX)? {
        let path = dir.join(file_name(pid, instance));
        match CountersFile::open(&path) {
            Ok(counters) => match counters.process.is_alive() {
                Some(true) => {
                    let user = counters.user;
                    let of_user = per_user.entry(user).or_default();
                    *of_user += 1;
                    let too_many = || ReadError::TooMany { path, user, most: FILES_PER_USER_MAX };
                    match (*of_user).cmp(&(FILES_PER_USER_MAX + 1)) {
                        Ordering::Less => found.live.push(counters),
                        Ordering::Equal => found.unreadable.push(too_many()),
                        Ordering::Greater => {}
                    }
                }
                Some(false) => {
                    let _ = fs::remove_file(&path);
                }
                None => {}
            },
            Err(ReadError::Foreign { .. }) => {}
            Err(ReadError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.unreadable.push(error),
        }
    }
    Ok(found)
}

/// The processes and instances that a directory has files of, in their order. One that has too many entries to be listed may
/// have those of any running process.
fn instances(dir: &Path, entries_max: usize) -> io::Result<BTreeSet<(u32, u32)>> {
    let mut entries = fs::read_dir(dir)?;
    let mut found = BTreeSet::new();
    for entry in entries.by_ref().take(entries_max) {
        found.extend(entry?.file_name().to_str().and_then(parse_name));
    }
    if entries.next().is_some() {
        let pids = host::pids()?;
        found
            .extend(pids.into_iter().flat_map(|pid| (0..INSTANCES_MAX).map(move |instance| (pid, instance))));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_full_of_other_files_hides_none() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id();
        ["a", "b", &file_name(own, 3)].iter().for_each(|name| fs::write(dir.path().join(name), "").unwrap());
        assert_eq!(instances(dir.path(), 3).unwrap(), BTreeSet::from([(own, 3)]));
        let searched = instances(dir.path(), 2).unwrap();
        assert!((0..INSTANCES_MAX).all(|instance| searched.contains(&(own, instance))));
    }
}
