//! Directories and paths that cannot be measured.

use super::{Finished, Started, headroom, nothing_left, test_files_on_record, text};
use programs::{Headroom, built};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::LoopDisk;

const MIB: u64 = 1 << 20;
const NOBODY: u32 = 65_534;

#[test]
fn a_path_that_is_no_storage_is_named_for_what_it_is() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir().unwrap();
    let (pipe, socket) = (dir.path().join("pipe"), dir.path().join("socket"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _listener = UnixListener::bind(&socket).unwrap();
    for command in [&["measure"][..], &["check"], &["storage", "clean"]] {
        headroom(&ours, &[command, &["/no/where"]].concat())
            .refused(3, &["/no/where: there is no such", "try: check the path"]);
        let nowhere = "not a directory, a file or a block device";
        headroom(&ours, &[command, &[text(&pipe)]].concat())
            .refused(3, &["it is a pipe", nowhere, "\n  try: "]);
        headroom(&ours, &[command, &[text(&socket)]].concat())
            .refused(3, &["it is a socket", nowhere, "\n  try: "]);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

/// The binary, its history and a directory, for an unprivileged user.
#[test]
fn who_may_not_write_is_told_so() {
    // SAFETY: takes no argument and only returns a number.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: needs root to become somebody else");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let home = place.path().join("home");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let binary = place.path().join("headroom");
    fs::copy(built().join("headroom"), &binary).unwrap();
    let as_nobody = |arguments: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(arguments).uid(NOBODY).gid(NOBODY).env("XDG_DATA_HOME", &home);
        Finished::from_output(&command.output().unwrap())
    };
    let readable = place.path().join("readable");
    let closed = place.path().join("closed");
    for (dir, mode) in [(&readable, 0o755), (&closed, 0o700)] {
        fs::create_dir(dir).unwrap();
        fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
    }
    for command in [&["measure"][..], &["check"], &["storage", "clean"]] {
        for dir in [&readable, &closed] {
            as_nobody(&[command, &[text(dir)]].concat())
                .refused(3, &["this user is not permitted to", "try: run as root"]);
            nothing_left(dir);
        }
    }
    // A history that it may read and not write is found out before any measuring.
    let shared = place.path().join("history.db");
    drop(history::History::open(&shared).unwrap());
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o644)).unwrap();
    let said = as_nobody(&["--history", text(&shared), "measure", text(&home)]);
    said.refused(3, &["history.db", "belongs to the user root", "  try: name a file of this user"]);
    let page = readable.join("page.html");
    as_nobody(&["measure", text(&home), "--html", text(&page)])
        .refused(3, &["page.html: Permission denied", "try:"]);
    nothing_left(&readable);
}

/// A control group (version 1) that may not use a device, removed when dropped.
struct Shut(PathBuf);

impl Shut {
    /// `None`, after saying so, where this system has none or this user may not make one.
    fn out_of(disk: &LoopDisk) -> Option<Shut> {
        let group = Shut(format!("/sys/fs/cgroup/devices/headroom-test-{}", std::process::id()).into());
        if let Err(error) = fs::create_dir(&group.0) {
            eprintln!("skipped: no control group of devices: {error}");
            return None;
        }
        let name = disk.device().file_name().unwrap();
        let number = fs::read_to_string(Path::new("/sys/block").join(name).join("dev")).unwrap();
        fs::write(group.0.join("devices.deny"), format!("b {} rwm", number.trim())).unwrap();
        Some(group)
    }

    /// The result of a run in it.
    fn run(&self, ours: &Headroom, arguments: &[&str]) -> Finished {
        let command = ours.command(arguments);
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        Finished::from_output(&shell.arg(command.get_program()).args(command.get_args()).output().unwrap())
    }
}

impl Drop for Shut {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn root_in_a_container_without_the_device_is_not_told_to_become_root() {
    let Some(disk) = LoopDisk::new(64 * MIB) else { return };
    let Some(shut) = Shut::out_of(&disk) else { return };
    let ours = Headroom::new();
    for arguments in [&["measure", "--read-only"][..], &["run"]] {
        let said = shut.run(&ours, &[arguments, &[text(disk.device())]].concat());
        let allow = format!("try: let it use the device (docker run --device {}", disk.device().display());
        said.refused(3, &["the devices of this container or control group do not include it", &allow]);
        assert!(!said.stderr.contains("run as root"), "{}", said.stderr);
    }
}

#[test]
fn root_is_told_to_look_for_what_refuses_even_root() {
    let Some(mut disk) = LoopDisk::new(64 * MIB) else { return };
    let dir = disk.format_and_mount().join("immutable");
    fs::create_dir(&dir).unwrap();
    let attribute =
        |how: &str| Command::new("chattr").arg(how).arg(&dir).status().is_ok_and(|it| it.success());
    assert!(attribute("+i"));
    let said = headroom(&Headroom::new(), &["measure", text(&dir)]);
    assert!(attribute("-i"));
    said.refused(3, &["not even root is permitted to", "try: look for what refuses root (lsattr"]);
}

#[test]
fn a_read_only_file_system_is_named_with_its_device() {
    let Some(mut disk) = LoopDisk::new(64 * MIB) else { return };
    let dir = disk.format_and_mount().to_path_buf();
    disk.remount("ro");
    let ours = Headroom::new();
    for command in ["measure", "check"] {
        let device = format!("device: {}", disk.device().display());
        headroom(&ours, &[command, text(&dir)])
            .refused(3, &["mounted read-only", &device, "try: remount it read-write"]);
    }
}

#[test]
fn a_disk_that_is_full_or_too_small_says_how_much_is_missing() {
    let Some(mut disk) = LoopDisk::new(48 * MIB) else { return };
    let dir = disk.format_and_mount().to_path_buf();
    let ours = Headroom::new();
    let small = headroom(&ours, &["measure", text(&dir)]);
    small.refused(3, &["not enough room", "wanted: 64 MiB", "\n  free: ", "try: a smaller one (up to "]);
    let check = headroom(&ours, &["check", text(&dir)]);
    check.refused(
        3,
        &["cannot run an everyday workload", "not enough room", "\n  wanted: ", "try: free some space"],
    );
    let filler = dir.join("precious");
    let mut file = fs::File::create(&filler).unwrap();
    let full = std::io::copy(&mut std::io::repeat(7), &mut file).unwrap_err();
    assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
    let bytes = fs::metadata(&filler).unwrap().len();
    for arguments in [&["measure", "--size", "1M"][..], &["measure"], &["check"]] {
        let said = headroom(&ours, &[arguments, &[text(&dir)]].concat());
        said.refused(3, &[text(&dir), "\n  try: free some space"]);
    }
    nothing_left(&dir);
    assert_eq!(fs::metadata(&filler).unwrap().len(), bytes);
    assert_eq!(test_files_on_record(&ours), 0);
}

#[test]
fn memory_is_measured_only_if_asked_and_labelled() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: no /dev/shm");
        return;
    };
    let ours = Headroom::new();
    let said = headroom(&ours, &["measure", text(dir.path()), "--size", "64M"]);
    said.refused(3, &["no direct I/O", "try: --buffered"]);
    nothing_left(dir.path());
    let arguments = ["measure", text(dir.path()), "--size", "64M", "--buffered", "--quick", "--json"];
    let run = Started::new(&mut ours.command(&arguments));
    let file = dir.path().join("headroom.tmp/headroom-test");
    run.wait_until("the test file", || file.metadata().is_ok_and(|file| file.len() == 64 * MIB));
    std::thread::sleep(std::time::Duration::from_secs(3));
    run.signal("-INT");
    let said = run.end();
    let answer: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert!(answer["conditions"].to_string().contains("page cache, not the storage alone"), "{answer:#}");
    nothing_left(dir.path());
}

#[test]
fn a_device_is_free_for_the_next_as_soon_as_a_run_ends() {
    let Some(disk) = LoopDisk::new(64 * MIB) else { return };
    let (ours, device) = (Headroom::new(), text(disk.device()));
    let load = ["run", device, "--destroy-data", device, "--writes", "100", "--duration", "200ms"];
    for _ in 0..5 {
        let said = headroom(&ours, &[&load[..], &["--warm-up", "0s"]].concat());
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        // Exclusively, and at once.
        let flags = libc::O_EXCL | libc::O_RDWR;
        let opened = OpenOptions::new().write(true).read(true).custom_flags(flags).open(disk.device());
        assert!(opened.is_ok(), "{opened:?}");
    }
    let killed = Started::new(&mut ours.command(&[&load[..6], &["--duration", "20s"]].concat()));
    std::thread::sleep(std::time::Duration::from_secs(1));
    killed.signal("-KILL");
    assert_eq!(killed.end().code, None);
    let said = headroom(&ours, &load);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
}
