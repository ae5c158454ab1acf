//! The loaded programs with all that is known of what they counted: the files' names, the counters that left the kernel, what
//! no program saw, what failed.

use super::failures::Failures;
use super::kept::Kept;
use super::losses::Losses;
use super::names::Names;
use super::program::{Counted, Programs};
use super::samples::{Rows, Samples};
use super::selection::Selection;
use super::tables::{Counts, FileId, Key, kind};
use super::target::running;
use super::unseen::{self, Missed, Unseen};
use crate::diskstats;
use crate::error::SourceError;
use host::Mounts;
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

/// What was counted at one time.
pub(super) struct Count {
    pub clock_ns: u64,
    pub taken_unix_ns: u64,
    pub rows: Rows,
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
        let unseen = Unseen::since(&programs.devices()?)?;
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
        let missed = self.unseen.update(&devices, &self.programs.devices()?)?;
        let mut counted = self.programs.counted()?;
        choose(&mut self.programs, &mut self.kept, &mut counted)?;
        self.names.add(self.programs.take_names()?);
        let mounts = Mounts::read().unwrap_or_default();
        self.failures.take(&mut counted, &mut self.programs, &mut self.names, &mounts)?;
        let in_kernel = counted.iter().map(|(key, counts)| (*key, counts.fingerprint())).collect();
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
        let samples = Samples {
            programs: &self.programs,
            names: &mut self.names,
            kept: &mut self.kept,
            mounts: &mounts,
            running: &running,
        };
        let rows = samples.rows(&counted);
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
            losses,
            missed: missed_files,
            device_notes: missed.iter().map(|device| device.note(!self.narrowed)).collect(),
        })
    }
}

/// Adds a device's I/Os that no program saw, as unattributed.
fn add_missed(counted: &mut Counted, device: &Missed) {
    let kinds = [kind::BLOCK_READ, kind::BLOCK_WRITE, kind::BLOCK_SYNC];
    for (kind, amount) in kinds.into_iter().zip(device.unseen) {
        if amount != unseen::Amount::default() {
            let file = FileId::unattributed(device.dev);
            let counts = counted
                .entry(Key { file, tgid: 0, started: 0, kind, zero: 0 })
                .or_insert_with(|| Box::new(Counts::ZERO));
            counts.count = counts.count.wrapping_add(amount.count);
            counts.bytes = counts.bytes.wrapping_add(amount.bytes);
        }
    }
}
