//! Real runs on a real file.

mod fixture;

use fixture::region_at;
use load::{LoadError, RunControl, run, run_with_backend};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::{Duration, Instant};
use storage::Region;
use workload::{Backend, Caching, Content, Durability, RunLength, Shape, Verify, Workload};

const MIB: u64 = 1 << 20;

fn region(bytes: u64) -> (tempfile::TempDir, Region) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.dat");
    let mut file = File::create(&path).unwrap();
    for at in 0..bytes / MIB {
        file.write_all(&vec![at as u8; MIB as usize]).unwrap();
    }
    let region = region_at(&path, true);
    (dir, region)
}

fn buffered(shape: Shape) -> Workload {
    Workload::from(Shape { caching: Caching::Buffered, ..shape })
}

fn for_time(ms: u64) -> RunLength {
    RunLength {
        warm_up: Duration::ZERO,
        duration: Duration::from_millis(ms),
        ios_max: None,
        ..RunLength::default()
    }
}

fn go_on(_: &load::LiveStats) -> RunControl {
    RunControl::Continue
}

#[test]
fn counts_bytes_latencies_and_seconds_agree_with_each_other() {
    let (_dir, region) = region(4 * MIB);
    let workload =
        Workload { outstanding: 8, threads: 2, ..buffered(Shape::random_read(4096).with_writes(30)) };
    let result = run(&region, &workload, &for_time(1200), &mut go_on).unwrap();
    assert!(result.read.count > 0 && result.write.count > 0);
    assert_eq!(result.read.bytes, result.read.count * 4096);
    assert_eq!(result.read.latency.count(), result.read.count);
    let seconds = |of: fn(&workload::Slice) -> u64| result.series.iter().map(of).sum::<u64>();
    assert_eq!(seconds(|s| s.read.count), result.read.count);
    assert_eq!(seconds(|s| s.write.stall_ns), result.write.latency.sum_ns());
    assert_eq!(result.series.len(), 2);
    assert_eq!(result.threads.iter().map(|t| t.total().count).sum::<u64>(), result.ios());
    assert_eq!(result.elapsed_ns, 1_200_000_000);
    assert!(result.outstanding() <= 16.0, "Little's law: no more than was asked");
    assert!(!result.cores.is_empty() && !result.interrupted);
}

#[test]
fn a_count_ends_the_run_exactly_there() {
    let (_dir, region) = region(MIB);
    for (ios, outstanding, threads) in [(1, 16, 1), (1000, 16, 1), (1001, 8, 3)] {
        let workload = Workload { outstanding, threads, ..buffered(Shape::random_read(4096)) };
        let length = RunLength { ios_max: Some(ios), ..for_time(10_000) };
        let began = Instant::now();
        let result = run(&region, &workload, &length, &mut go_on).unwrap();
        assert_eq!(result.ios(), ios);
        assert!(began.elapsed() < Duration::from_secs(5));
        assert!(result.elapsed_ns < 5_000_000_000);
    }
}

#[test]
fn the_user_can_end_it_and_keeps_what_was_measured() {
    let (_dir, region) = region(MIB);
    let mut watch = |live: &load::LiveStats| {
        if live.elapsed > Duration::from_millis(150) { RunControl::Interrupt } else { RunControl::Continue }
    };
    let workload = buffered(Shape::random_read(4096));
    let result = run(&region, &workload, &for_time(60_000), &mut watch).unwrap();
    assert!(result.interrupted && result.ios() > 0);
    assert!((100..2_000).contains(&(result.elapsed_ns / 1_000_000)));
}

#[test]
fn what_completes_in_warm_up_does_not_count() {
    let (_dir, region) = region(MIB);
    let length = RunLength { warm_up: Duration::from_millis(300), ..for_time(100) };
    let mut seen = 0;
    let mut watch = |live: &load::LiveStats| {
        seen = live.ios;
        RunControl::Continue
    };
    let workload = buffered(Shape::random_read(4096));
    let result = run(&region, &workload, &length, &mut watch).unwrap();
    assert!(result.ios() < seen, "{} of {seen}", result.ios());
    assert_eq!(result.elapsed_ns, 100_000_000);
}

#[test]
fn writes_reach_their_region_and_nothing_else() {
    let (_dir, mut region) = region(4 * MIB);
    region.offset_bytes = MIB;
    region.bytes = MIB;
    let workload = buffered(Shape { durability: Durability::WriteThrough, ..Shape::random_write(65536) });
    let length = RunLength { ios_max: Some(500), ..for_time(10_000) };
    let result = run(&region, &workload, &length, &mut go_on).unwrap();
    assert_eq!((result.write.count, result.read.count), (500, 0));
    let content = std::fs::read(&region.path).unwrap();
    let mib = |at: usize| &content[at * MIB as usize..(at + 1) * MIB as usize];
    assert!(
        mib(0).iter().all(|b| *b == 0) && mib(2).iter().all(|b| *b == 2) && mib(3).iter().all(|b| *b == 3)
    );
    assert!(mib(1).iter().any(|b| *b != 1));
}

#[test]
fn failing_ios_are_counted_by_errno_and_end_a_run_that_only_fails() {
    let (_dir, mut region) = region(MIB);
    region.file = OpenOptions::new().read(true).open(&region.path).unwrap();
    let workload = buffered(Shape::random_write(4096));
    let error = run(&region, &workload, &for_time(60_000), &mut go_on).unwrap_err();
    match error {
        LoadError::AllFailed { count, error, .. } => {
            assert_eq!(error.raw_os_error(), Some(libc::EBADF));
            assert!(count >= 1000);
        }
        other => panic!("{other}"),
    }
    // Reads go on while the writes fail.
    let mixed = buffered(Shape::random_read(4096).with_writes(50));
    let result = run(&region, &mixed, &for_time(200), &mut go_on).unwrap();
    assert!(result.read.count > 0 && result.write.errors[&libc::EBADF] > 0);
}

#[test]
fn a_region_below_one_block_is_refused_by_name() {
    let (_dir, mut region) = region(MIB);
    region.bytes = 1000;
    let error = run(&region, &buffered(Shape::random_read(4096)), &for_time(10), &mut go_on).unwrap_err();
    assert!(error.to_string().contains("1000 bytes"), "{error}");
}

#[test]
fn blocking_writes_carry_the_content_of_their_buffer_or_source() {
    let (_dir, region) = region(MIB);
    let length = RunLength { ios_max: Some(2_000), ..for_time(10_000) };
    let run = |workload: &Workload| {
        run_with_backend(Backend::Blocking, &region, workload, &length, &mut go_on).unwrap()
    };
    let mixed = buffered(Shape::random_read(4096).with_writes(50));
    let marked = Workload { verify: Some(Verify::Sequence), outstanding: 4, ..mixed };
    let verified = run(&marked).verification.unwrap();
    assert!(verified.blocks > 0 && verified.bad == 0, "{verified:?}");
    let source = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(source.path(), [7, 8, 9]).unwrap();
    let content = Content::Buffer { bytes: 65_536, file: Some(source.path().into()) };
    run(&Workload { content, ..buffered(Shape::sequential_write(4096)) });
    assert!(std::fs::read(&region.path).unwrap().iter().all(|byte| (7..=9).contains(byte)));
}

#[test]
fn without_io_uring_threads_do_the_same_work() {
    let (_dir, region) = region(4 * MIB);
    let shape = Shape { durability: Durability::WriteThrough, ..Shape::random_read(4096).with_writes(30) };
    let workload = Workload { outstanding: 4, threads: 2, ..buffered(shape) };
    let result = run_with_backend(Backend::Blocking, &region, &workload, &for_time(300), &mut go_on).unwrap();
    assert_eq!(
        (result.backend, result.threads.len()),
        (Backend::Blocking, 2),
        "a row for each thread that was asked for"
    );
    assert_eq!(result.workload, workload, "what was asked, not how it was done");
    assert!(result.read.count > 0 && result.write.count > 0 && result.failed() == 0);
    assert!(result.outstanding() <= 8.0);
    let counted = RunLength { ios_max: Some(100), ..for_time(10_000) };
    let result = run_with_backend(Backend::Blocking, &region, &workload, &counted, &mut go_on).unwrap();
    assert_eq!(result.ios(), 100);
}

#[test]
fn a_synced_log_grows_its_file_by_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    File::create(&path).unwrap();
    let region = Region { bytes: 64 * MIB, ..region_at(&path, true) };
    let length = RunLength { ios_max: Some(50), ..for_time(10_000) };
    let result = run(&region, &Workload::from(Shape::log_append(4096)), &length, &mut go_on).unwrap();
    assert_eq!((result.write.count, result.backend), (50, Backend::Blocking));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 50 * 4096);
}

#[test]
fn the_backend_is_named() {
    let (_dir, region) = region(MIB);
    let result = run(&region, &buffered(Shape::random_read(4096)), &for_time(50), &mut go_on).unwrap();
    assert_eq!(result.backend, Backend::IoUring, "this machine has io_uring");
}
