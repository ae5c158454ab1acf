//! pg_stat_io: the server's I/O by kind of process, object and context.
//!
//! ```text
//! read    reads, read_bytes, read_time
//! write   writes + extends, their bytes, write_time + extend_time + writeback_time
//! sync    fsyncs, fsync_time
//! ```
//!
//! NULL is an operation that cannot happen in that row: it counts as zero. A row in which nothing can happen is left out.
//! `writebacks` are requests to the kernel to write what `writes` counted: their time is added to the time of the writes.

use super::answer::Columns;
use super::server::{Server, ServerState, Subject, ops};
use filestats::{
    Counters, Counts, Durable, Figure, FileIdentity, FileKind, Meaning, Ops, Reason, Sample, Time,
};
use tokio_postgres::SimpleQueryRow;

/// 16 and 17 count blocks, whatever the size of a request.
pub(super) const SINCE_16: &str = "
    SELECT backend_type, object, context, reads, reads * op_bytes AS read_bytes, read_time,
           writes, writes * op_bytes AS write_bytes, write_time,
           extends, extends * op_bytes AS extend_bytes, extend_time, writeback_time,
           fsyncs, fsync_time, extract(epoch FROM stats_reset) AS reset
      FROM pg_stat_io";

/// 18 counts requests.
pub(super) const SINCE_18: &str = "
    SELECT backend_type, object, context, reads, read_bytes, read_time, writes, write_bytes, write_time,
           extends, extend_bytes, extend_time, writeback_time,
           fsyncs, fsync_time, extract(epoch FROM stats_reset) AS reset
      FROM pg_stat_io";

/// The sample of a row, if anything can happen in it.
pub(super) fn samples(row: &SimpleQueryRow, server: &Server, state: &ServerState) -> Option<Vec<Sample>> {
    let (backend, object, context) = (row.text("backend_type")?, row.text("object")?, row.text("context")?);
    let log = object == "wal";
    let timed = if log { state.timing.wal } else { state.timing.io };
    let can = |name: &str| row.count(name).is_some();
    if !["reads", "writes", "extends", "fsyncs"].into_iter().any(can) {
        return None;
    }
    let operations = |count: &str, bytes: &str, time: &str| match row.count(count) {
        Some(count) => ops(count, row.count(bytes).unwrap_or(0), row.ms_as_ns(time), timed),
        None => Ops::ZERO,
    };
    let written = operations("writes", "write_bytes", "write_time").plus(operations(
        "extends",
        "extend_bytes",
        "extend_time",
    ));
    let writeback_ns = row.ms_as_ns("writeback_time").unwrap_or(0);
    let write = Ops { stall_ns: written.stall_ns.map(|ns| ns.saturating_add(writeback_ns)), ..written };
    let subject = Subject {
        file: FileIdentity {
            path: format!("{backend}/{object}/{context}"),
            kind: match object {
                "wal" => FileKind::Log,
                "temp relation" => FileKind::Temp,
                "relation" => FileKind::Data,
                _ => FileKind::Other,
            },
            ..FileIdentity::default()
        },
        reset: row.text("reset").unwrap_or_default().to_owned(),
        gap: if log { state.gaps.wal } else { state.gaps.io },
        meaning: Meaning {
            counts: if server.version >= 18 { Counts::Requests } else { Counts::Blocks },
            read_time: if server.reads_ahead && !log && can("reads") {
                Time::Waiting
            } else {
                Time::ToCompletion
            },
            durable: if log { server.log_durable } else { Durable::BySync },
            ..Meaning::REQUESTS
        },
    };
    let counters = Counters {
        read: operations("reads", "read_bytes", "read_time"),
        write,
        sync: Figure::Known(operations("fsyncs", "", "fsync_time")),
        busy_ns: Figure::unknown(Reason::NotCounted),
    };
    Some(vec![server.sample(state, subject, counters)])
}
