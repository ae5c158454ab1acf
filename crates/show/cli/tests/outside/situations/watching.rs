//! A live database that is not there, ends, or starts again.

use super::{Finished, Started, headroom, text};
use programs::{Headroom, Scenario};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;
use testbed::LoopDisk;

#[test]
fn a_database_that_cannot_be_watched_says_why() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir().unwrap();
    let missing = "sqlite:/no/where/shop.db";
    let silent = dir.path().join("shop.db");
    fs::write(&silent, "").unwrap();
    let silent = format!("sqlite:{}", silent.display());
    for command in [&["check"][..], &["history", "capture"]] {
        headroom(&ours, &[command, &["--source", missing]].concat()).refused(
            3,
            &[
                "cannot watch /no/where/shop.db: No such file",
                "\n  try: give the path of an existing database",
            ],
        );
        headroom(&ours, &[command, &["--source", &silent]].concat()).refused(
            3,
            &[
                "no running program publishes counters",
                "\n  looked for counters in: ",
                "\n  try: load the extension",
            ],
        );
    }
}

#[test]
fn a_program_that_ends_or_restarts_gives_no_made_up_delta() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let scenario = Scenario::prepare("commits", &dir.path().join("shop.db"));
    let source = format!("sqlite:{}", dir.path().join("shop.db").display());
    let watch =
        || Started::new(&mut ours.command(&["check", "--source", &source, "--duration", "5s", "--json"]));
    let nap = |seconds| std::thread::sleep(Duration::from_secs(seconds));
    let cannot_say = |said: &Finished| {
        let answer: serde_json::Value = serde_json::from_str(&said.stdout).expect(&said.stderr);
        assert_eq!(said.code, Some(3), "{answer:#}");
        assert_eq!(answer["verdict"], "cannot-say");
        assert!(said.stderr.contains("was never measured: headroom measure "), "{}", said.stderr);
        answer
    };

    let running = scenario.start("commits", 30);
    let whole = cannot_say(&watch().end());
    assert!(whole["next_step"].as_str().unwrap().contains("headroom measure"), "{whole:#}");

    let check = watch();
    nap(2);
    drop(running);
    let ended = cannot_say(&check.end());
    assert!(!ended["files"].as_array().unwrap().is_empty(), "what was seen before is told: {ended:#}");
    assert!(
        ended["summary"].as_str().unwrap().contains("of the observed time has known figures"),
        "{ended:#}"
    );

    let running = scenario.start("commits", 30);
    let check = watch();
    nap(2);
    drop(running);
    let running = scenario.start("commits", 30);
    let restarted = cannot_say(&check.end());
    drop(running);
    // Counters of the second program begin at 0: a difference to the first's would have no sense.
    let files = restarted["files"].as_array().unwrap();
    let most = files.iter().filter_map(|file| file["writes"].as_u64()).max().unwrap();
    assert!(most > 0 && most < 10_000_000, "{restarted:#}");
    let history = rusqlite::Connection::open(ours.history()).unwrap();
    let query = "SELECT count(DISTINCT epoch) FROM file_stats WHERE path = ?";
    let epochs: i64 =
        history.query_row(query, [text(&dir.path().join("shop.db"))], |row| row.get(0)).unwrap();
    assert_eq!(epochs, 3, "each program is an epoch of its own");
}

#[test]
fn a_volume_that_is_named_is_judged_alone() {
    let (Some(mut one), Some(mut other)) = (LoopDisk::new(64 << 20), LoopDisk::new(64 << 20)) else { return };
    let places = [one.format_and_mount().to_path_buf(), other.format_and_mount().to_path_buf()];
    let mut fio = Command::new("fio");
    fio.args(["--size=8m", "--bs=4k", "--rw=randread", "--direct=1", "--time_based"]);
    fio.args(["--thread", "--runtime=60", "--rate_iops=500", "--output-format=terse"]);
    for (name, place) in ["here", "there"].iter().zip(&places) {
        fio.arg(format!("--name={name}")).arg(format!("--filename={}", place.join(name).display()));
    }
    let mut fio = fio.stdout(Stdio::null()).spawn().unwrap();
    let source = format!("process:{}", fio.id());
    std::thread::sleep(Duration::from_secs(1));
    let ours = Headroom::new();
    for (at, name) in ["here", "there"].iter().enumerate() {
        let said =
            headroom(&ours, &["check", text(&places[at]), "--source", &source, "--duration", "2s", "--json"]);
        let answer: serde_json::Value = serde_json::from_str(&said.stdout).expect(&said.stderr);
        let files = answer["files"].as_array().unwrap();
        let on_it = places[at].join(name);
        assert!(!files.is_empty(), "{answer:#}");
        assert!(files.iter().all(|file| file["path"] == text(&on_it)), "{answer:#}");
        assert_eq!(answer["volumes"].as_array().unwrap().len(), 1, "{answer:#}");
        assert_eq!(answer["target_path"], text(&places[at]));
    }
    fio.kill().unwrap();
    fio.wait().unwrap();
}
