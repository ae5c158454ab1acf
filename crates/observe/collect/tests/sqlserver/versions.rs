use super::*;
use filestats::{Cache, Counters, Figure, FileKind, Meaning, Ops, WaitClass};

const ALL: [Version; 5] =
    [Version::V2012, Version::V2014, Version::V2019, Version::V2022, Version::AzureDatabase];

#[test]
fn every_version_gives_each_files_counters_exactly() {
    for version in ALL {
        let responder = server(version);
        let snapshot = take_snapshot(&mut open(&responder));
        let name = format!("sqlserver 127.0.0.1:{}", responder.port);
        assert_eq!(snapshot.source, format!("sqlserver:127.0.0.1:{}", responder.port));
        assert_eq!(snapshot.samples.len(), 4, "{version:?}");
        let data = sample(&snapshot, "shop.mdf");
        let unknown = Figure::unknown(Reason::NotCounted);
        let expected = Counters {
            read: Ops::timed(1_000, 8_192_000, 2_500 * MS),
            write: Ops::timed(400, 3_276_800, 800 * MS),
            sync: Figure::unknown(Reason::NotCounted),
            busy_ns: unknown,
        };
        assert_eq!(data.counters, expected, "{version:?}");
        assert_eq!(data.size_bytes, Figure::Known(5_000_000_000_000));
        assert_eq!(data.meaning, Meaning { cache: Cache::Missed, ..Meaning::REQUESTS });
        assert_eq!(
            (data.file.instance.as_str(), data.file.path.as_str()),
            (name.as_str(), "D:\\data\\shop.mdf")
        );
        assert_eq!(data.file.database.as_deref(), Some("shop"));
        assert_eq!(data.file.database_id, Some(if version == Version::AzureDatabase { 7 } else { 5 }));
        assert_eq!(data.file.file_id, "6F9619FF-8B86-D011-B42D-00C04FC964FF");
        let log = sample(&snapshot, "shop.ldf");
        assert_eq!(log.counters.write, Ops::timed(90, 368_640, 45 * MS), "the second row, with a NULL in it");
        assert_eq!(log.file.file_id, format!("{}:2", if version == Version::AzureDatabase { 7 } else { 5 }));
        assert_eq!(data.epoch.run, "DB1 started 2026-11-20T08:00:00.123");
        let kinds =
            ["shop.mdf", "shop.ldf", "tempdb.mdf", "templog.ldf"].map(|end| sample(&snapshot, end).file.kind);
        assert_eq!(kinds, [FileKind::Data, FileKind::Log, FileKind::Temp, FileKind::Temp]);
        assert_eq!(snapshot.clock_ns, 90_000 * S, "{version:?}");
        assert!(snapshot.complete.is_some());
    }
}

#[test]
fn waits_are_those_of_io_without_the_wait_for_a_processor() {
    for version in ALL {
        let snapshot = take_snapshot(&mut open(&server(version)));
        let waits: Vec<_> = snapshot.waits.iter().filter(|wait| wait.class != WaitClass::Throttled).collect();
        let figures: Vec<_> =
            waits.iter().map(|wait| (wait.event.as_str(), wait.class, wait.count, wait.wait_ns)).collect();
        let expected = [
            ("PAGEIOLATCH_SH", WaitClass::DataRead, Figure::Known(700), Figure::Known(2_500 * MS)),
            ("WRITELOG", WaitClass::LogSync, Figure::Known(90), Figure::Known(45 * MS)),
        ];
        assert_eq!(figures, expected, "{version:?}");
    }
}

#[test]
fn what_was_throttled_is_told_from_2014_on() {
    for version in ALL {
        let snapshot = take_snapshot(&mut open(&server(version)));
        let throttled = snapshot.waits.iter().filter(|wait| wait.class == WaitClass::Throttled);
        let figures: Vec<_> = throttled.map(|wait| (wait.event.as_str(), wait.wait_ns)).collect();
        let expected = [("io_stall_queued_read_ms of D:\\data\\shop.mdf", Figure::Known(300 * MS))];
        assert_eq!(figures, if version == Version::V2012 { &[][..] } else { &expected }, "{version:?}");
    }
}

#[test]
fn azure_is_queried_for_the_views_of_its_database() {
    for version in ALL {
        let responder = server(version);
        take_snapshot(&mut open(&responder));
        let state = responder.state();
        let single = version == Version::AzureDatabase;
        let has_queried = |text: &str| state.requests.iter().any(|sql| sql.contains(text));
        for setting in ["SET LOCK_TIMEOUT 1000", "SERVERPROPERTY('EngineEdition')", "DEADLOCK_PRIORITY LOW"] {
            assert!(state.requests[0].contains(setting), "{setting}");
        }
        assert!(
            has_queried("sys.dm_io_virtual_file_stats(NULL, NULL)") && has_queried("sqlserver_start_time")
        );
        for (text, of_single) in [
            ("sys.master_files", false),
            ("sys.dm_os_volume_stats", false),
            ("sys.dm_os_wait_stats", false),
            ("FROM sys.database_files", true),
            ("tempdb.sys.database_files", true),
            ("sys.dm_db_wait_stats", true),
            ("IN (DB_ID(), 2, 0)", true),
        ] {
            assert_eq!(has_queried(text), single == of_single, "{version:?}: {text}");
        }
        // It only reads.
        for word in ["INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "EXEC", "DBCC"] {
            assert!(!state.requests.iter().any(|sql| sql.split_whitespace().any(|it| it == word)), "{word}");
        }
        assert_eq!(state.logins[0].tds_version, 0x7400_0004);
        assert_eq!(
            (state.logins[0].user.as_str(), state.logins[0].program.as_str()),
            ("watcher", "headroom")
        );
    }
}

#[test]
fn an_interval_is_measured_by_the_servers_clock() {
    for version in ALL {
        let responder = server(version);
        let mut source = open(&responder);
        let before = take_snapshot(&mut source);
        {
            let mut state = responder.state();
            state.ms_ticks += 10_000;
            state.files[0].read = [1_300, 8_192_000 + 300 * 8192, 2_500 + 100];
            state.files[0].queued = [340, 0];
            state.waits[1] = ("PAGEIOLATCH_SH", 800, 2_600 + 130, 100 + 30);
        }
        let after = take_snapshot(&mut source);
        let interval = interval(&before, &after, "shop.mdf");
        let delta = interval.known().unwrap();
        assert_eq!(delta.elapsed_ns, 10 * S, "{version:?}");
        assert_eq!(delta.counters.read, Ops::timed(300, 300 * 8192, 100 * MS));
        assert_eq!(delta.counters.write, Ops::timed(0, 0, 0));
        assert_eq!(delta.read_latency_ns(), Figure::Known(100.0 * 1e6 / 300.0), "below a millisecond");
        let latch = wait(&before, &after, "PAGEIOLATCH_SH").interval.known().unwrap();
        assert_eq!((latch.count, latch.wait_ns), (Figure::Known(100), Figure::Known(100 * MS)));
        if version != Version::V2012 {
            let queued = wait(&before, &after, "io_stall_queued_read_ms of D:\\data\\shop.mdf").interval;
            assert_eq!(queued.known().unwrap().wait_ns, Figure::Known(40 * MS));
        }
        assert_eq!(responder.state().logins.len(), 1, "one connection");
        let volumes = responder.state().requests.iter().filter(|sql| sql.contains("volume_stats")).count();
        assert_eq!(volumes, usize::from(version != Version::AzureDatabase), "asked once");
    }
}

#[test]
fn the_32_bit_clock_of_old_versions_wraps_without_effect() {
    // sample_ms becomes negative after 24.9 days and is zero again after 49.7.
    for edge in [1u64 << 31, 1 << 32, 3 << 32] {
        for version in [Version::V2012, Version::V2014] {
            let responder = server(version);
            let mut source = open(&responder);
            responder.state().ms_ticks = edge - 1_000;
            let before = take_snapshot(&mut source);
            responder.state().ms_ticks = edge + 4_000;
            let after = take_snapshot(&mut source);
            assert_eq!(interval(&before, &after, "shop.mdf").known().unwrap().elapsed_ns, 5 * S);
            assert_eq!(after.clock_ns, (edge + 4_000) * MS);
        }
    }
}

#[test]
fn each_file_has_the_volume_that_the_server_reports() {
    let snapshot = take_snapshot(&mut open(&server(Version::V2019)));
    assert_eq!(sample(&snapshot, "shop.ldf").file.drive.as_deref(), Some("D:\\logs\\"));
    assert_eq!(sample(&snapshot, "shop.mdf").file.drive.as_deref(), Some("D:\\"));
    assert_eq!(
        sample(&take_snapshot(&mut open(&server(Version::AzureDatabase))), "shop.mdf").file.drive,
        None
    );
}

#[test]
fn milliseconds_and_pushed_reads_are_remarks() {
    let notes = |version| take_snapshot(&mut open(&server(version))).notes;
    assert!(notes(Version::V2019)[0].contains("whole milliseconds"));
    assert!(notes(Version::V2022).iter().any(|note| note.starts_with("28 reads") && note.contains("pushed")));
    assert_eq!(notes(Version::V2019).len(), 1);
    for version in ALL {
        let mut source = open(&server(version));
        let notes = take_snapshot(&mut source).notes;
        assert!(
            !notes.is_empty() && notes.iter().all(|note| source.remarks().contains(note)),
            "{version:?}: {notes:?}"
        );
    }
}

#[test]
fn thousands_of_files_in_hundreds_of_packets_are_read() {
    let responder = server(Version::V2019);
    let file = responder.state().files[0].clone();
    let many = (0..3_000).map(|at| File {
        database_id: 10 + at / 2,
        file_id: 1 + at % 2,
        path: format!("D:\\many\\{at}.mdf"),
        read: [at, at * 8192, at / 3],
        ..file.clone()
    });
    responder.state().files = many.collect();
    let snapshot = take_snapshot(&mut open(&responder));
    assert_eq!(snapshot.samples.len(), 3_000);
    for at in [0u64, 1, 1_499, 2_999] {
        let read = sample(&snapshot, &format!("\\{at}.mdf")).counters.read;
        assert_eq!(read, Ops::timed(at, at * 8192, at / 3 * MS));
    }
}
