//! One crashed workload, recovered in several ways: when the engine serves again, and when all is where it belongs.
//!
//! ```text
//! run(plan) ── for each engine ──> crash     its files made, then scattered pages written, 64 a commit, until the log
//!                                            has its length and SIGKILL comes: child.rs, or a server's processes
//!    for each strategy:            copy      the same crashed image, thrown out of the page cache
//!                                  recover   open ─> first read ─> first write ─> all in the data file, synced
//!                                  check     a page of every acknowledged commit has what it must have
//! ```
//!
//! redb and LMDB have no log: they are killed after as many bytes of pages, and have nothing to redo.
//!
//! Times begin before the engine is opened. I/Os are counted where they are made: the page store's between it and its
//! files, SQLite's by the VFS shim, a server's by the process source. Where nobody counts they are unknown.
//!
//! Another engine in files is a file beside these with `write` and `recover`, a variant of [`Engine`] with its name, and an
//! arm of its `files` and of [`victim`]; a server is another [`Victim`].

mod child;
mod copy;
mod counted;
mod emulated;
mod engine;
mod own_io;
mod pagestore;
mod peer;
mod postgres;
mod sqlite;
mod steps;
mod work;

pub use engine::{Engine, Strategy};
pub use work::Work;

use crate::Error;
use engine::Lacks;
use experiments::{EmulatedDisk, RecoverResult, RecoverStudy, RecoveryIo};
use filestats::{Figure, Reason};
use headroom_sqlite::Registry;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use steps::{Doing, Steps, TELL};
use work::{Crash, Order};

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

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// All that was measured.
    pub study: RecoverStudy,
    /// Engines that could not be used, and why.
    pub left_out: Vec<(Engine, Error)>,
}

/// Where the experiment is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// "pagestore: serial, 40 %".
    pub doing: String,
    /// What is left of all steps, where there is something to go by.
    pub left: Option<Duration>,
}

/// Tells how much of it is done, 0 to 1.
type Tell<'a> = dyn FnMut(Doing, f64) + 'a;

/// What all steps need.
struct Run<'a> {
    plan: &'a Plan,
    order: Order,
    registry: &'static Registry,
    stop: &'static AtomicBool,
    /// Bytes of pages that the recovery that runs has written, where it tells.
    written: Arc<AtomicU64>,
}

/// What one recovery gave.
struct Recovered {
    opened: Duration,
    first_read: Duration,
    first_write: Duration,
    full: Duration,
    pages_left: Figure<u64>,
    checked: u64,
    io: RecoveryIo,
    counted_by: String,
    /// What must be known to read its I/Os.
    notes: Vec<String>,
}

/// Someone who is crashed and opened again.
trait Victim: Send {
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

/// What the program does that is killed.
///
/// # Errors
/// Whatever keeps it from being killed at work.
pub fn write(engine: Engine, dir: &Path, work: Work) -> Result<Infallible, Error> {
    child::work(engine, dir, &work.order())
}

/// Does the experiment. Ends early, with what was measured, once `stop` is set.
///
/// # Errors
/// What goes wrong within a step; [`Error::Wrong`] where a page has not what it must have. An engine that cannot be
/// had is left out, and told.
pub fn run(
    plan: &Plan,
    registry: &'static Registry,
    stop: &'static AtomicBool,
    tell: &mut (dyn FnMut(&Progress) + Send),
) -> Result<Outcome, Error> {
    let work = plan.work;
    let run = Run { plan, order: work.order(), registry, stop, written: Arc::default() };
    let mut study = RecoverStudy {
        dir: plan.dir.display().to_string(),
        emulated: plan.emulated,
        pages: work.pages,
        data_pages: work.data_pages,
        log_bytes: work.log_bytes,
        results: Vec::new(),
        notes: Vec::new(),
    };
    let mut left_out = Vec::new();
    let mut steps = Steps::new(plan, tell);
    for engine in plan.engines.iter().copied() {
        if stop.load(Relaxed) {
            break;
        }
        let dir = plan.dir.join(engine.name());
        fs::create_dir(&dir).map_err(|source| Error::Io { doing: "make", path: dir.clone(), source })?;
        let mut crashed = match victim(engine, &run, &dir) {
            Ok(victim) => victim,
            Err(error) => {
                steps.leave_out(engine);
                left_out.push((engine, error));
                continue;
            }
        };
        let done = one(engine, crashed.as_mut(), &dir, &run, &mut steps, &mut study);
        add_notes(&mut study, crashed.notes());
        drop(crashed);
        // The next one needs the room.
        let removed = fs::remove_dir_all(&dir);
        done?;
        removed.map_err(|source| Error::Io { doing: "remove", path: dir, source })?;
    }
    Ok(Outcome { study, left_out })
}

/// One engine: the crash, and its recoveries.
fn one(
    engine: Engine,
    victim: &mut dyn Victim,
    dir: &Path,
    run: &Run,
    steps: &mut Steps<'_>,
    study: &mut RecoverStudy,
) -> Result<(), Error> {
    let image = dir.join("image");
    fs::create_dir_all(&image).map_err(|source| Error::Io { doing: "make", path: image.clone(), source })?;
    steps.begin(engine, Doing::Making);
    let Some(crash) = victim.crash(&image, run, &mut |doing, share| steps.tell(doing, share))? else {
        return Ok(());
    };
    steps.end();
    let log_bytes = engine.files().and_then(|files| files.log_bytes).map(|log_bytes| log_bytes(&image));
    let crash = Crash { log_bytes: log_bytes.unwrap_or(crash.log_bytes), ..crash };
    let strategies = engine.strategies(run.plan);
    // Whether it came to its end: not where the experiment was ended.
    let mut recover = |strategy, place: &Path| -> Result<bool, Error> {
        if place != image {
            steps.say(engine, Doing::Copying);
            copy::copy(&image, place)?;
        }
        if run.stop.load(Relaxed) {
            return Ok(false);
        }
        copy::evict(place)?;
        run.written.store(0, Relaxed);
        steps.begin(engine, Doing::Recovering(strategy));
        let pages = run.order.pages_written(&crash);
        let recovered = watched(&mut || victim.recover(place, strategy, &crash, run), &mut || {
            let share = run.written.load(Relaxed) as f64 / (pages * engine.page_bytes()).max(1) as f64;
            steps.tell(Doing::Recovering(strategy), share.min(1.0));
        });
        match recovered {
            Ok(recovered) => {
                add_notes(study, recovered.notes.clone());
                study.results.push(result(engine, strategy, pages, &crash, recovered));
            }
            Err(_) if run.stop.load(Relaxed) => return Ok(false),
            Err(error) => return Err(error),
        }
        steps.end();
        Ok(true)
    };
    let mut all = |copies: &Path, move_last: bool| -> Result<(), Error> {
        for (at, strategy) in strategies.iter().enumerate() {
            // The last may have the image itself.
            let last = at + 1 == strategies.len();
            let place = if last && move_last { image.clone() } else { copies.join("copy") };
            if !recover(*strategy, &place)? {
                break;
            }
            let removed = fs::remove_dir_all(&place);
            removed.map_err(|source| Error::Io { doing: "remove", path: place, source })?;
        }
        Ok(())
    };
    match run.plan.emulated {
        Some(disk) => {
            let bytes = engine.image_bytes(&run.order.work);
            emulated::on(disk, bytes, dir, run, &mut |mounted| all(mounted, false))
        }
        None => all(dir, true),
    }
}

/// Works in a thread, and tells now and then meanwhile.
fn watched<T: Send>(
    work: &mut (dyn FnMut() -> Result<T, Error> + Send),
    tell: &mut dyn FnMut(),
) -> Result<T, Error> {
    thread::scope(|scope| {
        let worker = scope.spawn(work);
        while !worker.is_finished() {
            tell();
            thread::sleep(TELL / 5);
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Each once.
fn add_notes(study: &mut RecoverStudy, notes: Vec<String>) {
    for note in notes {
        if !study.notes.contains(&note) {
            study.notes.push(note);
        }
    }
}

fn result(
    engine: Engine,
    strategy: Strategy,
    pages: u64,
    crash: &Crash,
    recovered: Recovered,
) -> RecoverResult {
    RecoverResult {
        engine: engine.name().into(),
        strategy: strategy.name().into(),
        opened_s: recovered.opened.as_secs_f64(),
        first_read_s: recovered.first_read.as_secs_f64(),
        first_write_s: recovered.first_write.as_secs_f64(),
        full_s: recovered.full.as_secs_f64(),
        pages: match engine.lacks() {
            Lacks::All => Figure::Known(pages),
            Lacks::Nothing => Figure::Known(0),
            Lacks::Unknown => Figure::unknown(Reason::NotCounted),
        },
        page_bytes: engine.page_bytes(),
        pages_left: recovered.pages_left,
        log_bytes: crash.log_bytes,
        commits: crash.commits,
        checked: recovered.checked,
        io: recovered.io,
        counted_by: recovered.counted_by,
    }
}

/// An engine in files: it writes in a child and is opened in this program.
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

/// Who is crashed, in a directory of its own.
fn victim(engine: Engine, run: &Run, dir: &Path) -> Result<Box<dyn Victim>, Error> {
    match engine {
        // What is not installed is said before anything is made.
        Engine::Lmdb => available(engine, peers::Engine::Lmdb, dir),
        Engine::Rocksdb => available(engine, peers::Engine::Rocksdb, dir),
        Engine::Pagestore | Engine::SqliteWal | Engine::Redb => Ok(Box::new(OfFiles(engine))),
        Engine::Postgres => Ok(Box::new(postgres::Postgres::initialise(dir, &run.order.work)?)),
    }
}

/// An engine whose library is looked for when it is used first.
fn available(engine: Engine, peer: peers::Engine, dir: &Path) -> Result<Box<dyn Victim>, Error> {
    let trial = dir.join("trial");
    let failed = |doing| {
        let path = trial.clone();
        move |source| Error::Io { doing, path, source }
    };
    fs::create_dir(&trial).map_err(failed("make"))?;
    drop(peer.open(&trial)?);
    fs::remove_dir_all(&trial).map_err(failed("remove"))?;
    Ok(Box::new(OfFiles(engine)))
}

/// A page has not what it must have.
fn wrong(engine: Engine, strategy: Strategy) -> impl Fn(String) -> Error {
    move |what| Error::Wrong { engine: engine.name(), strategy: strategy.name(), what }
}
