//! Hostile arguments for every subcommand of a program: values that are empty, huge, negative, no
//! number, no text, or names of odd files. None ends a program by a panic or a signal, and what is refused is named.
//!
//! Every call follows from its number. `HEADROOM_ARGUMENT_CALLS=FIRST-LAST` makes these calls, however long they take.

mod calls;
mod sandbox;

use calls::{Calls, Leaf, leaves};
use clap::Command;
use sandbox::{Outcome, Sandbox, reachable};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PARSED: u64 = 10_000;
const CALLED: Range<u64> = 0..400;
/// Some calls run until they are killed. After this time no further call is made.
const CALLS_TIME_MAX: Duration = Duration::from_secs(15);
/// Calls mostly wait, for their duration or for the disk.
const AT_A_TIME: usize = 6;
/// Most subcommands have arguments that exclude each other.
const LINES_TRIED: usize = 20;
/// Those of `headroom --help`.
const EXIT_CODES: [i32; 5] = [0, 1, 2, 3, 130];
const USAGE: i32 = 2;
const PANIC_WORDS: [&str; 4] = ["panicked at", "RUST_BACKTRACE", "stack overflow", "memory allocation"];

/// A program and its arguments.
#[derive(Debug)]
pub struct Program {
    name: &'static str,
    tree: Command,
    leaves: Vec<Leaf>,
}

impl Program {
    /// A program of that name, whose arguments are this tree.
    pub fn new(name: &'static str, mut tree: Command) -> Program {
        tree.build();
        Program { name, leaves: leaves(&tree), tree }
    }

    fn parse(&mut self, line: &[OsString]) -> Result<(), clap::Error> {
        let full = [self.name.into()].into_iter().chain(line.iter().cloned());
        self.tree.try_get_matches_from_mut(full).map(drop)
    }
}

/// A line as a shell takes it.
fn shown(line: &[OsString]) -> String {
    line.iter().map(|argument| format!("{argument:?} ")).collect()
}

/// Any arguments are parsed, or refused by name.
pub fn parse_any(mut program: Program) {
    for number in 0..PARSED {
        let mut calls = Calls::new(number);
        let at = calls.leaf(&program.leaves);
        let line = calls.line(&program.leaves[at]);
        let described = format!("call {number}: {} {}", program.name, shown(&line));
        let parsed = catch_unwind(AssertUnwindSafe(|| program.parse(&line)));
        let parsed = parsed.unwrap_or_else(|_| panic!("a panic, {described}"));
        if let Err(error) = parsed
            && error.use_stderr()
        {
            let text = error.to_string();
            assert!(is_named(&text, &program.leaves[at], &line), "{described}\n{text}");
        }
    }
}

/// Whether a refusal names one of the arguments, by its name or its value.
fn is_named(text: &str, leaf: &Leaf, line: &[OsString]) -> bool {
    let values = line.iter().map(|value| terminal::escape::escape_part(&value.to_string_lossy()));
    let values = values.map(|value| value.split_once('=').map_or(value.clone(), |(_, after)| after.into()));
    let text = text.to_lowercase();
    let names = |word: String| !word.is_empty() && text.contains(&word.to_lowercase());
    leaf.argument_names().chain(values).any(names) || text.contains("''")
}

/// No call of a program ends by a panic or a signal; `make` makes its tree for each thread. Skipped without root.
pub fn call_any(make: impl Fn() -> Program + Sync) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let headroom = reachable("headroom", dir.path());
    let place = reachable(make().name, dir.path());
    let (numbers, patience, until) = match std::env::var("HEADROOM_ARGUMENT_CALLS") {
        Ok(wanted) => (range(&wanted), Duration::from_secs(5), None),
        Err(_) => (CALLED, Duration::from_secs(2), Some(Instant::now() + CALLS_TIME_MAX)),
    };
    let Some(sandbox) = Sandbox::new(&headroom, patience) else { return };
    let (next, ends) = (AtomicU64::new(numbers.start), Mutex::new(BTreeMap::new()));
    let complaints = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                let mut program = make();
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= numbers.end || until.is_some_and(|until| Instant::now() > until) {
                        break;
                    }
                    let (line, leaf) = line(&mut program, number);
                    let outcome = sandbox.call(&place, &line, number);
                    let (code, complaint) = (outcome.code, described(number, &line, &leaf, &outcome));
                    *ends.lock().unwrap().entry(code).or_insert(0) += 1;
                    complaints.lock().unwrap().extend(complaint);
                }
            });
        }
    });
    println!("calls by exit code (none: still running after a while): {:?}", ends.into_inner().unwrap());
    let complaints = complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "{} of them:\n{}", complaints.len(), complaints.join("\n"));
}

fn range(wanted: &str) -> Range<u64> {
    let (first, last) = wanted.split_once('-').expect("FIRST-LAST");
    first.parse().unwrap()..last.parse().unwrap()
}

/// The arguments of a call, and their subcommand. Most are such that the program begins its work: what is refused before
/// is tried without a process.
fn line(program: &mut Program, number: u64) -> (Vec<OsString>, Leaf) {
    let mut calls = Calls::new(number);
    let at = calls.leaf(&program.leaves);
    let leaf = program.leaves[at].clone();
    let mut line = calls.line(&leaf);
    for _ in 0..LINES_TRIED {
        if number.is_multiple_of(5) || program.parse(&line).is_ok() {
            break;
        }
        line = calls.line(&leaf);
    }
    (line, leaf)
}

/// Describes the defect in the end of a call; `None` where it ended well.
fn described(number: u64, line: &[OsString], leaf: &Leaf, outcome: &Outcome) -> Option<String> {
    let stderr = String::from_utf8_lossy(&outcome.stderr);
    let why = complaint(outcome, &stderr, leaf, line)?;
    Some(format!("call {number}, {}\n  {why}\n  {}", shown(line), stderr.replace('\n', "\n  ")))
}

fn complaint(outcome: &Outcome, stderr: &str, leaf: &Leaf, line: &[OsString]) -> Option<String> {
    if let Some(signal) = outcome.signal {
        return Some(format!("ended by signal {signal}"));
    }
    if let Some(code) = outcome.code.filter(|code| !EXIT_CODES.contains(code)) {
        return Some(format!("exit code {code}"));
    }
    if PANIC_WORDS.iter().any(|word| stderr.contains(word)) {
        return Some("a panic".into());
    }
    let raw = stderr.chars().find(|c| report::text::is_harmful(*c) && !matches!(c, '\n' | '\t'));
    if let Some(raw) = raw.or(std::str::from_utf8(&outcome.stderr).is_err().then_some('\u{fffd}')) {
        return Some(format!("{raw:?} in the error"));
    }
    match outcome.code {
        Some(USAGE) if !is_named(stderr, leaf, line) => Some("the error names no argument".into()),
        Some(2 | 3) if stderr.trim().is_empty() => Some("no error".into()),
        _ => None,
    }
}
