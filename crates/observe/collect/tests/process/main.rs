//! Against fio: the process source's counts equal those that fio reports.

mod block;
mod chosen;
mod shared;

use collect::Source;
use collect::process::{Coverage, OpenError, Process, Selection};
use filestats::{Ops, Sample, Snapshot};
use serde_json::Value;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use workload::CapKind;

/// Size of each file: 2,048 blocks.
const FILE_BYTES: u64 = 8 << 20;
const BLOCK_BYTES: u64 = 4096;

/// A file for fio in a temporary directory, filled and on stable storage.
struct Bench {
    /// Tests run one at a time, so that they do not disturb each other's times.
    _alone: MutexGuard<'static, ()>,
    _directory: tempfile::TempDir,
    file: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        Bench::in_directory(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    fn in_directory(directory: tempfile::TempDir) -> Bench {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let file = directory.path().join("data.db");
        let blocks: Vec<u8> = (0..FILE_BYTES).map(|at| (at / 512) as u8).collect();
        fs::write(&file, blocks).unwrap();
        fs::File::open(&file).unwrap().sync_all().unwrap();
        Bench { _alone: alone, _directory: directory, file }
    }

    fn selection(&self) -> Selection {
        Selection { files: vec![self.file.clone()], ..Selection::default() }
    }

    /// Counts what fio does with the file; `None`, with a message, where this user may not. A run is repeated while the
    /// source reports one of `allowed_losses`. Other processes may cause them in each run, when their rings end: then the
    /// figures of the last run decide.
    fn watched(&self, options: &[&str], allowed_losses: &[&str]) -> Option<(Fio, Snapshot)> {
        let mut tries = 0;
        loop {
            let mut source = opened(&self.selection())?;
            let fio = Fio::run(&self.file, options);
            let snapshot = source.snapshot().unwrap();
            // These are of the whole device, including other processes.
            let (of_devices, notes): (Vec<String>, Vec<String>) =
                snapshot.notes.iter().cloned().partition(|note| note.contains(NOT_PASSED_ON));
            let is_allowed = |note: &String| allowed_losses.iter().any(|words| note.contains(words));
            // Unseen io_uring requests are of all processes, whichever file is chosen.
            let others = |note: &String| UNSEEN_REQUESTS.iter().any(|words| note.contains(words));
            assert!(notes.iter().all(|note| is_allowed(note) || others(note)), "{notes:?}");
            tries += 1;
            if !notes.iter().chain(&of_devices).any(is_allowed) || tries == TRIES_MAX {
                return Some((fio, snapshot));
            }
            eprintln!("{options:?}: once more: {:?}", snapshot.notes);
        }
    }
}

/// Completions for which the kernel does not call the programs: their file is unknown. They occur on machines where
/// programs must not interrupt certain tasks; others have none.
const NOT_PASSED_ON: &str = "the kernel did not pass on";
const UNSEEN_REQUESTS: [&str; 1] = ["io_uring I/Os that ended without a completion"];

/// The bytes that such a note reports: "... (0.2 %, 12288 bytes), ...".
fn not_passed_on_bytes(note: &str) -> Option<u64> {
    let (_, rest) = note.split_once(NOT_PASSED_ON)?;
    rest.split_once(" bytes)")?.0.rsplit(' ').next()?.parse().ok()
}

/// The source; `None`, with a message, where this user may not load programs into the kernel.
fn opened(selection: &Selection) -> Option<Process> {
    match Process::open(selection) {
        Ok(source) => Some(source),
        Err(error)
            if error.downcast_ref::<OpenError>().is_some() && !rustix::process::geteuid().is_root() =>
        {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The report of a run of fio.
struct Fio(Value);

impl Fio {
    fn run(file: &Path, options: &[&str]) -> Fio {
        // High priority, so that other processes do not preempt it between its clock and ours.
        let output = Command::new("nice")
            .args(["-n", "-20", "fio"])
            .args(["--name=truth", "--output-format=json", "--bs=4k", "--size=8m", "--randseed=7"])
            .arg(format!("--filename={}", file.display()))
            .args(options)
            .output()
            .expect("fio is installed");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{options:?}: {text} {}", String::from_utf8_lossy(&output.stderr));
        let start = text.find('{').expect("JSON");
        Fio(serde_json::from_str(&text[start..]).unwrap())
    }

    /// Count, bytes and mean nanoseconds.
    fn totals(&self, kind: &str) -> (u64, u64, f64) {
        let part = &self.0["jobs"][0][kind];
        let bytes = part["io_bytes"].as_u64().unwrap_or(0);
        (part["total_ios"].as_u64().unwrap(), bytes, part["lat_ns"]["mean"].as_f64().unwrap())
    }
}

/// The samples of a file whose instance ends with `layer`.
fn layer_samples<'a>(snapshot: &'a Snapshot, file: &Path, layer: &str) -> Vec<&'a Sample> {
    let path = file.to_str().unwrap();
    let of_file = snapshot.samples.iter().filter(|sample| sample.file.path == path);
    of_file.filter(|sample| sample.file.instance.ends_with(layer)).collect()
}

fn sum(samples: &[&Sample], ops: impl Fn(&Sample) -> Ops) -> Ops {
    samples.iter().map(|sample| ops(sample)).fold(Ops::ZERO, Ops::plus)
}

/// Number of runs, in case fio is preempted between its clock and ours. Counts are exact in each.
const TRIES_MAX: usize = 5;

/// The time between fio's clock and ours: two clock reads, the system call's entry and exit, and the counting, which is
/// outside of what is timed.
const BETWEEN_NS: f64 = 3000.0;

/// How our mean may differ from fio's.
#[derive(Clone, Copy)]
enum Apart {
    /// By 5 %, or by the time between the clocks.
    Little,
    /// fio reads its clock before it submits several I/Os at once, and after its thread woke up and fetched a result. On
    /// fast storage this adds more than the I/O takes. The test on slow storage shows that the times are the same.
    FioLater,
    /// fio starts timing a sync when its submission has returned.
    FioFromReturn,
    /// fio's time of a sync includes waiting for all outstanding I/Os.
    FioFromBefore,
}

fn same_time(ours: &Ops, fio_ns: f64, apart: Apart, what: &str) -> bool {
    let ours_ns = ours.latency_ns().known().unwrap();
    eprintln!("{what}: {ours_ns:.0} ns, fio {fio_ns:.0} ns");
    let small = (fio_ns * 0.05).max(BETWEEN_NS);
    match apart {
        Apart::Little => (ours_ns - fio_ns).abs() <= small,
        Apart::FioLater | Apart::FioFromBefore => ours_ns <= fio_ns + small,
        Apart::FioFromReturn => ours_ns <= fio_ns * 1.5,
    }
}

/// The file of a small part of the page cache's I/O is unknown when it completes; no I/O is counted twice.
fn nearly_all(bytes: u64, of: u64, what: &str) {
    assert!(bytes <= of && bytes >= of / 10 * 8, "{what}: {bytes} of {of}");
}

/// Checks that the counts equal those of one of fio's engines.
fn check_engine(engine: &str, options: &[&str], transfers: Apart, syncs: Apart) -> Option<()> {
    let bench = Bench::new();
    for direct in ["--direct=1", "--direct=0"] {
        for sync in [None, Some("--fsync=32")] {
            let engine_option = format!("--ioengine={engine}");
            let mut all = vec![engine_option.as_str(), "--rw=randrw", direct];
            all.extend(options);
            all.extend(sync);
            let what = format!("{engine} {direct} {}", sync.unwrap_or(""));
            let mut tries = 0;
            loop {
                let (fio, snapshot) = bench.watched(&all, &UNSEEN_REQUESTS)?;
                let layer = layer_samples(&snapshot, &bench.file, "(fio)");
                let (read, write) =
                    (sum(&layer, |one| one.counters.read), sum(&layer, |one| one.counters.write));
                let synced = sum(&layer, |one| one.counters.sync.known().unwrap());
                let counted = |ops: &Ops| (ops.count, ops.bytes);
                let (reads, read_bytes, read_ns) = fio.totals("read");
                let (writes, write_bytes, write_ns) = fio.totals("write");
                assert_eq!(reads + writes, FILE_BYTES / BLOCK_BYTES, "fio did all of it");
                assert_eq!(counted(&read), (reads, read_bytes), "{what}: reads");
                assert_eq!(counted(&write), (writes, write_bytes), "{what}: writes");
                let mut fine = same_time(&read, read_ns, transfers, &format!("{what}: a read"));
                fine &= same_time(&write, write_ns, transfers, &format!("{what}: a write"));
                assert_eq!(synced.count, fio.totals("sync").0, "{what}: syncs");
                if sync.is_some() {
                    fine &= same_time(&synced, fio.totals("sync").2, syncs, &format!("{what}: a sync"));
                }
                let histograms: u64 =
                    layer.iter().map(|one| one.latencies.as_ref().unwrap().read.count()).sum();
                assert_eq!(histograms, reads, "{what}: every read is in the histogram");
                tries += 1;
                if fine {
                    break;
                }
                assert!(tries < TRIES_MAX, "{what}: the times differ from fio's");
            }
        }
    }
    Some(())
}

#[test]
fn synchronous_io_is_counted_as_fio_counts_it() {
    for engine in ["psync", "pvsync2"] {
        if check_engine(engine, &[], Apart::Little, Apart::Little).is_none() {
            return;
        }
    }
}

#[test]
fn io_uring_is_counted_to_its_completion() {
    check_engine("io_uring", &["--iodepth=1"], Apart::Little, Apart::FioFromReturn);
    check_engine("io_uring", &["--iodepth=8", "--registerfiles"], Apart::FioLater, Apart::FioFromReturn);
}

#[test]
fn libaio_is_counted_to_its_completion() {
    check_engine("libaio", &["--iodepth=1"], Apart::FioLater, Apart::FioFromBefore);
    check_engine("libaio", &["--iodepth=8", "--iodepth_batch=4"], Apart::FioLater, Apart::FioFromBefore);
}

/// Linux's asynchronous I/O, without libaio.
fn aio(call: libc::c_long, context: u64, arguments: [usize; 3]) -> libc::c_long {
    let [a, b, c] = arguments;
    // SAFETY: the arguments point to memory that outlives the call, in the layout of linux/aio_abi.h.
    unsafe { libc::syscall(call, context, a, b, c, 0_usize) }
}

/// A program may submit an iocb again before it fetches the result, because the kernel copies the iocb. A result does not
/// show which submission it belongs to.
#[test]
fn an_iocb_that_is_submitted_again_before_it_is_fetched_is_reported() {
    let bench = Bench::new();
    let selection = Selection { pids: vec![std::process::id()], ..bench.selection() };
    let Some(mut source) = opened(&selection) else { return };
    let file = fs::File::open(&bench.file).unwrap();
    let mut block = [0_u8; BLOCK_BYTES as usize];
    let mut context = 0_u64;
    // SAFETY: it writes a number to `context`.
    assert_eq!(unsafe { libc::syscall(libc::SYS_io_setup, 8_usize, &raw mut context) }, 0);
    // data, key and flags, PREAD and descriptor, buffer, bytes, offset, ...
    let number = u64::from(file.as_raw_fd() as u32) << 32;
    let iocb = [0, 0, number, block.as_mut_ptr() as u64, BLOCK_BYTES, 0, 0, 0_u64];
    let iocbs = [iocb.as_ptr()];
    let mut events = [[0_u64; 4]; 2];
    let fetch = |events: &mut [[u64; 4]; 2], count| {
        aio(libc::SYS_io_getevents, context, [count, count, events.as_mut_ptr() as usize])
    };
    let submit = || aio(libc::SYS_io_submit, context, [1, iocbs.as_ptr() as usize, 0]);
    assert_eq!((submit(), fetch(&mut events, 1)), (1, 1));
    let reported = |snapshot: &Snapshot| snapshot.notes.iter().any(|note| note.contains("submitted again"));
    let before = source.snapshot().unwrap();
    assert_eq!((submit(), submit(), fetch(&mut events, 2)), (1, 1, 2));
    let after = source.snapshot().unwrap();
    // SAFETY: the context is not used after this.
    assert_eq!(unsafe { libc::syscall(libc::SYS_io_destroy, context) }, 0);
    assert_eq!(events.map(|event| event[2]), [BLOCK_BYTES; 2]);
    assert!(!reported(&before) && reported(&after), "{:?} {:?}", before.notes, after.notes);
    let read =
        |snapshot: &Snapshot| sum(&layer_samples(snapshot, &bench.file, ")"), |one| one.counters.read).count;
    assert_eq!((read(&before), read(&after)), (1, 2), "one of the two is counted");
}

/// On a disk with 400 IOPS, the time between the clocks does not matter.
#[test]
fn slow_storage_is_timed_within_a_twentieth_of_what_fio_says() {
    let Some(mut disk) = testbed::LoopDisk::new(64 << 20) else { return };
    let directory = disk.format_and_mount().to_path_buf();
    let bench = Bench::in_directory(tempfile::tempdir_in(directory).unwrap());
    if !disk.throttle(CapKind::ReadIops, 400) || !disk.throttle(CapKind::WriteIops, 400) {
        return;
    }
    for engine in ["psync", "io_uring", "libaio"] {
        for depth in [1, 8] {
            let (engine, depth) = (format!("--ioengine={engine}"), format!("--iodepth={depth}"));
            let options = [engine.as_str(), depth.as_str(), "--rw=randrw", "--direct=1", "--io_size=1m"];
            let mut tries = 0;
            loop {
                let Some((fio, snapshot)) = bench.watched(&options, &UNSEEN_REQUESTS) else { return };
                let layer = layer_samples(&snapshot, &bench.file, "(fio)");
                let read = sum(&layer, |one| one.counters.read);
                let write = sum(&layer, |one| one.counters.write);
                assert_eq!((read.count, write.count), (fio.totals("read").0, fio.totals("write").0));
                let mut fine = same_time(
                    &read,
                    fio.totals("read").2,
                    Apart::Little,
                    &format!("{engine} {depth}: a slow read"),
                );
                fine &= same_time(
                    &write,
                    fio.totals("write").2,
                    Apart::Little,
                    &format!("{engine} {depth}: a slow write"),
                );
                tries += 1;
                if fine {
                    break;
                }
                if tries == TRIES_MAX {
                    // On a busy machine fio wakes up late in each run. Our libaio time ends at the completion itself,
                    // which is not before the device's and not after fio's.
                    let block = layer_samples(&snapshot, &bench.file, "block layer");
                    let device_ns =
                        |of: fn(&Sample) -> Ops| sum(&block, of).latency_ns().known().unwrap_or(0.0);
                    let between = |ours: &Ops, device_ns: f64, kind: &str| {
                        let ours_ns = ours.latency_ns().known().unwrap();
                        ours_ns >= device_ns * 0.95 && ours_ns <= fio.totals(kind).2 * 1.05
                    };
                    let fine = between(&read, device_ns(|one| one.counters.read), "read")
                        && between(&write, device_ns(|one| one.counters.write), "write");
                    assert!(
                        fine && engine.ends_with("libaio"),
                        "{engine} {depth}: the times differ from fio's"
                    );
                    break;
                }
            }
        }
    }
}

/// Each block is accessed once, and none is cached: each access is a page fault and a read of the device.
#[test]
fn reads_of_a_mapped_file_are_its_page_faults_and_block_reads() {
    let bench = Bench::new();
    let mut tries = 0;
    loop {
        let options = ["--ioengine=mmap", "--rw=randread", "--invalidate=1"];
        let Some((fio, snapshot)) = bench.watched(&options, &[]) else { return };
        let (count, bytes, ns) = fio.totals("read");
        let faults = sum(&layer_samples(&snapshot, &bench.file, "page faults"), |one| one.counters.read);
        let block = sum(&layer_samples(&snapshot, &bench.file, "block layer"), |one| one.counters.read);
        assert_eq!((count, bytes), (2048, FILE_BYTES));
        assert_eq!((faults.count, faults.bytes), (count, bytes), "faults");
        nearly_all(block.bytes, bytes, "reads of the device");
        // fio's time also includes the exception and the copy of the page.
        let ours = faults.latency_ns().known().unwrap();
        if ours <= ns && ours >= ns - 2.0 * BETWEEN_NS - ns * 0.05 {
            return;
        }
        tries += 1;
        assert!(tries < TRIES_MAX, "a page fault: {ours} ns, fio {ns} ns");
    }
}

/// After each change of bpf/ the objects must be compiled: scripts/bpf.
#[test]
fn the_committed_objects_match_the_committed_source() {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bpf");
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--quiet", "objects.sum"]).current_dir(&bpf);
    assert!(check.status().unwrap().success(), "run scripts/bpf");
    let sum = fs::read_to_string(bpf.join("objects.sum")).unwrap();
    let major = sum.lines().next().unwrap().trim_start_matches("# clang ").to_owned();
    let version = Command::new("clang").arg("--version").output();
    let here = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if !here.contains(&format!("clang version {major}.")) {
        eprintln!("skipped: clang {major} is not installed");
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let compiled = Command::new(bpf.join("../scripts/bpf")).arg(directory.path()).status().unwrap();
    assert!(compiled.success());
    for object in ["process.bpf.o", "trace.bpf.o", "users.bpf.o"] {
        let [made, committed] = [directory.path(), &bpf].map(|at| fs::read(at.join(object)).unwrap());
        assert!(made == committed, "{object}: run scripts/bpf");
    }
}

#[test]
fn each_layer_counts_direct_io_once() {
    let bench = Bench::new();
    for (engine, depth) in [("psync", "--iodepth=1"), ("io_uring", "--iodepth=8"), ("libaio", "--iodepth=8")]
    {
        let engine = format!("--ioengine={engine}");
        let options = [engine.as_str(), depth, "--rw=randrw", "--direct=1"];
        let Some((fio, snapshot)) = bench.watched(&options, &[UNSEEN_REQUESTS[0], NOT_PASSED_ON]) else {
            return;
        };
        let block = layer_samples(&snapshot, &bench.file, "block layer");
        let unseen_bytes: u64 = snapshot.notes.iter().filter_map(|note| not_passed_on_bytes(note)).sum();
        for (kind, ops) in
            [("read", sum(&block, |one| one.counters.read)), ("write", sum(&block, |one| one.counters.write))]
        {
            let bytes = fio.totals(kind).1;
            // Exact, but for what the source reports as not passed on.
            assert!(
                ops.bytes <= bytes && ops.bytes + unseen_bytes >= bytes,
                "{engine}, {kind}: {} of {bytes}, {unseen_bytes} unseen",
                ops.bytes
            );
        }
        assert!(
            layer_samples(&snapshot, &bench.file, "misses").is_empty(),
            "direct reads do not look in the cache"
        );
    }
}

/// Reads the file twice: first from storage, then from memory.
#[test]
fn reads_from_memory_are_distinguished_from_reads_of_the_device() {
    let bench = Bench::new();
    let Some(mut source) = opened(&bench.selection()) else { return };
    for from in ["--invalidate=1", "--invalidate=0"] {
        Fio::run(&bench.file, &["--ioengine=psync", "--rw=randread", from]);
    }
    let snapshot = source.snapshot().unwrap();
    let read = sum(&layer_samples(&snapshot, &bench.file, "(fio)"), |one| one.counters.read);
    let missed = sum(&layer_samples(&snapshot, &bench.file, "misses"), |one| one.counters.read);
    let block = sum(&layer_samples(&snapshot, &bench.file, "block layer"), |one| one.counters.read);
    assert_eq!((read.count, read.bytes), (2 * 2048, 2 * FILE_BYTES));
    // The kernel may have evicted some pages meanwhile, for other processes.
    assert!((2048..=2048 + 2048 / 5).contains(&missed.count), "{missed:?}");
    assert_eq!(missed.bytes, missed.count * (FILE_BYTES / 2048));
    nearly_all(block.bytes, missed.bytes, "reads of the device");
    let hit_ns = (read.stall_ns.known().unwrap() - missed.stall_ns.known().unwrap()) as f64
        / (read.count - missed.count) as f64;
    assert!(missed.latency_ns().known().unwrap() > 2.0 * hit_ns, "{missed:?}, hits {hit_ns} ns");
}

/// The block layer has the same figures when no system call is traced.
#[test]
fn the_block_layer_alone_has_each_file_with_its_bytes() {
    let bench = Bench::new();
    let selection = Selection { coverage: Coverage::Block, ..bench.selection() };
    let Some(mut source) = opened(&selection) else { return };
    let has_note =
        |snapshot: &Snapshot| snapshot.notes.iter().any(|note| note.contains("only the block layer"));
    let before = source.snapshot().unwrap();
    assert!(has_note(&before), "{:?}", before.notes);
    Fio::run(&bench.file, &["--ioengine=psync", "--rw=randread", "--direct=1"]);
    Fio::run(&bench.file, &["--ioengine=io_uring", "--rw=randwrite", "--direct=1", "--iodepth=8"]);
    let snapshot = source.snapshot().unwrap();
    assert!(layer_samples(&snapshot, &bench.file, "(fio)").is_empty(), "{snapshot:?}");
    let block = layer_samples(&snapshot, &bench.file, "block layer");
    let (read, written) = (sum(&block, |one| one.counters.read), sum(&block, |one| one.counters.write));
    nearly_all(read.bytes, FILE_BYTES, "read");
    nearly_all(written.bytes, FILE_BYTES, "written");
    assert!(read.latency_ns().known().unwrap() > 1_000.0, "{read:?}");

    let of_a_process =
        Selection { pids: vec![std::process::id()], coverage: Coverage::Block, ..Selection::default() };
    let refused = Process::open(&of_a_process).err().unwrap();
    assert!(refused.to_string().contains("does not know whose"), "{refused}");
}
