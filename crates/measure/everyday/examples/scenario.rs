//! A program that uses SQLite, as a user might have one: `scenario KIND --database PATH …`.
//!
//! ```text
//! idle      one client, 20 small commits and 30 point reads a second
//! readers   32 clients read random rows of a database that the page cache does not hold, flat out
//! commits   one client commits one row after the other, flat out
//! few       20 reads in the whole time
//! ```
//!
//! With `--extension PATH` it first loads an SQLite extension, which may make itself the default VFS and so
//! see the I/O of every connection after it. It says `ready` when it has started, and at the end in one
//! line of JSON what it did.

use everyday::{PageCache, Random, database};
use rusqlite::{Connection, params};
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: scenario idle|readers|commits|few --database PATH (--prepare | --seconds N)
  --clients K       connections that read (readers; default 32)
  --rows R          rows of 8 KiB to make (with --prepare; default 65536 for readers, else 4096)
  --extension PATH  an SQLite extension to load first";

const PAGE_BYTES: u32 = 8192;
/// One row fills a leaf page: a read of a random row is a read of a random page.
const ROW_BYTES: usize = 7_900;
const COMMIT_BYTES: usize = 100;
const FEW_READS: u32 = 20;
/// `idle` takes a step every 20 ms: of five, two commit and three read.
const IDLE_STEP: Duration = Duration::from_millis(20);
const EVICT_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq)]
enum Scenario {
    Idle,
    Readers,
    Commits,
    Few,
}

struct Arguments {
    scenario: Scenario,
    name: String,
    database: PathBuf,
    seconds: Option<f64>,
    clients: u32,
    rows: Option<u64>,
    extension: Option<PathBuf>,
    prepare: bool,
}

#[derive(Clone, Copy, Default)]
struct Done {
    reads: u64,
    commits: u64,
}

type Failure = Box<dyn Error + Send + Sync>;

fn main() {
    let outcome = parse(std::env::args().skip(1)).map_err(|error| (2, error)).and_then(|arguments| {
        let done = if arguments.prepare { prepare(&arguments) } else { run(&arguments).map(drop) };
        done.map_err(|error| (3, error))
    });
    if let Err((exit, error)) = outcome {
        eprintln!("error: {error}");
        std::process::exit(exit);
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Arguments, Failure> {
    let name = arguments.next().ok_or(USAGE)?;
    let scenario = match name.as_str() {
        "idle" => Scenario::Idle,
        "readers" => Scenario::Readers,
        "commits" => Scenario::Commits,
        "few" => Scenario::Few,
        _ => return Err(USAGE.into()),
    };
    let (mut database, mut seconds, mut clients, mut rows) = (None, None, 32, None);
    let (mut extension, mut prepare) = (None, false);
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{flag} needs a value\n{USAGE}"));
        match flag.as_str() {
            "--database" => database = Some(PathBuf::from(value()?)),
            "--extension" => extension = Some(PathBuf::from(value()?)),
            "--seconds" => seconds = Some(value()?.parse()?),
            "--clients" => clients = value()?.parse()?,
            "--rows" => rows = Some(value()?.parse()?),
            "--prepare" => prepare = true,
            _ => return Err(format!("unknown argument {flag}\n{USAGE}").into()),
        }
    }
    let database = database.ok_or(USAGE)?;
    if !prepare && !seconds.is_some_and(|seconds: f64| seconds > 0.0 && seconds <= 86_400.0) {
        return Err(format!("--seconds must be above 0 and up to 86400\n{USAGE}").into());
    }
    if clients == 0 || clients > 1_024 || rows == Some(0) {
        return Err(format!("--clients must be 1 to 1024 and --rows at least 1\n{USAGE}").into());
    }
    Ok(Arguments { scenario, name, database, seconds, clients, rows, extension, prepare })
}

fn prepare(arguments: &Arguments) -> Result<(), Failure> {
    let default = if arguments.scenario == Scenario::Readers { 65_536 } else { 4_096 };
    let rows = arguments.rows.unwrap_or(default);
    database::create(&arguments.database, None, PAGE_BYTES, |connection| {
        let transaction = connection.transaction()?;
        transaction.execute_batch(
            "CREATE TABLE items (id INTEGER PRIMARY KEY, payload BLOB NOT NULL);
             CREATE TABLE events (id INTEGER PRIMARY KEY, payload BLOB NOT NULL);",
        )?;
        let mut random = Random::new(1);
        {
            let mut insert = transaction.prepare("INSERT INTO items (payload) VALUES (?)")?;
            for _ in 0..rows {
                insert.execute(params![random.bytes(ROW_BYTES)])?;
            }
        }
        transaction.commit()
    })?;
    println!("{{\"scenario\":\"{}\",\"prepared_rows\":{rows}}}", arguments.name);
    Ok(())
}

fn run(arguments: &Arguments) -> Result<Done, Failure> {
    // Outlives every connection: see `PageCache`.
    let cache = PageCache::open(&arguments.database)?;
    // Kept open, so that the extension stays loaded.
    let _loader = arguments.extension.as_deref().map(load).transpose()?;
    let path = arguments.database.as_path();
    let clients = if arguments.scenario == Scenario::Readers { arguments.clients } else { 1 };
    let connections =
        (0..clients).map(|_| database::open(path, None)).collect::<Result<Vec<Connection>, _>>()?;
    let rows: i64 = connections[0].query_row("SELECT max(id) FROM items", [], |row| row.get(0))?;
    let rows = rows.cast_unsigned();
    cache.evict()?;
    println!("ready");
    std::io::stdout().flush()?;

    let started = Instant::now();
    let duration = Duration::from_secs_f64(arguments.seconds.unwrap_or(0.0));
    let end = started + duration;
    let done = match (arguments.scenario, &connections[..]) {
        (Scenario::Idle, [connection, ..]) => idle(connection, rows, end)?,
        (Scenario::Commits, [connection, ..]) => commits(connection, end)?,
        (Scenario::Few, [connection, ..]) => few(connection, rows, started, duration)?,
        _ => readers(connections, rows, &cache, end)?,
    };
    println!(
        "{{\"scenario\":\"{}\",\"seconds\":{:.3},\"clients\":{clients},\"rows\":{rows},\"reads\":{},\"commits\":{}}}",
        arguments.name,
        started.elapsed().as_secs_f64(),
        done.reads,
        done.commits
    );
    Ok(done)
}

fn load(extension: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open_in_memory()?;
    // SAFETY: the user named the library to be run; loading is switched off again before any SQL is.
    unsafe {
        connection.load_extension_enable()?;
        connection
            .load_extension(extension, None::<&str>)
            .map_err(|error| format!("cannot load the extension {}: {error}", extension.display()))?;
    }
    connection.load_extension_disable()?;
    Ok(connection)
}

fn idle(connection: &Connection, rows: u64, end: Instant) -> rusqlite::Result<Done> {
    let mut random = Random::new(2);
    let mut done = Done::default();
    let mut next = Instant::now();
    for step in 0_u64.. {
        if next >= end {
            break;
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
        if step % 5 < 2 {
            commit(connection, &mut random)?;
            done.commits += 1;
        } else {
            read(connection, rows, &mut random)?;
            done.reads += 1;
        }
        // A step that took longer than its time delays the others; none is made up for.
        next = (next + IDLE_STEP).max(Instant::now());
    }
    Ok(done)
}

fn commits(connection: &Connection, end: Instant) -> rusqlite::Result<Done> {
    let mut random = Random::new(2);
    let mut done = Done::default();
    while Instant::now() < end {
        commit(connection, &mut random)?;
        done.commits += 1;
    }
    Ok(done)
}

fn few(connection: &Connection, rows: u64, started: Instant, duration: Duration) -> rusqlite::Result<Done> {
    let mut random = Random::new(2);
    for step in 0..FEW_READS {
        let at = started + duration * step / FEW_READS;
        thread::sleep(at.saturating_duration_since(Instant::now()));
        read(connection, rows, &mut random)?;
    }
    thread::sleep((started + duration).saturating_duration_since(Instant::now()));
    Ok(Done { reads: u64::from(FEW_READS), commits: 0 })
}

fn readers(
    connections: Vec<Connection>,
    rows: u64,
    cache: &PageCache,
    end: Instant,
) -> Result<Done, Failure> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let evictor = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                cache.evict()?;
                thread::park_timeout(EVICT_EVERY);
            }
            Ok::<(), everyday::Error>(())
        });
        let clients: Vec<_> = connections
            .into_iter()
            .zip(0_u64..)
            .map(|(connection, number)| {
                scope.spawn(move || {
                    let mut random = Random::new(number);
                    let mut reads = 0;
                    while Instant::now() < end {
                        read(&connection, rows, &mut random)?;
                        reads += 1;
                    }
                    Ok::<u64, rusqlite::Error>(reads)
                })
            })
            .collect();
        let counts: Vec<_> = clients.into_iter().map(|client| client.join().expect("no panic")).collect();
        over.store(true, Ordering::Relaxed);
        evictor.thread().unpark();
        evictor.join().expect("no panic")?;
        let reads = counts.into_iter().sum::<rusqlite::Result<u64>>()?;
        Ok(Done { reads, commits: 0 })
    })
}

fn read(connection: &Connection, rows: u64, random: &mut Random) -> rusqlite::Result<()> {
    let row = 1 + random.below(rows);
    let mut select = connection.prepare_cached("SELECT payload FROM items WHERE id = ?")?;
    select.query_row([row.cast_signed()], |row| row.get::<_, Vec<u8>>(0)).map(drop)
}

/// Outside a transaction, so that the statement is its own commit.
fn commit(connection: &Connection, random: &mut Random) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached("INSERT INTO events (payload) VALUES (?)")?;
    insert.execute(params![random.bytes(COMMIT_BYTES)]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(scenario: &str) -> (tempfile::TempDir, impl Fn(&[&str]) -> Done) {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("items.db").display().to_string();
        let name = scenario.to_string();
        let arguments = move |more: &[&str]| {
            let all = [&[name.as_str(), "--database", &database], more].concat();
            parse(all.into_iter().map(Into::into)).unwrap()
        };
        prepare(&arguments(&["--prepare", "--rows", "500"])).unwrap();
        (dir, move |more: &[&str]| run(&arguments(more)).unwrap())
    }

    fn events(dir: &tempfile::TempDir) -> u64 {
        let connection = database::open(&dir.path().join("items.db"), None).unwrap();
        let count: i64 = connection.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
        count.cast_unsigned()
    }

    #[test]
    fn idle_keeps_to_twenty_commits_and_thirty_reads_a_second() {
        let (dir, run) = prepared("idle");
        let done = run(&["--seconds", "1"]);
        assert!(
            done.commits <= 20 && done.reads <= 30 && done.commits > 0,
            "{} {}",
            done.commits,
            done.reads
        );
        assert_eq!(events(&dir), done.commits);
    }

    #[test]
    fn commits_says_how_many_rows_there_are_now() {
        let (dir, run) = prepared("commits");
        let done = run(&["--seconds", "0.2"]);
        assert!(done.commits > 0);
        assert_eq!((events(&dir), done.reads), (done.commits, 0));
    }

    #[test]
    fn few_reads_twenty_times_whatever_the_time() {
        let (dir, run) = prepared("few");
        assert_eq!(run(&["--seconds", "0.3"]).reads, 20);
        assert_eq!(events(&dir), 0);
    }

    #[test]
    fn readers_read_and_write_nothing() {
        let (dir, run) = prepared("readers");
        let done = run(&["--seconds", "0.3", "--clients", "4"]);
        assert!(done.reads > 4);
        assert_eq!((events(&dir), done.commits), (0, 0));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for wrong in [
            "",
            "nothing --database d --seconds 1",
            "idle --seconds 1",
            "idle --database d",
            "idle --database d --seconds 0",
            "idle --database d --seconds NaN",
            "few --database d --clients 0",
        ] {
            assert!(parse(wrong.split_whitespace().map(Into::into)).is_err(), "{wrong}");
        }
    }
}
