use crate::Error;
use collect::Source;
use collect::process::{Process, Selection};
use filestats::Snapshot;

/// The I/Os of an engine's processes, counted in the kernel, or notes why they are not.
pub(super) struct Processes {
    pub source: Option<Process>,
    pub notes: Vec<String>,
}

impl Processes {
    /// Opens them by the first process, which is unknown if the server is on another machine.
    pub(super) fn open(engine: &str, pid: Option<u32>) -> Processes {
        let none = |why: String| Processes {
            source: None,
            notes: vec![format!("the writes and syncs of {engine} are not counted: {why}")],
        };
        let Some(pid) = pid else { return none("its processes are not found on this machine".into()) };
        match Process::open(&Selection { pids: vec![pid], ..Selection::default() }) {
            Ok(source) => Processes { source: Some(source), notes: Vec::new() },
            Err(error) => {
                let remedy = error.remedy().map_or(String::new(), |remedy| format!(" ({remedy})"));
                none(format!("{error}{remedy}"))
            }
        }
    }

    pub(super) fn counters(&mut self) -> Result<Option<Snapshot>, Error> {
        let Some(source) = &mut self.source else { return Ok(None) };
        let snapshot = source.snapshot()?;
        for note in source.request_notes(&snapshot) {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        Ok(Some(snapshot))
    }
}
