//! One crashed workload, recovered in several ways: when the engine serves again, and when all is where it belongs.
//!
//! ```text
//! run(plan) ── for each engine ──> crash     its files made, then scattered pages written, 64 a commit, until the log
//!                                            has its length and SIGKILL comes: child.rs, or a server's processes: server.rs
//!    for each strategy:            copy      the same crashed image, thrown out of the page cache
//!    (recoveries.rs)               recover   open ─> first read ─> first write ─> all in the data file, synced
//!                                  compare   a page of every acknowledged commit has what it must have
//! ```
//!
//! redb and LMDB have no log: they are killed after as many bytes of pages, and have nothing to redo.
//!
//! Times begin before the engine is opened. I/Os are counted where they are made: the page store's by itself, SQLite's by
//! the VFS shim, all others' in the kernel by the process source. Where nobody counts they are unknown.
//!
//! Another engine in files is a file beside these with `write` and `recover`, a variant of [`Engine`] with its name, and an
//! arm of its `files` and of `victim::of`; a server is another `Victim`.

mod child;
mod copy;
mod emulated;
mod engine;
mod mariadb;
mod own_io;
mod pagestore;
mod peer;
mod postgres;
mod recoveries;
mod server;
mod sqlite;
mod steps;
mod stoppable;
mod victim;
mod work;

pub use engine::{Engine, Strategy};
pub use work::Work;

use crate::Error;
use ::pagestore::RecoveryProgress;
use experiments::{EmulatedDisk, LeftOut, RecoverStudy};
use headroom_sqlite::Registry;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use steps::Steps;
use work::Order;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A directory that is there, for this experiment alone; what is made in it stays for its maker to remove.
    pub dir: PathBuf,
    /// This program: told `lab recover-writer ENGINE DIR` and the numbers of [`Work`], it is to call [`write`]; told
    /// `luns serve`, to serve an emulated disk.
    pub program: PathBuf,
    /// What is written before the crash.
    pub work: Work,
    /// Who crashes.
    pub engines: Vec<Engine>,
    /// How those are recovered that have a choice.
    pub strategies: Vec<Strategy>,
    /// I/Os in flight at once where a strategy is wide.
    pub parallel: usize,
    /// The disk that the image is recovered on, instead of the directory's own.
    pub emulated: Option<EmulatedDisk>,
}

/// Where the experiment is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// "pagestore: serial, 40 %".
    pub doing: String,
    /// What is left of all steps, where there is something to go by.
    pub left: Option<Duration>,
}

/// What all steps need.
struct Run<'a> {
    plan: &'a Plan,
    order: Order,
    registry: &'static Registry,
    stop: &'static AtomicBool,
    /// How far the recovery that runs is, where it tells.
    progress: Mutex<Option<RecoveryProgress>>,
}

impl Run<'_> {
    /// How far the recovery that runs is.
    fn tell(&self, progress: Option<RecoveryProgress>) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    fn told(&self) -> Option<RecoveryProgress> {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the program does that is killed.
///
/// # Errors
/// Whatever keeps it from being killed at work.
pub fn write(engine: Engine, dir: &Path, work: Work) -> Result<Infallible, Error> {
    child::work(engine, dir, &work.order())
}

/// Does the experiment. Ends early, with what was measured, once `stop` is set. `explain` makes a line of why an engine
/// could not be had: it is left out, and told.
///
/// # Errors
/// What goes wrong within a step; [`Error::Wrong`] where a page has not what it must have.
pub fn run(
    plan: &Plan,
    registry: &'static Registry,
    stop: &'static AtomicBool,
    tell: &mut (dyn FnMut(&Progress) + Send),
    explain: impl Fn(Error) -> String,
) -> Result<RecoverStudy, Error> {
    let work = plan.work;
    let run = Run { plan, order: work.order(), registry, stop, progress: Mutex::default() };
    let mut study = RecoverStudy {
        dir: plan.dir.display().to_string(),
        emulated: plan.emulated,
        pages: work.pages,
        data_pages: work.data_pages,
        log_bytes: work.log_bytes,
        results: Vec::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
    };
    let mut steps = Steps::new(plan, tell);
    for engine in plan.engines.iter().copied() {
        if stop.load(Relaxed) {
            break;
        }
        let dir = plan.dir.join(engine.name());
        fs::create_dir(&dir).map_err(|source| Error::Io { doing: "make", path: dir.clone(), source })?;
        let done = match victim::of(engine, &run, &dir) {
            Ok(mut victim) => recoveries::all(engine, victim.as_mut(), &dir, &run, &mut steps, &mut study),
            Err(error) => {
                steps.leave_out(engine);
                study.left_out.push(LeftOut { engine: engine.name().into(), why: explain(error) });
                Ok(())
            }
        };
        // The next one needs the room.
        let removed = fs::remove_dir_all(&dir);
        done?;
        removed.map_err(|source| Error::Io { doing: "remove", path: dir, source })?;
    }
    Ok(study)
}
