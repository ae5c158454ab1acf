use crate::error::SourceFault;
use std::io;
use std::path::PathBuf;
use workload::format_bytes;

const MIB: u64 = 1 << 20;

/// Why processes cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kernel does not let this user load BPF programs.
    #[error("cannot watch processes: the kernel does not let this user load BPF programs: {0}")]
    NotPermitted(io::Error),
    /// The kernel has no BTF.
    #[error(
        "cannot watch processes: this kernel does not describe its types in /sys/kernel/btf/vmlinux: {0}"
    )]
    NoBtf(String),
    /// The kernel's types, or the least tables, do not fit into the memory that is left.
    #[error(
        "cannot watch processes: that needs {needed} of memory, and {available} are available",
        needed = format_bytes(needed_bytes.next_multiple_of(MIB)),
        available = format_bytes(available_bytes / MIB * MIB)
    )]
    Memory {
        /// Bytes needed.
        needed_bytes: u64,
        /// Bytes that the machine has free, or that the limit of a control group leaves.
        available_bytes: u64,
    },
    /// A program was refused.
    #[error("cannot watch processes: the kernel refused the BPF program {program}: {why}")]
    Refused {
        /// Its name in bpf/.
        program: String,
        /// The kernel's reason.
        why: String,
    },
    /// A chosen process is not running.
    #[error("cannot watch process {0}: no such process")]
    NoSuchProcess(u32),
    /// A chosen file cannot be found, or is neither a file nor a block device.
    #[error("cannot watch {path}: {why}")]
    File {
        /// As given.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The programs cannot identify members of the chosen control group.
    #[error("cannot watch the control group {path}: {why}")]
    Cgroup {
        /// As given.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The block layer does not know which process an I/O belongs to.
    #[error(
        "cannot watch the block layer for processes or a control group: it does not know whose I/O it is"
    )]
    BlockOfProcesses,
    /// Traces have no block layer: I/Os are traced where processes request them.
    #[error("cannot trace the block layer: I/Os are traced where processes ask for them")]
    BlockTrace,
    /// Another thread failed while it closed the last of the sources that share the programs.
    #[error("the programs that count for all sources of chosen processes are unloaded")]
    Unloaded,
    /// A system file that always exists cannot be read.
    #[error("cannot read {path}: {error}")]
    System {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl SourceFault for OpenError {
    fn remedy(&self) -> Option<&'static str> {
        match self {
            OpenError::NotPermitted(_) => Some(
                "run as root, or once: setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog+ep $(command -v headroom)",
            ),
            OpenError::Memory { .. } => Some(
                "a higher limit of memory for its control group (MemoryMax= of a service), or a database's own counters: \
                 postgres:, mysql:, sqlite:",
            ),
            OpenError::NoBtf(_) => Some("a kernel from 5.13 on, built with CONFIG_DEBUG_INFO_BTF=y"),
            OpenError::Refused { .. } => Some(
                "a kernel from 5.17 on, not locked down for confidentiality (cat /sys/kernel/security/lockdown)",
            ),
            OpenError::NoSuchProcess(_) => Some("pgrep -a NAME for the numbers of a program's processes"),
            OpenError::Cgroup { .. } => {
                Some("give its directory, as in /sys/fs/cgroup/system.slice/postgresql.service")
            }
            OpenError::BlockTrace => Some("leave out layer="),
            OpenError::BlockOfProcesses => Some("leave out layer=, or the processes and the group"),
            OpenError::Unloaded | OpenError::File { .. } | OpenError::System { .. } => None,
        }
    }
}
