//! Mean outstanding I/Os: by Little's law as every result has it, by a sampler that reads once a second as "current
//! disk queue length" does, and by the kernel's own record of each I/O. Needs root.

use load::{RunControl, run};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use storage::Region;
use testbed::{BlockTrace, LoopDisk};
use workload::{Burst, CapKind, RunLength, Shape, Workload};

const BYTES: u64 = 16 << 20;
const ATTEMPTS: u32 = 5;
const SECONDS: u64 = 6;

/// Outstanding I/Os, one sample a second.
fn sample(device: &Path, over: &AtomicBool) -> Vec<f64> {
    let name = device.file_name().expect("a device").to_string_lossy();
    let inflight = format!("/sys/block/{name}/inflight");
    let mut seen = Vec::new();
    for tick in 0.. {
        std::thread::sleep(Duration::from_millis(100));
        if over.load(Relaxed) {
            break;
        }
        if tick % 10 == 5 {
            let text = std::fs::read_to_string(&inflight).expect("what is in flight");
            seen.push(text.split_whitespace().filter_map(|word| word.parse::<f64>().ok()).sum());
        }
    }
    seen
}

#[test]
fn of_short_bursts_a_sampler_is_far_off_and_little_s_law_is_not() {
    // A disk that stands on a file of a held one: 40 I/Os go through in each tenth of a second, the others wait in flight.
    let Some(mut held) = LoopDisk::new(8 * BYTES) else { return };
    let directory = held.format_and_mount().to_owned();
    let Some(disk) = LoopDisk::new_in(&directory, BYTES) else { return };
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(disk.device()).unwrap();
    // Blocks that were never written are never read from below.
    let fill = std::process::Command::new("dd")
        .args(["if=/dev/urandom", "bs=1M", "count=16", "conv=fsync", "status=none"])
        .arg(format!("of={}", disk.device().display()))
        .status();
    assert!(fill.is_ok_and(|status| status.success()), "the disk takes what is written");
    if !held.throttle(CapKind::ReadIops, 400) {
        return;
    }
    let region = Region {
        file,
        offset_bytes: 0,
        bytes: BYTES,
        direct: true,
        align_bytes: 4096,
        memory_align_bytes: 4096,
        path: disk.device().into(),
        volume: None,
    };
    // 64 at once take two turns of the throttle, then nothing for nearly 2 s.
    let burst = Some(Burst { ios: 64, pause: Duration::from_millis(1_900) });
    let workload = Workload { burst, ..Shape::random_read(4096).into() }.with_outstanding(64);
    let length = RunLength { duration: Duration::from_secs(SECONDS), ..RunLength::default() };
    // The clocks of a run are read by its own threads: on a machine that has none left for them it counts their wait too.
    for attempt in 1.. {
        let Some(trace) = BlockTrace::start_in_full(disk.number()) else { return };
        let over = AtomicBool::new(false);
        let (result, sampled) = std::thread::scope(|scope| {
            let sampler = scope.spawn(|| sample(disk.device(), &over));
            let result = run(&region, &workload, &length, &mut |_| RunControl::Continue);
            over.store(true, Relaxed);
            (result.expect("a run"), sampler.join().expect("the sampler"))
        });
        let traced = trace.stop();
        // The run's own time: the trace begins with the first I/O and ends with the last.
        let truth = traced.outstanding_ns as f64 / result.elapsed_ns as f64;
        let ours = result.outstanding();
        let sampler = sampled.iter().sum::<f64>() / sampled.len() as f64;
        eprintln!(
            "outstanding on average: traced {truth:.3}, Little's law {ours:.3}, {sampled:?} sampled: {sampler:.3}"
        );
        assert!(truth > 0.1, "there were bursts: {truth}");
        let agrees = (ours / truth - 1.0).abs() < 0.03;
        let is_far_off = sampler > 2.0 * truth || sampler < truth / 2.0;
        if agrees && is_far_off {
            return;
        }
        assert!(attempt < ATTEMPTS, "{ours} and {sampler} for {truth}");
    }
}
