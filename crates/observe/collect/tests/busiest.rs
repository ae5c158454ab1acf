//! A source that watches all the time: counters are read into the rows of the last count, only the busiest files are named, and
//! what was counted is still what was done. In a program of its own: that counts are shared is a setting of the whole program.

use collect::Source;
use collect::process::{Layer, Process, Selection, share_counts};
use filestats::{Interval, Rules, Snapshot, intervals};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

const FILES: u32 = 40;
const NAMED: usize = 4;
const BLOCK_BYTES: u64 = 4096;
const NAMES_EVERY: Duration = Duration::from_secs(2);

/// Writes of requests between two snapshots, and the names of the files that have samples of their own.
fn written(earlier: &Snapshot, later: &Snapshot) -> (u64, u64, BTreeSet<String>) {
    let (mut count, mut bytes, mut named) = (0, 0, BTreeSet::new());
    for file in intervals(earlier, later, Rules::default()) {
        let is_request = Layer::from_instance(&file.file.instance) == Layer::Requests;
        let Interval::Known(delta) = &file.interval else { continue };
        if is_request && file.file.path.contains("/file") {
            named.insert(file.file.path.rsplit('/').next().unwrap().to_owned());
        }
        if is_request && (file.file.path.contains("/file") || file.file.path.starts_with("(other")) {
            count += delta.counters.write.count;
            bytes += delta.counters.write.bytes;
        }
    }
    (count, bytes, named)
}

#[test]
fn what_is_summed_and_what_is_named_add_up_to_what_was_written() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let mut shell = Command::new("sh");
    shell.current_dir(directory.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let (mut input, output) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
    let mut answers = BufReader::new(output).lines();
    let mut run = |script: &str| {
        input.write_all(format!("{script}\necho done\n").as_bytes()).unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), "done");
    };
    let opened = Process::open(&Selection { pids: vec![shell.id()], ..Selection::default() });
    if let Err(error) = &opened {
        eprintln!("skipped: {error}");
    }
    if let Ok(source) = opened {
        follow(source, &mut run);
    }
    drop(input);
    shell.wait().unwrap();
}

/// Holds what the source counts against what `run` has the shell write.
fn follow(mut source: Process, run: &mut dyn FnMut(&str)) {
    share_counts(Duration::from_nanos(1), NAMES_EVERY);
    source.name_busiest(NAMED);
    let write = |name: u32, count: u32| {
        format!(
            "dd if=/dev/zero of=file{name} bs=4k count={count} oflag=direct conv=notrunc status=none; \
             [ $? = 0 ] || echo no direct I/O"
        )
    };
    let all: Vec<String> = (0..FILES).map(|name| write(name, 1)).collect();
    run(&all.join("\n"));
    let mut last = source.snapshot().unwrap();
    assert!(last.samples.len() < FILES as usize, "{}", last.samples.len());
    // A count of files and of writes to each, and what is done before.
    let steps = [
        (FILES, 2, ""),
        (FILES + 5, 1, ""),
        (3, 50, "mv file1 file99; mv file99 file1"),
        (FILES, 1, "rm file7"),
    ];
    for (round, (files, writes, before)) in steps.into_iter().cycle().take(12).enumerate() {
        if !before.is_empty() {
            run(before);
        }
        let all: Vec<String> = (0..files).map(|name| write(name, writes)).collect();
        run(&all.join("\n"));
        let now = source.snapshot().unwrap();
        let (count, bytes, _) = written(&last, &now);
        let expected = u64::from(files * writes);
        assert_eq!((count, bytes), (expected, expected * BLOCK_BYTES), "round {round}: {now:#?}");
        last = now;
        // So that names are read once in a while.
        std::thread::sleep(Duration::from_millis(450));
    }
    // Activity until here must not decide which files are named.
    std::thread::sleep(NAMES_EVERY);
    source.snapshot().unwrap();
    // Of one process, as the others are of one each.
    let own = |count: u32| format!("i=0; while [ $i -lt {count} ]; do echo x >&9; i=$((i+1)); done");
    run(&format!("exec 9>fileown; {}", own(3000)));
    source.snapshot().unwrap();
    std::thread::sleep(NAMES_EVERY);
    let before = source.snapshot().unwrap();
    run(&own(10));
    let now = source.snapshot().unwrap();
    let (count, _, named) = written(&before, &now);
    assert_eq!((count, named.contains("fileown")), (10, true), "{named:?}");
}
