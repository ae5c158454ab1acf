//! `headroom run` while the world around it changes, and what it may write to.

use super::{Finished, Started, headroom, nothing_left, test_files_on_record, text};
use programs::Headroom;
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use testbed::LoopDisk;

const MIB: u64 = 1 << 20;

fn storage() -> tempfile::TempDir {
    // Not in /tmp, which may be memory.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// `headroom run` of a 64 MiB test file in `dir`, with further arguments such as its length.
fn running(ours: &Headroom, dir: &Path, more: &[&str]) -> Started {
    let all = [&["run", text(dir), "--size", "64M", "--warm-up", "0s", "--block", "4K"], more].concat();
    Started::new(&mut ours.command(&all))
}

fn test_file(dir: &Path) -> PathBuf {
    dir.join("headroom.tmp/headroom-test")
}

fn wait_for_load(run: &Started, dir: &Path) {
    let file = test_file(dir);
    run.wait_until("the load", || file.metadata().is_ok_and(|file| file.len() == 64 * MIB));
    std::thread::sleep(Duration::from_secs(2));
}

fn answer(said: &Finished) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{}", said.stderr))
}

fn precious(path: &Path, bytes: u64) -> Vec<u8> {
    let content: Vec<u8> = (0..bytes).map(|at| (at / 4096) as u8 ^ at as u8).collect();
    fs::write(path, &content).unwrap();
    fs::File::open(path).unwrap().sync_all().unwrap();
    content
}

#[test]
fn a_signal_ends_it_and_keeps_what_was_measured() {
    for signal in ["-INT", "-TERM"] {
        let (ours, dir) = (Headroom::new(), storage());
        let run = running(&ours, dir.path(), &["--duration", "1h", "--writes", "30", "--json"]);
        wait_for_load(&run, dir.path());
        let asked = Instant::now();
        // As GNU timeout sends it: to the process, and to its group.
        run.signal(signal);
        run.signal(signal);
        let said = run.end();
        assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
        assert_eq!(said.code, Some(130), "{}", said.stderr);
        assert!(said.stderr.contains("ended early: what was measured until then is printed and kept"));
        let result = answer(&said)["phases"][0]["results"][0].clone();
        assert_eq!(result["interrupted"], true);
        assert!(result["read"]["count"].as_u64().unwrap() > 0);
        let kept = ours.json(&["history", "show", "run", "1"]);
        assert!(kept.as_object().unwrap().iter().all(|(key, value)| result[key] == *value), "{kept:#}");
        nothing_left(dir.path());
        assert_eq!(test_files_on_record(&ours), 0);
    }
}

#[test]
fn a_signal_before_the_load_leaves_nothing_and_says_so() {
    let (ours, dir) = (Headroom::new(), storage());
    let run = Started::new(&mut ours.command(&["run", text(dir.path()), "--size", "1G"]));
    run.wait_until("the test file", || test_file(dir.path()).exists());
    run.signal("-INT");
    run.end().refused(130, &["interrupted while writing the test file", "it is removed again"]);
    nothing_left(dir.path());
    assert_eq!(test_files_on_record(&ours), 0);
}

#[test]
fn killed_the_next_run_cleans_and_goes_on() {
    let (ours, dir) = (Headroom::new(), storage());
    let run = running(&ours, dir.path(), &["--duration", "1h", "--writes", "100"]);
    wait_for_load(&run, dir.path());
    run.signal("-KILL");
    assert_eq!(run.end().code, None);
    assert!(test_file(dir.path()).exists());
    assert_eq!(test_files_on_record(&ours), 1);
    let said = running(&ours, dir.path(), &["--duration", "1s"]).end();
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    nothing_left(dir.path());
    assert_eq!(test_files_on_record(&ours), 0);

    // A lasting file: after a kill, while it is made or under load, it is not written to again, with or without a size,
    // because a user may have put data into it since.
    let lasting = dir.path().join("scratch.dat");
    let load = |create: &[&str], time: &str| {
        let base = ["run", text(&lasting), "--writes", "100", "--warm-up", "0s", "--duration", time];
        Started::new(&mut ours.command(&[&base, create].concat()))
    };
    let run = load(&["--size", "1G"], "1h");
    run.wait_until("the lasting file", || lasting.metadata().is_ok_and(|file| file.len() == 1024 * MIB));
    run.signal("-KILL");
    assert_eq!(run.end().code, None);
    let killed = ["a headroom was killed while it wrote to this file", "try: remove it if nothing of yours"];
    for create in [&[][..], &["--size", "1G"], &["--size", "64M"]] {
        load(create, "1s").end().refused(3, &killed);
    }
    fs::remove_file(&lasting).unwrap();
    assert_eq!(load(&["--size", "64M"], "1s").end().code, Some(0));
    assert_eq!(fs::metadata(&lasting).unwrap().len(), 64 * MIB);
    let run = load(&[], "1h");
    std::thread::sleep(Duration::from_secs(2));
    run.signal("-KILL");
    assert_eq!(run.end().code, None);
    let file_system = OpenOptions::new().write(true).open(&lasting).unwrap();
    file_system.write_all_at(b"a file system", 0).unwrap();
    for create in [&[][..], &["--size", "64M"]] {
        load(create, "1s").end().refused(3, &killed);
    }
    assert!(fs::read(&lasting).unwrap().starts_with(b"a file system"));
    // A process that has it open for writing is in the way, whatever was said.
    let pid = format!("open for writing in process {} ", std::process::id());
    load(&["--destroy-data", text(&lasting)], "1s").end().refused(3, &["it is in use", &pid]);
    drop(file_system);
    let read = headroom(&ours, &["run", text(&lasting), "--warm-up", "0s", "--duration", "1s"]);
    assert_eq!(read.code, Some(0), "{}", read.stderr);
    assert_eq!(load(&["--destroy-data", text(&lasting)], "1s").end().code, Some(0));
}

#[test]
fn a_file_that_somebody_cuts_meanwhile_is_told_beside_what_was_measured() {
    for caching in [&[][..], &["--buffered"], &["--set", "caching=mapped"]] {
        let (ours, dir) = (Headroom::new(), storage());
        let file = dir.path().join("data.bin");
        precious(&file, 64 * MIB);
        let load = ["run", text(&file), "--warm-up", "0s", "--duration", "4s", "--outstanding", "4"];
        let run = Started::new(&mut ours.command(&[&load, caching].concat()));
        std::thread::sleep(Duration::from_secs(2));
        OpenOptions::new().write(true).open(&file).unwrap().set_len(16 * MIB).unwrap();
        let said = run.end();
        assert_eq!(said.code, Some(1), "{caching:?}: {}", said.stderr);
        assert!(said.stdout.contains("IOPS"), "{}", said.stderr);
        let told = format!("warning: {} was cut from 64 MiB to 16 MiB by another program", file.display());
        assert!(said.stderr.contains(&told), "{}", said.stderr);
        assert_eq!(fs::metadata(&file).unwrap().len(), 16 * MIB, "reading changes nothing");
    }
}

#[test]
fn what_is_removed_under_it_is_told_and_the_load_goes_on() {
    let (ours, dir) = (Headroom::new(), storage());
    let run = running(&ours, dir.path(), &["--duration", "4s"]);
    wait_for_load(&run, dir.path());
    fs::remove_dir_all(dir.path().join("headroom.tmp")).unwrap();
    let said = run.end();
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let told = "headroom-test was removed, renamed or unmounted while the load ran";
    assert!(said.stderr.contains(told), "{}", said.stderr);
    assert!(said.stderr.contains("headroom.tmp was removed while headroom worked in it"), "{}", said.stderr);
    assert!(said.stdout.contains("IOPS"));
    assert_eq!(test_files_on_record(&ours), 0);
}

/// Waits until it has opened its target, and for the load that follows.
fn wait_for_target(run: &Started, target: &Path) {
    run.wait_until("the load", || {
        let opened = fs::read_dir(format!("/proc/{}/fd", run.pid())).into_iter().flatten().flatten();
        opened.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|path| path == target)
    });
    std::thread::sleep(Duration::from_millis(300));
}

#[test]
fn a_file_that_loses_its_name_under_a_load_ends_every_command_with_a_problem() {
    let dir = storage();
    let file = |name: &str| dir.path().join(name);
    let commands: [(&str, &[&str], &[&str]); 5] = [
        ("run", &["run"], &["--warm-up", "0s", "--duration", "3s", "--json"]),
        ("sweep", &["run", "--sweep=4", "--block", "64K"], &["--warm-up", "0s", "--duration", "3s"]),
        ("matrix", &["run", "--block", "4K,8K", "--duration", "3s", "--warm-up", "0s"], &[]),
        ("diskspd", &["diskspd", "-b4K", "-r", "-d3", "-W0", "-Su"], &[]),
        ("compare", &["compare", "--interleave", "--rounds", "2"], &[]),
    ];
    commands.iter().for_each(|(name, ..)| drop(precious(&file(name), 8 * MIB)));
    let mut runs = Vec::new();
    for (name, before, after) in commands {
        let ours = Headroom::new();
        let (side, path) = (format!("{} --warm-up 0s --duration 3s", text(&file(name))), file(name));
        let targets = if name == "compare" { vec![side.as_str(), side.as_str()] } else { vec![text(&path)] };
        let run = Started::new(&mut ours.command(&[before, &targets[..], after].concat()));
        runs.push((name, ours, run));
    }
    runs.iter().for_each(|(name, _, run)| wait_for_target(run, &file(name)));
    // A copy takes the name of one; the others are removed.
    fs::copy(file("sweep"), file("copy")).unwrap();
    fs::rename(file("copy"), file("sweep")).unwrap();
    runs.iter()
        .filter(|(name, ..)| *name != "sweep")
        .for_each(|(name, ..)| fs::remove_file(file(name)).unwrap());
    for (name, _ours, run) in runs {
        let said = run.end();
        let what = if name == "sweep" { "was replaced by another file" } else { "was removed, renamed or" };
        let told = format!("{} {what}", file(name).display());
        assert!(said.stderr.contains(&told), "{name}: {}", said.stderr);
        // Figures of what was opened are an answer; a comparison that cannot go on is none.
        let code = if name == "compare" { 3 } else { 1 };
        assert_eq!(said.code, Some(code), "{name}: {}", said.stderr);
        if name == "run" {
            let result = &answer(&said)["phases"][0]["results"][0];
            assert_eq!(result["target_changes"][0]["change"]["kind"], "removed", "{result:#}");
        }
    }
}

#[test]
fn a_run_that_is_stopped_blames_neither_the_client_nor_the_storage() {
    let dir = storage();
    let file = dir.path().join("data.bin");
    precious(&file, 8 * MIB);
    let time = ["--warm-up", "0s", "--duration", "3s"];
    let loads = [&["--rate", "300/s"][..], &["--outstanding", "8"]];
    let runs = loads.map(|load| {
        let ours = Headroom::new();
        let run = [&["run", text(&file), "--json"], &time[..], load].concat();
        let run = Started::new(&mut ours.command(&run));
        (ours, run)
    });
    let swept = Headroom::new();
    let sweep = [&["run", text(&file), "--sweep=4"], &time[..]].concat();
    let sweep = Started::new(&mut swept.command(&sweep));
    runs.iter().map(|(_, run)| run).chain([&sweep]).for_each(|run| wait_for_target(run, &file));
    std::thread::scope(|scope| {
        let all = runs.iter().map(|(_, run)| run.pid()).chain([sweep.pid()]);
        for pid in all {
            scope.spawn(move || {
                let kill = |signal: &str| {
                    assert!(
                        Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success()
                    );
                };
                kill("-STOP");
                std::thread::sleep(Duration::from_secs(1));
                kill("-CONT");
            });
        }
    });
    for (_ours, run) in runs {
        let said = run.end();
        assert_eq!(said.code, Some(1), "{}", said.stderr);
        assert!(said.stderr.contains("this program was stopped"), "{}", said.stderr);
        let result = &answer(&said)["phases"][0]["results"][0];
        let stopped_s = result["stopped_ns"].as_u64().unwrap() as f64 / 1e9;
        assert!((0.9..1.3).contains(&stopped_s), "{stopped_s}");
        let findings = result["findings"].as_array().unwrap();
        let warnings: Vec<&Value> =
            findings.iter().filter(|one| one["weight"] == "warning").map(|one| &one["kind"]).collect();
        assert_eq!(warnings, ["stopped"], "{findings:#?}");
    }
    let said = sweep.end();
    assert!(said.stderr.contains("this step is run again"), "{}", said.stderr);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
}

#[test]
fn a_target_under_load_cannot_be_unmounted_and_lazily_unmounted_it_is_left_clean() {
    let Some(mut disk) = LoopDisk::new(256 * MIB) else { return };
    let dir = disk.format_and_mount().to_path_buf();
    let ours = Headroom::new();
    let run = running(&ours, &dir, &["--duration", "5s"]);
    wait_for_load(&run, &dir);
    let umount = |how: &[&str]| Command::new("umount").args(how).arg(&dir).output().unwrap();
    let busy = umount(&[]);
    assert!(!busy.status.success() && String::from_utf8_lossy(&busy.stderr).contains("busy"));
    assert!(umount(&["--lazy"]).status.success());
    let said = run.end();
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("was removed, renamed or unmounted"), "{}", said.stderr);
    assert!(said.stdout.contains("IOPS"), "{}", said.stderr);
    assert_eq!(test_files_on_record(&ours), 0);
    let again = Command::new("mount").args([disk.device(), &dir]).status().unwrap();
    assert!(again.success());
    nothing_left(&dir);
}

#[test]
fn storage_that_fills_up_while_a_file_is_made_is_left_clean() {
    let Some(mut below) = LoopDisk::new(64 * MIB) else { return };
    let below_dir = below.format_and_mount().to_path_buf();
    // It promises 256 MiB and fails every write that finds no place among the 64 below it.
    let Some(mut disk) = LoopDisk::new_in(&below_dir, 256 * MIB) else { return };
    let dir = disk.format_and_mount().to_path_buf();
    let ours = Headroom::new();
    let lasting = dir.join("scratch.dat");
    for target in [&dir, &lasting] {
        let said = headroom(&ours, &["run", text(target), "--size", "128M"]);
        said.refused(
            3,
            &["No space left on device", "it is removed again", "\n  try: something else filled"],
        );
    }
    let said = headroom(&ours, &["run", text(&lasting), "--size", "1T"]);
    said.refused(3, &["not enough room", "\n  free: ", "\n  try: a smaller one (up to "]);
    assert!(!lasting.exists());
    assert_eq!(test_files_on_record(&ours), 0);
    nothing_left(&dir);
}

#[test]
fn a_device_that_fails_needs_action_with_figures_or_an_error_without() {
    let Some(disk) = LoopDisk::new(64 * MIB) else { return };
    let cut =
        |bytes| OpenOptions::new().write(true).open(disk.backing_file()).unwrap().set_len(bytes).unwrap();
    let ours = Headroom::new();
    let load = ["run", text(disk.device()), "--warm-up", "0s", "--duration", "2s"];
    cut(48 * MIB);
    let said = headroom(&ours, &load);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(
        said.stdout.contains("IOPS") && said.stderr.contains(" failed: read the kernel's log"),
        "{}",
        said.stderr
    );
    cut(0);
    headroom(&ours, &load).refused(3, &["every I/O on", "Input/output error", "try: read the kernel's log"]);
    assert_eq!(ours.json(&["history"]).as_array().unwrap().len(), 1, "of the second nothing was measured");
}

#[test]
fn a_phase_that_fails_keeps_those_before_it() {
    let Some(disk) = LoopDisk::new(64 * MIB) else { return };
    let (ours, dir) = (Headroom::new(), storage());
    let file = dir.path().join("phases.toml");
    let phase = |name: &str, target: &str| {
        format!(
            "[[phases]]\nname = \"{name}\"\nwarm-up = 0\nduration = \"1s\"\n[[phases.workloads]]\ntarget = \"{target}\"\n"
        )
    };
    let targets = format!(
        "[targets]\ngood = {{ path = \"{}\", create = \"64M\" }}\nbad = \"{}\"\n",
        dir.path().display(),
        disk.device().display()
    );
    fs::write(&file, targets + &phase("first", "good") + &phase("second", "bad") + &phase("third", "good"))
        .unwrap();
    OpenOptions::new().write(true).open(disk.backing_file()).unwrap().set_len(0).unwrap();
    let said = headroom(&ours, &["run", "--file", text(&file), "--json"]);
    assert_eq!(said.code, Some(3), "{}", said.stderr);
    assert!(said.stderr.contains("every I/O on"), "{}", said.stderr);
    let answer = answer(&said);
    let names: Vec<&str> =
        answer["phases"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["first"]);
    nothing_left(dir.path());
}

#[test]
fn only_what_headroom_made_is_written_to_unless_it_is_named_as_lost() {
    let (ours, dir) = (Headroom::new(), storage());
    let file = dir.path().join("precious.db");
    let content = precious(&file, 8 * MIB);
    let writing = ["--writes", "100", "--warm-up", "0s", "--duration", "1s"];
    let write = |more: &[&str]| headroom(&ours, &[&["run", text(&file)], &writing[..], more].concat());
    write(&[]).refused(3, &["would destroy the content of this file", "try: only reading; a directory"]);
    write(&["--size", "8M"])
        .refused(3, &["something is there that headroom did not make", "try: name another"]);
    write(&["--destroy-data", text(dir.path())])
        .refused(2, &["--destroy-data is for a file or block device"]);
    let other = dir.path().join("other.db");
    precious(&other, MIB);
    write(&["--destroy-data", text(&other)]).refused(2, &["that is no target of this run"]);
    assert!(fs::read(&file).unwrap() == content);
    let read = headroom(&ours, &["run", text(&file), "--warm-up", "0s", "--duration", "1s"]);
    assert_eq!(read.code, Some(0), "{}", read.stderr);
    assert!(fs::read(&file).unwrap() == content, "reading is always allowed");
    let said = write(&["--destroy-data", text(&file)]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(fs::read(&file).unwrap() != content);

    let scratch = dir.path().join("scratch.dat");
    let load = |more: &[&str]| headroom(&ours, &[&["run", text(&scratch)], &writing[..], more].concat());
    load(&[]).refused(3, &["there is no such file", "--size SIZE, which makes a lasting file there"]);
    for more in [&["--size", "8M"][..], &[], &["--size", "8M"]] {
        let said = load(more);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }
    // Somebody makes it their own: of the same name, inode and size.
    let content = precious(&scratch, 8 * MIB);
    for more in [&["--size", "8M"][..], &[]] {
        load(more)
            .refused(3, &["it was written to, renamed or given other rights since", "or --destroy-data"]);
    }
    assert!(fs::read(&scratch).unwrap() == content);
    nothing_left(dir.path());
}

#[test]
fn the_file_that_flags_print_runs_and_a_wrong_one_is_told_by_line() {
    let (ours, dir) = (Headroom::new(), storage());
    let file = dir.path().join("mine.toml");
    let flags = ["--preset", "backup", "--limit", "50M/s", "--duration", "1s", "--warm-up", "0s"];
    let printed =
        headroom(&ours, &[&["run", text(dir.path()), "--size", "64M", "--print-file"], &flags[..]].concat());
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    fs::write(&file, &printed.stdout).unwrap();
    nothing_left(dir.path());
    let said = headroom(&ours, &["run", "--file", text(&file), "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let answer = answer(&said);
    let results = answer["phases"][0]["results"].as_array().unwrap();
    let names: Vec<&str> =
        results.iter().map(|result| result["workload"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["backup", "users"]);
    assert_eq!(results[0]["workload"]["limit"]["bytes_per_s"], 50.0 * MIB as f64);
    assert_eq!(answer["session"], 1);

    fs::write(&file, printed.stdout.replace("outstanding", "iodepth")).unwrap();
    headroom(&ours, &["run", "--file", text(&file)]).refused(
        2,
        &[
            &format!("cannot run {}: line ", file.display()),
            "iodepth: there is no such key",
            "try: outstanding",
        ],
    );
    headroom(&ours, &["run", "--file", text(&file), "--block", "8K"])
        .refused(2, &["flags that say it too", "try: write it into the file"]);
    headroom(&ours, &["run", "--file", "/no/where.toml"])
        .refused(3, &["/no/where.toml: No such file", "\n  try: name a TOML file"]);
    headroom(&ours, &["run", "--file", text(dir.path())]).refused(3, &["it is not a workload file"]);
    nothing_left(dir.path());
}

#[test]
fn a_recorded_trace_is_asked_again_io_by_io() {
    let (ours, dir) = (Headroom::new(), storage());
    let trace = dir.path().join("trace.csv");
    let mut lines = String::from("at_ns,kind,offset_bytes,bytes\n");
    for at in 0..150_u64 {
        let kind = if at % 3 == 0 { "write" } else { "read" };
        lines.push_str(&format!("{},{kind},{},4096\n", at * 10_000_000, at * 8192));
    }
    fs::write(&trace, &lines).unwrap();
    let replay = |speed: &str| {
        let load =
            ["run", text(dir.path()), "--size", "64M", "--warm-up", "0s", "--duration", "10s", "--json"];
        let said = headroom(
            &ours,
            &[&load[..], &["--replay", text(&trace), "--set", &format!("speed={speed}")]].concat(),
        );
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        answer(&said)["phases"][0]["results"][0].clone()
    };
    // Its writes and sizes are held against no flag.
    let told = |speed: &str| {
        let load = ["run", text(dir.path()), "--size", "64M", "--warm-up", "0s", "--duration", "10s"];
        let said = headroom(
            &ours,
            &[&load[..], &["--replay", text(&trace), "--set", &format!("speed={speed}")]].concat(),
        );
        assert!(said.stdout.contains("a recorded trace"), "{}", said.stdout);
        assert!(!said.stdout.contains("as requested"), "{}", said.stdout);
    };
    for (speed, at_least_ns) in [("2", 700_000_000), ("max", 0)] {
        let result = replay(speed);
        assert_eq!(
            (&result["read"]["count"], &result["write"]["count"]),
            (&100.into(), &50.into()),
            "{speed}"
        );
        assert_eq!(result["write"]["bytes"], 50 * 4096);
        let elapsed_ns = result["elapsed_ns"].as_u64().unwrap();
        assert!((at_least_ns..9_000_000_000).contains(&elapsed_ns), "{speed}: {elapsed_ns}");
        assert_eq!(result["replayed"], true, "{speed}");
        told(speed);
    }
    // A replay that only reads may run on a file that is not Headroom's.
    let foreign = dir.path().join("foreign");
    fs::write(&foreign, vec![7; 4 << 20]).unwrap();
    let on_foreign = ["run", text(&foreign), "--warm-up", "0s", "--duration", "10s", "--set", "speed=max"];
    let on_foreign = [&on_foreign[..], &["--replay", text(&trace)]].concat();
    headroom(&ours, &on_foreign).refused(3, &["foreign", "--destroy-data"]);
    fs::write(&trace, lines.replace("write", "read")).unwrap();
    let said = headroom(&ours, &on_foreign);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(fs::read(&foreign).unwrap(), vec![7; 4 << 20]);
    fs::remove_file(&foreign).unwrap();
    fs::write(&trace, lines.replace("write", "wrote")).unwrap();
    headroom(&ours, &["run", text(dir.path()), "--replay", text(&trace)])
        .refused(3, &["cannot replay", "trace.csv", "line 2"]);
    nothing_left(dir.path());
}

#[test]
fn wrong_flags_are_named_with_the_accepted_form() {
    let ours = Headroom::new();
    let cases: [(&[&str], &str, &str); 11] = [
        (&["--block", "7Q"], "--block", "K, M, G or T"),
        (&["--block", "1000"], "block size 1000 B", "multiple of 512"),
        (&["--writes", "101"], "--writes", "0 to 100"),
        (&["--rate", "fast"], "--rate", "as in \"1000/s\""),
        (&["--rate", "10/s", "--limit", "10/s"], "of an open loop", "give the rate alone"),
        (&["--limit", "7Q"], "--limit", "200M/s"),
        (&["--sizes", "8K"], "--sizes", "8K:70%, 64K:30%"),
        (&["--preset", "olap"], "--preset", "tempdb"),
        (&["--pattern", "sequential", "--zipf", "1"], "sequential", "random pattern"),
        (&["--duration", "0s"], "--duration", "as in 20s or 2m"),
        (&["--threads", "5000"], "5000 threads", "give 1 to 1024"),
    ];
    for (arguments, name, form) in cases {
        headroom(&ours, &[&["run", "/no/where"], arguments].concat()).refused(2, &[name, form]);
    }
}
