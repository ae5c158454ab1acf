//! Defects of other tools that keep an engine's file statistics and take differences, each a test of ours: from the
//! counters into the history and out again as intervals.

use filestats::*;
use history::{CaptureId, History, IntervalFilter, IntervalRow};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const TIB: u64 = 1 << 40;

struct Kept {
    _dir: tempfile::TempDir,
    history: History,
}

impl Kept {
    fn new() -> Kept {
        let dir = tempfile::tempdir().unwrap();
        let history = History::open(&dir.path().join("history.db")).unwrap();
        Kept { _dir: dir, history }
    }

    fn save(&mut self, source: &str, at_s: u64, samples: Vec<Sample>) -> CaptureId {
        let snapshot = Snapshot {
            source: source.into(),
            taken_unix_ns: 1_700_000_000 * S + at_s * S,
            clock_ns: at_s * S,
            complete: None,
            samples,
            waits: vec![],
            notes: vec![],
        };
        self.history.save_snapshot(&snapshot, None).unwrap()
    }

    fn between(&self, a: CaptureId, b: CaptureId) -> Vec<IntervalRow> {
        self.history.intervals_between(a, b, &IntervalFilter::default(), Rules::default()).unwrap()
    }
}

fn sample(path: &str, run: &str, read: Ops, write: Ops) -> Sample {
    Sample {
        file: FileIdentity {
            instance: "server".into(),
            database: Some("shop".into()),
            database_id: Some(5),
            file_id: path.into(),
            kind: FileKind::Data,
            path: path.into(),
            drive: Some(path.rsplit_once('/').unwrap().0.into()),
            handle: None,
            object: None,
        }
        .into(),
        epoch: Epoch::for_run(run),
        meaning: Meaning::REQUESTS,
        counters: Counters { read, write, ..Counters::ZERO },
        size_bytes: Figure::Known(1 << 30),
        latencies: None,
    }
}

fn known(row: &IntervalRow) -> &Delta {
    row.interval.interval.known().unwrap_or_else(|| panic!("{row:?}"))
}

/// SQLWATCH keeps counters in 24 bits of precision: at 10 TiB a difference is known to the MiB, at a billion milliseconds
/// of stall to 64 ms.
#[test]
fn counters_of_a_server_that_is_up_for_years_lose_nothing() {
    let mut kept = Kept::new();
    let at = |more: u64| Ops::timed((1 << 40) + more, 10 * TIB + more * 512, 1_000_000_000 * MS + more * 300);
    let a = kept.save("server", 0, vec![sample("/data/a", "1", at(0), Ops::ZERO)]);
    let b = kept.save("server", 15, vec![sample("/data/a", "1", at(1), Ops::ZERO)]);
    let rows = kept.between(a, b);
    assert_eq!(known(&rows[0]).counters.read, Ops::timed(1, 512, 300));
}

/// sp_BlitzFirst and dbatools divide whole milliseconds: each latency below one is 0, and fast storage has none.
#[test]
fn a_latency_below_a_millisecond_is_no_zero() {
    let mut kept = Kept::new();
    let a = kept.save("server", 0, vec![sample("/data/a", "1", Ops::ZERO, Ops::ZERO)]);
    let read = Ops::timed(1_000, 8_192_000, 1_000 * 130_000);
    let b = kept.save("server", 15, vec![sample("/data/a", "1", read, Ops::ZERO)]);
    let rows = kept.between(a, b);
    assert_eq!(rows[0].between.unwrap().read_ns, Figure::Known(130_000.0));
}

/// sp_BlitzFirst's views put the captures of all servers into one order, so that differences are doubled or of two
/// servers.
#[test]
fn captures_of_two_servers_in_turn_are_two_histories() {
    let mut kept = Kept::new();
    let read = |n: u64| Ops::timed(n, n * 8192, n * MS);
    let mut ids = Vec::new();
    for (at_s, source, n) in
        [(0, "one", 100), (1, "two", 9_000), (15, "one", 110), (16, "two", 9_003), (30, "one", 130)]
    {
        ids.push(kept.save(source, at_s, vec![sample("/data/a", "1", read(n), Ops::ZERO)]));
    }
    let counts = |a: usize, b: usize| known(&kept.between(ids[a], ids[b])[0]).counters.read.count;
    assert_eq!([counts(0, 2), counts(2, 4), counts(0, 4), counts(1, 3)], [10, 20, 30, 3]);
    assert!(
        kept.history.intervals_between(ids[0], ids[1], &IntervalFilter::default(), Rules::default()).is_err()
    );
}

/// SQLWATCH shows a restart as an interval without I/O; PerformanceMonitor takes all that was done since as work of the
/// interval, or 0 with a latency of 0.
#[test]
fn a_restart_is_neither_a_zero_nor_work_of_its_interval() {
    let mut kept = Kept::new();
    let read = |n: u64| Ops::timed(n, n * 8192, n * MS);
    let a = kept.save("server", 0, vec![sample("/data/a", "1", read(5_000), Ops::ZERO)]);
    // More than before already: a counter that fell would not tell.
    let b = kept.save("server", 15, vec![sample("/data/a", "2", read(9_000), Ops::ZERO)]);
    let rows = kept.between(a, b);
    assert_eq!(rows[0].interval.interval, Interval::Unknown(Reason::Restart));
    assert_eq!(rows[0].between, None);
}

/// DBA Dash drops the interval of every file where one counter of one fell; SQLWATCH cuts each counter of its own, so
/// that the stall of one time is divided by the count of another.
#[test]
fn a_counter_that_fell_takes_its_file_alone_and_all_of_it() {
    let mut kept = Kept::new();
    let read = |n: u64| Ops::timed(n, n * 8192, n * MS);
    let files = |fallen: u64, n: u64| {
        vec![sample("/data/a", "1", read(fallen), read(n)), sample("/data/b", "1", read(n), read(n))]
    };
    let a = kept.save("server", 0, files(500, 100));
    let b = kept.save("server", 15, files(20, 140));
    let rows = kept.between(a, b);
    let of = |path: &str| rows.iter().find(|row| row.interval.file.path == path).unwrap();
    assert!(of("/data/a").interval.interval.known().is_none(), "{:?}", of("/data/a"));
    assert_eq!(of("/data/a").between, None);
    assert_eq!(known(of("/data/b")).counters.read.count, 40);
}

/// DBA Dash keeps a drive in one letter: all mount points are one.
#[test]
fn files_of_one_name_on_two_mount_points_are_two() {
    let mut kept = Kept::new();
    let read = |n: u64| Ops::timed(n, n * 8192, n * MS);
    let files = |n: u64| {
        vec![
            sample("/data/fast/a", "1", read(n), Ops::ZERO),
            sample("/data/slow/a", "1", read(3 * n), Ops::ZERO),
        ]
    };
    let a = kept.save("server", 0, files(10));
    let b = kept.save("server", 15, files(20));
    let rows = kept.between(a, b);
    let drives: Vec<_> = rows.iter().map(|row| row.interval.file.drive.as_deref().unwrap()).collect();
    assert_eq!(drives, ["/data/fast", "/data/slow"]);
    assert_eq!([10, 30], [0, 1].map(|at: usize| known(&rows[at]).counters.read.count));
}

/// DBA Dash grades writes by the limits of reads.
#[test]
fn writes_are_graded_by_the_limits_of_writes() {
    let profile = Profile::named("microsoft-2012").unwrap();
    assert_eq!(profile.band(IoClass::Read, 5e6).name, "excellent");
    assert_eq!(profile.band(IoClass::Write, 5e6).name, "poor");
}

/// Microsoft's own query grades BETWEEN 2 AND 5, 6 AND 15, ..., after a division of whole numbers: 5.5 ms is in no band,
/// and 100 ms in two.
#[test]
fn every_latency_has_one_band_and_a_longer_one_no_better() {
    for profile in Profile::ALL {
        for class in [IoClass::Read, IoClass::Write, IoClass::LogWrite] {
            let bands = profile.bands(class);
            let place = |ns: f64| {
                let name = profile.band(class, ns).name;
                bands.iter().position(|band| band.name == name).unwrap()
            };
            let (mut ns, mut before) = (1_000.0, 0);
            while ns < 10e9 {
                let now = place(ns);
                assert!(now >= before && now - before <= 1, "{} at {ns} ns", profile.name);
                (ns, before) = (ns * 1.005, now);
            }
            assert_eq!(before, bands.len() - 1, "{}", profile.name);
        }
    }
    assert_eq!(Profile::named("microsoft-css").unwrap().band(IoClass::Read, 5.5e6).name, "very good");
}
