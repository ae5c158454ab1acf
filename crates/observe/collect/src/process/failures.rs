//! I/Os that storage failed: system calls, io_uring and libaio requests that ended with EIO or a like error. They are no I/Os in
//! the figures, which have what moved data.

use super::names::Names;
use super::program::{Counted, Programs};
use super::tables::{FileId, Key, command_text, kind};
use crate::error::SourceError;
use crate::source::IoFailures;
use crate::volume::mount_point;
use host::Mounts;
use std::collections::BTreeMap;

/// Most files and processes with failures that are kept apart; those of further ones are not counted.
const FAILURES_MAX: usize = 256;

/// All since counting began.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// By file and process.
    counts: BTreeMap<(FileId, u32), IoFailures>,
    /// Number of those that the last call of [`Failures::take`] found.
    new: BTreeMap<(FileId, u32), u64>,
}

impl Failures {
    /// Takes them out of the counters of the kernel.
    pub fn take(
        &mut self,
        counted: &mut Counted,
        programs: &mut Programs,
        names: &mut Names,
        mounts: &Mounts,
    ) -> Result<(), SourceError> {
        let failed: Vec<Key> =
            counted.extract_if(|key, _| key.kind == kind::FAILED).map(|(key, _)| key).collect();
        let mut new = BTreeMap::new();
        for key in failed {
            // Afterwards the kernel counts this key from zero again.
            let count = programs.take(&key)?.map_or(0, |counts| counts.count);
            let id = (key.file, key.tgid);
            if self.counts.len() >= FAILURES_MAX && !self.counts.contains_key(&id) {
                continue;
            }
            let known = self.counts.entry(id).or_insert_with(|| {
                let command =
                    programs.process(key.tgid, key.started).map(|process| command_text(&process.comm));
                let path = names.name(key.file, &[key.tgid], mounts).path.clone();
                let drive = mount_point(mounts, &path);
                let path = path.display().to_string();
                let process =
                    command.map_or(format!("pid {}", key.tgid), |name| format!("pid {} ({name})", key.tgid));
                IoFailures { process, path, drive, count: 0 }
            });
            known.count += count;
            *new.entry(id).or_insert(0) += count;
        }
        self.new = new;
        Ok(())
    }

    /// The last count had no new ones.
    pub fn none_new(&mut self) {
        self.new.clear();
    }

    /// The numbers of the processes that have some.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.counts.keys().map(|(_, tgid)| *tgid)
    }

    /// Those of the processes that are wanted, and a note on each.
    pub fn of_processes(&self, wanted: impl Fn(u32) -> bool) -> (Vec<IoFailures>, Vec<String>) {
        let of_them = self.counts.iter().filter(|((_, tgid), _)| wanted(*tgid));
        let with_note = of_them.map(|(id, failures)| {
            let new = self.new.get(id).copied().unwrap_or(0);
            (failures.clone(), format!("{failures}, {new} of them since the last snapshot"))
        });
        with_note.unzip()
    }
}
