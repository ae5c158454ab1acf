use crate::build::*;
use analyze::{FindingKind, limits};
use filestats::*;
use findings::Weight;

#[test]
fn a_breach_says_how_long_how_often_how_bad_and_when() {
    let course = course(240, 15 * S);
    let slow = |at| (at, reads(100, 8192, 30 * MS));
    let quick = |at| (at, reads(100, 8192, 2 * MS));
    let added = (1..=240).map(|at| match at {
        20..=27 | 200 => slow(at),
        201 => (at, reads(100, 8192, 80 * MS)),
        at => quick(at),
    });
    let analysis = analysis(&course, &[file("/data/shop.db", &course, added)]);
    let breach = found(&analysis, FindingKind::Breach);
    assert_eq!(breach.weight, Weight::Warning);
    assert_eq!((breach.path.as_deref(), breach.stretches), (Some("/data/shop.db"), 2));
    assert_eq!(fact(&breach, "time"), (10 * 15 * S) as f64);
    assert_eq!(fact(&breach, "worst interval's mean latency"), 80e6);
    assert_eq!(fact(&breach, "mean latency in them"), (9.0 * 30e6 + 80e6) / 10.0);
    assert_eq!(breach.when[0].from_unix_ns, BEGIN + 19 * 15 * S);
    assert_eq!(breach.when[0].length_ns(), 2 * MIN);
    assert!(
        breach.text.contains("35.0 ms (bad)") && breach.text.contains("80.0 ms (bad)"),
        "{}",
        breach.text
    );
    assert!(breach.next.unwrap().contains("plans"));
}

#[test]
fn of_very_many_findings_the_worst_are_listed_and_the_rest_is_counted() {
    let course = course(20, 15 * S);
    let slow = |of: usize| (1..=20).map(move |at| (at, reads(100, 8192, (30 + of as u64) * MS)));
    let files: Vec<FileSeries> =
        (0..300).map(|of| file(&format!("/data/{of:03}"), &course, slow(of))).collect();
    let all = analysis(&course, &files);
    let of_files: Vec<&str> = all.findings.iter().filter_map(|finding| finding.path.as_deref()).collect();
    assert_eq!(of_files.len(), limits::FINDINGS_MAX);
    assert_eq!(of_files[0], "/data/299", "the longest waited for");
    let more = found(&all, FindingKind::NotListed);
    assert!(fact(&more, "findings not listed") >= 100.0 && more.weight == Weight::Note);
    let few = analysis(&course, &files[..10]);
    assert!(find(&few, FindingKind::NotListed).is_none());
    assert_eq!(found(&few, FindingKind::Breach).weight, Weight::Warning);
}

#[test]
fn what_keeps_its_level_to_the_nanosecond_is_said_to_be_acceptable() {
    let course = course(10, 15 * S);
    let at_the_limit = (1..=10).map(|at| (at, reads(100, 8192, 20 * MS)));
    let analysis = analysis(&course, &[file("/data/shop.db", &course, at_the_limit)]);
    assert!(find(&analysis, FindingKind::Breach).is_none());
    let level = found(&analysis, FindingKind::ServiceLevel);
    assert_eq!(level.weight, Weight::Good);
    assert!(level.text.starts_with("storage is acceptable for its service level"), "{}", level.text);
    assert_eq!(fact(&level, "of what is promised"), 1.0);
}

#[test]
fn a_few_slow_operations_are_no_problem() {
    let course = course(100, 15 * S);
    let with = |count| {
        let added =
            (1..=100).map(|at| (at, reads(1000, 8192, MS))).chain([(50, reads(count, 8192, 90 * MS))]);
        analysis(&course, &[file("/data/shop.db", &course, added)])
    };
    assert!(find(&with(9), FindingKind::Breach).is_none(), "nothing");
    assert_eq!(found(&with(10), FindingKind::Breach).weight, Weight::Note);
    assert_eq!(found(&with(99), FindingKind::Breach).weight, Weight::Note);
    // Of 100 intervals one is the share from which on it counts, a second operation ahead of the first of them.
    assert_eq!(
        found(&with(100), FindingKind::Breach).weight,
        Weight::Note,
        "15 s of 101 intervals are under 1 %"
    );
    let lasting = (1..=100).map(|at| (at, reads(100, 8192, if at <= 4 { 90 } else { 1 } * MS)));
    let lasting = analysis(&course, &[file("/data/shop.db", &course, lasting)]);
    assert_eq!(found(&lasting, FindingKind::Breach).weight, Weight::Warning, "a minute is a plateau");
}

#[test]
fn a_file_that_is_slow_because_its_ios_are_large_is_told_apart() {
    let course = course(20, 15 * S);
    let of = |bytes, ns| {
        let added = (1..=20).map(|at| (at, reads(100, bytes, ns)));
        analysis(&course, &[file("/data/shop.db", &course, added)])
    };
    let large = found(&of(1 << 20, 80 * MS), FindingKind::LargeIos);
    assert_eq!(large.weight, Weight::Note);
    assert!(large.text.contains("1 MiB each") && large.text.contains("5.00 ms"), "{}", large.text);
    assert!(find(&of(1 << 20, 80 * MS), FindingKind::Breach).is_none());
    assert_eq!(found(&of((64 << 10) - 1, 80 * MS), FindingKind::Breach).weight, Weight::Warning);
    assert_eq!(
        found(&of(128 << 10, 80 * MS), FindingKind::Breach).weight,
        Weight::Warning,
        "40 ms for 64 KiB"
    );
}

#[test]
fn logs_have_a_level_of_their_own_and_their_own_next_step() {
    let course = course(20, 15 * S);
    let added = || (1..=20).map(|at| (at, with_syncs(writes(100, 4096, MS), 100, 12 * MS)));
    let data = analysis(&course, &[file("/data/shop.db", &course, added())]);
    assert!(find(&data, FindingKind::Breach).is_none());
    let log = analysis(&course, &[log(file("/data/shop.db-wal", &course, added()))]);
    assert!(found(&log, FindingKind::Breach).next.unwrap().contains("batch commits"));
}

#[test]
fn the_time_of_a_submission_is_no_latency() {
    let course = course(20, 15 * S);
    let mut file = file("/data/shop.ibd", &course, (1..=20).map(|at| (at, writes(100, 8192, 90 * MS))));
    file.meaning.write_time = Time::ToSubmission;
    let analysis = analysis(&course, &[file]);
    assert!(find(&analysis, FindingKind::Breach).is_none());
    assert_eq!(analysis.coverage.files_untimed, 1);
    assert!(found(&analysis, FindingKind::ServiceLevel).text.contains("cannot be said"));
}

#[test]
fn one_io_at_a_time_is_found_where_n_is_near_one() {
    let course = course(20, 15 * S);
    // `count` reads of 5 ms in 15 s make N.
    let of = |n: f64| {
        let count = (n * 15_000.0 / 5.0).round() as u64;
        let added = (1..=20).map(|at| (at, reads(count, 8192, 5 * MS)));
        find(&analysis(&course, &[file("/data/shop.db", &course, added)]), FindingKind::Serial)
    };
    let serial = of(1.0).unwrap();
    assert_eq!(serial.weight, Weight::Warning);
    assert_eq!(fact(&serial, "operations a second"), 200.0);
    assert!(serial.next.unwrap().contains("prefetch"));
    assert!(of(0.8).is_some() && of(1.1).is_some());
    assert!(of(0.79).is_none() && of(1.11).is_none());
}

#[test]
fn one_at_a_time_from_memory_or_for_a_moment_is_nothing() {
    let course = course(20, 15 * S);
    let of = |intervals: usize, ns: u64| {
        let added = (1..=20).map(|at| {
            if at <= intervals { (at, reads(15 * S / ns, 8192, ns)) } else { (at, reads(9, 8192, ns)) }
        });
        find(&analysis(&course, &[file("/data/shop.db", &course, added)]), FindingKind::Serial)
    };
    assert!(of(20, 99_999).is_none());
    assert_eq!(of(20, 100_000).unwrap().weight, Weight::Note);
    assert!(of(10, MS).is_some());
    assert!(of(9, MS).is_none(), "less than half of the time");
}

#[test]
fn a_file_read_many_times_over_lacks_memory() {
    let course = course(4, 15 * MIN);
    let of = |times: f64, size, ns| {
        let count = (times * 131_072.0 / 4.0) as u64;
        let added = (1..=4).map(|at| (at, reads(count, 8192, ns)));
        find(&analysis(&course, &[sized(file("/data/shop.db", &course, added), size)]), FindingKind::Reread)
    };
    let size = Figure::Known(1 << 30);
    let reread = of(12.0, size, MS).unwrap();
    assert_eq!(reread.weight, Weight::Warning);
    assert_eq!(fact(&reread, "read, of its size"), 12.0);
    assert!(reread.next.unwrap().starts_with("memory"));
    assert_eq!(of(12.0, size, 20_000).unwrap().weight, Weight::Note, "the page cache has it");
    assert!(of(10.0, size, MS).is_some() && of(9.99, size, MS).is_none());
    assert!(of(12.0, Figure::unknown(Reason::NotCounted), MS).is_none(), "an unknown size");
}

#[test]
fn ten_times_in_a_week_is_no_reread() {
    let course = course(20, HOUR);
    let of = |times: u64| {
        let added = [(1, reads(times * 131_072, 8192, MS))];
        find(&analysis(&course, &[file("/data/shop.db", &course, added)]), FindingKind::Reread)
    };
    assert!(of(19).is_none() && of(20).is_some());
}

#[test]
fn the_busiest_of_several_files_is_named_with_its_share() {
    let course = course(20, 15 * S);
    let of = |busy: u64, other: u64| {
        let files = [
            file("/data/busy.db", &course, (1..=20).map(|at| (at, reads(busy, 8192, 5 * MS)))),
            file("/data/other.db", &course, (1..=20).map(|at| (at, reads(other, 8192, 5 * MS)))),
        ];
        analysis(&course, &files)
    };
    let both = of(900, 100);
    let busiest = found(&both, FindingKind::Busiest);
    assert_eq!(
        (busiest.path.as_deref(), fact(&busiest, "share of all time waited")),
        (Some("/data/busy.db"), 0.9)
    );
    assert_eq!(both.busiest[1].share, Some(0.1));
    assert_eq!(both.busiest[0].outstanding(), Figure::Known(0.3));
    assert!(find(&of(500, 500), FindingKind::Busiest).is_some());
    assert!(find(&of(9, 1), FindingKind::Busiest).is_none(), "nobody is busy");
}

#[test]
fn a_restart_is_told_and_costs_only_its_interval() {
    let course = course(20, 15 * S);
    let mut file = file("/data/shop.db", &course, (1..=20).map(|at| (at, reads(100, 8192, MS))));
    file.steps[9].added = Figure::unknown(Reason::Restart);
    (file.known_ns, file.unknown_ns) = (19 * 15 * S, 15 * S);
    let analysis = analysis(&course, &[file]);
    let epoch = found(&analysis, FindingKind::Epoch);
    assert!(
        epoch.text.starts_with("the engine restarted: 1 interval is not known because of it"),
        "{}",
        epoch.text
    );
    assert_eq!(epoch.when[0].from_unix_ns, BEGIN + 9 * 15 * S);
    assert_eq!(analysis.coverage.known_share, Some(0.95));
    assert_eq!(fact(&found(&analysis, FindingKind::ServiceLevel), "operations"), 1900.0);
}

#[test]
fn where_headroom_counts_itself_it_may_be_what_restarted() {
    let next = |source: &str| {
        let mut course = course(20, 15 * S);
        course.source = source.into();
        let mut file = file("/data/shop.db", &course, (1..=20).map(|at| (at, reads(100, 8192, MS))));
        file.steps[9].added = Figure::unknown(Reason::Restart);
        (file.known_ns, file.unknown_ns) = (19 * 15 * S, 15 * S);
        found(&analysis(&course, &[file]), FindingKind::Epoch).next.unwrap()
    };
    assert_eq!(next("postgres:5432"), "why it restarted, unless that was intended");
    assert!(next("process:812").contains("or Headroom"), "{}", next("process:812"));
}

#[test]
fn a_gap_in_the_recording_is_no_silence() {
    let with = |factor: u64| {
        let mut course = course(40, 15 * S);
        course.ticks.iter_mut().skip(20).for_each(|tick| {
            tick.taken_unix_ns += (factor - 1) * 15 * S;
            tick.clock_ns += (factor - 1) * 15 * S;
        });
        let files = [file("/data/shop.db", &course, [(3, reads(100, 8192, MS))])];
        find(&analysis(&course, &files), FindingKind::Gap)
    };
    assert!(with(3).is_none());
    let gap = with(4).unwrap();
    assert_eq!(gap.when[0].length_ns(), MIN);
}

#[test]
fn what_is_below_the_page_cache_is_not_counted_twice() {
    let course = course(20, 15 * S);
    let mut below = file("/data/shop.db", &course, (1..=20).map(|at| (at, reads(100, 8192, 90 * MS))));
    below.meaning.cache = Cache::Below;
    let above = file("/data/shop.db", &course, (1..=20).map(|at| (at, reads(100, 8192, MS))));
    let both = analysis(&course, &[above, below.clone()]);
    assert_eq!(both.busiest.len(), 1);
    assert!(find(&both, FindingKind::Breach).is_none());
    // A device has no other I/O than that.
    std::sync::Arc::make_mut(&mut below.file).kind = FileKind::Device;
    assert!(find(&analysis(&course, &[below]), FindingKind::Breach).is_some());
}
