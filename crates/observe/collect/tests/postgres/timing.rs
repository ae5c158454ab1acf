//! Times are known only if the server measured them in all of the interval.

use super::counts::TABLE;
use super::{between, interval, on_each, open, reason, run, take_snapshot};
use collect::Source;
use collect::postgres::{Postgres, SAMPLED_EVERY};
use filestats::{Delta, Figure, Ops, Reason, Snapshot};
use testbed::PostgresServer;

/// Reads of sessions, and their writes of the log.
fn paths(version: u32) -> (&'static str, &'static str) {
    match version {
        15 => ("database/postgres", "wal"),
        18 => ("client backend/relation/bulkread", "client backend/wal/normal"),
        _ => ("client backend/relation/bulkread", "wal"),
    }
}

/// Reads the whole table, which is larger than the cache, and writes some log.
fn load(server: &PostgresServer) {
    run(server, "SELECT count(*) FROM t; INSERT INTO t SELECT 0, 'x'");
}

/// The next snapshot, and what the load did.
fn loaded(source: &mut Postgres, before: &Snapshot, version: u32) -> (Snapshot, Delta, Delta) {
    let (data, log) = paths(version);
    let after = take_snapshot(source);
    let rows = between(before, &after);
    let known = |path| interval(&rows, path).known().expect("one epoch").clone();
    let (data, log) = (known(data), known(log));
    assert!(data.counters.read.count > 100 && log.counters.write.count > 0, "{version}: {data:?} {log:?}");
    (after, data, log)
}

fn stalls(data: &Delta, log: &Delta) -> [Figure<u64>; 3] {
    let sync = |sync: Figure<Ops>| match sync {
        Figure::Known(sync) => sync.stall_ns,
        Figure::Unknown { unknown } => Figure::unknown(unknown),
    };
    [data.counters.read.stall_ns, log.counters.write.stall_ns, sync(log.counters.sync)]
}

fn switch(server: &PostgresServer, to: &str) {
    server.set("track_io_timing", to);
    server.set("track_wal_io_timing", to);
}

#[test]
fn latency_is_unknown_while_timing_is_off_and_known_while_it_is_on() {
    on_each(|version, server| {
        // The table is larger than the cache, of which a sequential scan uses a ring.
        server.sql("ALTER SYSTEM SET shared_buffers = '8MB'");
        server.restart();
        server.sql(TABLE);
        let off = Figure::unknown(Reason::TimingOff);
        let mut source = open(server);

        let before = take_snapshot(&mut source);
        load(server);
        let (before, data, log) = loaded(&mut source, &before, version);
        assert_eq!(stalls(&data, &log), [off; 3], "{version}");
        for setting in ["track_io_timing", "track_wal_io_timing"] {
            let line = format!("ALTER SYSTEM SET {setting} = on; SELECT pg_reload_conf();");
            let lack = before.notes.iter().find(|note| note.contains(&line));
            assert!(lack.is_some_and(|note| !source.remarks().contains(note)), "{:?}", before.notes);
        }

        switch(server, "on");
        load(server);
        let (_, data, log) = loaded(&mut source, &before, version);
        assert_eq!(stalls(&data, &log), [off; 3], "{version}: across the change");

        // Samples before the change count for the first snapshot after it.
        let before = take_snapshot(&mut source);
        load(server);
        let (after, data, log) = loaded(&mut source, &before, version);
        for stall in stalls(&data, &log) {
            assert!(matches!(stall, Figure::Known(1..)), "{version}: {data:?} {log:?}");
        }
        assert!(
            after.notes.iter().all(|note| source.remarks().contains(note)),
            "{version}: {:?}",
            after.notes
        );

        // Off and on again between two snapshots.
        switch(server, "off");
        std::thread::sleep(SAMPLED_EVERY * 3);
        switch(server, "on");
        load(server);
        let (between_snapshots, data, log) = loaded(&mut source, &after, version);
        assert_eq!(stalls(&data, &log), [off; 3], "{version}: part of the time was not timed");
        let with_times = after;
        let after = take_snapshot(&mut source);
        load(server);
        let (last, data, log) = loaded(&mut source, &after, version);
        // A caller that skips the snapshots in between must not get incomplete times.
        let across = between(&with_times, &last);
        let (reads, log_path) = paths(version);
        assert_eq!(
            (reason(interval(&across, reads)), reason(interval(&across, log_path))),
            (Reason::StatsReset, Reason::StatsReset)
        );
        assert!(stalls(&data, &log).iter().all(|stall| stall.known().is_some()), "{between_snapshots:?}");
    });
}
