//! What any Linux process asks of storage: per file and per process, counted in the kernel by BPF programs
//! (`bpf/`), to completion, with the bytes that were returned.
//!
//! ```text
//! bpf/process.bpf.o   programs on tracepoints  ─ count into ─>  maps, per CPU     (bpf/trace.bpf.o: trace/, I/O by I/O)
//!   program.rs   loads them for a Selection                       │
//!   casts.rs     the kernel's function for cheap loads               │
//!   tables.rs    the maps' layout                                 │ read once a snapshot
//!   places.rs    asynchronous I/Os under way                     <────┤
//!   drain.rs     what leaves the maps, which are bounded          │
//!   kept.rs      counters that left them                     <────┤
//!   unseen.rs    what devices did and no program saw         <────┤
//!   samples.rs   counters -> samples, one layer an instance  <────┘
//!     names.rs     (device, inode) -> full name      classify.rs  name -> what the file is for
//!     cgroup.rs    a control group's number
//!     target.rs    a file's or process's number
//! ```
//!
//! Layers are samples of their own, never added up: `pid 812 (postgres)` is what the process asked for,
//! `… page-cache misses` the part of its reads that had to wait for storage, `… page faults` the reads of mapped
//! files, and `block layer` what devices were asked for a file, by whomever. `docs/source-process.md` says what
//! each counts and cannot.
//!
//! Main path: [`Process::open`], then [`Source::snapshot`] now and then; dropping it takes the programs out of
//! the kernel.
//!
//! Loaded with aya rather than libbpf-rs: it is Rust alone, so that no C compiler, libelf or zlib is needed to build
//! Headroom and the binary stays static; all that is asked of a loader here (CO-RE relocation of C objects, tp_btf,
//! maps) it does. What it lacks, BTF of kernel modules, matters to fentry on a module's functions only; tracepoints
//! on the kernel's own are what is used, because they are stable, cheap, and allowed where kprobes are not.

mod argument;
mod casts;
mod cgroup;
mod classify;
mod drain;
mod error;
mod kept;
mod losses;
mod names;
mod object;
mod places;
mod program;
mod refused;
mod restarts;
mod samples;
mod selection;
mod tables;
mod target;
pub mod trace;
mod unseen;

pub use argument::KIND;
pub use error::OpenError;
pub use samples::Layer;
pub use selection::Selection;

use crate::error::SourceError;
use crate::file_names::FileNames;
use crate::source::Source;
use crate::{diskstats, time};
use filestats::Snapshot;
use host::Mounts;
use kept::Kept;
use names::Names;
use program::{Counted, Programs};
use tables::{Counts, FileId, Key, kind};
use target::running;
use unseen::{Missed, Unseen};

/// Processes' I/O, counted since it was opened.
#[derive(Debug)]
pub struct Process {
    name: String,
    source: String,
    programs: Programs,
    names: Names,
    kept: Kept,
    unseen: Unseen,
    /// Notes of the last snapshot on I/Os that the block layer lost.
    device_notes: Vec<String>,
    /// Not everybody and everything.
    chosen: bool,
    /// Boot and load: the stretch in which the counters grow.
    run: String,
    seen: Vec<u32>,
    objects: FileNames,
}

impl Process {
    /// Begins to count.
    ///
    /// # Errors
    /// [`SourceError::Process`]: not permitted, a kernel that cannot, or what was chosen is not there.
    pub fn open(selection: &Selection) -> Result<Process, SourceError> {
        let programs = Programs::load(selection, None)?;
        let run = format!("{}:{}:{}", diskstats::boot_id()?, std::process::id(), time::monotonic_ns());
        let unseen = Unseen::since(&programs.devices()?)?;
        Ok(Process {
            name: selection.to_string(),
            source: selection.source(),
            programs,
            names: Names::default(),
            kept: Kept::default(),
            unseen,
            device_notes: Vec::new(),
            chosen: selection.is_narrowed(),
            run,
            seen: Vec::new(),
            objects: FileNames::default(),
        })
    }

    /// Says what servers that tell it call what is in their files.
    #[must_use]
    pub fn using_names(mut self, names: &FileNames) -> Process {
        self.objects = names.clone();
        self
    }
}

impl Process {
    /// Notes of its last snapshot that concern requests of processes: not those on I/Os that only the block layer's
    /// figures lack.
    pub fn request_notes<'a>(&self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a String> {
        snapshot.notes.iter().filter(|note| !self.device_notes.contains(note))
    }
}

impl Source for Process {
    fn name(&self) -> &str {
        &self.name
    }

    fn processes(&self) -> &[u32] {
        &self.seen
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let clock_ns = time::monotonic_ns();
        // Before the tables: what devices had counted, the programs had been called for.
        let devices = diskstats::lines()?;
        let missed = self.unseen.look(&devices, &self.programs.devices()?)?;
        let counted = self.programs.counted()?;
        let in_kernel = counted.iter().map(|(key, counts)| (*key, counts.fingerprint())).collect();
        let mut counted = self.kept.with(counted);
        if !self.chosen {
            missed.iter().for_each(|device| add_missed(&mut counted, device));
        }
        self.names.add(self.programs.take_names()?);
        self.programs.sweep()?;
        self.programs.guard()?;
        let running = running()?;
        let grew =
            missed.iter().filter(|device| device.grew).map(|device| FileId::of_nobody_known(device.dev));
        let samples = samples::Samples {
            programs: &self.programs,
            names: &mut self.names,
            kept: &mut self.kept,
            mounts: &Mounts::read().unwrap_or_default(),
            run: &self.run,
            source: &self.source,
            running: &running,
            missed: &grew.collect(),
        };
        let (mut snapshot, seen) = samples.snapshot(&counted, clock_ns, time::unix_ns())?;
        self.objects.fill_in(&mut snapshot.samples);
        self.device_notes = missed.iter().map(|device| device.note(!self.chosen)).collect();
        snapshot.notes.extend_from_slice(&self.device_notes);
        self.kept.tidy(&mut self.programs, &in_kernel, &counted, &running)?;
        let files = counted.keys().map(|key| key.file).collect();
        let processes = counted.keys().map(|key| (key.tgid, key.started)).collect();
        let forgotten = self.names.keep_only(&files, &processes);
        if self.chosen {
            self.programs.remove_used(&forgotten)?;
        }
        if !seen.is_empty() {
            self.seen = seen;
        }
        Ok(snapshot)
    }
}

/// What no program saw of a device: not told for what.
fn add_missed(counted: &mut Counted, device: &Missed) {
    let kinds = [kind::BLOCK_READ, kind::BLOCK_WRITE, kind::BLOCK_SYNC];
    for (kind, amount) in kinds.into_iter().zip(device.unseen) {
        if amount != unseen::Amount::default() {
            let file = FileId::of_nobody_known(device.dev);
            let counts = counted
                .entry(Key { file, tgid: 0, started: 0, kind, zero: 0 })
                .or_insert_with(|| Box::new(Counts::ZERO));
            counts.count = counts.count.wrapping_add(amount.count);
            counts.bytes = counts.bytes.wrapping_add(amount.bytes);
        }
    }
}
