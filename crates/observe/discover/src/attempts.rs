//! Tries a source for real: opens it, takes a snapshot, and closes it.

use crate::scan::{Refusal, file_on_host};
use collect::discovery::{Attempt, Instance, Role, RoleFile};
use collect::{FileNames, SourceError};
use std::path::{Path, PathBuf};

/// Result of trying the sources of a database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The first that worked, as it is printed.
    pub source: Option<String>,
    /// Those before it.
    pub refused: Vec<Refusal>,
    /// Figures that the source does not report, each with the line that grants it.
    pub lacks: Vec<String>,
    pub version: Option<String>,
    /// Where the source says that files lie.
    pub files: Vec<RoleFile>,
}

/// Properties that a working source reports.
pub(crate) struct Worked {
    lacks: Vec<String>,
    version: Option<String>,
    directory: Option<PathBuf>,
    mounts: Vec<String>,
}

/// A database whose sources are tried.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// The first process of the server.
    pub pid: u32,
    /// The user that it runs as.
    pub user: u32,
    /// The best first.
    pub attempts: Vec<Attempt>,
}

impl Candidate {
    /// The sources of a database that was found.
    pub fn from_instance(instance: &Instance) -> Candidate {
        Candidate { pid: instance.pid, user: instance.user, attempts: instance.attempts.clone() }
    }

    /// `process:PID`, once better sources do not work.
    pub fn for_process(pid: u32) -> Candidate {
        let attempt = Attempt { source: format!("process:{pid}"), socket: None };
        Candidate { pid, user: 0, attempts: vec![attempt] }
    }

    /// The best source, as it is printed.
    pub fn first_source(&self) -> String {
        self.attempts.first().map_or_else(|| "(none)".to_owned(), |attempt| shown(&attempt.source))
    }

    /// Tries the sources in their order, up to the first that works. Takes as long as the servers let it.
    pub fn try_all(&self, report: impl Fn(Event)) {
        for attempt in &self.attempts {
            report(Event::Begins(shown(&attempt.source)));
            match self.try_one(attempt) {
                Ok(worked) => return report(Event::Worked(worked)),
                Err(refusal) => report(Event::Refused(refusal)),
            }
        }
        report(Event::NoneWorked);
    }

    fn try_one(&self, attempt: &Attempt) -> Result<Worked, Refusal> {
        if let Some(socket) = &attempt.socket {
            let peer = host::peer_at(socket).map_err(|error| (error.to_string(), false));
            let checked =
                peer.and_then(|peer| check_listener(peer, self.pid, self.user).map_err(|why| (why, true)));
            checked.map_err(|(why, is_final)| Refusal {
                is_final,
                ..Refusal::new(&attempt.source, format!("no connection to {}: {why}", socket.display()))
            })?;
        }
        open(&attempt.source)
    }
}

/// Progress of trying the sources of a database.
pub(crate) enum Event {
    /// A source is opened, shown as it is printed.
    Begins(String),
    /// It does not work.
    Refused(Refusal),
    /// It works, and no other one is tried.
    Worked(Worked),
    /// All were tried.
    NoneWorked,
}

impl Outcome {
    /// Adds the properties that a working source reports.
    pub fn complete(&mut self, source: String, worked: Worked) {
        self.source = Some(source);
        self.files = files(&worked.directory, &worked.mounts);
        self.lacks = worked.lacks;
        self.version = worked.version;
    }
}

/// Whether the server's own process listens on a socket. Another user's process that took its name would get the login.
fn check_listener(peer: host::Peer, pid: u32, user: u32) -> Result<(), String> {
    match peer.pid {
        _ if peer.user != user => {
            Err(format!("user {} listens on it, and the server runs as user {user}", peer.user))
        }
        Some(other) if other != pid => {
            Err(format!("process {other} listens on it, and the server is process {pid}"))
        }
        _ => Ok(()),
    }
}

/// A source as it is printed. A text that cannot be read may not be shown either.
fn shown(source: &str) -> String {
    collect::parse_source_argument(source)
        .map_or_else(|_| "(none)".to_owned(), |argument| argument.to_string())
}

fn open(source: &str) -> Result<Worked, Refusal> {
    let argument = collect::parse_source_argument(source).map_err(|why| Refusal::new(&shown(source), why))?;
    open_now(&argument).map_err(|error| Refusal {
        facts: error.facts(),
        remedy: error.remedy().map(Into::into),
        is_final: error.is_refusal(),
        ..Refusal::new(&argument.to_string(), error.to_string())
    })
}

fn open_now(argument: &collect::SourceArgument) -> Result<Worked, SourceError> {
    let mut source = argument.open(&[], &FileNames::default())?;
    let snapshot = source.snapshot()?;
    let lacks = snapshot.notes.iter().filter(|note| !source.remarks().contains(note));
    Ok(Worked {
        lacks: lacks.cloned().collect(),
        version: source.version(),
        directory: source.directory().map(Path::to_path_buf),
        mounts: source.undivided_mounts().to_vec(),
    })
}

fn files(directory: &Option<PathBuf>, mounts: &[String]) -> Vec<RoleFile> {
    let data = directory.iter().filter_map(|directory| file_on_host(directory, Role::Data));
    let tablespaces = mounts.iter().filter_map(|mount| file_on_host(Path::new(mount), Role::Tablespace));
    data.chain(tablespaces).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_that_another_process_listens_on_is_not_the_servers() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("planted");
        let _planted = UnixListener::bind(&path).unwrap();
        let own = host::peer_at(&path).unwrap();
        let (pid, user) = (own.pid.unwrap(), own.user);
        assert_eq!(check_listener(own, pid, user), Ok(()));
        assert!(check_listener(own, pid + 1, user).unwrap_err().contains("the server is process"));
        assert!(check_listener(own, pid, user + 1).unwrap_err().contains("the server runs as user"));
    }

    #[test]
    fn a_source_that_does_not_work_says_why_and_what_to_do() {
        let refusal = open("sqlite:/no/where.db").err().unwrap();
        assert_eq!(refusal.source, "sqlite:/no/where.db");
        assert!(!refusal.error.is_empty(), "{refusal:?}");
        let secret = open("mysql://ann:hunter2@db/").err().unwrap();
        assert!(!format!("{secret:?}").contains("hunter2"), "{secret:?}");
    }
}
