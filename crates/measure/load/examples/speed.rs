//! Reads or writes one file as fast as it goes and prints one line of JSON: what `scripts/bench load`
//! compares with fio.
//!
//! speed FILE direct|buffered BLOCK_BYTES OUTSTANDING THREADS SECONDS WRITE_PERCENT [IOS]

use load::{RunControl, run};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;
use storage::Region;
use workload::{Caching, RunLength, Shape, Workload};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, caching, block_bytes, outstanding, threads, seconds, write_percent, ios @ ..] = &words[..]
    else {
        let usage = "speed FILE direct|buffered BLOCK_BYTES OUTSTANDING THREADS SECONDS WRITE_PERCENT [IOS]";
        return Err(usage.into());
    };
    let direct = caching == "direct";
    let write_percent: u8 = write_percent.parse()?;
    let flags = libc::O_NOATIME | if direct { libc::O_DIRECT } else { 0 };
    let file = OpenOptions::new().read(true).write(write_percent > 0).custom_flags(flags).open(path)?;
    let bytes = file.metadata()?.len();
    let region = Region {
        file,
        offset_bytes: 0,
        bytes,
        direct,
        align_bytes: 4096,
        memory_align_bytes: 4096,
        path: path.into(),
        volume: None,
    };
    let caching = if direct { Caching::Direct } else { Caching::Buffered };
    let shape = Shape { caching, ..Shape::random_read(block_bytes.parse()?).with_writes(write_percent) };
    let workload =
        Workload { outstanding: outstanding.parse()?, threads: threads.parse()?, ..Workload::from(shape) };
    let length = RunLength {
        warm_up: if ios.is_empty() { Duration::from_millis(300) } else { Duration::ZERO },
        duration: Duration::from_secs_f64(seconds.parse()?),
        ios_max: ios.first().map(|ios| ios.parse()).transpose()?,
        ..RunLength::default()
    };
    let result = run(&region, &workload, &length, &mut |_| RunControl::Continue)?;
    let latency = result.latency();
    println!(
        "{{\"iops\":{:.0},\"mean_ns\":{:.0},\"p50_ns\":{},\"p99_ns\":{},\"cpu_ns_per_io\":{:.0},\"outstanding\":{:.1},\"backend\":\"{:?}\"}}",
        result.iops(),
        latency.mean_ns().unwrap_or(f64::NAN),
        latency.percentile_ns(50.0).unwrap_or(0),
        latency.percentile_ns(99.0).unwrap_or(0),
        result.cpu_ns_per_io().unwrap_or(f64::NAN),
        result.outstanding(),
        result.backend,
    );
    Ok(())
}
