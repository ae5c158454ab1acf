//! The selection of processes whose I/Os are traced.

use collect::process::Selection;
use collect::quote_unless_secret;
use std::path::PathBuf;
use std::str::FromStr;
use terminal::Failure;

/// Processes I/Os are traced: the process source's words, and the names of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processes {
    pids: Vec<u32>,
    pid_file: Option<PathBuf>,
    cgroup: Option<PathBuf>,
    /// Only threads with this name.
    pub comm: Option<String>,
}

const ACCEPTED: &str =
    "give process: (all), process:PID,..., process:comm=NAME, process:cgroup=DIR or process:pid-file=PATH";

impl FromStr for Processes {
    type Err = String;

    fn from_str(text: &str) -> Result<Processes, String> {
        let mut processes = Processes::default();
        let rest = match text.split_once(':') {
            Some(("process", rest)) => rest,
            // A part of a process source's argument.
            None if text.starts_with("cgroup=") || text.starts_with("comm=") => text,
            _ => return Err(format!("only processes can be traced; {ACCEPTED}")),
        };
        for part in rest.split(',').filter(|part| !part.is_empty()) {
            let number = |text: &str| {
                text.parse()
                    .map_err(|_| format!("{} is not a process number; {ACCEPTED}", quote_unless_secret(part)))
            };
            match part.split_once('=') {
                Some(("cgroup", dir)) if !dir.is_empty() => processes.cgroup = Some(dir.into()),
                Some(("pid-file", path)) if !path.is_empty() => processes.pid_file = Some(path.into()),
                Some(("comm", name)) if !name.is_empty() => processes.comm = Some(name.to_owned()),
                Some(("pid", pid)) => processes.pids.push(number(pid)?),
                Some(("layer", _)) => return Err(format!("the block layer cannot be traced; {ACCEPTED}")),
                _ => processes.pids.push(number(part)?),
            }
        }
        Ok(processes)
    }
}

impl Processes {
    /// One process and its children.
    pub fn with_pid(pid: u32) -> Processes {
        Processes { pids: vec![pid], ..Processes::default() }
    }

    /// The selection of the process source.
    pub fn selection(&self) -> Result<Selection, Failure> {
        let mut pids = self.pids.clone();
        if let Some(path) = &self.pid_file {
            pids.push(collect::read_pid_file(path).map_err(|error| {
                Failure::new(format_args!("cannot trace the process of {}: {error}", path.display()))
                    .with_remedy("name the file that the server keeps its number in, while it runs")
            })?);
        }
        Ok(Selection { pids, cgroup: self.cgroup.clone(), ..Selection::default() })
    }
}

impl std::fmt::Display for Processes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts: Vec<String> = self.pids.iter().map(|pid| format!("pid {pid}")).collect();
        parts.extend(self.pid_file.iter().map(|path| format!("the process of {}", path.display())));
        parts.extend(self.cgroup.iter().map(|path| path.display().to_string()));
        parts.extend(self.comm.iter().map(|name| format!("threads called {name}")));
        if parts.is_empty() {
            return f.write_str("all processes");
        }
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_selected_like_in_the_process_source() {
        let read = |text: &str| text.parse::<Processes>().map(|processes| processes.to_string());
        assert_eq!(read("process:").unwrap(), "all processes");
        assert_eq!(read("process:812,pid=813").unwrap(), "pid 812, pid 813");
        assert_eq!(read("process:comm=postgres,812").unwrap(), "pid 812, threads called postgres");
        assert_eq!(
            read("cgroup=/sys/fs/cgroup/db").unwrap(),
            read("process:cgroup=/sys/fs/cgroup/db").unwrap()
        );
        for wrong in
            ["postgres:", "812", "process:x", "process:layer=block", "process:comm=", "process:pid=x"]
        {
            assert!(read(wrong).unwrap_err().contains("process:comm=NAME"), "{wrong}");
        }
    }

    #[test]
    fn a_server_is_found_by_its_pid_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("postmaster.pid");
        std::fs::write(&path, "812\n/data\n").unwrap();
        let processes: Processes = format!("process:pid-file={}", path.display()).parse().unwrap();
        assert_eq!(processes.selection().unwrap().pids, [812]);
        std::fs::write(&path, "none\n").unwrap();
        assert!(processes.selection().unwrap_err().to_string().contains("not a process number"));
    }
}
