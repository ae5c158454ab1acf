//! `headroom measure --gentle` beside a program, on a disk with a latency. Needs root, loop devices and FUSE.

use programs::Headroom;
use serde_json::Value;
use std::process::{Child, Stdio};

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn curve<'a>(capability: &'a Value, name: &str) -> &'a Value {
    let curves = capability["curves"].as_array().unwrap();
    let found = curves.iter().find(|curve| curve["name"].as_str().unwrap().starts_with(name));
    found.unwrap_or_else(|| panic!("no curve {name}: {capability:#}"))
}

/// Tries a timed check again where it fails, and reports that: other processes may have had the processor.
fn timed(attempt: impl Fn() -> Result<(), String>) {
    for _ in 0..2 {
        let Err(failed) = attempt() else { return };
        eprintln!("once more, since {failed}");
    }
    attempt().unwrap();
}

/// A device that takes 8 ms for each read and 8 reads at once: 1,000 a second. Removed when dropped.
struct Lun {
    headroom: Headroom,
    device: String,
}

impl Lun {
    fn create() -> Option<Lun> {
        let headroom = Headroom::new();
        let flags = ["lab", "luns", "create", "--size", "128M", "--latency", "8ms", "--width", "8"];
        let made = headroom.command(&flags).arg("--json").output().unwrap();
        if !made.status.success() {
            eprintln!("skipped: {}", String::from_utf8_lossy(&made.stderr));
            assert_eq!(made.status.code(), Some(3));
            return None;
        }
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        let device = made["luns"][0]["device"].as_str().unwrap().to_owned();
        Some(Lun { headroom, device })
    }
}

impl Drop for Lun {
    fn drop(&mut self) {
        self.headroom.run(&["lab", "luns", "remove", &self.device]);
    }
}

/// A program that reads with four outstanding, half of what the disk takes.
struct Victim(Child);

impl Victim {
    fn start(lun: &Lun, seconds: u32) -> Victim {
        let duration = format!("{seconds}s");
        let block = ["run", "--block", "8K", "--outstanding", "4", &lun.device, "--json"];
        let length = ["--warm-up", "500ms", "--duration", &duration];
        let mut command = lun.headroom.command(&[&block[..], &length[..]].concat());
        Victim(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Its reads a second, and their 99th percentile in nanoseconds.
    fn end(self) -> (f64, f64) {
        let output = self.0.wait_with_output().unwrap();
        let ran: Value = serde_json::from_slice(&output.stdout).unwrap();
        let result = &ran["phases"][0]["results"][0];
        let percentiles = result["percentiles"].as_array().unwrap();
        let p99 = percentiles.iter().find(|one| one["name"] == "99").unwrap();
        (number(&result["iops"]), number(&p99["read_ns"]))
    }
}

#[test]
fn a_program_at_half_of_the_disk_keeps_its_99th_percentile() {
    let Some(lun) = Lun::create() else { return };
    timed(|| {
        let (_, before) = Victim::start(&lun, 12).end();
        let victim = Victim::start(&lun, 30);
        let arguments = ["measure", "--gentle", "--quick", "--duration", "29s", &lun.device];
        let output = Headroom::new().command(&arguments).arg("--json").output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let (iops, beside) = victim.end();
        let point = &curve(&found, "random read 8 KiB")["points"][0];
        let ran = format!("{before} ns before, {beside} ns beside {point}");
        eprintln!("{ran}");
        // One outstanding of its own and four of the program's.
        let is_right = (4..=6).contains(&point["outstanding"].as_u64().unwrap())
            && (number(&point["iops"]) / iops / 1.25 - 1.0).abs() < 0.1;
        if is_right && beside <= 1.1 * before { Ok(()) } else { Err(ran) }
    });
}
