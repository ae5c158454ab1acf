//! The I/O that is counted, and its names: many files and processes, children, control groups, renamed files.

use super::{BLOCK_BYTES, Bench, FILE_BYTES, layer_samples, opened, sum};
use collect::Source;
use collect::process::Selection;
use filestats::{Epoch, FileInterval, Interval, Reason, Rules, intervals};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// More files and processes than the kernel's tables hold, each seen once.
#[test]
fn nothing_is_lost_when_there_are_more_files_and_processes_than_the_tables_hold() {
    const ROUNDS: u64 = 4;
    const SHORT: u64 = 750;
    const FILES: u64 = 3000;
    let bench = Bench::new();
    let Some(mut source) = opened(&Selection::default()) else { return };
    let directory = bench.file.parent().unwrap().join("many");
    // The last figures of each row. A row that was forgotten and appears again begins a new epoch.
    let mut rows: HashMap<(String, String, Epoch), (u64, u64)> = HashMap::new();
    let mut snapshot = source.snapshot().unwrap();
    let before = snapshot.notes.clone();
    // A quarter of the files have a process each, the others share one.
    let script = format!(
        "i=0; while [ $i -lt {SHORT} ]; do (echo one >$0/short-$1-$i); i=$((i+1)); done; \
         while [ $i -lt {FILES} ]; do echo three >$0/long-$1-$i; i=$((i+1)); done"
    );
    fs::create_dir(&directory).unwrap();
    for round in 0..ROUNDS {
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(&directory).arg(round.to_string());
        assert!(shell.status().unwrap().success());
        snapshot = source.snapshot().unwrap();
        for sample in
            snapshot.samples.iter().filter(|sample| sample.file.path.starts_with(directory.to_str().unwrap()))
        {
            let write = sample.counters.write;
            let row = (sample.file.instance.clone(), sample.file.path.clone(), sample.epoch.clone());
            if row.0.starts_with("pid ") {
                assert!(row.0.ends_with(" (sh)"), "{row:?}");
                rows.insert(row, (write.count, write.bytes));
            }
        }
    }
    let files: BTreeSet<&str> = rows.keys().map(|(_, path, _)| path.as_str()).collect();
    assert_eq!(files.len() as u64, ROUNDS * FILES, "each file by its name");
    let short = rows.keys().filter(|(_, path, _)| path.contains("/short-"));
    let processes: BTreeSet<&str> = short.map(|(instance, ..)| instance.as_str()).collect();
    assert_eq!(processes.len() as u64, ROUNDS * SHORT, "each process by its number");
    let total = rows.values().fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
    assert_eq!(total, (ROUNDS * FILES, ROUNDS * (4 * SHORT + 6 * (FILES - SHORT))), "writes, bytes");
    // Losses by other processes that end, such as io_uring requests, are unrelated to the number of files.
    let lost = |notes: &[String]| {
        let found_no_place = |note: &&String| {
            note.starts_with("lost ") && !note.contains("synchronous") && !note.contains("io_uring")
        };
        let total = |note: &String| note.rsplit_once(", ").unwrap().0.to_owned();
        notes.iter().filter(found_no_place).map(total).collect::<Vec<_>>()
    };
    assert_eq!(lost(&snapshot.notes), lost(&before), "nothing is lost");
}

#[test]
fn only_the_chosen_processes_and_their_children_are_counted() {
    let bench = Bench::new();
    let copy = |from: &Path| {
        let script = format!("read go; dd if={} of=/dev/null bs=64k status=none; true", from.display());
        Command::new("sh").arg("-c").arg(script).stdin(Stdio::piped()).spawn().unwrap()
    };
    let (mut chosen, mut other) = (copy(&bench.file), copy(&bench.file));
    let selection = Selection { pids: vec![chosen.id()], ..Selection::default() };
    let source = opened(&selection);
    for child in [&mut chosen, &mut other] {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    assert!(chosen.wait().unwrap().success() && other.wait().unwrap().success());
    let Some(mut source) = source else { return };
    let snapshot = source.snapshot().unwrap();
    let read = sum(&layer_samples(&snapshot, &bench.file, "(dd)"), |one| one.counters.read);
    // dd reads once more, at the end of the file.
    assert_eq!((read.count, read.bytes), (FILE_BYTES / 65_536 + 1, FILE_BYTES));
}

/// Writes after a rename are counted under the new name, and intervals of other files stay known.
#[test]
fn a_renamed_file_goes_on_under_its_new_name_and_nothing_is_lost_or_counted_twice() {
    let bench = Bench::new();
    let directory = bench.file.parent().unwrap();
    let mut shell = Command::new("sh");
    shell.current_dir(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let (mut statements, answers) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
    let mut answers = BufReader::new(answers).lines();
    let mut runs = |script: &str| {
        statements.write_all(format!("{script}\necho done\n").as_bytes()).unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), "done");
    };
    let mut source = opened(&Selection { pids: vec![shell.id()], ..Selection::default() });
    let mut snapshots = Vec::new();
    for script in [
        "exec 3>old; printf 4444 >&3",
        "printf 55555 >&3; mv old new; printf 22 >other",
        "printf 666666 >&3",
        ":",
    ] {
        runs(script);
        snapshots.extend(source.as_mut().map(|source| source.snapshot().unwrap()));
    }
    drop(statements);
    shell.wait().unwrap();
    if source.is_none() {
        return;
    }
    let written = |at: usize, file: &str| -> Option<Result<u64, Reason>> {
        let path = directory.join(file);
        let rows = intervals(&snapshots[at], &snapshots[at + 1], Rules::default());
        let of_shell = |row: &&FileInterval| row.file.instance.ends_with("(sh)");
        let row = rows.iter().filter(of_shell).find(|row| Path::new(&row.file.path) == path)?;
        Some(match &row.interval {
            Interval::Known(delta) => Ok(delta.counters.write.bytes),
            Interval::Unknown(reason) => Err(*reason),
        })
    };
    assert_eq!((written(0, "old"), written(0, "other"), written(0, "new")), (Some(Ok(5)), Some(Ok(2)), None));
    assert_eq!((written(1, "old"), written(1, "new")), (Some(Err(Reason::Gone)), Some(Ok(6))));
    assert_eq!((written(2, "old"), written(2, "new"), written(2, "other")), (None, Some(Ok(0)), Some(Ok(0))));
}

/// A parent has children before, while and after the source is opened: all are counted.
#[test]
fn children_that_are_born_while_the_source_is_opened_are_counted() {
    const CHILDREN: u64 = 200;
    let bench = Bench::new();
    let gate = bench.file.with_file_name("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let script = format!(
        "i=0; while [ $i -lt {CHILDREN} ]; do (: <$1; exec dd if=$0 of=/dev/null bs=4k count=1 status=none) & \
         i=$((i+1)); sleep 0.004; done; echo all; wait"
    );
    let mut parent = Command::new("sh");
    parent.arg("-c").arg(script).args([&bench.file, &gate]).stdout(Stdio::piped());
    let mut parent = parent.spawn().unwrap();
    let selection = Selection { pids: vec![parent.id()], ..Selection::default() };
    let source = opened(&selection);
    let mut said = String::new();
    BufReader::new(parent.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "all\n");
    let open = fs::OpenOptions::new().write(true).open(&gate).unwrap();
    assert!(parent.wait().unwrap().success());
    drop(open);
    let Some(mut source) = source else { return };
    let snapshot = source.snapshot().unwrap();
    let read = sum(&layer_samples(&snapshot, &bench.file, "(dd)"), |one| one.counters.read);
    assert_eq!((read.count, read.bytes), (CHILDREN, CHILDREN * BLOCK_BYTES));
}

/// Tries each hierarchy that exists: version 2, and version 1's pids.
#[test]
fn a_control_group_is_chosen_with_the_groups_below_it() {
    let bench = Bench::new();
    let hierarchies = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
    let mut tried = 0;
    for hierarchy in hierarchies.map(Path::new).into_iter().filter(|path| path.join("cgroup.procs").exists())
    {
        let group = hierarchy.join(format!("headroom-test-{}", std::process::id()));
        let below = group.join("below");
        if let Err(error) = fs::create_dir_all(&below) {
            eprintln!("skipped: {}: {error}", below.display());
            continue;
        }
        let selection = Selection { cgroup: Some(group.clone()), ..Selection::default() };
        let source = opened(&selection);
        let script = format!(
            "echo $$ > {}/cgroup.procs; exec dd if={} of=/dev/null bs=64k status=none",
            below.display(),
            bench.file.display()
        );
        assert!(Command::new("sh").arg("-c").arg(script).status().unwrap().success());
        fs::read(&bench.file).unwrap();
        let snapshot = source.map(|mut source| source.snapshot().unwrap());
        fs::remove_dir(&below).and_then(|()| fs::remove_dir(&group)).unwrap();
        let Some(snapshot) = snapshot else { return };
        let layer = layer_samples(&snapshot, &bench.file, ")");
        assert_eq!(sum(&layer, |one| one.counters.read).bytes, FILE_BYTES, "{}", hierarchy.display());
        assert_eq!(layer.len(), 1, "its own reading, outside of the group, is not counted");
        tried += 1;
    }
    assert!(tried > 0 || !rustix::process::geteuid().is_root(), "no hierarchy to try");
}

/// Files in a container: those of a file system that only it has mounted get their path in the container, those of a
/// bind-mounted directory their path on this machine. The container has ended when its files are listed.
#[test]
fn a_containers_files_are_named_across_mount_namespaces() {
    let bench = Bench::new();
    let directory = bench.file.parent().unwrap();
    let script = "read go && mkdir box shared && mount --make-rprivate / && mount -t tmpfs none box \
                  && mkdir box/bound && mount --bind shared box/bound \
                  && printf 4444 > box/inside && printf 55555 > box/bound/outside";
    let mut container = Command::new("unshare");
    container.args(["--mount", "sh", "-c", script]).current_dir(directory).stdin(Stdio::piped());
    let mut container = container.spawn().unwrap();
    let source = opened(&Selection { pids: vec![container.id()], ..Selection::default() });
    container.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let ended = container.wait().unwrap();
    let Some(mut source) = source else { return };
    assert!(ended.success(), "this user may trace, and not mount");
    assert_eq!(fs::read_dir(directory.join("box")).unwrap().count(), 0, "no other process sees the mount");
    let snapshot = source.snapshot().unwrap();
    let written = |path: &str| {
        let of_shell = layer_samples(&snapshot, &directory.join(path), "(sh)");
        sum(&of_shell, |one| one.counters.write).bytes
    };
    assert_eq!((written("box/inside"), written("shared/outside")), (4, 5), "{:?}", paths(&snapshot));
    assert_eq!(written("box/bound/outside"), 0);
}

fn paths(snapshot: &filestats::Snapshot) -> Vec<&str> {
    snapshot.samples.iter().map(|sample| sample.file.path.as_str()).collect()
}
