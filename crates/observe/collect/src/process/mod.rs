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

mod casts;
mod cgroup;
mod classify;
mod drain;
mod kept;
mod losses;
mod names;
mod object;
mod places;
mod program;
mod refused;
mod samples;
mod tables;
mod target;
pub mod trace;
mod unseen;

use crate::mounts::Mounts;
use crate::{FileNames, Source, SourceError, diskstats, time};
use filestats::Snapshot;
use kept::Kept;
use names::Names;
use program::{Counted, Programs};
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use tables::{Counts, FileId, Key, kind};
use unseen::{Missed, Unseen};

/// Whose I/O to count. Nothing chosen: everybody's but that of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// These processes and the children that they have or get.
    pub pids: Vec<u32>,
    /// The members of this control group and of those below it: its directory under /sys/fs/cgroup. Together with
    /// `pids`: those and these.
    pub cgroup: Option<PathBuf>,
    /// These files and block devices only, whoever uses them.
    pub files: Vec<PathBuf>,
    /// Only what devices were asked for each file: no system call is traced, so that nothing is slower but the
    /// completion of block I/O. Whose it is cannot be told then.
    pub block_only: bool,
}

/// Processes' I/O, counted since it was opened.
#[derive(Debug)]
pub struct Process {
    name: String,
    source: String,
    programs: Programs,
    names: Names,
    kept: Kept,
    unseen: Unseen,
    /// Not everybody and everything.
    chosen: bool,
    /// Boot and load: the stretch in which the counters grow.
    run: String,
    seen: Vec<u32>,
    objects: FileNames,
}

/// Why processes cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kernel does not let this user load BPF programs.
    #[error("cannot watch processes: the kernel does not let this user load BPF programs: {0}")]
    NotPermitted(io::Error),
    /// The kernel does not tell its types.
    #[error("cannot watch processes: this kernel does not tell its types in /sys/kernel/btf/vmlinux: {0}")]
    NoBtf(String),
    /// A program was refused.
    #[error("cannot watch processes: the kernel refused the BPF program {program}: {why}")]
    Refused {
        /// Its name in bpf/.
        program: String,
        /// What the kernel said.
        why: String,
    },
    /// A chosen process does not run.
    #[error("cannot watch process {0}: there is none of that number")]
    NoSuchProcess(u32),
    /// A chosen file cannot be found, or is neither a file nor a block device.
    #[error("cannot watch {path}: {why}")]
    File {
        /// As given.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The chosen control group cannot be told from others.
    #[error("cannot watch the control group {path}: {why}")]
    Cgroup {
        /// As given.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The block layer does not know whose I/O it is.
    #[error(
        "cannot watch the block layer for processes or a control group: it does not know whose I/O it is"
    )]
    BlockOfProcesses,
    /// I/Os are traced where they are asked for.
    #[error("cannot trace the block layer: I/Os are traced where processes ask for them")]
    BlockTrace,
    /// Something of the system that is always there cannot be read.
    #[error("cannot read {path}: {error}")]
    System {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl Process {
    /// Begins to count.
    ///
    /// # Errors
    /// [`SourceError::Process`]: not permitted, a kernel that cannot, or what was chosen is not there.
    pub fn open(selection: &Selection) -> Result<Process, SourceError> {
        let programs = Programs::load(selection, None)?;
        let boot = PathBuf::from("/proc/sys/kernel/random/boot_id");
        let boot_id = std::fs::read_to_string(&boot);
        let boot_id = boot_id.map_err(|error| SourceError::System { path: boot, error })?;
        let run = format!("{}:{}:{}", boot_id.trim(), std::process::id(), time::monotonic_ns());
        let unseen = Unseen::since(&programs.devices()?)?;
        Ok(Process {
            name: selection.to_string(),
            source: selection.source(),
            programs,
            names: Names::default(),
            kept: Kept::default(),
            unseen,
            chosen: selection.is_narrowed(),
            run,
            seen: Vec::new(),
            objects: FileNames::default(),
        })
    }

    /// Says what servers that tell it call what is in their files.
    #[must_use]
    pub fn asking(mut self, names: &FileNames) -> Process {
        self.objects = names.clone();
        self
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
            mounts: &Mounts::now(),
            run: &self.run,
            source: &self.source,
            running: &running,
            missed: &grew.collect(),
        };
        let (mut snapshot, seen) = samples.snapshot(&counted, clock_ns, time::unix_ns())?;
        self.objects.name(&mut snapshot.samples);
        snapshot.notes.extend(missed.iter().map(|device| device.note(!self.chosen)));
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

/// The processes that there are.
fn running() -> Result<HashSet<u32>, SourceError> {
    let failed = |error| SourceError::System { path: "/proc".into(), error };
    let entries = std::fs::read_dir("/proc").map_err(failed)?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

impl Selection {
    /// Not everybody and every file.
    fn is_narrowed(&self) -> bool {
        !self.pids.is_empty() || self.cgroup.is_some() || !self.files.is_empty()
    }

    /// The name of its snapshots: "process", or "process:812,cgroup=/sys/fs/cgroup/x".
    fn source(&self) -> String {
        let mut parts: Vec<String> = self.pids.iter().map(u32::to_string).collect();
        parts.extend(self.cgroup.iter().map(|path| format!("cgroup={}", path.display())));
        parts.extend(self.files.iter().map(|path| format!("file={}", path.display())));
        parts.extend(self.block_only.then(|| "layer=block".to_owned()));
        match parts.is_empty() {
            true => "process".into(),
            false => format!("process:{}", parts.join(",")),
        }
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts: Vec<String> = self.pids.iter().map(|pid| format!("pid {pid}")).collect();
        parts.extend(self.cgroup.iter().map(|path| path.display().to_string()));
        parts.extend(self.files.iter().map(|path| path.display().to_string()));
        if self.block_only {
            let whose = if parts.is_empty() { "all files".to_owned() } else { parts.join(", ") };
            return write!(f, "block layer: {whose}");
        }
        match parts.is_empty() {
            true => f.write_str("all processes"),
            false => write!(f, "processes: {}", parts.join(", ")),
        }
    }
}

impl OpenError {
    /// What the person can do about it; `None` where that is not known.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            OpenError::NotPermitted(_) => Some(
                "run as root, or give the program CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE: docs/source-process.md",
            ),
            OpenError::NoBtf(_) => Some("a kernel from 5.13 on, built with CONFIG_DEBUG_INFO_BTF=y"),
            OpenError::Refused { .. } => Some(
                "a kernel from 5.17 on, not locked down for confidentiality (cat /sys/kernel/security/lockdown)",
            ),
            OpenError::NoSuchProcess(_) => Some("pgrep -a NAME for the numbers of a program's processes"),
            OpenError::Cgroup { .. } => {
                Some("give its directory, as in /sys/fs/cgroup/system.slice/postgresql.service")
            }
            OpenError::BlockTrace => Some("leave out layer=block"),
            OpenError::BlockOfProcesses => Some("leave out layer=block, or the processes and the group"),
            OpenError::File { .. } | OpenError::System { .. } => None,
        }
    }
}
