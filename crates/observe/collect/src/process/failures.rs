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

/// All since the source was opened.
#[derive(Debug, Default)]
pub(super) struct Failures {
    counts: BTreeMap<(FileId, u32), IoFailures>,
    /// As they are reported.
    pub all: Vec<IoFailures>,
}

impl Failures {
    /// Takes them out of the counters of the kernel; returns their notes.
    pub fn take(
        &mut self,
        counted: &mut Counted,
        programs: &mut Programs,
        names: &mut Names,
        mounts: &Mounts,
    ) -> Result<Vec<String>, SourceError> {
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
                let path = names.name(key.file, &[key.tgid], mounts).path;
                let drive = mount_point(mounts, &path);
                let path = path.display().to_string();
                let process =
                    command.map_or(format!("pid {}", key.tgid), |name| format!("pid {} ({name})", key.tgid));
                IoFailures { process, path, drive, count: 0 }
            });
            known.count += count;
            *new.entry(id).or_insert(0) += count;
        }
        self.all = self.counts.values().cloned().collect();
        let note = |(id, failures): (&(FileId, u32), &IoFailures)| {
            let new = new.get(id).copied().unwrap_or(0);
            format!("{failures}, {new} of them since the last snapshot")
        };
        Ok(self.counts.iter().map(note).collect())
    }
}
