//! Where file statistics come from: every source gives a `filestats::Snapshot` on demand.
//!
//! ```text
//! process::Process     any Linux process, file by file, counted in the kernel by BPF ─┐
//! postgres::Postgres   a PostgreSQL server, by its statistics and sampled waits       │
//! mysql::Mysql         a MySQL or MariaDB server, by its Performance Schema           ├─> snapshot() -> Snapshot
//! sqlserver::SqlServer a SQL Server or Azure SQL Database, by its views (crate tds)   │
//! sqlite::Live         SQLite programs, by the counters that they publish             │
//! sqlite::InProcess    the SQLite of this process                                     │
//! published::Live      a database of an engine that publishes its counters             │
//! diskstats::Devices   block devices of this host; diskstats::Disk is one of them    ─┘
//! ```
//!
//! [`process::trace`] is no source: it reports the I/Os of processes one by one.
//!
//! Main path: [`parse_source`] an argument, [`SourceArgument::open`] it once, call [`Source::snapshot`] now and then, and
//! give two snapshots to `filestats::intervals`.
//!
//! Where to add a source: a folder, its `mod` line here and one line of [`SOURCES`]. In the folder stand its [`SourceKind`]
//! (schemes, help, discovery), how its databases are found on this host (`discover.rs`, see [`discovery`]), its
//! [`SourceArgument`] (parsing, redaction, opening), its [`Source`], and its [`SourceFault`] and notes, which are what `doctor`
//! prints: what is missing and what grants it. The list of an engine's waits that are waits for I/O is pure and stands in
//! `filestats::waits`.
//!
//! Never: subtracts, averages or fills gaps. Counters are reported as they are, with their epoch; what is unknown has a
//! reason. It changes nothing, except that it removes counters files of processes that have ended.

mod connection_text;
mod der;
mod dial;
pub mod discovery;
pub mod diskstats;
mod environment;
mod error;
mod file_names;
pub mod mysql;
mod notes;
mod observer;
mod pid_file;
pub mod postgres;
pub mod process;
pub mod published;
mod redaction;
mod registry;
mod source;
pub mod sqlite;
pub mod sqlserver;
mod tls;
mod volume;

pub use error::{SourceError, SourceFault};
pub use file_names::FileNames;
pub use pid_file::read_pid_file;
pub use redaction::quote_unless_secret;
pub use registry::{
    SOURCES, discover_sources, discovery_help, find_instances, parse_source, parse_source_argument,
    source_help,
};
pub use source::{ArgumentError, Discovery, IoFailures, Source, SourceArgument, SourceKind, SqlTarget};
