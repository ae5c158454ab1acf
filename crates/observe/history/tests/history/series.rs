//! A stretch file by file says what its captures say two by two.

use crate::life::{Event, S, event, snapshots};
use filestats::*;
use history::History;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn is_idle(added: &Counters) -> bool {
    let timed = |ops: Ops| ops.stall_ns.known().unwrap_or(0) > 0;
    let any = timed(added.read) || timed(added.write) || added.sync.known().is_some_and(timed);
    added.operations() == 0 && !any
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_interval_of_a_file_is_that_between_the_two_snapshots(
        captures in prop::collection::vec(
            (prop_oneof![9 => 1..40 * S, 1 => Just(25 * 3600 * S)], any::<bool>(), prop::collection::vec(event(), 3)),
            2..14,
        ),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(&dir.path().join("history.db")).unwrap();
        let snapshots = snapshots(&captures);
        for snapshot in &snapshots {
            history.save_snapshot(snapshot, None).unwrap();
        }
        let series = history.series("engine:1", 0, u64::MAX).unwrap();
        prop_assert_eq!(series.course.ticks.len(), snapshots.len());
        let rules = Rules::default();
        let mut told: BTreeMap<(usize, String), Figure<Counters>> = BTreeMap::new();
        for file in 0..series.files() {
            for course in history.file_course(&series, file, rules).unwrap() {
                for step in course.steps {
                    prop_assert!(told.insert((step.at, course.file.path.clone()), step.added).is_none());
                }
            }
        }
        let mut expected = BTreeMap::new();
        let mut expected_waits = Vec::new();
        for (at, pair) in snapshots.windows(2).enumerate() {
            for row in intervals(&pair[0], &pair[1], rules) {
                let added = match row.interval {
                    Interval::Known(delta) if is_idle(&delta.counters) => continue,
                    Interval::Known(delta) => Figure::Known(delta.counters),
                    Interval::Unknown(reason) => Figure::unknown(reason),
                };
                expected.insert((at + 1, row.file.path.clone()), added);
            }
            let waits = wait_intervals(&pair[0], &pair[1], rules).into_iter();
            let busy = waits.filter(|wait| wait.interval.as_known().is_none_or(|wait| wait.count != Figure::Known(0)));
            expected_waits.extend(busy.map(|wait| (at + 1, wait.interval)));
        }
        prop_assert_eq!(told, expected);
        let waits = history.wait_courses(&series, rules).unwrap();
        let told: Vec<_> = waits.into_iter().flat_map(|wait| wait.steps).collect();
        prop_assert_eq!(told, expected_waits);
    }
}

#[test]
fn hours_are_read_by_look_ups_and_say_what_all_captures_say() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(&dir.path().join("history.db")).unwrap();
    let captures: Vec<(u64, bool, Vec<Event>)> =
        (0..72).map(|n| (1200 * S, true, vec![Event::Work(n + 1), Event::Nothing, Event::Nothing])).collect();
    for snapshot in snapshots(&captures) {
        history.save_snapshot(&snapshot, None).unwrap();
    }
    // From 02:13:20 on: three captures an hour for a day.
    let series = history.hourly("engine:1", 0, u64::MAX, |hour| hour == 5).unwrap();
    let hours: Vec<u64> =
        series.course.ticks.iter().map(|tick| tick.taken_unix_ns / (3600 * S) % 24).collect();
    assert_eq!(hours, [5, 6]);
    let file = series.find("engine", "/data/0").unwrap();
    let course = history.file_course(&series, file, Rules::default()).unwrap().remove(0);
    // Captures at 05:13, 05:33, 05:53 and 06:13 are numbers 8 to 11 (from 0).
    let reads: Vec<u64> = course.steps.iter().map(|step| step.added.known().unwrap().read.count).collect();
    assert_eq!(reads, [10 + 11 + 12]);
    assert_eq!(course.known_ns, 3600 * S);
}

#[test]
fn waits_are_read_from_the_last_row_before_the_stretch_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let mut history = History::open(&path).unwrap();
    let captures: Vec<_> =
        (0..30).map(|_| (15 * S, false, vec![Event::Work(10), Event::Nothing, Event::Nothing])).collect();
    let all = snapshots(&captures);
    for snapshot in &all {
        history.save_snapshot(snapshot, None).unwrap();
    }
    let waited = |from: usize| {
        let series = history.series("engine:1", all[from].taken_unix_ns, u64::MAX).unwrap();
        history.wait_courses(&series, Rules::default()).map(|waits| waits[0].steps.len())
    };
    // Reading these rows finds text instead of a number.
    let rows = rusqlite::Connection::open(&path).unwrap();
    rows.execute("UPDATE wait_changes SET wait_ns = 'spoilt' WHERE capture_id <= 20", []).unwrap();
    assert_eq!(waited(20).unwrap(), 9);
    assert!(waited(19).is_err());
}

#[test]
fn the_histogram_of_a_stretch_is_what_was_done_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(&dir.path().join("history.db")).unwrap();
    let events = |at: usize| if at == 30 { Event::Restart } else { Event::Work(1) };
    let captures: Vec<_> =
        (0..60).map(|at| (15 * S, true, vec![events(at), Event::Nothing, Event::Nothing])).collect();
    let mut all = snapshots(&captures);
    for (at, snapshot) in all.iter_mut().enumerate() {
        // One read a capture, each slower than the one before; the restart begins again at zero.
        let mut latencies = Latencies::default();
        (if at < 30 { 0 } else { 30 }..=at).for_each(|slow| latencies.read.record(1_000 << (slow / 10)));
        snapshot.samples[0].latencies = Some(latencies);
    }
    for snapshot in &all {
        history.save_snapshot(snapshot, None).unwrap();
    }
    let stretch = |from: usize, until: usize| {
        let series = history.series("engine:1", all[from].taken_unix_ns, all[until].taken_unix_ns).unwrap();
        let file = series.find("engine", "/data/0").unwrap();
        let read = history.file_latencies(&series, file, Meaning::REQUESTS).unwrap().unwrap().read;
        (read.count(), read.at_most_ns(99.0).unwrap() / 1_000)
    };
    assert_eq!(stretch(10, 20), (10, 4), "the last one alone is above 2 us");
    // When the I/O was done that the restarted file had at its first capture is unknown.
    let (count, at_most) = stretch(20, 50);
    assert!(count == 9 + 20 && (16..=40).contains(&at_most), "{count} {at_most}");
    let series = history.series("engine:1", 0, u64::MAX).unwrap();
    let other = series.find("engine", "/data/1").unwrap();
    assert_eq!(history.file_latencies(&series, other, Meaning::REQUESTS).unwrap(), None, "it keeps none");
}
