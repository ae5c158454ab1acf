//! Processes that restart: a server found by its pid file, or a service found by its control group, which systemd
//! creates again at each start.

use super::{Process, Selection};
use crate::error::SourceError;
use crate::file_names::FileNames;
use crate::pid_file::read_pid_file;
use crate::source::{IoFailures, Source};
use filestats::Snapshot;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Identifies one start of the processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProcessMark {
    /// A file whose first line is the number of a server's first process.
    PidFile(PathBuf),
    /// The directory of a control group.
    ControlGroup(PathBuf),
}

/// The processes that a mark identifies. Each start is a separate epoch.
pub(super) struct RestartingProcess {
    mark: ProcessMark,
    selection: Selection,
    names: FileNames,
    /// The source of the snapshots, where it must not change with the pid.
    source: Option<String>,
    current: Started,
    /// The next start, found by the last snapshot.
    next: Option<Started>,
}

/// One start of the processes.
struct Started {
    number: u64,
    process: Process,
}

impl ProcessMark {
    /// A number that changes with a restart: the pid, or the inode of the directory.
    fn number(&self) -> Result<u64, SourceError> {
        let (path, number) = match self {
            ProcessMark::PidFile(path) => (path, read_pid_file(path).map(u64::from)),
            ProcessMark::ControlGroup(path) => (path, std::fs::metadata(path).map(|found| found.ino())),
        };
        number.map_err(|error| SourceError::System { path: path.clone(), error })
    }
}

impl RestartingProcess {
    /// Watches the processes of `selection` that the mark identifies now.
    pub fn open(
        mark: ProcessMark,
        selection: Selection,
        names: &FileNames,
    ) -> Result<RestartingProcess, SourceError> {
        let number = mark.number()?;
        let current = Started::open(&mark, number, &selection, names)?;
        let source = match &mark {
            ProcessMark::PidFile(path) => Some(format!("process:pid-file={}", path.display())),
            ProcessMark::ControlGroup(_) => None,
        };
        Ok(RestartingProcess { mark, selection, names: names.clone(), source, current, next: None })
    }
}

impl Started {
    fn open(
        mark: &ProcessMark,
        number: u64,
        selection: &Selection,
        names: &FileNames,
    ) -> Result<Started, SourceError> {
        let mut selection = selection.clone();
        if let (ProcessMark::PidFile(_), Ok(pid)) = (mark, u32::try_from(number)) {
            selection.pids.push(pid);
        }
        Ok(Started { number, process: Process::open(&selection)?.using_names(names) })
    }
}

impl Source for RestartingProcess {
    fn name(&self) -> &str {
        self.source.as_deref().unwrap_or_else(|| self.current.process.name())
    }

    fn processes(&self) -> &[u32] {
        self.current.process.processes()
    }

    fn directory(&self) -> Option<&Path> {
        self.current.process.directory()
    }

    /// Those of the current processes.
    fn failures(&self) -> &[IoFailures] {
        self.current.process.failures()
    }

    /// After a restart, one more snapshot has the former processes, up to their end; the new ones are counted already.
    /// While the mark identifies no processes, the counters of the former ones stay.
    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        if let Some(next) = self.next.take() {
            self.current = next;
        }
        if let Some(number) = self.mark.number().ok().filter(|number| *number != self.current.number) {
            self.next = Some(Started::open(&self.mark, number, &self.selection, &self.names)?);
        }
        let mut snapshot = self.current.process.snapshot()?;
        if let Some(source) = &self.source {
            snapshot.source.clone_from(source);
        }
        Ok(snapshot)
    }
}
