//! The engines that rows are committed to.

use super::{Committer, Plan, embedded, mariadb, pagestore, postgres, sqlite};
use crate::Error;
use ::pagestore::KeepAwake;
use experiments::Durability;
use sqlite_vfs::Registry;
use std::str::FromStr;

/// An engine that commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// SQLite with its default journal, deleted after each commit; every commit synced.
    SqliteRollback,
    /// SQLite with a write-ahead log.
    SqliteWal,
    /// Our page store.
    Pagestore,
    /// Our page store without polling: as in the other engines, the processor may sleep while a commit waits for its write.
    PagestoreAsleep,
    /// Another embedded engine.
    Embedded(peers::Engine),
    /// PostgreSQL.
    Postgres,
    /// MariaDB, or the MySQL server that is named.
    Mariadb,
}

impl Engine {
    /// All, in the order in which they are shown.
    pub const ALL: [Engine; 9] = [
        Engine::Pagestore,
        Engine::PagestoreAsleep,
        Engine::SqliteRollback,
        Engine::SqliteWal,
        Engine::Embedded(peers::Engine::Redb),
        Engine::Embedded(peers::Engine::Lmdb),
        Engine::Embedded(peers::Engine::Rocksdb),
        Engine::Postgres,
        Engine::Mariadb,
    ];

    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::SqliteRollback => "sqlite-rollback",
            Engine::SqliteWal => "sqlite-wal",
            Engine::Pagestore => "pagestore",
            Engine::PagestoreAsleep => "pagestore-asleep",
            Engine::Embedded(engine) => engine.name(),
            Engine::Postgres => "postgres",
            Engine::Mariadb => "mariadb",
        }
    }

    /// The most space that its steps need, with a server's own files if we start it.
    pub fn bytes_max(self, rows: u64) -> u64 {
        // A row and its share of pages, logs and journals.
        const ROW_BYTES: u64 = 512;
        rows * ROW_BYTES
            + match self {
                Engine::SqliteRollback | Engine::SqliteWal => 0,
                Engine::Pagestore | Engine::PagestoreAsleep => pagestore::log_bytes(rows),
                // RocksDB reserves its log.
                Engine::Embedded(_) => 96 << 20,
                Engine::Postgres | Engine::Mariadb => 512 << 20,
            }
    }

    /// Whether it is a server, named or one that this program starts.
    pub const fn is_server(self) -> bool {
        matches!(self, Engine::Postgres | Engine::Mariadb)
    }

    /// Whether each commit waits for the data files, with or without a log.
    pub(super) fn waits_for_data(self) -> bool {
        match self {
            Engine::SqliteRollback => true,
            Engine::Embedded(engine) => !engine.has_log(),
            _ => false,
        }
    }

    /// Why it cannot commit with this durability; `None` if it can.
    pub(super) fn lacks(self, durability: Durability, plan: &Plan) -> Option<&'static str> {
        match (self, durability) {
            (_, Durability::Full) => None,
            (Engine::SqliteRollback, _) => {
                Some("has no delayed durability: without its syncs a crash may destroy the database")
            }
            (Engine::PagestoreAsleep, _) => {
                Some("is pagestore, where commits are delayed: none of them waits for a write")
            }
            (Engine::Mariadb, _) if plan.mariadb.is_some() => {
                Some("delays all of a server's commits or none: that is not switched on a server of others")
            }
            _ => None,
        }
    }

    pub(super) fn open(self, plan: &Plan, registry: &'static Registry) -> Result<Box<dyn Committer>, Error> {
        let dir = plan.dir.join(self.name());
        crate::private_directory(&dir)?;
        Ok(match self {
            Engine::SqliteRollback => Box::new(sqlite::Sqlite::new(sqlite::Journal::Rollback, registry)),
            Engine::SqliteWal => Box::new(sqlite::Sqlite::new(sqlite::Journal::WriteAhead, registry)),
            Engine::Pagestore | Engine::PagestoreAsleep => {
                let keep_awake = if self == Engine::Pagestore { KeepAwake::Auto } else { KeepAwake::Never };
                Box::new(pagestore::Pagestore::new(plan.rows, keep_awake))
            }
            Engine::Embedded(engine) => Box::new(embedded::Embedded::open(&dir, engine)?),
            Engine::Postgres => Box::new(postgres::Postgres::open(&dir, plan.postgres.as_deref())?),
            Engine::Mariadb => Box::new(mariadb::Mariadb::open(&dir, plan.mariadb.as_deref())?),
        })
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Engine, String> {
        let engine = Engine::ALL.into_iter().find(|engine| engine.name() == text);
        let all = Engine::ALL.map(Engine::name).join(", ");
        engine.ok_or_else(|| format!("there is no engine '{text}'; give {all}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_parsed_from_its_name() {
        for engine in Engine::ALL {
            assert_eq!(engine.name().parse(), Ok(engine));
        }
        assert!("sqlite".parse::<Engine>().unwrap_err().contains("sqlite-wal"));
    }
}
