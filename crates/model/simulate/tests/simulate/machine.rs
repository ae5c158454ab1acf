//! Invariants of a simulation for any workload, and the effects of layouts and limits.

use proptest::prelude::*;
use simulate::{
    Disk, Job, Limit, Machine, Mechanics, Metered, Rotating, Simulated, Stall, Storage, Time, WriteCache,
    read, simulate, simulate_alone,
};
use std::time::Duration;
use workload::{
    Access, Arrival, Burst, Layout, Phase, Plan, Pool, RunLength, RunResult, Shape, SyncEvery, SyncKind,
    Trace, TraceIo, TraceKind, Workload,
};

const MS: u64 = 1_000_000;
const STRIPE: Layout = Layout::Stripe { unit_bytes: 65_536 };

fn plan(workload: Workload, seconds: u64) -> Plan {
    let length = RunLength { duration: Duration::from_secs(seconds), ..RunLength::default() };
    Plan { targets: Vec::new(), phases: vec![Phase::single(workload, length)] }
}

fn run(storage: &Storage, workload: &Workload, seconds: u64) -> RunResult {
    let mut simulated = all(&plan(workload.clone(), seconds), storage);
    simulated.phases.remove(0).results.remove(0)
}

fn all(plan: &Plan, storage: &Storage) -> Simulated {
    simulate(plan, storage, &|_| None, &mut |_| true).unwrap()
}

fn disk() -> Disk {
    Disk::flash(4 << 30, 4, Time::Exponential { mean_ns: 1e6 }, Time::Fixed { ns: 2 * MS })
}

fn arm() -> Disk {
    let arm =
        Rotating { rpm: 7200.0, seek_ns_min: MS / 2, seek_ns_max: 16 * MS, bytes_per_s: 200e6, queue: 32 };
    Disk::plain(4 << 30, Mechanics::Rotating(arm))
}

fn reads(bytes: u32, outstanding: u32) -> Workload {
    Workload::from(Shape::random_read(bytes)).with_outstanding(outstanding)
}

#[track_caller]
fn close(found: f64, wanted: f64, share: f64) {
    assert!((found / wanted - 1.0).abs() <= share, "{found}, not {wanted}");
}

#[test]
fn the_same_seed_gives_the_same_to_the_last_bit_and_another_does_not() {
    let storage = Storage::array(&disk(), 2, STRIPE);
    let mixed = Workload { seed: 9, ..Shape::random_read(8192).with_writes(30).into() }.with_outstanding(16);
    let once = all(&plan(mixed.clone(), 5), &storage);
    assert_eq!(all(&plan(mixed.clone(), 5), &storage), once);
    assert_ne!(all(&plan(Workload { seed: 10, ..mixed.clone() }, 5), &storage), once);
    assert_ne!(all(&plan(mixed, 5), &Storage { seed: 1, ..storage }), once);
}

#[test]
fn three_disks_striped_give_three_times_one_and_spanned_with_the_data_on_one_no_more() {
    let lun = Disk::flash(4 << 30, 16, Time::Fixed { ns: 20 * MS }, Time::default());
    let of_first = Access { length_bytes: Some(1 << 30), ..Access::default() };
    let workload = Workload { access: of_first, ..reads(65_536, 128) };
    let one = run(&Storage::single(lun.clone()), &workload, 20).iops();
    let spanned = all(&plan(workload.clone(), 20), &Storage::array(&lun, 3, Layout::Span));
    let striped = all(&plan(workload, 20), &Storage::array(&lun, 3, STRIPE));
    let iops = |simulated: &Simulated| simulated.phases[0].results[0].iops();
    close(one, 800.0, 0.01);
    close(iops(&spanned), 800.0, 0.01);
    close(iops(&striped), 2400.0, 0.03);
    assert_eq!((spanned.disks[1].reads, spanned.disks[2].reads), (0, 0), "the others did nothing");
    let each: Vec<u64> = striped.disks.iter().map(|disk| disk.reads).collect();
    assert!(each.iter().all(|reads| reads.abs_diff(each[0]) < each[0] / 10), "{each:?}");
}

#[test]
fn an_io_over_several_units_waits_for_the_slowest_of_its_parts() {
    let lun = Disk::flash(4 << 30, 1000, Time::Exponential { mean_ns: 1e6 }, Time::default());
    let latency_ns =
        |bytes| run(&Storage::array(&lun, 4, STRIPE), &reads(bytes, 1), 60).mean_latency_ns().unwrap();
    close(latency_ns(65_536), 1e6, 0.02);
    // The mean of the largest of four exponential times: 1 + 1/2 + 1/3 + 1/4.
    close(latency_ns(262_144), 1e6 * 25.0 / 12.0, 0.02);
}

#[test]
fn a_burst_of_credits_lasts_as_long_as_arithmetic_says() {
    // As a cloud's volume: 100 a second, up to 3,000 a second for as long as 29,000 credits last: 10 s.
    let of = Metered::Ios;
    let credits = Limit { of, per_second: 100.0, burst: 29_000.0, refill_ns: 0 };
    let most = Limit { of, per_second: 3_000.0, burst: 1.0, refill_ns: 0 };
    let storage = Storage { limits: vec![credits, most], ..Storage::single(Disk { ..disk() }) };
    let fast = Workload { ..reads(4096, 64) };
    let result = run(&storage, &fast, 30);
    let rows: Vec<u64> = result.series.iter().map(|row| row.read.count).collect();
    assert!(rows[1..9].iter().all(|count| count.abs_diff(3_000) < 40), "{rows:?}");
    assert!(rows[11..].iter().all(|count| count.abs_diff(100) < 4), "{rows:?}");
    close(result.read.count as f64, 29_000.0 + 100.0 * 30.0, 0.005);
}

#[test]
fn reads_and_writes_are_metered_apart() {
    let limit = |of, per_second| Limit { of, per_second, burst: 0.0, refill_ns: 100 * MS };
    let limits = vec![limit(Metered::Reads, 300.0), limit(Metered::WriteBytes, 4096.0 * 50.0)];
    let storage = Storage::single(Disk { limits, ..disk() });
    let both = Plan {
        phases: vec![Phase {
            workloads: [Shape::random_read(4096), Shape::random_write(4096)]
                .map(|shape| {
                    Phase::single(Workload::from(shape).with_outstanding(8), RunLength::default())
                        .workloads
                        .remove(0)
                })
                .to_vec(),
            ..plan(reads(4096, 1), 20).phases.remove(0)
        }],
        ..Plan::default()
    };
    let results = all(&both, &storage).phases.remove(0).results;
    close(results[0].iops(), 300.0, 0.02);
    close(results[1].iops(), 50.0, 0.03);
}

#[test]
fn a_cache_hides_a_burst_of_writes_and_saturates_under_load() {
    let cache = WriteCache { bytes: 100 << 20, write_ns: 50_000, drain_bytes_per_s: 20e6 };
    let storage = Storage::single(Disk { cache: Some(cache), ..disk() });
    let writes = Workload::from(Shape::random_write(65_536)).with_outstanding(4);
    let result = run(&storage, &writes, 60);
    assert!(result.series[0].write.mean_ns().unwrap() < 20.0 * MS as f64, "fast at first");
    let late: u64 = result.series[30..].iter().map(|row| row.write.bytes).sum();
    close(late as f64 / 30.0, 20e6, 0.02);
    let rare = Burst { ios: 100, pause: Duration::from_secs(2) };
    let bursts = run(&storage, &Workload { burst: Some(rare), ..writes }, 60);
    close(bursts.mean_latency_ns().unwrap(), 50_000.0, 0.001);
}

#[test]
fn a_stall_shows_in_the_longest_latency_and_in_what_users_of_an_open_loop_wait() {
    let stall = Some(Stall { every_ns: 10_000 * MS, length_ns: 2_000 * MS });
    let storage = Storage::single(Disk { stall, ..disk() });
    let open = Workload { arrival: Arrival::Constant { iops: 100.0 }, ..reads(4096, 8) };
    let result = run(&storage, &open, 35);
    let response = result.response.as_ref().unwrap();
    assert!((1_990 * MS..2_100 * MS).contains(&response.read.max_ns().unwrap()));
    // Those of three stalls of 2 s each in 35 s wait 1 s on average, and a little for each other.
    close(response.read.mean_ns().unwrap(), 1e9 * 6.0 / 35.0 + 1e6, 0.05);
    assert!(result.mean_latency_ns().unwrap() < 0.5 * response.read.mean_ns().unwrap(), "latency hides them");
}

#[test]
fn a_commit_waits_for_its_sync_and_ten_in_one_are_nearly_ten_times_as_many() {
    let sync = Time::Fixed { ns: 4 * MS };
    let storage = Storage::single(Disk {
        sync,
        ..Disk::flash(4 << 30, 4, Time::default(), Time::Fixed { ns: MS / 10 })
    });
    let commits = |writes| {
        let sync = Some(SyncEvery { writes, how: SyncKind::Fdatasync });
        run(&storage, &Workload { sync, ..Shape::sequential_write(4096).into() }, 20)
    };
    let (one, ten) = (commits(1), commits(10));
    close(one.iops(), 1e9 / 4.1e6, 0.01);
    close(ten.iops(), 10.0 * 1e9 / 5e6, 0.01);
    assert!(ten.sync.count.abs_diff(ten.write.count / 10) <= 1, "{} for {}", ten.sync.count, ten.write.count);
    close(ten.sync.latency.mean_ns().unwrap(), 4e6, 0.001);
}

#[test]
fn a_rotating_disk_gains_by_a_queue_and_loses_by_random_access() {
    let storage = Storage::single(arm());
    let iops = |workload: &Workload| run(&storage, workload, 60).iops();
    let alone = iops(&reads(4096, 1));
    // Half a turn of 8.3 ms and a seek over a part of the disk.
    assert!((60.0..130.0).contains(&alone), "{alone}");
    let queued = iops(&reads(4096, 32));
    assert!(queued > 1.8 * alone, "{queued} for {alone}");
    let sequential = run(&storage, &Workload::from(Shape::sequential_read(1 << 20)), 10);
    close(sequential.mib_per_s() * 1048576.0, 200e6, 0.02);
}

#[test]
fn a_phase_starts_with_the_state_that_the_last_has_left() {
    let cache = WriteCache { bytes: 100 << 20, write_ns: 50_000, drain_bytes_per_s: 1e6 };
    let storage = Storage::single(Disk { cache: Some(cache), ..disk() });
    let writes = Workload::from(Shape::random_write(65_536));
    let phase = plan(writes, 30).phases.remove(0);
    let twice = Plan { targets: Vec::new(), phases: vec![phase.clone(), phase] };
    let phases = all(&twice, &storage).phases;
    let bytes = |at: usize| phases[at].results[0].write.bytes;
    assert!(bytes(0) > 100 << 20 && bytes(1) < 40_000_000, "full by then: {} and {}", bytes(0), bytes(1));
}

#[test]
fn a_pool_shares_its_outstanding_ios_by_weight() {
    let mut phase = plan(reads(4096, 1), 10).phases.remove(0);
    phase.pool = Some(Pool { threads: 2, outstanding: Some(8) });
    phase.workloads.push(phase.workloads[0].clone());
    phase.workloads[1].weight = 3;
    let results = all(&Plan { targets: Vec::new(), phases: vec![phase] }, &Storage::single(disk()))
        .phases
        .remove(0)
        .results;
    close(results[1].iops() / results[0].iops(), 3.0, 0.06);
    close(results[0].outstanding() + results[1].outstanding(), 16.0, 0.001);
    assert_eq!(results[0].threads.len(), 2);
}

#[test]
fn a_trace_is_replayed_at_its_times() {
    let io = |at_ms: u64, kind| TraceIo { at_ns: at_ms * MS, kind, offset_bytes: 4096 * at_ms, bytes: 4096 };
    let ios = (0..1000)
        .map(|at| io(at * 5, if at % 4 == 0 { TraceKind::Write } else { TraceKind::Read }))
        .collect();
    let trace = Trace { ios };
    let workload = Workload { arrival: Arrival::Recorded { speed: 2.0 }, ..reads(4096, 64) };
    let plan = plan(workload, 60);
    let simulated = simulate(&plan, &Storage::single(disk()), &|_| Some(&trace), &mut |_| true).unwrap();
    let result = &simulated.phases[0].results[0];
    assert_eq!((result.read.count, result.write.count), (750, 250));
    assert!((2_490 * MS..2_520 * MS).contains(&result.elapsed_ns), "{}", result.elapsed_ns);
}

#[test]
fn the_watcher_can_end_it_and_an_impossible_model_is_refused() {
    let mut asked = 0;
    let mut stop = |_| {
        asked += 1;
        asked < 3
    };
    let storage = Storage::single(disk());
    let ended = simulate(&plan(reads(4096, 32), 3600), &storage, &|_| None, &mut stop).unwrap();
    let result = &ended.phases[0].results[0];
    assert!(result.interrupted && result.elapsed_ns < 1_000_000 * MS && result.ios() > 0);
    let none = Storage { disks: Vec::new(), ..storage.clone() };
    assert!(Machine::new(&none).is_err());
    let small = Storage::single(Disk { size_bytes: 2048, ..disk() });
    assert!(simulate_alone(&small, &reads(4096, 1), 100).is_err());
    let mut machine = Machine::new(&storage).unwrap();
    let phase = plan(reads(4096, 1), 1).phases.remove(0);
    let workload = reads(4096, 1);
    let job = Job {
        workload: &workload,
        target: String::new(),
        offset: 1 << 30,
        bytes: 4 << 30,
        weight: 1,
        trace: None,
    };
    assert!(machine.run(&phase, &[job], &mut |_, _| true).is_err(), "it ends behind the storage");
}

/// The example of docs/reference/simulate.md, and every storage that the tests below draw.
#[test]
fn a_file_contains_workload_and_storage() {
    let text = "[storage]\n[[storage.disks]]\nunits = 16\nread = \"20ms\"\n\
                [[phases]]\nwarm-up = \"1s\"\nduration = \"9s\"\n[[phases.workloads]]\noutstanding = 32\n";
    let (plan, storage) = read(text).unwrap();
    let result = all(&plan, &storage.unwrap()).phases.remove(0).results.remove(0);
    close(result.iops(), 800.0, 0.01);
    close(result.mean_latency_ns().unwrap(), 40e6, 0.01);
}

fn storages() -> impl Strategy<Value = Storage> {
    let time = prop_oneof![
        (1_000_u64..5_000_000).prop_map(|ns| Time::Fixed { ns }),
        (1e3..5e6).prop_map(|mean_ns| Time::Exponential { mean_ns }),
        (1e3..1e6, 0.1..1.0).prop_map(|(median_ns, sigma)| Time::Lognormal { median_ns, sigma }),
    ];
    let limit = (10.0..5_000.0, 0.0..100.0, prop::sample::select(vec![0, 20 * MS, 100 * MS]))
        .prop_map(|(per_second, burst, refill_ns)| Limit { of: Metered::Ios, per_second, burst, refill_ns });
    let flash = (1_u32..40, time.clone(), time)
        .prop_map(|(units, read, write)| Disk::flash(1 << 30, units, read, write));
    let disk = prop_oneof![4 => flash, 1 => Just(Disk { size_bytes: 1 << 30, ..arm() })];
    let parts = (
        disk,
        1_usize..4,
        prop::option::of(limit.clone()),
        prop::option::of(limit),
        any::<bool>(),
        prop::option::of((20_000_u64..1_000_000, 1e6..1e9)),
    );
    parts.prop_map(|(disk, count, above, below, striped, cache)| {
        let cache =
            cache.map(|(bytes, drain_bytes_per_s)| WriteCache { bytes, write_ns: 5_000, drain_bytes_per_s });
        let disk =
            Disk { limits: below.into_iter().collect(), cache, sync: Time::Fixed { ns: 100_000 }, ..disk };
        let layout = if striped { Layout::Stripe { unit_bytes: 4096 } } else { Layout::Span };
        Storage { limits: above.into_iter().collect(), ..Storage::array(&disk, count, layout) }
    })
}

fn workloads() -> impl Strategy<Value = Workload> {
    let parts = (
        1_u32..40,
        1_u32..4,
        prop::sample::select(vec![512_u32, 4096, 12_288]),
        0_u8..=100,
        any::<bool>(),
        prop::option::of(1_u32..5),
        prop::option::of(10.0..3_000.0),
        any::<u64>(),
    );
    parts.prop_map(|(outstanding, threads, bytes, writes, random, sync, open, seed)| {
        let shape = if random { Shape::random_read(bytes) } else { Shape::sequential_read(bytes) };
        let sync = sync.map(|writes| SyncEvery { writes, how: SyncKind::Fsync });
        let arrival = open.map_or(Arrival::Closed, |iops| Arrival::Poisson { iops });
        Workload { outstanding, threads, sync, arrival, seed, ..shape.with_writes(writes).into() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_io_is_lost_or_made_and_little_s_law_holds(storage in storages(), workload in workloads()) {
        // With a count of I/Os, so that every one completes.
        let count = 400_u64;
        let length = RunLength { duration: Duration::from_secs(86_400), ios_max: Some(count), ..RunLength::default() };
        let counted = Plan { targets: Vec::new(), phases: vec![Phase::single(workload.clone(), length)] };
        let simulated = all(&counted, &storage);
        let result = &simulated.phases[0].results[0];
        prop_assert_eq!(result.ios(), count);
        prop_assert_eq!(simulated.ios, count);
        let bytes = result.read.bytes + result.write.bytes;
        prop_assert_eq!(bytes, count * u64::from(workload.shape.block_bytes));
        prop_assert_eq!(simulated.disks.iter().map(|disk| disk.bytes).sum::<u64>(), bytes);
        let shares: u64 = result.threads.iter().map(|share| share.total().count).sum();
        prop_assert_eq!(shares, count);
        if let Some(sync) = workload.sync {
            let groups = result.write.count / u64::from(sync.writes);
            let threads = u64::from(workload.threads);
            prop_assert!(result.sync.count <= groups && result.sync.count + 2 * threads >= groups);
        }
    }

    #[test]
    fn a_closed_loop_keeps_as_many_outstanding_as_it_says(storage in storages(), outstanding in 1_u32..40) {
        let workload = reads(4096, outstanding);
        let result = simulate_alone(&storage, &workload, 2_000).unwrap();
        // N = X R, but for the I/Os at both ends of the measured part, and none where hardly any was done.
        let doubt = 2.0 * f64::from(outstanding) / result.ios().max(1) as f64;
        prop_assert!(
            (result.outstanding() / f64::from(outstanding) - 1.0).abs() <= 0.02 + doubt,
            "{} for {}", result.outstanding(), outstanding
        );
    }
}
