//! The server's counters against those of the device and of the process source.

use super::counts::{TABLE, written};
use super::{between, on, on_each, open, run, soon, take_snapshot};
use collect::diskstats::Disk;
use filestats::{Counts, Durable, FileKind, Time};
use testbed::{LoopDisk, PostgresServer};
use workload::CapKind;

#[test]
fn a_table_that_is_read_whole_is_read_once() {
    on_each(|version, server| {
        server.sql(TABLE);
        // The cache is empty.
        server.restart();
        let mut source = open(server);
        let before = take_snapshot(&mut source);
        run(server, "SET max_parallel_workers_per_gather = 0; SELECT count(*) FROM t");
        let rows = between(&before, &take_snapshot(&mut source));
        let reads = rows.iter().filter_map(|row| row.interval.known()).map(|delta| delta.counters.read);
        let (count, bytes) = reads.fold((0, 0), |sum, read| (sum.0 + read.count, sum.1 + read.bytes));
        let table: u64 = server.sql("SELECT pg_relation_size('t')").parse().unwrap();
        // And some of the catalogs.
        assert!(
            (table..table + (2 << 20)).contains(&bytes),
            "{version}: {bytes} bytes of a table of {table}"
        );
        let a_block_each = count * 8192 == bytes;
        assert_eq!(a_block_each, version < 18, "{version}: {count} reads of {bytes} bytes");
    });
}

#[test]
fn samples_say_what_they_count_and_time() {
    on(&[15, 17, 18], |version, server| {
        let meaning_on = |server: &PostgresServer, path: &str| {
            let snapshot = take_snapshot(&mut open(server));
            snapshot
                .samples
                .iter()
                .find(|sample| sample.file.path == path)
                .map(|sample| sample.meaning)
                .unwrap()
        };
        let meaning = |path| meaning_on(server, path);
        let reads = if version == 15 { "database/postgres" } else { "client backend/relation/normal" };
        if version < 18 {
            assert_eq!(meaning(reads).counts, Counts::Blocks);
            assert_eq!(meaning("wal").counts, Counts::Requests);
            assert_eq!(meaning(reads).read_time, Time::ToCompletion);
        } else {
            assert_eq!(meaning(reads).counts, Counts::Requests);
            assert_eq!(meaning(reads).read_time, Time::Waiting, "io_method is worker");
            assert_eq!(
                meaning("checkpointer/relation/normal").read_time,
                Time::ToCompletion,
                "it never reads"
            );
            assert_eq!(meaning("client backend/wal/normal").read_time, Time::ToCompletion);
            server.sql("ALTER SYSTEM SET io_method = 'sync'");
            server.restart();
            assert_eq!(meaning_on(server, reads).read_time, Time::ToCompletion);
        }
        let log = if version < 18 { "wal" } else { "client backend/wal/normal" };
        assert_eq!(meaning_on(server, log).durable, Durable::BySync);
        server.sql("ALTER SYSTEM SET wal_sync_method = 'open_datasync'");
        server.restart();
        assert_eq!(meaning_on(server, log).durable, Durable::ByItself);
        assert_eq!(meaning_on(server, reads).durable, Durable::BySync);
    });
}

/// The device writes more than the server: the file system's journal and inodes, and up to 17 the zeros of new segments of
/// the log.
const AMPLIFICATION_MAX: f64 = 1.3;

#[test]
fn what_pgbench_writes_reaches_the_device() {
    for version in [15, 16, 17, 18] {
        let Some(mut disk) = LoopDisk::new(1 << 30) else { return };
        let directory = disk.format_and_mount().to_path_buf();
        let Some(server) = PostgresServer::start_in(version, &directory) else { continue };
        // With many small commits, most syncs would be of the file system's journal.
        server.set("synchronous_commit", "off");
        server.set("autovacuum", "off");
        server.pgbench(&["-i", "-q", "-s", "10"]);
        // The log reuses existing segments.
        server.sql("CHECKPOINT");
        server.sql("SELECT pg_switch_wal()");
        server.sql("CHECKPOINT");
        if !disk.throttle(CapKind::WriteBytes, 60 << 20) {
            return;
        }
        let (mut source, mut device) = (open(&server), Disk::open(disk.number()).unwrap());
        let synced = || std::process::Command::new("sync").arg("-f").arg(&directory).status().unwrap();
        synced();
        let (before, device_before) = (take_snapshot(&mut source), take_snapshot(&mut device));
        server.pgbench(&["-c", "4", "-t", "2000", "-N"]);
        run(&server, "CHECKPOINT");
        synced();
        let files = soon("the checkpoint's counts", || {
            let rows = between(&before, &take_snapshot(&mut source));
            (written(&rows, FileKind::Data) > 8 << 20).then_some(rows)
        });
        let below = written(&between(&device_before, &take_snapshot(&mut device)), FileKind::Device);
        let ours = written(&files, FileKind::Data) + written(&files, FileKind::Log);
        let amplification = below as f64 / ours as f64;
        eprintln!("{version}: {ours} bytes by the server, {below} by the device: {amplification:.2}");
        assert!((0.95..AMPLIFICATION_MAX).contains(&amplification), "{version}: {ours} {below}");
    }
}
