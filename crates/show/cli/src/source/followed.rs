//! Processes that are started again: a server by its pid file, a service by its control group, which systemd makes anew.

use collect::process::{Process, Selection};
use collect::{FileNames, Source, SourceError};
use filestats::Snapshot;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// By what it is seen that they were started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A file whose first line is the number of a server's first process.
    PidFile(PathBuf),
    /// A control group's directory.
    Group(PathBuf),
}

/// The processes that bear a mark now, and those that bear it next. Each time is an epoch of its own.
pub struct Followed {
    mark: Mark,
    selection: Selection,
    names: FileNames,
    /// What the snapshots are called, where it cannot be as the number of a process has it.
    source: Option<String>,
    now: (u64, Process),
    next: Option<(u64, Process)>,
}

impl Mark {
    /// A number that is another once they were started again: of the process, of the directory.
    fn number(&self) -> Result<u64, SourceError> {
        let (path, found) = match self {
            Mark::PidFile(path) => (path, std::fs::read_to_string(path).and_then(|text| first_number(&text))),
            Mark::Group(path) => (path, std::fs::metadata(path).map(|found| found.ino())),
        };
        found.map_err(|error| SourceError::System { path: path.clone(), error })
    }
}

/// "812\n/var/lib/postgresql/18/main\n..." as PostgreSQL writes it, or the number alone.
fn first_number(text: &str) -> std::io::Result<u64> {
    let line = text.lines().next().unwrap_or_default().trim();
    let number = line.parse::<u32>().ok().filter(|number| *number > 0);
    number.map(u64::from).ok_or_else(|| std::io::Error::other("its first line is no process number"))
}

impl Followed {
    /// Those that bear the mark, of `selection`.
    pub fn open(mark: Mark, selection: Selection, names: &FileNames) -> Result<Followed, SourceError> {
        let number = mark.number()?;
        let now = (number, opened(&mark, number, &selection, names)?);
        let source = match &mark {
            Mark::PidFile(path) => Some(format!("process:pid-file={}", path.display())),
            Mark::Group(_) => None,
        };
        Ok(Followed { mark, selection, names: names.clone(), source, now, next: None })
    }
}

fn opened(
    mark: &Mark,
    number: u64,
    selection: &Selection,
    names: &FileNames,
) -> Result<Process, SourceError> {
    let mut selection = selection.clone();
    if let (Mark::PidFile(_), Ok(pid)) = (mark, u32::try_from(number)) {
        selection.pids.push(pid);
    }
    Ok(Process::open(&selection)?.asking(names))
}

impl Source for Followed {
    fn name(&self) -> &str {
        self.source.as_deref().unwrap_or_else(|| self.now.1.name())
    }

    fn processes(&self) -> &[u32] {
        self.now.1.processes()
    }

    fn directory(&self) -> Option<&Path> {
        self.now.1.directory()
    }

    fn told_late(&self) -> Duration {
        self.now.1.told_late()
    }

    fn is_remark(&self, note: &str) -> bool {
        self.now.1.is_remark(note)
    }

    /// Where they were started again, what the last ones did until their end is told once more, while the new ones are
    /// counted already. While there is no mark, between an end and a beginning, the last ones' counters stand.
    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        if let Some(next) = self.next.take() {
            self.now = next;
        }
        if let Some(number) = self.mark.number().ok().filter(|number| *number != self.now.0) {
            let next = opened(&self.mark, number, &self.selection, &self.names)?;
            self.next = Some((number, next));
        }
        let mut snapshot = self.now.1.snapshot()?;
        if let Some(source) = &self.source {
            snapshot.source.clone_from(source);
        }
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_begins_with_a_number() {
        let number = |text: &str| first_number(text).ok();
        assert_eq!(number("812\n/var/lib/postgresql/18/main\n1763000000\n"), Some(812));
        assert_eq!(number("  812"), Some(812));
        for wrong in ["", "\n812", "-812", "0", "postgres", "99999999999"] {
            assert_eq!(number(wrong), None, "{wrong:?}");
        }
    }
}
