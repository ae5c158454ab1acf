//! What each engine provides for the experiment, and the disk space that it needs.

use super::files::Files;
use super::victim::{Recovered, ReportStep, Victim};
use super::work::{Crash, Work};
use super::{Context, Engine, Plan, Strategy, child, mariadb, pagestore, peer, postgres, sqlite};
use crate::Error;
use std::path::Path;

/// Small files, and the pieces that logs grow by.
const SLACK_BYTES: u64 = 48 << 20;
/// A server without rows, and log that it allocates ahead.
const SERVER_BYTES: u64 = 256 << 20;

impl Engine {
    /// `None` for a server.
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

    /// Its strategies, of those that the plan requests.
    pub(super) fn strategies(self, plan: &Plan) -> Vec<Strategy> {
        let all = self.files().map_or(&[Strategy::Own][..], |files| files.strategies);
        match all {
            [Strategy::Own] => vec![Strategy::Own],
            all => plan.strategies.iter().copied().filter(|strategy| all.contains(strategy)).collect(),
        }
    }

    /// Bytes of a page.
    pub(super) fn page_bytes(self) -> u64 {
        match self {
            Engine::Postgres => postgres::PAGE_BYTES,
            Engine::Mariadb => mariadb::PAGE_BYTES,
            _ => self.files().map_or(0, |files| files.page_bytes),
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
        match self {
            Engine::Postgres => work.data_pages * self.page_bytes() * 21 / 20 + log + SERVER_BYTES,
            Engine::Mariadb => mariadb::image_bytes(work) + SLACK_BYTES + SERVER_BYTES,
            _ => {
                let times = self.files().map_or(1, |files| files.data_times);
                work.data_pages * self.page_bytes() * times * 21 / 20 + log
            }
        }
    }

    /// Prepares its crash in a directory of its own. Fails before it creates any data if the engine is not installed.
    pub(super) fn open_victim(self, run: &Context, dir: &Path) -> Result<Box<dyn Victim>, Error> {
        match self {
            Engine::Postgres => return Ok(Box::new(postgres::Postgres::initialise(dir, &run.order.work)?)),
            Engine::Mariadb => return Ok(Box::new(mariadb::Mariadb::initialise(dir, &run.order.work)?)),
            Engine::Lmdb => drop(peers::Engine::Lmdb.find()?),
            Engine::Rocksdb => drop(peers::Engine::Rocksdb.find()?),
            Engine::Pagestore | Engine::SqliteWal | Engine::Redb => {}
        }
        Ok(Box::new(FilesVictim(self)))
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
        let files = self.0.files().expect("only engines in files are opened as such");
        (files.recover)(dir, strategy, crash, run)
    }
}
