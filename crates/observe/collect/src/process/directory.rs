//! The directory on this host with most of the files of a process.

use host::{OpenFile, ProcessFiles};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Of the files that it has open for writing, else of all, else the one that it works in. Files in memory do not count.
/// `None` where there is no such process, or it is another user's and this process is not root.
pub(super) fn of_process(pid: u32) -> Option<PathBuf> {
    let (files, open) = (ProcessFiles::of_process(pid), host::open_files(pid));
    let place = |file: &OpenFile| {
        let place = files.place_of_open(file).filter(|place| place.is_stored() && place.is_local())?;
        // A file whose name was removed is in no directory, but its volume is.
        let directory =
            if file.is_deleted { Some(place.mount) } else { Some(place.path?.parent()?.to_path_buf()) };
        directory.filter(|directory| directory.is_dir())
    };
    let written = most(open.iter().filter(|file| file.is_writable).filter_map(place));
    let working = || {
        let directory = host::working_directory(pid)?;
        files.place_of(&directory).filter(|place| place.is_stored() && place.is_local())?.path
    };
    written.or_else(|| most(open.iter().filter_map(place))).or_else(working)
}

fn most(directories: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let mut counts: BTreeMap<PathBuf, usize> = BTreeMap::new();
    directories.for_each(|directory| *counts.entry(directory).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(directory, _)| directory)
}
