use std::path::PathBuf;

/// Processes whose I/O is counted. The default: all processes except this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// These processes and their children, existing and future.
    pub pids: Vec<u32>,
    /// The members of this control group and of those below it: its directory under /sys/fs/cgroup. With `pids`: the
    /// union of both.
    pub cgroup: Option<PathBuf>,
    /// These files and block devices only, used by any process.
    pub files: Vec<PathBuf>,
    /// The counted part of their I/O.
    pub coverage: Coverage,
}

/// The counted part of the I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coverage {
    /// Requests of processes, and the block layer.
    #[default]
    All,
    /// I/O that reached storage: the block layer, and the system calls that sync, where the kernel permits programs at
    /// their functions. Requests that the page cache serves cost nothing then.
    Storage,
    /// Only requests to block devices, by file. No system call is traced, so that only the completion of block I/O gets
    /// slower. The process of an I/O is unknown then.
    Block,
}

impl Coverage {
    /// As in `layer=block`.
    fn layer(self) -> Option<&'static str> {
        match self {
            Coverage::All => None,
            Coverage::Storage => Some("storage"),
            Coverage::Block => Some("block"),
        }
    }
}

impl Selection {
    /// Not all processes and all files.
    pub(super) fn is_narrowed(&self) -> bool {
        !self.pids.is_empty() || self.cgroup.is_some() || !self.files.is_empty()
    }

    /// The selection as `--source process:` takes it: "812,cgroup=/sys/fs/cgroup/x".
    pub(super) fn argument(&self) -> String {
        let mut parts: Vec<String> = self.pids.iter().map(u32::to_string).collect();
        parts.extend(self.cgroup.iter().map(|path| format!("cgroup={}", path.display())));
        parts.extend(self.files.iter().map(|path| format!("file={}", path.display())));
        parts.extend(self.coverage.layer().map(|layer| format!("layer={layer}")));
        parts.join(",")
    }

    /// The name of its snapshots: "process", or "process:812,cgroup=/sys/fs/cgroup/x".
    pub(super) fn source(&self) -> String {
        let argument = self.argument();
        if argument.is_empty() { "process".into() } else { format!("process:{argument}") }
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts: Vec<String> = self.pids.iter().map(|pid| format!("pid {pid}")).collect();
        parts.extend(self.cgroup.iter().map(|path| path.display().to_string()));
        parts.extend(self.files.iter().map(|path| path.display().to_string()));
        if let Some(layer) = self.coverage.layer() {
            let whose = if parts.is_empty() { "all files".to_owned() } else { parts.join(", ") };
            return write!(f, "{layer}{}: {whose}", if layer == "block" { " layer" } else { "" });
        }
        match parts.is_empty() {
            true => f.write_str("all processes"),
            false => write!(f, "processes: {}", parts.join(", ")),
        }
    }
}
