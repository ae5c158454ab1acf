//! Factor by which today's work can grow, of a disk of 4,000 reads or 8,000 writes a second.

use crate::builder::*;
use capability::{CostModel, Curve, Effort, Maximum};
use filestats::{Cache, FileKind, Interval, Ops, ServiceLevel};
use proptest::prelude::*;
use verdict::{Moment, Observation, ProcessorUse, Verdict, VerdictKind, judge};
use workload::{Cap, CapKind, Shape};

pub(crate) fn range(verdict: &Verdict) -> (f64, f64, f64) {
    (verdict.headroom_low.unwrap(), verdict.headroom.unwrap(), verdict.headroom_high.unwrap())
}

pub(crate) fn with_processors(observation: Observation, own: f64) -> Observation {
    let mut observation = observation;
    observation.moments.iter_mut().for_each(|moment| {
        moment.processors = Some(ProcessorUse { own, others: 0.2, ..ProcessorUse::default() });
    });
    observation
}

#[test]
fn reads_grow_with_the_work() {
    let (low, plan, high) = range(&verdict(&steady(Load { reads: 400, read_ns: 4 * MS, ..Load::default() })));
    // The measured figures are known within a tenth.
    let (tenth_less, tenth_more) = (plan / 1.1, plan * 1.1);
    assert!((plan - 10.0).abs() < 0.1, "{plan}");
    assert!((low - tenth_less).abs() < 1e-9 && (high - tenth_more).abs() < 1e-9, "{low} {plan} {high}");
}

#[test]
fn a_preliminary_measurement_gives_the_same_figure_with_a_wider_range_and_a_doubt() {
    let reads = steady(Load { reads: 400, read_ns: 4 * MS, ..Load::default() });
    let commits = steady(Load { commits: 200, sync_ns: 2 * MS, ..Load::default() });
    let mut preliminary = disk();
    preliminary.conditions.effort = Effort::Preliminary;
    for observation in [reads, commits] {
        let whole = verdict(&observation);
        let first = judge(&observation, Some(&preliminary), &ServiceLevel::OLTP);
        let ((low, plan, high), (first_low, first_plan, first_high)) = (range(&whole), range(&first));
        assert_eq!((first.verdict, first_plan), (whole.verdict, plan));
        assert!(first_low < low && first_high > high, "{first_low} {low} {high} {first_high}");
        assert!(first.doubts.iter().any(|doubt| doubt.contains("preliminary")), "{first:#?}");
        assert!(first.confidence < whole.confidence);
        assert!(first.headroom_reason.is_some(), "a range without a reason is not shown");
    }
}

#[test]
fn commits_share_log_writes_as_they_become_many() {
    let commits = Load { commits: 200, sync_ns: 2 * MS, ..Load::default() };
    let verdict = verdict(&steady(commits));
    let (low, plan, high) = range(&verdict);
    // Log writes of 60 KiB take 3 ms: 15 commits of 4 KiB in each are 5,000 a second, 25 times as many as now, and each commit
    // by itself would be 40 times, of which three quarters are sure. Writes of 1 MiB have more of the bandwidth; the fastest curve has
    // 62 MiB/s. If the writes are filled up to 4 KiB, an eighth of their bytes are records.
    assert!((29.0..31.0).contains(&low) && low < plan && plan < high, "{low} {plan} {high}");
    assert!((600.0..680.0).contains(&high), "{high}");
    assert!(verdict.headroom_reason.unwrap().contains("commits share a log write"));
}

// Commits of 512 bytes of records, in blocks of 4 KiB: the bytes that are written do not say so.
#[test]
fn where_the_bytes_of_records_are_counted_they_say_how_many_commits_a_log_write_can_hold() {
    let mut observation = steady(Load { commits: 200, sync_ns: 2 * MS, ..Load::default() });
    let (_, plan, high) = range(&verdict(&observation));
    observation.moments.iter_mut().for_each(|moment| moment.log_record_bytes = Some(200 * 512));
    let (_, counted, counted_high) = range(&verdict(&observation));
    assert!(counted > 2.0 * plan, "{counted} {plan}");
    assert!((counted_high / high - 1.0).abs() < 0.1, "{counted_high} {high}");
}

#[test]
fn page_writes_beside_the_commits_are_what_limits_them() {
    let load =
        Load { commits: 200, sync_ns: 2 * MS, writeback: 400, writeback_ns: 2 * MS, ..Load::default() };
    // Each page that is written was read.
    let load = Load { reads: 200, read_ns: 4 * MS, ..load };
    let (low, plan, high) = range(&verdict(&steady(load)));
    // A twentieth of all reads and of all page writes: ten times; linear in all of it would be eight.
    assert!((8.4..=10.1).contains(&low) && low <= plan && plan <= high && high < 14.0, "{low} {plan} {high}");
}

#[test]
fn pages_that_are_written_again_and_again_do_not_become_more() {
    let load =
        Load { commits: 200, sync_ns: 2 * MS, writeback: 800, writeback_ns: 2 * MS, ..Load::default() };
    let (low, plan, high) = range(&verdict(&steady(load)));
    // No page was read, and records of 0.8 MiB a second fill few of the 6.4 MiB that are written.
    assert!((9.0..=10.1).contains(&low) && plan > 15.0 && high > 20.0, "{low} {plan} {high}");
}

// The log gets one of the I/Os that are outstanding at the knee, beside the pages.
#[test]
fn where_nothing_is_read_the_knee_of_the_writes_decides_what_the_log_gets() {
    let load =
        Load { commits: 200, sync_ns: 2 * MS, writeback: 800, writeback_ns: 2 * MS, ..Load::default() };
    let with_knee = |outstanding: f64| {
        let mut capability = disk();
        let is_writes = |curve: &&mut Curve| curve.workload == Shape::random_write(8192);
        let writes = capability.curves.iter_mut().find(is_writes).expect("they were measured");
        writes.knee.as_mut().expect("the curve has one").outstanding = outstanding;
        // Past the page cache: what the kernel writes in bursts leaves the log more.
        let mut observation = steady(load);
        for file in observation.moments.iter_mut().flat_map(|moment| &mut moment.files) {
            file.meaning.cache = Cache::Missed;
        }
        range(&judge(&observation, Some(&capability), &ServiceLevel::OLTP)).1
    };
    let (narrow, wide) = (with_knee(1.0), with_knee(16.0));
    assert!(narrow < wide * 0.9, "{narrow} {wide}");
}

// Scans with a commit now and then are no update workload.
#[test]
fn a_log_that_needs_little_leaves_the_rest_of_the_storage_to_the_reads() {
    let reads = Load { reads: 400, read_ns: 4 * MS, ..Load::default() };
    let narrow = |commits: u64| {
        let mut capability = disk();
        for curve in &mut capability.curves {
            curve.knee.iter_mut().for_each(|knee| knee.outstanding = 1.0);
        }
        let observation = steady(Load { commits, sync_ns: 2 * MS, ..reads });
        range(&judge(&observation, Some(&capability), &ServiceLevel::OLTP)).1
    };
    // A tenth of all reads, and a four-thousandth of all writes.
    let few = narrow(2);
    assert!((9.5..10.0).contains(&few), "{few}");
    let many = narrow(400);
    assert!(many < 8.1, "{many}");
}

#[test]
fn commits_that_fill_a_log_write_each_share_none() {
    let load = Load { reads: 400, read_ns: 4 * MS, commits: 10, sync_ns: 2 * MS, ..Load::default() };
    let load = Load { writeback: 400, writeback_ns: 2 * MS, ..load };
    let with_commits_of = |bytes: u64, writer_ns: Option<u64>| {
        let mut observation = steady(load);
        observation.moments.iter_mut().for_each(|moment| moment.writer_ns = writer_ns);
        for file in observation.moments.iter_mut().flat_map(|moment| &mut moment.files) {
            let Interval::Known(delta) = &mut file.interval else { panic!() };
            match file.file.kind {
                FileKind::Log => delta.counters.write.bytes = load.commits * bytes,
                _ => delta.counters.write = Ops::timed(400, 400 * 8192, 0),
            }
        }
        for device in observation.moments.iter_mut().flat_map(|moment| &mut moment.device) {
            let Interval::Known(delta) = &mut device.interval else { panic!() };
            delta.counters.write.bytes = load.commits * bytes + 400 * 8192;
        }
        range(&verdict(&observation)).1
    };
    let (small, large) = (with_commits_of(32 << 10, None), with_commits_of(500 << 10, None));
    // A tenth of the reads, and a twentieth of the writes: 6.6 times. Of bulk loads three quarters of it.
    assert!((4.8..5.1).contains(&large) && small > 6.5, "{small} {large}");
    // Of an engine with one writer all of it.
    let one_writer = with_commits_of(500 << 10, Some(1_000));
    assert!((6.4..6.7).contains(&one_writer), "{one_writer}");
}

// InnoDB's pages have 16 KiB, and its doublewrite buffer writes them once more.
#[test]
fn pages_that_a_database_still_holds_are_as_large_as_those_that_it_reads() {
    let load = Load { reads: 100, read_ns: 4 * MS, commits: 100, sync_ns: 2 * MS, ..Load::default() };
    let mut capability = disk();
    let maximum = |workload: Shape, iops: f64| Maximum { workload, iops, iops_half_width: 0.0 };
    // Bytes alone cost something: 32 MiB of reads or 64 MiB of writes a second.
    let by_bytes = |shape: fn(u32) -> Shape, of_8_kib: f64| {
        [8192, 65_536].map(|bytes| maximum(shape(bytes), of_8_kib * 8192.0 / f64::from(bytes)))
    };
    let maxima = [by_bytes(Shape::random_read, 4_096.0), by_bytes(Shape::random_write, 8_192.0)].concat();
    capability.cost_model = Some(CostModel::fit(&maxima, &[]).unwrap());
    let with_pages_of = |times: u64| {
        let mut observation = steady(load);
        for moment in &mut observation.moments {
            let files = moment.files.iter_mut().chain(&mut moment.device);
            for file in files.filter(|file| file.file.kind != FileKind::Log) {
                file.meaning.cache = Cache::Missed;
                let Interval::Known(delta) = &mut file.interval else { panic!() };
                delta.counters.read.bytes *= times;
            }
        }
        range(&judge(&observation, Some(&capability), &ServiceLevel::OLTP)).1
    };
    let (small, large) = (with_pages_of(1), with_pages_of(2));
    assert!((1.8..2.1).contains(&(small / large)), "{small} {large}");
}

#[test]
fn pages_that_the_page_cache_still_holds_are_written_too() {
    // Commits of 32 KiB of log, and nothing else at the device.
    let load =
        Load { commits: 200, sync_ns: 2 * MS, writeback: 600, writeback_ns: 2 * MS, ..Load::default() };
    let with_pages = |pages: u64| {
        let mut observation = steady(load);
        for file in observation.moments.iter_mut().flat_map(|moment| &mut moment.files) {
            let Interval::Known(delta) = &mut file.interval else { panic!() };
            match file.file.kind {
                FileKind::Log => delta.counters.write.bytes *= 8,
                _ => delta.counters.write = Ops::timed(pages, pages * 8192, 0),
            }
        }
        range(&verdict(&observation))
    };
    let (low, ..) = with_pages(0);
    assert!((7.4..7.6).contains(&low), "{low}");
    // 600 pages a second that records fill: 1,400 of 8,000 writes.
    let (low, _, high) = with_pages(800);
    assert!((4.2..4.4).contains(&low) && high < 14.0, "{low} {high}");
}

#[test]
fn pages_that_a_database_has_not_written_yet_are_written_as_often_as_they_are_read() {
    let commits = Load { commits: 200, sync_ns: 2 * MS, ..Load::default() };
    let reads = Load { reads: 200, read_ns: 4 * MS, ..commits };
    // 200 of 4,000 reads alone would be 20 times, and there are as many pages to write: a fortieth of 8,000.
    let (low, plan, high) = range(&verdict(&steady(reads)));
    assert!((12.0..15.1).contains(&low) && plan < 16.0, "{low} {plan} {high}");
    // A twentieth, and what the measurement may be wrong by.
    assert!((21.0..23.0).contains(&high), "they may never have to be written: {high}");
    let few = range(&verdict(&steady(Load { reads: 20, ..reads })));
    assert!(few.1 > 20.0, "most commits dirtied no page that was read: {few:?}");
}

#[test]
fn of_an_engine_with_one_writer_the_time_of_commits_is_the_limit() {
    let mut observation = steady(Load { commits: 100, sync_ns: 2 * MS, ..Load::default() });
    observation.commits_one_by_one = true;
    let verdict = verdict(&observation);
    // 100 a second of 2.01 ms.
    let (low, plan, high) = range(&verdict);
    assert!((plan - 5.0).abs() < 0.1, "{plan}");
    // Nothing but the error of the measurement makes it a range.
    assert!((low * 1.1 - plan).abs() < 0.01 && (high / 1.1 - plan).abs() < 0.01, "{low} {plan} {high}");
    assert!(verdict.headroom_reason.unwrap().contains("one session at a time"));
}

#[test]
fn of_an_engine_whose_commits_share_the_log_but_one_transaction_writes_the_turns_are_the_limit() {
    let commits = steady(Load { commits: 200, sync_ns: 2 * MS, ..Load::default() });
    let (low, plan, high) = range(&verdict(&commits));
    let with_turns = |writer_ns: u64| {
        let mut observation = commits.clone();
        observation.moments.iter_mut().for_each(|moment| moment.writer_ns = Some(writer_ns));
        verdict(&observation)
    };
    let short = range(&with_turns(1_000));
    assert_eq!((low, plan, high), short, "the storage is the limit");
    let verdict = with_turns(200 * MS);
    let (low, plan, high) = range(&verdict);
    // A fifth of the time; turns may be four times shorter where they follow one another.
    assert!((plan - 5.0).abs() < 1e-9 && (low - 5.0 / 1.1).abs() < 1e-9, "{low} {plan}");
    assert!((high - 20.0).abs() < 1e-9, "{high}");
    let reason = verdict.headroom_reason.unwrap();
    assert!(reason.contains("one transaction at a time can write, and that takes 20.0 %"), "{reason}");
    let mut observation = commits;
    for moment in &mut observation.moments {
        (moment.writer_ns, moment.commits) = (Some(200 * MS), Some(200));
    }
    // From each to the next 25 us.
    assert!((range(&self::verdict(&observation)).1 - 1.0 / 0.205).abs() < 1e-9);
}

#[test]
fn what_a_writing_transaction_reads_and_computes_adds_to_its_commit() {
    let plan = |reads: u64, own: f64| {
        let load = Load { commits: 50, sync_ns: 2 * MS, reads, read_ns: 4 * MS, ..Load::default() };
        let mut observation = steady(load);
        observation.commits_one_by_one = true;
        for moment in &mut observation.moments {
            moment.processors = Some(ProcessorUse { own, count: 2, ..ProcessorUse::default() });
        }
        verdict(&observation).headroom.unwrap()
    };
    // 10 % of the time for commits; 50 reads of 4 ms, and a tenth of a second of processor time a second.
    assert!((plan(0, 0.0) - 10.0).abs() < 0.2, "{}", plan(0, 0.0));
    assert!((plan(50, 0.0) - 1.0 / 0.3).abs() < 0.1, "{}", plan(50, 0.0));
    // Half of it, as its caches are warm then.
    assert!((plan(50, 0.05) - 1.0 / 0.35).abs() < 0.1, "{}", plan(50, 0.05));
    // Half of these reads are of transactions that only read.
    assert!((plan(100, 0.0) - 1.0 / 0.3).abs() < 0.1, "{}", plan(100, 0.0));
}

#[test]
fn where_most_reads_are_of_transactions_that_only_read_a_part_of_the_time_is_usable_for_writes() {
    let with_reads = |reads: u64| {
        let load = Load { commits: 50, sync_ns: 2 * MS, reads, read_ns: 4 * MS, ..Load::default() };
        let mut observation = steady(load);
        observation.commits_one_by_one = true;
        verdict(&observation)
    };
    let alone = with_reads(100);
    let (low, plan, _) = range(&alone);
    assert!((plan - 1.0 / 0.3).abs() < 0.1 && (low - plan / 1.1).abs() < 0.01, "{low} {plan}");
    assert!(!alone.headroom_reason.unwrap().contains("sleep"));
    // Seven in eight: several sessions write, for half of the time, or a third.
    let several = with_reads(400);
    let (low, plan, high) = range(&several);
    assert!((plan - 0.5 / 0.3).abs() < 0.05 && (low - 0.33 / 0.3 / 1.1).abs() < 0.05, "{low} {plan}");
    assert!((high - 1.1 / 0.3).abs() < 0.1, "an application may use one session for all of it: {high}");
    assert!(several.headroom_reason.unwrap().contains("sessions that find the lock taken sleep"));
    let between = with_reads(150).headroom.unwrap();
    assert!((2.0..3.2).contains(&between), "{between}");
}

#[test]
fn a_doublewrite_buffer_that_writes_many_pages_at_once_is_few_writes() {
    let load = Load {
        reads: 200,
        read_ns: 4 * MS,
        commits: 200,
        sync_ns: 2 * MS,
        writeback: 420,
        writeback_ns: 2 * MS,
        ..Load::default()
    };
    // MariaDB's own Aria tables, which are cached, beside InnoDB's.
    let add_idle_cached_file = |moment: &mut Moment| {
        let mut idle = moment.files.iter().find(|file| file.file.kind == FileKind::Data).unwrap().clone();
        let Interval::Known(delta) = &mut idle.interval else { panic!() };
        (delta.counters.read, delta.counters.write) = (Ops::ZERO, Ops::ZERO);
        idle.meaning.cache = Cache::Included;
        std::sync::Arc::make_mut(&mut idle.file).path = "/data/mysql/db.MAD".into();
        moment.files.push(idle);
    };
    let with_cache = |cache: Cache, has_idle: bool| {
        let mut observation = steady(load);
        for file in observation.moments.iter_mut().flat_map(|moment| &mut moment.files) {
            let Interval::Known(delta) = &mut file.interval else { panic!() };
            match file.file.kind {
                // 200 pages and what the doublewrite buffer writes of them.
                FileKind::Data => {
                    file.meaning.cache = cache;
                    delta.counters.write = Ops::timed(210, 400 * 16_384, 0);
                }
                FileKind::Device => delta.counters.write.bytes += 400 * 8192,
                _ => (),
            }
        }
        if has_idle {
            observation.moments.iter_mut().for_each(add_idle_cached_file);
        }
        range(&verdict(&observation))
    };
    let (_, past, _) = with_cache(Cache::Missed, false);
    let (_, through, _) = with_cache(Cache::Included, false);
    assert_eq!(with_cache(Cache::Missed, true).1, past);
    // Each transaction needs one of 4,000 reads and one of 8,000 writes a second beside the log, of the same resource.
    assert!((12.0..12.6).contains(&past) && through < 10.0, "{past} {through}");
}

// Pages that a server writes at once are of more seconds than those that were observed.
#[test]
fn more_pages_written_one_by_one_than_were_read_were_changed_before() {
    let load = Load {
        reads: 200,
        read_ns: 4 * MS,
        commits: 50,
        sync_ns: 2 * MS,
        writeback: 450,
        writeback_ns: 2 * MS,
        ..Load::default()
    };
    let mut observation = steady(load);
    for file in observation.moments.iter_mut().flat_map(|moment| &mut moment.files) {
        let Interval::Known(delta) = &mut file.interval else { panic!() };
        match file.file.kind {
            FileKind::Data => {
                file.meaning.cache = Cache::Missed;
                delta.counters.write = Ops::timed(450, 450 * 8192, 0);
            }
            FileKind::Device => delta.counters.write.bytes = 450 * 8192,
            _ => (),
        }
    }
    let (_, plan, _) = range(&verdict(&observation));
    // 200 pages are read and records fill 25: half of the 450 that are written grow with the work. A twentieth of the reads and
    // half of that of the writes: 12 times. If three quarters of the writes grew, ten times.
    assert!((11.0..12.5).contains(&plan), "{plan}");
}

#[test]
fn nothing_is_promised_where_nothing_can_be_said() {
    let verdict = verdict(&steady(Load { reads: 1, read_ns: 4 * MS, ..Load::default() }));
    assert_eq!(verdict.verdict, VerdictKind::CannotSay);
    assert_eq!((verdict.headroom, verdict.headroom_low, verdict.headroom_high), (None, None, None));
}

#[test]
fn the_cap_that_is_named_is_of_the_direction_that_runs_out() {
    let cap = |kind, per_second| Cap { kind, per_second, device: "7:0".into(), origin: "blkio".into() };
    let caps = vec![cap(CapKind::ReadIops, 4_000), cap(CapKind::WriteIops, 8_000)];
    let mut capability = disk();
    capability.target.caps = caps.clone();
    let load =
        Load { writeback: 7_900, writeback_ns: 2 * MS, commits: 20, sync_ns: 2 * MS, ..Load::default() };
    let observation = Observation { caps, ..steady(load) };
    let verdict = judge(&observation, Some(&capability), &ServiceLevel::OLTP);
    assert_eq!(verdict.verdict, VerdictKind::DemandExceedsCapability, "{verdict:#?}");
    assert!(verdict.summary.contains("8000 writes a second"), "{}", verdict.summary);
}

proptest! {
    #[test]
    fn a_range_is_in_order_and_never_far_below_what_linear_growth_gives(
        reads in 0_u64..2_000,
        commits in 0_u64..1_000,
        writeback in 0_u64..2_000,
        busy in proptest::option::of(0.01_f64..1.0),
    ) {
        let load = Load { reads, read_ns: 4 * MS, commits, sync_ns: 2 * MS, writeback, writeback_ns: 2 * MS, ..Load::default() };
        let observation = steady(load);
        let verdict = verdict(&busy.map_or(observation.clone(), |busy| with_processors(observation, busy)));
        if let Some(plan) = verdict.headroom {
            let (low, high) = (verdict.headroom_low.unwrap(), verdict.headroom_high.unwrap());
            prop_assert!(low > 0.0 && low <= plan && plan <= high && high.is_finite());
            let processors = busy.map_or(f64::INFINITY, |busy| (0.8 / busy / 2.0).max(0.8));
            let linear = (1.0 / verdict.utilisation.unwrap()).min(processors);
            prop_assert!(low >= linear * 0.75 / 1.1 - 1e-9, "{low} of {linear}");
        }
    }
}
