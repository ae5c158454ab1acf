//! The relation that a file of a PostgreSQL cluster belongs to.
//!
//! ```text
//! base/DATABASE/NODE[_fork][.segment]                         the default tablespace
//! base/DATABASE/tBACKEND_NODE...                              a temporary relation
//! global/NODE...                                              relations that all databases share
//! pg_tblspc/TABLESPACE/PG_VERSION_CATALOG/DATABASE/NODE...    another tablespace
//! ```
//!
//! NODE is pg_class.relfilenode or, of a few ("mapped") catalogs, pg_relation_filenode(). It changes when a relation is
//! rewritten, and the server forgets the old one: a file that was not looked up in time is known by its number only.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The relation of a file, and its fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RelationFile {
    /// The first file of the relation, below the data directory, as pg_relation_filepath() returns it.
    pub path: String,
    pub tablespace: Option<u32>,
    /// `None` for relations that all databases share.
    pub database: Option<u32>,
    pub node: u32,
    /// The suffix of the relation's name; "" for its main fork.
    pub fork: &'static str,
}

/// Files to look up: the numbers of relations' files, and of their tablespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileLookup {
    pub nodes: Vec<u32>,
    pub tablespaces: Vec<u32>,
}

/// The server's answer.
#[derive(Debug, Default)]
pub(crate) struct LookupResult {
    pub databases: HashMap<u32, String>,
    pub connected: Option<u32>,
    /// Directory and number of each tablespace except the default one.
    pub tablespaces: Vec<(PathBuf, u32)>,
    /// Names of relations by their first file, as pg_relation_filepath() returns it. There may be more than were looked up:
    /// relations of other tablespaces with the same number.
    pub names: HashMap<String, String>,
}

impl RelationFile {
    /// Parses a path below the data directory, with other tablespaces under pg_tblspc; `None` if it is no relation's file.
    pub fn parse(path: &Path) -> Option<RelationFile> {
        let parts: Vec<&str> = path.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
        let (file, directory) = parts.split_last()?;
        let (tablespace, database) = match directory {
            ["global"] => (None, None),
            ["base", database] => (None, Some(number(database)?)),
            ["pg_tblspc", tablespace, version, database] if version.starts_with("PG_") => {
                (Some(number(tablespace)?), Some(number(database)?))
            }
            _ => return None,
        };
        let segmented = file.split_once('.');
        if segmented.is_some_and(|(_, segment)| number(segment).is_none()) {
            return None;
        }
        let name = segmented.map_or(*file, |(name, _)| name);
        let owner = name.strip_prefix('t').and_then(|rest| rest.split_once('_'));
        let (owner, rest) = match owner {
            Some((owner, rest)) => (format!("t{}_", number(owner)?), rest),
            None => (String::new(), name),
        };
        let (node, fork) = match rest.split_once('_') {
            None => (rest, ""),
            Some((node, "fsm")) => (node, " (free space map)"),
            Some((node, "vm")) => (node, " (visibility map)"),
            Some((node, "init")) => (node, " (init fork)"),
            Some(_) => return None,
        };
        let node = number(node)?;
        let path = format!("{}/{owner}{node}", directory.join("/"));
        Some(RelationFile { path, tablespace, database, node, fork })
    }
}

/// Contents of a file that is no relation's: "write-ahead log", "temporary file of process 4711".
pub(super) fn describe_other(path: &Path) -> Option<String> {
    let first = path.iter().next()?;
    if first == "pg_wal" {
        return Some("write-ahead log".into());
    }
    let of_process = |part: &std::ffi::OsStr| {
        let rest = part.to_str()?.strip_prefix("pgsql_tmp")?;
        number(rest.split('.').next()?)
    };
    let mut parts = path.iter();
    parts.by_ref().find(|part| *part == "pgsql_tmp")?;
    Some(format!("temporary file of process {}", of_process(parts.next()?)?))
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fork_and_segment_belongs_to_its_relation() {
        let parse = |path: &str| RelationFile::parse(Path::new(path));
        let parts = |path: &str| parse(path).map(|file| (file.path, file.database, file.node, file.fork));
        let orders = |fork| Some(("base/5/16384".to_owned(), Some(5), 16384, fork));
        assert_eq!(parts("base/5/16384"), orders(""));
        assert_eq!(parts("base/5/16384.12"), orders(""));
        assert_eq!(parts("base/5/16384_fsm"), orders(" (free space map)"));
        assert_eq!(parts("base/5/16384_vm.1"), orders(" (visibility map)"));
        assert_eq!(parts("base/5/16384_init"), orders(" (init fork)"));
        assert_eq!(parts("global/1262_fsm"), Some(("global/1262".into(), None, 1262, " (free space map)")));
        assert_eq!(parts("base/5/t3_16401.1"), Some(("base/5/t3_16401".into(), Some(5), 16401, "")));
        let elsewhere = parse("pg_tblspc/16400/PG_15_202209061/5/16401.1").unwrap();
        assert_eq!((elsewhere.tablespace, elsewhere.node), (Some(16400), 16401));
        assert_eq!(elsewhere.path, "pg_tblspc/16400/PG_15_202209061/5/16401");
    }

    #[test]
    fn other_files_belong_to_no_relation() {
        let others = [
            "pg_wal/000000010000000000000001",
            "base/5/pg_internal.init",
            "base/5/16384.old",
            "base/5/16384_old",
            "base/5/t3_",
            "base/5/t_16384",
            "base/5/99999999999",
            "base/+5/16384",
            "base/pgsql_tmp/pgsql_tmp77.0",
            "pg_tblspc/16400/5/16401",
            "global/pg_control",
            "16384",
            "/",
            "",
        ];
        for path in others {
            assert_eq!(RelationFile::parse(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn temporary_files_and_the_log_are_described() {
        let other = |path: &str| describe_other(Path::new(path));
        let temporary = "temporary file of process 4711";
        assert_eq!(other("base/pgsql_tmp/pgsql_tmp4711.0").as_deref(), Some(temporary));
        let shared = "pg_tblspc/16400/PG_15_202209061/pgsql_tmp/pgsql_tmp4711.3.sharedfileset/o1.p0.0";
        assert_eq!(other(shared).as_deref(), Some(temporary));
        assert_eq!(other("pg_wal/000000010000000000000001").as_deref(), Some("write-ahead log"));
        for path in ["base/pgsql_tmp", "base/pgsql_tmp/x", "pg_xact/0000", "base/5/16384", ""] {
            assert_eq!(other(path), None, "{path}");
        }
    }
}
