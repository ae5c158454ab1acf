//! A server on this machine: its processes and its directory.

use filestats::{FileKind, Sample};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

const PROGRAM: &str = "sqlservr";

/// Whether the address is of this machine.
pub(super) fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The server's processes: one starts another.
pub(super) fn processes() -> Vec<u32> {
    let is_server = |pid: &u32| host::command_name(*pid).as_deref() == Some(PROGRAM);
    host::pids().unwrap_or_default().into_iter().filter(is_server).collect()
}

/// The directory with most of its files, of those that are visible from here.
pub(super) fn directory(samples: &[Sample]) -> Option<PathBuf> {
    let mut files: BTreeMap<&Path, usize> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| matches!(sample.file.kind, FileKind::Data | FileKind::Log)) {
        let path = Path::new(&sample.file.path);
        if let Some(directory) = path.parent().filter(|_| path.is_absolute() && path.exists()) {
            *files.entry(directory).or_default() += 1;
        }
    }
    files.into_iter().max_by_key(|(_, count)| *count).map(|(directory, _)| directory.into())
}
