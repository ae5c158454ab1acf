//! `headroom agent --record-only` as a service would run it.

use filestats::{Interval, Rules, Snapshot, intervals};
use history::{CaptureFilter, History};
use programs::{Headroom, Scenario};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn start(ours: &Headroom, arguments: &[&str]) -> Child {
    let mut command = ours.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn kept(path: &Path) -> Vec<Snapshot> {
    let Ok(history) = History::open(path) else { return Vec::new() };
    let mut captures = history.captures(&CaptureFilter::default()).unwrap();
    captures.reverse();
    captures.iter().map(|capture| history.snapshot(capture.id).unwrap()).collect()
}

#[track_caller]
fn wait_for_captures(path: &Path, count: usize) {
    let began = Instant::now();
    while !path.exists() || kept(path).len() < count {
        assert!(began.elapsed() < Duration::from_secs(60), "{count} captures never came");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn end(child: Child, signal: &str) -> std::process::Output {
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

#[test]
fn killed_and_started_again_it_loses_nothing_that_was_kept() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let database = dir.path().join("shop.db");
    let _running = Scenario::prepare("commits", &database).start("commits", 60);
    let source = format!("sqlite:{}", database.display());
    let record = ["agent", "--record-only", "--source", &source, "--every", "1s"];
    let first = start(&ours, &record);
    wait_for_captures(&ours.history(), 3);
    end(first, "-KILL");
    let before = kept(&ours.history());
    let second = start(&ours, &record);
    wait_for_captures(&ours.history(), before.len() + 2);
    let ended = end(second, "-TERM");
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    let after = kept(&ours.history());
    assert_eq!(after[..before.len()], before[..]);
    // The database's program went on: one epoch, every interval known, and the parts make the whole.
    let written = |then: &Snapshot, now: &Snapshot| -> u64 {
        let rows = intervals(then, now, Rules::default());
        let log = rows.iter().find(|row| row.file.path.ends_with("-wal")).unwrap();
        match &log.interval {
            Interval::Known(delta) => delta.counters.write.bytes,
            Interval::Unknown(reason) => panic!("{reason}"),
        }
    };
    let parts: u64 = after.windows(2).map(|pair| written(&pair[0], &pair[1])).sum();
    assert_eq!(parts, written(&after[0], after.last().unwrap()));
    assert!(parts > 0);
}

#[test]
fn a_program_that_is_not_there_yet_is_a_gap_that_ends() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let database = dir.path().join("shop.db");
    let scenario = Scenario::prepare("commits", &database);
    let config = dir.path().join("recorder.toml");
    let written =
        format!("record-only = true\nevery = \"1s\"\nsources = [\"sqlite:{}\"]\n", database.display());
    std::fs::write(&config, written).unwrap();
    let record = start(&ours, &["agent", "--config", config.to_str().unwrap()]);
    std::thread::sleep(Duration::from_secs(2));
    let _running = scenario.start("commits", 60);
    wait_for_captures(&ours.history(), 2);
    let ended = end(record, "-TERM");
    let log = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(log.contains("no running program publishes counters for it; next try in"), "{log}");
    assert!(log.contains("recording again after"), "{log}");
    let gaps = History::open(&ours.history()).unwrap().gaps().unwrap();
    assert_eq!(gaps.len(), 1);
    assert!(gaps[0].until_unix_ns.is_some() && gaps[0].reason.contains("no running program"));
}

/// A server for a test: appends to a file ten times a second, and has its number in a pid file.
struct Server {
    child: Child,
}

impl Server {
    fn start(dir: &Path) -> Server {
        let work = "while :; do echo work >> data; sleep 0.1; done";
        let mut command = std::process::Command::new("sh");
        let child = command.args(["-c", work]).current_dir(dir).spawn().unwrap();
        std::fs::write(dir.join("server.pid"), format!("{}\n{}\n", child.id(), dir.display())).unwrap();
        Server { child }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_root() -> bool {
    let is_root = std::fs::read_to_string("/proc/self/status").unwrap().contains("CapEff:\t000001ff");
    if !is_root {
        println!("skipped: counting any process's I/O needs root");
    }
    is_root
}

/// Records a server that is started in `dir`, ends, and is started again, and reads the kept captures. `before` is done
/// before each start, `after` after it.
fn followed(source: &str, dir: &Path, before: impl Fn(), after: impl Fn(&Server)) {
    let ours = Headroom::new();
    let begin = || {
        before();
        let server = Server::start(dir);
        after(&server);
        server
    };
    let first = begin();
    let record = start(&ours, &["agent", "--record-only", "--source", source, "--every", "1s"]);
    let written_by = |snapshot: &Snapshot, pid: u32| -> u64 {
        let of_it = |sample: &&filestats::Sample| {
            sample.file.instance.starts_with(&format!("pid {pid} ")) && sample.file.path.ends_with("/data")
        };
        snapshot.samples.iter().filter(of_it).map(|sample| sample.counters.write.count).sum()
    };
    let wait_for = |pid: u32| {
        let began = Instant::now();
        while !ours.history().exists() || !kept(&ours.history()).iter().any(|one| written_by(one, pid) > 0) {
            assert!(began.elapsed() < Duration::from_secs(120), "server {pid} was never seen");
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    wait_for(first.child.id());
    drop(first);
    let second = begin();
    let pid = second.child.id();
    wait_for(pid);
    end(record, "-TERM");
    let all = kept(&ours.history());
    assert!(all.iter().all(|snapshot| snapshot.source == source), "{}", all[0].source);
    // From one to the other nothing is claimed: they are two epochs.
    let runs = |snapshot: &Snapshot| -> BTreeSet<String> {
        snapshot.samples.iter().map(|sample| sample.epoch.run.clone()).collect()
    };
    let mut pairs = all.windows(2).map(|pair| (&pair[0], &pair[1]));
    let another =
        |then: &Snapshot, now: &Snapshot| !then.samples.is_empty() && runs(then).is_disjoint(&runs(now));
    let (last, new) = pairs.find(|(then, now)| another(then, now)).unwrap();
    let rows = intervals(last, new, Rules::default());
    assert!(rows.iter().all(|row| row.interval.known().is_none()), "{rows:#?}");
}

#[test]
fn a_server_that_is_started_again_is_followed_by_its_pid_file() {
    if is_root() {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let source = format!("process:pid-file={}", dir.path().join("server.pid").display());
        followed(&source, dir.path(), || (), |_| ());
    }
}

/// A control group of a test, removed with it.
struct Group(std::path::PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        // The last process of the server is in it a moment longer.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_control_group_that_is_made_again_is_followed() {
    if !is_root() {
        return;
    }
    let hierarchies = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
    let own = |hierarchy: &&Path| hierarchy.join("cgroup.procs").exists();
    let made = hierarchies.into_iter().find(own).and_then(|hierarchy| {
        let group = Group(hierarchy.join(format!("headroom-test-{}", std::process::id())));
        std::fs::create_dir(&group.0).is_ok().then_some(group)
    });
    let Some(group) = made else {
        println!("skipped: no control group can be made here");
        return;
    };
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // As systemd does for a service; what ended is out of the group a little later.
    let recreate = || {
        let began = Instant::now();
        while std::fs::remove_dir(&group.0).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "the group stays in use");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::fs::create_dir(&group.0).unwrap();
    };
    let enter = |server: &Server| {
        std::fs::write(group.0.join("cgroup.procs"), server.child.id().to_string()).unwrap();
    };
    followed(&format!("process:cgroup={}", group.0.display()), dir.path(), recreate, enter);
}
