//! SQL Server, 2012 and later, and Azure SQL Database: file by file what they read and wrote and how long that took, and
//! what their sessions waited for. Not verified against a live server: docs/source-sqlserver.md.
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
//! Main path: [`SqlServer::open`] reads the connection text and logs in; [`Source::snapshot`] asks two questions over
//! that connection. After a failure the next snapshot connects anew. Opening and a snapshot are bounded by
//! [`ANSWER_SECONDS`] each, whatever the server or the network does.
//!
//! The clock of a snapshot is the server's own: milliseconds since its machine started.
//!
//! Never: writes anything to the server, puts a password into a name, an error or a `Debug` text.

mod address;
mod error;
mod files;
mod local;
mod look;
mod notes;
mod resets;
mod server;
mod session;
mod tds;
mod waits;

pub use error::SqlServerError;

use crate::{Source, SourceError};
use address::Address;
use files::Owner;
use filestats::Snapshot;
use look::{FileKey, FileRow, Look};
use resets::Resets;
use session::{SNAPSHOT_LIMIT, Session};
use std::collections::BTreeMap;
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
    /// Of the files that the server was asked for, where it said so.
    volumes: BTreeMap<FileKey, Option<String>>,
    processes: Vec<u32>,
    directory: Option<PathBuf>,
}

impl SqlServer {
    /// Connects to `sqlserver://USER@HOST:PORT/DATABASE`, or where SQLCMDSERVER says (`sqlserver:`). The password comes
    /// from SQLCMDPASSWORD.
    ///
    /// # Errors
    /// [`SourceError::SqlServer`]: the text is not of the form, nobody answers, or the login is refused.
    pub fn open(connection: &str) -> Result<SqlServer, SourceError> {
        SqlServer::open_in(connection, &address::environment)
    }

    /// The same with other variables than those of this process.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_in(
        connection: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<SqlServer, SourceError> {
        let address = Address::parse(connection, environment)?;
        let session = Session::open(&address, Instant::now() + SNAPSHOT_LIMIT)?;
        let processes = if local::is_here(&address.host) { local::processes() } else { Vec::new() };
        Ok(SqlServer {
            name: address.name(),
            address,
            session: Some(session),
            resets: Resets::new(),
            volumes: BTreeMap::new(),
            processes,
            directory: None,
        })
    }

    /// Over the connection there is, else over a new one. A connection that was lost since the last look (the server
    /// restarted) is replaced at once; a server that does not answer is not asked again.
    fn look(&mut self, deadline: Instant) -> Result<(Session, Look), SqlServerError> {
        if let Some(mut session) = self.session.take() {
            match session.look(&self.name, deadline) {
                Ok(look) => return Ok((session, look)),
                Err(error) if !Session::is_lost(&error) => return Err(error),
                Err(_) => {}
            }
        }
        let mut session = Session::open(&self.address, deadline)?;
        if local::is_here(&self.address.host) {
            self.processes = local::processes();
        }
        let look = session.look(&self.name, deadline)?;
        Ok((session, look))
    }

    /// Asks where the files' volumes are mounted, if there are files that it was not asked of. The server opens the
    /// volumes for it: should one hang, it is not asked again, and what it said before is kept.
    fn find_volumes(
        &mut self,
        session: &mut Session,
        look: &Look,
        deadline: Instant,
    ) -> Result<(), SqlServerError> {
        let keys = || look.files.iter().map(FileRow::key);
        let new: Vec<FileKey> = keys().filter(|key| !self.volumes.contains_key(key)).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.volumes.extend(new.iter().map(|key| (*key, None)));
        match session.volumes(&self.name, deadline) {
            Ok(mut told) => self.volumes = keys().map(|key| (key, told.remove(&key))).collect(),
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

    fn is_remark(&self, note: &str) -> bool {
        notes::is_remark(note)
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let deadline = Instant::now() + SNAPSHOT_LIMIT;
        let (mut session, look) = self.look(deadline)?;
        self.find_volumes(&mut session, &look, deadline)?;
        let run = format!("{} started {}", session.server.name, look.started);
        self.resets.observe(&run, &look);
        let owner = Owner { name: &self.name, run: &run, volumes: &self.volumes };
        let samples = files::samples(&look, &owner);
        let mut waits = waits::samples(&look, &owner, &self.resets.of_waits());
        waits.extend(files::queued(&look, &owner));
        let snapshot = Snapshot {
            source: self.name.replacen(' ', ":", 1),
            taken_unix_ns: look.taken_unix_ns,
            clock_ns: look.clock_ms.saturating_mul(1_000_000),
            complete: look.is_complete().then(|| self.resets.complete()),
            samples,
            waits,
            notes: notes::notes(&look, &session.server),
        };
        if local::is_here(&self.address.host) {
            self.directory = local::directory(&snapshot.samples);
        }
        self.session = Some(session);
        Ok(snapshot)
    }
}

impl fmt::Debug for SqlServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connected = self.session.is_some();
        f.debug_struct("SqlServer")
            .field("name", &self.name)
            .field("connected", &connected)
            .field("processes", &self.processes)
            .finish_non_exhaustive()
    }
}
