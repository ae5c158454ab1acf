//! Other programs of this host beside a database whose own load is small and always the same, and a control group that
//! limits it.
//!
//! ```text
//! upper   a loop device on a file of lower's file system: the databases, a backup's reader
//! lower   a loop device that a control group holds at 2,000 reads a second: the storage; what reads upper's file
//! ```

use super::engines::Postgres;
use super::{Load, READS_A_SECOND};
use host::DeviceNumber;
use programs::{Headroom, Scenario, built};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testbed::LoopDisk;
use workload::CapKind;

const SECONDS: u32 = 60;
const READS_A_SECOND_OF_GROUP: u64 = 300;
/// Read in I/Os of 8 KiB in 16 s.
const LARGE_BYTES: usize = 256 << 20;

/// Ended when dropped.
struct Program(Child);

impl Program {
    /// `None`, after saying so, where it is not installed.
    fn start(name: &str, arguments: &[&str]) -> Option<Program> {
        let mut program = Command::new(name);
        program.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        program.spawn().inspect_err(|error| eprintln!("skipped: no {name}: {error}")).ok().map(Program)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// A control group of version 1 or 2 that limits reads of a device, as a container's. Removed when dropped.
struct LimitedGroup(PathBuf);

impl LimitedGroup {
    fn new(device: &str) -> Option<LimitedGroup> {
        let name = format!("headroom-test-{}", std::process::id());
        let number = DeviceNumber::parse(device).unwrap();
        let limit = |group: &Path, file: fn(PathBuf) -> host::ThrottleFile, name: &str| {
            let file = file(group.join(name));
            let line = file.line(number, CapKind::ReadIops, Some(READS_A_SECOND_OF_GROUP));
            fs::write(file.path(), line).is_ok()
        };
        let (v1, v2) = (Path::new("/sys/fs/cgroup/blkio"), Path::new("/sys/fs/cgroup"));
        for (root, file, limits) in [
            (v1, "blkio.throttle.read_iops_device", host::ThrottleFile::V1 as fn(PathBuf) -> _),
            (v2, "io.max", host::ThrottleFile::V2),
        ] {
            let group = LimitedGroup(root.join(&name));
            if fs::create_dir(&group.0).is_ok() && limit(&group.0, limits, file) {
                return Some(group);
            }
        }
        eprintln!("skipped: no control group that limits a device can be made");
        None
    }

    fn take(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The upper device on the lower one, with a small database on it, and what was measured there.
struct Stage {
    headroom: Headroom,
    database: Scenario,
    dir: PathBuf,
    pages: tempfile::TempDir,
    // In the order in which they must go.
    upper: LoopDisk,
    lower: LoopDisk,
}

impl Stage {
    fn set_up() -> Option<Stage> {
        let mut lower = LoopDisk::new(4 << 30)?;
        let below = lower.format_and_mount().to_owned();
        let mut upper = LoopDisk::new_in(&below, 3 << 30)?;
        let dir = upper.format_and_mount().to_owned();
        built();
        let database = Scenario::prepare("idle", &dir.join("shop.db"));
        let large = fs::File::create(dir.join("large")).unwrap();
        large.write_all_at(&vec![7; LARGE_BYTES], 0).and_then(|()| large.sync_all()).unwrap();
        if !lower.throttle(CapKind::ReadIops, READS_A_SECOND) {
            return None;
        }
        let headroom = Headroom::new();
        let measured = headroom.measure(&dir);
        let iops = measured["curves"][0]["knee"]["iops"].as_f64().unwrap();
        assert!((iops / READS_A_SECOND as f64 - 1.0).abs() < 0.15, "{iops}: {measured:#}");
        Some(Stage { headroom, database, dir, pages: tempfile::tempdir().unwrap(), upper, lower })
    }

    /// The answer about the database under that load; the page says the same.
    fn check(&self, load: &str) -> Value {
        let _running = self.database.start(load, SECONDS);
        self.check_running()
    }

    fn check_running(&self) -> Value {
        let page = self.pages.path().join("answer.html");
        let source = format!("sqlite:{}", self.dir.join("shop.db").display());
        let arguments = ["check", "--source", &source, "--duration", "7s", "--html", page.to_str().unwrap()];
        let answer = self.headroom.json(&arguments);
        println!(
            "{} {}, {}: {}",
            answer["verdict"], answer["cause"], answer["summary"], answer["neighbours"]
        );
        let html = fs::read_to_string(page).unwrap();
        for one in answer["neighbours"].as_array().unwrap() {
            let name = format!("{} (pid {})", one["command"].as_str().unwrap(), one["pid"]);
            let summary = answer["summary"].as_str().unwrap();
            assert!(!summary.contains(&name) || html.contains(&name), "{name} is not on the page");
        }
        answer
    }
}

/// A file system in which every write waits until it is thawed.
struct Frozen(PathBuf);

impl Frozen {
    fn begin(mount: &Path) -> Option<Frozen> {
        let done = Command::new("fsfreeze").arg("--freeze").arg(mount).status();
        let is_frozen = done.is_ok_and(|status| status.success());
        if !is_frozen {
            eprintln!("skipped: {} cannot be frozen", mount.display());
        }
        is_frozen.then(|| Frozen(mount.to_owned()))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("--unfreeze").arg(&self.0).status();
    }
}

/// The program is the cause, by its name, number and part.
#[track_caller]
fn names(answer: &Value, command: &str, pid: u32) {
    let verdict = answer["verdict"].as_str().unwrap();
    assert!(["demand-exceeds-capability", "storage-degraded"].contains(&verdict), "{answer:#}");
    assert_eq!(answer["cause"], "another-program", "{answer:#}");
    let neighbours = answer["neighbours"].as_array().unwrap();
    let it = neighbours.iter().find(|one| one["pid"] == pid).unwrap_or_else(|| panic!("{neighbours:#?}"));
    assert_eq!(it["command"], command);
    let share = it["operations_share"].as_f64().unwrap_or(0.0).max(it["share"].as_f64().unwrap());
    assert!(share > 0.5, "{it:#}");
    let name = format!("{command} (pid {pid}) does ");
    let (summary, next) = (answer["summary"].as_str().unwrap(), answer["next_step"].as_str().unwrap());
    assert!(summary.contains("another program on this host") && summary.contains(&name), "{summary}");
    assert!(next.contains(&name) && !next.contains("below"), "{next}");
}

#[test]
fn a_program_beside_or_below_a_database_is_named_and_a_group_that_limits_it_too() {
    let Some(stage) = Stage::set_up() else { return };
    // Below the lower device is the machine's own disk, which others may use.
    let alone = stage.check("idle");
    let beside = alone["neighbours"].as_array().unwrap().iter().filter(|one| one["device"].is_null());
    assert_eq!(beside.count(), 0, "{alone:#}");

    let large = format!("if={}", stage.dir.join("large").display());
    if let Some(backup) = Program::start("dd", &[&large, "of=/dev/null", "bs=8k", "iflag=direct"]) {
        names(&stage.check("idle"), "dd", backup.0.id());
    }

    let image = format!("--filename={}", stage.upper.backing_file().display());
    let load = ["--name=below", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio"];
    let load = [&load[..], &["--iodepth=32", "--time_based", "--runtime=60", "--readonly", &image]].concat();
    if let Some(below) = Program::start("fio", &load) {
        let answer = stage.check("idle");
        names(&answer, "fio", below.0.id());
        assert_eq!(answer["verdict"], "storage-degraded", "the device itself is idle: {answer:#}");
    }

    let running = stage.database.start("idle", SECONDS);
    if let Some(frozen) = Frozen::begin(stage.lower.mount_point()) {
        let answer = stage.check_running();
        drop(frozen);
        assert_eq!(answer["verdict"], "storage-degraded", "nothing completes: {answer:#}");
        assert!(answer["summary"].as_str().unwrap().contains("completed none"), "{answer:#}");
        assert_eq!((&answer["headroom"], &answer["cause"]), (&Value::Null, &"below".into()), "{answer:#}");
    }
    drop(running);

    if let Some(second) = Postgres::make(&stage.dir) {
        let postmaster = fs::read_to_string(stage.dir.join("postgres-data/postmaster.pid")).unwrap();
        let postmaster = postmaster.lines().next().unwrap().parse().unwrap();
        second.settle();
        let running = second.start(Load::Readers);
        names(&stage.check("idle"), "postgres", postmaster);
        drop(running);
    }

    let Some(group) = LimitedGroup::new(stage.upper.number()) else { return };
    let running = stage.database.start("readers", SECONDS);
    group.take(running.pid());
    let answer = stage.check_running();
    // Of storage that was never measured.
    let source = format!("sqlite:{}", stage.dir.join("shop.db").display());
    let unmeasured = Headroom::new().json(&["check", "--source", &source, "--duration", "5s"]);
    drop(running);
    assert_eq!(answer["verdict"], "throttled", "{answer:#}");
    assert_eq!(
        (&unmeasured["verdict"], &unmeasured["headroom"]),
        (&answer["verdict"], &Value::Null),
        "{unmeasured:#}"
    );
    assert!(unmeasured["summary"].as_str().unwrap().contains("at the device"), "{unmeasured:#}");
    let origin = group.0.to_str().unwrap();
    for sentence in ["summary", "next_step"] {
        assert!(answer[sentence].as_str().unwrap().contains(origin), "{answer:#}");
    }
    assert!(answer["caps"].as_array().unwrap().iter().any(|cap| {
        cap["origin"].as_str().unwrap().contains(origin) && cap["per_second"] == READS_A_SECOND_OF_GROUP
    }));
}
