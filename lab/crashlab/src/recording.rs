//! A disk on which operations of several threads overlap. Their begins and ends form one trace, with the attempts and the
//! acknowledgements of commits among them, so that a crash at any entry can be replayed.

use crate::disk::overwrite;
use crate::path::show;
use crate::{Chance, Files, Medium, Op};
use pagestore_disk::{Disk, FileId};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// One in this many operations lasts longer, so that others overtake it.
const SLOW_ONE_IN: u64 = 6;
const SLOW: Duration = Duration::from_micros(300);

/// An entry of the trace.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// The operation of this number began.
    Began(u32, Op),
    /// It ended.
    Ended(u32),
    /// The transaction of this number began.
    Attempted(usize),
    /// It was acknowledged as this commit, as durable or not.
    Committed { transaction: usize, sequence: u64, is_durable: bool },
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began(number, op) => write!(f, "operation {number} begins: {}", show(Some(op))),
            Self::Ended(number) => write!(f, "operation {number} ends"),
            Self::Attempted(transaction) => write!(f, "transaction {transaction} begins"),
            Self::Committed { transaction, sequence, is_durable } => {
                let how = if *is_durable { "durable" } else { "not durable yet" };
                write!(f, "transaction {transaction} is acknowledged as commit {sequence}, {how}")
            }
        }
    }
}

/// The disk.
pub(crate) struct RecordingDisk(Mutex<Recorder>);

struct Recorder {
    view: Files,
    entries: Vec<Entry>,
    operations: u32,
    chance: Chance,
}

impl RecordingDisk {
    pub(crate) fn new(seed: u64) -> Self {
        let (view, entries) = Default::default();
        Self(Mutex::new(Recorder { view, entries, operations: 0, chance: Chance::new(seed) }))
    }

    fn lock(&self) -> MutexGuard<'_, Recorder> {
        self.0.lock().expect("no thread panics with the disk locked")
    }

    /// Adds an entry.
    pub(crate) fn record(&self, entry: Entry) {
        self.lock().entries.push(entry);
    }

    /// The number of entries.
    pub(crate) fn entries(&self) -> usize {
        self.lock().entries.len()
    }

    /// Takes the trace.
    pub(crate) fn take_trace(&self) -> Vec<Entry> {
        std::mem::take(&mut self.lock().entries)
    }

    fn perform(&self, op: Op, change: impl FnOnce(&mut Files)) {
        let (number, is_slow) = {
            let mut recorder = self.lock();
            let number = recorder.operations;
            recorder.operations += 1;
            recorder.entries.push(Entry::Began(number, op));
            (number, recorder.chance.once_in(SLOW_ONE_IN))
        };
        if is_slow {
            std::thread::sleep(SLOW);
        } else {
            std::thread::yield_now();
        }
        let mut recorder = self.lock();
        change(&mut recorder.view);
        recorder.entries.push(Entry::Ended(number));
    }

    fn do_write(&self, file: FileId, offset: u64, bytes: &[u8], through: bool) {
        let op = Op::Write { file, offset, bytes: bytes.to_vec(), through };
        self.perform(op, |view| overwrite(&mut view[file as usize], offset, bytes));
    }
}

impl Disk for RecordingDisk {
    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let recorder = self.lock();
        let start = offset as usize;
        let bytes = recorder.view[file as usize].get(start..start + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.do_write(file, offset, bytes, false);
        Ok(())
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.do_write(file, offset, bytes, true);
        Ok(())
    }

    fn truncate(&self, file: FileId, length: u64) -> io::Result<()> {
        if self.len(file)? > length {
            let op = Op::Truncate { file, length };
            self.perform(op, |view| view[file as usize].truncate(length as usize));
        }
        Ok(())
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.perform(Op::Sync { file }, |_| ());
        Ok(())
    }

    fn len(&self, file: FileId) -> io::Result<u64> {
        Ok(self.lock().view[file as usize].len() as u64)
    }
}

/// The medium after a number of entries, and the operations in flight.
#[derive(Default)]
pub(crate) struct Replay {
    medium: Medium,
    /// Operations that no sync has covered yet, with the entry of their end.
    uncovered: [Vec<(usize, Op)>; 3],
    /// Operations in flight, with the entry of their begin.
    in_flight: BTreeMap<u32, (usize, Op)>,
    entries: usize,
}

impl Replay {
    /// Takes in the next entry.
    pub(crate) fn apply(&mut self, entry: &Entry) {
        let at = self.entries;
        self.entries += 1;
        match entry {
            Entry::Began(number, op) => drop(self.in_flight.insert(*number, (at, op.clone()))),
            Entry::Ended(number) => {
                let (begun, op) = self.in_flight.remove(number).expect("what ends has begun");
                self.complete(at, begun, op);
            }
            Entry::Attempted(_) | Entry::Committed { .. } => {}
        }
    }

    /// A sync covers what ended before it began.
    fn complete(&mut self, at: usize, begun: usize, op: Op) {
        match &op {
            Op::Sync { file } => {
                let uncovered = &mut self.uncovered[*file as usize];
                let covered = uncovered.iter().take_while(|(ended, _)| *ended < begun).count();
                uncovered.drain(..covered).for_each(|(_, op)| self.medium.apply(&op));
                self.medium.apply(&op);
            }
            Op::Write { file, through: false, .. } | Op::Truncate { file, .. } => {
                self.uncovered[*file as usize].push((at, op));
            }
            _ => self.medium.apply(&op),
        }
    }

    /// The medium of a process that is killed here: nothing is lost yet.
    pub(crate) fn killed(&self, chance: &mut Chance) -> Medium {
        let in_flight = self.in_flight.values().map(|(_, op)| op);
        in_flight.fold(self.written(), |medium, op| medium.killed(Some(op), chance))
    }

    /// Files that a power failure here may leave.
    pub(crate) fn crash(&self, chance: &mut Chance) -> Files {
        let mut in_flight: Vec<&Op> = self.in_flight.values().map(|(_, op)| op).collect();
        let last = in_flight.pop();
        let medium = in_flight.into_iter().fold(self.written(), |medium, op| medium.killed(Some(op), chance));
        medium.crash(last, chance)
    }

    /// The number of operations in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn written(&self) -> Medium {
        let mut medium = self.medium.clone();
        self.uncovered.iter().flatten().for_each(|(_, op)| medium.apply(op));
        medium
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_covers_what_ended_before_it_began() {
        let write =
            |byte| Op::Write { file: FileId::Data, offset: 0, bytes: vec![byte; 512], through: false };
        let sync = Op::Sync { file: FileId::Data };
        let mut replay = Replay::default();
        let first = |replay: &Replay| -> Vec<u8> {
            let byte = |seed| replay.crash(&mut Chance::new(seed))[FileId::Data as usize].first().copied();
            let mut seen: Vec<u8> = (0..200).map(|seed| byte(seed).unwrap_or(0)).collect();
            seen.sort_unstable();
            seen.dedup();
            seen
        };
        for entry in [Entry::Began(0, write(1)), Entry::Ended(0), Entry::Began(1, sync.clone())] {
            replay.apply(&entry);
        }
        for entry in [Entry::Began(2, write(2)), Entry::Ended(2)] {
            replay.apply(&entry);
        }
        assert_eq!(first(&replay), [0, 1, 2]);
        replay.apply(&Entry::Ended(1));
        assert_eq!(first(&replay), [1, 2], "the sync had begun before the second write ended");
        replay.apply(&Entry::Began(3, sync));
        replay.apply(&Entry::Ended(3));
        assert_eq!(first(&replay), [2]);
    }
}
