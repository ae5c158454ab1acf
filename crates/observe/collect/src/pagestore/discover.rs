//! Finds the page stores that programs have open and publish counters of.

use crate::discovery::{Attempt, Engine, Finder, Instance, Programs, Role};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(super) fn find(programs: &Programs) -> Vec<Instance> {
    let published = pagestore_counters::published().unwrap_or_default().into_iter();
    let found = published.filter_map(|owner| {
        let program = programs.get(owner.process.pid)?;
        let directory = directory(program.pid, owner.directory_id())?;
        let mut finder = Finder::new(program.pid);
        [Role::Data, Role::Log].into_iter().for_each(|role| finder.add(role, &directory));
        let source = directory.to_str().map(|path| format!("pagestore:{path}"));
        let name = directory.to_string_lossy().into_owned();
        Some(Instance {
            engine: Engine::PageStore,
            pid: program.pid,
            start_ticks: owner.process.start_ticks,
            user: program.user,
            name: Some(name.clone()),
            part: Some(name),
            version: None,
            files: finder.finish(),
            attempts: source.map(|source| Attempt { source, socket: None }).into_iter().collect(),
            notes: Vec::new(),
        })
    });
    found.collect()
}

/// The counters have device and inode of the directory; its name is that of the files that the program has open.
fn directory(pid: u32, [device, inode]: [u64; 2]) -> Option<PathBuf> {
    let is_it = move |directory: &Path| {
        std::fs::metadata(directory).is_ok_and(|found| (found.dev(), found.ino()) == (device, inode))
    };
    let files = host::open_files(pid).into_iter().filter(|file| !file.is_deleted);
    let mut directories: Vec<PathBuf> =
        files.filter_map(|file| Some(file.path.parent()?.to_path_buf())).collect();
    directories.sort();
    directories.dedup();
    // The program's user chooses the file system, which may be one that never answers.
    host::within_limit(pid, move || directories.into_iter().find(|directory| is_it(directory)))?
}
