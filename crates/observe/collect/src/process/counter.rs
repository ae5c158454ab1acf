//! The loaded programs with all that is known of what they counted: the files' names, the counters that left the kernel, what
//! no program saw, what failed.

use super::failures::Failures;
use super::kept::Kept;
use super::losses::Losses;
use super::names::Names;
use super::program::{Counted, Programs};
use super::row_builder::RowBuilder;
use super::rows::Rows;
use super::selection::Selection;
use super::tables::{FileId, Key, kind};
use super::target::running;
use super::unseen::{self, Missed, Unseen};
use crate::diskstats;
use crate::error::SourceError;
use host::Mounts;
use rustc_hash::FxHashMap;
use std::collections::HashSet;

/// Counts the I/O of one selection.
pub(super) struct Counter {
    pub programs: Programs,
    names: Names,
    pub kept: Kept,
    unseen: Unseen,
    pub failures: Failures,
    /// The selection is narrower than all processes and files.
    narrowed: bool,
}

/// The counters at one time.
pub(super) struct Count {
    pub clock_ns: u64,
    pub taken_unix_ns: u64,
    pub rows: Rows,
    /// Keys in the kernel's table.
    pub in_kernel: usize,
    /// [`Counter::recount`] found keys that had no row.
    pub new_keys: bool,
    pub losses: Losses,
    /// Devices of which the programs missed I/Os since the count before.
    pub missed: HashSet<FileId>,
    /// Notes on I/Os that the block layer's figures lack.
    pub device_notes: Vec<String>,
}

impl Counter {
    /// Starts to count.
    ///
    /// # Errors
    /// [`SourceError::Process`]: not permitted, not supported by the kernel, or a chosen process or file does not exist.
    pub fn open(selection: &Selection) -> Result<Counter, SourceError> {
        let programs = Programs::load(selection, None)?;
        let unseen = Unseen::since(&programs.devices(&diskstats::lines()?)?)?;
        Ok(Counter {
            programs,
            names: Names::default(),
            kept: Kept::default(),
            unseen,
            failures: Failures::default(),
            narrowed: selection.is_narrowed(),
        })
    }

    /// Reads the kernel's counters. `choose` gets them first, and removes those that no source asks for any more.
    pub fn count(
        &mut self,
        choose: impl FnOnce(&mut Programs, &mut Kept, &mut Counted) -> Result<(), SourceError>,
    ) -> Result<Count, SourceError> {
        let clock_ns = host::monotonic_ns();
        // Before the tables: the programs were called for an I/O before its device counted it.
        let devices = diskstats::lines()?;
        let missed = self.unseen.update(&devices, &self.programs.devices(&devices)?)?;
        let mut counted = self.programs.counted()?;
        choose(&mut self.programs, &mut self.kept, &mut counted)?;
        self.names.add(self.programs.take_names()?);
        let mounts = Mounts::read().unwrap_or_default();
        self.failures.take(&mut counted, &mut self.programs, &mut self.names, &mounts)?;
        let in_kernel: FxHashMap<Key, (u64, u64)> =
            counted.iter().map(|(key, counts)| (*key, counts.fingerprint())).collect();
        let mut counted = self.kept.with(counted);
        if !self.narrowed {
            missed.iter().for_each(|device| add_missed(&mut counted, device));
        }
        self.programs.sweep()?;
        self.programs.guard()?;
        self.programs.follow_modules()?;
        let running = running()?;
        let grew = missed.iter().filter(|device| device.grew).map(|device| FileId::unattributed(device.dev));
        let missed_files = grew.collect();
        let losses = self.programs.losses()?;
        let builder = RowBuilder {
            programs: &self.programs,
            names: &mut self.names,
            kept: &mut self.kept,
            mounts: &mounts,
            running: &running,
        };
        let rows = builder.rows(&counted);
        self.kept.tidy(&mut self.programs, &in_kernel, &counted, &running)?;
        let files = counted.keys().map(|key| key.file).collect();
        let counted_processes = counted.keys().map(|key| (key.tgid, key.started)).collect();
        let forgotten = self.names.keep_only(&files, &counted_processes);
        if self.narrowed {
            self.programs.remove_used(&forgotten)?;
        }
        Ok(Count {
            clock_ns,
            taken_unix_ns: host::unix_ns(),
            rows,
            in_kernel: in_kernel.len(),
            new_keys: false,
            losses,
            missed: missed_files,
            device_notes: missed.iter().map(|device| device.note(!self.narrowed)).collect(),
        })
    }

    /// Whether the kernel's counters can be read into the rows of an earlier count: its names still hold, and few keys can have
    /// come since.
    pub fn may_recount(&self, count: &Count) -> bool {
        !count.rows.changes && count.in_kernel < self.programs.counters_max / 2
    }

    /// Reads the kernel's counters into the rows of an earlier count of chosen processes. Cheaper than
    /// [`Counter::count`]: files and processes keep the names that they had, and nothing leaves the kernel's tables. Keys that
    /// are new get rows; `choose` gets them before.
    pub fn recount(
        &mut self,
        count: &mut Count,
        choose: impl FnOnce(&mut Programs, &Counted) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        count.clock_ns = host::monotonic_ns();
        // Before the tables: the programs were called for an I/O before its device counted it.
        let devices = diskstats::lines()?;
        let missed = self.unseen.update(&devices, &self.programs.devices(&devices)?)?;
        let rows = &mut count.rows;
        let mut new = Counted::default();
        rows.begin();
        self.programs.each_counted(|key, counts| {
            if !rows.add(key, counts) {
                new.insert(*key, counts.into());
            }
        })?;
        let (left, bases) = self.kept.counts_and_bases();
        for (key, counts) in left {
            rows.add_compact(key, counts);
        }
        for (key, base) in bases {
            rows.subtract(key, base);
        }
        count.in_kernel += new.len();
        count.new_keys = !new.is_empty();
        if new.is_empty() {
            self.failures.none_new();
        } else {
            choose(&mut self.programs, &new)?;
            self.add_new(&mut count.rows, new)?;
        }
        count.losses = self.programs.losses()?;
        let grew = missed.iter().filter(|device| device.grew).map(|device| FileId::unattributed(device.dev));
        count.missed = grew.collect();
        count.device_notes = missed.iter().map(|device| device.note(!self.narrowed)).collect();
        count.taken_unix_ns = host::unix_ns();
        Ok(())
    }

    fn add_new(&mut self, rows: &mut Rows, mut new: Counted) -> Result<(), SourceError> {
        self.names.add(self.programs.take_names()?);
        let mounts = Mounts::read().unwrap_or_default();
        self.failures.take(&mut new, &mut self.programs, &mut self.names, &mounts)?;
        let running = running()?;
        let mut builder = RowBuilder {
            programs: &self.programs,
            names: &mut self.names,
            kept: &mut self.kept,
            mounts: &mounts,
            running: &running,
        };
        builder.extend(rows, &new);
        Ok(())
    }
}

/// Adds a device's I/Os that no program saw, as unattributed.
fn add_missed(counted: &mut Counted, device: &Missed) {
    let kinds = [kind::BLOCK_READ, kind::BLOCK_WRITE, kind::BLOCK_SYNC];
    for (kind, amount) in kinds.into_iter().zip(device.unseen) {
        if amount != unseen::Amount::default() {
            let file = FileId::unattributed(device.dev);
            let counts = counted.entry(Key { file, tgid: 0, started: 0, kind, zero: 0 }).or_default();
            counts.count = counts.count.wrapping_add(amount.count);
            counts.bytes = counts.bytes.wrapping_add(amount.bytes);
        }
    }
}
