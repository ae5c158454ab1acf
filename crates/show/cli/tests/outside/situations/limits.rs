//! Loads at the edges: very many, very large, very small, and with little allowed.

use super::{Finished, headroom, nothing_left, test_files_on_record, text};
use programs::Headroom;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

fn storage() -> tempfile::TempDir {
    // Not in /tmp, which may be memory.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn load<'a>(dir: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", text(dir), "--size", "64M", "--warm-up", "0s", "--duration", "2s", "--json"], more].concat()
}

/// Its one result, measured without a failure and with nothing left behind.
#[track_caller]
fn result(ours: &Headroom, dir: &Path, said: &Finished) -> Value {
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let answer: Value = serde_json::from_str(&said.stdout).unwrap();
    let result = answer["phases"][0]["results"][0].clone();
    let done = |direction: &str| result[direction]["count"].as_u64().unwrap();
    assert!(done("read") + done("write") > 0, "{result:#}");
    for direction in ["read", "write"] {
        assert_eq!(result[direction]["errors"], serde_json::json!({}));
    }
    nothing_left(dir);
    assert_eq!(test_files_on_record(ours), 0);
    result
}

#[test]
fn ten_thousand_outstanding_are_kept_outstanding() {
    let (ours, dir) = (Headroom::new(), storage());
    let flags = ["--outstanding", "10000", "--block", "4K", "--writes", "50"];
    let said = headroom(&ours, &load(dir.path(), &flags));
    let result = result(&ours, dir.path(), &said);
    assert_eq!(result["workload"]["outstanding"], 10_000);
}

#[test]
fn blocks_of_16_mib_and_files_of_one_block_are_measured() {
    let (ours, dir) = (Headroom::new(), storage());
    for pattern in ["random", "sequential"] {
        let flags = ["--block", "16M", "--outstanding", "2", "--writes", "50", "--pattern", pattern];
        let said = headroom(&ours, &load(dir.path(), &flags));
        let result = result(&ours, dir.path(), &said);
        let (count, bytes) = (result["read"]["count"].as_u64(), result["read"]["bytes"].as_u64());
        assert_eq!(bytes, count.map(|count| count << 24));
    }
    let block = dir.path().join("one-block");
    fs::write(&block, vec![7; 4096]).unwrap();
    fs::File::open(&block).unwrap().sync_all().unwrap();
    let one = [
        "run",
        text(&block),
        "--block",
        "4K",
        "--warm-up",
        "0s",
        "--duration",
        "1s",
        "--threads",
        "3",
        "--json",
    ];
    let said = headroom(&ours, &one);
    result(&ours, dir.path(), &said);
    headroom(&ours, &["run", text(&block), "--block", "8K"])
        .refused(3, &["4096 bytes, less than one block of 8192", "try: a smaller --block"]);
}

#[test]
fn two_hundred_and_fifty_six_threads_all_run() {
    let (ours, dir) = (Headroom::new(), storage());
    let flags = ["--threads", "256", "--outstanding", "1", "--block", "4K", "--writes", "30"];
    let said = headroom(&ours, &load(dir.path(), &flags));
    let result = result(&ours, dir.path(), &said);
    assert_eq!(result["threads"].as_array().unwrap().len(), 256);
}

/// A control group of version 1 or 2 with a limit of memory, which ends with the test.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// `None`, after saying so, where this user cannot make one.
    fn new(bytes: u64) -> Option<MemoryGroup> {
        let places = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
            ("/sys/fs/cgroup/unified", "memory.max"),
        ];
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("headroom-test-{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed));
        for (root, limit) in places {
            let group = MemoryGroup(Path::new(root).join(&name));
            if fs::create_dir(&group.0).is_ok() && fs::write(group.0.join(limit), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        eprintln!("skipped: no control group with a limit of memory can be made");
        None
    }

    fn run(&self, ours: &Headroom, arguments: &[&str]) -> Finished {
        let command = ours.command(arguments);
        let mut within = Command::new("sh");
        within.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        within.arg(command.get_program()).args(command.get_args());
        Finished::from_output(&within.output().unwrap())
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_buffer_beyond_the_limit_of_the_control_group_is_refused() {
    let (ours, dir) = (Headroom::new(), storage());
    let Some(group) = MemoryGroup::new(256 << 20) else { return };
    let file = dir.path().join("file");
    let made = group.run(&ours, &["run", text(&file), "--size", "1M", "--duration", "100ms"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let load = ["run", text(&file), "--writes", "50", "--duration", "100ms", "--set"];
    group
        .run(&ours, &[&load[..], &["buffer=300M"]].concat())
        .refused(3, &["take their content from need 300 MiB of memory", "try: a smaller buffer"]);
    let within = group.run(&ours, &[&load[..], &["buffer=64M"]].concat());
    assert_eq!(within.code, Some(0), "{}", within.stderr);
}

#[test]
fn a_source_of_processes_lives_in_64_mib_and_is_refused_with_figures_in_less() {
    let ours = Headroom::new();
    let watch = ["watch", "--source", "process:", "--every", "500ms", "--count", "1", "--json"];
    let Some(group) = MemoryGroup::new(64 << 20) else { return };
    let said = group.run(&ours, &watch);
    if said.code == Some(3) && !said.stderr.contains(" of memory, ") {
        return eprintln!("skipped: {}", said.stderr);
    }
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let interval: Value = serde_json::from_str(said.stdout.lines().last().unwrap()).unwrap();
    assert!(!interval["files"].as_array().unwrap().is_empty(), "{interval:#}");
    let notes = interval["notes"].to_string();
    assert!(notes.contains("little memory is left to this program"), "{notes}");
    drop(group);
    let Some(small) = MemoryGroup::new(24 << 20) else { return };
    small
        .run(&ours, &watch)
        .refused(3, &["cannot watch processes: that needs ", "try: a higher limit of memory"]);
}

/// Under limits as an administrator sets them; without root's right to lock all the same.
fn limited(ours: &Headroom, limits: &[&str], arguments: &[&str]) -> Option<Finished> {
    let command = ours.command(arguments);
    let mut limited = Command::new("prlimit");
    limited.args(limits);
    // SAFETY: takes no argument and only returns a number.
    if unsafe { libc::geteuid() } == 0 {
        limited.args(["setpriv", "--bounding-set=-ipc_lock,-sys_resource"]);
        limited.arg("--inh-caps=-ipc_lock,-sys_resource");
    }
    limited.arg(command.get_program()).args(command.get_args());
    match limited.output() {
        Ok(output) => Some(Finished::from_output(&output)),
        Err(error) => {
            eprintln!("skipped: no prlimit: {error}");
            None
        }
    }
}

#[test]
fn without_memory_to_lock_it_runs_all_the_same() {
    let (ours, dir) = (Headroom::new(), storage());
    let arguments = load(dir.path(), &["--outstanding", "64", "--threads", "2", "--writes", "30"]);
    let Some(said) = limited(&ours, &["--memlock=0"], &arguments) else { return };
    result(&ours, dir.path(), &said);
}

#[test]
fn too_few_open_files_are_told_with_the_limit_to_raise() {
    let (ours, dir) = (Headroom::new(), storage());
    let arguments = load(dir.path(), &["--threads", "64", "--outstanding", "1"]);
    let Some(said) = limited(&ours, &["--nofile=24"], &arguments) else { return };
    said.refused(3, &["Too many open files", "try: fewer --threads, or a higher limit of open files"]);
    nothing_left(dir.path());
    assert_eq!(test_files_on_record(&ours), 0);
    let arguments = load(dir.path(), &["--threads", "1"]);
    let Some(said) = limited(&ours, &["--nofile=24"], &arguments) else { return };
    result(&ours, dir.path(), &said);
}

#[test]
fn a_buffer_of_content_larger_than_memory_is_refused_with_the_option_to_change() {
    let (ours, dir) = (Headroom::new(), storage());
    let file = dir.path().join("file");
    assert_eq!(headroom(&ours, &["run", text(&file), "--size", "1M", "--duration", "100ms"]).code, Some(0));
    for size in ["9223372036854775808", "18446744073709551615", "16777215T", "8T"] {
        headroom(&ours, &["run", text(&file), "--writes", "50", "--set", &format!("buffer={size}")])
            .refused(3, &["take their content from need", "of memory", "try: a smaller buffer"]);
        headroom(&ours, &["diskspd", "-d1", "-W0", "-w50", &format!("-Z{size}"), text(&file)])
            .refused(3, &["take their content from need", "of memory", "try: a smaller -Z"]);
    }
    // Before a test file is made, for which there would be no space.
    headroom(&ours, &["run", text(dir.path()), "--size", "1000T", "--writes", "50", "--set", "buffer=8T"])
        .refused(3, &["take their content from need 8 TiB", "try: a smaller buffer"]);
    let arguments = ["run", text(&file), "--writes", "50", "--set", "buffer=2G"];
    let Some(said) = limited(&ours, &["--as=2000000000"], &arguments) else { return };
    said.refused(3, &["cannot ", "try: a smaller buffer"]);
}
