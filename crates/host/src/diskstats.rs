use crate::DeviceNumber;
use crate::kernel_file::read_kernel_file;
use std::io;

/// Counters of all block devices.
pub const DISKSTATS: &str = "/proc/diskstats";

/// Kernel counters of one block device since it appeared (Documentation/admin-guide/iostats.rst).
///
/// Sectors are 512 bytes whatever the device says. Times are whole milliseconds, summed exactly, but some kernels keep them
/// in 32 bits: they wrap after 49 days of summed waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCounters {
    /// The device.
    pub number: DeviceNumber,
    /// Its name below /dev.
    pub name: String,
    /// Completed reads.
    pub reads: DiskTransfers,
    /// Completed writes.
    pub writes: DiskTransfers,
    /// I/Os in flight now.
    pub in_flight: u64,
    /// Time with at least one I/O in flight, milliseconds.
    pub busy_ms: u64,
    /// Time in flight summed over all I/Os, milliseconds: its growth over elapsed time is the mean number in flight.
    pub weighted_ms: u64,
    /// Completed discards; 0 before Linux 4.18, which does not count them.
    pub discards: u64,
    /// Completed flushes and their time in milliseconds; `None` before Linux 5.5.
    pub flushes: Option<(u64, u64)>,
}

/// Completed transfers in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskTransfers {
    /// Their number.
    pub count: u64,
    /// Sectors of 512 bytes.
    pub sectors: u64,
    /// From request to completion, summed, milliseconds.
    pub time_ms: u64,
}

impl DiskCounters {
    /// Completed reads and writes.
    pub fn ios(&self) -> u64 {
        self.reads.count.saturating_add(self.writes.count)
    }

    /// Everything that completed, so that it stands still only where nothing does.
    pub fn completed(&self) -> u64 {
        let flushes = self.flushes.map_or(0, |(count, _)| count);
        self.ios().saturating_add(self.discards).saturating_add(flushes)
    }
}

/// Counters of all block devices.
///
/// # Errors
/// If /proc is not readable.
pub fn read_diskstats() -> io::Result<Vec<DiskCounters>> {
    let text = read_kernel_file(DISKSTATS)?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(parse_line).collect())
}

/// Counters of one device; `None` if the kernel does not list it.
pub fn disk_counters(number: DeviceNumber) -> Option<DiskCounters> {
    read_diskstats().ok()?.into_iter().find(|disk| disk.number == number)
}

/// ```text
///  254 0 vda  1449757 27851 23936668 825736  362252 15975 11862400 116679  0 36768 943134  8764 19 … …  4190 128
///             reads   merged sectors  ms      writes merged sectors  ms     |  |     |     discards     flushes ms
///                                                         I/Os in flight ---+  |     +-- weighted ms
///                                                                    busy ms --+
/// ```
fn parse_line(line: &str) -> Option<DiskCounters> {
    let mut words = line.split_ascii_whitespace();
    let number = DeviceNumber { major: words.next()?.parse().ok()?, minor: words.next()?.parse().ok()? };
    let name = words.next()?.to_owned();
    let values = words.map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    // The kernel's documentation counts these fields from 1.
    let field = |number: usize| values.get(number - 1).copied();
    let transfers = |count, sectors, time_ms| {
        Some(DiskTransfers { count: field(count)?, sectors: field(sectors)?, time_ms: field(time_ms)? })
    };
    Some(DiskCounters {
        number,
        name,
        reads: transfers(1, 3, 4)?,
        writes: transfers(5, 7, 8)?,
        in_flight: field(9)?,
        busy_ms: field(10)?,
        weighted_ms: field(11)?,
        discards: field(12).unwrap_or(0),
        flushes: field(16).zip(field(17)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = " 254       0 vda 1449757 27851 23936668 825736 362252 15975 11862400 116679 3 36768 \
                        943134 8764 19 6169704 589 4190 128";

    #[test]
    fn a_line_is_read_field_by_field() {
        let disk = parse_line(LINE).unwrap();
        assert_eq!((disk.number.to_string().as_str(), disk.name.as_str()), ("254:0", "vda"));
        assert_eq!(disk.reads, DiskTransfers { count: 1_449_757, sectors: 23_936_668, time_ms: 825_736 });
        assert_eq!(disk.writes, DiskTransfers { count: 362_252, sectors: 11_862_400, time_ms: 116_679 });
        assert_eq!((disk.in_flight, disk.busy_ms, disk.weighted_ms), (3, 36_768, 943_134));
        assert_eq!((disk.flushes, disk.ios()), (Some((4190, 128)), 1_812_009));
        assert_eq!((disk.discards, disk.completed()), (8764, 1_812_009 + 8764 + 4190));
    }

    #[test]
    fn a_kernel_without_flush_counts_does_not_count_zero() {
        let old = LINE.rsplit_once(" 4190").unwrap().0;
        assert_eq!(parse_line(old).unwrap().flushes, None);
        let oldest = LINE.split(" 8764").next().unwrap();
        assert_eq!(parse_line(oldest).unwrap().flushes, None);
    }

    #[test]
    fn every_device_of_this_machine_is_read() {
        let text = std::fs::read_to_string(DISKSTATS).unwrap();
        assert_eq!(read_diskstats().unwrap().len(), text.lines().count());
        assert_eq!(disk_counters(DeviceNumber { major: 4095, minor: 1 }), None);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in any::<String>(), values in prop::collection::vec(any::<u64>(), 0..25)) {
            parse_line(&text);
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            let parsed = parse_line(&format!("8 0 sda {}", values.join(" ")));
            prop_assert_eq!(parsed.is_some(), values.len() >= 11);
        }
    }
}
