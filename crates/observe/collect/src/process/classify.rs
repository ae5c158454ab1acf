//! The purpose of a file, by its name alone: the layouts of PostgreSQL, MySQL and MariaDB, SQLite, SQL Server
//! and MongoDB.

use filestats::FileKind;
use std::path::Path;

/// Class of a file, from its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub kind: FileKind,
    /// The database, as its users call it.
    pub database: Option<String>,
    /// The database's number in the engine.
    pub database_id: Option<u64>,
}

/// A file that no layout matches is `Other`.
pub(super) fn classify(path: &Path) -> Class {
    let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let Some((file, above)) = parts.split_last() else { return Class::new(FileKind::Other) };
    let directory = above.last().map_or("", String::as_str);
    nameless(file)
        .or_else(|| postgres(file, above))
        .or_else(|| innodb(file, directory))
        .or_else(|| sqlite(file))
        .unwrap_or_else(|| Class::new(by_ending(file)))
}

impl Class {
    /// A class without a database.
    pub fn new(kind: FileKind) -> Class {
        Class { kind, database: None, database_id: None }
    }
}

/// Files opened with `O_TMPFILE` have no name: the kernel shows them as `#INODE` (d_tmpfile() of fs/dcache.c).
fn nameless(file: &str) -> Option<Class> {
    let inode = file.strip_prefix('#')?;
    let inode = inode.strip_suffix(" (deleted)").unwrap_or(inode);
    (!inode.is_empty() && inode.bytes().all(|byte| byte.is_ascii_digit())).then(|| Class::new(FileKind::Temp))
}

/// `base/DATABASE/RELATION`, `global/RELATION`, `pg_tblspc/N/PG_x_y/DATABASE/RELATION`; forks and segments
/// are `16384_vm`, `16384.1`; temporary relations `t3_16384`.
fn postgres(file: &str, above: &[String]) -> Option<Class> {
    let directory = above.last()?;
    if above.iter().any(|part| part == "pgsql_tmp" || part.starts_with("pgsql_tmp")) {
        return Some(Class::new(FileKind::Temp));
    }
    if directory == "pg_wal" || directory == "pg_xlog" {
        return Some(Class::new(FileKind::Log));
    }
    let number = |text: &str| text.parse::<u64>().ok();
    let relation = file.split(['_', '.']).next().is_some_and(|start| number(start).is_some());
    let temporary =
        file.strip_prefix('t').and_then(|rest| rest.split_once('_')).is_some_and(|(owner, rest)| {
            number(owner).is_some() && rest.split(['_', '.']).next().is_some_and(|id| number(id).is_some())
        });
    let holder = above.len().checked_sub(2).map(|at| above[at].as_str())?;
    let kind = match (relation, temporary) {
        (true, _) => FileKind::Data,
        (_, true) => FileKind::Temp,
        _ => return None,
    };
    if directory == "global" && relation {
        return Some(Class::new(FileKind::Data));
    }
    let database_id = number(directory)?;
    let in_cluster = holder == "base" || holder.starts_with("PG_");
    in_cluster.then_some(Class { kind, database: None, database_id: Some(database_id) })
}

fn innodb(file: &str, directory: &str) -> Option<Class> {
    let is = |ending: &str| file.ends_with(ending);
    let numbered = |stem: &str| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        file.rsplit_once('.').is_some_and(|(start, number)| start.ends_with(stem) && digits(number))
    };
    if directory == "#innodb_temp" || file.starts_with("ibtmp") || is(".ibt") {
        return Some(Class::new(FileKind::Temp));
    }
    if directory == "#innodb_redo" || file.starts_with("ib_logfile") || file.starts_with("aria_log.") {
        return Some(Class::new(FileKind::Log));
    }
    if numbered("binlog") || numbered("-bin") || numbered("relay-log") {
        return Some(Class::new(FileKind::Log));
    }
    if is(".dblwr") {
        // The doublewrite buffer: neither data that is read nor a log that a commit waits for.
        return Some(Class::new(FileKind::Other));
    }
    if file.starts_with("ibdata") || file.starts_with("undo0") || file.starts_with("undo_0") || is(".ibu") {
        return Some(Class::new(FileKind::Data));
    }
    let table = [".ibd", ".MYD", ".MYI", ".MAD", ".MAI"].iter().any(|ending| is(ending));
    let database = Some(directory.to_owned()).filter(|name| !name.is_empty() && file != "mysql.ibd");
    table.then_some(Class { kind: FileKind::Data, database, database_id: None })
}

fn sqlite(file: &str) -> Option<Class> {
    let kinds = [("-wal", FileKind::Log), ("-journal", FileKind::Journal), ("-shm", FileKind::Other)];
    let with_suffix =
        kinds.iter().find_map(|(suffix, kind)| file.strip_suffix(suffix).map(|main| (main, *kind)));
    let (main, kind) = with_suffix.unwrap_or((file, FileKind::Data));
    let stem = [".db", ".sqlite", ".sqlite3", ".db3"].iter().find_map(|ending| main.strip_suffix(ending));
    let stem = stem.or_else(|| with_suffix.map(|(main, _)| main)).filter(|stem| !stem.is_empty())?;
    Some(Class { kind, database: Some(stem.to_owned()), database_id: None })
}

/// The kind of SQL Server's and MongoDB's files.
fn by_ending(file: &str) -> FileKind {
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "mdf" | "ndf" | "wt" => FileKind::Data,
        "ldf" => FileKind::Log,
        _ if file.starts_with("WiredTigerLog.") => FileKind::Log,
        _ => FileKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(path: &str) -> FileKind {
        classify(Path::new(path)).kind
    }

    #[test]
    fn postgres_files_are_classified_by_their_directory() {
        let relation = classify(Path::new("/var/lib/postgresql/17/main/base/16384/16397.1"));
        assert_eq!((relation.kind, relation.database_id), (FileKind::Data, Some(16384)));
        assert_eq!(kind("/pg/base/5/2619_fsm"), FileKind::Data);
        assert_eq!(kind("/pg/global/1262"), FileKind::Data);
        assert_eq!(kind("/fast/PG_17_202406281/16384/24576"), FileKind::Data);
        assert_eq!(kind("/pg/base/5/t3_16390"), FileKind::Temp);
        assert_eq!(kind("/pg/base/pgsql_tmp/pgsql_tmp4711.0"), FileKind::Temp);
        assert_eq!(kind("/pg/pg_wal/000000010000000000000001"), FileKind::Log);
        assert_eq!(kind("/home/5/2619"), FileKind::Other, "a number alone is no relation");
    }

    #[test]
    fn mysql_and_mariadb_files_are_classified_by_their_names() {
        let table = classify(Path::new("/var/lib/mysql/shop/orders.ibd"));
        assert_eq!((table.kind, table.database.as_deref()), (FileKind::Data, Some("shop")));
        assert_eq!(kind("/m/ibdata1"), FileKind::Data);
        assert_eq!((kind("/m/undo_001"), kind("/m/undo001")), (FileKind::Data, FileKind::Data));
        for log in ["#innodb_redo/#ib_redo12", "ib_logfile0", "binlog.000042", "mariadb-bin.000001"] {
            assert_eq!(kind(&format!("/m/{log}")), FileKind::Log, "{log}");
        }
        for temporary in ["/tmp/#852460", "/tmp/#852460 (deleted)", "/m/ibtmp1"] {
            assert_eq!(kind(temporary), FileKind::Temp, "{temporary}");
        }
        assert_eq!(kind("/m/binlog.index"), FileKind::Other);
        assert_eq!(kind("/m/#ib_16384_0.dblwr"), FileKind::Other);
        assert_eq!(kind("/m/#innodb_temp/temp_1.ibt"), FileKind::Temp);
    }

    #[test]
    fn sqlite_files_go_with_their_database() {
        let of = |path: &str| {
            let class = classify(Path::new(path));
            (class.kind, class.database.unwrap_or_default())
        };
        assert_eq!(of("/d/shop.db"), (FileKind::Data, "shop".into()));
        assert_eq!(of("/d/shop.db-wal"), (FileKind::Log, "shop".into()));
        assert_eq!(of("/d/shop-journal"), (FileKind::Journal, "shop".into()));
        assert_eq!(of("/d/shop.db-shm"), (FileKind::Other, "shop".into()));
        assert_eq!(of("/d/notes.txt"), (FileKind::Other, String::new()));
    }
}
