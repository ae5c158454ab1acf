//! Views of the whole server: the log up to version 17, and the writers of data files up to 15.

use super::answer::Columns;
use super::server::{Server, ServerState, Subject, UNCOUNTED, ops, untimed};
use filestats::{Counters, Figure, FileIdentity, FileKind, Meaning, Ops, Reason, Sample};
use tokio_postgres::SimpleQueryRow;

/// Up to 17.
pub(super) const WAL: &str = "
    SELECT wal_bytes, wal_write, wal_write_time, wal_sync, wal_sync_time,
           extract(epoch FROM stats_reset) AS reset
      FROM pg_stat_wal";

/// Up to 15.
pub(super) const WRITERS: &str = "
    SELECT buffers_checkpoint, buffers_clean, buffers_backend, buffers_backend_fsync,
           checkpoints_timed + checkpoints_req AS checkpoints, checkpoint_sync_time,
           extract(epoch FROM stats_reset) AS reset
      FROM pg_stat_bgwriter";

/// The log. The server counts the bytes of its records, but writes whole blocks: a write before a sync ends in a partial
/// block, which the next write writes again. If records end anywhere in a block, that adds block - 1 bytes on average.
/// Writes that only free the server's buffers end with a full block. (The result is within 2 % of the kernel's count:
/// crates/observe/collect/tests/postgres.)
pub(super) fn wal(row: &SimpleQueryRow, server: &Server, state: &ServerState) -> Option<Vec<Sample>> {
    let (bytes, writes, syncs) = (row.count("wal_bytes")?, row.count("wal_write")?, row.count("wal_sync")?);
    let rewritten = syncs.saturating_mul(server.wal_block_bytes.saturating_sub(1));
    let timed = state.timing.wal;
    let counters = Counters {
        read: UNCOUNTED,
        write: ops(writes, bytes.saturating_add(rewritten), row.ms_as_ns("wal_write_time"), timed),
        sync: Figure::Known(ops(syncs, 0, row.ms_as_ns("wal_sync_time"), timed)),
        busy_ns: Figure::unknown(Reason::NotCounted),
    };
    let meaning = Meaning { durable: server.log_durable, ..Meaning::REQUESTS };
    let subject = Subject { gap: state.gaps.wal, ..server_subject("wal", FileKind::Log, row, meaning) };
    Some(vec![server.sample(state, subject, counters)])
}

/// The writers of data files, in blocks. Their time is unknown: pg_stat_bgwriter's time of a checkpoint's writes is mostly
/// deliberate pauses, and blk_write_time does not include all of `buffers_backend`.
pub(super) fn writers(row: &SimpleQueryRow, server: &Server, state: &ServerState) -> Option<Vec<Sample>> {
    let blocks =
        |name: &str| row.count(name).map(|count| untimed(count, count.saturating_mul(server.block_bytes)));
    // A sync is the sync phase of a checkpoint: the server keeps its time, not the number of files.
    let phases = row.count("checkpoints").zip(row.ms_as_ns("checkpoint_sync_time"));
    let phases = phases.map(|(count, ns)| Ops::timed(count, 0, ns));
    let fsyncs = row.count("buffers_backend_fsync").map(|count| untimed(count, 0));
    let writers = [
        ("checkpointer", blocks("buffers_checkpoint"), phases),
        ("background writer", blocks("buffers_clean"), Some(Ops::ZERO)),
        ("backends", blocks("buffers_backend"), fsyncs),
    ];
    let meaning = Meaning::BLOCKS;
    let sample = |(path, write, sync): (&str, Option<Ops>, Option<Ops>)| {
        let counters = Counters {
            read: Ops::ZERO,
            write: write?,
            sync: sync.map_or(Figure::unknown(Reason::NotCounted), Figure::Known),
            busy_ns: Figure::unknown(Reason::NotCounted),
        };
        Some(server.sample(state, server_subject(path, FileKind::Data, row, meaning), counters))
    };
    Some(writers.into_iter().filter_map(sample).collect())
}

fn server_subject(path: &str, kind: FileKind, row: &impl Columns, meaning: Meaning) -> Subject {
    Subject {
        file: FileIdentity { path: path.into(), kind, ..FileIdentity::default() },
        reset: row.text("reset").unwrap_or_default().to_owned(),
        gap: None,
        meaning,
    }
}
