//! Runs the same work on two copies of one database, one through the shim, in blocks of A B B A, and
//! prints the ratio of the times. The order within a block cancels slow drifts of the machine; the result is the
//! median over the blocks. Started by `scripts/bench vfs`.

use rusqlite::{Connection, OpenFlags, ffi};
use sqlite_vfs::{Publish, Registry, SqliteFunctions, VFS_NAME, register};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const ROWS: u64 = 100_000;
const OPERATIONS: u64 = 8_000;
/// Blocks that a pair of processes runs before a new pair replaces it: a process's placement in memory changes its
/// speed by a few per cent.
const BLOCKS_A_PAIR: u64 = 8;

struct Workload {
    name: &'static str,
    /// SQLite's page cache in pages; its default is 500 of 4 KiB.
    cache_pages: u32,
    updates_percent: u64,
}

const WORKLOADS: [Workload; 3] = [
    Workload { name: "everyday: 90 % reads, 10 % updates", cache_pages: 500, updates_percent: 10 },
    Workload { name: "reads, default cache", cache_pages: 500, updates_percent: 0 },
    Workload { name: "worst: reads, no page cache", cache_pages: 1, updates_percent: 0 },
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["run-one", mode, number, dir] => {
            run_one(*mode == "counted", &WORKLOADS[number.parse::<usize>()?], dir)
        }
        [] => compare("/dev/shm", 10),
        [parent] => compare(parent, 10),
        [parent, pairs] => compare(parent, pairs.parse()?),
        _ => Err("usage: cost_of_counting [DIRECTORY] [PAIRS]".into()),
    }
}

fn compare(parent: &str, pairs: u64) -> Result<()> {
    let dir = tempfile::tempdir_in(parent)?;
    println!("one clock read: {:.1} ns", clock_read_ns());
    println!(
        "{OPERATIONS} operations a run on {ROWS} rows in {parent}, {pairs} pairs of processes, each {BLOCKS_A_PAIR} blocks of A B B A"
    );
    println!();
    println!(
        "{:<36} {:>10} {:>10} {:>9} {:>9} {:>17}",
        "workload", "plain", "counted", "vfs calls", "cost", "middle half"
    );
    for (number, workload) in WORKLOADS.iter().enumerate() {
        let (mut ratios, mut sums, mut calls) = (Vec::new(), [0.0; 2], 0);
        for pair in 0..pairs {
            let mut plain = Runner::start("plain", number, dir.path())?;
            let mut counted = Runner::start("counted", number, dir.path())?;
            // Warms caches, the WAL and the branch predictors.
            for seed in 0..2 {
                plain.run(seed)?;
                counted.run(seed)?;
            }
            for block in 0..BLOCKS_A_PAIR {
                let first = 2 * (pair * BLOCKS_A_PAIR + block);
                let a = plain.run(first)?;
                let b = counted.run(first)?;
                let b_again = counted.run(first + 1)?;
                let a_again = plain.run(first + 1)?;
                let (a, b) = (a.seconds + a_again.seconds, b.seconds + b_again.seconds);
                ratios.push(b / a);
                sums = [sums[0] + a, sums[1] + b];
                calls = b_again.calls;
            }
        }
        ratios.sort_by(f64::total_cmp);
        let operations = (2 * pairs * BLOCKS_A_PAIR * OPERATIONS) as f64;
        let percent = |at: f64| 100.0 * (ratios[((ratios.len() - 1) as f64 * at) as usize] - 1.0);
        println!(
            "{:<36} {:>7.2} us {:>7.2} us {:>9.2} {:>+7.2} % {:>+7.2}..{:+.2} %",
            workload.name,
            sums[0] / operations * 1e6,
            sums[1] / operations * 1e6,
            calls as f64 / OPERATIONS as f64,
            percent(0.5),
            percent(0.25),
            percent(0.75),
        );
    }
    Ok(())
}

/// A process that runs the work with the shim or without it. Two connections in one process would share SQLite's
/// page cache (SQLITE_ENABLE_MEMORY_MANAGEMENT) and take pages from each other.
struct Runner {
    child: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

struct Timing {
    seconds: f64,
    calls: u64,
}

impl Runner {
    fn start(mode: &str, number: usize, dir: &Path) -> Result<Runner> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["run-one", mode, &number.to_string()]).arg(dir);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe")?).lines();
        Ok(Runner { child, answers })
    }

    fn run(&mut self, seed: u64) -> Result<Timing> {
        writeln!(self.child.stdin.as_mut().ok_or("no pipe")?, "{seed}")?;
        let answer = self.answers.next().ok_or("the process ended early")??;
        let (seconds, calls) = answer.split_once(' ').ok_or("a strange answer")?;
        Ok(Timing { seconds: seconds.parse()?, calls: calls.parse()? })
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Creates the database, then runs once for each seed that it reads.
fn run_one(counted: bool, workload: &Workload, dir: &str) -> Result<()> {
    let name = if counted { "counted" } else { "plain" };
    let path = Path::new(dir)
        .join(format!("{name}-{}.db", workload.updates_percent + u64::from(workload.cache_pages)));
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    let registry = counted.then(|| shim(Path::new(dir)));
    let database = prepared(&path, registry.map(|_| VFS_NAME), workload)?;
    let calls = || registry.map_or(0, calls);
    for seed in std::io::stdin().lines() {
        let before = calls();
        let seconds = timed(&database, workload, seed?.parse()?)?;
        println!("{seconds} {}", calls() - before);
    }
    Ok(())
}

fn prepared(path: &Path, vfs: Option<&str>, workload: &Workload) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::default();
    let database = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs)?,
        None => Connection::open_with_flags(path, flags)?,
    };
    database.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size={};
         CREATE TABLE item(id INTEGER PRIMARY KEY, price INTEGER, name TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         INSERT INTO item SELECT i, i % 997, printf('%0200d', i) FROM n;
         PRAGMA wal_checkpoint(TRUNCATE);",
        workload.cache_pages
    ))?;
    Ok(database)
}

/// Seconds of one run. Equal seeds select equal rows.
fn timed(database: &Connection, workload: &Workload, seed: u64) -> rusqlite::Result<f64> {
    let mut read = database.prepare_cached("SELECT price, name FROM item WHERE id = ?1")?;
    let mut update = database.prepare_cached("UPDATE item SET price = price + 1 WHERE id = ?1")?;
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let start = Instant::now();
    for _ in 0..OPERATIONS {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let id = (random >> 16) % ROWS + 1;
        if random % 100 < workload.updates_percent {
            update.execute([id])?;
        } else {
            black_box(read.query_row([id], |row| Ok(row.get_ref(1)?.as_str()?.len()))?);
        }
    }
    Ok(start.elapsed().as_secs_f64())
}

fn calls(registry: &Registry) -> u64 {
    registry.files().map(|file| file.counters.operations()).sum()
}

fn clock_read_ns() -> f64 {
    const READS: u32 = 1_000_000;
    let start = Instant::now();
    for _ in 0..READS {
        black_box(Instant::now());
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(READS)
}

fn shim(dir: &Path) -> &'static Registry {
    let (find, register_vfs) = (ffi::sqlite3_vfs_find as _, ffi::sqlite3_vfs_register as _);
    // SAFETY: these are the two functions.
    let functions = unsafe { SqliteFunctions::from_addresses(find, register_vfs) };
    // Published, as in the everyday case of a loaded extension.
    let publish = Publish::Shared { dir: dir.into() };
    // SAFETY: they are those of the SQLite in this program.
    unsafe { register(functions, publish, false) }.expect("sqlite has a default vfs")
}
