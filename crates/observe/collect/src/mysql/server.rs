//! The server: its kind, run and directories, and its process if that is on this machine.

use crate::pid_file::read_pid_file;
use crate::volume::inode_id;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The variables that are read once for each connection. Every user may read them.
pub(super) const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'version_comment', \
     'hostname', 'port', 'socket', 'datadir', 'pid_file', 'server_uuid', 'server_uid', 'performance_schema', \
     'innodb_flush_method', 'innodb_data_file_buffering', 'innodb_log_group_home_dir', 'tmpdir', \
     'innodb_flush_log_at_trx_commit')";

/// Names of the servers' programs.
const PROGRAMS: [&str; 2] = ["mariadbd", "mysqld"];

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Socket(PathBuf),
    Tcp { host: String, port: u16 },
}

/// Known facts of the server behind a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    pub is_mariadb: bool,
    /// Major and minor number.
    pub version: (u32, u32),
    /// Identifies the server, independently of the address it was reached by.
    pub identity: String,
    pub data_directory: PathBuf,
    pub log_directory: PathBuf,
    /// The first of them, if there are several.
    pub temporary_directory: PathBuf,
    pub performance_schema: bool,
    /// Whether data files bypass the page cache.
    pub direct_io: bool,
    pub process: Option<Process>,
}

/// The server's process on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub pid: u32,
    /// Prefix of its paths in this mount namespace: empty, or /proc/PID/root of a container.
    root: PathBuf,
    /// Whether that prefix is certain, so that a file that is not found is deleted.
    pub is_root_known: bool,
}

/// A file of the server, as this machine sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileOnDisk {
    /// "MAJOR:MINOR:INODE"
    pub inode: String,
    pub size_bytes: u64,
}

impl Server {
    /// From its variables, by their names in small letters.
    pub fn new(variables: &BTreeMap<String, String>, place: &Place) -> Server {
        let value = |name: &str| variables.get(name).map_or("", String::as_str);
        let is_mariadb = [value("version"), value("version_comment")]
            .iter()
            .any(|text| text.to_ascii_lowercase().contains("mariadb"));
        let data_directory = PathBuf::from(value("datadir"));
        let mut server = Server {
            is_mariadb,
            version: version(value("version")),
            identity: [
                value("server_uuid"),
                value("server_uid"),
                value("hostname"),
                value("port"),
                value("datadir"),
            ]
            .join("|"),
            log_directory: data_directory.join(value("innodb_log_group_home_dir")),
            temporary_directory: value("tmpdir").split(':').next().unwrap_or_default().into(),
            performance_schema: matches!(value("performance_schema"), "ON" | "1"),
            direct_io: value("innodb_flush_method").starts_with("O_DIRECT")
                || value("innodb_data_file_buffering") == "OFF",
            process: None,
            data_directory,
        };
        if is_here(place, value("hostname")) {
            server.process =
                Process::find(&server.data_directory.join(value("pid_file")), &server.data_directory);
        }
        server
    }

    /// Identifies its run: the server, the second of its start, and its process if that is visible, since two starts may be
    /// in one second.
    pub fn run(&self, started_unix_s: u64) -> String {
        let process =
            self.process.as_ref().map_or_else(String::new, |process| format!("|process {}", process.pid));
        format!("{}|started {started_unix_s}{process}", self.identity)
    }

    /// A file of the server, if it is visible from here.
    pub fn find_file(&self, path: &Path) -> Option<FileOnDisk> {
        self.process.as_ref()?.find_file(path).ok()
    }

    /// Its log is one file, `ib_logfile0`, which the Performance Schema does not count (MDEV-14425).
    pub fn has_one_uninstrumented_log(&self) -> bool {
        self.is_mariadb && self.version >= (10, 8)
    }
}

/// A socket is on this machine. A TCP port may be forwarded: the server's host name decides.
fn is_here(place: &Place, hostname: &str) -> bool {
    matches!(place, Place::Socket(_)) || (!hostname.is_empty() && host::hostname() == hostname)
}

/// "10.11.19-MariaDB-0+deb12u1-log", "8.0.36"; replicas of MariaDB may say "5.5.5-10.4.2-MariaDB".
fn version(text: &str) -> (u32, u32) {
    let text = text.strip_prefix("5.5.5-").unwrap_or(text);
    let mut numbers = text.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

impl Process {
    /// Finds it by the server's pid file, else by its working directory, the data directory.
    fn find(pid_file: &Path, data_directory: &Path) -> Option<Process> {
        let from_file = read_pid_file(pid_file).ok();
        let works_there = |pid: u32| {
            let directory = fs::read_link(format!("/proc/{pid}/cwd"));
            directory.is_ok_and(|directory| directory.components().eq(data_directory.components()))
        };
        let pid = from_file
            .filter(|pid| is_server(*pid))
            .or_else(|| host::pids().ok()?.into_iter().find(|pid| is_server(*pid) && works_there(*pid)))?;
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        let theirs = namespace(&pid.to_string());
        let is_root_known = theirs.is_some();
        let same = !is_root_known || theirs == namespace("self");
        let root = if same { PathBuf::new() } else { PathBuf::from(format!("/proc/{pid}/root")) };
        Some(Process { pid, root, is_root_known })
    }

    pub fn find_file(&self, path: &Path) -> io::Result<FileOnDisk> {
        let found = match path.strip_prefix("/") {
            Ok(below) if !self.shares_mounts() => fs::metadata(self.root.join(below)),
            _ => fs::metadata(path),
        }?;
        Ok(FileOnDisk { inode: inode_id(&found), size_bytes: found.len() })
    }

    /// Whether it is in this process's mount namespace.
    pub fn shares_mounts(&self) -> bool {
        self.root == Path::new("")
    }
}

fn is_server(pid: u32) -> bool {
    host::command_name(pid).is_some_and(|command| PROGRAMS.contains(&command.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_and_version_are_parsed_from_the_servers_variables() {
        let server = |version: &str, comment: &str| {
            let variables = [("version".into(), version.into()), ("version_comment".into(), comment.into())];
            let server = Server::new(&variables.into(), &Place::Tcp { host: "x".into(), port: 1 });
            (server.is_mariadb, server.version)
        };
        assert_eq!(server("10.11.19-MariaDB-0+deb12u1-log", "Debian 12"), (true, (10, 11)));
        assert_eq!(server("5.5.5-10.4.2-MariaDB", ""), (true, (10, 4)));
        assert_eq!(server("8.0.36", "MySQL Community Server - GPL"), (false, (8, 0)));
        assert_eq!(server("5.7.44-48-log", "Percona Server (GPL)"), (false, (5, 7)));
        assert_eq!(server("", ""), (false, (0, 0)));
    }
}
