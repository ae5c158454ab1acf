use super::{chosen, directory};
use crate::{counted_sqlite, lab_failure};
use ::lab::commit::{Engine, Outcome, Plan, run as experiment};
use collect::SqlTarget;
use experiments::Durability;
use std::path::{Path, PathBuf};
use storage::{StorageError, Target};
use terminal::{Done, FINE, Failure, Output, SourceName, interrupt, kept, no_answer, page};
use workload::{format_bytes, format_count};

/// Arguments of `headroom lab commit`.
#[derive(clap::Args)]
#[command(after_help = "\
Each row is one INSERT (or put) of one integer. pagestore, SQLite, redb, LMDB and RocksDB run
in this program, the last two where their libraries are installed; PostgreSQL and MariaDB are
started in DIR and removed again, or named by --source. Everything made lies in
DIR/headroom.tmp/; headroom storage clean removes what a killed run left there.

Examples:
  headroom lab commit /data                            1, 10, 100, ... rows a commit, all engines
  headroom lab commit /data --batch 1,all --engine pagestore,sqlite-wal --html commits.html
  headroom lab commit /data --durability full,delayed --engine postgres
  headroom lab commit . --engine postgres --source postgres:host=/run/postgresql

Exit codes: 0 fine, 3 an engine that was asked for could not be used.")]
pub struct CommitArgs {
    /// Directory on the storage in question
    #[arg(default_value = ".", value_name = "DIR")]
    dir: PathBuf,
    /// Rows that each engine inserts for each batch
    #[arg(long, default_value_t = 15_000, value_parser = clap::value_parser!(u64).range(1..=ROWS_MAX), value_name = "N")]
    rows: u64,
    /// Rows a commit, a list; all is one commit of all rows [default: 1,10,100,... and all]
    #[arg(long, value_delimiter = ',', value_parser = batch, value_name = "LIST")]
    batch: Vec<Batch>,
    /// Engines, a list of pagestore, pagestore-asleep, sqlite-rollback, sqlite-wal, redb, lmdb, rocksdb, postgres,
    /// mariadb [default: all]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    engine: Vec<Engine>,
    /// When commits are acknowledged, a list: full (the log is on the storage), delayed (before that)
    #[arg(long, value_delimiter = ',', default_value = "full", value_parser = durability, value_name = "LIST")]
    durability: Vec<Durability>,
    /// A server to use instead of one of our own: postgres:CONNECTION or mysql:CONNECTION
    #[arg(long, value_name = "SOURCE", value_parser = collect::parse_source_argument)]
    source: Vec<SourceName>,
    /// Also write the answer as a page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Row numbers have four bytes.
const ROWS_MAX: u64 = 1_000_000_000;

/// Rows a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Batch {
    Rows(u64),
    All,
}

fn batch(text: &str) -> Result<Batch, String> {
    match text {
        "all" => Ok(Batch::All),
        _ => match text.parse() {
            Ok(rows @ 1..) => Ok(Batch::Rows(rows)),
            _ => Err(format!("'{text}' is not a number of rows; give 1, 10, ... or all")),
        },
    }
}

fn durability(text: &str) -> Result<Durability, String> {
    match text {
        "full" => Ok(Durability::Full),
        "delayed" => Ok(Durability::Delayed),
        _ => Err("give full, delayed or both".into()),
    }
}

/// `headroom lab commit`.
pub fn run(args: &CommitArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let batches = batches(args)?;
    let [postgres, mariadb] = named_servers(&args.source)?;
    let engines = chosen(&args.engine, &Engine::ALL);
    for (server, engine) in [(&postgres, Engine::Postgres), (&mariadb, Engine::Mariadb)] {
        if server.is_some() && !engines.contains(&engine) {
            let name = engine.name();
            let message = format_args!("--source names a server of {name}, which --engine leaves out");
            return Err(Failure::usage(message).with_remedy(format_args!("{name} in --engine too")));
        }
    }
    page::check(args.html.as_deref())?;
    let target = Target::open(&args.dir)?;
    let mut history = kept::open_to_write(history)?;
    interrupt::install();
    let mut workspace = crate::workspace::open(target.path(), &mut history, out)?;
    workspace.require_private_path()?;
    let is_named = |engine: &Engine| match engine {
        Engine::Postgres => postgres.is_some(),
        Engine::Mariadb => mariadb.is_some(),
        _ => false,
    };
    let here = || engines.iter().filter(|engine| !is_named(engine));
    let needed = here().map(|engine| engine.bytes_max(args.rows)).sum();
    workspace.check_room(needed).map_err(|error| no_room(error, args.rows, here().count(), needed))?;
    let starts_servers = here().any(|engine| engine.is_server());
    let dir = directory(&workspace, "lab-commit", starts_servers)?;
    let durabilities = chosen(&args.durability, &[]);
    let plan = Plan { dir, rows: args.rows, batches, durabilities, engines, postgres, mariadb };

    let done = experiment(&plan, counted_sqlite()?, interrupt::flag(), &mut |progress| {
        out.progress(&progress.doing, progress.left);
    });
    terminal::workspace::remove(workspace, out)?;
    let Outcome { mut study, left_out } = done.map_err(lab_failure)?;
    study.dir = target.path().display().to_string();
    let lacking = left_out.len();
    for (engine, error) in left_out {
        let failure = lab_failure(error);
        study.notes.push(format!("{} was left out: {failure}", engine.name()));
    }
    let version = env!("CARGO_PKG_VERSION");
    out.answer(
        |style| renderings::text::commits(&study, style),
        || renderings::json::commits(&study, version),
    );
    let page = || renderings::html::commits(&study, &page::command_line(), version);
    page::write(args.html.as_deref(), page, out)?;
    let asked_for = !args.engine.is_empty();
    Ok(if study.results.is_empty() || (asked_for && lacking > 0) { no_answer() } else { FINE })
}

/// The failure for missing disk space, with what this experiment needs.
fn no_room(error: StorageError, rows: u64, engines: usize, needed: u64) -> Failure {
    let StorageError::NoRoom { path, free_bytes, reserve_bytes, .. } = error else { return error.into() };
    let (engines, fewer) = match engines {
        1 => ("an engine".to_owned(), ""),
        many => (format!("{many} engines"), " or engines (--engine)"),
    };
    let (needed, rows) = (format_bytes(needed), format_count(rows));
    Failure::new(format_args!("cannot insert {rows} rows in {}: there is not enough room", path.display()))
        .with_fact(format_args!("{engines} may take up to: {needed}"))
        .with_fact(format_args!("free: {}", format_bytes(free_bytes)))
        .with_fact(format_args!("kept free for others: {}", format_bytes(reserve_bytes)))
        .with_remedy(format_args!("fewer --rows{fewer}, or another directory"))
}

/// The requested batches, or 1, 10, 100 and so on up to all rows.
fn batches(args: &CommitArgs) -> Result<Vec<u64>, Failure> {
    let mut batches: Vec<u64> = Vec::new();
    for batch in &args.batch {
        match batch {
            Batch::All => batches.push(args.rows),
            Batch::Rows(rows) if *rows <= args.rows => batches.push(*rows),
            Batch::Rows(rows) => {
                let message = format_args!("--batch {rows} is more than all rows ({})", args.rows);
                return Err(Failure::usage(message).with_remedy("more --rows, or --batch all"));
            }
        }
    }
    let tenfold =
        std::iter::successors(Some(1), |batch| Some(batch * 10)).take_while(|batch| *batch < args.rows);
    Ok(chosen(&batches, &tenfold.chain([args.rows]).collect::<Vec<u64>>()))
}

/// The PostgreSQL server and the MariaDB server to use, where they are named.
fn named_servers(sources: &[SourceName]) -> Result<[Option<String>; 2], Failure> {
    let mut named = [None, None];
    for source in sources {
        let (at, connection) = match &source.sql_target {
            Some(SqlTarget::Postgres(connection)) => (0, connection),
            Some(SqlTarget::Mysql(connection)) => (1, connection),
            Some(SqlTarget::Sqlite(_)) | None => {
                return Err(Failure::usage(format_args!(
                    "{source} is not a server that rows can be committed to"
                ))
                .with_remedy("postgres:CONNECTION or mysql:CONNECTION"));
            }
        };
        if named[at].replace(connection.clone()).is_some() {
            return Err(Failure::usage("one server of a kind, please: --source names two"));
        }
    }
    Ok(named)
}
