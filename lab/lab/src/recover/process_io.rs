//! I/Os of this program and of the processes that it starts, counted in the kernel.

use super::victim::Counted;
use crate::{Error, open_process};
use collect::Source;
use collect::process::Process;
use experiments::RecoveryIo;
use filestats::{Cache, Figure, Reason};
use std::path::Path;

/// Counts from its creation on.
pub(super) struct ProcessIo {
    source: Option<Process>,
    notes: Vec<String>,
}

impl ProcessIo {
    /// If it is not permitted to count, a note gives the reason, the same for each engine.
    pub(super) fn open() -> ProcessIo {
        match open_process(std::process::id()) {
            Ok(process) => ProcessIo { source: Some(process), notes: Vec::new() },
            Err(why) => {
                let note = format!("where a dash stands for the I/Os, they are not counted: {why}");
                ProcessIo { source: None, notes: vec![note] }
            }
        }
    }

    /// I/Os of the files below a directory; the pages are left to the engine.
    pub(super) fn below(&mut self, dir: &Path) -> Result<Counted, Error> {
        let unknown = Figure::unknown(Reason::NotCounted);
        let (io, counted_by, notes) = match &mut self.source {
            None => (RecoveryIo::unknown(Reason::NotCounted), "nobody", self.notes.clone()),
            Some(source) => {
                let snapshot = source.snapshot()?;
                let ours = snapshot.samples.iter().filter(|sample| {
                    sample.meaning.cache == Cache::Included && Path::new(&sample.file.path).starts_with(dir)
                });
                let io = RecoveryIo::from_counters(ours.map(|sample| sample.counters));
                (io, "the process source", source.request_notes(&snapshot).cloned().collect())
            }
        };
        Ok(Counted { pages: unknown, pages_left: unknown, io, counted_by, notes })
    }
}
