//! Tries a source for real: opens it, takes a snapshot, and closes it.

use crate::scan::{Refusal, file_on_host};
use collect::discovery::{Attempt, Instance, Role, RoleFile};
use collect::{FileNames, SourceError};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// What trying the sources of a database gave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The first that worked, as it is printed.
    pub source: Option<String>,
    /// Those before it.
    pub refused: Vec<Refusal>,
    /// What the source does not report, and the line that grants it.
    pub lacks: Vec<String>,
    pub version: Option<String>,
    /// Where the source says that files lie.
    pub files: Vec<RoleFile>,
}

/// What a source that works says.
struct Worked {
    lacks: Vec<String>,
    version: Option<String>,
    directory: Option<PathBuf>,
    mounts: Vec<String>,
}

/// Tries the sources of a database in their order, up to the first that works.
pub(crate) fn try_all(instance: &Instance, limit: Duration) -> Outcome {
    let mut outcome = Outcome::default();
    for attempt in &instance.attempts {
        match try_one(attempt, instance, limit) {
            Ok((source, worked)) => {
                outcome.source = Some(source);
                outcome.lacks = worked.lacks;
                outcome.version = worked.version;
                outcome.files = files(&worked.directory, &worked.mounts);
                break;
            }
            Err(refusal) => outcome.refused.push(refusal),
        }
    }
    outcome
}

/// `process:PID`, once what is better does not work.
pub(crate) fn try_process(pid: u32, limit: Duration) -> Result<String, Refusal> {
    open(&format!("process:{pid}"), limit).map(|(source, _)| source)
}

fn try_one(attempt: &Attempt, instance: &Instance, limit: Duration) -> Result<(String, Worked), Refusal> {
    if let Some(socket) = &attempt.socket {
        let peer = host::peer_at(socket).map_err(|error| (error.to_string(), false));
        let checked = peer
            .and_then(|peer| check_listener(peer, instance.pid, instance.user).map_err(|why| (why, true)));
        checked.map_err(|(why, is_final)| Refusal {
            source: attempt.source.clone(),
            error: format!("no connection to {}: {why}", socket.display()),
            facts: Vec::new(),
            remedy: None,
            is_final,
        })?;
    }
    open(&attempt.source, limit)
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

/// Opens a source within the limit. One that takes longer goes on in its thread, up to the source's own limit, and its result
/// is dropped.
fn open(source: &str, limit: Duration) -> Result<(String, Worked), Refusal> {
    let refusal = |shown: &str, error: String| Refusal {
        source: shown.to_owned(),
        error,
        facts: Vec::new(),
        remedy: None,
        is_final: false,
    };
    let argument = match collect::parse_source_argument(source) {
        Ok(argument) => argument,
        // A text that cannot be read may not be shown either.
        Err(why) => return Err(refusal("(none)", why)),
    };
    let shown = argument.to_string();
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name("try-source".into()).spawn(move || {
        // After the limit there is no receiver.
        let _ = sender.send(open_now(&argument));
    });
    if let Err(error) = thread {
        return Err(refusal(&shown, format!("no thread for it: {error}")));
    }
    match receiver.recv_timeout(limit) {
        Ok(Ok(worked)) => Ok((shown, worked)),
        Ok(Err(error)) => Err(Refusal {
            source: shown,
            error: error.to_string(),
            facts: error.facts(),
            remedy: error.remedy().map(Into::into),
            is_final: error.is_refusal(),
        }),
        Err(_) => Err(refusal(&shown, format!("it does not answer within {limit:?}"))),
    }
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
        let refusal = open("sqlite:/no/where.db", Duration::from_secs(5)).err().unwrap();
        assert_eq!(refusal.source, "sqlite:/no/where.db");
        assert!(!refusal.error.is_empty(), "{refusal:?}");
        let secret = open("mysql://ann:hunter2@db/", Duration::from_secs(5)).err().unwrap();
        assert!(!format!("{secret:?}").contains("hunter2"), "{secret:?}");
    }
}
