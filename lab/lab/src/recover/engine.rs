//! The engines that are crashed and recovered: what each provides for the experiment, and the disk space that it needs.

use super::victim::{Recovered, ReportStep, Victim};
use super::work::{Crash, PAGE_BYTES, Work};
use super::{Context, Plan, Strategy, child, mariadb, pagestore, peer, postgres, sqlite};
use crate::Error;
use std::path::Path;
use std::str::FromStr;

/// An engine that is crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The page store of this program.
    Pagestore,
    /// SQLite with a write-ahead log.
    SqliteWal,
    /// Another embedded engine.
    Embedded(peers::Engine),
    /// PostgreSQL.
    Postgres,
    /// MariaDB with InnoDB.
    Mariadb,
}

/// Small files, and the pieces that logs grow by.
const SLACK_BYTES: u64 = 48 << 20;
/// A server without rows, and log that it allocates ahead.
const SERVER_BYTES: u64 = 256 << 20;

impl Engine {
    /// All, in the order in which they are shown.
    pub const ALL: [Engine; 7] = [
        Engine::Pagestore,
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
            Engine::Pagestore => "pagestore",
            Engine::SqliteWal => "sqlite-wal",
            Engine::Embedded(engine) => engine.name(),
            Engine::Postgres => "postgres",
            Engine::Mariadb => "mariadb",
        }
    }

    /// Whether it is a server that this program starts, with a user of its own if this program is root.
    pub const fn is_server(self) -> bool {
        matches!(self, Engine::Postgres | Engine::Mariadb)
    }

    /// Its strategies, of those that the plan requests.
    pub(super) fn strategies(self, plan: &Plan) -> Vec<Strategy> {
        match self {
            Engine::Pagestore => plan.strategies.clone(),
            _ => vec![Strategy::Own],
        }
    }

    /// Bytes of a page.
    pub(super) fn page_bytes(self) -> u64 {
        match self {
            Engine::Postgres => postgres::PAGE_BYTES,
            Engine::Mariadb => mariadb::PAGE_BYTES,
            _ => PAGE_BYTES,
        }
    }

    /// The most disk space that its part of the experiment needs.
    pub fn room_bytes(self, plan: &Plan) -> u64 {
        let copies = u64::from(plan.emulated.is_some() || self.strategies(plan).len() > 1);
        self.image_bytes(&plan.work) * (1 + copies)
    }

    /// The most disk space of a crashed image.
    pub(super) fn image_bytes(self, work: &Work) -> u64 {
        // Logs are allocated in pieces, and grow on until the kill takes effect.
        let log = work.log_bytes * 3 / 2 + SLACK_BYTES;
        let data = work.data_pages * self.page_bytes() * 21 / 20;
        match self {
            Engine::Pagestore | Engine::SqliteWal => data + log,
            // Copies of changed pages, and files that are merged into new ones, take space beside the data.
            Engine::Embedded(_) => work.data_pages * self.page_bytes() * 3 * 21 / 20 + log,
            Engine::Postgres => data + log + SERVER_BYTES,
            Engine::Mariadb => mariadb::image_bytes(work) + SLACK_BYTES + SERVER_BYTES,
        }
    }

    /// Prepares its crash in a directory of its own. Fails before it creates any data if the engine is not installed.
    pub(super) fn open_victim(self, run: &Context, dir: &Path) -> Result<Box<dyn Victim>, Error> {
        match self {
            Engine::Postgres => return Ok(Box::new(postgres::Postgres::initialise(dir, &run.order.work)?)),
            Engine::Mariadb => return Ok(Box::new(mariadb::Mariadb::initialise(dir, &run.order.work)?)),
            Engine::Embedded(engine) => engine.find()?,
            Engine::Pagestore | Engine::SqliteWal => {}
        }
        Ok(Box::new(FilesVictim(self)))
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

/// Writes in a child process and is recovered in this one.
struct FilesVictim(Engine);

impl Victim for FilesVictim {
    fn crash(
        &mut self,
        dir: &Path,
        run: &Context,
        report: &mut ReportStep<'_>,
    ) -> Result<Option<Crash>, Error> {
        child::crash(self.0, dir, run, report)
    }

    fn recover(
        &mut self,
        dir: &Path,
        strategy: Strategy,
        crash: &Crash,
        run: &Context,
    ) -> Result<Recovered, Error> {
        match self.0 {
            Engine::Pagestore => pagestore::recover(dir, strategy, crash, run),
            Engine::SqliteWal => sqlite::recover(dir, crash, run),
            Engine::Embedded(engine) => peer::recover(engine, dir, crash, run),
            Engine::Postgres | Engine::Mariadb => unreachable!("only engines in files are opened as such"),
        }
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
