//! How many I/Os were outstanding on average: by Little's law as every result has it, by a sampler that looks once a
//! second as "current disk queue length" does, and by the kernel's own record of each I/O. Needs root.

use load::{Next, run};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use storage::Region;
use testbed::{BlockTrace, LoopDisk};
use workload::{Burst, RunLength, Shape, Workload};

const BYTES: u64 = 64 << 20;
const SECONDS: u64 = 4;

/// What one look a second sees outstanding.
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
    let Some(disk) = LoopDisk::new(BYTES) else { return };
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(disk.device()).unwrap();
    let region = Region {
        file,
        offset_bytes: 0,
        bytes: BYTES,
        direct: true,
        align_bytes: 4096,
        memory_align_bytes: 4096,
        path: disk.device().into(),
    };
    // 64 at once take some milliseconds, then nothing for 90.
    let burst = Some(Burst { ios: 64, pause: Duration::from_millis(90) });
    let workload = Workload { burst, ..Shape::random_read(262_144).into() }.with_outstanding(64);
    let length = RunLength { duration: Duration::from_secs(SECONDS), ..RunLength::default() };
    let Some(trace) = BlockTrace::start_in_full(disk.number()) else { return };
    let over = AtomicBool::new(false);
    let (result, sampled) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(disk.device(), &over));
        let result = run(&region, &workload, &length, &mut |_| Next::Continue);
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
    assert!((ours / truth - 1.0).abs() < 0.03, "{ours} for {truth}");
    assert!(sampler > 2.0 * truth || sampler < truth / 2.0, "{sampler} for {truth}");
}
