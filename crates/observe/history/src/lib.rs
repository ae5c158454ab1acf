//! The history: one SQLite file with the counters, measurements and verdicts that Headroom keeps.
//!
//! ```text
//! Snapshot    -> captures + files + file_changes   (only the files whose counters changed)
//!                  │                └─ file_blocks  up to 64 changes in a row, once they are not the newest
//!                  └─ views: file_stats (every file of every capture), entries (one line each)
//! RunResult   -> runs            plain columns to query, and the whole value as JSON
//!                  └─ sessions   the runs of one command belong together
//! Capability  -> capabilities   measured, declared or borrowed
//! Seen        -> seen           what each storage was seen to give, one row for each
//! progress    -> gentle         what a gentle measurement of each storage knows, until it is complete
//! Verdict     -> verdicts
//! Matrix      -> matrices, matrix_points   the planned runs, and the result of each finished one
//! test files  -> test_files      files that Headroom made: it removes no others
//! Judged      -> subjects, verdict_changes, judged_minutes, incidents   what the agent judged, bounded by rows
//! imports     -> imports         imported texts of other tools, so that none is imported twice
//! ```
//!
//! Main path: [`History::open`], [`History::save_snapshot`] every few seconds, then
//! [`History::intervals_between`] or [`History::captures_table`] over the captures, or [`History::series`] file by
//! file over a long period. `schema.sql` has the schema with its comments.
//!
//! Numbers are stored exactly, and an unknown figure with its reason. Every save is one transaction: it is visible
//! to every process as a whole or not at all, also after a kill. Several processes may write at once. On a full disk it can
//! still be read.
//!
//! The file may come from another user or another machine: `bounds.rs` and `schema.rs` keep it from hanging or misleading
//! its reader.
//!
//! It never writes into a file that Headroom did not make, never deletes a capture unless [`History::apply_retention`] is
//! called, and computes nothing: latencies and differences are those of `filestats`.

mod aside;
mod baseline;
mod blocks;
mod bounds;
mod capture_table;
mod captures;
mod changes;
mod clock;
mod entries;
mod error;
mod exact;
mod file_rows;
mod file_state;
mod gaps;
mod gentle_progress;
mod imports;
mod intervals;
mod judged;
mod matrices;
mod open;
mod ownership;
mod packed;
mod paths;
mod read_only;
mod results;
mod retention;
mod runs;
mod schema;
mod seen_storage;
mod series;
mod statements;
mod test_files;
mod wait_rows;
mod wal_index;
mod wanted;

pub use aside::MovedAside;
pub use capture_table::CaptureRow;
pub use captures::{CaptureFilter, CaptureId, CaptureInfo};
pub use entries::{Entry, EntryKind, FutureEntries, UnknownEntryKind};
pub use error::Error;
pub use file_state::APPLICATION_ID;
pub use gaps::{Gap, GapId};
pub use intervals::{IntervalFilter, IntervalRow, Latency};
pub use judged::{IncidentId, Judged, MINUTES_MAX};
pub use matrices::{MatrixId, MatrixInfo};
pub use results::ResultId;
pub use retention::{Retention, RetentionStep, Thinned};
pub use runs::SessionId;
pub use seen_storage::is_same_storage;
pub use series::{Series, SourceInfo};
pub use test_files::TestFile;
pub use wal_index::guard_wal_index;

use bounds::CpuBudget;
use rusqlite::Connection;
use std::path::PathBuf;

/// An open history.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    path: PathBuf,
    budget: CpuBudget,
    /// Opened for reading only: the disk had no room for the WAL index, or another user owns the file.
    is_read_only: bool,
}

fn rfc3339(unix_ns: u64) -> String {
    // Every u64 of nanoseconds (until the year 2554) lies in jiff's range.
    let timestamp = jiff::Timestamp::from_nanosecond(i128::from(unix_ns));
    timestamp.expect("a u64 of nanoseconds is within jiff's years").to_string()
}
