//! The counters.

use super::{between, interval, on_each, open, run, soon, take_snapshot};
use filestats::{Counters, FileKind, Snapshot};

/// A table of about 10 MiB, larger than the cache of a test's server.
pub const TABLE: &str =
    "CREATE TABLE t AS SELECT g AS id, repeat('x', 900) AS filler FROM generate_series(1, 10000) g";

fn sum(snapshot: &Snapshot, kind: FileKind, figure: impl Fn(&Counters) -> u64) -> u64 {
    snapshot
        .samples
        .iter()
        .filter(|sample| sample.file.kind == kind)
        .map(|sample| figure(&sample.counters))
        .sum()
}

#[test]
fn counts_equal_the_servers_own_views() {
    on_each(|version, server| {
        server.sql(&format!("{TABLE}; CHECKPOINT"));
        let mut source = open(server);
        let own = |statement: &str| server.sql(statement).parse::<u64>().unwrap();
        // Counters go on: they are equal as soon as nothing happens between the two.
        let (reads, writes) = match version {
            15 => (
                "SELECT sum(blks_read) FROM pg_stat_database",
                "SELECT buffers_checkpoint + buffers_clean + buffers_backend FROM pg_stat_bgwriter",
            ),
            _ => (
                "SELECT sum(reads) FROM pg_stat_io WHERE object = 'relation'",
                "SELECT sum(coalesce(writes, 0) + coalesce(extends, 0)) FROM pg_stat_io WHERE object = 'relation'",
            ),
        };
        let log = match version {
            18 => "SELECT sum(writes) FROM pg_stat_io WHERE object = 'wal'",
            _ => "SELECT wal_write FROM pg_stat_wal",
        };
        for (kind, counter, statement) in [
            (FileKind::Data, (|counters| counters.read.count) as fn(&Counters) -> u64, reads),
            (FileKind::Data, |counters| counters.write.count, writes),
            (FileKind::Log, |counters| counters.write.count, log),
        ] {
            soon(statement, || {
                let (before, ours, after) =
                    (own(statement), sum(&take_snapshot(&mut source), kind, counter), own(statement));
                (before == after && before > 0).then(|| assert_eq!(ours, before, "{version}: {statement}"))
            });
        }
    });
}

#[test]
fn load_shows_in_its_interval() {
    on_each(|version, server| {
        let mut source = open(server);
        let before = take_snapshot(&mut source);
        run(server, &format!("{TABLE}; CHECKPOINT"));
        let rows = soon("the checkpoint's writes", || {
            let rows = between(&before, &take_snapshot(&mut source));
            let path = if version == 15 { "checkpointer" } else { "checkpointer/relation/normal" };
            let written = interval(&rows, path).known()?.counters.write;
            (written.bytes > 5 << 20).then_some(rows)
        });
        let log: u64 = rows
            .iter()
            .filter(|row| row.file.kind == FileKind::Log)
            .filter_map(|row| row.interval.known())
            .map(|delta| delta.counters.write.bytes)
            .sum();
        assert!((9 << 20..40 << 20).contains(&log), "{version}: {log} bytes of log");
    });
}

/// Bytes that the server counted as written to files of a kind.
pub fn written(rows: &[filestats::FileInterval], kind: FileKind) -> u64 {
    let of_kind = rows.iter().filter(|row| row.file.kind == kind).filter_map(|row| row.interval.known());
    of_kind.map(|delta| delta.counters.write.bytes).sum()
}

#[test]
fn an_index_rebuild_shows_in_its_interval_and_not_in_the_next() {
    on_each(|version, server| {
        // Of incompressible values.
        server.sql("CREATE TABLE t AS SELECT md5(g::text) AS key FROM generate_series(1, 200000) g");
        server.sql("CREATE INDEX i ON t (key); CHECKPOINT");
        let mut source = open(server);
        let mut before = take_snapshot(&mut source);
        run(server, "SET maintenance_work_mem = '1MB'; REINDEX INDEX i");
        let rebuild = between(&before, &take_snapshot(&mut source));
        let (log, temp) = (written(&rebuild, FileKind::Log), written(&rebuild, FileKind::Temp));
        let index: u64 = server.sql("SELECT pg_relation_size('i')").parse().unwrap();
        assert!(index > 8 << 20, "{index}");
        // No version counts the pages of a new index (docs/how-to/source-postgres.md).
        assert!(written(&rebuild, FileKind::Data) < index / 10, "{version}");
        // Pages are logged without their free space.
        assert!(
            (index * 4 / 5..3 * index).contains(&log),
            "{version}: {log} bytes of log for an index of {index}"
        );
        assert!(temp > index / 2, "{version}: {temp} bytes sorted on disk for an index of {index}");
        before = take_snapshot(&mut source);
        run(server, "SELECT 1");
        let everyday = between(&before, &take_snapshot(&mut source));
        let (log, temp) = (written(&everyday, FileKind::Log), written(&everyday, FileKind::Temp));
        assert!(log < index / 10 && temp == 0, "{version}: {log} {temp}");
    });
}

#[test]
fn a_checkpoint_shows_as_the_checkpointers_writes_and_syncs() {
    on_each(|version, server| {
        server.sql(&format!("{TABLE}; CHECKPOINT; UPDATE t SET id = -id"));
        let mut source = open(server);
        let before = take_snapshot(&mut source);
        server.sql("CHECKPOINT");
        let path = if version == 15 { "checkpointer" } else { "checkpointer/relation/normal" };
        soon("its writes and syncs", || {
            let rows = between(&before, &take_snapshot(&mut source));
            let delta = interval(&rows, path).known()?;
            let syncs = delta.counters.sync.known()?.count;
            // 15 counts sync phases, later versions files.
            let enough = if version == 15 { syncs == 1 } else { syncs > 0 };
            (delta.counters.write.bytes > 8 << 20 && enough).then_some(())
        });
    });
}

/// Bytes that processes wrote to files and pipes, by the kernel: wchar of proc_pid_io(5), which does not count sockets.
fn written_by(processes: &[u32]) -> u64 {
    let of = |pid: &u32| {
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        io.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse::<u64>().ok()).unwrap_or(0)
    };
    processes.iter().map(of).sum()
}

#[test]
fn bytes_of_the_log_are_near_what_the_kernel_saw_written() {
    on_each(|version, server| {
        server.set("autovacuum", "off");
        server.set("bgwriter_lru_maxpages", "0");
        server.sql("CREATE TABLE few (id int); CHECKPOINT");
        let mut source = open(server);
        if std::fs::read(format!("/proc/{}/io", server.processes()[0])).is_err() {
            eprintln!("skipped: the kernel's count of others' writes cannot be read here");
            return;
        }
        let (before, before_bytes) = (take_snapshot(&mut source), written_by(&server.processes()));
        // The session stays so that its bytes can be read, and ends so that it reports its counts.
        let commits = "DO $$ BEGIN FOR i IN 1..600 LOOP INSERT INTO few VALUES (i); COMMIT; END LOOP; END $$";
        let mut session = server.session(commits);
        let mut session = session.args(["-c", "SELECT pg_sleep(60)"]).spawn().unwrap();
        let asleep = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        let pid = soon("the commits", || Some(server.sql(asleep)).filter(|pid| !pid.is_empty()));
        let kernel = written_by(&server.processes()) - before_bytes;
        run(server, &format!("SELECT pg_terminate_backend({pid})"));
        session.wait().unwrap();
        let rows = between(&before, &take_snapshot(&mut source));
        let ours = written(&rows, FileKind::Log);
        let ratio = ours as f64 / kernel as f64;
        eprintln!("{version}: {ours} bytes of log, {kernel} by the kernel's count");
        assert!((0.9..1.1).contains(&ratio), "{version}: {ours} bytes, the kernel has {kernel}");
    });
}
