//! The recorded traces that a plan replays, read before any file is created or written.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use terminal::Failure;
use workload::{Placed, Plan, Trace, format_bytes};

/// The largest trace that is read, as it is kept in memory.
const TRACE_BYTES_MAX: u64 = 4 << 30;

/// The recorded traces of a plan, by their files.
#[derive(Default)]
pub struct Traces(HashMap<PathBuf, Trace>);

impl Traces {
    /// Reads the traces that the plan's workloads name.
    pub fn read(plan: &Plan) -> Result<Traces, Failure> {
        let workloads = plan.phases.iter().flat_map(|phase| &phase.workloads);
        let files: BTreeSet<&PathBuf> = workloads.filter_map(|placed| placed.replay.as_ref()).collect();
        let read = files.into_iter().map(|file| Ok((file.clone(), read_file(file)?)));
        read.collect::<Result<_, _>>().map(Traces)
    }

    /// The trace that a workload replays; `None` where it replays none.
    pub fn replayed_by(&self, placed: &Placed) -> Option<&Trace> {
        placed.replay.as_deref().map(|file| &self.0[file])
    }
}

fn read_file(file: &Path) -> Result<Trace, Failure> {
    let refused = |why: &dyn std::fmt::Display, remedy: &str| {
        Failure::new(format_args!("cannot replay {}: {why}", file.display())).with_remedy(remedy)
    };
    let mut bytes = Vec::new();
    let read =
        host::open_regular_file(file).and_then(|file| file.take(TRACE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| refused(&error, "name a trace that exists and may be read"))?;
    if bytes.len() as u64 > TRACE_BYTES_MAX {
        let what = format_args!("it is larger than {}", format_bytes(TRACE_BYTES_MAX));
        return Err(refused(&what, "replay a part of it"));
    }
    let parsed = import::decode(&bytes).and_then(|(text, _)| import::trace(&text));
    parsed.map_err(|error| {
        let remedy = error
            .remedy
            .as_deref()
            .unwrap_or("give blkparse's text, or a trace that headroom trace --out wrote");
        refused(&error, remedy)
    })
}
