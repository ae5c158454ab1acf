//! The capabilities of the agent's threads while it watches a process by BPF, as root and as the service's user.

use super::Agent;
use programs::{Headroom, built};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::chown;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Numbers of capability.h.
const CHOWN: u64 = 1;
const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const SETGID: u64 = 1 << 6;
const SETUID: u64 = 1 << 7;
const NET_BIND_SERVICE: u64 = 1 << 10;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;
const SYSLOG: u64 = 1 << 34;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;
/// Those of packaging/headroom-agent.service.
const OF_SERVICE: u64 = BPF | PERFMON | SYS_PTRACE | DAC_READ_SEARCH | SYSLOG;
const OF_ROOT: u64 = OF_SERVICE | CHOWN | DAC_OVERRIDE | SETGID | SETUID | NET_BIND_SERVICE | SYS_ADMIN;
const FILES: u64 = CHOWN | DAC_OVERRIDE | DAC_READ_SEARCH;
/// A user without rights, and its group: Debian's numbers.
const NOBODY: u32 = 65_534;

/// The sets of a thread, of /proc/PID/task/TID/status.
#[derive(Clone, Copy, Debug)]
struct Sets {
    effective: u64,
    permitted: u64,
    bounding: u64,
    inherited: u64,
}

/// Of each thread by its number, with its name.
fn threads(pid: u32) -> BTreeMap<u32, (String, Sets)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        // A thread may end meanwhile.
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else { continue };
        let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim();
        let set = |key: &str| u64::from_str_radix(value(key), 16).unwrap();
        let sets = Sets {
            effective: set("CapEff:"),
            permitted: set("CapPrm:"),
            bounding: set("CapBnd:"),
            inherited: set("CapInh:") | set("CapAmb:"),
        };
        found.insert(entry.file_name().to_str().unwrap().parse().unwrap(), (value("Name:").to_owned(), sets));
    }
    found
}

/// A program that writes to a file all the time; ended when dropped.
struct Writing(Child);

impl Writing {
    fn start(dir: &std::path::Path) -> Writing {
        let script = format!("while :; do echo x >{}/f; sleep 0.05; done", dir.display());
        Writing(Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Watches for some seconds, and checks all threads' sets; `command` runs the agent with these arguments.
fn check(command: impl FnOnce(&[&str], &Headroom) -> Command, may: u64) {
    let headroom = Headroom::new();
    let dir = tempfile::tempdir().unwrap();
    let writing = Writing::start(dir.path());
    let source = format!("process:{}", writing.0.id());
    let webhook = "http://127.0.0.1:1/";
    let arguments =
        ["agent", "--source", &source, "--listen", "127.0.0.1:0", "--webhook", webhook, "--every", "1s"];
    let agent = Agent::begin(command(&arguments, &headroom));
    let began = Instant::now();
    let is_up = || {
        agent.metrics().lines().any(|line| line.starts_with("headroom_source_up{") && line.ends_with(" 1"))
    };
    while !is_up() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{}\n{:#?}",
            agent.metrics(),
            agent.log.lock().unwrap()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    // While the programs' tables are read, their capabilities are in effect: not in each sample.
    let mut always: BTreeMap<u32, u64> = BTreeMap::new();
    let mut names = Vec::new();
    for _ in 0..30 {
        for (thread, (name, sets)) in threads(agent.child.id()) {
            assert_eq!(sets.permitted & !may, 0, "{name}: {sets:x?}");
            assert_eq!(sets.inherited, 0, "{name}: {sets:x?}");
            assert!(sets.bounding & !OF_ROOT == 0 || may == OF_SERVICE, "{name}: {sets:x?}");
            if name == "serve" {
                assert_eq!((sets.effective, sets.permitted & !FILES), (0, 0), "{sets:x?}");
            }
            *always.entry(thread).or_insert(u64::MAX) &= sets.effective;
            names.push(name);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(names.iter().any(|name| name == "serve"), "{names:?}");
    let held = always.values().fold(0, |all, effective| all | effective);
    assert_eq!(held & !(SYS_PTRACE | FILES), 0, "{held:x}: {always:x?}");
    let nothing = always.values().filter(|effective| **effective == 0).count();
    assert!(nothing > 1, "the server and the sender of notifications: {always:x?}");
    assert!(is_up(), "{}", agent.metrics());
}

#[test]
fn root_keeps_what_it_names_and_has_bpf_in_effect_only_while_it_counts() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    check(|arguments, headroom| headroom.command(arguments), OF_ROOT);
}

#[test]
fn the_service_passes_no_capability_on_and_has_bpf_in_effect_only_while_it_counts() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    let capabilities = "+bpf,+perfmon,+sys_ptrace,+dac_read_search,+syslog";
    let as_service = |arguments: &[&str], headroom: &Headroom| {
        let history = headroom.history();
        let home = history.parent().unwrap();
        chown(home, Some(NOBODY), Some(NOBODY)).unwrap();
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]);
        command.args(["--no-new-privs", "--inh-caps", capabilities, "--ambient-caps", capabilities]);
        command.arg("--bounding-set").arg(format!("-all,{capabilities}"));
        command.arg(built().join("headroom")).args(arguments).arg("--history").arg(&history);
        command
    };
    check(as_service, OF_SERVICE);
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}
