//! Sampled waits.

use super::{on_each, open, soon, take_snapshot};
use collect::postgres::SAMPLED_EVERY;
use filestats::{Figure, Rules, WaitClass, wait_intervals};
use testbed::{LoopDisk, PostgresServer};
use workload::CapKind;

#[test]
fn a_session_that_waits_all_the_time_adds_the_whole_interval() {
    on_each(|version, server| {
        server.sql("CREATE TABLE t (id int)");
        let mut source = open(server);
        // A commit waits for a standby that does not exist; another session sleeps, a third does nothing.
        server.set("synchronous_standby_names", "nobody");
        let statements = ["INSERT INTO t VALUES (1)", "SELECT pg_sleep(60)"];
        let mut sessions = statements.map(|statement| server.session(statement).spawn().unwrap());
        let event = "SELECT count(*) FROM pg_stat_activity WHERE wait_event IN ('SyncRep', 'PgSleep')";
        soon("both wait", || (server.sql(event) == "2").then_some(()));
        let before = take_snapshot(&mut source);
        std::thread::sleep(SAMPLED_EVERY * 8);
        let after = take_snapshot(&mut source);
        sessions
            .iter_mut()
            .for_each(|session| session.kill().and_then(|()| session.wait()).map(drop).unwrap());
        let rows = wait_intervals(&before, &after, Rules::default());
        let waits: Vec<_> = rows
            .iter()
            .filter_map(|row| {
                Some((row.class, row.event.as_str(), row.interval.known()?.sessions().known()?))
            })
            .filter(|(_, _, sessions)| *sessions > 0.05)
            .collect();
        let [(WaitClass::Replication, "SyncRep", sessions)] = waits[..] else {
            panic!("{version}: {rows:?}")
        };
        assert!((0.7..1.3).contains(&sessions), "{version}: {sessions} sessions");
        assert!(
            rows.iter().all(|row| row.interval.known().is_none_or(|delta| delta.count.known().is_none()))
        );
    });
}

#[test]
fn the_wait_for_a_slow_log_is_near_the_servers_own_time() {
    for version in [15, 18] {
        let Some(mut disk) = LoopDisk::new(512 << 20) else { return };
        let directory = disk.format_and_mount().to_path_buf();
        let Some(server) = PostgresServer::start_in(version, &directory) else { continue };
        server.sql("CREATE TABLE t (id int)");
        server.set("track_wal_io_timing", "on");
        let mut source = open(&server);
        if !disk.throttle(CapKind::WriteIops, 30) {
            return;
        }
        let before = take_snapshot(&mut source);
        let commits = "DO $$ BEGIN FOR i IN 1..40 LOOP INSERT INTO t VALUES (i); COMMIT; END LOOP; END $$";
        server.sql(commits);
        let after = soon("its counts", || {
            let after = take_snapshot(&mut source);
            let log = super::between(&before, &after);
            let syncs = |row: &filestats::FileInterval| row.interval.known()?.counters.sync.known();
            let of_log = log.iter().filter(|row| row.file.kind == filestats::FileKind::Log);
            let syncs: u64 = of_log.filter_map(syncs).map(|sync| sync.count).sum();
            (syncs >= 40).then_some(after)
        });
        disk.unthrottle();
        let files = super::between(&before, &after);
        let waits = wait_intervals(&before, &after, Rules::default());
        let reconciled = filestats::waits::reconcile(&waits, &files);
        let log = reconciled.iter().find(|row| row.class == WaitClass::LogSync).expect("commits wait");
        let (Figure::Known(wait), Figure::Known(stall)) = (log.wait_ns, log.stall_ns) else {
            panic!("{log:?}")
        };
        let ratio = wait as f64 / stall as f64;
        assert!(stall > 1_000_000_000, "{version}: {stall} ns of syncs on a slow disk");
        assert!((0.5..1.5).contains(&ratio), "{version}: waits {wait} ns, syncs {stall} ns");
    }
}

#[test]
fn the_profile_of_pg_wait_sampling_is_used_where_it_is_installed() {
    let Some(mut server) = PostgresServer::start(15) else { return };
    let create = "CREATE EXTENSION pg_wait_sampling";
    if let Err(error) = server.try_sql(create) {
        eprintln!("skipped: {error}");
        return;
    }
    // Created but not loaded: waits are sampled.
    assert!(!take_snapshot(&mut open(&server)).notes.is_empty());
    server.sql("ALTER SYSTEM SET shared_preload_libraries = 'pg_wait_sampling'");
    server.restart();
    server.sql("CREATE TABLE t (id int)");
    server.set("synchronous_standby_names", "nobody");
    let mut session = server.session("INSERT INTO t VALUES (1)").spawn().unwrap();
    let mut source = open(&server);
    let waited = |snapshot: &filestats::Snapshot| {
        let wait = snapshot.waits.iter().find(|wait| wait.event == "SyncRep")?;
        wait.wait_ns.known()
    };
    let before = soon("its first looks", || {
        Some(take_snapshot(&mut source)).filter(|snapshot| waited(snapshot).is_some())
    });
    std::thread::sleep(SAMPLED_EVERY * 4);
    let after = take_snapshot(&mut source);
    session.kill().and_then(|()| session.wait()).unwrap();
    let rows = wait_intervals(&before, &after, Rules::default());
    let row = rows.iter().find(|row| row.event == "SyncRep").unwrap();
    let sessions = row.interval.known().unwrap().sessions().known().unwrap();
    assert!((0.7..1.3).contains(&sessions), "{sessions} sessions");
    assert!(!after.notes.iter().any(|note| note.contains("sampled every")), "{:?}", after.notes);
}
