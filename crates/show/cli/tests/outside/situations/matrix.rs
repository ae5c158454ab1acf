//! A matrix that is killed, ended or emitted: every run is there exactly once.

use super::{Finished, Started, headroom, nothing_left, test_files_on_record, text};
use programs::{Headroom, built};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2 x 4 x 2 x 3 x 2 runs.
const NINETY_SIX: &[&str] = &[
    "run",
    "--pattern",
    "random,sequential",
    "--writes",
    "0,10,25,100",
    "--block",
    "4K,64K",
    "--outstanding",
    "1,4,8",
    "--threads",
    "1,2",
    "--order",
    "random",
    "--seed",
    "7",
    "--buffered",
    "--size",
    "16M",
    "--duration",
    "100ms",
    "--warm-up",
    "0s",
];

fn storage() -> tempfile::TempDir {
    // Not in /tmp, which may be memory.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn with<'a>(arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [arguments, more].concat()
}

/// The runs that were kept, in the order in which they were: point, repeat, the seed planned and the one run.
fn kept(ours: &Headroom) -> Vec<(u64, u64, String, String)> {
    let history = rusqlite::Connection::open(ours.history()).unwrap();
    let query = "SELECT point, repeat, CAST(seed AS TEXT), json_extract(json, '$.workload'), runs.id \
         FROM runs LEFT JOIN matrix_points ON run = runs.id ORDER BY runs.id";
    let mut rows = history.prepare(query).unwrap();
    let rows = rows.query_map([], |row| {
        // SQLite's own reader of JSON rounds what is above 2^63.
        let workload: String = row.get(3)?;
        let seed = workload.split("\"seed\":").nth(1).unwrap();
        let seed: String = seed.chars().take_while(char::is_ascii_digit).collect();
        let planned: String = row.get(2)?;
        Ok((row.get(0)?, row.get(1)?, planned.trim_start_matches('0').to_string(), seed))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// The runs that a dry run announces, in their order.
fn planned(ours: &Headroom, arguments: &[&str]) -> Vec<(u64, u64, String)> {
    let runs = ours.json(&with(arguments, &["--dry-run"]))["runs"].clone();
    let run = |run: &Value| {
        (run["number"].as_u64().unwrap(), run["repeat"].as_u64().unwrap(), run["seed"].to_string())
    };
    runs.as_array().unwrap().iter().map(run).collect()
}

#[test]
fn a_matrix_of_96_runs_survives_five_kills_with_each_run_exactly_once() {
    let (ours, dir) = (Headroom::new(), storage());
    let arguments = with(NINETY_SIX, &[text(dir.path())]);
    let planned = planned(&ours, &arguments);
    assert_eq!(planned.len(), 96);

    let mut chance = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    let mut moments = Vec::new();
    for _ in 0..5 {
        let run = Started::new(&mut ours.command(&with(&arguments, &["--resume"])));
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let moment = Duration::from_millis(chance % 1700);
        moments.push(moment);
        std::thread::sleep(moment);
        run.signal("-KILL");
        assert_eq!(run.end().code, None, "killed, and not at its end, after {moments:?}");
    }
    let said = headroom(&ours, &with(&arguments, &["--resume"]));
    assert_eq!(said.code, Some(0), "{}", said.stderr);

    let kept = kept(&ours);
    assert_eq!(kept.len(), 96, "after kills at {moments:?}");
    let in_order: Vec<_> =
        kept.iter().map(|(point, repeat, seed, _)| (*point, *repeat, seed.clone())).collect();
    assert_eq!(in_order, planned, "after kills at {moments:?}");
    assert!(kept.iter().all(|(_, _, planned, run)| planned == run), "each run had the seed that was planned");
    nothing_left(dir.path());
    assert_eq!(test_files_on_record(&ours), 0);

    // Finished: it is shown again, and nothing is run.
    let again = ours.json(&["run", "--resume=1"]);
    assert_eq!(again["points"].as_array().unwrap().len(), 96);
    assert_eq!(self::kept(&ours).len(), 96);
}

#[test]
fn ctrl_c_keeps_what_was_run_and_says_how_to_go_on() {
    let (ours, dir) = (Headroom::new(), storage());
    let arguments = with(NINETY_SIX, &[text(dir.path())]);
    let run = Started::new(&mut ours.command(&arguments));
    run.wait_until("the third run", || {
        let history = rusqlite::Connection::open(ours.history()).unwrap();
        history.query_row("SELECT count(*) > 2 FROM runs", [], |row| row.get(0)).unwrap_or(false)
    });
    run.signal("-INT");
    let said = run.end();
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    assert!(said.stderr.contains("headroom run --resume=1"), "{}", said.stderr);
    assert!(said.stdout.contains("still to come"), "{}", said.stdout);
    nothing_left(dir.path());
    let before = kept(&ours).len();
    assert!((3..96).contains(&before), "{before}");

    // A second start is refused with both ways to go on.
    let same = headroom(&ours, &arguments);
    same.refused(2, &["started before, as matrix 1", "--resume", "--start-over"]);
    // A different one is another matter.
    let small =
        ["run", "--buffered", "--size", "1M", "--duration", "50ms", "--warm-up", "0s", "--outstanding"];
    let other = headroom(&ours, &with(&small, &["1,2,3,4", text(dir.path())]));
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    let list = ours.json(&["history", "matrices"]);
    assert_eq!((&list[0]["done"], &list[1]["done"]), (&Value::from(4), &Value::from(before)));
}

#[test]
fn two_at_once_do_not_share_a_matrix() {
    let (ours, dir) = (Headroom::new(), storage());
    let arguments = with(NINETY_SIX, &[text(dir.path())]);
    let run = Started::new(&mut ours.command(&arguments));
    run.wait_until("the first run", || {
        let history = rusqlite::Connection::open(ours.history()).unwrap();
        history.query_row("SELECT count(*) > 0 FROM runs", [], |row| row.get(0)).unwrap_or(false)
    });
    headroom(&ours, &["run", "--resume"]).refused(3, &["another headroom works at matrix 1"]);
    run.signal("-INT");
    assert_eq!(run.end().code, Some(130));
}

#[test]
fn a_budget_is_kept_and_what_it_left_out_is_said() {
    let (ours, dir) = (Headroom::new(), storage());
    let arguments = ["--budget", "4s", text(dir.path())];
    // Not the time it takes to build it.
    built();
    let began = std::time::Instant::now();
    let result = ours.json(&with(NINETY_SIX, &arguments));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    let points = result["points"].as_array().unwrap();
    let run = points.iter().filter(|point| !point["iops"].is_null()).count();
    assert!((10..60).contains(&run), "{run} runs");
    let reasons: BTreeSet<String> = points.iter().map(|point| point["skipped"].to_string()).collect();
    let expected = ["null".to_string(), "\"the budget of 4 s was spent\"".to_string()];
    assert_eq!(reasons, expected.into_iter().collect());
    // The coarse pass is spread: every value of every axis was run.
    for (axis, values) in [("write_percent", 4), ("block_bytes", 2), ("outstanding", 3), ("threads", 2)] {
        let run = points.iter().filter(|point| !point["iops"].is_null());
        let seen: BTreeSet<String> = run.map(|point| point[axis].to_string()).collect();
        assert_eq!(seen.len(), values, "{axis}");
    }
}

#[test]
fn others_files_are_neither_written_to_nor_written_over() {
    let (ours, dir) = (Headroom::new(), storage());
    let file = dir.path().join("precious");
    fs::write(&file, vec![7; 1 << 20]).unwrap();
    let base = ["run", "--duration", "50ms", "--warm-up", "0s", "--buffered", "--repeats", "1"];
    let said = headroom(&ours, &with(&base, &[text(&file), "--writes", "50"]));
    said.refused(3, &["would destroy the content", "--destroy-data"]);
    let csv = dir.path().join("table.csv");
    fs::write(&csv, "months of work").unwrap();
    let said = headroom(&ours, &with(&base, &[text(&file), "--csv", text(&csv)]));
    said.refused(3, &["not one of Headroom's"]);
    assert_eq!(fs::read_to_string(&csv).unwrap(), "months of work");
    let read = headroom(&ours, &with(&base, &[text(&file), "--outstanding", "1"]));
    assert_eq!(read.code, Some(0), "{}", read.stderr);
    assert_eq!(fs::read(&file).unwrap(), vec![7; 1 << 20]);
}

/// Whether fio can be run here; without it the scripts for it are not tried.
fn fio() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: fio is not installed");
    }
    found
}

/// Eight runs in a directory whose name asks for quoting.
fn emit(ours: &Headroom, dir: &Path, tool: &str) -> String {
    let arguments = [
        "run",
        "--pattern",
        "random,sequential",
        "--writes",
        "0,30",
        "--block",
        "4K",
        "--outstanding",
        "4",
        "--threads",
        "1,2",
        "--size",
        "16M",
        "--buffered",
        "--duration",
        "100ms",
        "--warm-up",
        "0s",
        "--emit",
        tool,
        text(dir),
    ];
    let said = headroom(ours, &arguments);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    said.stdout
}

/// Pattern, share of writes, block size, outstanding and threads of a job, as fio says them.
fn parameters(job: &Value) -> [String; 5] {
    ["rw", "rwmixwrite", "bs", "iodepth", "numjobs"]
        .map(|name| job["job options"][name].as_str().unwrap_or("-").to_string())
}

fn expected() -> BTreeSet<[String; 5]> {
    let mut all = BTreeSet::new();
    for (rw, writes) in [("randread", "-"), ("randrw", "30"), ("read", "-"), ("rw", "30")] {
        for threads in ["1", "2"] {
            all.insert([rw, writes, "4k", "4", threads].map(str::to_string));
        }
    }
    all
}

#[test]
fn the_shell_script_runs_each_point_with_fio_once_and_goes_on_where_it_was() {
    if !fio() {
        return;
    }
    let (ours, dir) = (Headroom::new(), storage());
    let odd = dir.path().join("it's $(touch hacked) a:b `x` \"y\"");
    fs::create_dir(&odd).unwrap();
    let script = dir.path().join("matrix.sh");
    fs::write(&script, emit(&ours, &odd, "sh")).unwrap();
    let out = dir.path().join("results");
    let run = || {
        let mut sh = Command::new("sh");
        sh.arg(&script).arg(&out).env("ENGINE", "libaio").current_dir(dir.path());
        Finished::from_output(&sh.output().unwrap())
    };
    let said = run();
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let mut jobs = BTreeSet::new();
    let mut names = Vec::new();
    for entry in fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        let value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let all = value["jobs"].as_array().unwrap();
        assert_eq!(all.len(), 1, "threads are reported together");
        let job = &all[0];
        assert_eq!(job["error"], 0);
        assert!(job["read"]["total_ios"].as_u64().unwrap() > 0);
        assert_eq!(path.file_stem().unwrap().to_str(), job["jobname"].as_str());
        jobs.insert(parameters(job));
        names.push(path);
    }
    assert_eq!((names.len(), jobs), (8, expected()));
    assert_eq!(fs::read_dir(&odd).unwrap().count(), 0, "the test file is gone");
    assert!(!dir.path().join("hacked").exists() && !odd.join("hacked").exists());

    // One result lost: only that run is done again. A file of that name is not touched.
    fs::remove_file(&names[0]).unwrap();
    let again = run();
    assert_eq!(again.stderr.matches("\nrun ").count(), 1, "{}", again.stderr);
    assert!(names[0].exists());
    fs::write(odd.join("headroom-test.dat"), "precious").unwrap();
    assert_eq!(run().code, Some(3));
    assert_eq!(fs::read_to_string(odd.join("headroom-test.dat")).unwrap(), "precious");
}

#[test]
fn the_job_file_runs_each_point_with_fio_once() {
    if !fio() {
        return;
    }
    let (ours, dir) = (Headroom::new(), storage());
    let odd = dir.path().join("it's a:b $c");
    fs::create_dir(&odd).unwrap();
    let file = dir.path().join("matrix.fio");
    let text = emit(&ours, &odd, "fio");
    // io_uring is forbidden in some containers.
    fs::write(&file, text.replace("ioengine=io_uring", "ioengine=libaio")).unwrap();
    let ran = Command::new("fio").arg("--output-format=json").arg(&file).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let value: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let jobs = value["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 8);
    assert_eq!(jobs.iter().map(parameters).collect::<BTreeSet<_>>(), expected());
    for job in jobs {
        assert!(job["read"]["total_ios"].as_u64().unwrap() > 0, "{job}");
    }
    assert_eq!(fs::metadata(odd.join("headroom-test.dat")).unwrap().len(), 16 << 20);
}
