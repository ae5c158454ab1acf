//! Costs of recording. `budget SOURCES FILES CHANGED TICKS DIR` records `SOURCES` synthetic sources, each with `FILES`
//! files of which `CHANGED` change in a tick, a tick a second, and prints one line of JSON. `budget kept FILES CHANGED
//! TICKS DIR` keeps `TICKS` snapshots of one such source, as fast as possible, with histograms and without, and prints the
//! growth of the history for each change.
//!
//! The sources cost little themselves (their part is measured alone and taken off), so that what is left is the
//! recorder's and the history's; of the memory theirs is a part, as it is of real ones.

use collect::{Source, SourceError};
use filestats::*;
use history::{History, Retention};
use record::{RecordedSource, Recorder, Settings};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

struct Engine {
    name: String,
    files: Vec<Sample>,
    changed: usize,
    tick: usize,
    began: Instant,
}

impl Engine {
    fn new(name: String, files: usize, changed: usize, histograms: bool) -> Engine {
        let sample = |at: usize| Sample {
            file: FileIdentity {
                instance: name.clone(),
                database: Some("shop".into()),
                database_id: Some(5),
                file_id: format!("254:0:{}", 1_000_000 + at),
                kind: FileKind::Data,
                path: format!("/var/lib/postgresql/18/main/base/16384/{}", 16_400 + at),
                drive: Some("/var/lib/postgresql".into()),
                handle: None,
                object: None,
            }
            .into(),
            epoch: Epoch::for_run("4f2c:812:1763740000"),
            meaning: Meaning::REQUESTS,
            counters: Counters::ZERO,
            size_bytes: Figure::Known(1 << 30),
            latencies: histograms.then(Latencies::default),
        };
        Engine { files: (0..files).map(sample).collect(), name, changed, tick: 0, began: Instant::now() }
    }
}

impl Source for Engine {
    fn name(&self) -> &str {
        &self.name
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        self.tick += 1;
        let count = self.files.len();
        for n in 0..self.changed {
            // Others each tick, and some more often: as tables are.
            let at = if n % 4 == 0 { n } else { (self.tick * 37 + n * 11) % count };
            let sample = &mut self.files[at];
            let more = 3 + (at as u64 * 7 + self.tick as u64) % 90;
            let each_ns = 80_000 + (at as u64 * 131 + self.tick as u64 * 17) % 400_000;
            let add = |ops: Ops, times: u64| {
                let stall_ns = ops.stall_ns.map(|ns| ns + times * each_ns);
                Ops { count: ops.count + times, bytes: ops.bytes + times * 8192, stall_ns }
            };
            sample.counters.read = add(sample.counters.read, more);
            sample.counters.write = add(sample.counters.write, more / 3);
            if let Some(latencies) = &mut sample.latencies {
                (0..more.min(8)).for_each(|part| latencies.read.record(each_ns + part * 20_000));
            }
        }
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Snapshot {
            source: self.name.clone(),
            taken_unix_ns: unix.as_nanos() as u64,
            clock_ns: self.began.elapsed().as_nanos() as u64,
            complete: None,
            samples: self.files.clone(),
            waits: Vec::new(),
            notes: Vec::new(),
        })
    }
}

/// User and system time of this process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap_or(0) + fields[12].parse::<u64>().unwrap_or(0);
    Duration::from_millis(ticks * 10)
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0) >> 10
}

fn disk_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).expect("the directory").flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum()
}

/// Bytes of the history on disk, all in the one file.
fn size(path: &Path) -> u64 {
    let history = rusqlite::Connection::open(path).expect("a history");
    history.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("a checkpoint");
    std::fs::metadata(path).expect("a history").len()
}

/// Bytes a change once the files are known, over `ticks` ticks.
fn kept(files: usize, changed: usize, ticks: usize, dir: &Path) {
    for histograms in [true, false] {
        let path = dir.join(format!("kept-{histograms}.db"));
        let mut history = History::open(&path).expect("a history");
        let mut engine = Engine::new("engine:0".into(), files, changed, histograms);
        let mut save = |many: usize| {
            let mut take = |_| {
                let snapshot = engine.snapshot().expect("figures");
                Snapshot { clock_ns: engine.tick as u64 * 15_000_000_000, ..snapshot }
            };
            let all: Vec<Snapshot> = (0..many).map(&mut take).collect();
            let all: Vec<_> = all.iter().map(|snapshot| (snapshot, None)).collect();
            history.save_snapshots(&all).expect("room");
        };
        save(1);
        let begin = size(&path);
        (0..ticks / 50).for_each(|_| save(50));
        let grown = size(&path) - begin;
        let changes = (ticks / 50 * 50 * changed) as f64;
        println!(
            "{{\"files\": {files}, \"changed\": {changed}, \"ticks\": {ticks}, \"histograms\": {histograms}, \
             \"bytes_a_change\": {:.1}}}",
            grown as f64 / changes,
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [sources, files, changed, ticks, dir] = arguments.as_slice() else {
        eprintln!("usage: budget SOURCES FILES CHANGED TICKS DIR, or budget kept FILES CHANGED TICKS DIR");
        std::process::exit(2);
    };
    let number = |text: &str| text.parse::<usize>().expect("a number");
    if sources == "kept" {
        return kept(number(files), number(changed), number(ticks), Path::new(dir));
    }
    let (sources, files, changed, ticks) = (number(sources), number(files), number(changed), number(ticks));
    let engines = || (0..sources).map(|at| Engine::new(format!("engine:{at}"), files, changed, true));

    let before = cpu();
    let mut alone: Vec<Engine> = engines().collect();
    for _ in 0..ticks {
        alone.iter_mut().for_each(|engine| drop(engine.snapshot()));
    }
    drop(alone);
    let of_sources = cpu() - before;

    let path = Path::new(dir).join("history.db");
    let recorded = engines().map(|engine| {
        let mut engine = Some(engine);
        let name = engine.as_ref().map(|engine| engine.name.clone()).unwrap_or_default();
        RecordedSource {
            name,
            open: Box::new(move || {
                Ok(Box::new(engine.take().expect("opened once")) as Box<dyn Source + Send>)
            }),
        }
    });
    let settings = Settings {
        every: Duration::from_secs(1),
        duration: Some(Duration::from_millis(ticks as u64 * 1000 + 500)),
        retention: Retention::default(),
        reserve_bytes: 0,
        silence: Duration::from_secs(60),
    };
    let before = cpu();
    let history = History::open(&path).expect("a history");
    let recorder = Recorder { sources: recorded.collect(), history, settings };
    recorder.run(&Arc::new(AtomicBool::new(false)), &mut |event| eprintln!("{event}"));
    let spent = (cpu() - before).saturating_sub(of_sources);

    let history = rusqlite::Connection::open(&path).expect("a history");
    let ask = |sql: &str| history.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap_or(0);
    let rows = ask("SELECT count(*) + (SELECT coalesce(sum(changes), 0) FROM file_blocks) FROM file_changes");
    let captures = ask("SELECT count(*) FROM captures");
    history.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("a checkpoint");
    let bytes = disk_bytes(Path::new(dir));
    println!(
        "{{\"sources\": {sources}, \"files\": {files}, \"captures\": {captures}, \"changed_rows\": {rows}, \
         \"cpu_ms_per_tick\": {:.1}, \"core_percent_at_15s\": {:.2}, \"resident_mib\": {}, \
         \"bytes_per_changed_row\": {:.1}}}",
        spent.as_secs_f64() * 1000.0 / ticks as f64,
        spent.as_secs_f64() / ticks as f64 / 15.0 * 100.0,
        resident_mib(),
        bytes as f64 / rows.max(1) as f64,
    );
}
