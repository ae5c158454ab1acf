//! The oracle: the states that a crash may leave.
//!
//! (a) Every commit that was acknowledged as durable is there. (b) The state is that after one commit, with everything
//! before it and nothing after. (c) Only delayed commits whose log was within its bound may be missing. (d) A crash during
//! recovery leads to the same state. (e) Damage is an error, never data. (f) Nothing is there of a commit that was refused
//! while the store went on.

use crate::run::{Event, Run, is_log_write};
use crate::workload::{Model, contents, difference, read_entries};
use crate::{Chance, Fault, Files, Op, SimDisk};
use pagestore::{Error, Options, Recovery, Store};
use pagestore_disk::FileId;
use std::ops::Range;
use std::sync::Arc;

/// The range of commits that may be the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub created: bool,
    pub least: u64,
    pub most: u64,
    pub tolerance: Tolerance,
}

impl Run {
    /// The range after a crash during operation `at`.
    pub(crate) fn expected(&self, at: usize) -> Expected {
        let mut expected = Expected { created: false, least: 0, most: 0, tolerance: Tolerance::None };
        for (_, event) in self.events.iter().take_while(|(when, _)| *when <= at) {
            match event {
                Event::Created => expected.created = true,
                Event::Attempt(sequence, _) => expected.most = expected.most.max(*sequence),
                Event::Refused(sequence) => expected.most = expected.most.min(sequence - 1),
                Event::Durable(sequence) => expected.least = expected.least.max(*sequence),
            }
        }
        expected
    }

    /// As `expected`, in a run with a fault.
    pub(crate) fn expected_after_fault(&self, at: usize) -> Expected {
        let expected = self.expected(at);
        let Some((fault, fault_at)) = self.fault.filter(|(fault, _)| !fault.is_reported()) else {
            return expected;
        };
        let least = match fault {
            Fault::LyingDevice => self.before_lies(fault_at, at),
            _ => self.witnessed(fault_at, at),
        };
        let is_stale = match fault {
            Fault::LyingDevice => true,
            Fault::LyingSync => matches!(self.fault_met, Some(Op::Sync { file: FileId::Data })),
            _ => false,
        };
        let tolerance = if is_stale { Tolerance::Stale } else { Tolerance::Reported };
        Expected { least: expected.least.min(least), tolerance, ..expected }
    }

    /// The oldest state allowed after a crash during operation `at`, if operation `fault_at` was not done as acknowledged.
    /// It is that without the fault if a later log write confirms what was lost. Otherwise a lost log write loses its own
    /// contents, and a misdirected write of the log, be it the zeros of new log space, loses the acknowledged blocks that it
    /// has overwritten, since a damaged end of the log is indistinguishable from a torn one; the oldest of them counts.
    pub(crate) fn witnessed(&self, fault_at: usize, at: usize) -> u64 {
        // Another strategy of recovery may have done fewer operations, and then there was no fault.
        let Some(own) = self.trace.get(fault_at) else { return self.expected(at).least };
        if self.trace[fault_at..at.max(fault_at)].iter().skip(1).any(is_log_write) {
            return self.expected(at).least;
        }
        let was_log_write = matches!(own, Op::Lost { file: FileId::Log, .. })
            || [Some(own), self.fault_met.as_ref()].into_iter().flatten().any(is_log_write);
        let overwritten = match own {
            Op::Write { file: FileId::Log, offset, bytes, .. } => {
                self.oldest_log_write(fault_at, *offset..*offset + bytes.len() as u64)
            }
            _ => None,
        };
        let oldest = overwritten.or(was_log_write.then_some(fault_at));
        self.expected(oldest.unwrap_or(at)).least
    }

    /// The oldest state allowed after a crash during operation `at`, if nothing has been durable since operation `lies_at`: what
    /// was acknowledged up to there, without what was overwritten since.
    pub(crate) fn before_lies(&self, lies_at: usize, at: usize) -> u64 {
        let acknowledged = self.expected(lies_at.min(at)).least;
        let since = self.trace.get(lies_at..).unwrap_or_default().iter().take(at + 1 - lies_at.min(at));
        let overwritten = since.filter_map(|op| match op {
            Op::Write { file: FileId::Log, offset, bytes, .. } => {
                self.oldest_log_write(lies_at, *offset..*offset + bytes.len() as u64)
            }
            _ => None,
        });
        overwritten.map(|oldest| self.expected(oldest).least).fold(acknowledged, u64::min)
    }

    /// Whether a table and key ever had this value.
    fn has_ever_had(&self, key: (u8, u32), value: &[u8]) -> bool {
        self.events.iter().any(|(_, event)| match event {
            Event::Attempt(_, model) => model.get(&key).is_some_and(|own| own == value),
            _ => false,
        })
    }

    /// The oldest log write before operation `at` that still occupied one of the sectors in these bytes of the log.
    pub(crate) fn oldest_log_write(&self, at: usize, place: Range<u64>) -> Option<usize> {
        let holder = |sector: u64| {
            self.trace[..at].iter().rposition(|op| match op {
                Op::Write { file: FileId::Log, offset, bytes, through: true } => {
                    (*offset..*offset + bytes.len() as u64).contains(&sector)
                }
                _ => false,
            })
        };
        place.step_by(512).filter_map(holder).min()
    }

    /// The oldest state allowed if a byte of a file is damaged at the end of the run and the last log write holds it: no later
    /// block confirms that write, so that damage there is indistinguishable from a torn end.
    pub(crate) fn before_last_log_write(&self, (file, at): (FileId, usize)) -> Option<u64> {
        let last = self.trace.iter().rposition(is_log_write)?;
        let Op::Write { offset, bytes, .. } = &self.trace[last] else { return None };
        let is_held = (*offset..*offset + bytes.len() as u64).contains(&(at as u64));
        (file == FileId::Log && is_held).then(|| self.expected(last).least)
    }
}

/// Whether recovery may report damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tolerance {
    None,
    Reported,
    /// It may also find pages of different ages: a checkpoint relied on a sync of the data file that was not done. No page is
    /// damaged then, so that no checksum reveals it.
    Stale,
}

impl Tolerance {
    pub(crate) fn allows_reports(self) -> bool {
        self != Self::None
    }
}

fn reports_damage(error: &Error) -> bool {
    matches!(
        error,
        Error::CorruptLog { .. }
            | Error::CorruptPage { .. }
            | Error::CorruptTree { .. }
            | Error::NotAStore { .. }
    )
}

/// Recovers a crash image and compares it with the model. `Ok(None)`: there is no store yet, or damage was reported and
/// may be.
pub(crate) fn judge(
    run: &Run,
    files: &Files,
    expected: Expected,
    recovery: Recovery,
    chance: &mut Chance,
) -> Result<Option<(u64, Model)>, String> {
    let options = Options { recovery, ..run.setting.options };
    if expected.tolerance == Tolerance::Stale {
        return judge_stale(run, files, expected, options);
    }
    let disk = Arc::new(SimDisk::holding(files.clone()));
    let recovered = Store::open_on(disk, options).and_then(|store| {
        let before = contents(&store.read()?)?;
        if chance.once_in(4) {
            store.checkpoint()?;
            let after = contents(&store.read()?)?;
            assert_eq!(before, after, "a checkpoint changes nothing that is read");
            let last = store.stats().last_sequence;
            if last.is_multiple_of(2) {
                while !store.compact(64)?.is_done {}
                let after = contents(&store.read()?)?;
                assert_eq!(before, after, "a compaction changes nothing that is read");
            }
            return Ok((last, before));
        }
        Ok((store.stats().last_sequence, before))
    });
    let (sequence, found) = match recovered {
        Ok(recovered) => recovered,
        Err(Error::NotAStore { .. }) if !expected.created => return Ok(None),
        Err(error) if expected.tolerance.allows_reports() && reports_damage(&error) => return Ok(None),
        Err(error) => return Err(format!("{recovery:?} recovery: it cannot be opened: {error}")),
    };
    let why = |what: String| Err(format!("{recovery:?} recovery: {what}"));
    if sequence < expected.least {
        return why(format!(
            "commit {} was acknowledged, and {sequence} is the last one there",
            expected.least
        ));
    }
    if sequence > expected.most {
        return why(format!("commit {sequence} is there, and {} was the last one begun", expected.most));
    }
    let model = run.state(sequence).cloned().unwrap_or_default();
    let found = found.unwrap_or_default();
    if let Some(differs) = difference(&found, &model) {
        return why(format!(
            "what is there is not the state after commit {sequence}: table and key {differs:?} differ"
        ));
    }
    Ok(Some((sequence, model)))
}

/// Recovers files whose pages may be of different ages, and checks that nothing is read that was never written.
fn judge_stale(
    run: &Run,
    files: &Files,
    expected: Expected,
    options: Options,
) -> Result<Option<(u64, Model)>, String> {
    let disk = Arc::new(SimDisk::holding(files.clone()));
    let recovered = Store::open_on(disk, options).and_then(|store| {
        let mut found = Model::new();
        let reader = store.read()?;
        read_entries(&reader, &mut found)?;
        Ok((store.stats().last_sequence, found))
    });
    let (sequence, found) = match recovered {
        Ok(recovered) => recovered,
        // A page may refer to one that does not exist yet.
        Err(Error::NoSuchTable { .. } | Error::NoSuchPage { .. } | Error::StaleTable { .. }) => {
            return Ok(None);
        }
        Err(error) if reports_damage(&error) => return Ok(None),
        Err(error) => return Err(format!("{:?} recovery: it cannot be opened: {error}", options.recovery)),
    };
    if !(expected.least..=expected.most).contains(&sequence) {
        let Expected { least, most, .. } = expected;
        return Err(format!("commit {sequence} is the last one there, and not one of {least} to {most}"));
    }
    let unknown = found.iter().find(|(key, value)| !run.has_ever_had(**key, value));
    match unknown {
        Some((key, _)) => Err(format!("table and key {key:?} have a value that they never had")),
        None => Ok(Some((sequence, found))),
    }
}
