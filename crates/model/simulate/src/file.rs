//! Reads the `[storage]` table of a workload file (docs/reference/simulate.md).

use crate::model::{
    Cost, Disk, Flash, Limit, Mechanics, Metered, Rotating, Stall, Storage, Time, WriteCache,
};
use std::time::Duration;
use workload::{Layout, Plan};
use workload_file::values::{self, Wrong};
use workload_file::{FileError, Table, read_with};

/// Reads a workload file and the storage in it, if there is one.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn read(text: &str) -> Result<(Plan, Option<Storage>), FileError> {
    read_with(text, |root| root.table("storage")?.map(read_storage).transpose())
}

fn read_storage(mut table: Table<'_>) -> Result<Storage, FileError> {
    let layout = table.take("layout", |text| {
        text.parse::<Layout>().map_err(|bad| Wrong::new(bad.to_string(), "as in layout = \"stripe:64K\""))
    })?;
    let seed = table.take("seed", values::seed)?.unwrap_or(0);
    let limits = read_limits(&mut table, "[[storage.limits]]")?;
    let mut disks = Vec::new();
    for disk in table.tables("disks", "[[storage.disks]]")? {
        let (count, disk) = read_disk(disk)?;
        if count as usize + disks.len() > Storage::DISKS_MAX {
            return Err(table.wrong(Wrong::new("too many disks", "give at most 1024")));
        }
        disks.extend(std::iter::repeat_n(disk, count as usize));
    }
    let storage = Storage { disks, layout: layout.unwrap_or(Layout::Span), limits, seed };
    if let Err(impossible) = storage.validate() {
        return Err(table.wrong(Wrong::new(impossible.what, impossible.remedy)));
    }
    table.finish()?;
    Ok(storage)
}

fn read_disk(mut table: Table<'_>) -> Result<(u32, Disk), FileError> {
    let count = table.take("count", values::count)?.unwrap_or(1);
    let size_bytes = table.take("size", values::some_bytes)?.unwrap_or(1 << 40);
    let kinds = [("flash", false), ("rotating", true)];
    let rotating = table.take("kind", values::word(&kinds))?.unwrap_or(false);
    let mechanics = if rotating { read_rotating(&mut table)? } else { read_flash(&mut table)? };
    let cache = table.table("cache")?.map(read_cache).transpose()?;
    let stall = table.take("stall", stall)?;
    let sync = table.take("sync", time)?.unwrap_or_default();
    let limits = read_limits(&mut table, "[[storage.disks.limits]]")?;
    table.finish()?;
    Ok((count, Disk { size_bytes, mechanics, limits, cache, stall, sync }))
}

fn read_flash(table: &mut Table<'_>) -> Result<Mechanics, FileError> {
    let units = table.take("units", values::count)?.unwrap_or(1);
    let duplex = table.take("duplex", values::word(values::YES))?.unwrap_or(false);
    let read = table.take("read", time)?;
    let Some(read) = read else {
        return Err(table.wrong(Wrong::new("it does not say what a read takes", "add read = \"100us\"")));
    };
    let write = table.take("write", time)?.unwrap_or_else(|| read.clone());
    let both = table.take("bandwidth", per_byte)?.unwrap_or(0.0);
    let read_byte_ns = table.take("read-bandwidth", per_byte)?.unwrap_or(both);
    let write_byte_ns = table.take("write-bandwidth", per_byte)?.unwrap_or(both);
    let delay = table.take("latency", time)?.unwrap_or_default();
    let stages = table.take("stages", values::count)?.unwrap_or(1);
    let channel = table.take("stage", time)?.unwrap_or_default();
    let cost = |service, channel_byte_ns| Cost {
        channel: channel.clone(),
        channel_byte_ns,
        service,
        delay: delay.clone(),
        ..Cost::default()
    };
    Ok(Mechanics::Flash(Flash {
        units,
        stages,
        duplex,
        read: cost(read, read_byte_ns),
        write: cost(write, write_byte_ns),
    }))
}

fn read_rotating(table: &mut Table<'_>) -> Result<Mechanics, FileError> {
    let rpm = table.take("rpm", values::fraction)?.unwrap_or(7200.0);
    let seek = table.take("seek", |text| {
        let form = || {
            Wrong::new(
                format!("'{text}' says no seeks"),
                "give the shortest and the longest, as in \"500us to 16ms\"",
            )
        };
        let (min, max) = text.split_once(" to ").ok_or_else(form)?;
        Ok((ns(values::time(min)?), ns(values::time(max)?)))
    })?;
    let (seek_ns_min, seek_ns_max) = seek.unwrap_or((500_000, 16_000_000));
    let byte_ns = table.take("bandwidth", per_byte)?.unwrap_or(5.0);
    let queue = table.take("queue", values::count)?.unwrap_or(32);
    Ok(Mechanics::Rotating(Rotating { rpm, seek_ns_min, seek_ns_max, bytes_per_s: 1e9 / byte_ns, queue }))
}

fn read_cache(mut table: Table<'_>) -> Result<WriteCache, FileError> {
    let bytes = table.take("size", values::some_bytes)?;
    let write_ns = table.take("write", values::time)?.map_or(20_000, ns);
    let drain = table.take("drain", per_byte)?;
    let missing = table
        .wrong(Wrong::new("a cache has a size and drains", "cache = { size = \"64M\", drain = \"100M/s\" }"));
    table.finish()?;
    let (Some(bytes), Some(byte_ns)) = (bytes, drain) else { return Err(missing) };
    Ok(WriteCache { bytes, write_ns, drain_bytes_per_s: 1e9 / byte_ns })
}

fn read_limits(table: &mut Table<'_>, heading: &str) -> Result<Vec<Limit>, FileError> {
    table.tables("limits", heading)?.into_iter().map(read_limit).collect()
}

fn read_limit(mut table: Table<'_>) -> Result<Limit, FileError> {
    let mut limits = Vec::new();
    for (key, of) in [("ios", Metered::Ios), ("reads", Metered::Reads), ("writes", Metered::Writes)] {
        limits.extend(table.take(key, values::rate)?.map(|rate| (of, rate)));
    }
    let bytes =
        [("bytes", Metered::Bytes), ("read-bytes", Metered::ReadBytes), ("write-bytes", Metered::WriteBytes)];
    for (key, of) in bytes {
        limits.extend(table.take(key, per_byte)?.map(|byte_ns| (of, 1e9 / byte_ns)));
    }
    let burst = table.take("burst", values::bytes)?.unwrap_or(1) as f64;
    let refill_ns = table.take("refill", values::time)?.map_or(0, ns);
    let wrong = table.wrong(Wrong::new(
        format!("it limits {} things", limits.len()),
        "one of ios = \"800/s\", reads, writes, bytes = \"100M/s\", read-bytes and write-bytes",
    ));
    table.finish()?;
    match limits[..] {
        [(of, per_second)] => Ok(Limit { of, per_second, burst, refill_ns }),
        _ => Err(wrong),
    }
}

/// "100us", "exponential 100us", "lognormal 100us 2ms" (half are shorter than the one, 99 % than the other), or ranges
/// with their shares: "80us:60, 120us:39, 5ms:1" (60 % up to 80 us, 39 % from there to 120 us).
fn time(text: &str) -> Result<Time, Wrong> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["exponential", mean] => Ok(Time::Exponential { mean_ns: ns(values::some_time(mean)?) as f64 }),
        ["lognormal", median, most] => {
            let (median_ns, most_ns) = (ns(values::some_time(median)?), ns(values::some_time(most)?));
            // 99 % of a normal distribution lie below 2.326 standard deviations.
            let sigma = (most_ns as f64 / median_ns as f64).ln() / 2.326;
            if !(0.0..=5.0).contains(&sigma) {
                return Err(Wrong::new(
                    format!("'{text}'"),
                    "give the median first, then what 99 % do not exceed",
                ));
            }
            Ok(Time::Lognormal { median_ns: median_ns as f64, sigma })
        }
        _ if text.contains(':') => {
            let range = |part: &str| {
                let form =
                    || Wrong::new(format!("'{part}' is not a range"), "as in \"80us:60, 120us:39, 5ms:1\"");
                let (to, share) = part.split_once(':').ok_or_else(form)?;
                let share: u64 = share.trim().trim_end_matches('%').parse().map_err(|_| form())?;
                Ok((ns(values::time(to.trim())?), share))
            };
            Ok(Time::Empirical { ranges: text.split(',').map(range).collect::<Result<_, Wrong>>()? })
        }
        _ => Ok(Time::Fixed { ns: ns(values::time(text)?) }),
    }
}

/// "2s every 30s".
fn stall(text: &str) -> Result<Stall, Wrong> {
    let form = || Wrong::new(format!("'{text}' is not a stall"), "as in \"2s every 30s\"");
    let (length, every) = text.split_once(" every ").ok_or_else(form)?;
    Ok(Stall { every_ns: ns(values::some_time(every)?), length_ns: ns(values::some_time(length)?) })
}

/// "200M/s", as nanoseconds for a byte.
fn per_byte(text: &str) -> Result<f64, Wrong> {
    let per_s = values::some_bytes(text.trim().trim_end_matches("/s"))?;
    Ok(1e9 / per_s as f64)
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = r#"
[storage]
layout = "stripe:64K"

[[storage.limits]]
ios = "3000/s"
burst = 5400000

[[storage.disks]]
count = 3
size = "10G"
units = 16
read = "20ms"
write = "lognormal 1ms 10ms"
bandwidth = "200M/s"
stall = "2s every 30s"
cache = { size = "64M", write = "50us", drain = "100M/s" }
limits = [{ reads = "800/s", refill = "100ms" }]

[[storage.disks]]
kind = "rotating"
seek = "1ms to 12ms"

[[phases]]
duration = "10s"
[[phases.workloads]]
block = "64K"
"#;

    #[test]
    fn a_storage_is_read_as_it_is_written() {
        let (plan, storage) = read(FILE).unwrap();
        let storage = storage.unwrap();
        assert_eq!((plan.phases.len(), storage.disks.len()), (1, 4));
        assert_eq!(storage.layout, Layout::Stripe { unit_bytes: 65_536 });
        assert_eq!(storage.limits[0].burst, 5_400_000.0);
        let disk = &storage.disks[2];
        assert_eq!(disk.stall, Some(Stall { every_ns: 30_000_000_000, length_ns: 2_000_000_000 }));
        assert_eq!((disk.limits[0].of, disk.limits[0].refill_ns), (Metered::Reads, 100_000_000));
        let Mechanics::Flash(flash) = &disk.mechanics else { panic!("flash where nothing is said") };
        assert_eq!((flash.units, &flash.read.service), (16, &Time::Fixed { ns: 20_000_000 }));
        assert!(
            (flash.write.service.mean_ns() / 1.63e6 - 1.0).abs() < 0.01,
            "{}",
            flash.write.service.mean_ns()
        );
        let Mechanics::Rotating(arm) = &storage.disks[3].mechanics else { panic!("as it says") };
        assert_eq!((arm.seek_ns_min, arm.rpm), (1_000_000, 7200.0));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let wrong = |from: &str, to: &str| read(&FILE.replace(from, to)).unwrap_err();
        let unknown = wrong("units = 16", "unit = 16");
        assert_eq!((unknown.line, unknown.key.as_str()), (12, "unit"));
        assert!(wrong("count = 3", "count = 3000").reason.contains("too many"));
        assert!(wrong("2s every 30s", "30s every 2s").reason.contains("stalls"));
        assert!(wrong("reads = \"800/s\", ", "").reason.contains("0 things"));
        assert!(wrong("read = \"20ms\"\n", "").reason.contains("what a read takes"));
        let (_, none) = read("[[phases]]\n[[phases.workloads]]\n").unwrap();
        assert!(none.is_none());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(line in 0_usize..30, text in "[a-z0-9 =\":,.\\[\\]{}]{0,30}") {
            let mut lines: Vec<&str> = FILE.lines().collect();
            let at = line % lines.len();
            lines[at] = &text;
            let _ = read(&lines.join("\n"));
        }
    }
}
