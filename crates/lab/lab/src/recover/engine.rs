//! Who crashes, in which ways it is recovered, and the room that it needs.

use super::child::Teller;
use super::victim::Recovered;
use super::work::{Crash, Order, Work};
use super::{Plan, Run, mariadb, pagestore, peer, postgres, sqlite};
use crate::Error;
use std::convert::Infallible;
use std::path::Path;
use std::str::FromStr;

/// Who crashes.
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
    /// MariaDB, whose engine is InnoDB.
    Mariadb,
}

/// How it is recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Serves at once; pages are written in the background.
    Instant,
    /// All places known first, many writes at once, one sync.
    Wide,
    /// As that, through a memory mapping of the data file: the kernel writes back.
    Mapped,
    /// The log in large reads, then page by page, one sync.
    Prefetch,
    /// Small reads, page by page, many syncs.
    Serial,
    /// The one way that the engine has.
    Own,
}

/// Makes the data file, then commits until it is killed.
pub(super) type Write = fn(&Path, &Order, &mut Teller) -> Result<Infallible, Error>;
/// Opens what was killed.
pub(super) type Recover = fn(&Path, Strategy, &Crash, &Run) -> Result<Recovered, Error>;

/// An engine in files that this program works on itself.
pub(super) struct Files {
    pub write: Write,
    pub recover: Recover,
    pub strategies: &'static [Strategy],
    pub page_bytes: u64,
    /// Space that it takes, in times of its data.
    pub data_times: u64,
    /// Its log in an image, where it is not as long as the writer told.
    pub log_bytes: Option<fn(&Path) -> u64>,
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

    /// As people write it.
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

    /// What it needs to be worked on; `None` of a server.
    pub(super) fn files(self) -> Option<Files> {
        match self {
            Engine::Pagestore => Some(pagestore::FILES),
            Engine::SqliteWal => Some(sqlite::FILES),
            Engine::Redb => Some(peer::REDB),
            Engine::Lmdb => Some(peer::LMDB),
            Engine::Rocksdb => Some(peer::ROCKSDB),
            Engine::Postgres | Engine::Mariadb => None,
        }
    }

    /// The ways in which it can be recovered, of those that were asked for.
    pub(super) fn strategies(self, plan: &Plan) -> Vec<Strategy> {
        let has = self.files().map_or(&[Strategy::Own][..], |files| files.strategies);
        match has {
            [Strategy::Own] => vec![Strategy::Own],
            has => plan.strategies.iter().copied().filter(|strategy| has.contains(strategy)).collect(),
        }
    }

    /// A server of our own, with a user of its own where this program is root.
    pub const fn is_server(self) -> bool {
        matches!(self, Engine::Postgres | Engine::Mariadb)
    }

    /// Bytes of one of its pages.
    pub(super) fn page_bytes(self) -> u64 {
        match self {
            Engine::Postgres => postgres::PAGE_BYTES,
            Engine::Mariadb => mariadb::PAGE_BYTES,
            _ => self.files().map_or(0, |files| files.page_bytes),
        }
    }

    /// Disk space that its part of the experiment needs, at most.
    pub fn room_bytes(self, plan: &Plan) -> u64 {
        let copies = u64::from(plan.emulated.is_some() || self.strategies(plan).len() > 1);
        self.image_bytes(&plan.work) * (1 + copies)
    }

    pub(super) fn image_bytes(self, work: &Work) -> u64 {
        // Logs are made in pieces, and grow on while the kill is on its way.
        let log = work.log_bytes * 3 / 2 + SLACK_BYTES;
        match self {
            Engine::Postgres => work.data_pages * self.page_bytes() * 21 / 20 + log + SERVER_BYTES,
            Engine::Mariadb => mariadb::image_bytes(work) + SLACK_BYTES + SERVER_BYTES,
            _ => {
                let times = self.files().map_or(1, |files| files.data_times);
                work.data_pages * self.page_bytes() * times * 21 / 20 + log
            }
        }
    }
}

/// What small files, and the pieces that logs grow by, take beside the pages.
const SLACK_BYTES: u64 = 48 << 20;
/// A server without rows, and a log that is made ahead.
const SERVER_BYTES: u64 = 256 << 20;

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Engine, String> {
        let found = Engine::ALL.into_iter().find(|engine| engine.name() == text);
        let all = Engine::ALL.map(Engine::name).join(", ");
        found.ok_or_else(|| format!("there is no engine '{text}'; give {all}"))
    }
}

impl Strategy {
    /// Those that an engine may leave a choice of.
    pub const ALL: [Strategy; 5] =
        [Strategy::Instant, Strategy::Wide, Strategy::Mapped, Strategy::Prefetch, Strategy::Serial];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Instant => "instant",
            Strategy::Wide => "wide",
            Strategy::Mapped => "mapped",
            Strategy::Prefetch => "prefetch",
            Strategy::Serial => "serial",
            Strategy::Own => "own",
        }
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Strategy, String> {
        let found = Strategy::ALL.into_iter().find(|strategy| strategy.name() == text);
        let all = Strategy::ALL.map(Strategy::name).join(", ");
        found.ok_or_else(|| format!("there is no strategy '{text}'; give {all}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_and_strategy_is_known_by_its_name() {
        for engine in Engine::ALL {
            assert_eq!(engine.name().parse(), Ok(engine));
        }
        for strategy in Strategy::ALL {
            assert_eq!(strategy.name().parse(), Ok(strategy));
        }
        assert!("sqlite".parse::<Engine>().unwrap_err().contains("sqlite-wal"));
        assert!("own".parse::<Strategy>().unwrap_err().contains("prefetch"));
    }
}
