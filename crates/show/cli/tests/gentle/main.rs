//! `headroom measure --gentle` on real block devices: what it finds, and what others feel of it. Needs root and loop
//! devices; beside a program on a disk with a latency: `lab/cli/tests`. The whole measurement beside a database, half an hour: scripts/bench gentle.

use capability::ResourceName;
use history::History;
use seen::{Contradiction, Seen};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;
use storage::Target;
use testbed::LoopDisk;
use workload::CapKind;

/// `headroom` with a history of its own.
struct Headroom {
    home: tempfile::TempDir,
}

impl Headroom {
    fn new() -> Headroom {
        Headroom { home: tempfile::tempdir().unwrap() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headroom"));
        command.arg("--history").arg(self.home.path().join("history.db")).arg("--json").args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn curve<'a>(capability: &'a Value, name: &str) -> &'a Value {
    let curves = capability["curves"].as_array().unwrap();
    let found = curves.iter().find(|curve| curve["name"].as_str().unwrap().starts_with(name));
    found.unwrap_or_else(|| panic!("no curve {name}: {capability:#}"))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A disk in memory that gives 800 reads a second, with a file of a database.
fn capped_disk() -> Option<LoopDisk> {
    let mut disk = LoopDisk::new_in_memory(160 << 20)?;
    let directory = disk.format_and_mount().to_path_buf();
    std::fs::create_dir(directory.join("base")).unwrap();
    let file = std::fs::File::create(directory.join("base/16384")).unwrap();
    std::io::Write::write_all(&mut &file, &vec![7; 96 << 20]).unwrap();
    file.sync_all().unwrap();
    disk.throttle(CapKind::ReadIops, 800).then_some(disk)
}

#[test]
fn on_a_capped_disk_the_curve_is_that_of_the_full_measurement_and_nothing_is_written() {
    let Some(disk) = capped_disk() else { return };
    let (headroom, directory) = (Headroom::new(), disk.mount_point().to_path_buf());
    let file = directory.join("base/16384");
    let before = std::fs::metadata(&file).unwrap();
    let entries = || std::fs::read_dir(&directory).unwrap().count();
    let entries_before = entries();
    // Ended early first: the next run goes on.
    let gentle = ["measure", "--gentle", "--quick", "--budget", "100%", text(&directory)];
    headroom.run(&[&gentle[..], &["--duration", "3s"]].concat());
    let began = Instant::now();
    let found = headroom.json(&gentle);
    let took_s = number(&found["conditions"]["took_s"]);
    assert!(took_s > began.elapsed().as_secs_f64() + 1.0, "goes on where it was: {took_s} s");
    assert_eq!(found["capability_from"], "gentle");
    assert!(found["cost_model"].is_null(), "writes were not measured: {}", found["cost_model"]);

    let full = Headroom::new().json(&["measure", "--read-only", "--quick", text(&file)]);
    let (found, full) = (curve(&found, "random read 8 KiB"), curve(&full, "random read 8 KiB"));
    let iops = |curve: &Value| number(&curve["knee"]["iops"]);
    assert!((iops(found) / iops(full) - 1.0).abs() < 0.1, "{} and {}", iops(found), iops(full));
    assert_eq!(found["knee"]["reason"], "cap", "{found:#}");

    let after = std::fs::metadata(&file).unwrap();
    let times = |metadata: &std::fs::Metadata| (metadata.atime(), metadata.mtime(), metadata.ctime());
    assert_eq!((times(&before), entries_before), (times(&after), entries()), "only read");
    // It is what is known of this storage, and says where it comes from.
    let known = headroom.json(&["storage", text(&directory)]);
    let reads = &known["resources"][0];
    assert_eq!((&reads["name"], &reads["from"]), (&"read-operations".into(), &"gentle".into()), "{known:#}");
    assert!((number(&reads["value"]) / 800.0 - 1.0).abs() < 0.1, "{reads}");
}

#[test]
fn what_cannot_be_measured_gently_is_refused_with_what_to_do() {
    let (headroom, empty) = (Headroom::new(), tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let refused = |arguments: &[&str], code: i32, why: &str| {
        let output = headroom.run(&[&["measure"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(why), "{said}");
    };
    let here = text(empty.path());
    refused(&["--gentle", here], 3, "no file below it has 16 MiB");
    refused(&["--gentle", "--budget", "0%", here], 2, "as in 5%");
    refused(&["--gentle", "--guard", "soon", here], 2, "read=10ms");
    refused(&["--gentle", "--destroy-data", here, here], 2, "cannot be used with");
    refused(&["--budget", "5%", here], 2, "--gentle");
    refused(&["--gentle", "--files", "/nowhere/at/all"], 3, "no such file");
}

#[test]
fn what_was_seen_to_be_otherwise_for_a_day_is_measured_again_and_nothing_else() {
    let Some(mut disk) = capped_disk() else { return };
    let (headroom, directory) = (Headroom::new(), disk.mount_point().to_path_buf());
    let measure = ["measure", "--quick", "--size", "16M", text(&directory)];
    let before = headroom.json(&measure);
    let refresh = [&measure[..], &["--refresh"]].concat();
    let same = headroom.json(&refresh);
    assert_eq!(same["measured_at"], before["measured_at"], "nothing is in doubt");

    // The disk gives half as many reads since two days.
    assert!(disk.throttle(CapKind::ReadIops, 400));
    let facts = Target::open(&directory).unwrap().facts().clone();
    let mut history = History::open(&headroom.home.path().join("history.db")).unwrap();
    let known = history.latest_capability(&facts).unwrap().unwrap().1;
    let day_ns = 86_400_000_000_000;
    let contradiction = Contradiction {
        name: ResourceName::ReadOperations,
        times: 0.5,
        since_unix_ns: known.measured_unix_ns,
        until_unix_ns: known.measured_unix_ns + 2 * day_ns,
    };
    let seen = Seen {
        compared_unix_ns: known.measured_unix_ns,
        contradictions: vec![contradiction],
        ..Seen::default()
    };
    history.save_seen(&facts, &seen).unwrap();
    let after = headroom.json(&refresh);
    let iops = |capability: &Value| number(&curve(capability, "random read 8 KiB")["knee"]["iops"]);
    assert!((iops(&after) / 400.0 - 1.0).abs() < 0.1, "{} and {}", iops(&before), iops(&after));
    let seconds = |capability: &Value| number(&capability["conditions"]["took_s"]);
    assert!(seconds(&after) <= 32.0 / 4.0 + 1.0, "{} s of {} s", seconds(&after), seconds(&before));
    for name in ["random write 8 KiB", "sequential read 512 KiB"] {
        assert_eq!(curve(&after, name), curve(&before, name));
    }
    let cost = |capability: &Value| number(&capability["cost_model"]["read_random"]["fixed_ns"]);
    assert!((cost(&after) / cost(&before) / 2.0 - 1.0).abs() < 0.15, "{} {}", cost(&before), cost(&after));
    assert!(after["conditions"]["remarks"].to_string().contains("measured again"));
}
