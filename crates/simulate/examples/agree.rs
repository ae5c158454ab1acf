//! Simulated against measured, over loop devices that the kernel's cgroup throttle holds to a rate: the table of
//! `scripts/bench simulate`. Needs root.

use capability::{Surroundings, find_knee};
use load::{Next, run};
use simulate::{Disk, Limit, Metered, Storage, Time, point, simulate_alone};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;
use storage::Region;
use testbed::LoopDisk;
use workload::{Arrival, CapKind, LatencyHistogram, RunLength, RunResult, Shape, SizeShare, Workload};

const BYTES: u64 = 128 << 20;
/// New tokens of a device that does not turn come so often (block/blk-throttle.c, DFL_THROTL_SLICE).
const SLICE_NS: u64 = 100_000_000;
/// Of the knee's two curves.
const SWEEP: [u32; 6] = [1, 2, 4, 8, 16, 32];

struct Device {
    name: &'static str,
    caps: Vec<(CapKind, u64)>,
}

fn main() {
    use CapKind::{ReadBytes, ReadIops, WriteIops};
    let seconds: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5.0);
    let devices = [
        Device { name: "800 reads/s", caps: vec![(ReadIops, 800)] },
        Device { name: "2,000 reads/s, 500 writes/s", caps: vec![(ReadIops, 2000), (WriteIops, 500)] },
        Device { name: "40 MiB/s read", caps: vec![(ReadBytes, 40 << 20)] },
    ];
    let mut worst = [0.0_f64; 3];
    println!(
        "{:28}{:34}{:>20}{:>8}{:>24}{:>8}",
        "device", "workload", "IOPS, simulated", "off", "mean, simulated", "off"
    );
    for device in devices {
        let Some(mut disk) = LoopDisk::new(BYTES) else { return };
        fill(disk.device());
        let region = open(disk.device());
        let alone = |shape: Shape| time_of(&measure(&region, &shape.into(), 1.0));
        let (read, write) = (alone(Shape::random_read(4096)), alone(Shape::random_write(4096)));
        let mut limits = Vec::new();
        for (kind, per_second) in &device.caps {
            if !disk.throttle(*kind, *per_second) {
                return;
            }
            let of = match kind {
                ReadIops => Metered::Reads,
                WriteIops => Metered::Writes,
                ReadBytes => Metered::ReadBytes,
                CapKind::WriteBytes => Metered::WriteBytes,
            };
            limits.push(Limit { of, per_second: *per_second as f64, burst: 0.0, refill_ns: SLICE_NS });
        }
        let storage = Storage::of(Disk { limits, ..Disk::flash(BYTES, 64, read, write) });
        for (name, workload) in workloads(device.name) {
            let measured = measure(&region, &workload, seconds);
            let simulated = simulate_alone(&storage, &workload, 20_000).expect("a workload that can be");
            let off = |of: fn(&RunResult) -> f64| of(&simulated) / of(&measured) - 1.0;
            let mean_ns = |result: &RunResult| result.mean_latency_ns().unwrap_or(0.0);
            let (rate_off, mean_off) = (off(RunResult::iops), off(mean_ns));
            worst = [worst[0].max(rate_off.abs()), worst[1].max(mean_off.abs()), worst[2]];
            println!(
                "{:28}{name:34}{:>9.0} {:>10.0}{:>7.1}%{:>11} {:>12}{:>7.1}%",
                device.name,
                measured.iops(),
                simulated.iops(),
                rate_off * 100.0,
                workload::format_ns(mean_ns(&measured)),
                workload::format_ns(mean_ns(&simulated)),
                mean_off * 100.0,
            );
        }
        let shape = Shape::random_read(if device.name.contains("MiB") { 65_536 } else { 4096 });
        let knee = |of: &dyn Fn(&Workload) -> RunResult| {
            let points: Vec<_> =
                SWEEP.iter().map(|n| point(&of(&Workload::from(shape).with_outstanding(*n)))).collect();
            find_knee(&shape, &points, &Surroundings::default()).expect("points").outstanding
        };
        let measured = knee(&|workload| measure(&region, workload, seconds / 2.0));
        let simulated =
            knee(&|workload| simulate_alone(&storage, workload, 10_000).expect("a workload that can be"));
        let off = simulated / measured - 1.0;
        worst[2] = worst[2].max(off.abs());
        println!(
            "{:28}{:34}{measured:>9.2} {simulated:>10.2}{:>7.1}%",
            device.name,
            "knee, outstanding",
            off * 100.0
        );
    }
    let [rate, mean, knee] = worst.map(|share| share * 100.0);
    println!("furthest off: throughput {rate:.1} %, mean latency {mean:.1} %, knee {knee:.1} %");
}

fn workloads(device: &str) -> Vec<(&'static str, Workload)> {
    let read = |bytes, outstanding| Workload::from(Shape::random_read(bytes)).with_outstanding(outstanding);
    let open = |workload, iops| Workload { arrival: Arrival::Constant { iops }, ..workload };
    let sizes =
        vec![SizeShare { block_bytes: 4096, percent: 60 }, SizeShare { block_bytes: 65_536, percent: 40 }];
    match device {
        "800 reads/s" => vec![
            ("read 4K, 1 outstanding", read(4096, 1)),
            ("read 64K, 16 outstanding", read(65_536, 16)),
            ("read 4K, 128 outstanding", read(4096, 128)),
            ("read 4K, open loop, 1,000/s", open(read(4096, 64), 1000.0)),
        ],
        "40 MiB/s read" => vec![
            ("read 64K, 4 outstanding", read(65_536, 4)),
            ("read 256K, 8 outstanding", read(262_144, 8)),
            ("read 4K and 64K, 16 outstanding", Workload { sizes, ..read(65_536, 16) }),
            (
                "sequential 64K, 2 outstanding",
                Workload::from(Shape::sequential_read(65_536)).with_outstanding(2),
            ),
        ],
        _ => vec![
            (
                "30 % writes 4K, 16 outstanding",
                Workload { shape: Shape::random_read(4096).with_writes(30), ..read(4096, 16) },
            ),
            (
                "10 % writes 8K, 32 outstanding",
                Workload { shape: Shape::random_read(8192).with_writes(10), ..read(8192, 32) },
            ),
            ("write 4K, 8 outstanding", Workload { shape: Shape::random_write(4096), ..read(4096, 8) }),
            ("read 8K, 4 x 8 outstanding", Workload { threads: 4, ..read(8192, 8) }),
        ],
    }
}

fn measure(region: &Region, workload: &Workload, seconds: f64) -> RunResult {
    let length = RunLength {
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs_f64(seconds),
        ..RunLength::default()
    };
    let result = run(region, workload, &length, &mut |_| Next::Continue).expect("a run");
    assert_eq!(result.failed(), 0);
    result
}

/// The latencies of one I/O at a time, as a time to draw from.
fn time_of(result: &RunResult) -> Time {
    let latency: LatencyHistogram = result.latency();
    Time::Empirical { ranges: latency.filled().collect() }
}

fn open(device: &Path) -> Region {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(device);
    Region {
        file: file.expect("the loop device"),
        offset_bytes: 0,
        bytes: BYTES,
        direct: true,
        align_bytes: 4096,
        memory_align_bytes: 4096,
        path: device.into(),
        laid: None,
    }
}

/// So that no write has to find room in the file below.
fn fill(device: &Path) {
    use std::io::Write;
    let mut file = OpenOptions::new().write(true).open(device).expect("the loop device");
    let block = vec![0x5a_u8; 1 << 20];
    (0..BYTES >> 20).for_each(|_| file.write_all(&block).expect("room"));
    file.sync_all().expect("a loop device syncs");
}
