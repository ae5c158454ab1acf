//! Output of a run, as users see it.

use crate::sample;
use crate::text::STYLE;
use findings::{Finding, RunConditions, findings};
use report::text::{self, Style};
use workload::{
    Arrival, Backend, BadBlock, CoreUse, Direction, Durability, Latencies, LatencyHistogram, Layout,
    MemberShare, PhaseResult, Response, RunResult, Shape, Slice, SyncEvery, SyncKind, ThreadShare,
    Verification, Verify, Workload,
};

/// The latency that the `at`-th I/O of a run takes: evenly between once and twice `floor_ns`, some of them
/// `tail` times as much.
fn latency_ns(at: u64, floor_ns: u64, tail: u64) -> u64 {
    let even = floor_ns + (at * 7919) % floor_ns;
    if at.is_multiple_of(241) { even * tail } else { even }
}

/// Adds a second with that many I/Os of one direction to all places where a run keeps them.
fn second(direction: &mut Direction, slice: &mut Slice, write: bool, count: u64, floor_ns: u64, tail: u64) {
    let mut latencies = LatencyHistogram::new();
    let tally = if write { &mut slice.write } else { &mut slice.read };
    for at in 0..count {
        let ns = latency_ns(at, floor_ns, tail);
        latencies.record(ns);
        tally.record_n(ns, 8192, 1);
    }
    direction.count += count;
    direction.bytes += count * 8192;
    direction.latency.merge(&latencies);
    let ranges = Latencies::from(&latencies);
    if write { slice.write_latencies.merge(&ranges) } else { slice.read_latencies.merge(&ranges) }
}

/// A closed loop of four outstanding I/Os: the fewer a second, the longer each of them takes.
fn closed(seconds: &[(u64, u64)], tail: u64) -> RunResult {
    run_of_seconds(seconds, |reads, writes| 4_000_000_000 * 2 / 3 / (reads + writes * 4 / 3), tail)
}

/// A run whose seconds hold (reads, writes) of 8 KiB.
fn run_of_seconds(seconds: &[(u64, u64)], floor_ns: impl Fn(u64, u64) -> u64, tail: u64) -> RunResult {
    let write_percent = if seconds.iter().any(|(_, writes)| *writes > 0) { 30 } else { 0 };
    let shape = Shape::random_read(8192).with_writes(write_percent);
    let workload = Workload { outstanding: 2, threads: 2, ..Workload::from(shape) };
    let mut run = RunResult {
        backend: Backend::IoUring,
        started_unix_ns: sample::BEGIN_NS,
        elapsed_ns: seconds.len() as u64 * 1_000_000_000,
        target_bytes: 64 << 30,
        cores: vec![core(0, 4.1, 11.9), core(1, 0.4, 2.1)],
        ..RunResult::empty(workload, "/data/sales/headroom-test.dat".into())
    };
    for (at, (reads, writes)) in seconds.iter().enumerate() {
        let floor_ns = floor_ns(*reads, *writes);
        let mut slice = Slice { end_ns: (at as u64 + 1) * 1_000_000_000, ..Slice::default() };
        second(&mut run.read, &mut slice, false, *reads, floor_ns, tail);
        second(&mut run.write, &mut slice, true, *writes, floor_ns * 4 / 3, tail);
        run.series.push(slice);
    }
    let half = |part: &Direction| workload::Tally {
        count: part.count / 2,
        bytes: part.bytes / 2,
        stall_ns: part.latency.sum_ns() / 2,
        ..workload::Tally::default()
    };
    let share = ThreadShare {
        read: half(&run.read),
        write: half(&run.write),
        cpu_ns: run.elapsed_ns / 8,
        ..ThreadShare::default()
    };
    run.threads = vec![share.clone(), share];
    run
}

fn core(core: u32, user_percent: f64, kernel_percent: f64) -> CoreUse {
    CoreUse { core, user_percent, kernel_percent, idle_percent: 100.0 - user_percent - kernel_percent }
}

fn around() -> RunConditions {
    RunConditions { memory_bytes: Some(32 << 30), cores: Some(2), ..RunConditions::default() }
}

fn shown(run: &RunResult) -> String {
    let screen = text::run(run, &findings(run, &around()), &STYLE);
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    screen
}

/// 9,000 IOPS for half a minute.
fn calm() -> RunResult {
    let seconds: Vec<(u64, u64)> = (0..30).map(|at| (9_000 + 31 * (at % 7), 3_860 + 13 * (at % 5))).collect();
    closed(&seconds, 2)
}

#[test]
fn a_run_in_which_all_is_well_fits_a_screen() {
    let screen = shown(&calm());
    assert!(screen.lines().count() <= 45, "{} lines\n{screen}", screen.lines().count());
    insta::assert_snapshot!(screen);
}

#[test]
fn a_run_with_a_cliff_errors_and_threads_that_do_not_agree() {
    let seconds: Vec<(u64, u64)> =
        (0..30).map(|at| if at < 12 { (0, 9_000 + at % 5) } else { (0, 1_900 + at % 7) }).collect();
    let mut run = closed(&seconds, 12);
    run.workload.shape = Shape::random_write(8192);
    run.write.errors.insert(5, 3);
    run.interrupted = true;
    run.threads[0].write.count = run.threads[0].write.count * 3 / 2;
    run.threads[1].cpu_ns = run.elapsed_ns / 100 * 97;
    insta::assert_snapshot!(shown(&run));
}

/// 5,000 arrivals a second at random times, which a stall of two seconds met.
pub fn open_loop() -> RunResult {
    let mut run = run_of_seconds(&[(5_000, 0); 20], |_, _| 150_000, 3);
    run.workload.arrival = Arrival::Poisson { iops: 5_000.0 };
    run.workload.outstanding = 64;
    let mut response =
        Response { late_ns_max: 31_000, waiting: 2, waiting_ns_max: 210_000, ..Response::default() };
    response.read.merge(&run.read.latency);
    for ms in 1..=2_000 {
        response.read.record(ms * 1_000_000);
    }
    run.response = Some(response);
    run
}

#[test]
fn an_open_loop_shows_what_users_waited() {
    insta::assert_snapshot!(shown(&open_loop()));
}

#[test]
fn a_log_shows_its_syncs_and_its_verification() {
    let mut run = run_of_seconds(&[(0, 2_000); 12], |_, _| 60_000, 2);
    run.workload.shape = Shape { durability: Durability::Cached, ..Shape::log_write(8192) };
    run.workload.sync = Some(SyncEvery { writes: 4, how: SyncKind::Fdatasync });
    run.workload.verify = Some(Verify::Sequence);
    run.sync.count = 6_000;
    run.sync.latency.record_n(2_400_000, 6_000);
    let bad = BadBlock { offset_bytes: 81_920, found: "an older write (3, not 5)".into() };
    run.verification = Some(Verification { blocks: 24_000, bad: 1, first_bad: vec![bad] });
    insta::assert_snapshot!(shown(&run));
}

/// A minute of diskspd, of which there are percentiles and means.
fn reported() -> RunResult {
    let percents = [0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 100.0];
    let list = |scale: u64| {
        let ns = [180, 902, 1471, 2388, 3290, 3811, 4800, 38_700, 207_000, 311_400, 312_118];
        percents.into_iter().zip(ns.map(|us| us * scale)).collect::<Vec<(f64, u64)>>()
    };
    let direction = |count: u64, scale: u64, mean_ns: f64| Direction {
        count,
        bytes: count * 8192,
        percentiles: list(scale),
        mean_ns: Some(mean_ns),
        deviation_ns: Some(mean_ns / 2.0),
        ..Direction::default()
    };
    let workload =
        Workload { outstanding: 4, threads: 8, ..Workload::from(Shape::random_read(8192).with_writes(20)) };
    RunResult {
        backend: Backend::Foreign,
        tool: Some("diskspd 2.2".into()),
        started_unix_ns: sample::BEGIN_NS,
        elapsed_ns: 60_000_000_000,
        read: direction(640_000, 1_000, 2_100_000.0),
        write: direction(160_000, 1_300, 3_400_000.0),
        total_percentiles: list(1_100),
        ..RunResult::empty(workload, r"S:\bench\oltp.dat".into())
    }
}

#[test]
fn latencies_that_another_tool_reported_are_shown() {
    insta::assert_snapshot!(shown(&reported()));
    let fio = RunResult { tool: Some("fio-3.33".into()), total_percentiles: Vec::new(), ..reported() };
    let text = shown(&fio);
    assert!(
        text.contains("as fio-3.33 reported them; it reported none of reads and writes together"),
        "{text}"
    );
    let mut means = reported();
    (means.read.percentiles, means.write.percentiles) = (Vec::new(), Vec::new());
    means.total_percentiles.clear();
    let text = shown(&means);
    assert!(text.contains("2.36 ms") && text.contains("No percentiles: the tool that ran this"), "{text}");
    (means.read.mean_ns, means.write.mean_ns) = (None, None);
    let text = shown(&means);
    assert!(text.contains("No latencies: the tool that ran this reported none"), "{text}");
    assert!(!text.contains("No I/O completed"), "{text}");
}

#[test]
fn a_run_without_any_io() {
    let nothing = RunResult {
        interrupted: true,
        elapsed_ns: 0,
        ..RunResult::empty(Shape::random_read(8192).into(), "/data".into())
    };
    insta::assert_snapshot!(shown(&nothing));
}

#[test]
fn several_workloads_and_phases_begin_with_a_table_of_all() {
    let named = |name: &str, mut run: RunResult| {
        run.workload.name = name.into();
        run
    };
    let phases = [
        PhaseResult {
            name: "load".into(),
            results: vec![named("oltp", calm()), named("", closed(&[(0, 500); 10], 2))],
        },
        PhaseResult { name: String::new(), results: vec![named("backup", closed(&[(3, 0); 3], 2))] },
    ];
    let of = |result: &RunResult| -> Vec<Finding> { findings(result, &around()) };
    let screen = text::phases(&phases, of, &STYLE);
    let table: Vec<&str> = screen.lines().take_while(|line| !line.is_empty()).collect();
    insta::assert_snapshot!(table.join("\n"));
    assert!(screen.contains("== load ==") && screen.contains("== phase 2 =="), "{screen}");
    assert_eq!(
        text::phases(&phases[1..], of, &STYLE),
        text::run(&phases[1].results[0], &of(&phases[1].results[0]), &STYLE)
    );
}

#[test]
fn colours_of_a_run_change_no_word() {
    let run = calm();
    let found = findings(&run, &around());
    let coloured = text::run(&run, &found, &Style { color: true, ..STYLE });
    assert!(coloured.contains("\x1b[32m+\x1b[0m"), "{coloured}");
    let plain = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"];
    let stripped = plain.iter().fold(coloured, |text, code| text.replace(code, ""));
    assert_eq!(stripped, text::run(&run, &found, &STYLE));
}

#[test]
fn a_layout_says_which_member_did_the_work() {
    let member = |path: &str, count: u64| {
        let mut share = MemberShare { path: path.into(), bytes: 4 << 30, ..MemberShare::default() };
        if count > 0 {
            share.read.record_n(5_000_000, 65_536, count);
        }
        share
    };
    let mut run = closed(&[(600, 0), (600, 0)], 1);
    run.layout = Some(Layout::Span);
    run.members = vec![member("/dev/loop0", 1200), member("/dev/loop1", 0)];
    let told = text::run(&run, &[], &STYLE);
    assert!(told.contains("Members (span)") && told.contains("/dev/loop0 did all of it"), "{told}");
    let row = told.lines().find(|line| line.contains("/dev/loop0  ")).unwrap();
    for figure in ["1,200", "100 %", "600", "37.5", "3  5.00 ms"] {
        assert!(row.contains(figure), "{figure} in {row}");
    }
    run.members[1] = member("/dev/loop1", 400);
    let told = text::run(&run, &[], &STYLE);
    assert!(told.contains("75 %") && told.contains("25 %") && !told.contains("did all of it"), "{told}");
}

#[test]
fn a_run_shows_the_devices_below_its_target_as_a_measurement_does() {
    let mut run = closed(&[(600, 0)], 1);
    assert!(!text::run(&run, &[], &STYLE).contains("vdb"));
    run.devices = sample::target().devices;
    run.devices[0].layout = Some(workload::DeviceLayout {
        made_by: "LVM".into(),
        how: "linear".into(),
        members: vec!["vdb".into()],
    });
    let shown = text::run(&run, &[], &STYLE);
    for words in ["vdb1 (partition 254:17), linear of vdb by LVM", "vdb (disk 254:16), Virtio Block Device"] {
        assert!(shown.contains(words), "{shown}");
    }
    let json = report::json::run(&run, &[]);
    assert_eq!(json["devices"][1]["model"], "Virtio Block Device");
    assert_eq!(json["devices"][0]["layout"]["how"], "linear");
}
