//! One block device, as the kernel counts it: /proc/diskstats (Documentation/admin-guide/iostats.rst).
//!
//! ```text
//!  254 0 vda  1449757 27851 23936668 825736  362252 15975 11862400 116679  0 36768 943134  8764 19 …  589 4190
//!             reads   merged sectors  ms      writes merged sectors  ms     |  |     |      discards   flushes ms
//!                                                      I/Os now in flight --+  |     +-- weighted ms
//!                                                           busy ms (io_ticks)-+
//! ```
//!
//! Flushes are there since Linux 5.5. Sectors are 512 bytes whatever the device says. Times are whole
//! milliseconds, summed exactly, but kept in 32 bits by some kernels: they wrap after 49 days of summed
//! waiting. A wrap shows as a counter that fell, and costs the one interval it lies in.

mod argument;
mod devices;
mod error;

pub use argument::KIND;
pub use devices::Devices;
pub use error::DeviceError;

use crate::error::SourceError;
use crate::mounts::Mounts;
use crate::source::Source;
use crate::time;
use filestats::{
    Cache, Counters, Epoch, Figure, FileIdentity, FileKind, Meaning, Ops, Reason, Sample, Snapshot,
};
use std::fs;
use std::io;
use std::path::Path;

const DISKSTATS: &str = "/proc/diskstats";
const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;
const TRIES_MAX: u32 = 3;

/// A block device or partition.
#[derive(Debug)]
pub struct Disk {
    name: String,
    number: String,
}

/// The kernel's line of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskLine {
    /// "MAJOR:MINOR".
    pub number: String,
    /// Its name below /dev.
    pub device: String,
    /// Reads, writes and flushes, and the time in which at least one I/O was in flight (io_ticks).
    pub counters: Counters,
    /// I/Os that the device has now: a look at an instant, which misleads as a figure of load.
    pub in_flight: u64,
    /// Time in flight summed over all I/Os, in nanoseconds: its growth over elapsed time is the mean
    /// number in flight.
    pub weighted_ns: u64,
}

impl Disk {
    /// The device of a number such as "254:0", as lsblk prints it.
    ///
    /// # Errors
    /// [`SourceError`]: the text is no number, or the kernel has no such device.
    pub fn open(number: &str) -> Result<Disk, SourceError> {
        let is_number = |part: &str| part.parse::<u32>().is_ok_and(|parsed| parsed.to_string() == part);
        if !number.split_once(':').is_some_and(|(major, minor)| is_number(major) && is_number(minor)) {
            return Err(DeviceError::NotADeviceNumber(number.into()).into());
        }
        let mut disk = Disk { name: String::new(), number: number.into() };
        disk.name = format!("device /dev/{}", disk.line()?.device);
        Ok(disk)
    }

    /// What the kernel says of the device now.
    ///
    /// # Errors
    /// [`SourceError`] if /proc/diskstats cannot be read or the device is gone.
    pub fn line(&self) -> Result<DiskLine, SourceError> {
        let line = lines()?.into_iter().find(|line| line.number == self.number);
        Ok(line.ok_or_else(|| DeviceError::NoSuchDevice { number: self.number.clone() })?)
    }

    /// The line, and the device it is of: looked at before and after, because a loop device may be set up
    /// anew in between.
    fn line_of_one_device(&self) -> Result<(DiskLine, String), SourceError> {
        let mut before = sequence(&self.number);
        for _ in 0..TRIES_MAX {
            let line = self.line()?;
            let after = sequence(&self.number);
            if before == after {
                return Ok((line, after));
            }
            before = after;
        }
        let error = io::Error::other("the device was replaced each time it was looked at");
        Err(SourceError::System { path: DISKSTATS.into(), error })
    }
}

impl DiskLine {
    /// The kernel's own form of its number, with 20 bits of minor.
    pub(crate) fn kernel_number(&self) -> Option<u32> {
        let (major, minor) = self.number.split_once(':')?;
        let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
        (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
    }
}

impl Source for Disk {
    fn name(&self) -> &str {
        &self.name
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let boot_id = boot_id()?;
        let (line, sequence) = self.line_of_one_device()?;
        let (clock_ns, taken_unix_ns) = (time::monotonic_ns(), time::unix_ns());
        let sample = sample(line, &sequence, &boot_id, &Mounts::now());
        Ok(Snapshot {
            source: "diskstats".into(),
            taken_unix_ns,
            clock_ns,
            samples: vec![sample],
            complete: None,
            waits: vec![],
            notes: vec![],
        })
    }
}

/// The kernel's lines of all devices.
pub(crate) fn lines() -> Result<Vec<DiskLine>, SourceError> {
    let failed = |error| SourceError::System { path: DISKSTATS.into(), error };
    let text = fs::read_to_string(DISKSTATS).map_err(failed)?;
    Ok(text.lines().filter_map(parse_line).collect())
}

/// Which boot of the machine this is.
pub(crate) fn boot_id() -> Result<String, SourceError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| SourceError::System { path: path.into(), error })?;
    Ok(text.trim().to_owned())
}

/// Tells a device from the next one of its name: a loop device that is set up anew counts from zero
/// only on some kernels. A partition has its disk's.
pub(crate) fn sequence(number: &str) -> String {
    let below = Path::new("/sys/dev/block").join(number);
    let own = fs::read_to_string(below.join("diskseq"));
    let found = own.or_else(|_| fs::read_to_string(below.join("../diskseq")));
    // Linux before 5.15 has none; the boot and the name must do.
    found.map_or_else(|_| "-".into(), |text| text.trim().to_owned())
}

/// A device at an instant.
pub(crate) fn sample(line: DiskLine, sequence: &str, boot_id: &str, mounts: &Mounts) -> Sample {
    let drive = mounts.point_of_device(&line.number).map(|point| point.display().to_string());
    Sample {
        size_bytes: size_bytes(&line.number),
        file: FileIdentity {
            instance: "kernel".into(),
            database: None,
            database_id: None,
            file_id: line.number,
            kind: FileKind::Device,
            path: format!("/dev/{}", line.device),
            drive,
            handle: None,
            object: None,
        },
        epoch: Epoch::for_run(format!("{boot_id}:{}:{sequence}", line.device)),
        meaning: Meaning { cache: Cache::Below, ..Meaning::REQUESTS },
        counters: line.counters,
        latencies: None,
    }
}

fn size_bytes(number: &str) -> Figure<u64> {
    let text = fs::read_to_string(Path::new("/sys/dev/block").join(number).join("size"));
    let sectors = text.ok().and_then(|text| text.trim().parse::<u64>().ok());
    match sectors.and_then(|sectors| sectors.checked_mul(SECTOR_BYTES)) {
        Some(bytes) => Figure::Known(bytes),
        None => Figure::unknown(Reason::NotCounted),
    }
}

/// One line; `None` if it is not of the form.
fn parse_line(line: &str) -> Option<DiskLine> {
    let mut words = line.split_ascii_whitespace();
    let (major, minor) = (words.next()?.parse::<u32>().ok()?, words.next()?.parse::<u32>().ok()?);
    let device = words.next()?.to_owned();
    let numbers = words.map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    // Documentation counts these fields from 1.
    let field = |number: usize| numbers.get(number - 1).copied();
    let ns = |number| field(number).map(|ms| ms.saturating_mul(NS_PER_MS));
    let transfers = |count, sectors, time| {
        let bytes = field(sectors)?.saturating_mul(SECTOR_BYTES);
        Some(Ops::timed(field(count)?, bytes, ns(time)?))
    };
    Some(DiskLine {
        number: format!("{major}:{minor}"),
        device,
        counters: Counters {
            read: transfers(1, 3, 4)?,
            write: transfers(5, 7, 8)?,
            sync: match (field(16), ns(17)) {
                (Some(count), Some(stall_ns)) => Figure::Known(Ops::timed(count, 0, stall_ns)),
                _ => Figure::unknown(Reason::NotCounted),
            },
            busy_ns: Figure::Known(ns(10)?),
        },
        in_flight: field(9)?,
        weighted_ns: ns(11)?,
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
        let line = parse_line(LINE).unwrap();
        assert_eq!((line.number.as_str(), line.device.as_str()), ("254:0", "vda"));
        let Counters { read, write, sync, busy_ns } = line.counters;
        assert_eq!(read, Ops::timed(1_449_757, 23_936_668 * 512, 825_736_000_000));
        assert_eq!(write, Ops::timed(362_252, 11_862_400 * 512, 116_679_000_000));
        assert_eq!(sync, Figure::Known(Ops::timed(4190, 0, 128_000_000)));
        assert_eq!(
            (line.in_flight, busy_ns, line.weighted_ns),
            (3, Figure::Known(36_768_000_000), 943_134_000_000)
        );
    }

    #[test]
    fn a_kernel_without_flush_counts_does_not_count_zero() {
        let old = LINE.rsplit_once(" 4190").unwrap().0;
        assert_eq!(parse_line(old).unwrap().counters.sync, Figure::unknown(Reason::NotCounted));
        let oldest = LINE.split(" 8764").next().unwrap();
        assert_eq!(parse_line(oldest).unwrap().counters.sync, Figure::unknown(Reason::NotCounted));
    }

    #[test]
    fn what_is_no_device_is_told_so() {
        for text in ["", "sda", "254", "254:", "254:0:0", "-1:0", "+1:0"] {
            assert!(
                matches!(
                    Disk::open(text).unwrap_err().downcast_ref(),
                    Some(DeviceError::NotADeviceNumber(_))
                ),
                "{text}"
            );
        }
        let error = Disk::open("4095:1048575").unwrap_err();
        assert!(error.to_string().contains("4095:1048575"), "{error}");
        assert!(error.remedy().unwrap().contains("lsblk"));
    }

    #[test]
    fn every_device_of_this_machine_can_be_watched() {
        let text = fs::read_to_string(DISKSTATS).unwrap();
        for number in text.lines().map(|line| parse_line(line).unwrap().number) {
            let mut disk = Disk::open(&number).unwrap();
            let (earlier, later) = (disk.snapshot().unwrap(), disk.snapshot().unwrap());
            assert!(disk.name().ends_with(earlier.samples[0].file.path.as_str()));
            assert_eq!(earlier.samples[0].epoch, later.samples[0].epoch);
            let rows = filestats::intervals(&earlier, &later, filestats::Rules::default());
            assert!(rows[0].interval.known().is_some(), "{rows:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in any::<String>(), numbers in prop::collection::vec(any::<u64>(), 0..25)) {
            parse_line(&text);
            let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            let parsed = parse_line(&format!("8 0 sda {}", numbers.join(" ")));
            prop_assert_eq!(parsed.is_some(), numbers.len() >= 11);
        }
    }
}
