//! Rows of one integer, inserted one by one and committed in batches by several engines: the I/Os of their logs.
//!
//! ```text
//! run(plan) ── for each engine ──> Engine::open ─> Committer      a new directory; a server of our own, or the named one
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
mod mariadb;
mod pagestore;
mod postgres;
mod sqlite;

use crate::Error;
use ::pagestore::KeepAwake;
use collect::Source;
use collect::process::{Process, Selection};
use experiments::{CommitResult, CommitStudy, Durability, IoFigures, Pace, Step};
use filestats::{FileInterval, FileKind, Reason, Rules, Snapshot, intervals};
use headroom_sqlite::Registry;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Progress is reported this often.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// An engine that commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// SQLite with its default journal, deleted after each commit; every commit synced.
    SqliteRollback,
    /// SQLite with a write-ahead log.
    SqliteWal,
    /// Our page store.
    Pagestore,
    /// Our page store without polling: as in the other engines, the processor may sleep while a commit waits for its write.
    PagestoreAsleep,
    /// Another embedded engine.
    Embedded(peers::Engine),
    /// PostgreSQL.
    Postgres,
    /// MariaDB, or the MySQL server that is named.
    Mariadb,
}

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

/// Progress of the experiment.
#[derive(Clone, Debug)]
pub struct Progress {
    /// "sqlite-wal: 10 rows a commit, 40 %".
    pub doing: String,
    /// Time left of all steps, once it can be estimated.
    pub left: Option<Duration>,
}

/// A session with an engine. [`begin`](Committer::begin) comes first.
trait Committer {
    /// Creates an empty table and a state in which only the rows cause I/O.
    fn begin(&mut self, durability: Durability) -> Result<(), Error>;

    /// Inserts these numbers, a row each, in one transaction, and returns when the commit is acknowledged.
    fn commit(&mut self, rows: Range<u64>) -> Result<(), Error>;

    /// Makes acknowledged commits durable.
    fn settle(&mut self) -> Result<(), Error>;

    /// The counters of its files; `None` where they are not counted.
    fn counters(&mut self) -> Result<Option<Snapshot>, Error>;

    /// Whether a counted file belongs to the table of this step.
    fn is_counted(&self, _file: &FileInterval) -> bool {
        true
    }

    /// Drops the table.
    fn end(&mut self) -> Result<(), Error>;

    /// Notes for reading its figures.
    fn notes(&self) -> Vec<String>;
}

impl Engine {
    /// All, in the order in which they are shown.
    pub const ALL: [Engine; 9] = [
        Engine::Pagestore,
        Engine::PagestoreAsleep,
        Engine::SqliteRollback,
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
            Engine::SqliteRollback => "sqlite-rollback",
            Engine::SqliteWal => "sqlite-wal",
            Engine::Pagestore => "pagestore",
            Engine::PagestoreAsleep => "pagestore-asleep",
            Engine::Embedded(engine) => engine.name(),
            Engine::Postgres => "postgres",
            Engine::Mariadb => "mariadb",
        }
    }

    /// The most space that its steps need, with a server's own files if we start it.
    pub fn bytes_max(self, rows: u64) -> u64 {
        // A row and its share of pages, logs and journals.
        const ROW_BYTES: u64 = 512;
        rows * ROW_BYTES
            + match self {
                Engine::SqliteRollback | Engine::SqliteWal => 0,
                Engine::Pagestore | Engine::PagestoreAsleep => pagestore::log_bytes(rows),
                // RocksDB reserves its log.
                Engine::Embedded(_) => 96 << 20,
                Engine::Postgres | Engine::Mariadb => 512 << 20,
            }
    }

    /// Whether each commit waits for the data files, with or without a log.
    fn waits_for_data(self) -> bool {
        match self {
            Engine::SqliteRollback => true,
            Engine::Embedded(engine) => !engine.has_log(),
            Engine::SqliteWal
            | Engine::Pagestore
            | Engine::PagestoreAsleep
            | Engine::Postgres
            | Engine::Mariadb => false,
        }
    }

    /// Why it cannot commit with this durability; `None` if it can.
    fn lacks(self, durability: Durability, plan: &Plan) -> Option<&'static str> {
        match (self, durability) {
            (_, Durability::Full) => None,
            (Engine::SqliteRollback, _) => {
                Some("has no delayed durability: without its syncs a crash may destroy the database")
            }
            (Engine::PagestoreAsleep, _) => {
                Some("is pagestore, where commits are delayed: none of them waits for a write")
            }
            (Engine::Mariadb, _) if plan.mariadb.is_some() => {
                Some("delays all of a server's commits or none: that is not switched on a server of others")
            }
            _ => None,
        }
    }

    fn open(self, plan: &Plan, registry: &'static Registry) -> Result<Box<dyn Committer>, Error> {
        let dir = plan.dir.join(self.name());
        fs::create_dir(&dir).map_err(|source| Error::Io { doing: "make", path: dir.clone(), source })?;
        Ok(match self {
            Engine::SqliteRollback => {
                Box::new(sqlite::Sqlite::open(dir, sqlite::Journal::Rollback, registry))
            }
            Engine::SqliteWal => Box::new(sqlite::Sqlite::open(dir, sqlite::Journal::WriteAhead, registry)),
            Engine::Pagestore | Engine::PagestoreAsleep => {
                let keep_awake = if self == Engine::Pagestore { KeepAwake::Auto } else { KeepAwake::Never };
                Box::new(pagestore::Pagestore::open(dir, plan.rows, keep_awake))
            }
            Engine::Embedded(engine) => Box::new(embedded::Embedded::open(dir, engine)?),
            Engine::Postgres => Box::new(postgres::Postgres::open(&dir, plan.postgres.as_deref())?),
            Engine::Mariadb => Box::new(mariadb::Mariadb::open(&dir, plan.mariadb.as_deref())?),
        })
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
        while let Some(measurement) = to_come.pop_if(|next| next.engine == *engine) {
            let step = measurement.step();
            let later: Vec<Step> = to_come.iter().map(Measurement::step).collect();
            let mut report_rows = |done: u64, elapsed_s: f64| {
                let share = done as f64 / plan.rows.max(1) as f64;
                let left = pace.left_s(&step, share, elapsed_s, &later).filter(|left| *left < 1e9);
                let doing = measurement.describe(share);
                report(&Progress { doing, left: left.map(Duration::from_secs_f64) });
            };
            let Some(result) = measurement.run(committer.as_mut(), stop, &mut report_rows)? else { break };
            pace.record(step, result.seconds);
            study.results.push(result);
            if stop.load(Relaxed) {
                break;
            }
        }
        for note in committer.notes() {
            if !study.notes.contains(&note) {
                study.notes.push(note);
            }
        }
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
        committer: &mut dyn Committer,
        stop: &AtomicBool,
        report: &mut dyn FnMut(u64, f64),
    ) -> Result<Option<CommitResult>, Error> {
        report(0, 0.0);
        committer.begin(self.durability)?;
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
                files.retain(|file| committer.is_counted(file));
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

/// The I/Os of an engine's processes, counted in the kernel, or notes why they are not.
#[derive(Debug)]
struct Processes {
    source: Option<Process>,
    notes: Vec<String>,
}

impl Processes {
    /// Opens them by the first process, which is unknown if the server is on another machine.
    fn open(engine: &str, pid: Option<u32>) -> Processes {
        let none = |why: String| Processes {
            source: None,
            notes: vec![format!("the writes and syncs of {engine} are not counted: {why}")],
        };
        let Some(pid) = pid else { return none("its processes are not found on this machine".into()) };
        match Process::open(&Selection { pids: vec![pid], ..Selection::default() }) {
            Ok(source) => Processes { source: Some(source), notes: Vec::new() },
            Err(error) => {
                let remedy = error.remedy().map_or(String::new(), |remedy| format!(" ({remedy})"));
                none(format!("{error}{remedy}"))
            }
        }
    }

    fn counters(&mut self) -> Result<Option<Snapshot>, Error> {
        let Some(source) = &mut self.source else { return Ok(None) };
        let snapshot = source.snapshot()?;
        for note in source.request_notes(&snapshot) {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        Ok(Some(snapshot))
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
