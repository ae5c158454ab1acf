//! Finds the knee of random 8 KiB reads twice: by the adaptive sweep, and by a fixed one of 8 to 256
//! outstanding by 8 with two seconds a point. What `scripts/bench measure` prints.
//!
//! knee FILE

use capability::{Curve, StorageLimits};
use measure::{Effort, Go, Plan, Progress, sweep_adaptive, sweep_fixed};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};
use storage::Region;
use workload::{Shape, format_ns};

const O_DIRECT: i32 = 0o40_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("knee FILE")?;
    let file = OpenOptions::new().read(true).custom_flags(O_DIRECT).open(&path)?;
    let bytes = file.metadata()?.len();
    let region = Region {
        file,
        offset_bytes: 0,
        bytes,
        direct: true,
        align_bytes: 4096,
        memory_align_bytes: 4096,
        path: path.into(),
        laid: None,
    };
    let plan = Plan::new(Effort::Default);
    let shape = Shape::random_read(8192);
    let around = StorageLimits::default();
    let mut quiet = |_: &Progress| Go::On;

    let began = Instant::now();
    let adaptive = sweep_adaptive(&region, &shape, &plan, &around, Duration::from_secs(15), &mut quiet)?;
    tell("adaptive", &adaptive, began.elapsed());

    let began = Instant::now();
    let steps: Vec<u32> = (8..=256).step_by(8).collect();
    let fixed = sweep_fixed(&region, &shape, &plan, &around, &steps, Duration::from_secs(2), &mut quiet)?;
    tell("fixed 8:256:8, 2 s a point", &fixed, began.elapsed());
    Ok(())
}

fn tell(name: &str, curve: &Curve, took: Duration) {
    let Some(knee) = &curve.knee else { return println!("{name}: no knee") };
    println!(
        "{name:28} {:6.1} s  {:3} points  knee at {:5.1} outstanding ({:.1} to {:.1})  {:8.0} IOPS  R0 {}  {:?}",
        took.as_secs_f64(),
        curve.points.len(),
        knee.outstanding,
        knee.low,
        knee.high,
        knee.iops,
        format_ns(knee.latency_ns_floor),
        knee.reason,
    );
}
