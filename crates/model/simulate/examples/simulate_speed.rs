//! I/Os simulated a second of CPU time, for `scripts/bench simulate`: other programs that run here do not count.

use simulate::{Disk, Mechanics, Rotating, Storage, Time, simulate};
use std::time::Duration;
use workload::{Arrival, Layout, Phase, Plan, RunLength, Shape, Workload};

fn main() {
    let flash = |units, ns| {
        Disk::flash(64 << 30, units, Time::Exponential { mean_ns: ns }, Time::Fixed { ns: 100_000 })
    };
    let arm =
        Rotating { rpm: 7200.0, seek_ns_min: 500_000, seek_ns_max: 16_000_000, bytes_per_s: 2e8, queue: 32 };
    let read = |bytes, outstanding| Workload::from(Shape::random_read(bytes)).with_outstanding(outstanding);
    let poisson = |workload| Workload { arrival: Arrival::Poisson { iops: 800_000.0 }, ..workload };
    let two = Storage::array(&flash(32, 80_000.0), 2, Layout::Stripe { unit_bytes: 4096 });
    let rotating = Storage::single(Disk::plain(4 << 40, Mechanics::Rotating(arm)));
    let cases = [
        ("closed, 32 outstanding", read(8192, 32), Storage::single(flash(32, 80_000.0)), 20),
        ("open, 800,000/s", poisson(read(8192, 256)), Storage::single(flash(128, 80_000.0)), 20),
        ("closed, each cut in two", read(8192, 32), two, 20),
        ("turning, 32 outstanding", read(8192, 32), rotating, 20_000),
    ];
    for (name, workload, storage, seconds) in cases {
        let length = RunLength { duration: Duration::from_secs(seconds), ..RunLength::default() };
        let plan = Plan { targets: Vec::new(), phases: vec![Phase::single(workload, length)] };
        let began = cpu_s();
        let simulated =
            simulate(&plan, &storage, &|_| None, &mut |_| true).expect("a model that can be simulated");
        let took = cpu_s() - began;
        println!(
            "{name:26}{:>10.2} M I/Os in {took:5.2} s{:>10.2} M/s",
            simulated.ios as f64 / 1e6,
            simulated.ios as f64 / 1e6 / took
        );
    }
}

/// CPU time of this thread, seconds.
fn cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a timespec of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
