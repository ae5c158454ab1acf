//! The layout study on real block devices: three disks spanned, and striped. Needs root, loop devices and FUSE.

use serde_json::Value;
use std::process::{Command, Output};

/// LUNs that are gone when the test is, however it ends.
pub struct Luns {
    pub devices: Vec<String>,
    pub place: tempfile::TempDir,
}

fn headroom(history: &std::path::Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(programs::built().join("headroom"));
    command.arg("--history").arg(history).arg("--json").args(arguments).output().unwrap()
}

impl Luns {
    /// Those that `lab luns create` makes with these flags; `None`, after saying so, where it cannot.
    pub fn create(flags: &[&str]) -> Option<Luns> {
        let place = tempfile::tempdir().unwrap();
        let mut arguments = vec!["lab", "luns", "create"];
        arguments.extend(flags);
        let made = headroom(&place.path().join("history.db"), &arguments);
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr).into_owned();
            let root = is_root();
            assert!(
                !root
                    || !std::path::Path::new("/dev/loop-control").exists()
                    || !std::path::Path::new("/dev/fuse").exists(),
                "{said}"
            );
            eprintln!("skipped: {said}");
            assert_eq!(made.status.code(), Some(3), "{said}");
            return None;
        }
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        let device = |lun: &Value| lun["device"].as_str().unwrap().to_owned();
        Some(Luns { devices: made["luns"].as_array().unwrap().iter().map(device).collect(), place })
    }

    /// The output of a command about these devices, named after its flags.
    fn run(&self, flags: &[&str]) -> Value {
        let mut arguments = flags.to_vec();
        arguments.extend(self.devices.iter().map(String::as_str));
        self.json_of(&arguments)
    }

    /// The JSON that a command prints.
    pub fn json_of(&self, arguments: &[&str]) -> Value {
        let done = headroom(&self.place.path().join("history.db"), arguments);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap()
    }
}

impl Drop for Luns {
    fn drop(&mut self) {
        let mut arguments = vec!["lab", "luns", "remove"];
        arguments.extend(self.devices.iter().map(String::as_str));
        headroom(&self.place.path().join("history.db"), &arguments);
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    String::from_utf8_lossy(&id.stdout).trim() == "0"
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// The plateau's IOPS and the knee of a sweep.
fn saturated(sweep: &Value) -> (f64, f64) {
    let knee = &sweep["saturation"]["knee"];
    (number(&knee["iops"]), number(&knee["outstanding"]))
}

pub fn within(found: f64, wanted: f64, share: f64) -> bool {
    (found / wanted - 1.0).abs() <= share
}

/// Tries a timed check once more where it fails, and reports that: other processes may have had the processor.
fn timed(attempt: impl Fn() -> Result<(), String>) {
    if let Err(first) = attempt() {
        eprintln!("once more, since {first}");
        attempt().unwrap();
    }
}

fn holds(condition: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(message()) }
}

/// Both layouts, and how the second compares.
fn both(found: &Value) -> (&Value, &Value, &Value) {
    let [span, stripe] = found["sweeps"].as_array().unwrap().as_slice() else { panic!("{found}") };
    (span, stripe, &found["comparison"])
}

#[test]
fn three_disks_of_800_reads_a_second_striped_give_three_times_as_much() {
    let flags = ["--count", "3", "--size", "256M", "--read-iops", "800", "--latency", "8ms"];
    let Some(luns) = Luns::create(&flags) else { return };
    let page = luns.place.path().join("page.html");
    let steps = "--length 128M --sweep=2,48,96 --block 64K --duration 2s --warm-up 1s";
    let mut sweep = vec!["run", "--layout", "span,stripe:64K", "--html", page.to_str().unwrap()];
    sweep.extend(steps.split(' '));
    timed(|| {
        let found = luns.run(&sweep);
        let (span, stripe, compared) = both(&found);
        let ((span_iops, _), (stripe_iops, _)) = (saturated(span), saturated(stripe));
        holds(within(span_iops, 800.0, 0.03), || format!("span gives {span_iops}"))?;
        holds(within(stripe_iops, 2400.0, 0.03), || format!("stripe gives {stripe_iops}"))?;
        let interval = &compared["knee_ratio_interval"];
        let three = number(&interval[0]) <= 3.0 && 3.0 <= number(&interval[1]);
        holds(three && within(number(&compared["knee_ratio"]), 3.0, 0.1), || compared.to_string())?;

        // 128 MiB lie on the span's first member, and on all of the stripe's.
        let shares = |sweep: &Value| {
            let members = sweep["steps"][2]["members"].as_array().unwrap().clone();
            let counts: Vec<f64> = members.iter().map(|member| number(&member["read"]["count"])).collect();
            let all: f64 = counts.iter().sum();
            counts.iter().map(|count| count / all).collect::<Vec<f64>>()
        };
        assert_eq!(shares(span), [1.0, 0.0, 0.0]);
        let even = shares(stripe).iter().all(|share| within(*share, 1.0 / 3.0, 0.06));
        holds(even, || format!("{:?}", shares(stripe)))
    });
    // The figure has both.
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("stripe:64K against span") && page.contains("x the outstanding"));
    assert!(
        page.contains(" x throughput") && page.contains(" x outstanding"),
        "the figure says how many times"
    );
    assert!(page.contains("since the sweep began"));
    let shares = page.find(">members</td>").map(|at| page[at..].chars().take(100).collect::<String>());
    assert!(shares.as_ref().is_some_and(|words| words.contains("share of\u{a0}I/Os")), "{shares:?}");
    // And again as a picture, from the history.
    let picture = luns.place.path().join("sweep.svg");
    let drawn = headroom(
        &luns.place.path().join("history.db"),
        &["history", "chart", "1-3", "4-6", "--kind", "sweep", "--out", picture.to_str().unwrap()],
    );
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    assert!(std::fs::read_to_string(&picture).unwrap().contains(" x throughput"));
}

#[test]
fn disks_of_20_ms_at_16_wide_saturate_at_16_and_48() {
    let flags = ["--count", "3", "--size", "256M", "--latency", "20ms", "--width", "16"];
    let Some(luns) = Luns::create(&flags) else { return };
    let steps = "--length 128M --sweep=4,96,192 --block 64K --duration 2s --warm-up 500ms";
    let mut sweep = vec!["run", "--layout", "span,stripe:64K"];
    sweep.extend(steps.split(' '));
    timed(|| {
        let found = luns.run(&sweep);
        let (span, stripe, _) = both(&found);
        for (sweep, wanted) in [(span, 16.0), (stripe, 48.0)] {
            let (iops, knee) = saturated(sweep);
            let right = within(knee, wanted, 0.12) && within(iops, wanted * 50.0, 0.05);
            holds(right, || format!("the knee is at {knee}, not {wanted}, with {iops} IOPS"))?;
        }
        // A loop device takes 128 requests: what is outstanding beyond that waits before it is in the queue.
        let queue = |step: usize| number(&span["steps"][step]["queue"]["weighted"]);
        holds(within(queue(1), 96.0, 0.05), || format!("a queue of {}, not 96", queue(1)))
    });
}

#[test]
fn what_a_killed_process_served_is_taken_away() {
    let Some(luns) = Luns::create(&["--size", "16M", "--latency", "1ms"]) else { return };
    let device = luns.devices[0].clone();
    let listed = || -> Vec<Value> {
        let listed = headroom(&luns.place.path().join("history.db"), &["lab", "luns", "list"]);
        let all: Value = serde_json::from_slice(&listed.stdout).unwrap();
        let ours = |lun: &&Value| lun["device"] == device.as_str();
        all["luns"].as_array().unwrap().iter().filter(ours).cloned().collect()
    };
    let lun = &listed()[0];
    assert_eq!(lun["ready"], true, "{lun}");
    let file = lun["file"].as_str().unwrap().to_owned();
    // The serving process is the one whose arguments end with serve ROOT ID.
    let id = lun["id"].to_string();
    let served = |pid: &String| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.get(3) == Some(&b"serve".as_slice()) && words.get(5) == Some(&id.as_bytes())
    };
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let pid = pids.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).find(served).unwrap();
    Command::new("kill").args(["-9", &pid]).status().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while listed()[0]["ready"] == true {
        assert!(std::time::Instant::now() < until, "a killed server still counts as ready");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let removed = headroom(&luns.place.path().join("history.db"), &["lab", "luns", "remove", &device]);
    assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    let removed: Value = serde_json::from_slice(&removed.stdout).unwrap();
    assert_eq!(removed["removed"], serde_json::json!([device]));
    assert!(listed().is_empty() && !std::path::Path::new(&file).exists());
    let again = headroom(&luns.place.path().join("history.db"), &["lab", "luns", "remove", &device]);
    assert_eq!(again.status.code(), Some(3), "what is not on record is not touched");
}
