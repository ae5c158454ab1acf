//! pg_stat_database: the reads of each database, and the bytes that its sorts and hashes spilled.

use super::answer::Columns;
use super::server::{Server, ServerState, Subject, UNCOUNTED, ops, untimed};
use filestats::{Counters, FileIdentity, FileKind, Meaning, Ops, Sample};
use tokio_postgres::SimpleQueryRow;

/// All databases, and the relations that they share, whose row has no name.
pub(super) const READS: &str = "
    SELECT datid, datname, blks_read, blk_read_time, extract(epoch FROM stats_reset) AS reset
      FROM pg_stat_database";

/// A temporary file is counted when it is deleted, with its size at that time. Commits of read-only transactions count too.
pub(super) const TEMP_FILES_AND_COMMITS: &str = "
    SELECT datid, datname, temp_bytes, xact_commit, extract(epoch FROM stats_reset) AS reset
      FROM pg_stat_database WHERE datname IS NOT NULL";

/// Blocks read by a database's sessions. Their writes are in the samples of the writers (up to 15).
pub(super) fn reads(row: &SimpleQueryRow, server: &Server, state: &ServerState) -> Option<Vec<Sample>> {
    let count = row.count("blks_read")?;
    let bytes = count.saturating_mul(server.block_bytes);
    let read = ops(count, bytes, row.ms_as_ns("blk_read_time"), state.timing.io);
    let subject = Subject { gap: state.gaps.io, ..subject(row, "database", FileKind::Data) };
    Some(vec![server.sample(state, subject, Counters::without_syncs(read, Ops::ZERO))])
}

/// Spilled bytes, in blocks, as such files are written. The server keeps neither reads nor times of such files.
pub(super) fn temp_files(row: &SimpleQueryRow, server: &Server, state: &ServerState) -> Option<Vec<Sample>> {
    let bytes = row.count("temp_bytes")?;
    let write = untimed(bytes.div_ceil(server.block_bytes.max(1)), bytes);
    let subject = subject(row, "temp files", FileKind::Temp);
    Some(vec![server.sample(state, subject, Counters::without_syncs(UNCOUNTED, write))])
}

/// Transactions of all databases.
pub(super) fn commits(rows: &[impl Columns]) -> Option<u64> {
    rows.iter().try_fold(0_u64, |sum, row| Some(sum.saturating_add(row.count("xact_commit")?)))
}

/// A database that was dropped and created again has another number.
fn subject(row: &impl Columns, path: &str, kind: FileKind) -> Subject {
    let name = row.text("datname");
    let number = row.text("datid").unwrap_or_default();
    let (database, database_id) = name.map(str::to_owned).zip(number.parse().ok()).unzip();
    let path = format!("{path}/{}", name.unwrap_or("(shared)"));
    let file_id = number.to_owned();
    Subject {
        file: FileIdentity { path, kind, database, database_id, file_id, ..FileIdentity::default() },
        reset: row.text("reset").unwrap_or_default().to_owned(),
        gap: None,
        meaning: Meaning::BLOCKS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(&'static str);

    impl Columns for Row {
        fn text(&self, _: &str) -> Option<&str> {
            Some(self.0)
        }
    }

    #[test]
    fn counts_of_a_hostile_server_are_added_without_a_panic() {
        assert_eq!(commits(&[Row("3"), Row("4")]), Some(7));
        assert_eq!(commits(&[Row("18446744073709551615"), Row("1")]), Some(u64::MAX));
        assert_eq!(commits(&[Row("3"), Row("x")]), None);
    }
}
