//! pg_stat_io: what each kind of process does to each kind of object, the whole server's I/O.
//!
//! ```text
//! read    reads, read_bytes, read_time
//! write   writes + extends, their bytes, write_time + extend_time + writeback_time
//! sync    fsyncs, fsync_time
//! ```
//!
//! NULL is what cannot happen in that row: a true zero. A row in which nothing can happen is left out.
//! `writebacks` move nothing that `writes` had not counted: they ask the kernel to go on with it, and the time
//! that takes is time of the write.

use super::answer::Columns;
use super::server::{Server, ServerState, Subject, ops};
use filestats::{Counters, Counts, Durable, Figure, FileKind, Meaning, Ops, Reason, Sample, Time};
use tokio_postgres::SimpleQueryRow;

/// 16 and 17: blocks, however many went in one request.
pub(super) const SINCE_16: &str = "
    SELECT backend_type, object, context, reads, reads * op_bytes AS read_bytes, read_time,
           writes, writes * op_bytes AS write_bytes, write_time,
           extends, extends * op_bytes AS extend_bytes, extend_time, writeback_time,
           fsyncs, fsync_time, extract(epoch FROM stats_reset) AS reset
      FROM pg_stat_io";

/// 18: requests.
pub(super) const SINCE_18: &str = "
    SELECT backend_type, object, context, reads, read_bytes, read_time, writes, write_bytes, write_time,
           extends, extend_bytes, extend_time, writeback_time,
           fsyncs, fsync_time, extract(epoch FROM stats_reset) AS reset
      FROM pg_stat_io";

/// A row.
pub(super) fn samples(row: &SimpleQueryRow, server: &Server, now: &ServerState) -> Vec<Sample> {
    sample(row, server, now).into_iter().collect()
}

fn sample(row: &impl Columns, server: &Server, now: &ServerState) -> Option<Sample> {
    let (backend, object, context) = (row.text("backend_type")?, row.text("object")?, row.text("context")?);
    let log = object == "wal";
    let timed = if log { now.timing.wal } else { now.timing.io };
    let can = |name: &str| row.count(name).is_some();
    if !["reads", "writes", "extends", "fsyncs"].into_iter().any(can) {
        return None;
    }
    let of = |count: &str, bytes: &str, time: &str| match row.count(count) {
        Some(count) => ops(count, row.count(bytes).unwrap_or(0), row.ms_as_ns(time), timed),
        None => Ops::ZERO,
    };
    let written =
        of("writes", "write_bytes", "write_time").plus(of("extends", "extend_bytes", "extend_time"));
    let asked_for = row.ms_as_ns("writeback_time").unwrap_or(0);
    let write = Ops { stall_ns: written.stall_ns.map(|ns| ns.saturating_add(asked_for)), ..written };
    let subject = Subject {
        path: format!("{backend}/{object}/{context}"),
        kind: match object {
            "wal" => FileKind::Log,
            "temp relation" => FileKind::Temp,
            "relation" => FileKind::Data,
            _ => FileKind::Other,
        },
        file_id: String::new(),
        database: None,
        reset: row.text("reset").unwrap_or_default().to_owned(),
        gap: if log { now.gaps.wal } else { now.gaps.io },
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
        read: of("reads", "read_bytes", "read_time"),
        write,
        sync: Figure::Known(of("fsyncs", "", "fsync_time")),
        busy_ns: Figure::unknown(Reason::NotCounted),
    };
    Some(server.sample(now, subject, counters))
}
