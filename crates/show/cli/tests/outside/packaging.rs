//! The units of systemd that are shipped start what this program is.

use programs::built;
use std::path::{Path, PathBuf};
use std::process::Command;

const UNITS: [&str; 1] = ["headroom-agent.service"];

fn unit(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../../packaging", name].iter().collect();
    std::fs::read_to_string(path).unwrap()
}

/// The arguments of the command that a unit starts, with the directory of its credentials.
fn arguments(unit: &str) -> Vec<String> {
    let commands: Vec<&str> = unit.lines().filter_map(|line| line.strip_prefix("ExecStart=")).collect();
    let [command] = commands[..] else { panic!("{commands:?}") };
    let mut words = command.split_whitespace().map(|word| word.replace("%d", "/run/credentials/unit"));
    let program = words.next().unwrap();
    assert_eq!(Path::new(&program).file_name().unwrap(), "headroom", "{command}");
    words.collect()
}

#[test]
fn the_arguments_of_the_units_are_those_of_this_program() {
    for name in UNITS {
        let mut line = arguments(&unit(name));
        line.insert(0, "headroom".into());
        let parsed = headroom::arguments().try_get_matches_from(&line);
        assert!(parsed.is_ok(), "{name}: {line:?}: {}", parsed.unwrap_err());
    }
}

#[test]
fn the_agent_of_the_unit_takes_its_configuration() {
    let unit = unit("headroom-agent.service");
    let output =
        Command::new(built().join("headroom")).args(arguments(&unit)).arg("--check-config").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}

/// Maximum exposure by `systemd-analyze security`, in tenths: from 0, nothing is exposed, to 100.
const EXPOSURE_MAX: &str = "--threshold=24";

#[test]
fn systemd_knows_all_that_the_units_say_and_calls_both_safe_enough() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for name in UNITS {
        // The program is not installed here.
        let text = unit(name).replace("/usr/local/bin/headroom ", "/bin/true ");
        files.push(dir.path().join(name));
        std::fs::write(files.last().unwrap(), text).unwrap();
    }
    let Ok(output) = Command::new("systemd-analyze").arg("verify").args(&files).output() else {
        println!("skipped: systemd-analyze is not installed");
        return;
    };
    let found = String::from_utf8_lossy(&output.stderr);
    let ours: Vec<&str> = found.lines().filter(|line| line.contains("headroom-")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
    for file in &files {
        let security = ["security", "--offline=true", EXPOSURE_MAX];
        let output = Command::new("systemd-analyze").args(security).arg(file).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", printed.lines().last().unwrap_or_default());
    }
}

#[test]
fn the_unit_runs_as_a_user_of_its_own_behind_protections() {
    let unit = unit("headroom-agent.service");
    for needed in ["User=headroom", "ProtectProc=invisible", "PrivateDevices=yes", "IPAddressDeny=any"] {
        assert!(unit.lines().any(|line| line == needed), "{needed}");
    }
}
