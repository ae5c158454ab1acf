use crate::{Error, add_notes, open_process};
use collect::Source;
use collect::process::Process;
use filestats::Snapshot;

/// The I/Os of an engine's processes, counted in the kernel, or notes why they are not.
pub(super) struct Processes {
    source: Option<Process>,
    pub notes: Vec<String>,
}

impl Processes {
    /// Opens them by the first process, which is unknown if the server is on another machine.
    pub(super) fn open(engine: &str, pid: Option<u32>) -> Processes {
        let unknown = || "its processes are not found on this machine".to_owned();
        match pid.ok_or_else(unknown).and_then(open_process) {
            Ok(source) => Processes { source: Some(source), notes: Vec::new() },
            Err(why) => {
                let note = format!("the writes and syncs of {engine} are not counted: {why}");
                Processes { source: None, notes: vec![note] }
            }
        }
    }

    pub(super) fn counters(&mut self) -> Result<Option<Snapshot>, Error> {
        let Some(source) = &mut self.source else { return Ok(None) };
        let snapshot = source.snapshot()?;
        add_notes(&mut self.notes, source.request_notes(&snapshot).cloned());
        Ok(Some(snapshot))
    }
}
