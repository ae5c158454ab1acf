//! Storage I/O of any Linux process, by file and process, counted in the kernel by BPF programs (`bpf/`) when it
//! completes, with the bytes that were transferred.
//!
//! ```text
//! bpf/process.bpf.o   programs on tracepoints  ─ count into ─>  maps, per CPU     (bpf/trace.bpf.o: trace/, I/O by I/O)
//!   program.rs   loads them for a Selection                       │
//!   casts.rs     the kernel function for cheap loads                 │
//!   tables.rs    the maps' layout                                 │ read once per snapshot
//!   places.rs    asynchronous I/Os in flight                 <────┤
//!   batch.rs     reads the counters, many at a time              <────┤
//!   drain.rs     takes entries out of the bounded maps            │
//!   kept.rs      counters that left the maps                 <────┤
//!   unseen.rs    device I/Os that no program saw             <────┤
//!   row_builder.rs  counters -> rows.rs -> samples, by layer.rs <────┘
//!   counter.rs   all of these for one selection
//!   shared.rs    one selection for all sources of chosen processes     roots.rs  which process is whose
//!   busiest.rs   the busiest files by name, and sums of the others, for programs that watch all the time
//!     names.rs     (device, inode) -> full name      classify.rs  name -> purpose of the file
//!     cgroup.rs    the id of a control group
//!     target.rs    the ids of files and processes
//! bpf/users.bpf.o ─> users.rs   no source: the I/Os that each process queues on each disk
//! ```
//!
//! Layers are separate samples, which are never added up: `pid 812 (postgres)` has the requests of the process,
//! `… page-cache misses` the part of its reads that had to wait for storage, `… page faults` the reads of mapped
//! files, and `block layer` the requests to devices for a file, by any process. `docs/how-to/source-process.md` says what
//! each counts and what it cannot count.
//!
//! Main path: [`Process::open`], then [`Source::snapshot`] periodically; dropping it unloads the programs.
//!
//! The loader is aya rather than libbpf-rs: it is pure Rust, so that building Headroom needs no C compiler, libelf or
//! zlib, and the binary stays static. It supports what is needed here: CO-RE relocation of C objects, tp_btf and maps.
//! It lacks BTF of kernel modules, which only fentry on a module's functions needs. The programs use tracepoints of
//! the kernel itself, because they are stable, cheap, and allowed where kprobes are not.

mod argument;
mod batch;
mod busiest;
mod calls;
mod casts;
mod cgroup;
mod classify;
mod counter;
mod directory;
mod discover;
mod drain;
mod error;
mod failures;
mod hooks;
mod kept;
mod kernel_types;
mod layer;
mod links;
mod losses;
mod memory;
mod names;
mod object;
mod permission;
mod places;
mod program;
mod refused;
mod restarts;
mod roots;
mod row_builder;
mod rows;
mod selection;
mod shared;
mod symbols;
mod table_calls;
mod tables;
mod target;
pub mod trace;
mod unseen;
mod users;

pub use argument::KIND;
pub use error::OpenError;
pub use layer::Layer;
pub use permission::check_permission;
pub use selection::{Coverage, Selection};
pub use shared::share_counts;
pub use users::{DeviceUsers, Queued, UserOfDevice};

use crate::diskstats;
use crate::error::SourceError;
use crate::file_names::FileNames;
use crate::source::{IoFailures, Source};
use counter::Counter;
use filestats::{Epoch, Snapshot};
use host::privileges::{Privilege, with};
use losses::Missing;
use shared::{Part, Share, is_shared};
use std::path::{Path, PathBuf};

/// The I/O of processes, counted since this source was opened.
pub struct Process {
    name: String,
    source: String,
    counting: Counting,
    /// Notes of the last snapshot on I/Os that the block layer's figures lack.
    device_notes: Vec<String>,
    failures: Vec<IoFailures>,
    processes: Vec<u32>,
    /// Where the chosen processes have their files.
    directory: Option<PathBuf>,
    object_names: FileNames,
}

/// The programs that count for a source.
enum Counting {
    /// They count for it alone. `run` identifies boot and load: counters only grow within a run.
    Own { counter: Box<Counter>, run: String },
    /// They count for all sources of chosen processes.
    Shared(Share),
}

impl Process {
    /// Starts to count.
    ///
    /// # Errors
    /// [`SourceError::Process`]: not permitted, not supported by the kernel, or a chosen process or file does not exist.
    pub fn open(selection: &Selection) -> Result<Process, SourceError> {
        Ok(Process {
            name: selection.to_string(),
            source: selection.source(),
            counting: with(Privilege::Programs, || Counting::begin(selection))?,
            device_notes: Vec::new(),
            failures: Vec::new(),
            processes: Vec::new(),
            directory: selection.pids.first().and_then(|pid| directory::of_process(*pid)),
            object_names: FileNames::default(),
        })
    }

    /// Adds the names that database servers report for the objects in their files.
    #[must_use]
    pub fn using_names(mut self, names: &FileNames) -> Process {
        self.object_names = names.clone();
        self
    }

    /// Notes of the last snapshot on requests of processes, without those on I/Os that only the block layer's figures
    /// lack.
    pub fn request_notes<'a>(&self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a String> {
        snapshot.notes.iter().filter(|note| !self.device_notes.contains(note))
    }
}

impl Counting {
    fn begin(selection: &Selection) -> Result<Counting, SourceError> {
        if is_shared(selection) {
            return Ok(Counting::Shared(Share::open(selection)?));
        }
        let counter = Box::new(Counter::open(selection)?);
        let run = format!("{}:{}:{}", diskstats::boot_id()?, std::process::id(), host::monotonic_ns());
        Ok(Counting::Own { counter, run })
    }

    fn take(&mut self) -> Result<Part, SourceError> {
        let (counter, run) = match self {
            Counting::Shared(share) => return share.take(),
            Counting::Own { counter, run } => (counter, run),
        };
        let count = counter.count(|_, _, _| Ok(()))?;
        let mut missing = Missing::default();
        missing.add(&count.losses, &count.missed);
        let (failures, failed) = counter.failures.of_processes(|_| true);
        Ok(Part {
            clock_ns: count.clock_ns,
            taken_unix_ns: count.taken_unix_ns,
            samples: count.rows.all(run, &missing),
            complete: (!count.losses.files).then(|| Epoch::for_run(run.as_str())),
            processes: count.rows.processes,
            failures,
            notes: [count.losses.notes, count.device_notes.clone(), failed].concat(),
            device_notes: count.device_notes,
        })
    }
}

impl Source for Process {
    fn name(&self) -> &str {
        &self.name
    }

    fn processes(&self) -> &[u32] {
        &self.processes
    }

    fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    fn failures(&self) -> &[IoFailures] {
        &self.failures
    }

    fn name_busiest(&mut self, files: usize) {
        if let Counting::Shared(share) = &self.counting {
            share.name_busiest(files);
        }
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let part = with(Privilege::Programs, || self.counting.take())?;
        let mut snapshot = Snapshot {
            source: self.source.clone(),
            taken_unix_ns: part.taken_unix_ns,
            clock_ns: part.clock_ns,
            // A file or process that gets another name begins at zero under it.
            complete: part.complete,
            samples: part.samples,
            waits: Vec::new(),
            notes: part.notes,
        };
        self.object_names.fill_in(&mut snapshot.samples);
        (self.device_notes, self.failures) = (part.device_notes, part.failures);
        if !part.processes.is_empty() {
            self.processes = part.processes;
        }
        Ok(snapshot)
    }
}
