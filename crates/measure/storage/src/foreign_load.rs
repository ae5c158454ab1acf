use host::{DeviceNumber, disk_counters};
use std::thread;
use std::time::{Duration, Instant};

/// I/Os per second that the device with this number ("254:0") completes within the time `over`, in which this process does
/// not use it: the load of other processes. `None` if the kernel does not count its I/Os.
pub fn foreign_load(number: &str, over: Duration) -> Option<f64> {
    let number = DeviceNumber::parse(number)?;
    let start = Instant::now();
    let before = disk_counters(number)?.ios();
    thread::sleep(over);
    let ios = disk_counters(number)?.ios().checked_sub(before)?;
    Some(ios as f64 / start.elapsed().as_secs_f64().max(f64::MIN_POSITIVE))
}
