//! Storage I/O of any Linux process, by file and process, counted in the kernel by BPF programs (`bpf/`) when it
//! completes, with the bytes that were transferred.
//!
//! ```text
//! bpf/process.bpf.o   programs on tracepoints  ─ count into ─>  maps, per CPU     (bpf/trace.bpf.o: trace/, I/O by I/O)
//!   program.rs   loads them for a Selection                       │
//!   casts.rs     the kernel function for cheap loads                 │
//!   tables.rs    the maps' layout                                 │ read once per snapshot
//!   places.rs    asynchronous I/Os in flight                 <────┤
//!   drain.rs     takes entries out of the bounded maps            │
//!   kept.rs      counters that left the maps                 <────┤
//!   unseen.rs    device I/Os that no program saw             <────┤
//!   samples.rs   counters -> samples, one layer an instance  <────┘
//!     names.rs     (device, inode) -> full name      classify.rs  name -> purpose of the file
//!     cgroup.rs    the id of a control group
//!     target.rs    the ids of files and processes
//! bpf/users.bpf.o ─> users.rs   no source: the I/Os that each process queues on each disk
//! ```
//!
//! Layers are separate samples, which are never added up: `pid 812 (postgres)` has the requests of the process,
//! `… page-cache misses` the part of its reads that had to wait for storage, `… page faults` the reads of mapped
//! files, and `block layer` the requests to devices for a file, by any process. `docs/source-process.md` says what
//! each counts and what it cannot count.
//!
//! Main path: [`Process::open`], then [`Source::snapshot`] periodically; dropping it unloads the programs.
//!
//! The loader is aya rather than libbpf-rs: it is pure Rust, so that building Headroom needs no C compiler, libelf or
//! zlib, and the binary stays static. It supports what is needed here: CO-RE relocation of C objects, tp_btf and maps.
//! It lacks BTF of kernel modules, which only fentry on a module's functions needs. The programs use tracepoints of
//! the kernel itself, because they are stable, cheap, and allowed where kprobes are not.

mod argument;
mod calls;
mod casts;
mod cgroup;
mod classify;
mod directory;
mod discover;
mod drain;
mod error;
mod failures;
mod hooks;
mod kept;
mod kernel_types;
mod links;
mod losses;
mod names;
mod object;
mod permission;
mod places;
mod program;
mod refused;
mod restarts;
mod samples;
mod selection;
mod symbols;
mod tables;
mod target;
pub mod trace;
mod unseen;
mod users;

pub use argument::KIND;
pub use error::OpenError;
pub use permission::check_permission;
pub use samples::Layer;
pub use selection::{Coverage, Selection};
pub use users::{DeviceUsers, Queued, UserOfDevice};

use crate::diskstats;
use crate::error::SourceError;
use crate::file_names::FileNames;
use crate::source::{IoFailures, Source};
use failures::Failures;
use filestats::Snapshot;
use host::Mounts;
use kept::Kept;
use names::Names;
use program::{Counted, Programs};
use std::path::{Path, PathBuf};
use tables::{Counts, FileId, Key, kind};
use target::running;
use unseen::{Missed, Unseen};

/// The I/O of processes, counted since this source was opened.
pub struct Process {
    name: String,
    source: String,
    programs: Programs,
    names: Names,
    kept: Kept,
    unseen: Unseen,
    /// Notes of the last snapshot on I/Os that the block layer's figures lack.
    device_notes: Vec<String>,
    failures: Failures,
    /// The selection is narrower than all processes and files.
    narrowed: bool,
    /// Identifies boot and load. Counters only grow within a run.
    run: String,
    processes: Vec<u32>,
    /// Where the chosen processes have their files.
    directory: Option<PathBuf>,
    object_names: FileNames,
}

impl Process {
    /// Starts to count.
    ///
    /// # Errors
    /// [`SourceError::Process`]: not permitted, not supported by the kernel, or a chosen process or file does not exist.
    pub fn open(selection: &Selection) -> Result<Process, SourceError> {
        let programs = Programs::load(selection, None)?;
        let run = format!("{}:{}:{}", diskstats::boot_id()?, std::process::id(), host::monotonic_ns());
        let unseen = Unseen::since(&programs.devices()?)?;
        Ok(Process {
            name: selection.to_string(),
            source: selection.source(),
            programs,
            names: Names::default(),
            kept: Kept::default(),
            unseen,
            device_notes: Vec::new(),
            failures: Failures::default(),
            narrowed: selection.is_narrowed(),
            run,
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
        &self.failures.all
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let clock_ns = host::monotonic_ns();
        // Before the tables: the programs were called for an I/O before its device counted it.
        let devices = diskstats::lines()?;
        let missed = self.unseen.update(&devices, &self.programs.devices()?)?;
        let mut counted = self.programs.counted()?;
        self.names.add(self.programs.take_names()?);
        let mounts = Mounts::read().unwrap_or_default();
        let failed = self.failures.take(&mut counted, &mut self.programs, &mut self.names, &mounts)?;
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
        let samples = samples::Samples {
            programs: &self.programs,
            names: &mut self.names,
            kept: &mut self.kept,
            mounts: &mounts,
            run: &self.run,
            source: &self.source,
            running: &running,
            missed: &grew.collect(),
        };
        let (mut snapshot, processes) = samples.snapshot(&counted, clock_ns, host::unix_ns())?;
        self.object_names.fill_in(&mut snapshot.samples);
        self.device_notes = missed.iter().map(|device| device.note(!self.narrowed)).collect();
        snapshot.notes.extend_from_slice(&self.device_notes);
        snapshot.notes.extend(failed);
        self.kept.tidy(&mut self.programs, &in_kernel, &counted, &running)?;
        let files = counted.keys().map(|key| key.file).collect();
        let counted_processes = counted.keys().map(|key| (key.tgid, key.started)).collect();
        let forgotten = self.names.keep_only(&files, &counted_processes);
        if self.narrowed {
            self.programs.remove_used(&forgotten)?;
        }
        if !processes.is_empty() {
            self.processes = processes;
        }
        Ok(snapshot)
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
