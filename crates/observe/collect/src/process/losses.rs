//! Events that were lost in the kernel, by cause, and the figures that are wrong because of them.

use super::calls;
use super::hooks::BLOCK;
use super::program::{Programs, recursion_misses};
use super::refused::table_error;
use super::tables::{FileId, Nested};
use crate::error::SourceError;
use aya::maps::{MapData, PerCpuArray};
use std::collections::HashSet;

/// Programs that never run in an interrupt: they cannot nest, and it is reported if they do.
const OF_TASKS: [&str; 4] = ["sys_enter", "sys_exit", "ring_submit", "ring_complete"];

/// `enum lost` of counters.h, in words.
const LOST: [&str; 12] = [
    "files, because the table of counters was full: some files are missing here; choose fewer processes, or give this program more memory",
    "names of files, because their table was full or busy",
    "asynchronous I/Os, because the table of those under way was full",
    "I/Os of threads that the kernel had no memory to follow",
    "calls of io_submit with more than 1024 I/Os",
    "libaio I/Os whose iocb was submitted again before their result was fetched",
    "io_uring I/Os that ended without a completion that the kernel reports",
    "parts of block requests made of more I/Os than are looked at",
    "I/Os whose counters the kernel could not make or find at that moment",
    "names of processes, because their table was full or busy",
    "children of chosen processes, because the table of those chosen was full or busy",
    "I/Os that were to be printed, because the buffer was full",
];
const LOST_FILES_FULL: usize = 0;
const LOST_NAMES_FULL: usize = 1;
/// Requests that ended with their process, or began before the programs were loaded: other figures remain right.
const LOST_URING_UNSEEN: usize = 6;
const LOST_BIOS: usize = 7;
const LOST_COUNTERS: usize = 8;
const LOST_PROCESSES: usize = 9;
const LOST_TOLD: usize = 11;

/// Errors in the figures of an interval because events were lost in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// In words, after the limits of this kernel.
    pub notes: Vec<String>,
    /// Files may be missing.
    pub files: bool,
    /// Requests of processes may be missing, of unknown files.
    pub requests: bool,
    /// Block I/O may be missing.
    pub block: bool,
}

/// Counts that a reader of rows missed since it last read them.
#[derive(Clone, Debug, Default)]
pub(super) struct Missing {
    /// Requests of processes, of unknown files.
    pub requests: bool,
    /// Block I/O.
    pub block: bool,
    /// Devices of which the programs missed I/Os.
    pub devices: HashSet<FileId>,
}

impl Missing {
    /// Adds the losses of one count.
    pub fn add(&mut self, losses: &Losses, devices: &HashSet<FileId>) {
        self.requests |= losses.requests;
        self.block |= losses.block;
        self.devices.extend(devices);
    }
}

impl Programs {
    /// Records the number of events lost to a cause; returns whether it grew since the last snapshot.
    fn note_loss(&self, losses: &mut Losses, lost: u64, words: &str) -> bool {
        let before = self.lost_before.borrow_mut().insert(words.to_owned(), lost).unwrap_or(0);
        let new = lost.saturating_sub(before);
        if lost > 0 {
            losses.notes.push(format!("lost {lost} {words}, {new} of them since the last sample"));
        }
        new > 0
    }

    /// Number of I/Os that a trace lost because its buffer was full.
    pub fn lost_events(&self) -> Result<u64, SourceError> {
        let table: PerCpuArray<&MapData, u64> = self.table("lost")?;
        Ok(table.get(&(LOST_TOLD as u32), 0).map_err(table_error)?.iter().sum())
    }

    /// The events lost since the programs were loaded, and the figures that are wrong since the last snapshot.
    pub fn losses(&self) -> Result<Losses, SourceError> {
        let table: PerCpuArray<&MapData, u64> = self.table("lost")?;
        let mut losses = Losses { notes: self.missing.clone(), ..Losses::default() };
        losses.notes.dedup();
        for (cause, words) in LOST.iter().enumerate() {
            let mut lost: u64 = table.get(&(cause as u32), 0).map_err(table_error)?.iter().sum();
            if cause == LOST_URING_UNSEEN {
                lost += self.left_behind;
            }
            // `lost_events` reports these.
            if cause == LOST_TOLD {
                continue;
            }
            // A file that found the table full was not counted; its counters, if it gets any later, miss the start.
            losses.files |= cause == LOST_FILES_FULL && lost > 0;
            if self.note_loss(&mut losses, lost, words) {
                match cause {
                    LOST_FILES_FULL | LOST_NAMES_FULL | LOST_PROCESSES | LOST_URING_UNSEEN => {}
                    LOST_BIOS => losses.block = true,
                    LOST_COUNTERS => (losses.requests, losses.block) = (true, true),
                    _ => losses.requests = true,
                }
            }
        }
        let nested: PerCpuArray<&MapData, Nested> = self.table("nested")?;
        let in_others: u64 = nested.get(&0, 0).map_err(table_error)?.iter().map(|cpu| cpu.done).sum();
        let missed =
            self.ebpf.program(BLOCK).and_then(recursion_misses).unwrap_or(0).saturating_sub(in_others);
        let words = "completions of block I/O that came one within the other";
        losses.block |= self.note_loss(&mut losses, missed, words);
        let of_tasks = |name: &str| OF_TASKS.contains(&name) || calls::is_at_function(name);
        for (name, program) in self.ebpf.programs().filter(|(name, _)| of_tasks(name)) {
            let missed = recursion_misses(program).unwrap_or(0);
            let words = format!("events of {name} that came one within the other");
            losses.requests |= self.note_loss(&mut losses, missed, &words);
        }
        Ok(losses)
    }
}
