//! The guard on a real device: a load whose reads take too long ends within 200 ms.

use gentle::{BurstEnd, BurstPlan, Guard, run_burst};
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use storage::LiveFiles;
use testbed::LoopDisk;
use workload::{CapKind, Shape};

/// The load ends within this time, and then its reads in flight do.
const WITHIN: Duration = Duration::from_millis(200);

#[test]
fn a_device_that_becomes_slow_is_left_alone_within_200_ms() {
    let Some(mut disk) = LoopDisk::new_in_memory(64 << 20) else { return };
    let directory = disk.format_and_mount().to_path_buf();
    let mut file = std::fs::File::create(directory.join("data")).unwrap();
    file.write_all(&vec![7; 32 << 20]).unwrap();
    file.sync_all().unwrap();
    let live = LiveFiles::in_directory(&directory).unwrap();
    // Faster than the limit that follows, so that the limit takes effect at once.
    let plan = BurstPlan {
        shape: Shape::random_read(8192),
        outstanding: 4,
        iops_max: Some(400.0),
        ramp_s: 0.1,
        measured_s: 3.0,
        guard: Guard { read_ns: Some(10e6), write_ns: None },
        offset_bytes: 0,
    };
    let disk = Mutex::new(disk);
    let (mut slow_since, mut asked) = (None, None);
    let began = Instant::now();
    let mut watch = || {
        if slow_since.is_none() && began.elapsed() > Duration::from_millis(500) {
            // Nothing is served for hundreds of milliseconds.
            assert!(disk.lock().unwrap().throttle(CapKind::ReadIops, 4));
            slow_since = Some(Instant::now());
        }
        asked = Some(Instant::now());
        ControlFlow::Continue(())
    };
    let ran = run_burst(&live.region, None, &plan, 1, &mut watch).unwrap();
    disk.lock().unwrap().unthrottle();
    assert_eq!(ran.end, Some(BurstEnd::Stopped), "{:?}", ran.tripped);
    // The callback is called every 20 ms, and no more once it ends the load.
    let took = asked.unwrap() - slow_since.unwrap();
    assert!(took <= WITHIN, "{took:?}");
}
