use super::*;
use filestats::{Figure, FileKind, Ops, WaitClass};

#[test]
fn a_restart_makes_the_interval_of_all_files_and_waits_unknown() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    let before = take_snapshot(&mut source);
    {
        let mut state = responder.state();
        state.started = "2026-11-21T10:00:00.500";
        state.ms_ticks += 60_000;
        // It has read more since the restart than before it.
        state.files[0].read = [5_000, 50_000_000, 9_000];
        state.waits[1].1 = 9_000;
    }
    let after = take_snapshot(&mut source);
    for row in intervals(&before, &after) {
        assert_eq!(reason(&row.interval), Some(Reason::Restart), "{}", row.file.path);
    }
    assert_eq!(wait(&before, &after, "PAGEIOLATCH_SH").interval.reason(), Some(Reason::Restart));
}

#[test]
fn after_a_lost_connection_the_counters_go_on() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    let before = take_snapshot(&mut source);
    responder.state().is_forgetful = true;
    let _ = source.snapshot();
    responder.state().is_forgetful = false;
    responder.state().ms_ticks += 1_000;
    responder.state().files[0].write[0] += 3;
    let after = take_snapshot(&mut source);
    assert_eq!(interval(&before, &after, "shop.mdf").known().unwrap().counters.write, Ops::timed(3, 0, 0));
    assert!(responder.state().logins.len() >= 2);
}

#[test]
fn a_detached_database_disappears_and_begins_at_zero_when_attached_again() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    let attached = take_snapshot(&mut source);
    let shop: Vec<File> = responder.state().files.drain(..2).collect();
    responder.state().ms_ticks += 1_000;
    let detached = take_snapshot(&mut source);
    assert_eq!(reason(&interval(&attached, &detached, "shop.mdf")), Some(Reason::Gone));
    {
        let mut state = responder.state();
        state.ms_ticks += 1_000;
        // The files of the database under another number, with the same handle number as before.
        state.files.extend(shop.into_iter().map(|file| File {
            database_id: 6,
            created: "2026-11-21T11:00:00.000",
            read: [20_000, 200_000_000, 40_000],
            ..file
        }));
    }
    let again = take_snapshot(&mut source);
    let data = interval(&attached, &again, "shop.mdf");
    assert_eq!(reason(&data), Some(Reason::Reopened), "more than before, and yet from zero");
    let since = interval(&detached, &again, "shop.mdf");
    assert_eq!(since.known().unwrap().counters.read, Ops::timed(20_000, 200_000_000, 40_000 * MS));
    assert_eq!(reason(&interval(&attached, &again, "tempdb.mdf")), None, "the others go on");
}

#[test]
fn a_database_that_reuses_numbers_and_file_name_is_another_one() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    let before = take_snapshot(&mut source);
    {
        let mut state = responder.state();
        state.ms_ticks += 1_000;
        state.files[0].guid = "00000000-0000-0000-0000-0000000000AA";
        state.files[0].created = "2026-11-21T12:00:00.000";
        state.files[1].created = "2026-11-21T12:00:00.000";
        state.files[0].read = [9_000, 90_000_000, 9_000];
        state.files[1].write = [9_000, 90_000_000, 9_000];
    }
    let after = take_snapshot(&mut source);
    assert_eq!(reason(&interval(&before, &after, "shop.mdf")), Some(Reason::IdentityChanged));
    assert_eq!(reason(&interval(&before, &after, "shop.ldf")), Some(Reason::Reopened), "it has no guid");
}

#[test]
fn offline_and_online_between_two_snapshots_shows_in_the_handle_or_a_counter_that_fell() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    let before = take_snapshot(&mut source);
    {
        let mut state = responder.state();
        state.ms_ticks += 1_000;
        state.files[0].handle = 0xABCD;
        state.files[0].read = [9_000, 90_000_000, 9_000];
        state.files[1].write = [3, 4_096, 1];
    }
    let after = take_snapshot(&mut source);
    assert_eq!(reason(&interval(&before, &after, "shop.mdf")), Some(Reason::Reopened));
    assert_eq!(reason(&interval(&before, &after, "shop.ldf")), Some(Reason::CounterFell));
}

#[test]
fn a_new_databases_first_interval_is_known() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    let before = take_snapshot(&mut source);
    {
        let mut state = responder.state();
        state.ms_ticks += 2_000;
        let new = File {
            database_id: 9,
            path: "D:\\data\\new.mdf".into(),
            write: [11, 90_112, 6],
            queued: [0, 5],
            ..state.files[0].clone()
        };
        state.files.push(new);
    }
    let after = take_snapshot(&mut source);
    assert_eq!(
        interval(&before, &after, "new.mdf").known().unwrap().counters.write,
        Ops::timed(11, 90_112, 6 * MS)
    );
    let queued = wait(&before, &after, "io_stall_queued_write_ms of D:\\data\\new.mdf").interval;
    assert_eq!(queued.known().unwrap().wait_ns, Figure::Known(5 * MS));
    assert!(
        responder.state().requests.last().unwrap().contains("volume_stats"),
        "its volume is not known yet"
    );
    let elsewhere = take_snapshot(&mut open(&responder));
    assert_eq!(
        reason(&interval(&before, &elsewhere, "new.mdf")),
        Some(Reason::FirstSight),
        "another process did not see that nothing was renamed"
    );
}

#[test]
fn a_file_that_is_to_move_keeps_its_counters_and_is_no_new_file() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    let before = take_snapshot(&mut source);
    // ALTER DATABASE ... MODIFY FILE: the catalog's name changes at once, the file at the next start.
    responder.state().files[0].path = "E:\\moved.mdf".into();
    responder.state().ms_ticks += 1_000;
    let after = take_snapshot(&mut source);
    assert_eq!(reason(&interval(&before, &after, "moved.mdf")), Some(Reason::FirstSight));
}

#[test]
fn cleared_waits_are_found_by_an_idle_wait_although_busy_ones_caught_up() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    let before = take_snapshot(&mut source);
    {
        let mut state = responder.state();
        state.ms_ticks += 5_000;
        state.waits[0] = ("LAZYWRITER_SLEEP", 4, 4_000, 0);
        state.waits[1] = ("PAGEIOLATCH_SH", 900, 9_000, 0);
    }
    let after = take_snapshot(&mut source);
    assert_eq!(wait(&before, &after, "PAGEIOLATCH_SH").interval.reason(), Some(Reason::StatsReset));
    assert_eq!(reason(&interval(&before, &after, "shop.mdf")), None, "files are not reset with the waits");
    responder.state().ms_ticks += 5_000;
    responder.state().waits[1].1 += 10;
    let later = take_snapshot(&mut source);
    assert_eq!(wait(&after, &later, "PAGEIOLATCH_SH").interval.known().unwrap().count, Figure::Known(10));
}

#[test]
fn without_names_files_are_shown_by_number_with_the_statement_that_grants_them() {
    let responder = server(Version::V2019);
    responder.state().sees_names = false;
    let mut source = open(&responder);
    let weak = take_snapshot(&mut source);
    let names: Vec<_> =
        weak.samples.iter().map(|sample| (sample.file.path.as_str(), sample.file.kind)).collect();
    let expected = [
        ("shop/file 1", FileKind::Data),
        ("shop/file 2", FileKind::Log),
        ("D:\\data\\tempdb.mdf", FileKind::Temp),
        ("D:\\data\\templog.ldf", FileKind::Temp),
    ];
    assert_eq!(names, expected);
    let grant =
        "names of 2 files, nor what they are for: USE master; GRANT VIEW ANY DEFINITION TO [watcher];";
    let lack = weak.notes.iter().find(|note| note.ends_with(grant));
    assert!(lack.is_some_and(|note| !source.remarks().contains(note)), "{:?}", weak.notes);
    responder.state().sees_names = true;
    responder.state().ms_ticks += 1_000;
    let granted = take_snapshot(&mut source);
    assert!(!granted.notes.iter().any(|note| note.contains("GRANT")));
    assert_eq!(
        reason(&interval(&weak, &granted, "shop.mdf")),
        Some(Reason::FirstSight),
        "its counters of months are no interval"
    );
}

#[test]
fn page_waits_are_compared_with_the_files_of_tempdb_too() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    let before = take_snapshot(&mut source);
    {
        let mut state = responder.state();
        state.ms_ticks += 10_000;
        // A wait for a page of tempdb is a page wait like any other.
        state.files[2].read = [1_010, 8_847_360, 5_007];
        state.waits[1] = ("PAGEIOLATCH_SH", 1_700, 7_600, 100);
    }
    let after = take_snapshot(&mut source);
    let waits = filestats::wait_intervals(&before, &after, Rules::default());
    let reconciled = filestats::waits::reconcile(&waits, &intervals(&before, &after));
    let reads = reconciled.iter().find(|one| one.class == WaitClass::DataRead).unwrap();
    assert_eq!((reads.wait_ns, reads.stall_ns), (Figure::Known(5 * S), Figure::Known(5 * S)));
    assert_eq!(reads.agreement, filestats::waits::Agreement::Agrees);
}
