//! The I/O of this program and of the processes that it starts, counted in the kernel.

use crate::Error;
use collect::Source;
use collect::process::{Process, Selection};
use experiments::RecoveryIo;
use filestats::{Cache, Reason};
use std::path::Path;

/// Counts from when it is made.
pub(super) struct OwnIo {
    source: Option<Process>,
    notes: Vec<String>,
}

impl OwnIo {
    /// Where it may not count, a note says why, the same for each engine.
    pub(super) fn counted() -> OwnIo {
        match Process::open(&Selection { pids: vec![std::process::id()], ..Selection::default() }) {
            Ok(process) => OwnIo { source: Some(process), notes: Vec::new() },
            Err(error) => {
                let remedy = error.remedy().map_or(String::new(), |remedy| format!(" ({remedy})"));
                let note = format!("where a dash stands for the I/Os, they are not counted: {error}{remedy}");
                OwnIo { source: None, notes: vec![note] }
            }
        }
    }

    /// What the files below a directory were asked for, who counted it, and what must be known of it.
    pub(super) fn below(&mut self, dir: &Path) -> Result<(RecoveryIo, String, Vec<String>), Error> {
        let Some(source) = &mut self.source else {
            return Ok((RecoveryIo::unknown(Reason::NotCounted), "nobody".into(), self.notes.clone()));
        };
        let snapshot = source.snapshot()?;
        let ours = snapshot.samples.iter().filter(|sample| {
            sample.meaning.cache == Cache::Included && Path::new(&sample.file.path).starts_with(dir)
        });
        let notes = crate::notes_of_requests(&snapshot).cloned().collect();
        Ok((RecoveryIo::of(ours.map(|sample| sample.counters)), "the process source".into(), notes))
    }
}
