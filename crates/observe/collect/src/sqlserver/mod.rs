//! SQL Server, 2012 and later, and Azure SQL Database: the reads and writes of each file with their times, and the waits of
//! sessions. Not verified against a live server: docs/how-to/source-sqlserver.md. The protocol is in the crate `tds`.
//!
//! ```text
//! sys.dm_io_virtual_file_stats ─ files   ─> a Sample of each file          (counts, bytes, milliseconds)
//!   with sys.master_files, or sys.database_files of a single database: names and kinds
//!   its io_stall_queued_*                ─> a WaitSample of each file that was throttled
//! sys.dm_os_volume_stats       ─ files   ─> where each file's volume is mounted
//! sys.dm_os_wait_stats         ─ waits   ─> a WaitSample of each I/O wait, without the signal wait
//! sys.dm_os_sys_info           ─ resets  ─> Epoch { run, reset }; the clock
//! ```
//!
//! Main path: [`SqlServer::open`] parses the connection text and logs in; [`Source::snapshot`] runs two queries over
//! that connection. After a failure the next snapshot connects again. Opening and a snapshot take [`ANSWER_SECONDS`] at
//! most, whatever the server or the network does.
//!
//! The clock of a snapshot is the server's own: milliseconds since its machine started.
//!
//! Never: writes anything to the server, puts a password into a name, an error or a `Debug` text.

mod address;
mod argument;
mod discover;
mod error;
mod files;
#[cfg(fuzzing)]
mod fuzzing;
mod local;
mod notes;
mod resets;
mod server;
mod session;
mod statistics;
mod tls;
mod waits;

pub use argument::KIND;
pub use error::SqlServerError;
#[cfg(fuzzing)]
pub use fuzzing::read_answers;

use crate::environment::{self, Environment};
use crate::error::SourceError;
use crate::source::Source;
use address::Address;
use files::Owner;
use filestats::Snapshot;
use resets::Resets;
use session::{SNAPSHOT_LIMIT, Session};
use statistics::{FileKey, FileRow, Statistics};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The longest that opening, or a snapshot, takes.
pub const ANSWER_SECONDS: u64 = SNAPSHOT_LIMIT.as_secs();

/// One server, or one database of Azure.
pub struct SqlServer {
    name: String,
    address: Address,
    /// None after a failure, until the next snapshot.
    session: Option<Session>,
    resets: Resets,
    /// Mount points of the known files; `None` where the server did not report one.
    volumes: BTreeMap<FileKey, Option<String>>,
    processes: Vec<u32>,
    directory: Option<PathBuf>,
    /// Of the last snapshot.
    remarks: Vec<String>,
}

impl SqlServer {
    /// Connects to `sqlserver://USER@HOST:PORT/DATABASE`, or where SQLCMDSERVER says (`sqlserver:`). The password comes
    /// from SQLCMDPASSWORD.
    ///
    /// # Errors
    /// [`SqlServerError`]: the text is malformed, no server answers, or it refuses the login.
    pub fn open(connection: &str) -> Result<SqlServer, SourceError> {
        SqlServer::open_in(connection, &environment::of_process)
    }

    /// Opens it with other variables than those of this process.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_in(connection: &str, environment: Environment) -> Result<SqlServer, SourceError> {
        let address = Address::parse(connection, environment).map_err(SqlServerError::BadConnection)?;
        let session = Session::open(&address, Instant::now() + SNAPSHOT_LIMIT);
        let session = session.map_err(|fault| SourceError::of_server(&address.name(), fault))?;
        Ok(SqlServer::begin(address, session))
    }

    fn begin(address: Address, session: Session) -> SqlServer {
        let processes = if local::is_here(&address.host) { local::processes() } else { Vec::new() };
        SqlServer {
            name: address.name(),
            address,
            session: Some(session),
            resets: Resets::new(),
            volumes: BTreeMap::new(),
            processes,
            directory: None,
            remarks: Vec::new(),
        }
    }

    /// Uses the open connection, or makes one. A connection that was lost since the last snapshot, because the server
    /// restarted, is replaced at once; a server that does not answer is not tried twice.
    fn read_statistics(&mut self, deadline: Instant) -> Result<(Session, Statistics), SqlServerError> {
        if let Some(mut session) = self.session.take() {
            match session.read_statistics(deadline) {
                Ok(statistics) => return Ok((session, statistics)),
                Err(error) if !Session::is_lost(&error) => return Err(error),
                Err(_) => {}
            }
        }
        let mut session = Session::open(&self.address, deadline)?;
        if local::is_here(&self.address.host) {
            self.processes = local::processes();
        }
        let statistics = session.read_statistics(deadline)?;
        Ok((session, statistics))
    }

    /// Finds out where the volumes are mounted, if there are new files. The server opens the volumes for it: if one hangs,
    /// the query is not run again for these files, and the former answers are kept.
    fn find_volumes(
        &mut self,
        session: &mut Session,
        statistics: &Statistics,
        deadline: Instant,
    ) -> Result<(), SqlServerError> {
        let keys = || statistics.files.iter().map(FileRow::key);
        let present: BTreeSet<FileKey> = keys().collect();
        self.volumes.retain(|key, _| present.contains(key));
        let new: Vec<FileKey> = keys().filter(|key| !self.volumes.contains_key(key)).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.volumes.extend(new.iter().map(|key| (*key, None)));
        match session.volumes(deadline) {
            Ok(mut found) => self.volumes = keys().map(|key| (key, found.remove(&key))).collect(),
            Err(error) => {
                if Session::is_lost(&error) {
                    self.volumes.retain(|key, _| !new.contains(key));
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Source for SqlServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    fn processes(&self) -> &[u32] {
        &self.processes
    }

    fn remarks(&self) -> &[String] {
        &self.remarks
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let deadline = Instant::now() + SNAPSHOT_LIMIT;
        let read = self.read_statistics(deadline).and_then(|(mut session, statistics)| {
            self.find_volumes(&mut session, &statistics, deadline)?;
            Ok((session, statistics))
        });
        let (session, statistics) = read.map_err(|fault| SourceError::of_server(&self.name, fault))?;
        let run = format!("{} started {}", session.server.name, statistics.started);
        self.resets.observe(&run, &statistics);
        let owner = Owner { name: &self.name, run: &run, volumes: &self.volumes };
        let samples = files::samples(&statistics, &owner);
        let mut waits = waits::samples(&statistics, &owner, &self.resets.reset_of_waits());
        waits.extend(files::queued(&statistics, &owner));
        let notes = notes::notes(&statistics, &session.server);
        let snapshot = Snapshot {
            source: self.name.replacen(' ', ":", 1),
            taken_unix_ns: statistics.taken_unix_ns,
            clock_ns: statistics.clock_ms.saturating_mul(1_000_000),
            complete: statistics.is_complete().then(|| self.resets.complete()),
            samples,
            waits,
            notes: notes.texts,
        };
        if local::is_here(&self.address.host) {
            self.directory = local::directory(&snapshot.samples);
        }
        self.remarks = notes.remarks;
        self.session = Some(session);
        Ok(snapshot)
    }
}

impl fmt::Debug for SqlServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlServer").field("name", &self.name).finish_non_exhaustive()
    }
}
