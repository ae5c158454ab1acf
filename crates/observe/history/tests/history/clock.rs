//! A clock that was a year ahead for a while: what was kept meanwhile hides nothing, and is named.

use crate::life::{Event, S, snapshots};
use filestats::{Interval, Rules};
use history::{CaptureFilter, History, IntervalFilter};

const YEAR_S: u64 = 366 * 24 * 3600;
const EVERY_S: u64 = 15;

fn now_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_nanos()).unwrap()
}

/// Nine captures that end now, the three in the middle of which are dated a year ahead.
fn with_a_year_ahead(path: &std::path::Path) -> History {
    let mut history = History::open(path).unwrap();
    let mut all = snapshots(&vec![(EVERY_S * S, true, vec![Event::Work(7); 3]); 9]);
    let begin_ns = now_ns() - 9 * EVERY_S * S;
    for (at, snapshot) in all.iter_mut().enumerate() {
        let ahead_s = if (3..6).contains(&at) { YEAR_S } else { 0 };
        snapshot.taken_unix_ns = begin_ns + (at as u64 * EVERY_S + ahead_s) * S;
        history.save_snapshot(snapshot, None).unwrap();
    }
    history
}

#[test]
fn what_is_dated_in_the_future_hides_nothing_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let history = with_a_year_ahead(&dir.path().join("history.db"));
    let ids =
        |limit: usize| -> Vec<i64> { history.entries(limit).unwrap().iter().map(|entry| entry.id).collect() };
    assert_eq!(ids(3), [9, 8, 7], "the newest that were recorded");
    assert_eq!(ids(99), [9, 8, 7, 3, 2, 1, 6, 5, 4], "and those of the wrong clock last");
    let future = history.future_entries().unwrap().unwrap();
    assert_eq!(future.entries, 3);
    assert!(future.latest_unix_ns > now_ns() + (YEAR_S - 3600) * S);
    let source = history.sources().unwrap().remove(0);
    assert!(source.last_unix_ns <= now_ns(), "analyze ends with what is newest");
}

#[test]
fn intervals_across_a_clock_that_was_ahead_are_what_lies_between() {
    let dir = tempfile::tempdir().unwrap();
    let history = with_a_year_ahead(&dir.path().join("history.db"));
    let newest = history.captures(&CaptureFilter::default()).unwrap();
    let reads = |later: usize, earlier: usize| -> u64 {
        let (filter, rules) = (IntervalFilter::default(), Rules::default());
        let rows = history.intervals_between(newest[earlier].id, newest[later].id, &filter, rules).unwrap();
        let Interval::Known(delta) = &rows[0].interval.interval else { panic!("{rows:?}") };
        assert_eq!(
            delta.elapsed_ns,
            (earlier - later) as u64 * EVERY_S * S,
            "by the clock that is never set"
        );
        delta.counters.read.count
    };
    assert_eq!(reads(0, 1), 7);
    assert_eq!(reads(3, 4), 7, "within the wrong time");
    assert_eq!(reads(2, 3), 7, "when the clock was set back");
    assert_eq!(reads(0, 8), 8 * 7);
}

#[test]
fn a_history_whose_clock_is_behind_now_is_read_in_the_order_of_its_dates() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(&dir.path().join("history.db")).unwrap();
    let mut all = snapshots(&vec![(EVERY_S * S, true, vec![Event::Work(7); 3]); 3]);
    for snapshot in &mut all {
        snapshot.taken_unix_ns += (now_ns() / S + YEAR_S) * S;
        history.save_snapshot(snapshot, None).unwrap();
    }
    let ids: Vec<i64> = history.entries(2).unwrap().iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [3, 2]);
    let source = history.sources().unwrap().remove(0);
    assert_eq!(source.last_unix_ns, all[2].taken_unix_ns);
}
