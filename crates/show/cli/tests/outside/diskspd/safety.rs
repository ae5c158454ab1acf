//! Protection of data: files that may be written over, files that are made, Ctrl-C, failing I/Os: on an ext4 of its own.

use super::bench::{Bench, within};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use testbed::LoopDisk;

struct Files {
    headroom: programs::Headroom,
    disk: LoopDisk,
}

impl Files {
    fn new() -> Option<Files> {
        let mut disk = LoopDisk::new(256 << 20)?;
        disk.format_and_mount();
        Some(Files { headroom: programs::Headroom::new(), disk })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.disk.mount_point().join(name)
    }

    fn command(&self, flags: &str, name: &str) -> Command {
        let path = self.path(name);
        let flags = flags.split(' ').filter(|flag| !flag.is_empty());
        let arguments: Vec<&str> =
            ["diskspd"].into_iter().chain(flags).chain([path.to_str().unwrap()]).collect();
        self.headroom.command(&arguments)
    }

    fn run(&self, flags: &str, name: &str) -> Output {
        self.command(flags, name).output().unwrap()
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn c_makes_a_file_of_that_size_all_of_it_written() {
    let Some(files) = Files::new() else { return };
    for (flag, bytes) in [("-c5M", 5 << 20), ("-c100K", 100 << 10), ("-c1000b", 4096 * 1000)] {
        let output = files.run(&format!("{flag} -b4K -d1 -W0 -w50 -Su"), flag);
        assert!(output.status.success(), "{}", errors(&output));
        assert_eq!(files.path(flag).metadata().unwrap().len(), bytes, "{flag}");
        let mapped = Command::new("filefrag").args(["-v", "-s"]).arg(files.path(flag)).output().unwrap();
        let extents = String::from_utf8(mapped.stdout).unwrap();
        assert!(extents.contains("0:        0.."), "{extents}");
        assert!(!extents.contains("unwritten") && !extents.contains("delalloc"), "{extents}");
        assert!(files.path(flag).metadata().unwrap().blocks() * 512 >= bytes, "no holes");
    }
    // A file of this size is used again, another size creates the file again.
    let inode = |name: &str| files.path(name).metadata().unwrap().ino();
    let before = inode("-c5M");
    assert!(files.run("-c5M -d1 -W0 -w100", "-c5M").status.success());
    assert_eq!(inode("-c5M"), before);
    assert!(files.run("-c6M -d1 -W0", "-c5M").status.success());
    assert_eq!(files.path("-c5M").metadata().unwrap().len(), 6 << 20);
    // And one without -c.
    assert!(files.run("-d1 -W0 -w100", "-c5M").status.success());
}

#[test]
fn what_headroom_did_not_make_is_read_but_not_written() {
    let Some(files) = Files::new() else { return };
    let mine = "mine".repeat(1 << 18);
    std::fs::write(files.path("mine"), &mine).unwrap();
    for flags in ["-w1 -d1 -W0", "-c1M -d1 -W0", "-c2M -w100 -d1 -W0 -Sm"] {
        let output = files.run(flags, "mine");
        assert_eq!(output.status.code(), Some(3), "{flags}: {}", errors(&output));
        assert!(errors(&output).contains("try: "), "{}", errors(&output));
        assert!(!errors(&output).contains("--size"), "told in diskspd's words: {}", errors(&output));
    }
    assert!(files.run("-d1 -W0", "mine").status.success());
    assert_eq!(std::fs::read_to_string(files.path("mine")).unwrap(), mine);
    let other = files.path("other");
    let output = files.run(&format!("-d1 -W0 -w100 --destroy-data {}", other.display()), "mine");
    assert_eq!(output.status.code(), Some(2), "that is no target");
    let named = files.path("mine");
    let output = files.run(&format!("-d1 -W0 -w100 --destroy-data={}", named.display()), "mine");
    assert!(output.status.success(), "{}", errors(&output));
    assert_ne!(std::fs::read(named).unwrap(), mine.as_bytes());
    for (flags, name) in [("-d1", ""), ("-d1", "nothing"), ("-d1 -a999", "mine")] {
        let output = files.run(flags, name);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{}", errors(&output));
    }
    assert!(!files.path("nothing").exists());
}

#[test]
fn a_file_that_is_cut_under_the_load_is_told_and_ends_with_1() {
    let Some(files) = Files::new() else { return };
    let mut command = files.command("-c8M -b4K -r -d2 -W0 -Su -o4", "file");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_load(child.id());
    std::fs::OpenOptions::new().write(true).open(files.path("file")).unwrap().set_len(4 << 20).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("was cut from 8 MiB to 4 MiB"), "{}", errors(&output));
    assert!(String::from_utf8(output.stdout).unwrap().contains("actual test time:\t2.00s"));
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let Some(bench) = Bench::new() else { return };
    let mut command = bench.command("-r -b4K -Su -d60 -L");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_load(child.id());
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", errors(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let time = text.lines().find_map(|line| line.strip_prefix("actual test time:\t")).unwrap();
    within("seconds", time.trim_end_matches('s').parse().unwrap(), 0.01..=20.0);
    assert!(text.contains("%-ile"));
    assert_eq!(bench.headroom.json(&["history"]).as_array().unwrap().len(), 1);
}

/// Until it has done some I/O: its threads used processor time.
fn wait_for_load(pid: u32) {
    let until = Instant::now() + Duration::from_secs(20);
    let used = || {
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let read = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
        read.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0)
    };
    while used() < 4 << 20 {
        assert!(Instant::now() < until, "no load came");
        std::thread::yield_now();
    }
}

#[test]
fn a_line_of_windows_loads_the_directory_that_is_named_and_no_other() {
    let headroom = programs::Headroom::new();
    let place = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["diskspd"].iter().chain(arguments).copied().collect();
        headroom.command(&arguments).current_dir(place.path()).output().unwrap()
    };
    for windows in [r"E:\testfile.dat", r"\\server\share\testfile.dat"] {
        let refused = run(&["-c1M", "-d1", "-W0", "-b4K", windows]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(
            errors(&refused).contains("headroom diskspd --target DIRECTORY -c1M"),
            "{}",
            errors(&refused)
        );
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing was made");
    }
    let data = place.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let output = run(&["--target", data.to_str().unwrap(), "-c1M", "-d1", "-W0", "-b4K", r"E:\testfile.dat"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(
        errors(&output).contains(&format!("{}/testfile.dat here", data.display())),
        "{}",
        errors(&output)
    );
    assert_eq!(data.join("testfile.dat").metadata().unwrap().len(), 1 << 20);
}
