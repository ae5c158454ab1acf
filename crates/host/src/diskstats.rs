use crate::mounts::Number;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// What `/proc/diskstats` counts for one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Reads and writes completed since the device appeared.
    pub ios: u64,
    /// I/Os the device is busy with now.
    pub in_flight: u64,
    /// Time in flight summed over all I/Os, milliseconds: its growth over elapsed time is the mean number in flight.
    pub weighted_ms: u64,
}

/// Counters of the device with that number ("254:0"); `None` if the kernel does not list it.
pub fn device_counters(number: &str) -> Option<DeviceCounters> {
    parse(&fs::read_to_string("/proc/diskstats").ok()?, Number::parse(number)?)
}

/// I/Os a second that the device completes while this process leaves it alone for the time `over`: the load
/// of others. `None` if the kernel does not count it.
pub fn foreign_load(number: &str, over: Duration) -> Option<f64> {
    let began = Instant::now();
    let before = device_counters(number)?;
    thread::sleep(over);
    let after = device_counters(number)?;
    let ios = after.ios.checked_sub(before.ios)?;
    Some(ios as f64 / began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE))
}

/// major minor name, then reads, merged, sectors, ms, writes, merged, sectors, ms, in flight, ...
/// (Documentation/admin-guide/iostats.rst).
fn parse(text: &str, number: Number) -> Option<DeviceCounters> {
    text.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let major = fields.next()?.parse().ok()?;
        let minor = fields.next()?.parse().ok()?;
        if (Number { major, minor }) != number {
            return None;
        }
        let counts: Vec<u64> = fields.skip(1).map_while(|field| field.parse().ok()).collect();
        let (reads, writes, in_flight) = (counts.first()?, counts.get(4)?, counts.get(8)?);
        let weighted_ms = *counts.get(10)?;
        Some(DeviceCounters { ios: reads.checked_add(*writes)?, in_flight: *in_flight, weighted_ms })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
   7       0 loop0 274480 0 4392874 118091 869 282 1247792 4268 3 5756 122365 2 0 4194312 1 32 3
 254       0 vda 100 0 8 1 20 0 8 1 0 1 1
 254       1 vda1 bad
";

    #[test]
    fn reads_and_writes_are_counted_together() {
        let of = |text: &str| parse(TEXT, Number::parse(text).unwrap());
        assert_eq!(of("7:0"), Some(DeviceCounters { ios: 275_349, in_flight: 3, weighted_ms: 122_365 }));
        assert_eq!(of("254:0"), Some(DeviceCounters { ios: 120, in_flight: 0, weighted_ms: 1 }));
        assert_eq!(of("254:1"), None);
        assert_eq!(of("9:9"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9a-z \n]{0,120}") {
            let _ = parse(&text, Number { major: 7, minor: 0 });
        }
    }
}
