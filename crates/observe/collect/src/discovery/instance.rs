use host::FilePlace;
use published::EngineName;
use std::fmt;
use std::path::PathBuf;

/// The kind of program that uses storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// PostgreSQL.
    Postgres,
    /// MySQL and its other descendants.
    Mysql,
    /// MariaDB.
    Mariadb,
    /// SQL Server on Linux.
    SqlServer,
    /// A program with SQLite that publishes counters.
    Sqlite,
    /// An engine of another name that publishes counters.
    Published(EngineName),
    /// A database engine that Headroom observes as a process: "mongodb".
    Other(&'static str),
    /// Any other program, because of its I/O.
    Program,
}

impl Engine {
    /// The name in tables and JSON.
    pub fn name(&self) -> &str {
        match self {
            Engine::Postgres => "postgres",
            Engine::Mysql => "mysql",
            Engine::Mariadb => "mariadb",
            Engine::SqlServer => "sqlserver",
            Engine::Sqlite => "sqlite",
            Engine::Published(name) => name.as_str(),
            Engine::Other(name) => name,
            Engine::Program => "program",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Use of a database's files on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The data.
    Data,
    /// The log that commits wait for.
    Log,
    /// Sorts, spills and other files that do not outlive a session.
    Temp,
    /// Data that was placed on a volume of its own.
    Tablespace,
    /// Other files that are open.
    Other,
}

impl Role {
    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Role::Data => "data",
            Role::Log => "log",
            Role::Temp => "temp",
            Role::Tablespace => "tablespace",
            Role::Other => "other",
        }
    }
}

/// A file or directory of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleFile {
    /// Its use.
    pub role: Role,
    /// Where it lies.
    pub place: FilePlace,
}

/// A source that may work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// As `--source` takes it.
    pub source: String,
    /// The socket of the file system that it connects to. The process that listens there must be the server's.
    pub socket: Option<PathBuf>,
}

/// A database that runs on this host.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The engine.
    pub engine: Engine,
    /// Its first process.
    pub pid: u32,
    /// When that started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The user that it runs as.
    pub user: u32,
    /// The name of the cluster or the database's file, where it is known.
    pub name: Option<String>,
    /// Part that distinguishes it from others of the same process: the file of a SQLite database.
    pub part: Option<String>,
    /// The version, where that is cheaply known.
    pub version: Option<String>,
    /// Its files, one for each role and volume.
    pub files: Vec<RoleFile>,
    /// The sources to try, the best first; `process:PID` is not among them.
    pub attempts: Vec<Attempt>,
    /// Facts that cannot be determined or tried, and why.
    pub notes: Vec<String>,
}
