//! One storage under databases whose counters mean different things.

use crate::builder::*;
use filestats::{
    Cache, Counters, Delta, Durable, Figure, FileInterval, FileKind, Interval, Meaning, Ops, Reason, Time,
};
use verdict::{Figures, Moment, Observation, VerdictKind};

const SECOND: u64 = 1_000_000_000;

/// Reads and writes that are blocks, out of the page cache or not: PostgreSQL.
const BLOCKS: Meaning = Meaning::BLOCKS;
/// Direct reads, and writes that are timed at submission: InnoDB.
const SUBMITTED: Meaning =
    Meaning { write_time: Time::ToSubmission, cache: Cache::Missed, ..Meaning::REQUESTS };

const UNCOUNTED: Figure<Ops> = Figure::unknown(Reason::NotCounted);

fn untimed(count: u64, bytes: u64, why: Reason) -> Ops {
    Ops { count, bytes, stall_ns: Figure::unknown(why) }
}

fn row(kind: FileKind, path: &str, meaning: Meaning, counters: Counters) -> FileInterval {
    let delta = Delta { elapsed_ns: SECOND, counters, latencies: None };
    FileInterval {
        file: file(kind, path).into(),
        meaning,
        ended_unix_ns: 0,
        interval: Interval::Known(delta),
    }
}

fn reads(meaning: Meaning, read: Ops) -> FileInterval {
    let counters = Counters { read, sync: UNCOUNTED, ..Counters::ZERO };
    row(FileKind::Data, "database/shop", meaning, counters)
}

/// I/Os issued to the device in a second.
fn device(read: Ops, write: Ops, flush: Ops) -> FileInterval {
    let counters = Counters { read, write, sync: Figure::Known(flush), ..Counters::ZERO };
    row(FileKind::Device, "/dev/vdb", Meaning { cache: Cache::Below, ..Meaning::REQUESTS }, counters)
}

fn observed_of(seconds: u64, each: impl Fn(u64) -> (Vec<FileInterval>, FileInterval)) -> Observation {
    let moment = |at: u64| {
        let (files, device) = each(at);
        Moment {
            ended_unix_ns: MEASURED + (at + 1) * SECOND,
            files: files.into(),
            device: Some(device),
            ..Moment::default()
        }
    };
    Observation { moments: (0..seconds).map(moment).collect(), ..Observation::default() }
}

fn many(count: u64, bytes: u64, each_ns: u64) -> Ops {
    Ops::timed(count, count * bytes, count * each_ns)
}

/// 20,000 blocks out of the page cache at 2 us, and `from_disk` reads of the device.
fn mostly_cached(from_disk: u64, each_ns: u64) -> Observation {
    let all = Ops::timed(20_000, 20_000 * 8192, (20_000 - from_disk) * 2 * US + from_disk * each_ns);
    observed_of(10, |_| {
        (vec![reads(BLOCKS, all)], device(many(from_disk, 8192, each_ns), Ops::ZERO, Ops::ZERO))
    })
}

#[test]
fn blocks_that_the_page_cache_answered_are_no_demand_and_do_not_make_the_storage_fast() {
    let good = mostly_cached(100, 4 * MS);
    let healthy = verdict(&good);
    assert_eq!(healthy.verdict, VerdictKind::Healthy, "{healthy:#?}");
    assert!(healthy.utilisation.unwrap() < 0.06, "100 of 4,000: {:?}", healthy.utilisation);
    let place = healthy.place.unwrap();
    assert!((3.0e6..4.6e6).contains(&place.latency_ns) && (95.0..105.0).contains(&place.iops), "{place:?}");

    // 3 of 20,000 blocks in a hundred would look like 1.2 ms a read.
    let slow = verdict(&mostly_cached(600, 80 * MS));
    assert_eq!(slow.verdict, VerdictKind::StorageDegraded, "{slow:#?}");
}

#[test]
fn where_the_page_caches_answers_took_most_of_the_time_the_device_says_how_long_reads_take() {
    let read = Ops::timed(200_000, 200_000 * 8192, 200_000 * 3 * US);
    let observation = observed_of(10, |_| {
        (vec![reads(BLOCKS, read)], device(many(100, 8192, 4 * MS), Ops::ZERO, Ops::ZERO))
    });
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, VerdictKind::Healthy, "{verdict:#?}");
    assert_eq!(verdict.place.as_ref().unwrap().latency_ns, 4e6);
    assert!(verdict.doubts.iter().any(|doubt| doubt.contains("the device's stand for them")), "{verdict:#?}");
}

#[test]
fn a_time_that_begins_after_the_submission_is_not_taken_for_the_storages() {
    // The storage takes 80 ms, where it should take 4; sessions wait for a tenth of that, with read-ahead.
    let waiting = Meaning { read_time: Time::Waiting, ..Meaning::REQUESTS };
    let observation = observed_of(10, |_| {
        (
            vec![reads(waiting, many(150, 8192, 8 * MS))],
            device(many(150, 8192, 80 * MS), Ops::ZERO, Ops::ZERO),
        )
    });
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, VerdictKind::StorageDegraded, "{verdict:#?}");
    assert_eq!(verdict.place.as_ref().unwrap().latency_ns, 80e6);
}

#[test]
fn submissions_are_neither_waited_for_nor_graded() {
    let files = |write_ns: u64| {
        let counters = Counters {
            read: many(50, 8192, 4 * MS),
            write: many(1_000, 16_384, write_ns),
            sync: UNCOUNTED,
            ..Counters::ZERO
        };
        vec![row(FileKind::Data, "shop/orders.ibd", SUBMITTED, counters)]
    };
    let of = |write_ns: u64| {
        let below = || device(many(50, 8192, 4 * MS), many(1_000, 16_384, 2 * MS), Ops::ZERO);
        observed_of(10, |_| (files(write_ns), below()))
    };
    let (quick, slow) = (verdict(&of(5 * US)), verdict(&of(MS)));
    assert_eq!((quick.verdict, quick.summary.clone()), (slow.verdict, slow.summary));
    let n = Figures::from_moments(&of(MS).moments, None).outstanding;
    assert!((0.19..0.21).contains(&n), "50 reads of 4 ms: {n}");
}

/// A log whose writes are counted and nothing else, its syncs on a line of their own, one commit after the other.
fn untimed_log(why: Reason) -> Observation {
    let log = Counters {
        read: untimed(0, 0, why),
        write: untimed(300, 300 * 4096, why),
        sync: UNCOUNTED,
        ..Counters::ZERO
    };
    let syncs = Counters { sync: Figure::Known(untimed(310, 0, Reason::NotCounted)), ..Counters::ZERO };
    observed_of(10, |_| {
        let files = vec![
            row(FileKind::Log, "ib_logfile0", Meaning::REQUESTS, log),
            row(FileKind::Other, "InnoDB, syncs", Meaning::REQUESTS, syncs),
        ];
        (files, device(Ops::ZERO, many(300, 4096, MS), many(300, 0, 2 * MS)))
    })
}

#[test]
fn commits_of_a_log_that_is_written_through_are_its_writes_however_seldom_it_is_synced() {
    let through = Meaning { durable: Durable::ByItself, ..Meaning::REQUESTS };
    // It is synced when it grows: once in ten seconds, or not at all.
    for grows in [false, true] {
        let observation = observed_of(10, |at| {
            let sync = Figure::Known(if grows && at == 3 { many(1, 0, MS) } else { Ops::ZERO });
            let log = Counters { write: many(450, 4096, 2 * MS), sync, ..Counters::ZERO };
            let pages = Counters { sync: Figure::Known(many(1, 0, 5 * MS)), ..Counters::ZERO };
            let files = vec![
                row(FileKind::Log, "log", through, log),
                row(FileKind::Data, "data", Meaning::REQUESTS, pages),
            ];
            (files, device(Ops::ZERO, many(450, 4096, 2 * MS), Ops::ZERO))
        });
        let verdict = verdict(&observation);
        assert_eq!(verdict.verdict, VerdictKind::Serialized, "{verdict:#?}");
        let waited = value(&verdict, "time waited for each");
        assert!((2.0e6..2.01e6).contains(&waited), "{waited}");
        assert!(verdict.summary.contains("450 log writes a second"), "{}", verdict.summary);
        assert!(verdict.next_step.contains("one transaction"), "{}", verdict.next_step);
    }
}

#[test]
fn commits_that_the_database_cannot_time_are_seen_at_the_device() {
    let verdict = verdict(&untimed_log(Reason::NotCounted));
    assert_eq!(verdict.verdict, VerdictKind::Serialized, "{verdict:#?}");
    assert_eq!(value(&verdict, "time waited for each"), 3e6);
    assert!(verdict.next_step.contains("one transaction"), "{}", verdict.next_step);
    assert!(
        verdict.doubts.iter().any(|doubt| doubt.contains("does not time its log")),
        "{:?}",
        verdict.doubts
    );
}

#[test]
fn commits_that_the_database_could_time_are_unknown_until_it_does() {
    let mut observation = untimed_log(Reason::TimingOff);
    observation.notes = vec!["to switch it on: SET timing = on".into()];
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, VerdictKind::CannotSay, "{verdict:#?}");
    assert!(verdict.next_step.contains("SET timing = on"), "{}", verdict.next_step);
}

#[test]
fn a_few_untimed_commits_among_many_timed_reads_are_a_doubt() {
    let log = untimed(5, 5 * 4096, Reason::TimingOff);
    let log =
        Counters { write: log, sync: Figure::Known(untimed(5, 0, Reason::TimingOff)), ..Counters::ZERO };
    let observation = observed_of(10, |_| {
        let files =
            vec![reads(BLOCKS, many(200, 8192, 4 * MS)), row(FileKind::Log, "wal", Meaning::REQUESTS, log)];
        (files, device(many(200, 8192, 4 * MS), many(10, 8192, 2 * MS), Ops::ZERO))
    });
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, VerdictKind::Serialized, "{verdict:#?}");
    assert!(
        verdict.doubts.iter().any(|doubt| doubt.contains("100 I/Os were not timed")),
        "{:?}",
        verdict.doubts
    );
}

#[test]
fn a_session_that_tells_late_is_serialized_all_the_same() {
    let log = |commits: u64| {
        let sync = Figure::Known(many(commits, 0, 2_200 * US));
        row(
            FileKind::Log,
            "wal",
            Meaning::REQUESTS,
            Counters { write: many(commits, 4096, 20 * US), sync, ..Counters::ZERO },
        )
    };
    // Nothing in one second, two seconds' worth in the next.
    let mut observation = observed_of(12, |at| {
        (vec![log(if at % 2 == 0 { 0 } else { 820 })], device(Ops::ZERO, many(410, 4096, 2 * MS), Ops::ZERO))
    });
    assert_ne!(
        verdict(&observation).verdict,
        VerdictKind::Serialized,
        "as it is told it looks like a burst each second"
    );
    observation.reporting_delay_ns = SECOND;
    let verdict = verdict(&observation);
    assert_eq!(verdict.verdict, VerdictKind::Serialized, "{verdict:#?}");
}

#[test]
fn what_went_on_below_the_page_cache_is_not_the_databases_a_second_time() {
    let read = many(100, 8192, 4 * MS);
    let below = Meaning { cache: Cache::Below, ..Meaning::REQUESTS };
    let once = |_: u64| (vec![reads(Meaning::REQUESTS, read)], device(read, Ops::ZERO, Ops::ZERO));
    let twice = |at: u64| {
        let (mut files, device) = once(at);
        files.push(reads(below, read));
        (files, device)
    };
    let (once, twice) = (observed_of(10, once), observed_of(10, twice));
    assert_eq!(Figures::from_moments(&once.moments, None), Figures::from_moments(&twice.moments, None));
}

#[test]
fn blocks_of_the_catalog_out_of_the_page_cache_are_not_enough_to_judge_by() {
    let few = |blocks: u64| {
        let read = Ops::timed(blocks, blocks * 8192, blocks * 3 * US);
        observed_of(10, |_| (vec![reads(BLOCKS, read)], device(many(2, 8192, MS), Ops::ZERO, Ops::ZERO)))
    };
    let verdict_of_few = verdict(&few(12));
    assert_eq!(verdict_of_few.verdict, VerdictKind::CannotSay, "{verdict_of_few:#?}");
    assert!(verdict_of_few.summary.contains("only 20 I/Os beside 100 reads"), "{}", verdict_of_few.summary);
    assert_eq!(verdict(&few(2_000)).verdict, VerdictKind::Healthy, "busy, and not with its storage");
}

#[test]
fn bunches_that_a_throttle_lets_through_are_not_the_concurrency_that_reads_met() {
    // 32 sessions wait 80 ms for each of 400 reads a second, which the device does in 2 ms, all in 10 ms.
    let bunches = device(many(400, 8192, 2 * MS), Ops::ZERO, Ops::ZERO);
    let observation = observed_of(10, |_| {
        let mut device = bunches.clone();
        if let Interval::Known(delta) = &mut device.interval {
            delta.counters.busy_ns = Figure::Known(10 * MS);
        }
        (vec![reads(Meaning::REQUESTS, many(400, 8192, 80 * MS))], device)
    });
    let place = verdict(&observation).place.unwrap();
    assert!(
        (7.9e6..8.5e6).contains(&place.expected_ns),
        "32 outstanding, of which 16 at once in 4 ms: {place:?}"
    );
}

/// A log on another volume: no session waits here for commits, though a checkpoint syncs the data files.
#[test]
fn syncs_of_data_files_are_no_commits_where_the_log_lies_on_another_volume() {
    let load = Load { reads: 200, read_ns: 500 * US, commits: 100, sync_ns: 400 * US, ..Load::default() };
    let mut observation = steady(load);
    for moment in &mut observation.moments {
        moment.files.remove(1);
        let Interval::Known(data) = &mut moment.files[0].interval else { panic!() };
        data.counters.sync = Figure::Known(Ops::timed(3, 0, 3 * 50_000 * US));
    }
    let commits =
        |observation: &Observation| Figures::from_moments(&observation.moments, Some(&disk())).commits.count;
    assert_eq!(commits(&observation), 10 * 3, "a database without a log commits by them");
    observation.moments.iter_mut().for_each(|moment| moment.log_elsewhere = true);
    assert_eq!(commits(&observation), 0);
}
