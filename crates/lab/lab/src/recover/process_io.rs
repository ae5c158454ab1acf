//! I/Os of this program and of the processes that it starts, counted in the kernel.

use crate::Error;
use collect::Source;
use collect::process::{Process, Selection};
use experiments::RecoveryIo;
use filestats::{Cache, Reason};
use std::path::Path;

/// Counts from its creation on.
pub(super) struct ProcessIo {
    source: Option<Process>,
    notes: Vec<String>,
}

impl ProcessIo {
    /// If it is not permitted to count, a note gives the reason, the same for each engine.
    pub(super) fn open() -> ProcessIo {
        match Process::open(&Selection { pids: vec![std::process::id()], ..Selection::default() }) {
            Ok(process) => ProcessIo { source: Some(process), notes: Vec::new() },
            Err(error) => {
                let remedy = error.remedy().map_or(String::new(), |remedy| format!(" ({remedy})"));
                let note = format!("where a dash stands for the I/Os, they are not counted: {error}{remedy}");
                ProcessIo { source: None, notes: vec![note] }
            }
        }
    }

    /// I/Os of the files below a directory, what counted them, and notes for reading them.
    pub(super) fn below(&mut self, dir: &Path) -> Result<(RecoveryIo, String, Vec<String>), Error> {
        let Some(source) = &mut self.source else {
            return Ok((RecoveryIo::unknown(Reason::NotCounted), "nobody".into(), self.notes.clone()));
        };
        let snapshot = source.snapshot()?;
        let ours = snapshot.samples.iter().filter(|sample| {
            sample.meaning.cache == Cache::Included && Path::new(&sample.file.path).starts_with(dir)
        });
        let notes = source.request_notes(&snapshot).cloned().collect();
        Ok((
            RecoveryIo::from_counters(ours.map(|sample| sample.counters)),
            "the process source".into(),
            notes,
        ))
    }
}
