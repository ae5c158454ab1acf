//! The history: one SQLite file that keeps what Headroom saw, measured and said.
//!
//! ```text
//! Snapshot    -> captures + files + file_changes   (only the files whose counters changed)
//!                  │                └─ file_blocks  many of them to a row, once they are not the newest
//!                  └─ views: file_stats (every file of every capture), entries (one line each)
//! RunResult   -> runs            plain columns to query, and the whole value as JSON
//!                  └─ sessions   the runs of one command belong together
//! Capability  -> capabilities
//! Verdict     -> verdicts
//! Matrix      -> matrices, matrix_points   what is planned, and the run of what is done
//! test files  -> test_files      what Headroom made, so that it removes nothing else
//! imports     -> imports         texts of other tools that were read, so that none is kept twice
//! ```
//!
//! Main path: [`History::open`], [`History::save_snapshot`] every few seconds, then
//! [`History::intervals_between`] or [`History::captures_table`] over what was kept, or [`History::series`] file by
//! file over a long stretch of it. The schema with its
//! comments is `schema_1.sql`; each later `schema_N.sql` adds to it.
//!
//! A number comes back as exactly the number that went in, and an unknown figure with its reason. Every
//! save is one transaction: it is there as a whole, for every process, or not at all, whatever is killed
//! meanwhile. Several processes may write at once.
//!
//! It never writes into a file that Headroom did not make, never deletes a capture by itself, and computes
//! nothing: latencies and differences are those of `filestats`.

mod baseline;
mod blocks;
mod capture_table;
mod captures;
mod changes;
mod entries;
mod error;
mod exact;
mod file_rows;
mod gaps;
mod imports;
mod intervals;
mod matrices;
mod open;
mod packed;
mod results;
mod runs;
mod series;
mod test_files;
mod thin;
mod thin_rows;
mod wait_rows;

pub use capture_table::{CaptureRow, to_csv};
pub use captures::{CaptureFilter, CaptureId, CaptureInfo};
pub use entries::{Entry, EntryKind, UnknownEntryKind};
pub use error::Error;
pub use gaps::{Gap, GapId};
pub use intervals::{IntervalFilter, IntervalRow, Latency};
pub use matrices::{MatrixId, MatrixInfo};
pub use open::APPLICATION_ID;
pub use results::ResultId;
pub use runs::SessionId;
pub use series::{Series, SourceInfo};
pub use test_files::TestFile;
pub use thin::{Retention, Stretch, Thinned};

use rusqlite::Connection;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// An open history.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    path: PathBuf,
}

fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn rfc3339(unix_ns: u64) -> String {
    // Every u64 of nanoseconds (until the year 2554) lies in jiff's range.
    let timestamp = jiff::Timestamp::from_nanosecond(i128::from(unix_ns));
    timestamp.expect("a u64 of nanoseconds is within jiff's years").to_string()
}
