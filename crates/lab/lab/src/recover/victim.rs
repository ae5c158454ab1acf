//! Someone who is crashed and opened again: an engine in files that this program works on itself, or a server.

use super::steps::Doing;
use super::work::Crash;
use super::{Engine, Run, Strategy, child, mariadb, postgres};
use crate::Error;
use experiments::RecoveryIo;
use filestats::Figure;
use std::path::Path;
use std::time::Duration;

/// Tells how much of a step is done, 0 to 1.
pub(super) type Tell<'a> = dyn FnMut(Doing, f64) + 'a;

/// What one recovery gave.
pub(super) struct Recovered {
    pub opened: Duration,
    pub first_read: Duration,
    pub first_write: Duration,
    pub full: Duration,
    /// Pages that it had to bring where they belong, as far as the engine tells.
    pub pages: Figure<u64>,
    /// Of them, those that were still to be written at the first read.
    pub pages_left: Figure<u64>,
    pub compared: u64,
    pub io: RecoveryIo,
    pub counted_by: String,
    /// What must be known to read its I/Os.
    pub notes: Vec<String>,
}

pub(super) trait Victim: Send {
    /// Makes the image in an empty directory. `None` where the experiment was ended.
    fn crash(&mut self, dir: &Path, run: &Run, tell: &mut Tell<'_>) -> Result<Option<Crash>, Error>;

    /// Opens what lies in the directory, which is the image or a copy of it.
    fn recover(
        &mut self,
        dir: &Path,
        strategy: Strategy,
        crash: &Crash,
        run: &Run,
    ) -> Result<Recovered, Error>;

    /// What must be known to read its figures.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Who is crashed, in a directory of its own. What is not installed is said before anything is made.
pub(super) fn of(engine: Engine, run: &Run, dir: &Path) -> Result<Box<dyn Victim>, Error> {
    match engine {
        Engine::Lmdb => available(engine, peers::Engine::Lmdb),
        Engine::Rocksdb => available(engine, peers::Engine::Rocksdb),
        Engine::Pagestore | Engine::SqliteWal | Engine::Redb => Ok(Box::new(OfFiles(engine))),
        Engine::Postgres => Ok(Box::new(postgres::Postgres::initialise(dir, &run.order.work)?)),
        Engine::Mariadb => Ok(Box::new(mariadb::Mariadb::initialise(dir, &run.order.work)?)),
    }
}

/// An engine whose library may not be here.
fn available(engine: Engine, peer: peers::Engine) -> Result<Box<dyn Victim>, Error> {
    peer.find()?;
    Ok(Box::new(OfFiles(engine)))
}

/// It writes in a child and is opened in this program.
struct OfFiles(Engine);

impl Victim for OfFiles {
    fn crash(&mut self, dir: &Path, run: &Run, tell: &mut Tell<'_>) -> Result<Option<Crash>, Error> {
        child::crash(self.0, dir, run, tell)
    }

    fn recover(
        &mut self,
        dir: &Path,
        strategy: Strategy,
        crash: &Crash,
        run: &Run,
    ) -> Result<Recovered, Error> {
        let files = self.0.files().expect("it is one of files");
        (files.recover)(dir, strategy, crash, run)
    }
}

/// A page has not what it must have.
pub(super) fn wrong(engine: Engine, strategy: Strategy) -> impl Fn(String) -> Error {
    move |what| Error::Wrong { engine: engine.name(), strategy: strategy.name(), what }
}
