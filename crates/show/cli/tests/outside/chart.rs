//! `headroom history chart` on results of the real engine, from the history and from files.

use history::History;
use load::{RunControl, run};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use storage::Region;
use tempfile::TempDir;
use workload::{Caching, PhaseResult, RunLength, RunResult, Shape, Workload};

/// A directory with real results: runs 1 to 3 of the history, and the same in runs.json.
struct Place {
    dir: TempDir,
}

impl Place {
    fn with_runs() -> Place {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let results: Vec<RunResult> = [1, 4, 16].map(|outstanding| measured(dir.path(), outstanding)).into();
        let mut history = History::open(&dir.path().join("history.db")).unwrap();
        results.iter().for_each(|result| assert!(history.save_run(result, None).is_ok()));
        let phases = serde_json::json!({"phases": [PhaseResult { name: "sweep".into(), results }]});
        std::fs::write(dir.path().join("runs.json"), phases.to_string()).unwrap();
        Place { dir }
    }

    fn chart(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headroom"));
        command
            .current_dir(self.dir.path())
            .args(["history", "chart", "--history", "history.db"])
            .args(arguments);
        command.output().unwrap()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.dir.path().join(name)).unwrap()
    }
}

fn measured(dir: &Path, outstanding: u32) -> RunResult {
    let path = dir.join("data");
    let file =
        std::fs::OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path).unwrap();
    let bytes = 4 << 20;
    file.write_all_at(&vec![7; bytes], 0).unwrap();
    let region = Region {
        file,
        offset_bytes: 0,
        bytes: bytes as u64,
        direct: false,
        align_bytes: 1,
        memory_align_bytes: 1,
        path,
        volume: None,
    };
    let shape = Shape { caching: Caching::Buffered, ..Shape::random_read(4096).with_writes(20) };
    let length = RunLength { duration: Duration::from_millis(300), ..RunLength::default() };
    let workload = Workload::from(shape).with_outstanding(outstanding);
    run(&region, &workload, &length, &mut |_| RunControl::Continue).unwrap()
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn real_runs_become_pictures_and_pages() {
    let place = Place::with_runs();
    for (arguments, file, begins) in [
        (&["1", "2", "3", "--kind", "load-curve", "--out", "load.svg"][..], "load.svg", &b"<svg xmlns="[..]),
        (&["2", "--kind", "percentiles", "--theme", "dark", "--out", "p.png"], "p.png", b"\x89PNG\r\n"),
        (&["runs.json", "--kind", "histogram", "--out", "h.svg"], "h.svg", b"<svg xmlns="),
        (&["runs.json", "--out", "runs.html"], "runs.html", b"<!doctype html>"),
    ] {
        let output = place.chart(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr_of(&output));
        assert!(place.read(file).starts_with(begins), "{file}");
    }
    let svg = String::from_utf8(place.read("load.svg")).unwrap();
    assert!(svg.contains("random 80/20 4 KiB buffered, 16 x 1 outstanding on "), "says what was run");
    let page = String::from_utf8(place.read("runs.html")).unwrap();
    assert!(
        page.contains("<pre>headroom history chart --history history.db runs.json --out runs.html</pre>")
    );
    assert!(page.contains("Load curve") && page.contains("sweep") || page.contains("16 outstanding"));
}

#[test]
fn only_pictures_of_ours_are_written_over() {
    let place = Place::with_runs();
    let draw = || place.chart(&["1", "--kind", "histogram", "--out", "h.png"]);
    assert!(draw().status.success() && draw().status.success(), "ours is written over");
    std::fs::write(place.dir.path().join("h.png"), "a holiday").unwrap();
    let output = draw();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr_of(&output).contains("the file is not one of Headroom's"), "{}", stderr_of(&output));
    assert_eq!(place.read("h.png"), b"a holiday");
}

#[test]
fn what_is_no_run_is_told_with_what_to_give() {
    let place = Place::with_runs();
    let write = |name: &str, text: &str| std::fs::write(place.dir.path().join(name), text).unwrap();
    write("broken.json", "{\"phases\": [");
    write("other.json", "{\"fio version\": 3}");
    write("half.json", "{\"phases\": [{\"name\": \"x\", \"results\": [{\"target\": \"/data\"}]}]}");
    for (given, why) in [
        ("broken.json", "it is no JSON"),
        ("other.json", "neither \"phases\" nor \"workload\""),
        ("half.json", "phase 1: missing field `workload`"),
        ("missing.json", "No such file"),
        ("99", "99"),
    ] {
        let output = place.chart(&[given, "--kind", "histogram", "--out", "h.svg"]);
        assert_eq!(output.status.code(), Some(3), "{given}");
        let told = stderr_of(&output);
        assert!(told.starts_with("error: ") && told.contains(why), "{given}: {told}");
    }
    let wrong = place.chart(&["1", "--kind", "pie", "--out", "h.svg"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr_of(&wrong).contains("load-curve, sweep, heat-map, percentiles"), "{}", stderr_of(&wrong));
    assert!(!place.dir.path().join("h.svg").exists(), "nothing is left behind");
}
