//! The engines that are crashed and recovered.

use std::str::FromStr;

/// An engine that is crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The page store of this program.
    Pagestore,
    /// SQLite with a write-ahead log.
    SqliteWal,
    /// redb, which has no log.
    Redb,
    /// LMDB, which has none either.
    Lmdb,
    /// RocksDB.
    Rocksdb,
    /// PostgreSQL.
    Postgres,
    /// MariaDB with InnoDB.
    Mariadb,
}

impl Engine {
    /// All, in the order in which they are shown.
    pub const ALL: [Engine; 7] = [
        Engine::Pagestore,
        Engine::SqliteWal,
        Engine::Redb,
        Engine::Lmdb,
        Engine::Rocksdb,
        Engine::Postgres,
        Engine::Mariadb,
    ];

    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Pagestore => "pagestore",
            Engine::SqliteWal => "sqlite-wal",
            Engine::Redb => "redb",
            Engine::Lmdb => "lmdb",
            Engine::Rocksdb => "rocksdb",
            Engine::Postgres => "postgres",
            Engine::Mariadb => "mariadb",
        }
    }

    /// Whether it is a server that this program starts, with a user of its own if this program is root.
    pub const fn is_server(self) -> bool {
        matches!(self, Engine::Postgres | Engine::Mariadb)
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
