//! `headroom trace` against fio: its log agrees with the trace, I/O by I/O.

use programs::{Headroom, built};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether this user may; says so where not.
fn may_trace() -> bool {
    let may = std::fs::read_to_string("/proc/self/status").unwrap().contains("CapEff:\t000001ff");
    if !may {
        println!("skipped: tracing any process's I/O needs root");
    }
    may
}

/// A file of a megabyte, for fio.
struct Bench {
    ours: Headroom,
    dir: tempfile::TempDir,
    file: PathBuf,
}

/// Offset and bytes of a read or write.
type Io = (String, u64, u64);

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let file = dir.path().join("shop.dat");
        std::fs::write(&file, vec![7; 1 << 20]).unwrap();
        Bench { ours: Headroom::new(), dir, file }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// The printed lines of a command: I/Os, and their totals.
    fn trace(&self, options: &[&str], command: &[&str]) -> (Vec<Value>, Value) {
        let all = [&["trace", "--json"], options].concat();
        let mut run = self.ours.command(&all);
        let output = run.arg("--").args(command).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let came_to = lines.pop().unwrap()["trace"].take();
        assert_eq!((&came_to["complete"], &came_to["lost"]), (&true.into(), &0.into()), "{came_to}");
        assert_eq!(came_to["ios"], lines.len(), "{came_to}");
        (lines, came_to)
    }

    /// fio's arguments, the same I/Os each time.
    fn fio(&self, more: &[&str]) -> Vec<String> {
        let file = format!("--filename={}", self.file.display());
        let fixed = ["fio", "--name=x", "--size=1m", "--rw=randrw", "--randseed=5", "--fsync=16", &file];
        fixed.iter().chain(more).map(|word| (*word).to_owned()).collect()
    }
}

/// Reads and writes in the order of the requests.
fn in_order(lines: &[Value]) -> Vec<Io> {
    let mut ios: Vec<&Value> = lines.iter().filter(|io| io["op"] != "sync").collect();
    ios.sort_by_key(|io| io["at_ns"].as_u64());
    let number = |io: &Value, key: &str| io[key].as_u64().unwrap();
    let one = |io: &&Value| {
        (io["op"].as_str().unwrap().to_owned(), number(io, "offset_bytes"), number(io, "bytes"))
    };
    ios.iter().map(one).collect()
}

fn words(owned: &[String]) -> Vec<&str> {
    owned.iter().map(String::as_str).collect()
}

/// Of fio's log, `[TIME] FILE ACTION OFFSET BYTES`: reads and writes in its order, and the number of syncs.
fn logged(log: &str) -> (Vec<Io>, usize) {
    let mut ios = Vec::new();
    let mut syncs = 0;
    for line in std::fs::read_to_string(log).unwrap().lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [.., kind @ ("read" | "write"), offset, bytes] => {
                ios.push((kind.to_owned(), offset.parse().unwrap(), bytes.parse().unwrap()));
            }
            [.., "sync" | "datasync" | "fsync", _, _] => syncs += 1,
            _ => {}
        }
    }
    (ios, syncs)
}

#[test]
fn every_io_of_fio_is_told_as_fio_logs_it() {
    if !may_trace() {
        return;
    }
    let bench = Bench::new();
    let file = bench.file.to_str().unwrap();
    for (engine, direct, flags) in [
        ("psync", "--direct=1", &["direct"][..]),
        ("io_uring", "--direct=1", &["uring", "direct"]),
        ("io_uring", "--direct=0", &["uring"]),
        ("libaio", "--direct=1", &["aio", "direct"]),
    ] {
        let log = bench.path("fio.log");
        let _ = std::fs::remove_file(&log);
        let (engine_word, log_word) = (format!("--ioengine={engine}"), format!("--write_iolog={log}"));
        let fio = bench.fio(&[&engine_word, direct, "--bs=4k", "--iodepth=8", &log_word]);
        let (lines, came_to) = bench.trace(&["--file", file], &words(&fio));
        let (ios, syncs) = logged(&log);
        assert_eq!(ios.len(), 256, "fio did all of it");
        assert_eq!(in_order(&lines), ios, "{engine} {direct}");
        assert_eq!(lines.iter().filter(|io| io["op"] == "sync").count(), syncs, "{engine} {direct}");
        assert_eq!(came_to["bytes"], 1 << 20);
        for io in lines.iter().filter(|io| io["op"] != "sync") {
            assert_eq!(io["flags"], serde_json::json!(flags), "{io}");
            assert_eq!(io["served_by"] == "device", direct == "--direct=1", "{io}");
            let n = io["outstanding"].as_u64().unwrap();
            assert!(n >= 1 && n <= if engine == "psync" { 1 } else { 8 }, "{io}");
            assert!(
                io["latency_ns"].as_u64().unwrap() > 0 && io["comm"] == "fio" && io["file"] == file,
                "{io}"
            );
        }
        let most = lines.iter().filter_map(|io| io["outstanding"].as_u64()).max();
        assert_eq!(most, Some(if engine == "psync" { 1 } else { 8 }), "{engine} {direct}");
    }
}

#[test]
fn filters_leave_what_they_say() {
    if !may_trace() {
        return;
    }
    let bench = Bench::new();
    let fio = bench.fio(&["--ioengine=psync", "--bsrange=4k-64k", "--blockalign=4k", "--direct=0"]);
    let fio = words(&fio);
    let (all, _) = bench.trace(&["--file", "shop.dat"], &fio);
    let all = in_order(&all);
    let is_some = |ios: &[Io]| !ios.is_empty() && ios.len() < all.len();
    let pattern = format!("{}/*.dat", bench.dir.path().display());
    let (large, _) =
        bench.trace(&["--file", &pattern, "--op", "write", "--size-min", "16K", "--size-max", "48K"], &fio);
    let wanted = |io: &&Io| io.0 == "write" && (16 << 10..=48 << 10).contains(&io.2);
    let expected: Vec<Io> = all.iter().filter(wanted).cloned().collect();
    assert!(is_some(&expected), "{all:?}");
    assert_eq!(in_order(&large), expected);
    let (syncs, _) = bench.trace(&["--file", "*.dat", "--op", "sync"], &fio);
    assert!(!syncs.is_empty() && syncs.iter().all(|io| io["op"] == "sync" && io["offset_bytes"].is_null()));
    let (slow, _) = bench.trace(&["--file", "*.dat", "--slower", "100us"], &fio);
    assert!(slow.iter().all(|io| io["latency_ns"].as_u64().unwrap() >= 100_000), "{slow:?}");
    assert!(slow.len() < all.len() + syncs.len());
    let (first, _) = bench.trace(&["--file", "*.dat", "--count", "10"], &fio);
    assert_eq!(first.len(), 10);
    let directory = bench.dir.path().file_name().unwrap().to_str().unwrap();
    let (below, _) = bench.trace(&["--file", &format!("*/{directory}/*")], &fio);
    assert_eq!(in_order(&below), all);
    let (nobody, came_to) = bench.trace(&["--file", "*.nothing"], &fio);
    assert!(nobody.is_empty() && came_to["files"].as_array().unwrap().is_empty());
}

#[test]
fn a_trace_of_nothing_says_what_it_was_of() {
    if !may_trace() {
        return;
    }
    let ours = Headroom::new();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("shop.trace");
    let mut trace = ours.command(&["trace", "--file", "*/pg_wal/*.none", "--op", "write,sync"]);
    let output = trace.arg("--out").arg(&out).args(["--", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let filters = "no I/O was traced of: true, */pg_wal/*.none, writes and syncs";
    assert!(said.contains(filters) && said.contains("shop.trace was not written"), "{said}");
    assert!(!out.exists());
}

#[test]
fn a_recorded_trace_asked_again_makes_the_same_ios() {
    if !may_trace() {
        return;
    }
    let bench = Bench::new();
    let (recorded, copy, page) = (bench.path("shop.trace"), bench.path("copy.dat"), bench.path("trace.html"));
    let fio = bench.fio(&["--ioengine=psync", "--bsrange=4k-64k", "--blockalign=4k", "--direct=1"]);
    let options = ["--file", bench.file.to_str().unwrap(), "--out", &recorded, "--html", &page];
    let (lines, came_to) = bench.trace(&options, &words(&fio));
    assert_eq!(came_to["files"][0]["trace"], recorded);
    assert!(std::fs::read_to_string(&page).unwrap().contains("Offset in"), "the picture");
    let load = ["--set", "speed=max", "--outstanding", "1", "--block", "64K", "--replay", &recorded];
    let run = [&["run", &copy, "--size", "1M"], &load[..]].concat();
    // The first makes the file.
    let made = bench.ours.run(&run);
    assert!(copy_exists(&copy), "{}", String::from_utf8_lossy(&made.stderr));
    let headroom = built().join("headroom");
    let history = bench.ours.history();
    let again =
        [&[headroom.to_str().unwrap(), "--history", history.to_str().unwrap(), "run", &copy], &load[..]];
    let (again, _) = bench.trace(&["--file", &copy, "--size-min", "1"], &again.concat());
    assert_eq!(in_order(&again), in_order(&lines));
}

#[test]
fn what_nobody_took_in_time_is_lost_and_counted() {
    if !may_trace() {
        return;
    }
    let bench = Bench::new();
    let done = bench.path("done");
    // A read size that no other process uses: the kernel cannot filter by the name of a file that it has not seen yet, and fio
    // reads other files too.
    const READS: u64 = 200 * 80;
    let fio = format!(
        "fio --name=x --filename={} --size=1000000 --loops=80 --rw=read --bs=5000 --ioengine=psync --invalidate=0 >/dev/null; touch {done}",
        bench.file.display()
    );
    let size = ["--size-min", "5000", "--size-max", "5000"];
    let mut trace = bench.ours.command(&["trace", "--json", "--file", "shop.dat", "--buffer", "64K"]);
    let trace = trace.args(size).args(["--", "sh", "-c", &fio]).stdout(Stdio::piped()).spawn().unwrap();
    // The output is not read until the command has ended.
    while !Path::new(&done).exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let output = trace.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let came_to = &last["trace"];
    let (told, lost) = (came_to["ios"].as_u64().unwrap(), came_to["lost"].as_u64().unwrap());
    assert_eq!(told + lost, READS, "{came_to}");
    assert!(lost > 1000 && came_to["complete"] == false && output.status.code() == Some(1), "{came_to}");
    assert_eq!(text.lines().count() as u64, told + 1);
}

fn copy_exists(path: &str) -> bool {
    Path::new(path).metadata().is_ok_and(|found| found.len() == 1 << 20)
}

#[test]
fn who_may_not_trace_is_told_why_and_what_to_do() {
    let ours = Headroom::new();
    let headroom = built().join("headroom");
    // Root without what makes it root.
    let bare = Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all"])
        .arg(headroom)
        .args(["trace", "--source", "process:", "--count", "1"])
        .output();
    let bare = bare.expect("setpriv is installed");
    let said = String::from_utf8_lossy(&bare.stderr);
    assert_eq!(bare.status.code(), Some(3), "{said}");
    assert!(
        said.contains("the kernel does not let this user load BPF programs")
            && said.contains("try: run as root"),
        "{said}"
    );
    for (arguments, why) in [
        (&["trace"][..], "--source"),
        (&["trace", "--source", "postgres:"], "only processes can be traced"),
        (&["trace", "--source", "process:", "--op", "trim"], "give read, write, sync or fault"),
        (&["trace", "--source", "process:", "--size-min", "8K", "--size-max", "4K"], "--size-max is smaller"),
    ] {
        let output = ours.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why), "{arguments:?}: {said}");
    }
}
