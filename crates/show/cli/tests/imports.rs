//! `headroom history import` from outside: what is kept and reported, and that nothing is kept twice.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headroom"));
        command.args(arguments).arg("--history").arg(self.0.path().join("history.db"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).arg("--json").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Number of kept runs; where nothing was ever kept, there is no history either.
    fn runs(&self) -> usize {
        if !self.0.path().join("history.db").exists() {
            return 0;
        }
        self.json(&["history"]).as_array().unwrap().len()
    }
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../formats/import/tests/samples").join(name)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn imported_runs_are_printed_in_the_shape_of_run_and_kept() {
    let place = Place::new();
    let path = sample("fio_two.json");
    let value = place.json(&["history", "import", path.to_str().unwrap()]);
    let phases = value["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 2);
    assert_eq!(phases[1]["name"], "reads + beside");
    let log = &phases[0]["results"][0];
    assert_eq!((&log["tool"], &log["backend"]), (&"fio-3.33".into(), &"foreign".into()));
    assert_eq!((&log["write"]["count"], &log["write"]["bytes"]), (&7663.into(), &31_387_648.into()));
    assert_eq!(log["sync"]["count"], 7663);
    assert_eq!(value["imported"][0]["runs"], serde_json::json!([1, 2, 3]));
    let kept = place.json(&["history", "show", "run", "1"]);
    assert_eq!(kept, *log);
}

#[test]
fn the_same_text_is_kept_once_whatever_its_file() {
    let place = Place::new();
    let old = std::fs::read_to_string(sample("diskspd_2.0.17.txt")).unwrap();
    let dated = place.file("2016-11-04.txt", &old);
    let dated = dated.to_str().unwrap();
    assert!(text(&place.run(&["history", "import", dated])).contains("1 run imported"));
    let again = text(&place.run(&["history", "import", dated]));
    assert!(again.contains("0 runs imported; 1 run known from before"), "{again}");
    assert!(again.contains("1 (known)"), "{again}");
    // The batch went on and appended a result, as PowerShell writes it.
    let next = old + &std::fs::read_to_string(sample("diskspd_2.0.17_plain.txt")).unwrap();
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(next.replace('\n', "\r\n").encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let grown = place.file("grown.txt", utf16);
    let grown = grown.to_str().unwrap();
    assert!(text(&place.run(&["history", "import", grown])).contains("1 run imported; 1 run known"));
    assert_eq!(place.runs(), 2);
    assert!(text(&place.run(&["history", "import", grown, "--again"])).contains("2 runs imported"));
    assert_eq!(place.runs(), 4);
}

#[test]
fn a_dry_run_keeps_nothing() {
    let place = Place::new();
    let path = sample("diskspd_2.2.xml");
    let told = text(&place.run(&["history", "import", path.to_str().unwrap(), "--dry-run"]));
    assert!(told.contains("random read 8 KiB") && told.contains("1 run would be imported"), "{told}");
    assert_eq!(place.runs(), 0);
}

#[test]
fn latencies_that_were_not_measured_are_not_known() {
    let place = Place::new();
    let path = sample("diskspd_2.0.17_plain.txt");
    let told = text(&place.run(&["history", "import", path.to_str().unwrap()]));
    assert!(told.contains("not known") && told.contains("20000"), "{told}");
    assert!(told.contains("when it ran is unknown: the time of the file is taken"), "{told}");
    let entries = place.json(&["history"]);
    let summary = entries[0]["summary"].as_str().unwrap();
    assert!(summary.contains("latency not known"), "{summary}");
}

#[test]
fn settings_that_fio_did_not_report_are_not_invented() {
    let place = Place::new();
    let path = sample("fio_2.1.4.json");
    let shown = text(&place.run(&["history", "import", path.to_str().unwrap()]));
    let row = shown.lines().find(|line| line.contains("random-read")).unwrap();
    assert!(row.contains("read 4 KiB, pattern and caching unknown ") && row.contains("not known"), "{row}");
    assert!(shown.contains("the document has no options of it"), "{shown}");
    assert!(!shown.contains("sequential"), "{shown}");
    let entries = place.json(&["history"]);
    let summary = entries[0]["summary"].as_str().unwrap();
    assert!(summary.contains("pattern and caching unknown") && !summary.contains("outstanding"), "{summary}");
}

#[test]
fn fio_output_for_people_names_the_option_to_rerun_with() {
    let place = Place::new();
    let normal = "mix: (g=0): rw=randrw, bs=(R) 8192B-8192B, ioengine=libaio, iodepth=8\nfio-3.33\n";
    let file = place.file("fio.txt", normal);
    let refused = text(&place.run(&["history", "import", file.to_str().unwrap(), "--as", "fio"]));
    assert!(
        refused.contains("fio's report for people") && refused.contains("--output-format=json+"),
        "{refused}"
    );
}

#[test]
fn a_folder_of_bench_fio_is_imported_whole() {
    let place = Place::new();
    let mix = std::fs::read_to_string(sample("fio_mix.json")).unwrap();
    place.file("out/nvme0n1/randrw70/8k/randrw-8-1.json", &mix);
    place.file("out/nvme0n1/4k/randread-1-1.json", "fio: cannot open\n");
    place.file("out/nvme0n1/4k/randread-1-1_bw.1.log", "1, 2, 3\n");
    let folder = place.0.path().join("out");
    let output = place.run(&["history", "import", folder.to_str().unwrap()]);
    let told = text(&output);
    assert!(output.status.success() && told.contains("1 run imported"), "{told}");
    assert!(told.contains("randread-1-1.json was left out: the text holds no JSON of fio"), "{told}");
}

#[test]
fn what_comes_through_a_pipe_is_read() {
    let place = Place::new();
    let mut child = place
        .command(&["history", "import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&std::fs::read(sample("fio_group.json")).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && text(&output).contains("1 run imported"), "{}", text(&output));
}

#[test]
fn what_cannot_be_read_names_line_reason_and_remedy() {
    let place = Place::new();
    let whole = std::fs::read_to_string(sample("diskspd_2.0.17.txt")).unwrap();
    let damaged = place.file("damaged.txt", whole.replace("|       300000 |", "|       3OO000 |"));
    let refuse = |arguments: &[&str], pieces: &[&str]| {
        let output = place.run(arguments);
        let told = text(&output);
        assert_eq!(output.status.code(), Some(3), "{told}");
        pieces.iter().for_each(|piece| assert!(told.contains(piece), "no '{piece}' in {told}"));
    };
    refuse(
        &["history", "import", damaged.to_str().unwrap()],
        &["error: cannot import", "line 58: '3OO000' is not a number"],
    );
    let diary = place.file("diary.txt", "dear diary\n");
    refuse(
        &["history", "import", diary.to_str().unwrap()],
        &["this is no output of diskspd or fio", "try: give diskspd's text"],
    );
    let trace = place.file("trace.csv", "at_ns,kind,offset_bytes,bytes\n0,read,0,512\n");
    refuse(&["history", "import", trace.to_str().unwrap()], &["this is a trace", "headroom run --replay"]);
    let other = place.file("other.json", "{}\n");
    refuse(
        &["history", "import", "--as", "fio", other.to_str().unwrap()],
        &["line 1: this JSON is not fio's", "try: give what fio --output-format=json"],
    );
    refuse(&["history", "import", "/no/such/file"], &["cannot read /no/such/file", "try: name a file"]);
    refuse(&["history", "import", place.0.path().join("empty").to_str().unwrap()], &["cannot read"]);
    assert_eq!(place.runs(), 0);
}

fn counters(name: &str) -> String {
    sample(name).to_str().unwrap().to_owned()
}

#[test]
fn a_servers_history_becomes_captures_that_intervals_and_exports_work_on() {
    let place = Place::new();
    let path = counters("counters_file_stats.csv");
    let value = place.json(&["history", "import", &path]);
    let kept = &value["counters"][0];
    assert_eq!((&kept["source"], &kept["new"]), (&r"sqlserver:PROD01\SQL2019".into(), &7.into()));
    assert_eq!(kept["captures"].as_array().unwrap().len(), 7);
    let reasons: Vec<(&str, u64)> = kept["unknown"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unknown| (unknown["reason"].as_str().unwrap(), unknown["intervals"].as_u64().unwrap()))
        .collect();
    assert_eq!(reasons, [("restart", 4), ("reopened", 2)]);

    let between =
        place.json(&["history", "intervals", "restarted, nothing ran", "two minutes of \"everyday\""]);
    let sales = between["intervals"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["file"]["file_id"].as_str().unwrap().starts_with("5:1@"));
    let delta = &sales.unwrap()["interval"]["known"];
    assert_eq!(delta["elapsed_ns"], 120_000_000_000_u64);
    assert_eq!(
        delta["counters"]["read"],
        serde_json::json!({"count": 4_000, "bytes": 262_144_000, "stall_ns": 228_000_000_000_u64})
    );
    assert_eq!(sales.unwrap()["between"]["read_ns"], 57_000_000.0);

    let table = text(&place.run(&["history", "captures", "--source", "sqlserver"]));
    assert_eq!(table.lines().count(), 1 + 28, "{table}");
    assert!(table.contains(r#"sales.mdf""#) && table.contains(",10000,655360000,57000.0,"), "{table}");

    let again = text(&place.run(&["history", "import", &path]));
    assert!(again.contains("nothing new in it") && again.contains("7 captures known from before"), "{again}");
    assert_eq!(place.json(&["history", "captures"]).as_array().unwrap().len(), 28);
}

#[test]
fn an_export_that_grew_adds_what_is_new_and_an_older_one_is_told() {
    let place = Place::new();
    let whole = std::fs::read_to_string(sample("counters_blitz_first.csv")).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let part = |rows: std::ops::Range<usize>| lines[0].to_owned() + "\n" + &lines[rows].join("\n");
    let middle = place.file("middle.csv", part(4..11));
    assert!(
        text(&place.run(&["history", "import", middle.to_str().unwrap()]))
            .contains("2 captures of up to 4 files imported")
    );
    let grown = place.file("grown.csv", part(4..lines.len()));
    let told = text(&place.run(&["history", "import", grown.to_str().unwrap()]));
    assert!(
        told.contains("3 captures of up to 4 files imported") && told.contains("2 captures known"),
        "{told}"
    );
    assert!(told.contains("unknown: the engine restarted"), "{told}");
    let old = place.file("old.csv", part(1..7));
    let told = text(&place.run(&["history", "import", old.to_str().unwrap()]));
    assert!(told.contains("1 capture left out: older than the newest that is kept"), "{told}");
}

#[test]
fn a_counter_log_is_reported_and_not_kept() {
    let place = Place::new();
    let path = counters("counters_perfmon.csv");
    let told = text(&place.run(&["history", "import", &path]));
    for piece in
        ["PhysicalDisk 1 D: of SQL01", "140", "queue as sampled: 1.00 on average", "not kept", "Memory"]
    {
        assert!(told.contains(piece), "no '{piece}' in {told}");
    }
    let value = place.json(&["history", "import", &path]);
    let interval = &value["disks"][0]["intervals"][1];
    assert_eq!((&interval["outstanding"], &interval["iops"]), (&2.2.into(), &600.0.into()));
    assert_eq!(interval["queue_sampled"], 0.0);
    let csv = text(&place.run(&["history", "import", &path, "--csv"]));
    assert_eq!(csv.lines().count(), 1 + 6, "{csv}");
    assert_eq!(
        csv.lines().nth(1).unwrap().matches(',').count(),
        csv.lines().next().unwrap().matches(',').count()
    );
    assert_eq!(place.runs(), 0);
}

#[test]
fn the_script_is_printed_for_a_database_of_the_users_choice() {
    let place = Place::new();
    let script = text(&place.run(&["sources", "capture-script", "sqlserver"]));
    assert!(script.contains("CREATE TABLE headroom.file_stats") && !script.contains("\nUSE ["), "{script}");
    let used = text(&place.run(&["sources", "capture-script", "sqlserver", "--database", "a]b"]));
    assert_eq!(used, format!("USE [a]]b];\nGO\n\n{script}"));
    assert_eq!(place.run(&["sources", "capture-script", "oracle"]).status.code(), Some(2));
}

#[test]
fn latencies_that_a_tool_reported_are_shown_charted_and_compared() {
    let place = Place::new();
    let fio = |name: &str, depth: u64, factor: f64| {
        let mut value: Value =
            serde_json::from_str(&std::fs::read_to_string(sample("fio_windows.json")).unwrap()).unwrap();
        let job = &mut value["jobs"][0];
        job["job options"]["iodepth"] = depth.to_string().into();
        job["read"]["clat_ns"]["mean"] = (1_590_200.5 * factor).into();
        job["read"]["clat_ns"]["percentile"]["99.000000"] = ((3_063_808.0 * factor) as u64).into();
        place.file(name, value.to_string()).to_str().unwrap().to_owned()
    };
    let article = sample("diskspd_article.txt");
    let files = [fio("a.json", 32, 1.0), fio("b.json", 16, 0.5), fio("c.json", 8, 0.25)];
    let imported =
        text(&place.run(&["history", "import", article.to_str().unwrap(), &files[0], &files[1], &files[2]]));
    assert!(imported.contains("4 runs imported") && imported.contains("6.33 ms"), "p99 of all: {imported}");

    let shown = text(&place.run(&["history", "show", "run", "1"]));
    for figure in ["2.36 ms", "3.27 ms", "38.7 ms", "207 ms", "208 ms", "312 ms"] {
        assert!(shown.contains(figure), "{figure}: {shown}");
    }
    assert!(!shown.contains("No latencies"), "{shown}");
    let json = place.json(&["history", "show", "run", "1"]);
    assert_eq!(json["total_percentiles"][6], serde_json::json!([99.0, 6_330_000]));

    let svg = place.0.path().join("p.svg");
    for (kind, runs) in [("percentiles", "1"), ("percentiles", "1-2"), ("load-curve", "2-4")] {
        let output = place.run(&["history", "chart", runs, "--kind", kind, "--out", svg.to_str().unwrap()]);
        assert!(output.status.success(), "{kind}: {}", text(&output));
        let drawn = std::fs::read_to_string(&svg).unwrap();
        assert!(drawn.contains(if kind == "percentiles" { "as another tool reported them" } else { "p99" }));
        let points = drawn.matches("<circle").count();
        assert!(points >= if kind == "percentiles" { 12 } else { 6 }, "{kind}: {points} points are drawn");
    }
    let refused =
        text(&place.run(&["history", "chart", "1", "--kind", "histogram", "--out", svg.to_str().unwrap()]));
    assert!(refused.contains("but no histogram"), "{refused}");
    let page = place.0.path().join("p.html");
    assert!(place.run(&["history", "chart", "1", "--out", page.to_str().unwrap()]).status.success());
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("6.33\u{a0}ms at p99") && !page.contains("no I/O completed"));

    let compared = text(&place.run(&["compare", "2", "3"]));
    assert!(compared.contains("p99 of reads") && compared.contains("3.06 ms"), "{compared}");
    assert!(compared.contains("1.53 ms"), "{compared}");
}

#[test]
fn a_binary_counter_log_is_named_with_the_program_that_converts_it() {
    let place = Place::new();
    let log = place.file("disks.blg", b"\0\x01(PDH-BIN 4.0)\0\0");
    let refused = text(&place.run(&["history", "import", log.to_str().unwrap()]));
    assert!(refused.contains("relog LOG.blg -f csv -o LOG.csv"), "{refused}");
}
