//! `headroom --version`, as it is pasted into a report of an error.

use programs::{Headroom, built};
use std::process::Command;

fn version(arguments: &[&str]) -> String {
    let output = Command::new(built().join("headroom")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn five_lines_name_the_build_the_kernel_and_what_of_it_works() {
    let text = version(&["--version"]);
    let starts: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(starts, ["headroom", "kernel", "bpf", "io_uring", "cgroups"], "{text}");
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(text.contains(release.trim()), "{text}");
    // The tests build all of the workspace; the laboratory may lie beside it.
    assert!(text.lines().next().unwrap().contains("sqlite-extension"), "{text}");
    assert_eq!(version(&["-V"]), text);
}

#[test]
fn json_has_the_same_before_and_after_the_option() {
    for arguments in [["--version", "--json"], ["--json", "--version"]] {
        let value: serde_json::Value = serde_json::from_str(&version(&arguments)).unwrap();
        assert_eq!(value["version"], env!("CARGO_PKG_VERSION"), "{value}");
        assert!(value["io_uring"]["works"].is_boolean(), "{value}");
    }
}

#[test]
fn bpf_works_where_a_process_can_be_watched() {
    let value: serde_json::Value = serde_json::from_str(&version(&["--version", "--json"])).unwrap();
    let doctor = Headroom::new().json(&["sources", "doctor", "--source", "process:"]);
    let works = doctor["sources"][0]["works"].as_bool().unwrap();
    // A kernel may let programs be loaded and still refuse one of ours.
    assert!(value["bpf"]["works"] == true || !works, "{value} {doctor}");
}
