//! A server on this machine: its processes, its directory and the volumes below.

use super::connection::Connection;
use super::server::Server;
use crate::volume::mount_point;
use filestats::{FileKind, Sample};
use host::Mounts;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Empty for a server on another machine.
pub(super) struct Local {
    pub postmaster: Option<u32>,
    data: Option<Volume>,
    log: Option<Volume>,
    /// Where tablespaces are on other mount points than the cluster's directory.
    pub tablespace_mounts: Vec<String>,
}

struct Volume {
    directory: PathBuf,
    mount: Option<String>,
}

impl Local {
    /// Finds the process that serves the connection by its number, and verifies it by its title. A server in another pid
    /// namespace is not found: its directory would not be valid here.
    pub fn find(connection: &Connection, server: &Server) -> Local {
        let postmaster = server
            .pid
            .filter(|pid| serves(*pid, connection))
            .and_then(|pid| Some(host::ProcessStat::read(pid)?.parent));
        let directory = server.data_directory.as_deref().map(Path::new).filter(|_| postmaster.is_some());
        let data = directory.and_then(Volume::find);
        // The log may be elsewhere, behind a link that only the server's user can resolve.
        let log = directory.and_then(|directory| Volume::find(&directory.join("pg_wal")));
        Local { postmaster, data, log, tablespace_mounts: Vec::new() }
    }

    /// Finds the mount points of the tablespaces' directories.
    pub fn find_tablespaces<'a>(&mut self, directories: impl Iterator<Item = &'a str>) {
        let data = self.data.as_ref().and_then(|data| data.mount.as_ref());
        let found = directories.filter_map(|directory| Volume::find(Path::new(directory))?.mount);
        let others: BTreeSet<String> = found.filter(|mount| Some(mount) != data).collect();
        self.tablespace_mounts = others.into_iter().collect();
    }

    /// The postmaster and its children.
    pub fn processes(&self) -> Vec<u32> {
        let Some(postmaster) = self.postmaster else { return Vec::new() };
        std::iter::once(postmaster).chain(host::children_of(postmaster)).collect()
    }

    pub fn data_directory(&self) -> Option<PathBuf> {
        self.data.as_ref().map(|data| data.directory.clone())
    }

    /// Writes the mount point into each sample. Relations of other tablespaces may be on one of `tablespace_mounts`, which
    /// the server's counters do not separate.
    pub fn fill_in_drives(&self, samples: &mut [Sample]) {
        for sample in samples {
            let volume = if sample.file.kind == FileKind::Log { &self.log } else { &self.data };
            sample.file_mut().drive = volume.as_ref().and_then(|volume| volume.mount.clone());
        }
    }
}

impl Volume {
    fn find(directory: &Path) -> Option<Volume> {
        let directory = fs::canonicalize(directory).ok()?;
        let mount = mount_point(&Mounts::read().unwrap_or_default(), &directory);
        Some(Volume { directory, mount })
    }
}

/// Whether the process has a title as "postgres: 15/main: ann shop 127.0.0.1(41022) idle".
fn serves(pid: u32, connection: &Connection) -> bool {
    let arguments = host::arguments_of(pid);
    let title = arguments.first().map_or_else(Default::default, |title| title.to_string_lossy());
    let who = format!(" {} {} ", connection.user, connection.database);
    title.starts_with("postgres:") && title.contains(&who)
}
