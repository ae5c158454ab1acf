//! Several sources of chosen processes at once: one set of programs counts for all of them.

use super::{Bench, layer_samples, opened, sum};
use collect::Source;
use collect::process::{Process, Selection};
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A shell that runs lines, one at a time.
struct Shell {
    child: Child,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Shell {
    fn start(directory: &Path) -> Shell {
        let mut shell = Command::new("sh");
        shell.current_dir(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let (input, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Shell { child, input, answers: BufReader::new(answers).lines() }
    }

    fn run(&mut self, script: &str) -> String {
        self.input.write_all(format!("{script}\necho done\n").as_bytes()).unwrap();
        let answers = self.answers.by_ref().map(Result::unwrap);
        answers.take_while(|line| line != "done").collect()
    }

    fn selection(&self) -> Selection {
        Selection { pids: vec![self.child.id()], ..Selection::default() }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Number of BPF programs that this process has loaded.
fn programs() -> usize {
    let entries = fs::read_dir("/proc/self/fdinfo").unwrap().filter_map(Result::ok);
    let is_program = |text: &String| text.lines().any(|line| line.starts_with("prog_id:"));
    entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()).filter(is_program).count()
}

/// Writes and bytes of the file's requests, and writes to the device for it. Those of the first write are left out there: the
/// file is known once that has ended.
fn written(source: &mut Process, file: &Path) -> (u64, u64, u64) {
    let snapshot = source.snapshot().unwrap();
    let requests = sum(&layer_samples(&snapshot, file, ")"), |one| one.counters.write);
    let blocks = sum(&layer_samples(&snapshot, file, "block layer"), |one| one.counters.write);
    (requests.count, requests.bytes, blocks.count)
}

#[test]
fn sources_of_several_processes_share_the_programs_and_get_their_own_figures() {
    let bench = Bench::new();
    let directory = bench.file.parent().unwrap();
    let (mut one, mut other) = (Shell::start(directory), Shell::start(directory));
    let Some(mut of_one) = opened(&one.selection()) else { return };
    let loaded = programs();
    let mut of_other = opened(&other.selection()).unwrap();
    assert_eq!(programs(), loaded, "no further programs for a second source");
    let write = |name: &str, count: u32| {
        format!("dd if=/dev/zero of={name} bs=4k count={count} oflag=direct conv=notrunc status=none")
    };
    one.run(&write("one", 3));
    other.run(&write("other", 5));
    let (file, others) = (directory.join("one"), directory.join("other"));
    assert_eq!(written(&mut of_one, &file), (3, 3 * 4096, 2));
    assert_eq!(written(&mut of_one, &others), (0, 0, 0));
    assert_eq!(written(&mut of_other, &others), (5, 5 * 4096, 4));
    assert_eq!(written(&mut of_other, &file), (0, 0, 0));
    assert!(of_one.processes().iter().all(|pid| !of_other.processes().contains(pid)));

    // Block I/O of a file that both use is counted for both.
    other.run(&write("one", 2));
    assert_eq!(written(&mut of_other, &file), (2, 2 * 4096, 4));
    assert_eq!(written(&mut of_one, &file), (3, 3 * 4096, 4));

    // A source that ends takes nothing from the others, and one that is opened again begins at zero.
    drop(of_one);
    one.run(&write("one", 7));
    assert_eq!(written(&mut of_other, &others), (5, 5 * 4096, 4));
    let mut again = opened(&one.selection()).unwrap();
    one.run(&write("again", 4));
    assert_eq!(written(&mut again, &directory.join("again")), (4, 4 * 4096, 3));
    assert_eq!(written(&mut again, &file).1, 0, "the writes of the source that ended");
    drop((again, of_other));
    assert!(programs() < loaded, "the last source unloads the programs");
}

#[test]
fn a_source_of_a_process_has_those_of_its_descendants_that_have_sources_of_their_own() {
    let bench = Bench::new();
    let directory = bench.file.parent().unwrap();
    let mut outer = Shell::start(directory);
    let inner: u32 = outer
        .run("mkfifo go; sh -c 'read x <go; echo 22 >inner; echo 333 >inner' & echo $!")
        .parse()
        .unwrap();
    let Some(mut of_outer) = opened(&outer.selection()) else { return };
    let mut of_inner = opened(&Selection { pids: vec![inner], ..Selection::default() }).unwrap();
    outer.run("echo 1 >outer; echo >go; wait");
    assert_eq!(written(&mut of_inner, &directory.join("inner")).1, 7);
    assert_eq!(written(&mut of_inner, &directory.join("outer")).1, 0);
    assert_eq!(written(&mut of_outer, &directory.join("inner")).1, 7);
    assert_eq!(written(&mut of_outer, &directory.join("outer")).1, 2);
}
