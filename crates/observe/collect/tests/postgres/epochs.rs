//! Events after which counters cannot be subtracted.

use super::{between, interval, on_each, open, reason, take_snapshot};
use filestats::{Interval, Reason, Snapshot};

/// Samples of every version: data files, the log, a database.
fn paths(version: u32) -> (&'static str, &'static str, &'static str) {
    let temp = "temp files/postgres";
    match version {
        15 => ("checkpointer", "wal", temp),
        18 => ("checkpointer/relation/normal", "client backend/wal/normal", temp),
        _ => ("checkpointer/relation/normal", "wal", temp),
    }
}

/// Whether any interval is known.
fn anything_known(earlier: &Snapshot, later: &Snapshot) -> bool {
    between(earlier, later).iter().any(|row| row.interval.known().is_some())
}

#[test]
fn a_reset_of_a_databases_statistics_ends_the_epoch_of_that_database_only() {
    on_each(|version, server| {
        let (data, log, database) = paths(version);
        let mut source = open(server);
        let before = take_snapshot(&mut source);
        server.sql("SELECT pg_stat_reset()");
        let after = take_snapshot(&mut source);
        let rows = between(&before, &after);
        assert_eq!(reason(interval(&rows, database)), Reason::StatsReset, "NULL and a time are not the same");
        assert!(interval(&rows, data).known().is_some() && interval(&rows, log).known().is_some());
        server.sql("SELECT pg_stat_reset()");
        assert_eq!(
            reason(interval(&between(&after, &take_snapshot(&mut source)), database)),
            Reason::StatsReset
        );
    });
}

#[test]
fn a_reset_of_shared_statistics_ends_their_own_epoch_only() {
    on_each(|version, server| {
        let (data, log, database) = paths(version);
        let mut source = open(server);
        let before = take_snapshot(&mut source);
        server.sql(&format!(
            "SELECT pg_stat_reset_shared('{}')",
            if version == 15 { "bgwriter" } else { "io" }
        ));
        let after = take_snapshot(&mut source);
        let rows = between(&before, &after);
        assert_eq!(reason(interval(&rows, data)), Reason::StatsReset);
        assert!(interval(&rows, database).known().is_some());
        if version < 18 {
            assert!(interval(&rows, log).known().is_some());
            server.sql("SELECT pg_stat_reset_shared('wal')");
            let rows = between(&after, &take_snapshot(&mut source));
            assert_eq!(reason(interval(&rows, log)), Reason::StatsReset);
            assert!(interval(&rows, data).known().is_some());
        }
    });
}

#[test]
fn a_restart_ends_every_epoch_and_the_source_goes_on() {
    on_each(|_, server| {
        let mut source = open(server);
        let before = take_snapshot(&mut source);
        server.restart();
        let after = take_snapshot(&mut source);
        for row in between(&before, &after) {
            assert_eq!(reason(&row.interval), Reason::Restart, "{}", row.file.path);
        }
        assert!(anything_known(&after, &take_snapshot(&mut source)));
    });
}

#[test]
fn a_crash_of_a_backend_is_a_restart() {
    on_each(|version, server| {
        server.sql("CREATE ROLE plain LOGIN");
        let mut source = open(server);
        let plain = server.connection().replace("user=postgres", "user=plain");
        let mut without_rights = collect::postgres::Postgres::open(&plain).unwrap();
        let started = "SELECT pg_postmaster_start_time()";
        let postmaster = server.sql(started);
        let (before, before_plain) = (take_snapshot(&mut source), take_snapshot(&mut without_rights));
        server.crash();
        assert_eq!(server.sql(started), postmaster, "{version}: the same postmaster");
        let (after, after_plain) = (take_snapshot(&mut source), take_snapshot(&mut without_rights));
        for row in between(&before, &after).iter().chain(&between(&before_plain, &after_plain)) {
            assert_eq!(reason(&row.interval), Reason::Restart, "{version}: {}", row.file.path);
        }
        assert!(anything_known(&after, &take_snapshot(&mut source)));
    });
}

#[test]
fn a_server_that_is_killed_and_started_again_is_another_run() {
    on_each(|_, server| {
        let mut source = open(server);
        let before = take_snapshot(&mut source);
        server.kill();
        let error = collect::Source::snapshot(&mut source).expect_err("there is no server");
        assert!(error.to_string().contains("cannot connect"), "{error}");
        server.launch();
        for row in between(&before, &take_snapshot(&mut source)) {
            assert_eq!(reason(&row.interval), Reason::Restart, "{}", row.file.path);
        }
    });
}

#[test]
fn a_database_that_was_dropped_and_created_again_is_another_one() {
    on_each(|_, server| {
        server.sql("CREATE DATABASE shop");
        let mut source = open(server);
        let before = take_snapshot(&mut source);
        server.sql("DROP DATABASE shop");
        let without = take_snapshot(&mut source);
        assert_eq!(reason(interval(&between(&before, &without), "temp files/shop")), Reason::Gone);
        server.sql("CREATE DATABASE shop");
        let again = take_snapshot(&mut source);
        assert_eq!(reason(interval(&between(&before, &again), "temp files/shop")), Reason::IdentityChanged);
        let new = interval(&between(&without, &again), "temp files/shop").clone();
        assert!(matches!(new, Interval::Known(delta) if delta.counters.write.count == 0), "began at zero");
    });
}
