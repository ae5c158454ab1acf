use super::{find, interval, open, reason, sample, server, take_snapshot};
use collect::Source;
use filestats::{Figure, FileKind, Reason};
use testbed::MariadbServer;

const TABLE: &str =
    "CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(2000));";
const WORK: &str = "INSERT INTO shop.a (note) SELECT REPEAT('x', 1000) FROM seq_1_to_500; FLUSH TABLES shop.a FOR EXPORT; \
     UNLOCK TABLES;";
const DATA: &str = "wait/io/file/innodb/innodb_data_file";

#[test]
fn with_the_performance_schema_off_innodbs_counters_are_reported_without_times() {
    let Some(server) = MariadbServer::start(None, &["log-bin=binlog"]) else { return };
    let mut source = open(&server);
    server.sql(TABLE);
    let before = take_snapshot(&mut source);
    server.sql(WORK);
    let after = take_snapshot(&mut source);
    assert!(after.notes[0].contains("performance_schema=ON"), "{:?}", after.notes);
    let data = interval(&before, &after, "InnoDB data files").known().unwrap().counters;
    assert!(data.write.bytes >= 500 * 1000, "{data:?}");
    assert_eq!(data.write.stall_ns, Figure::unknown(Reason::TimingOff));
    assert_eq!(data.read.stall_ns, Figure::unknown(Reason::TimingOff));
    let redo = interval(&before, &after, "ib_logfile0").known().unwrap().counters.write;
    assert!(redo.count > 0 && redo.bytes >= 500 * 1000, "{redo:?}");
    assert!(after.samples.iter().all(|sample| sample.counters.write.count == 0
        || sample.counters.write.stall_ns == Figure::unknown(Reason::TimingOff)));
    assert_eq!(sample(&after, "InnoDB data files").file.kind, FileKind::Data);
}

#[test]
fn a_user_without_privileges_gets_the_grant_and_the_counters_that_every_user_may_read() {
    let Some(server) = server(&[]) else { return };
    server.sql(TABLE);
    server.sql("CREATE USER watcher@localhost");
    let url = server.url().replace("root@", "watcher@");
    let mut source = collect::mysql::Mysql::open(&url).unwrap();
    let weak = take_snapshot(&mut source);
    let grant = "GRANT SELECT ON performance_schema.* TO 'watcher'@'localhost';";
    assert!(weak.notes.iter().any(|note| note.ends_with(grant)), "{:?}", weak.notes);
    assert_eq!(
        sample(&weak, "InnoDB data files").counters.read.stall_ns,
        Figure::unknown(Reason::NotCounted),
        "not known to this user; it may well be timed"
    );
    // The statement is enough.
    server.sql(grant);
    let mut source = collect::mysql::Mysql::open(&url).unwrap();
    let enough = take_snapshot(&mut source);
    assert!(find(&enough, "shop/a.ibd").is_some());
    assert!(!enough.notes.iter().any(|note| note.contains("GRANT")), "{:?}", enough.notes);
    assert!(find(&enough, "InnoDB data files").is_none());
}

#[test]
fn files_of_an_instrument_that_is_off_are_missing_not_idle() {
    let Some(server) = server(&[]) else { return };
    server.sql(TABLE);
    server.sql(WORK);
    let mut source = open(&server);
    let before = take_snapshot(&mut source);
    let switch = |enabled: &str, timed: &str| {
        server.sql(&format!(
            "UPDATE performance_schema.setup_instruments SET ENABLED='{enabled}', TIMED='{timed}' WHERE NAME = '{DATA}'"
        ));
    };
    switch("NO", "NO");
    server.sql(WORK);
    let off = take_snapshot(&mut source);
    assert_eq!(reason(&before, &off, "shop/a.ibd"), Some(Reason::Gone));
    assert!(
        off.notes.iter().any(|note| note.contains("UPDATE performance_schema.setup_instruments")),
        "{:?}",
        off.notes
    );
    switch("YES", "YES");
    server.sql(WORK);
    let on = take_snapshot(&mut source);
    assert_eq!(reason(&off, &on, "shop/a.ibd"), Some(Reason::FirstSight));
    assert_eq!(
        reason(&before, &on, "shop/a.ibd"),
        Some(Reason::StatsReset),
        "the work in between was not counted"
    );
    server.sql(WORK);
    let next = take_snapshot(&mut source);
    assert!(interval(&on, &next, "shop/a.ibd").known().is_some());

    switch("YES", "NO");
    server.sql(WORK);
    let untimed = take_snapshot(&mut source);
    let delta = interval(&next, &untimed, "shop/a.ibd").known().unwrap().counters.write;
    assert!(delta.count > 0 && delta.stall_ns == Figure::unknown(Reason::TimingOff), "{delta:?}");
    let lack = untimed.notes.iter().find(|note| note.contains("without timing"));
    assert!(lack.is_some_and(|note| !source.remarks().contains(note)), "{:?}", untimed.notes);
    let waits = filestats::wait_intervals(&next, &untimed, filestats::Rules::default());
    let write = waits.iter().find(|wait| wait.event == format!("{DATA} (write)")).unwrap();
    assert_eq!(write.interval.known().unwrap().wait_ns, Figure::unknown(Reason::TimingOff));
    switch("YES", "YES");
    assert_eq!(
        reason(&next, &take_snapshot(&mut source), "shop/a.ibd"),
        Some(Reason::StatsReset),
        "a part was not timed"
    );
}

#[test]
fn a_server_that_counts_nothing_has_no_files() {
    let Some(server) = server(&[]) else { return };
    server.sql(
        "UPDATE performance_schema.setup_consumers SET ENABLED='NO' WHERE NAME='global_instrumentation'",
    );
    let snapshot = take_snapshot(&mut open(&server));
    assert!(find(&snapshot, "ibdata1").is_none());
    assert!(
        snapshot.notes.iter().any(|note| note.contains("global_instrumentation")),
        "{:?}",
        snapshot.notes
    );
    assert_eq!(snapshot.complete, None);
}

#[test]
fn files_that_the_server_could_not_count_are_noted() {
    let Some(server) = server(&["performance_schema_max_file_instances=20"]) else { return };
    server.sql(TABLE);
    server.sql(WORK);
    let snapshot = take_snapshot(&mut open(&server));
    let note = snapshot.notes.iter().find(|note| note.contains("performance_schema_max_file_instances"));
    assert!(note.is_some_and(|note| note.contains("are not counted")), "{:?}", snapshot.notes);
    assert_eq!(snapshot.complete, None);
}

#[test]
fn threads_that_are_not_instrumented_are_noted() {
    let Some(server) = server(&[]) else { return };
    server.sql("UPDATE performance_schema.threads SET INSTRUMENTED='NO' WHERE NAME LIKE '%page_cleaner%'");
    let snapshot = take_snapshot(&mut open(&server));
    assert!(snapshot.notes.iter().any(|note| note.contains("INSTRUMENTED='YES'")), "{:?}", snapshot.notes);
}
