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
//! Times begin before the engine is opened. I/Os are counted where they are made: the page store's between it and its
//! files, SQLite's by the VFS shim, a server's by the process source. Where nobody counts they are unknown.
//!
//! Another engine of files is a file beside these with `write` and `recover`, a variant of [`Engine`] and an arm of its
//! `files`; a server is another [`Victim`].

mod child;
mod copy;
mod counted;
mod emulated;
mod pagestore;
mod postgres;
mod sqlite;
mod work;

pub use work::Work;

use crate::Error;
use child::Teller;
use experiments::{EmulatedDisk, Pace, RecoverResult, RecoverStudy, RecoveryIo, Step};
use filestats::Figure;
use headroom_sqlite::Registry;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use work::{Crash, Order};

/// Progress is told this often.
const TELL: Duration = Duration::from_millis(100);

/// Who crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The page store of this program.
    Pagestore,
    /// SQLite with a write-ahead log.
    SqliteWal,
    /// PostgreSQL.
    Postgres,
}

/// How it is recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Serves at once; pages are written in the background.
    Instant,
    /// All places known first, many writes at once, one sync.
    Wide,
    /// The log in large reads, then page by page, one sync.
    Prefetch,
    /// Small reads, page by page, many syncs.
    Serial,
    /// The one way that the engine has.
    Own,
}

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

/// What an engine's step is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Making,
    Copying,
    Recovering(Strategy),
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
}

/// An engine in files that this program works on itself.
struct Files {
    /// Makes the data file, then commits until it is killed.
    write: fn(&Path, &Order, &mut Teller) -> Result<Infallible, Error>,
    recover: fn(&Path, Strategy, &Crash, &Run) -> Result<Recovered, Error>,
    strategies: &'static [Strategy],
    page_bytes: u64,
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

impl Engine {
    /// All, in the order in which they are shown.
    pub const ALL: [Engine; 3] = [Engine::Pagestore, Engine::SqliteWal, Engine::Postgres];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Pagestore => "pagestore",
            Engine::SqliteWal => "sqlite-wal",
            Engine::Postgres => "postgres",
        }
    }

    /// What it needs to be worked on; `None` of a server.
    fn files(self) -> Option<Files> {
        match self {
            Engine::Pagestore => Some(pagestore::FILES),
            Engine::SqliteWal => Some(sqlite::FILES),
            Engine::Postgres => None,
        }
    }

    /// The ways in which it can be recovered, of those that were asked for.
    fn strategies(self, plan: &Plan) -> Vec<Strategy> {
        let has = self.files().map_or(&[Strategy::Own][..], |files| files.strategies);
        match has {
            [Strategy::Own] => vec![Strategy::Own],
            has => plan.strategies.iter().copied().filter(|strategy| has.contains(strategy)).collect(),
        }
    }

    /// Whether it can be recovered on a disk that was made for that.
    pub fn can_be_moved(self) -> bool {
        self.files().is_some()
    }

    /// Bytes of one of its pages.
    fn page_bytes(self) -> u64 {
        self.files().map_or(postgres::PAGE_BYTES, |files| files.page_bytes)
    }

    /// Disk space that its part of the experiment needs, at most.
    pub fn room_bytes(self, plan: &Plan) -> u64 {
        let image = self.image_bytes(&plan.work);
        let copies = u64::from(plan.emulated.is_some() || self.strategies(plan).len() > 1);
        let server = if self.files().is_none() { SERVER_BYTES } else { 0 };
        image * (1 + copies) + server
    }

    fn image_bytes(self, work: &Work) -> u64 {
        // Logs are made in pieces, and grow on while the kill is on its way.
        work.data_pages * self.page_bytes() * 21 / 20 + work.log_bytes * 3 / 2 + SLACK_BYTES
    }

    fn victim(self, run: &Run, dir: &Path) -> Result<Box<dyn Victim>, Error> {
        match self {
            Engine::Pagestore | Engine::SqliteWal => Ok(Box::new(OfFiles(self))),
            Engine::Postgres => Ok(Box::new(postgres::Postgres::initialise(dir, &run.order.work)?)),
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
    pub const ALL: [Strategy; 4] = [Strategy::Instant, Strategy::Wide, Strategy::Prefetch, Strategy::Serial];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Instant => "instant",
            Strategy::Wide => "wide",
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
        let mut victim = match engine.victim(&run, &dir) {
            Ok(victim) => victim,
            Err(error) => {
                steps.leave_out(engine);
                left_out.push((engine, error));
                continue;
            }
        };
        let done = one(engine, victim.as_mut(), &dir, &run, &mut steps, &mut study.results);
        study.notes.extend(victim.notes());
        drop(victim);
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
    results: &mut Vec<RecoverResult>,
) -> Result<(), Error> {
    let image = dir.join("image");
    fs::create_dir_all(&image).map_err(|source| Error::Io { doing: "make", path: image.clone(), source })?;
    steps.begin(engine, Doing::Making);
    let Some(crash) = victim.crash(&image, run, &mut |doing, share| steps.tell(doing, share))? else {
        return Ok(());
    };
    steps.end();
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
            Ok(recovered) => results.push(result(engine, strategy, pages, &crash, recovered)),
            Err(_) if run.stop.load(Relaxed) => return Ok(false),
            Err(error) => return Err(error),
        }
        steps.end();
        Ok(true)
    };
    match run.plan.emulated {
        Some(disk) => emulated::on(disk, engine.image_bytes(&run.order.work), dir, run, &mut |mounted| {
            for strategy in &strategies {
                let place = mounted.join("copy");
                if !recover(*strategy, &place)? {
                    break;
                }
                fs::remove_dir_all(&place).map_err(|source| Error::Io {
                    doing: "remove",
                    path: place,
                    source,
                })?;
            }
            Ok(())
        }),
        None => {
            for (at, strategy) in strategies.iter().enumerate() {
                // The last may have the image itself.
                let place = if at + 1 == strategies.len() { image.clone() } else { dir.join("copy") };
                if !recover(*strategy, &place)? {
                    break;
                }
                fs::remove_dir_all(&place).map_err(|source| Error::Io {
                    doing: "remove",
                    path: place,
                    source,
                })?;
            }
            Ok(())
        }
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
        pages,
        page_bytes: engine.page_bytes(),
        pages_left: recovered.pages_left,
        log_bytes: crash.log_bytes,
        commits: crash.commits,
        checked: recovered.checked,
        io: recovered.io,
        counted_by: recovered.counted_by,
    }
}

/// The steps of the experiment and how long they take.
struct Steps<'a> {
    report: &'a mut (dyn FnMut(&Progress) + Send),
    pace: Pace,
    to_come: Vec<(Engine, Step)>,
    running: Option<(Engine, Step, Instant)>,
    told: Instant,
}

impl<'a> Steps<'a> {
    fn new(plan: &Plan, report: &'a mut (dyn FnMut(&Progress) + Send)) -> Steps<'a> {
        let pages = plan.work.pages;
        let step =
            |engine: Engine, doing| (engine, Step { name: name(engine, doing), commits: pages, rows: pages });
        let to_come = plan.engines.iter().flat_map(|engine| {
            let recoveries = engine.strategies(plan).into_iter().map(Doing::Recovering);
            [Doing::Making]
                .into_iter()
                .chain(recoveries)
                .map(|doing| step(*engine, doing))
                .collect::<Vec<_>>()
        });
        Steps {
            to_come: to_come.collect(),
            report,
            pace: Pace::default(),
            running: None,
            told: Instant::now(),
        }
    }

    fn begin(&mut self, engine: Engine, doing: Doing) {
        let name = name(engine, doing);
        let found = self.to_come.iter().position(|(other, step)| *other == engine && step.name == name);
        self.running =
            found.map(|at| self.to_come.remove(at)).map(|(engine, step)| (engine, step, Instant::now()));
        self.told = Instant::now();
        self.report(doing, 0.0);
    }

    fn tell(&mut self, doing: Doing, share: f64) {
        if self.told.elapsed() >= TELL {
            self.told = Instant::now();
            self.report(doing, share);
        }
    }

    fn report(&mut self, doing: Doing, share: f64) {
        let Some((engine, step, began)) = &self.running else { return };
        let later: Vec<Step> = self.to_come.iter().map(|(_, step)| step.clone()).collect();
        let left = self.pace.left_s(step, share, began.elapsed().as_secs_f64(), &later);
        let mut doing = name(*engine, doing);
        if share > 0.0 {
            doing.push_str(&format!(", {:.0} %", share * 100.0));
        }
        let left = left.filter(|left| *left < 1e9).map(Duration::from_secs_f64);
        (self.report)(&Progress { doing, left });
    }

    /// Something short beside the steps.
    fn say(&mut self, engine: Engine, doing: Doing) {
        (self.report)(&Progress { doing: name(engine, doing), left: None });
    }

    fn end(&mut self) {
        if let Some((_, step, began)) = self.running.take() {
            self.pace.took(step, began.elapsed().as_secs_f64());
        }
    }

    fn leave_out(&mut self, engine: Engine) {
        self.to_come.retain(|(other, _)| *other != engine);
    }
}

fn name(engine: Engine, doing: Doing) -> String {
    let engine = engine.name();
    match doing {
        Doing::Making => format!("{engine}: writing until it is killed"),
        Doing::Copying => format!("{engine}: copying the crashed image"),
        Doing::Recovering(Strategy::Own) => format!("{engine}: recovering"),
        Doing::Recovering(strategy) => format!("{engine}: recovering, {}", strategy.name()),
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

/// A page has not what it must have.
fn wrong(engine: Engine, strategy: Strategy) -> impl Fn(String) -> Error {
    move |what| Error::Wrong { engine: engine.name(), strategy: strategy.name(), what }
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
