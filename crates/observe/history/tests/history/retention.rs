//! Retention: what stays is as it was, and every difference is the sum of those that lay between.

use crate::life::{Event, S, event, snapshots};
use filestats::*;
use history::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;
use tempfile::TempDir;

const EVERY_S: u64 = 15;
const STRETCH_S: u64 = 300;

fn history() -> (TempDir, History) {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(&dir.path().join("history.db")).unwrap();
    (dir, history)
}

fn one_in_five_minutes() -> Retention {
    Retention(vec![RetentionStep { age: Duration::ZERO, every: Duration::from_secs(STRETCH_S) }])
}

fn thin_all(history: &mut History, retention: &Retention, now_ns: u64) -> usize {
    let mut removed = 0;
    loop {
        let thinned = history.apply_retention(retention, now_ns).unwrap();
        removed += thinned.captures;
        if !thinned.more {
            return removed;
        }
    }
}

/// A file of a process that is there in the captures of a range, reading all the while.
fn of_process(pid: usize, reads: u64) -> Sample {
    let file = FileIdentity {
        instance: format!("pid {pid} (worker)"),
        database: None,
        database_id: None,
        file_id: "1".into(),
        kind: FileKind::Data,
        path: "/data/shared".into(),
        drive: None,
        handle: None,
        object: None,
    };
    Sample {
        file: file.into(),
        epoch: Epoch::for_run(format!("run {pid}")),
        meaning: Meaning::REQUESTS,
        counters: Counters { read: Ops::timed(reads, reads * 4096, reads * 31), ..Counters::ZERO },
        size_bytes: Figure::Known(1),
        latencies: None,
    }
}

/// Captures of an engine whose files do nothing.
fn idle(captures: usize) -> Vec<Snapshot> {
    snapshots(&vec![(EVERY_S * S, true, vec![Event::Nothing; 3]); captures])
}

/// A process begins in each capture and lives for `lives` captures, reading 3 times before the first sample and once
/// before each other.
fn with_a_process_a_capture(captures: usize, lives: usize) -> Vec<Snapshot> {
    let mut all = idle(captures);
    for (at, snapshot) in all.iter_mut().enumerate() {
        let there = (at + 1).saturating_sub(lives)..=at;
        snapshot.samples.extend(there.map(|began| of_process(began, 3 + (at - began) as u64)));
    }
    all
}

/// The captures that there are, the oldest first.
fn remaining(history: &History) -> Vec<CaptureId> {
    let captures = history.captures(&CaptureFilter::default()).unwrap();
    captures.into_iter().rev().map(|capture| capture.id).collect()
}

fn save(history: &mut History, all: &[Snapshot]) {
    for some in all.chunks(500) {
        let some: Vec<_> = some.iter().map(|snapshot| (snapshot, None)).collect();
        history.save_snapshots(&some).unwrap();
    }
}

/// The I/O of each file in an interval, and why a part of it is unknown.
type FileTotals = BTreeMap<(i64, String), (Option<Counters>, BTreeSet<Reason>)>;
type WaitTotals = BTreeMap<i64, (Option<(Figure<u64>, Figure<u64>)>, BTreeSet<Reason>)>;

/// The sums of all intervals of a history, each added to the interval between two of `kept` that contains it.
fn totals(history: &History, kept: &[CaptureId]) -> (FileTotals, WaitTotals) {
    let series = history.series("engine:1", 0, u64::MAX).unwrap();
    let ids = remaining(history);
    let end = |at: usize| kept.iter().find(|id| **id >= ids[at]).unwrap().0;
    let (mut files, mut waited) = (FileTotals::new(), WaitTotals::new());
    let rules = Rules::default();
    for course in (0..series.files()).flat_map(|file| history.file_course(&series, file, rules).unwrap()) {
        for step in course.steps {
            let key = (end(step.at), format!("{}{}", course.file.instance, course.file.path));
            let (known, unknown) = files.entry(key).or_default();
            match step.added {
                Figure::Known(added) => *known = Some(known.map_or(added, |sum| sum.followed_by(added))),
                Figure::Unknown { unknown: reason } => drop(unknown.insert(reason)),
            }
        }
    }
    for (at, added) in history.wait_courses(&series, rules).unwrap().into_iter().flat_map(|wait| wait.steps) {
        let (known, unknown) = waited.entry(end(at)).or_default();
        let plus = |a: Figure<u64>, b: Figure<u64>| a.zip(b, u64::saturating_add);
        match added {
            Figure::Known(WaitDelta { count, wait_ns, .. }) => {
                let sum = known.map_or((count, wait_ns), |sum| (plus(sum.0, count), plus(sum.1, wait_ns)));
                *known = Some(sum);
            }
            Figure::Unknown { unknown: reason } => drop(unknown.insert(reason)),
        }
    }
    (files, waited)
}

/// Keeps the snapshots in two histories, thins one of them, from rows and from blocks, and compares; the captures that
/// stay.
#[track_caller]
fn thinned_and_compared(all: &[Snapshot]) -> Vec<CaptureId> {
    let packed = thinned_from(all, Some(1));
    let kept = thinned_from(all, None);
    assert_eq!(packed, kept);
    kept
}

#[track_caller]
fn thinned_from(all: &[Snapshot], packed: Option<usize>) -> Vec<CaptureId> {
    let ((_a, mut whole), (_b, mut thinned)) = (history(), history());
    save(&mut whole, all);
    save(&mut thinned, all);
    if let Some(least) = packed {
        thinned.pack(least, |_, _| ()).unwrap();
    }
    thin_all(&mut thinned, &one_in_five_minutes(), u64::MAX);
    let kept = remaining(&thinned);
    for id in &kept {
        let (as_it_is, as_it_was) = (thinned.snapshot(*id).unwrap(), whole.snapshot(*id).unwrap());
        assert_eq!(as_it_is, as_it_was);
    }
    let ((files_whole, waits_whole), (files, waits)) = (totals(&whole, &kept), totals(&thinned, &kept));
    for key in files_whole.keys().chain(files.keys()) {
        assert_eq!(files.get(key), files_whole.get(key), "{key:?}");
    }
    assert_eq!(waits, waits_whole);
    kept
}

#[test]
fn captures_are_thinned_to_one_in_five_minutes_however_many_processes_come_and_go() {
    const CAPTURES: usize = 1200;
    for lives in [1, 7, 40] {
        let (_dir, mut history) = history();
        let all = with_a_process_a_capture(CAPTURES, lives);
        save(&mut history, &all);
        let removed = thin_all(&mut history, &one_in_five_minutes(), u64::MAX);
        let kept = remaining(&history);
        assert_eq!(removed + kept.len(), all.len());
        assert!(kept.len() <= CAPTURES / 20 + 2, "one of each stretch, and the newest: {}", kept.len());
        let reads: u64 = totals(&history, &kept)
            .0
            .values()
            .filter_map(|(known, _)| *known)
            .map(|known| known.read.count)
            .sum();
        let one = |began: usize| 3 + (lives - 1).min(CAPTURES - 1 - began) as u64;
        assert_eq!(
            reads,
            (1..CAPTURES).map(one).sum::<u64>() + one(0) - 3,
            "but what the first had before the first look"
        );
    }
}

#[test]
fn what_came_and_went_between_two_captures_that_stay_keeps_its_counters() {
    let mut all = idle(45);
    // Promised to be all that there is, and then not: what it had before it was first seen is unknown.
    for complete in [true, false] {
        for (at, snapshot) in all.iter_mut().enumerate() {
            snapshot.samples.truncate(3);
            snapshot.complete = complete.then(|| Epoch::for_run("of the source"));
            if (29..33).contains(&at) {
                snapshot.samples.push(of_process(1, 10 + at as u64));
            }
        }
        let kept = thinned_and_compared(&all);
        assert!(kept.len() <= 5, "{kept:?}");
        let (_dir, mut history) = history();
        save(&mut history, &all);
        thin_all(&mut history, &one_in_five_minutes(), u64::MAX);
        let (files, _) = totals(&history, &kept);
        let of_process: Vec<_> = files.iter().filter(|((_, name), _)| name.starts_with("pid 1 ")).collect();
        let [(_, (known, unknown))] = of_process[..] else { panic!("{of_process:?}") };
        assert_eq!(known.unwrap().read.count, if complete { 42 } else { 3 });
        assert_eq!(unknown.contains(&Reason::FirstSight), !complete);
        assert!(unknown.contains(&Reason::Gone));
    }
}

#[test]
fn what_is_young_or_has_a_label_stays() {
    let (_dir, mut history) = history();
    let all = idle(200);
    for (at, snapshot) in all.iter().enumerate() {
        history.save_snapshot(snapshot, (at == 7).then_some("before the rebuild")).unwrap();
    }
    let now_ns = all[199].taken_unix_ns + EVERY_S * S;
    let week = Retention::default();
    assert_eq!(thin_all(&mut history, &week, now_ns), 0);
    let half = Duration::from_secs(100 * EVERY_S);
    let halved = Retention(vec![RetentionStep { age: half, every: Duration::from_secs(STRETCH_S) }]);
    thin_all(&mut history, &halved, now_ns);
    let kept: Vec<i64> = remaining(&history).into_iter().map(|id| id.0).collect();
    assert_eq!(kept.iter().filter(|id| **id > 101).count(), 99, "{kept:?}");
    assert!(kept.contains(&8) && kept.iter().filter(|id| **id <= 101).count() < 10, "{kept:?}");
}

const DAY_S: u64 = 24 * 3600;
const TEN_YEARS_S: u64 = 3652 * DAY_S;

/// Captures of an engine whose files do nothing, `later_s` seconds later by the wall clock.
fn idle_later(captures: usize, later_s: u64) -> Vec<Snapshot> {
    let mut all = idle(captures);
    all.iter_mut().for_each(|snapshot| snapshot.taken_unix_ns += later_s * S);
    all
}

#[test]
fn a_clock_that_is_years_ahead_thins_nothing_young() {
    for own_captures in [0, 1, 40] {
        let (_dir, mut history) = history();
        let all = idle(21);
        save(&mut history, &all);
        // The recorder starts again with the wrong clock, which its own captures have too.
        let ahead = idle_later(own_captures, TEN_YEARS_S);
        save(&mut history, &ahead);
        let now_ns = all[20].taken_unix_ns + (TEN_YEARS_S + 3600) * S;
        assert_eq!(thin_all(&mut history, &Retention::default(), now_ns), 0, "{own_captures}");
        assert_eq!(remaining(&history).len(), 21 + own_captures);
        // The clock is right again.
        let now_ns = all[20].taken_unix_ns + 3600 * S;
        assert_eq!(thin_all(&mut history, &Retention::default(), now_ns), 0, "{own_captures}");
    }
}

#[test]
fn captures_age_by_recorded_time_and_by_a_day_for_any_time_without_captures() {
    let (_dir, mut history) = history();
    let all = idle(200);
    save(&mut history, &all);
    let hours = |hours: Range<u64>, history: &mut History| {
        for hour in hours {
            save(history, &idle_later(1, TEN_YEARS_S + hour * 3600));
        }
        let now_ns = all[0].taken_unix_ns + TEN_YEARS_S * S;
        move |hour: u64| now_ns + hour * 3600 * S
    };
    let at = hours(0..6 * 24, &mut history);
    assert_eq!(thin_all(&mut history, &Retention::default(), at(6 * 24 - 1)), 0, "they are not 7 days old");
    let at = hours(6 * 24..6 * 24 + 3, &mut history);
    assert!(thin_all(&mut history, &Retention::default(), at(6 * 24 + 2)) > 180);
}

#[test]
fn a_clock_that_is_behind_for_a_while_does_not_end_the_thinning() {
    let (_dir, mut history) = history();
    let all = idle(200);
    save(&mut history, &all);
    assert_eq!(thin_all(&mut history, &Retention::default(), 3600 * S), 0);
    for day in 1..10 {
        save(&mut history, &idle_later(1, day * DAY_S));
    }
    let now_ns = all[199].taken_unix_ns + 9 * DAY_S * S;
    assert!(thin_all(&mut history, &Retention::default(), now_ns) > 180);
}

#[test]
fn captures_of_a_clock_that_was_ahead_are_thinned_as_their_neighbours() {
    let (_dir, mut history) = history();
    save(&mut history, &idle(200));
    let ahead = idle_later(200, TEN_YEARS_S);
    save(&mut history, &ahead);
    // The clock is right again.
    let later = idle_later(200, 3600);
    save(&mut history, &later);
    let dated_ahead = |history: &History| {
        let captures = history.captures(&CaptureFilter::default()).unwrap();
        captures.iter().filter(|capture| capture.taken_unix_ns >= ahead[0].taken_unix_ns).count()
    };
    let now_ns = later[199].taken_unix_ns;
    assert_eq!(thin_all(&mut history, &Retention::default(), now_ns), 0, "all are young");
    for day in 1..10 {
        save(&mut history, &idle_later(1, day * DAY_S));
    }
    thin_all(&mut history, &Retention::default(), now_ns + 9 * DAY_S * S);
    // One in five minutes, and those on both sides of the clock's jumps.
    let left = dated_ahead(&history);
    assert!((1..=200 * EVERY_S as usize / STRETCH_S as usize + 3).contains(&left), "{left}");
}

#[test]
fn a_time_that_was_not_kept_for_a_while_does_not_become_known() {
    let events = |at: usize| match at {
        28 => Event::Untimed,
        40 => Event::Timed,
        _ => Event::Work(1),
    };
    let captures: Vec<_> =
        (0..60).map(|at| (EVERY_S * S, true, vec![events(at), Event::Nothing, Event::Nothing])).collect();
    let all = snapshots(&captures);
    let kept = thinned_and_compared(&all);
    assert!(kept.len() < 8, "{kept:?}");
    let (_dir, mut history) = history();
    save(&mut history, &all);
    thin_all(&mut history, &one_in_five_minutes(), u64::MAX);
    for pair in kept.windows(2) {
        let filter = IntervalFilter { file: Some("/data/0".into()), ..IntervalFilter::default() };
        let rows = history.intervals_between(pair[0], pair[1], &filter, Rules::default()).unwrap();
        let stall = rows[0].interval.interval.known().unwrap().counters.write.stall_ns;
        let within_the_hole = pair[0].0 < 41 && pair[1].0 > 28;
        assert_eq!(stall.known().is_none(), within_the_hole, "{pair:?}");
    }
}

#[test]
fn each_call_looks_at_a_bounded_number_of_captures_and_none_twice() {
    let (_dir, mut history) = history();
    let all = with_a_process_a_capture(12_000, 2);
    save(&mut history, &all);
    let (mut calls, mut removed) = (0, 0);
    loop {
        let thinned = history.apply_retention(&one_in_five_minutes(), u64::MAX).unwrap();
        assert!(thinned.captures <= 5_500, "{thinned:?}");
        (calls, removed) = (calls + 1, removed + thinned.captures);
        if !thinned.more {
            break;
        }
    }
    assert!(calls >= 3 && removed > 11_000, "{calls} calls removed {removed}");
    assert_eq!(history.apply_retention(&one_in_five_minutes(), u64::MAX).unwrap(), Thinned::default());
    // From one in five minutes to one an hour.
    let hourly = Retention(vec![RetentionStep { age: Duration::ZERO, every: Duration::from_secs(3600) }]);
    thin_all(&mut history, &hourly, u64::MAX);
    assert!(remaining(&history).len() <= 12_000 / 240 + 3, "{}", remaining(&history).len());
}

/// How long until the next capture, and whether the machine restarts meanwhile.
fn gap() -> impl Strategy<Value = (u64, bool)> {
    let elapsed_ns = prop_oneof![
        40 => Just(EVERY_S * S),
        3 => 1..60 * S,
        1 => STRETCH_S * S..900 * S,
        1 => Just(25 * 3600 * S),
    ];
    (elapsed_ns, prop::bool::weighted(0.01))
}

/// Whether the capture promises that all is there, what happens to the engine's files, and for how many captures a
/// process lives that begins.
fn happens() -> impl Strategy<Value = (bool, Vec<Event>, usize)> {
    (prop::bool::weighted(0.9), prop::collection::vec(event(), 3), 0..15_usize)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]
    #[test]
    fn whatever_files_do_every_difference_is_the_sum_of_those_between_and_few_captures_stay(
        life in prop::collection::vec((gap(), happens()), 2..100),
    ) {
        let captures: Vec<_> =
            life.iter().map(|((elapsed_ns, _), (complete, events, _))| (*elapsed_ns, *complete, events.clone())).collect();
        let mut all = snapshots(&captures);
        let (mut fell_ns, mut falls) = (0, 0);
        for (at, ((_, anew), (_, _, lives))) in life.iter().enumerate() {
            if *anew {
                (fell_ns, falls) = (all[at].clock_ns, falls + 1);
            }
            all[at].clock_ns -= fell_ns;
            for (reads, snapshot) in all.iter_mut().skip(at).take(*lives).enumerate() {
                snapshot.samples.push(of_process(at, reads as u64 / 2));
            }
        }
        let kept = thinned_and_compared(&all);
        let stretches: BTreeSet<u64> = all.iter().map(|each| each.taken_unix_ns / S / STRETCH_S).collect();
        prop_assert!(kept.len() <= 2 * stretches.len() + 2 * falls + 1, "{} of {}", kept.len(), stretches.len());
    }

    #[test]
    fn thinning_in_several_calls_is_as_exact_as_in_one_and_continues(
        life in prop::collection::vec(happens(), 130..160),
        mut cuts in prop::collection::vec(1..130_usize, 0..4),
    ) {
        let captures: Vec<_> = life.iter().map(|(complete, events, _)| (EVERY_S * S, *complete, events.clone())).collect();
        let all = snapshots(&captures);
        let ((_a, mut whole), (_b, mut thinned)) = (history(), history());
        let (minutes, hour) = (Duration::from_secs(STRETCH_S), Duration::from_secs(1500));
        let retention = Retention(vec![
            RetentionStep { age: Duration::from_secs(20 * EVERY_S), every: minutes },
            RetentionStep { age: Duration::from_secs(60 * EVERY_S), every: hour },
        ]);
        cuts.sort_unstable();
        let mut begin = 0;
        for end in cuts.into_iter().chain([all.len()]) {
            save(&mut whole, &all[begin..end]);
            save(&mut thinned, &all[begin..end]);
            thinned.pack(1 + begin % 7, |_, _| ()).unwrap();
            for id in remaining(&thinned) {
                prop_assert_eq!(thinned.snapshot(id).unwrap(), whole.snapshot(id).unwrap());
            }
            thin_all(&mut thinned, &retention, all[end - 1].taken_unix_ns);
            begin = end;
        }
        let kept = remaining(&thinned);
        prop_assert!(kept.len() < 20 + 4 + all.len() / 100 + 8, "{}", kept.len());
        prop_assert_eq!(totals(&thinned, &kept), totals(&whole, &kept));
    }
}
