//! The path to a failure: the crashes that the laboratory went on from, and the one that it failed after.

use crate::op::NameOp;
use crate::run::Place;
use crate::{Chance, Op, Step};
use pagestore::Recovery;
use std::fmt;

/// Shapes of a torn write that chance alone would rarely produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Torn {
    /// The first of several blocks landed: a transaction without its commit, followed by the next transaction.
    FirstBlocks,
    /// The last of several blocks landed: whole blocks where blocks of the next opening may end.
    LastBlocks,
    /// All but the end of the padding landed: a cut block, which the padding of another block could complete.
    AllButTheEnd,
}

/// The image of a crash that was judged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CrashImage {
    Plain(usize),
    Torn(Torn),
    /// With a truncated file.
    Cut,
    /// On a device with large units.
    Units,
    /// The process was killed: nothing is lost yet, and what was not durable is in the page cache.
    Killed,
}

/// A crash and the draws behind it.
#[derive(Clone, Debug)]
pub(crate) struct CrashPoint {
    pub place: Place,
    pub image: CrashImage,
    /// The generator before its images were drawn.
    pub drawn: Chance,
    /// The generator before the judgement.
    pub judging: Chance,
}

/// The run that went on from a crash.
#[derive(Clone, Debug)]
pub(crate) struct Continuation {
    pub point: CrashPoint,
    pub recovery: Recovery,
    pub steps: Vec<Step>,
}

/// A failure and the path that led to it.
#[derive(Clone, Debug)]
pub(crate) struct Counterexample {
    pub what: String,
    /// The runs after the first one.
    pub path: Vec<Continuation>,
    /// The crash after which the last run failed; `None`: it failed before any crash.
    pub last: Option<CrashPoint>,
}

/// A crash on the path to a failure, and the run after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterCrash {
    /// "operation 9 (sync data)".
    pub crash: String,
    /// The strategy of its recovery.
    pub recovery: Recovery,
    /// The steps of the run after it.
    pub steps: Vec<Step>,
}

impl fmt::Display for AfterCrash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.steps.is_empty() { ", and nothing more" } else { ", then:" };
        write!(f, "crash at {}, {:?} recovery{end}", self.crash, self.recovery)
    }
}

impl From<String> for Counterexample {
    fn from(what: String) -> Self {
        Self { what, path: Vec::new(), last: None }
    }
}

impl Counterexample {
    pub(crate) fn after_crash(what: String, point: CrashPoint) -> Counterexample {
        Counterexample { last: Some(point), ..what.into() }
    }

    /// This failure, with a crash before it.
    pub(crate) fn preceded_by(mut self, continuation: Continuation) -> Counterexample {
        self.path.insert(0, continuation);
        self
    }
}

/// "generation 1, crash at operation 12 (sync data): ...".
pub(crate) fn crashed(generation: u32, at: usize, in_flight: Option<&Op>, what: &str) -> String {
    format!("generation {generation}, crash at operation {at} ({}): {what}", show(in_flight))
}

pub(crate) fn show(op: Option<&Op>) -> String {
    match op {
        None => "after the last".into(),
        Some(Op::Write { file, offset, bytes, through }) => {
            format!("write{} {file} {offset}+{}", if *through { " through" } else { "" }, bytes.len())
        }
        Some(Op::FailedWrite { file, offset, bytes }) => {
            format!("failed write {file} {offset}+{}", bytes.len())
        }
        Some(Op::Sync { file }) => format!("sync {file}"),
        Some(Op::Name(op)) => match op {
            NameOp::MakeDirectory(path) => format!("make directory {}", path.display()),
            NameOp::Create(path, _) => format!("create {}", path.display()),
            NameOp::Remove(path) => format!("remove {}", path.display()),
            NameOp::SyncDirectory(path) => format!("sync directory {}", path.display()),
            NameOp::Replace(_, content) => format!("replace the lock's content by {} bytes", content.len()),
        },
        Some(Op::IgnoredSync { file }) => format!("ignored sync {file}"),
        Some(Op::Truncate { file, length }) => format!("cut {file} to {length}"),
        Some(Op::FailedTruncate { file, length }) => format!("failed cut {file} to {length}"),
        Some(Op::FailedSync { file }) => format!("failed sync {file}"),
        Some(Op::Lost { file, offset, bytes }) => format!("lost write {file} {offset}+{bytes}"),
    }
}
