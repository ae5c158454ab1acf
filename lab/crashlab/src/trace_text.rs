//! The trace of threads as text, so that another process can replay a failure.
//!
//! ```text
//! headroom lab crash, trace of threads, version 1
//! seed 5
//! prepared 61                              entries before the store was prepared
//! at 812                                   entries before the crash
//! began 0 write log 8192 4096 484c4231…    operation, file, offset, length, bytes without the zeros at their end
//! began 1 through control 0 4096 4852…     as write, durable on return
//! began 2 sync data
//! began 3 truncate log 270336
//! ended 0
//! attempted 3                              transaction
//! committed 3 17 durable                   transaction, commit, `durable` or `delayed`
//! ```

use crate::Op;
use crate::recording::Entry;
use pagestore_disk::FileId;
use std::fmt::{self, Write};
use std::str::{FromStr, SplitAsciiWhitespace};

/// Entries before the crash that a failure shows.
const SHOWN: usize = 40;

const FIRST_LINE: &str = "headroom lab crash, trace of threads, version 1";
/// A longer write is not one of the engine.
const WRITE_BYTES_MAX: usize = 64 << 20;

/// A trace, and the crash in it that is judged.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub seed: u64,
    pub prepared: usize,
    pub at: usize,
    pub trace: Vec<Entry>,
}

/// A violation, and the trace that leads to it.
#[derive(Clone, Debug)]
pub struct ThreadedFailure {
    pub(crate) what: String,
    pub(crate) recorded: Recorded,
}

impl fmt::Display for ThreadedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recorded { seed, at, trace, .. } = &self.recorded;
        writeln!(f, "seed {seed} with threads, crash after entry {at} of its trace: {}", self.what)?;
        writeln!(f, "the last entries before it:")?;
        let shown = trace.iter().enumerate().take(*at).skip(at.saturating_sub(SHOWN));
        { shown }.try_for_each(|(number, entry)| writeln!(f, "  {number}. {entry}"))
    }
}

impl ThreadedFailure {
    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.recorded.seed
    }

    /// The whole trace, for [`replay_threads`](crate::replay_threads).
    #[must_use]
    pub fn trace_text(&self) -> String {
        self.recorded.to_text()
    }
}

impl Recorded {
    pub(crate) fn to_text(&self) -> String {
        let Self { seed, prepared, at, trace } = self;
        let mut text = format!("{FIRST_LINE}\nseed {seed}\nprepared {prepared}\nat {at}\n");
        for entry in trace {
            match entry {
                Entry::Began(number, op) => writeln!(text, "began {number} {}", op_text(op)),
                Entry::Ended(number) => writeln!(text, "ended {number}"),
                Entry::Attempted(transaction) => writeln!(text, "attempted {transaction}"),
                Entry::Committed { transaction, sequence, is_durable } => {
                    let how = if *is_durable { "durable" } else { "delayed" };
                    writeln!(text, "committed {transaction} {sequence} {how}")
                }
            }
            .expect("a string takes any text");
        }
        text
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line) != Some(FIRST_LINE) {
            return Err(format!("it does not begin with '{FIRST_LINE}'"));
        }
        let mut header = |name: &str| -> Result<u64, String> {
            let line = lines.next().map_or("", |(_, line)| line);
            let value = line.strip_prefix(name).and_then(|value| value.trim().parse().ok());
            value.ok_or_else(|| format!("'{name}' and a number are expected instead of '{line}'"))
        };
        let (seed, prepared, at) = (header("seed")?, header("prepared")? as usize, header("at")? as usize);
        let entry = |(number, line): (usize, &str)| {
            parse_entry(line).ok_or_else(|| format!("line {} is no entry of a trace", number + 1))
        };
        let trace = lines.map(entry).collect::<Result<Vec<_>, _>>()?;
        if at > trace.len() || prepared > at {
            return Err(format!("the crash after entry {at} lies outside the trace"));
        }
        check_ends(&trace)?;
        Ok(Self { seed, prepared, at, trace })
    }
}

/// Every operation ends after it has begun, and once.
fn check_ends(trace: &[Entry]) -> Result<(), String> {
    let mut in_flight = std::collections::BTreeSet::new();
    for entry in trace {
        let is_in_order = match entry {
            Entry::Began(number, _) => in_flight.insert(*number),
            Entry::Ended(number) => in_flight.remove(number),
            Entry::Attempted(_) | Entry::Committed { .. } => true,
        };
        if !is_in_order {
            return Err(format!("out of order: {entry}"));
        }
    }
    Ok(())
}

fn op_text(op: &Op) -> String {
    match op {
        Op::Write { file, offset, bytes, through } => {
            let kind = if *through { "through" } else { "write" };
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let mut text = format!("{kind} {file} {offset} {} ", bytes.len());
            for byte in &bytes[..end] {
                write!(text, "{byte:02x}").expect("a string takes any text");
            }
            text
        }
        Op::Truncate { file, length } => format!("truncate {file} {length}"),
        Op::Sync { file } => format!("sync {file}"),
        other => unreachable!("a disk of threads has no faults: {other:?}"),
    }
}

fn parse_entry(line: &str) -> Option<Entry> {
    let mut words = line.split_ascii_whitespace();
    let entry = match words.next()? {
        "began" => Entry::Began(number(&mut words)?, parse_op(&mut words)?),
        "ended" => Entry::Ended(number(&mut words)?),
        "attempted" => Entry::Attempted(number(&mut words)?),
        "committed" => {
            let (transaction, sequence) = (number(&mut words)?, number(&mut words)?);
            let is_durable = match words.next()? {
                "durable" => true,
                "delayed" => false,
                _ => return None,
            };
            Entry::Committed { transaction, sequence, is_durable }
        }
        _ => return None,
    };
    words.next().is_none().then_some(entry)
}

fn parse_op(words: &mut SplitAsciiWhitespace<'_>) -> Option<Op> {
    let kind = words.next()?;
    let name = words.next()?;
    let file = FileId::ALL.into_iter().find(|file| file.name() == name)?;
    match kind {
        "sync" => Some(Op::Sync { file }),
        "truncate" => Some(Op::Truncate { file, length: number(words)? }),
        "write" | "through" => {
            let (offset, length) = (number(words)?, number::<usize>(words)?);
            let hex = words.next().unwrap_or("").as_bytes();
            if length > WRITE_BYTES_MAX || hex.len() > 2 * length {
                return None;
            }
            let mut bytes = vec![0; length];
            for (byte, digits) in bytes.iter_mut().zip(hex.chunks(2)) {
                *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
            }
            Some(Op::Write { file, offset, bytes, through: kind == "through" })
        }
        _ => None,
    }
}

fn number<T: FromStr>(words: &mut SplitAsciiWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_the_same_after_it_was_written_and_read() {
        let bytes = [vec![0x48, 0, 7], vec![0; 509]].concat();
        let trace = vec![
            Entry::Began(0, Op::Write { file: FileId::Log, offset: 8192, bytes, through: true }),
            Entry::Attempted(3),
            Entry::Began(1, Op::Sync { file: FileId::Data }),
            Entry::Ended(0),
            Entry::Committed { transaction: 3, sequence: 17, is_durable: true },
            Entry::Began(2, Op::Truncate { file: FileId::Log, length: 270_336 }),
        ];
        let text = Recorded { seed: 5, prepared: 1, at: 6, trace }.to_text();
        let again = Recorded::parse(&text).unwrap();
        assert_eq!((again.seed, again.prepared, again.at, again.trace.len()), (5, 1, 6, 6));
        assert_eq!(again.to_text(), text);
        for (wrong, why) in [
            (text.replace("seed 5", "seed x"), "'seed' and a number"),
            (text.replace("sync data", "sync date"), "line 7 is no entry"),
            (text.replace("ended 0", "ended 9"), "out of order"),
            (text.replace("at 6", "at 60"), "outside the trace"),
            ("anything".into(), "does not begin with"),
        ] {
            let refused = Recorded::parse(&wrong).expect_err("it is refused");
            assert!(refused.contains(why), "{refused}");
        }
    }
}
