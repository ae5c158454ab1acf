use super::{between, interval, open, reason, sample, server, take_snapshot};
use collect::Source;
use filestats::{Interval, Reason};

const TABLE: &str = "CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(2000)); \
     CREATE TABLE shop.b LIKE shop.a; CREATE TABLE shop.still LIKE shop.a; INSERT INTO shop.still (note) VALUES ('x');";
const WORK: &str = "INSERT INTO shop.a (note) SELECT REPEAT('x', 1000) FROM seq_1_to_500; FLUSH TABLES shop.a FOR EXPORT; \
     UNLOCK TABLES;";

#[test]
fn an_epoch_goes_on_while_nothing_happens() {
    let Some(server) = server(&["log-bin=binlog"]) else { return };
    server.sql(TABLE);
    let mut source = open(&server);
    let mut earlier = take_snapshot(&mut source);
    for round in 0..30 {
        server.sql(WORK);
        if round % 10 == 5 {
            // Resets counters of sessions and statements, none that the source reads.
            server.sql("FLUSH STATUS");
        }
        std::thread::sleep(std::time::Duration::from_millis(70));
        // Another source reports the same epochs.
        let later =
            if round % 2 == 0 { take_snapshot(&mut source) } else { take_snapshot(&mut open(&server)) };
        for row in between(&earlier, &later) {
            let known = row.interval.known().is_some();
            let new = row.interval == Interval::Unknown(Reason::FirstSight);
            assert!(known || new, "{row:?}");
        }
        earlier = later;
    }
}

#[test]
fn a_restart_and_a_crash_end_every_epoch() {
    let Some(mut server) = server(&["log-bin=binlog"]) else { return };
    server.sql(TABLE);
    server.sql(WORK);
    let mut source = open(&server);
    let mut earlier = take_snapshot(&mut source);
    for crash in [false, true] {
        if crash {
            server.sql(WORK);
            server.crash();
        } else {
            server.restart();
        }
        server.sql(WORK);
        let later = take_snapshot(&mut source);
        for row in between(&earlier, &later) {
            // Some files are created at each start.
            let expected = [Reason::Restart, Reason::FirstSight, Reason::Gone, Reason::IdentityChanged];
            assert!(
                matches!(row.interval, Interval::Unknown(reason) if expected.contains(&reason)),
                "{row:?}"
            );
        }
        assert_eq!(reason(&earlier, &later, "shop/a.ibd"), Some(Reason::Restart));
        assert_eq!(reason(&earlier, &later, "ib_logfile0"), Some(Reason::Restart));
        assert_eq!(source.processes(), [server.pid()]);
        earlier = later;
    }
}

#[test]
fn a_server_that_is_down_is_an_error_and_the_source_recovers_by_itself() {
    let Some(mut server) = server(&[]) else { return };
    let mut source = open(&server);
    take_snapshot(&mut source);
    server.stop();
    for _ in 0..2 {
        let error = source.snapshot().unwrap_err();
        assert!(error.to_string().starts_with("cannot watch mysql "), "{error}");
        assert!(error.remedy().is_some());
    }
    server.launch();
    take_snapshot(&mut source);
}

#[test]
fn a_table_that_is_dropped_truncated_or_created_again_never_has_negative_counts() {
    let Some(server) = server(&[]) else { return };
    server.sql(TABLE);
    server.sql(WORK);
    let mut source = open(&server);
    let mut pairs = Vec::new();
    let mut last = take_snapshot(&mut source);
    for statements in [
        "TRUNCATE TABLE shop.a",
        "DROP TABLE shop.a; CREATE TABLE shop.a LIKE shop.b",
        "ALTER TABLE shop.a FORCE",
        "DROP TABLE shop.a",
    ] {
        server.sql(statements);
        let next = take_snapshot(&mut source);
        pairs.push((statements, reason(&last, &next, "shop/a.ibd")));
        last = next;
    }
    let replaced = |reason| matches!(reason, Some(Reason::IdentityChanged | Reason::Reopened));
    for (statements, reason) in &pairs[..3] {
        assert!(replaced(*reason), "{statements}: {reason:?}");
    }
    assert_eq!(pairs[3].1, Some(Reason::Gone));
}

#[test]
fn the_counters_of_a_renamed_table_are_not_those_of_the_interval() {
    let Some(server) = server(&[]) else { return };
    server.sql(TABLE);
    server.sql(WORK);
    let mut source = open(&server);
    let before = take_snapshot(&mut source);
    server.sql("RENAME TABLE shop.a TO shop.renamed");
    let after = take_snapshot(&mut source);
    assert_eq!(reason(&before, &after, "shop/a.ibd"), Some(Reason::Gone));
    assert_eq!(reason(&before, &after, "shop/renamed.ibd"), Some(Reason::FirstSight));
    assert!(sample(&after, "shop/renamed.ibd").counters.operations() > 0, "it brought its figures along");
    server.sql("RENAME TABLE shop.renamed TO shop.a, shop.b TO shop.renamed");
    let last = take_snapshot(&mut source);
    assert!(
        matches!(reason(&after, &last, "shop/renamed.ibd"), Some(Reason::IdentityChanged | Reason::Reopened)),
        "another file under that name"
    );
}

#[test]
fn a_new_binary_log_counts_from_its_first_byte() {
    let Some(server) = server(&["log-bin=binlog"]) else { return };
    server.sql(TABLE);
    let mut source = open(&server);
    let before = take_snapshot(&mut source);
    server.sql(
        "INSERT INTO shop.a (note) VALUES ('x'); FLUSH BINARY LOGS; INSERT INTO shop.a (note) VALUES ('y')",
    );
    let after = take_snapshot(&mut source);
    let old = interval(&before, &after, "binlog.000001").known().unwrap().counters.write;
    let new = interval(&before, &after, "binlog.000002").known().unwrap().counters.write;
    assert!(old.count >= 1 && new.count >= 1, "{old:?} {new:?}");
    let size = std::fs::metadata(server.data_directory().join("binlog.000002")).unwrap().len();
    assert_eq!(new.bytes, size, "an append-only file: its size is what was written");
    server.sql("PURGE BINARY LOGS TO 'binlog.000002'");
    assert_eq!(reason(&after, &take_snapshot(&mut source), "binlog.000001"), Some(Reason::Gone));
}

#[test]
fn a_truncate_of_the_summary_ends_the_epoch_of_busy_files_too() {
    let Some(server) = server(&["log-bin=binlog"]) else { return };
    server.sql(TABLE);
    server.sql("INSERT INTO shop.a (note) VALUES ('x')");
    let mut source = open(&server);
    let before = take_snapshot(&mut source);
    server.sql("TRUNCATE performance_schema.file_summary_by_instance");
    for _ in 0..50 {
        server.sql("INSERT INTO shop.a (note) VALUES (REPEAT('y', 1000))");
    }
    let after = take_snapshot(&mut source);
    let writes = |snapshot| sample(snapshot, "binlog.000001").counters.write.bytes;
    assert!(writes(&after) > writes(&before), "no counter of this file shows it");
    assert_eq!(reason(&before, &after, "binlog.000001"), Some(Reason::StatsReset));
    assert_eq!(reason(&before, &after, "ib_logfile0"), None, "of another book, which was not truncated");
    server.sql("INSERT INTO shop.a (note) VALUES ('z')");
    let last = take_snapshot(&mut source);
    assert!(interval(&after, &last, "binlog.000001").known().is_some(), "the next interval is whole again");
}
