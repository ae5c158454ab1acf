//! Rows of one integer, inserted one by one and committed in batches, by several engines: what the log is asked for.
//!
//! ```text
//! run(plan) ── for each engine ──> Engine::open ─> Committer      a fresh directory; a server of its own, or the one named
//!    for each durability, batch:   begin()     an empty table, after a checkpoint
//!                                  counters()  ┐
//!                                  commit()    │ one INSERT a row; time until the last commit is acknowledged
//!                                  settle()    │ what was acknowledged early becomes durable
//!                                  counters()  ┘ -> IoFigures of the log and of the data
//! ```
//!
//! The I/Os are counted, never reckoned: SQLite's by the VFS shim, the page store's between it and its files, all others'
//! by the process source. Where that may not count they are unknown, and a note says why.
//!
//! Another engine is a file beside these with a [`Committer`] in it, a variant of [`Engine`] and an arm of its `open`.

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

/// Progress is told this often.
const TELL: Duration = Duration::from_millis(100);

/// Who commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// SQLite with its default journal, deleted after each commit; every commit synced.
    SqliteRollback,
    /// SQLite with a write-ahead log.
    SqliteWal,
    /// Our page store.
    Pagestore,
    /// It, with the processor left to sleep while a commit waits for its write, as that of the others is.
    PagestoreAsleep,
    /// An embedded engine of others.
    Embedded(peers::Engine),
    /// PostgreSQL.
    Postgres,
    /// MariaDB, or MySQL where its address is given.
    Mariadb,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A directory that is there, for this experiment alone; what is made in it stays for its maker to remove.
    pub dir: PathBuf,
    /// Rows of each step.
    pub rows: u64,
    /// Rows a commit.
    pub batches: Vec<u64>,
    /// When commits are acknowledged.
    pub durabilities: Vec<Durability>,
    /// Who commits.
    pub engines: Vec<Engine>,
    /// A PostgreSQL server to be used instead of one of our own.
    pub postgres: Option<String>,
    /// A MySQL or MariaDB server.
    pub mariadb: Option<String>,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// All that was measured.
    pub study: CommitStudy,
    /// Engines that could not be used, and why.
    pub left_out: Vec<(Engine, Error)>,
}

/// Where the experiment is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// "sqlite-wal: 10 rows a commit, 40 %".
    pub doing: String,
    /// What is left of all steps, where there is something to go by.
    pub left: Option<Duration>,
}

/// An engine that rows are committed to. [`begin`](Committer::begin) comes first.
trait Committer {
    /// Makes an empty table, and a state in which nothing but the rows makes I/O.
    fn begin(&mut self, durability: Durability) -> Result<(), Error>;

    /// Inserts these numbers, a row each, in one transaction, and returns when the commit is acknowledged.
    fn commit(&mut self, rows: Range<u64>) -> Result<(), Error>;

    /// Makes durable what was acknowledged.
    fn settle(&mut self) -> Result<(), Error>;

    /// The counters of its files; `None` where nobody counts.
    fn counters(&mut self) -> Result<Option<Snapshot>, Error>;

    /// Whether a file that is counted belongs to the table of this step.
    fn is_counted(&self, _file: &FileInterval) -> bool {
        true
    }

    /// The table is not needed any more.
    fn end(&mut self) -> Result<(), Error>;

    /// What must be known to read its figures.
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

    /// As people write it.
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

    /// Space that its steps need at most, a server's own files where it is one of ours.
    pub fn bytes_max(self, rows: u64) -> u64 {
        // A row with its share of pages, logs and journals.
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

    /// Each commit waits for the data files as well, or for them alone.
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

    /// Why it cannot commit so durably.
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
        let found = Engine::ALL.into_iter().find(|engine| engine.name() == text);
        let all = Engine::ALL.map(Engine::name).join(", ");
        found.ok_or_else(|| format!("there is no engine '{text}'; give {all}"))
    }
}

/// Does the experiment. Ends early, with what was measured, once `stop` is set.
///
/// # Errors
/// What goes wrong within a step. An engine that cannot be opened is left out, and told.
pub fn run(
    plan: &Plan,
    registry: &'static Registry,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Outcome, Error> {
    let mut study =
        CommitStudy { dir: plan.dir.display().to_string(), rows: plan.rows, results: vec![], notes: vec![] };
    let mut left_out = Vec::new();
    let mut to_come: Vec<(Engine, Durability, u64)> = Vec::new();
    for engine in &plan.engines {
        for durability in &plan.durabilities {
            match engine.lacks(*durability, plan) {
                Some(why) => study.notes.push(format!("{} {why}", engine.name())),
                None => to_come.extend(plan.batches.iter().map(|batch| (*engine, *durability, *batch))),
            }
        }
    }
    to_come.reverse();
    let mut pace = Pace::default();
    for engine in &plan.engines {
        if stop.load(Relaxed) {
            break;
        }
        tell(&Progress { doing: format!("{}: starting", engine.name()), left: None });
        let mut committer = match engine.open(plan, registry) {
            Ok(committer) => committer,
            Err(error) => {
                to_come.retain(|(other, ..)| other != engine);
                left_out.push((*engine, error));
                continue;
            }
        };
        while let Some((_, durability, batch)) = to_come.pop_if(|(next, ..)| next == engine) {
            let step = step_of(plan, *engine, durability, batch);
            let later: Vec<Step> = to_come.iter().map(|(e, d, b)| step_of(plan, *e, *d, *b)).collect();
            let mut told = |done: u64, elapsed_s: f64| {
                let share = done as f64 / plan.rows.max(1) as f64;
                let left = pace.left_s(&step, share, elapsed_s, &later).filter(|left| *left < 1e9);
                let rows = if batch == 1 { "1 row".into() } else { format!("{batch} rows") };
                let doing = format!("{}: {rows} a commit, {:.0} %", step.name, share * 100.0);
                tell(&Progress { doing, left: left.map(Duration::from_secs_f64) });
            };
            let Some(result) =
                measure(plan, *engine, durability, batch, committer.as_mut(), stop, &mut told)?
            else {
                break;
            };
            pace.took(step, result.seconds);
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

fn step_of(plan: &Plan, engine: Engine, durability: Durability, batch: u64) -> Step {
    let name = match durability {
        Durability::Full => engine.name().to_owned(),
        Durability::Delayed => format!("{}, delayed", engine.name()),
    };
    Step { name, commits: plan.rows.div_ceil(batch), rows: plan.rows }
}

/// One step; `None` where it was ended before its end.
fn measure(
    plan: &Plan,
    engine: Engine,
    durability: Durability,
    batch: u64,
    committer: &mut dyn Committer,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(u64, f64),
) -> Result<Option<CommitResult>, Error> {
    tell(0, 0.0);
    committer.begin(durability)?;
    let before = committer.counters()?;
    let (began, mut told) = (Instant::now(), Instant::now());
    let (mut next, mut commits) = (0, 0);
    while next < plan.rows {
        let end = (next + batch).min(plan.rows);
        committer.commit(next..end)?;
        (next, commits) = (end, commits + 1);
        if told.elapsed() >= TELL {
            if stop.load(Relaxed) {
                committer.end()?;
                return Ok(None);
            }
            told = Instant::now();
            tell(next, began.elapsed().as_secs_f64());
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    if durability == Durability::Delayed {
        committer.settle()?;
    }
    let (log, data) = match (before, committer.counters()?) {
        (Some(before), Some(after)) => {
            let mut files = intervals(&before, &after, Rules::default());
            files.retain(|file| committer.is_counted(file));
            let log = IoFigures::of(&files, &[FileKind::Log, FileKind::Journal]);
            (log, IoFigures::of(&files, &[FileKind::Data]))
        }
        _ => (IoFigures::unknown(Reason::NotCounted), IoFigures::unknown(Reason::NotCounted)),
    };
    committer.end()?;
    Ok(Some(CommitResult {
        engine: engine.name().to_owned(),
        durability,
        batch,
        rows: plan.rows,
        commits,
        seconds,
        log,
        data,
        waits_for_data: engine.waits_for_data(),
    }))
}

/// An engine's processes, counted in the kernel; or why they are not.
#[derive(Debug)]
struct Processes {
    source: Option<Process>,
    notes: Vec<String>,
}

impl Processes {
    /// Of its first process, which is not known where the server is on another machine.
    fn of(engine: &str, pid: Option<u32>) -> Processes {
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
        for note in crate::notes_of_requests(&snapshot) {
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
    fn every_engine_is_known_by_its_name() {
        for engine in Engine::ALL {
            assert_eq!(engine.name().parse(), Ok(engine));
        }
        assert!("sqlite".parse::<Engine>().unwrap_err().contains("sqlite-wal"));
    }
}
