//! The settings of a workload beyond block size and outstanding I/Os, on real files. Where possible the effect is checked
//! by the content or the size of the file.

mod fixture;

use fixture::region_at;
use load::{Job, RunControl, RunOptions, run, run_jobs};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use storage::Region;
use tempfile::TempDir;
use workload::{
    Access, Arrival, Burst, Caching, Content, Limit, Phase, Pool, RunLength, RunResult, Shape, SizeShare,
    SyncEvery, SyncKind, Trace, TraceIo, TraceKind, Verify, Walk, Workload,
};

const MIB: u64 = 1 << 20;

/// Held by tests that measure time, which must not run at once.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn region(bytes: u64) -> (TempDir, Region) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("target");
    File::create(&path).unwrap().write_all(&vec![0xa5; bytes as usize]).unwrap();
    let region = region_at(&path, true);
    (dir, region)
}

fn buffered(shape: Shape) -> Workload {
    Workload::from(Shape { caching: Caching::Buffered, ..shape })
}

fn for_ms(ms: u64) -> RunLength {
    RunLength { duration: Duration::from_millis(ms), ..RunLength::default() }
}

fn ios(count: u64) -> RunLength {
    RunLength { ios_max: Some(count), ..for_ms(20_000) }
}

fn ran(region: &Region, workload: &Workload, length: &RunLength) -> RunResult {
    let result = run(region, workload, length, &mut |_| RunControl::Continue).unwrap();
    assert_eq!(result.failed(), 0);
    result
}

#[test]
fn an_open_loop_issues_at_its_rate_and_a_limited_loop_keeps_to_its_limit() {
    let _turn = turn();
    let (_dir, region) = region(MIB);
    let read = buffered(Shape::random_read(4096));
    for iops in [50.0, 2_000.0, 40_000.0] {
        for threads in [1, 2] {
            let workload = Workload { threads, outstanding: 16, ..read.clone() };
            let limit = Limit { iops: Some(iops), bytes_per_s: None };
            for (name, workload) in [
                ("constant", Workload { arrival: Arrival::Constant { iops }, ..workload.clone() }),
                ("poisson", Workload { arrival: Arrival::Poisson { iops }, ..workload.clone() }),
                ("limited", Workload { limit, ..workload }),
            ] {
                let found = ran(&region, &workload, &for_ms(1_000)).iops();
                let spread = if name == "poisson" { 5.0 * iops.sqrt() } else { 0.0 };
                assert!(
                    (found - iops).abs() < iops * 0.03 + spread + 2.0,
                    "{name} {iops}, {threads} threads: {found}"
                );
            }
        }
    }
    let bytes = Workload { limit: Limit { iops: None, bytes_per_s: Some(8e6) }, ..read };
    let found = ran(&region, &bytes, &for_ms(1_000)).mib_per_s() * 1_048_576.0;
    assert!((5.6e6..8.3e6).contains(&found), "{found} bytes a second");
}

#[test]
fn an_overloaded_open_loop_reports_the_ios_that_still_wait() {
    let _turn = turn();
    let (_dir, region) = region(MIB);
    let arrival = Arrival::Constant { iops: 30_000_000.0 };
    let workload = Workload { arrival, outstanding: 4, ..buffered(Shape::random_read(4096)) };
    let result = ran(&region, &workload, &for_ms(500));
    let response = result.response.unwrap();
    let all = response.waiting + result.read.count;
    assert!((14_000_000..16_000_000).contains(&all), "{all} of 15 million were asked for");
    assert!(response.waiting_ns_max > 100_000_000, "the oldest waits {} ns", response.waiting_ns_max);
    let waited = response.read.percentile_ns(50.0).unwrap();
    assert!(
        waited > 10 * result.read.latency.percentile_ns(50.0).unwrap(),
        "{waited} ns from the intended start"
    );
}

#[test]
fn bursts_are_separated_by_pauses() {
    let _turn = turn();
    let (_dir, region) = region(MIB);
    let burst = Some(Burst { ios: 10, pause: Duration::from_millis(20) });
    let result = ran(&region, &Workload { burst, ..buffered(Shape::random_read(4096)) }, &for_ms(1_000));
    assert!((250..=510).contains(&result.ios()), "{} in 50 bursts of 10", result.ios());
}

#[test]
fn a_sync_follows_every_group_of_writes() {
    let (_dir, region) = region(4 * MIB);
    for (how, outstanding) in [(SyncKind::Fsync, 1), (SyncKind::Fdatasync, 4), (SyncKind::Fdatasync, 16)] {
        let sync = Some(SyncEvery { writes: 8, how });
        let workload = Workload { sync, outstanding, ..buffered(Shape::sequential_write(4096)) };
        let result = ran(&region, &workload, &ios(80));
        assert_eq!(result.write.count, 80);
        // The last group's sync may not be waited for.
        assert!((9..=10).contains(&result.sync.count), "{} syncs", result.sync.count);
        assert!(result.sync.latency.mean_ns().unwrap() > 0.0);
    }
}

#[test]
fn reads_go_on_while_writes_wait_for_their_sync() {
    let _turn = turn();
    let (_dir, region) = region(4 * MIB);
    let sync = Some(SyncEvery { writes: 1, how: SyncKind::Fsync });
    let workload = Workload { sync, outstanding: 8, ..buffered(Shape::random_read(4096).with_writes(10)) };
    let result = ran(&region, &workload, &for_ms(500));
    assert!(result.sync.count.abs_diff(result.write.count) <= 1);
    let share = result.write.count as f64 / result.ios() as f64;
    assert!((0.07..0.13).contains(&share), "the coin stays fair: {share}");
}

#[test]
fn a_sequential_log_with_syncs_leaves_no_hole() {
    let (dir, region) = region(MIB);
    let sync = Some(SyncEvery { writes: 3, how: SyncKind::Fdatasync });
    let content = Content::Counting;
    let workload = Workload { sync, content, outstanding: 5, ..buffered(Shape::sequential_write(4096)) };
    ran(&region, &workload, &ios(100));
    let bytes = std::fs::read(dir.path().join("target")).unwrap();
    assert!(bytes[..100 * 4096].iter().enumerate().all(|(at, byte)| *byte == at as u8));
    assert!(bytes[105 * 4096..].iter().all(|byte| *byte == 0xa5));
}

#[test]
fn sizes_mix_in_their_shares() {
    let (_dir, region) = region(4 * MIB);
    let sizes =
        vec![SizeShare { block_bytes: 512, percent: 50 }, SizeShare { block_bytes: 8192, percent: 50 }];
    let workload = Workload { sizes, outstanding: 4, ..buffered(Shape::random_read(8192)) };
    let result = ran(&region, &workload, &ios(20_000));
    let mean = result.read.bytes as f64 / result.read.count as f64;
    assert!((mean - 4352.0).abs() < 120.0, "{mean} bytes on average");
}

#[test]
fn only_the_used_part_is_written() {
    let (dir, region) = region(MIB);
    let access = Access { base_bytes: 65_536, length_bytes: Some(65_536), ..Access::default() };
    let workload =
        Workload { access, content: Content::Zeros, outstanding: 4, ..buffered(Shape::random_write(4096)) };
    ran(&region, &workload, &ios(500));
    let bytes = std::fs::read(dir.path().join("target")).unwrap();
    assert!(bytes[65_536..131_072].iter().all(|byte| *byte == 0));
    assert!(bytes[..65_536].iter().chain(&bytes[131_072..]).all(|byte| *byte == 0xa5));
}

#[test]
fn a_shared_walk_writes_each_block_once() {
    let (dir, region) = region(MIB);
    let access = Access { walk: Walk::Shared, ..Access::default() };
    let workload =
        Workload { access, content: Content::Zeros, threads: 3, ..buffered(Shape::sequential_write(4096)) };
    ran(&region, &workload, &ios(255));
    let bytes = std::fs::read(dir.path().join("target")).unwrap();
    let left = bytes.chunks(4096).filter(|block| block[0] == 0xa5).count();
    assert_eq!(left, 1, "255 of 256 blocks");
}

#[test]
fn what_was_written_is_verified_and_damage_is_found() {
    let _turn = turn();
    let (dir, region) = region(4 * MIB);
    for verify in [Verify::Checksum, Verify::Sequence, Verify::Content] {
        let shape = Shape::random_read(4096).with_writes(50);
        let workload =
            Workload { verify: Some(verify), outstanding: 8, threads: 2, seed: 3, ..buffered(shape) };
        let clean = ran(&region, &workload, &ios(3_000)).verification.unwrap();
        assert!(clean.bad == 0 && clean.blocks > 500, "{verify:?}: {clean:?}");

        // The watcher damages the file at the end of the run.
        let path = dir.path().join("target");
        let length = RunLength { cool_down: Duration::ZERO, ..for_ms(300) };
        let mut damaged = false;
        let found = run(&region, &workload, &length, &mut |live| {
            if live.stage == load::RunStage::Verifying && !damaged {
                damaged = true;
            }
            RunControl::Continue
        });
        assert!(found.unwrap().verification.unwrap().bad == 0);
        let other = OpenOptions::new().write(true).open(&path).unwrap();
        other.write_all_at(&[1; 64], 40_960 + 100).unwrap();
        if verify == Verify::Content {
            // A run that only reads checks what it reads.
            let reads = Workload { shape: Shape { write_percent: 0, ..workload.shape }, ..workload.clone() };
            let found = ran(&region, &reads, &ios(20_000)).verification.unwrap();
            assert!(found.blocks == 20_000 && found.bad > 0, "{found:?}");
            assert!(found.first_bad.iter().any(|bad| bad.offset_bytes == 40_960), "{found:?}");
        }
    }
}

#[test]
fn a_pool_serves_all_its_workloads_by_their_weights() {
    let _turn = turn();
    let ((_a, first), (_b, second)) = (region(MIB), region(MIB));
    let read = Workload { outstanding: 2, ..buffered(Shape::random_read(4096)) };
    let job = |region, weight| Job { region, workload: &read, weight, trace: None };
    let pool = |outstanding| Some(Pool { threads: 2, outstanding });
    let jobs = [job(&first, 3), job(&second, 1)];
    let shared = RunOptions { pool: pool(Some(4)), ..RunOptions::from(for_ms(400)) };
    let results = run_jobs(&jobs, &shared, &mut |_| RunControl::Continue).unwrap();
    let ratio = results[0].ios() as f64 / results[1].ios() as f64;
    assert!((2.8..3.2).contains(&ratio), "{ratio}");
    let own = RunOptions { pool: pool(None), ..RunOptions::from(for_ms(400)) };
    let results = run_jobs(&jobs, &own, &mut |_| RunControl::Continue).unwrap();
    let ratio = results[0].ios() as f64 / results[1].ios() as f64;
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    assert!(results.iter().all(|result| result.threads.len() == 2));
}

#[test]
fn several_jobs_are_measured_over_the_same_time() {
    let _turn = turn();
    let ((_a, first), (_b, second)) = (region(MIB), region(MIB));
    let fast = buffered(Shape::random_read(4096));
    let slow =
        Workload { arrival: Arrival::Constant { iops: 1_000.0 }, ..buffered(Shape::random_write(4096)) };
    let jobs = [
        Job { region: &first, workload: &fast, weight: 1, trace: None },
        Job { region: &second, workload: &slow, weight: 1, trace: None },
    ];
    let how = RunOptions {
        slice: Duration::from_millis(100),
        thread_series: true,
        ..RunOptions::from(for_ms(500))
    };
    let results = run_jobs(&jobs, &how, &mut |_| RunControl::Continue).unwrap();
    assert_eq!(results[0].elapsed_ns, results[1].elapsed_ns);
    assert_eq!((results[0].write.count, results[1].read.count), (0, 0));
    let slow = results[1].write.count + results[1].response.as_ref().unwrap().waiting;
    assert!((485..=515).contains(&slow), "{slow} asked for in half a second");
    assert_eq!((results[1].series.len(), results[1].threads[0].series.len()), (5, 5));
}

#[test]
fn a_trace_is_replayed_at_its_times_or_as_fast_as_it_goes() {
    let _turn = turn();
    let (dir, region) = region(MIB);
    let io = |at_ms: u64, kind, offset_bytes, bytes| TraceIo {
        at_ns: at_ms * 1_000_000,
        kind,
        offset_bytes,
        bytes,
    };
    let ios = vec![
        io(0, TraceKind::Read, 0, 8192),
        io(100, TraceKind::Write, 4096, 4096),
        io(200, TraceKind::Sync, 0, 0),
        io(400, TraceKind::Write, 16_384, 512),
    ];
    let trace = Trace { ios };
    let content = Content::Zeros;
    for (arrival, least_ms, most_ms) in
        [(Arrival::Recorded { speed: 2.0 }, 190, 260), (Arrival::Closed, 0, 100)]
    {
        let workload = Workload { arrival, content: content.clone(), ..buffered(Shape::random_read(8192)) };
        let job = Job { region: &region, workload: &workload, weight: 1, trace: Some(&trace) };
        let result =
            &run_jobs(&[job], &RunOptions::from(for_ms(5_000)), &mut |_| RunControl::Continue).unwrap()[0];
        assert_eq!((result.read.count, result.write.count, result.sync.count), (1, 2, 1));
        assert_eq!((result.read.bytes, result.write.bytes), (8192, 4608));
        assert!(result.replayed);
        let took_ms = result.elapsed_ns / 1_000_000;
        assert!((least_ms..=most_ms).contains(&took_ms), "{took_ms} ms");
    }
    let bytes = std::fs::read(dir.path().join("target")).unwrap();
    assert_eq!(bytes.iter().filter(|byte| **byte == 0).count(), 4608);
    assert!(bytes[4096..8192].iter().all(|byte| *byte == 0));
}

#[test]
fn a_trace_of_a_larger_target_is_refused_by_name() {
    let (_dir, region) = region(MIB);
    let ios = vec![TraceIo { at_ns: 0, kind: TraceKind::Read, offset_bytes: MIB, bytes: 4096 }];
    let (workload, trace) = (buffered(Shape::random_read(4096)), Trace { ios });
    let job = Job { region: &region, workload: &workload, weight: 1, trace: Some(&trace) };
    let error = run_jobs(&[job], &RunOptions::from(for_ms(10)), &mut |_| RunControl::Continue).unwrap_err();
    assert!(error.to_string().contains("I/O 1 of the trace at offset 1048576 lies beyond"), "{error}");
}

#[test]
fn a_mapping_reads_writes_and_survives_a_file_cut_short() {
    let _turn = turn();
    let (dir, region) = region(MIB);
    let mapped = |shape: Shape| Workload::from(Shape { caching: Caching::Mapped, ..shape });
    let write = Workload { content: Content::Zeros, ..mapped(Shape::sequential_write(4096)) };
    assert_eq!(ran(&region, &write, &ios(10)).write.bytes, 40_960);
    let bytes = std::fs::read(dir.path().join("target")).unwrap();
    assert_eq!(bytes.iter().position(|byte| *byte == 0xa5), Some(40_960));

    let path = dir.path().join("target");
    let mut cut = false;
    let reads = Workload { outstanding: 2, ..mapped(Shape::random_read(4096)) };
    let result = run(&region, &reads, &for_ms(400), &mut |live| {
        if live.elapsed > Duration::from_millis(100) && !cut {
            cut = true;
            File::options().write(true).open(&path).unwrap().set_len(MIB / 2).unwrap();
        }
        RunControl::Continue
    });
    let result = result.unwrap();
    assert!(result.read.errors.contains_key(&libc::EIO), "{:?}", result.read.errors);
    assert!(result.read.count > 0);
}

#[test]
fn warm_up_and_cool_down_load_but_do_not_count() {
    let _turn = turn();
    let (_dir, region) = region(MIB);
    let arrival = Arrival::Constant { iops: 1_000.0 };
    let workload = Workload { arrival, ..buffered(Shape::random_read(4096)) };
    let length = RunLength {
        warm_up: Duration::from_millis(200),
        cool_down: Duration::from_millis(200),
        ..for_ms(300)
    };
    let mut seen = Vec::new();
    let result = run(&region, &workload, &length, &mut |live| {
        seen.push((live.stage, live.ios));
        RunControl::Continue
    })
    .unwrap();
    assert!((290..=310).contains(&result.ios()), "{}", result.ios());
    let last = seen.last().unwrap();
    assert!(last.0 == load::RunStage::CoolDown && last.1 > 600, "{last:?}");
    assert_eq!(seen[0].0, load::RunStage::WarmUp);
    assert_eq!(Phase::single(workload, length).length.total(), Duration::from_millis(700));
}

#[test]
fn more_memory_than_there_is_is_refused_before_anything_starts() {
    let (_dir, region) = region(16 * MIB);
    let workload = Workload {
        outstanding: 10_000,
        threads: 64,
        ..buffered(Shape::random_read(Workload::BLOCK_BYTES_MAX))
    };
    let error = run(&region, &workload, &for_ms(10), &mut |_| RunControl::Continue).unwrap_err();
    assert!(error.to_string().contains("640000 outstanding I/Os of up to 16 MiB"), "{error}");
}

#[test]
fn ten_thousand_outstanding_and_two_hundred_and_fifty_six_threads_run() {
    let _turn = turn();
    let (_dir, region) = region(MIB);
    let deep = Workload { outstanding: 10_000, ..buffered(Shape::random_read(4096)) };
    assert_eq!(ran(&region, &deep, &ios(30_000)).ios(), 30_000);
    let wide = Workload { threads: 256, outstanding: 2, ..buffered(Shape::random_read(4096)) };
    let result = ran(&region, &wide, &ios(30_000));
    assert_eq!((result.ios(), result.threads.len()), (30_000, 256));
}

#[test]
fn one_read_at_a_time_counts_whether_the_page_cache_had_it_or_not() {
    let _turn = turn();
    let (_dir, region) = region(16 * MIB);
    region.file.sync_all().unwrap();
    let workload = Workload { outstanding: 1, ..buffered(Shape::random_read(4096)) };
    let cached = ran(&region, &workload, &ios(5_000));
    // SAFETY: advice on an open file.
    let advised = unsafe { libc::posix_fadvise(region.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(advised, 0);
    let uncached = ran(&region, &workload, &ios(5_000));
    for result in [&cached, &uncached] {
        assert_eq!((result.read.count, result.read.bytes), (5_000, 5_000 * 4096));
        assert_eq!(result.read.latency.count(), 5_000);
        assert!(result.read.errors.is_empty());
    }
    // By Little's law: an uncached read's time counts from the first attempt on.
    assert!(uncached.outstanding() > 0.75, "{} outstanding of 1", uncached.outstanding());
    // A cut file ends neither with a success nor with another error than over the ring.
    File::options().write(true).open(&region.path).unwrap().set_len(8 * MIB).unwrap();
    let cut = run(&region, &workload, &for_ms(300), &mut |_| RunControl::Continue).unwrap();
    let share = cut.failed() as f64 / (cut.failed() + cut.read.count) as f64;
    assert!(
        cut.read.errors.len() == 1 && cut.read.errors.contains_key(&libc::ENODATA),
        "{:?}",
        cut.read.errors
    );
    assert!((0.4..0.6).contains(&share), "{share}");
}

#[test]
fn a_buffer_of_content_that_memory_does_not_hold_is_refused() {
    let (_dir, region) = region(MIB);
    for bytes in [1 << 62, 1 << 63, u64::MAX] {
        let content = Content::Buffer { bytes, file: None };
        let workload = Workload { content, ..buffered(Shape::random_write(4096)) };
        let error =
            run(&region, &workload, &RunLength::default(), &mut |_| RunControl::Continue).unwrap_err();
        assert!(error.to_string().contains("take their content from need"), "{error}");
    }
}

#[test]
fn millions_of_threads_are_refused_before_they_are_planned() {
    let (_dir, region) = region(MIB);
    let mapped = Shape { caching: Caching::Mapped, ..Shape::random_read(4096) };
    let workload = Workload {
        threads: Workload::THREADS_MAX,
        outstanding: Workload::OUTSTANDING_MAX,
        ..Workload::from(mapped)
    };
    let job = Job { region: &region, workload: &workload, weight: 1, trace: None };
    let jobs = vec![job; 10_000];
    let options = RunOptions::from(RunLength::default());
    let error = run_jobs(&jobs, &options, &mut |_| RunControl::Continue).unwrap_err();
    assert!(error.to_string().contains("it needs 167772160000 threads, and 8192 is the most"), "{error}");
}
