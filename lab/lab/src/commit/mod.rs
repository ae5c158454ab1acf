//! Rows of one integer, inserted one by one and committed in batches by several engines: the I/Os of their logs.
//!
//! ```text
//! run(plan) ── for each engine ──> Engine::open ─> Committer      a directory; a server of our own, or the named one
//!    for each durability, batch:   begin()     an empty table, after a checkpoint
//!                                  counters()  ┐
//!                                  commit()    │ one INSERT a row; time until the last commit is acknowledged
//!                                  settle()    │ early acknowledged commits become durable
//!                                  counters()  ┘ -> IoFigures of the log and of the data
//! ```
//!
//! The I/Os are counted, never estimated: SQLite's by the VFS shim, the page store's between it and its files, all others'
//! by the process source. Where that is not permitted to count they are unknown, and a note gives the reason.
//!
//! To add an engine: a file with a [`Committer`], a variant of [`Engine`] and an arm of its `open`.

mod embedded;
mod engine;
mod mariadb;
mod pagestore;
mod postgres;
mod processes;
mod sqlite;

pub use engine::Engine;

use crate::{Error, Progress, add_notes};
use experiments::{CommitResult, CommitStudy, Durability, IoFigures, Pace, Step};
use filestats::{FileKind, Reason, Rules, Snapshot, intervals};
use processes::Processes;
use sqlite_vfs::Registry;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Progress is reported this often.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// The experiment to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// An existing directory for this experiment alone. The caller removes what is left in it.
    pub dir: PathBuf,
    /// Rows of each step.
    pub rows: u64,
    /// Rows a commit.
    pub batches: Vec<u64>,
    /// When commits are acknowledged.
    pub durabilities: Vec<Durability>,
    /// The engines.
    pub engines: Vec<Engine>,
    /// A PostgreSQL server to use instead of one of our own.
    pub postgres: Option<String>,
    /// A MySQL or MariaDB server to use instead of one of our own.
    pub mariadb: Option<String>,
}

/// The results.
#[derive(Debug)]
pub struct Outcome {
    /// All that was measured.
    pub study: CommitStudy,
    /// Engines that could not be used, and why.
    pub left_out: Vec<(Engine, Error)>,
}

/// A session with an engine. [`begin`](Committer::begin) comes first.
trait Committer {
    /// Creates an empty table and a state in which only the rows cause I/O. An engine in this program has it in the empty
    /// directory, which is removed after the step.
    fn begin(&mut self, dir: &Path, durability: Durability) -> Result<(), Error>;

    /// Inserts these numbers, a row each, in one transaction, and returns when the commit is acknowledged.
    fn commit(&mut self, rows: Range<u64>) -> Result<(), Error>;

    /// Makes acknowledged commits durable.
    fn settle(&mut self) -> Result<(), Error>;

    /// The counters of its files; `None` where they are not counted.
    fn counters(&mut self) -> Result<Option<Snapshot>, Error>;

    /// Drops the table.
    fn end(&mut self) -> Result<(), Error>;

    /// Notes for reading its figures.
    fn notes(&self) -> Vec<String>;
}

/// One measurement: an engine inserts all rows with one durability and batch size.
#[derive(Clone, Copy)]
struct Measurement {
    engine: Engine,
    durability: Durability,
    batch: u64,
    rows: u64,
}

/// Runs the experiment. `stop` ends it early with what was measured. An engine that cannot be opened is left out.
///
/// # Errors
/// A step fails.
pub fn run(
    plan: &Plan,
    registry: &'static Registry,
    stop: &AtomicBool,
    report: &mut dyn FnMut(&Progress),
) -> Result<Outcome, Error> {
    let mut study =
        CommitStudy { dir: plan.dir.display().to_string(), rows: plan.rows, results: vec![], notes: vec![] };
    let mut left_out = Vec::new();
    let mut to_come = measurements(plan, &mut study.notes);
    let mut pace = Pace::default();
    for engine in &plan.engines {
        if stop.load(Relaxed) {
            break;
        }
        report(&Progress { doing: format!("{}: starting", engine.name()), left: None });
        let mut committer = match engine.open(plan, registry) {
            Ok(committer) => committer,
            Err(error) => {
                to_come.retain(|next| next.engine != *engine);
                left_out.push((*engine, error));
                continue;
            }
        };
        let mut steps = 0;
        while let Some(measurement) = to_come.pop_if(|next| next.engine == *engine) {
            steps += 1;
            let step = measurement.step();
            let later: Vec<Step> = to_come.iter().map(Measurement::step).collect();
            let mut report_rows = |done: u64, elapsed_s: f64| {
                let share = done as f64 / plan.rows.max(1) as f64;
                let left = pace.left_s(&step, share, elapsed_s, &later).filter(|left| *left < 1e9);
                let doing = measurement.describe(share);
                report(&Progress { doing, left: left.map(Duration::from_secs_f64) });
            };
            let dir = plan.dir.join(engine.name()).join(steps.to_string());
            fs::create_dir(&dir).map_err(Error::io("make", &dir))?;
            let result = measurement.run(&dir, committer.as_mut(), stop, &mut report_rows)?;
            fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))?;
            let Some(result) = result else { break };
            pace.record(step, result.seconds);
            study.results.push(result);
            if stop.load(Relaxed) {
                break;
            }
        }
        add_notes(&mut study.notes, committer.notes());
    }
    Ok(Outcome { study, left_out })
}

/// All measurements of a plan, the first one last. What an engine cannot do becomes a note.
fn measurements(plan: &Plan, notes: &mut Vec<String>) -> Vec<Measurement> {
    let rows = plan.rows;
    let mut all = Vec::new();
    for &engine in &plan.engines {
        for &durability in &plan.durabilities {
            match engine.lacks(durability, plan) {
                Some(why) => notes.push(format!("{} {why}", engine.name())),
                None => all.extend(plan.batches.iter().map(|&batch| Measurement {
                    engine,
                    durability,
                    batch,
                    rows,
                })),
            }
        }
    }
    all.reverse();
    all
}

impl Measurement {
    fn step(&self) -> Step {
        let name = match self.durability {
            Durability::Full => self.engine.name().to_owned(),
            Durability::Delayed => format!("{}, delayed", self.engine.name()),
        };
        Step { name, commits: self.rows.div_ceil(self.batch), rows: self.rows }
    }

    /// "sqlite-wal: 10 rows a commit, 40 %".
    fn describe(&self, share: f64) -> String {
        let rows = if self.batch == 1 { "1 row".into() } else { format!("{} rows", self.batch) };
        format!("{}: {rows} a commit, {:.0} %", self.step().name, share * 100.0)
    }

    /// `None` if it was stopped. `report` receives the rows inserted and the seconds since the first.
    fn run(
        self,
        dir: &Path,
        committer: &mut dyn Committer,
        stop: &AtomicBool,
        report: &mut dyn FnMut(u64, f64),
    ) -> Result<Option<CommitResult>, Error> {
        report(0, 0.0);
        committer.begin(dir, self.durability)?;
        let before = committer.counters()?;
        let (began, mut reported) = (Instant::now(), Instant::now());
        let (mut next, mut commits) = (0, 0);
        while next < self.rows {
            let end = (next + self.batch).min(self.rows);
            committer.commit(next..end)?;
            (next, commits) = (end, commits + 1);
            if reported.elapsed() >= REPORT_INTERVAL {
                if stop.load(Relaxed) {
                    committer.end()?;
                    return Ok(None);
                }
                reported = Instant::now();
                report(next, began.elapsed().as_secs_f64());
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        if self.durability == Durability::Delayed {
            committer.settle()?;
        }
        let (log, data) = match (before, committer.counters()?) {
            (Some(before), Some(after)) => {
                let mut files = intervals(&before, &after, Rules::default());
                files.retain(|row| self.engine.is_server() || Path::new(&row.file.path).starts_with(dir));
                let log = IoFigures::from_intervals(&files, &[FileKind::Log, FileKind::Journal]);
                (log, IoFigures::from_intervals(&files, &[FileKind::Data]))
            }
            _ => (IoFigures::unknown(Reason::NotCounted), IoFigures::unknown(Reason::NotCounted)),
        };
        committer.end()?;
        Ok(Some(CommitResult {
            engine: self.engine.name().to_owned(),
            durability: self.durability,
            batch: self.batch,
            rows: self.rows,
            commits,
            seconds,
            log,
            data,
            waits_for_data: self.engine.waits_for_data(),
        }))
    }
}
