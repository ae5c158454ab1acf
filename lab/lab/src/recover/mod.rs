//! One crashed workload, recovered with several strategies: when the engine serves again, and when all pages are written.
//!
//! ```text
//! run(plan) ── for each engine ──> crash     create its files, write scattered pages, 64 a commit, until the log has
//!                                            its length, then SIGKILL: child.rs, or a server's processes: server.rs
//!    for each strategy:            copy      the same crashed image, evicted from the page cache
//!    (recoveries.rs)               recover   open ─> first read ─> first write ─> all in the data file, synced
//!                                  compare   a page of every acknowledged commit has its content
//! ```
//!
//! redb and LMDB have no log: they are killed after the same number of bytes of pages, and have nothing to redo.
//!
//! Times begin before the engine is opened. The page store counts its own I/Os, the VFS shim those of SQLite, the process
//! source those of all others in the kernel. Without a counter they are unknown.
//!
//! To add an engine in files: a file with `write` and `recover`, a variant of [`Engine`] with its name, and its
//! arms. A server is another `Victim`.

mod child;
mod copy;
mod emulated;
mod engine;
mod mariadb;
mod pagestore;
mod peer;
mod postgres;
mod process_io;
mod recoveries;
mod server;
mod sqlite;
mod steps;
mod stoppable;
mod victim;
mod work;

pub use engine::Engine;
pub use experiments::Strategy;
pub use work::Work;

use crate::{Error, Progress};
use ::pagestore::RecoveryProgress;
use experiments::{EmulatedDisk, LeftOut, RecoverStudy};
use recoveries::Recoveries;
use sqlite_vfs::Registry;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use steps::Steps;
use work::Order;

/// The experiment to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// An existing directory for this experiment alone. The caller removes what is left in it.
    pub dir: PathBuf,
    /// This program: with the arguments `lab recover-writer ENGINE DIR` and the numbers of [`Work`] it must call [`write`],
    /// with `luns serve` it must serve an emulated disk.
    pub program: PathBuf,
    /// The workload before the crash.
    pub work: Work,
    /// The engines to crash.
    pub engines: Vec<Engine>,
    /// Strategies for engines that offer several.
    pub strategies: Vec<Strategy>,
    /// I/Os in flight at the same time where a strategy is wide.
    pub parallel: usize,
    /// A disk to recover the image on, instead of the directory's own.
    pub emulated: Option<EmulatedDisk>,
}

/// Values shared by all steps.
struct Context<'a> {
    plan: &'a Plan,
    order: Order,
    registry: &'static Registry,
    stop: &'static AtomicBool,
    /// Progress of the running recovery, if it reports any.
    last_progress: Mutex<Option<RecoveryProgress>>,
}

impl Context<'_> {
    fn set_progress(&self, progress: Option<RecoveryProgress>) {
        *self.last_progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    fn progress(&self) -> Option<RecoveryProgress> {
        *self.last_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The work of the process that is killed: it returns only with an error.
///
/// # Errors
/// The engine fails, or is a server.
pub fn write(engine: Engine, dir: &Path, work: Work) -> Result<Infallible, Error> {
    let order = work.order();
    match engine {
        Engine::Pagestore => pagestore::write(dir, &order),
        Engine::SqliteWal => sqlite::write(dir, &order),
        Engine::Embedded(engine) => peer::write(engine, dir, &order),
        Engine::Postgres | Engine::Mariadb => {
            Err(Error::Writer { engine: engine.name(), why: "has a server of its own that is killed".into() })
        }
    }
}

/// Runs the experiment. `stop` ends it early with what was measured. An unavailable engine is left out, with the reason
/// that `explain` makes of its error.
///
/// # Errors
/// A step fails; [`Error::Wrong`] if a page has not its content.
pub fn run(
    plan: &Plan,
    registry: &'static Registry,
    stop: &'static AtomicBool,
    report: &mut (dyn FnMut(&Progress) + Send),
    explain: impl Fn(Error) -> String,
) -> Result<RecoverStudy, Error> {
    let work = plan.work;
    let run = Context { plan, order: work.order(), registry, stop, last_progress: Mutex::default() };
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
    let mut steps = Steps::new(plan, report);
    for engine in plan.engines.iter().copied() {
        if stop.load(Relaxed) {
            break;
        }
        let dir = plan.dir.join(engine.name());
        crate::private_directory(&dir)?;
        let done = match engine.open_victim(&run, &dir) {
            Ok(mut victim) => Recoveries {
                engine,
                victim: victim.as_mut(),
                run: &run,
                steps: &mut steps,
                study: &mut study,
            }
            .run(&dir),
            Err(error) => {
                steps.leave_out(engine);
                study.left_out.push(LeftOut { engine: engine.name().into(), why: explain(error) });
                Ok(())
            }
        };
        // The next engine needs the space.
        let removed = fs::remove_dir_all(&dir);
        done?;
        removed.map_err(Error::io("remove", &dir))?;
    }
    Ok(study)
}
