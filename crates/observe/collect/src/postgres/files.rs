//! Which relation a file of a cluster holds.
//!
//! ```text
//! base/DATABASE/NODE[_fork][.segment]                         the default tablespace
//! base/DATABASE/tBACKEND_NODE...                              a temporary relation
//! global/NODE...                                              relations that all databases share
//! pg_tblspc/TABLESPACE/PG_VERSION_CATALOG/DATABASE/NODE...    another tablespace
//! ```
//!
//! The node is pg_class.relfilenode, or, of a few catalogs ("mapped"), what pg_relation_filenode() says. It changes when
//! a relation is rewritten, and no old one is kept: who was not asked in time is told by number only.

use super::answer::{Columns, Table};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Of a file, what all segments and forks of its relation share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RelationFile {
    /// The first file of the relation, below the data directory, as pg_relation_filepath() has it.
    pub path: String,
    pub tablespace: Option<u32>,
    /// `None`: shared by all databases.
    pub database: Option<u32>,
    pub node: u32,
    pub fork: Fork,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fork {
    Main,
    FreeSpaceMap,
    VisibilityMap,
    Init,
}

/// Numbers of relations' files and of the tablespaces that they are in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub nodes: Vec<u32>,
    pub tablespaces: Vec<u32>,
}

/// What the server says of them and of what is around them.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub databases: HashMap<u32, String>,
    pub connected: Option<u32>,
    /// Number and place of each tablespace beside the default one.
    pub tablespaces: Vec<(PathBuf, u32)>,
    /// Relations by their first file, as pg_relation_filepath() has it. Of other tablespaces too, where numbers are alike.
    pub names: HashMap<String, String>,
}

const DATABASES: &str =
    "SELECT oid, datname AS name, datname = current_database() AS connected FROM pg_database";
const TABLESPACES: &str =
    "SELECT oid, pg_tablespace_location(oid) AS location FROM pg_tablespace WHERE spcname NOT LIKE 'pg\\_%'";

/// The statements that ask for them. Both parts of the last one go by pg_class's index of tablespace and node; the second
/// finds mapped relations. None of its functions takes a lock that a TRUNCATE would hold.
pub(super) fn statements(wanted: &Wanted) -> String {
    let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let nodes = list(&wanted.nodes);
    // 0 stands for the database's own; 1663 is pg_default, 1664 pg_global.
    let tablespaces = list(&[&[0, 1663, 1664], wanted.tablespaces.as_slice()].concat());
    let relations = format!(
        "SELECT pg_relation_filepath(c.oid) AS path, {name} AS name FROM (
            SELECT oid FROM pg_class WHERE reltablespace = ANY ('{{{tablespaces}}}'::oid[])
               AND relfilenode = ANY ('{{{nodes}}}'::oid[])
            UNION ALL
            SELECT oid FROM pg_class WHERE reltablespace = ANY ('{{0,1664}}'::oid[]) AND relfilenode = 0
               AND relkind IN ('r', 'i', 't') AND pg_relation_filenode(oid) = ANY ('{{{nodes}}}'::oid[])) found
          JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace",
        name = super::relations::NAME,
    );
    [DATABASES, TABLESPACES, &relations].join(";\n")
}

impl Told {
    /// Of the answers to [`statements`].
    pub fn read(tables: &[Table]) -> Told {
        let rows = |at: usize| tables.get(at).map_or(&[][..], Vec::as_slice);
        let oid = |row: &tokio_postgres::SimpleQueryRow| u32::try_from(row.count("oid")?).ok();
        let database = |row| Some((oid(row)?, Columns::text(row, "name")?.to_owned()));
        let tablespace = |row| {
            let place = PathBuf::from(Columns::text(row, "location").filter(|place| !place.is_empty())?);
            // Only the server's user may be able to follow a link to it.
            Some((std::fs::canonicalize(&place).unwrap_or(place), oid(row)?))
        };
        let name = |row: &tokio_postgres::SimpleQueryRow| {
            Some((row.text("path")?.to_owned(), row.text("name")?.to_owned()))
        };
        Told {
            databases: rows(0).iter().filter_map(database).collect(),
            connected: rows(0).iter().find(|row| row.flag("connected") == Some(true)).and_then(oid),
            tablespaces: rows(1).iter().filter_map(tablespace).collect(),
            names: rows(2).iter().filter_map(name).collect(),
        }
    }
}

impl RelationFile {
    /// By its name below the data directory, other tablespaces as under pg_tblspc; `None` of what is no relation's.
    pub fn of(path: &Path) -> Option<RelationFile> {
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
            None => (rest, Fork::Main),
            Some((node, "fsm")) => (node, Fork::FreeSpaceMap),
            Some((node, "vm")) => (node, Fork::VisibilityMap),
            Some((node, "init")) => (node, Fork::Init),
            Some(_) => return None,
        };
        let node = number(node)?;
        let path = format!("{}/{owner}{node}", directory.join("/"));
        Some(RelationFile { path, tablespace, database, node, fork })
    }
}

impl Fork {
    /// What a person adds to the relation's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Fork::Main => "",
            Fork::FreeSpaceMap => " (free space map)",
            Fork::VisibilityMap => " (visibility map)",
            Fork::Init => " (init fork)",
        }
    }
}

/// What else there is: "write-ahead log", "temporary file of process 4711".
pub(super) fn other(path: &Path) -> Option<String> {
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
    fn all_files_of_a_relation_are_its() {
        let of = |path: &str| RelationFile::of(Path::new(path));
        let told = |path: &str| of(path).map(|file| (file.path, file.database, file.node, file.fork));
        let orders = |fork| Some(("base/5/16384".to_owned(), Some(5), 16384, fork));
        assert_eq!(told("base/5/16384"), orders(Fork::Main));
        assert_eq!(told("base/5/16384.12"), orders(Fork::Main));
        assert_eq!(told("base/5/16384_fsm"), orders(Fork::FreeSpaceMap));
        assert_eq!(told("base/5/16384_vm.1"), orders(Fork::VisibilityMap));
        assert_eq!(told("base/5/16384_init"), orders(Fork::Init));
        assert_eq!(told("global/1262_fsm"), Some(("global/1262".into(), None, 1262, Fork::FreeSpaceMap)));
        assert_eq!(told("base/5/t3_16401.1"), Some(("base/5/t3_16401".into(), Some(5), 16401, Fork::Main)));
        let elsewhere = of("pg_tblspc/16400/PG_15_202209061/5/16401.1").unwrap();
        assert_eq!((elsewhere.tablespace, elsewhere.node), (Some(16400), 16401));
        assert_eq!(elsewhere.path, "pg_tblspc/16400/PG_15_202209061/5/16401");
    }

    #[test]
    fn other_files_are_no_relations() {
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
            assert_eq!(RelationFile::of(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn temporary_files_and_the_log_are_told() {
        let other = |path: &str| other(Path::new(path));
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
