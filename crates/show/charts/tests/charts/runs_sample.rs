//! Runs as storage gives them: a closed queue with servers and a tail, seeded, so that each call is the same.

use capability::{QueueSeen, StorageLimits, Sweep, SweepStep};
use workload::{
    Arrival, Direction, Latencies, LatencyHistogram, Layout, MemberShare, Pattern, Response, RunResult,
    Shape, Slice, ThreadShare, Workload,
};

/// A small generator; the same seed gives the same run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Around 1, skewed to the right as latencies are.
    fn skewed(&mut self, spread: f64) -> f64 {
        let normal: f64 = (0..12).map(|_| self.next()).sum::<f64>() - 6.0;
        (normal * spread).exp()
    }
}

/// A device: latency at rest, highest rate, highest bandwidth.
struct Device {
    rest_ns: f64,
    iops_max: f64,
    bytes_max: f64,
}

const DEVICE: Device = Device { rest_ns: 90_000.0, iops_max: 97_000.0, bytes_max: 1.6e9 };

/// A run of this workload; `slow` times slower, and a second in the middle in which the storage stalls for
/// `stall_ns`.
pub fn run(workload: Workload, seconds: u64, slow: f64, stall_ns: Option<u64>) -> RunResult {
    let seed = u64::from(workload.outstanding_total()) * 7_919
        + u64::from(workload.shape.block_bytes)
        + workload.seed;
    let mut chance = Chance(seed ^ 0x9e37_79b9_7f4a_7c15);
    let bytes = u64::from(workload.shape.block_bytes);
    let writes = f64::from(workload.shape.write_percent) / 100.0;
    // Neighbouring blocks are read ahead, writes cost more.
    let merged = if workload.shape.pattern == Pattern::Sequential { 1.7 } else { 1.0 };
    let iops_max = DEVICE.iops_max * merged / (1.0 + 1.4 * writes);
    let most = iops_max.min(DEVICE.bytes_max / bytes as f64) / slow;
    let rest_ns = DEVICE.rest_ns * slow + bytes as f64 * 0.35;
    let n = f64::from(workload.outstanding_total());
    let (iops, mean_ns) = match workload.arrival {
        Arrival::Constant { iops } | Arrival::Poisson { iops } => (iops.min(most), rest_ns * 1.1),
        _ => {
            let mean_ns = (rest_ns.powi(4) + (n * 1e9 / most).powi(4)).powf(0.25);
            (n * 1e9 / mean_ns, mean_ns)
        }
    };
    let open = workload.is_open_loop();
    let mut result = RunResult::empty(workload, "/data/headroom.tmp/test".into());
    result.started_unix_ns = 1_795_251_600_000_000_000;
    result.elapsed_ns = seconds * 1_000_000_000;
    result.target_bytes = 16 << 30;
    let mut response = Response::default();
    for second in 0..seconds {
        let mut slice = Slice { end_ns: (second + 1) * 1_000_000_000, ..Slice::default() };
        let stalled = stall_ns.filter(|_| second == seconds / 2);
        let level = 1.0 + 0.02 * (chance.next() - 0.5);
        let left = stalled.map_or(1.0, |ns| (1.0 - ns as f64 / 1e9).max(0.0));
        let ios = (iops * level * left).max(0.0) as u64;
        let mut histograms = [LatencyHistogram::new(), LatencyHistogram::new()];
        // Each draw stands for some I/Os, so that a sample takes no longer to make than to read.
        let each = (ios / 2_000).max(1);
        for draw in 0..(ios / each) {
            let is_write = chance.next() < writes;
            let tail = if chance.next() < 0.004 { 12.0 } else { 1.0 };
            let hit = if is_write { 0.45 } else { 1.0 };
            let mut ns = mean_ns * hit * tail * chance.skewed(0.18);
            if let Some(stall) = stalled.filter(|_| draw < n as u64) {
                ns += stall as f64;
            }
            let ns = ns as u64;
            let tally = if is_write { &mut slice.write } else { &mut slice.read };
            tally.record_n(ns, bytes, each);
            histograms[usize::from(is_write)].record_n(ns, each);
            if open {
                let late = stalled.map_or(0, |stall| (stall as f64 * chance.next()) as u64);
                let histogram = if is_write { &mut response.write } else { &mut response.read };
                histogram.record_n(ns + late, each);
            }
        }
        let [read, write] = &histograms;
        (slice.read_latencies, slice.write_latencies) = (Latencies::from(read), Latencies::from(write));
        let sums = [(&mut result.read, &slice.read, read), (&mut result.write, &slice.write, write)];
        for (direction, tally, histogram) in sums {
            direction.merge(&Direction {
                count: tally.count,
                bytes: tally.bytes,
                latency: histogram.clone(),
                ..Direction::default()
            });
        }
        result.series.push(slice);
    }
    result.response = open.then_some(response);
    let share = ThreadShare { cpu_ns: result.elapsed_ns / 3, ..ThreadShare::default() };
    result.threads = vec![share];
    result
}

/// Reads and writes of a database for a minute, with a stall of 0.4 s.
pub fn oltp() -> RunResult {
    run(
        Workload::from(Shape::random_read(8192).with_writes(30)).with_outstanding(32),
        60,
        1.0,
        Some(400_000_000),
    )
}

/// A run with a stall at a rate of its own: users wait for the stall.
pub fn open_loop() -> RunResult {
    let workload =
        Workload { arrival: Arrival::Poisson { iops: 20_000.0 }, ..Shape::random_read(8192).into() };
    run(workload, 30, 1.0, Some(400_000_000))
}

/// Reads of these block sizes with rising outstanding I/Os.
pub fn sweep(blocks: &[u32], slow: f64) -> Vec<RunResult> {
    let outstanding = [1, 2, 4, 8, 16, 32, 64, 128, 256];
    let each = |block: &u32| {
        let block = *block;
        outstanding.map(|n| run(Workload::from(Shape::random_read(block)).with_outstanding(n), 4, slow, None))
    };
    blocks.iter().flat_map(each).collect()
}

/// Random and sequential, reads and mixed, five block sizes, eight depths; the last runs are still to come.
pub fn matrix() -> Vec<RunResult> {
    let mut runs = Vec::new();
    for shape in [Shape::random_read(4096), Shape::sequential_read(4096)] {
        for writes in [0, 30] {
            for block_bytes in [4096, 8192, 16_384, 65_536, 262_144] {
                for n in [1, 2, 4, 8, 16, 32, 64, 128] {
                    let shape = Shape { block_bytes, ..shape.with_writes(writes) };
                    runs.push(run(Workload::from(shape).with_outstanding(n), 2, 1.0, None));
                }
            }
        }
    }
    runs.truncate(runs.len() - 9);
    runs
}

/// The layout study: 8 to 256 outstanding by 8, a minute each, of three disks that answer in 20 ms and take 16 at once;
/// as many of them as `disks` work.
pub fn study(layout: Layout, disks: u32) -> Sweep {
    let target = format!("/dev/loop0, /dev/loop1, /dev/loop2 as {layout}");
    let step = |at: u32| {
        let n = at * 8;
        let mut chance = Chance(u64::from(n) ^ 0x5851_f42d_4c95_7f2d);
        let workload = Workload::from(Shape::random_read(65_536)).with_outstanding(n);
        let mut result = RunResult::empty(workload, target.clone());
        result.started_unix_ns = 1_795_251_600_000_000_000 + u64::from(at) * 61_000_000_000;
        result.elapsed_ns = 60_000_000_000;
        result.layout = Some(layout);
        for second in 1..=60 {
            let mut slice = Slice { end_ns: second * 1_000_000_000, ..Slice::default() };
            let wait = (f64::from(n) / f64::from(16 * disks)).max(1.0);
            let ns = 20e6 * wait * (1.0 + 0.02 * (chance.next() - 0.5));
            let ios = (f64::from(n) * 1e9 / ns) as u64;
            slice.read.record_n(ns as u64, 65_536, ios);
            result.read.latency.record_n(ns as u64, ios);
            result.read.count += ios;
            result.read.bytes += ios * 65_536;
            result.series.push(slice);
        }
        let share = |member: u32| {
            let mut share = MemberShare { path: format!("/dev/loop{member}"), ..MemberShare::default() };
            if member < disks {
                share.read.record_n(20_000_000, 65_536, result.read.count / u64::from(disks));
            }
            share
        };
        result.members = (0..3).map(share).collect();
        let looks = (0..60).map(|_| (f64::from(n) * (0.5 + 0.5 * chance.next())) as u64).collect();
        let queue = QueueSeen { weighted: f64::from(n), samples: looks, every_ns: 1_000_000_000 };
        SweepStep { queue: Some(queue), ..SweepStep::from_result(result) }
    };
    Sweep::from_steps(target.clone(), (1..=32).map(step).collect(), &StorageLimits::default())
}

/// Both layouts of it.
pub fn layouts() -> [Sweep; 2] {
    [study(Layout::Span, 1), study(Layout::Stripe { unit_bytes: 65_536 }, 3)]
}
