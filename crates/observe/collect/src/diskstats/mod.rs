//! One block device, as the kernel counts it (/proc/diskstats).
//!
//! Some kernels keep times as milliseconds in 32 bits, which wrap after 49 days of waiting. A wrap is a counter that fell,
//! and makes one interval unknown.

mod argument;
mod devices;
mod error;

pub use argument::KIND;
pub use devices::Devices;
pub use error::DeviceError;

use crate::error::SourceError;
use crate::source::Source;
use filestats::{
    Cache, Counters, Epoch, Figure, FileIdentity, FileKind, Meaning, Ops, Reason, Sample, Snapshot,
};
use host::{DISKSTATS, DeviceNumber, DiskCounters, DiskTransfers, Mounts};
use std::io;

const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;
const TRIES_MAX: u32 = 3;

/// A block device or partition.
#[derive(Debug)]
pub struct Disk {
    name: String,
    number: DeviceNumber,
}

/// The line of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskLine {
    /// The device.
    pub number: DeviceNumber,
    /// Its name below /dev.
    pub device: String,
    /// Reads, writes and flushes, and the time in which at least one I/O was in flight (io_ticks).
    pub counters: Counters,
}

impl Disk {
    /// The device of a number such as "254:0", as lsblk prints it.
    ///
    /// # Errors
    /// [`SourceError`]: the text is no number, or the kernel has no such device.
    pub fn open(number: &str) -> Result<Disk, SourceError> {
        let parsed = DeviceNumber::parse(number);
        let number = parsed.ok_or_else(|| DeviceError::NotADeviceNumber(number.into()))?;
        let mut disk = Disk { name: String::new(), number };
        disk.name = format!("device /dev/{}", disk.line()?.device);
        Ok(disk)
    }

    /// Reads the device's line.
    ///
    /// # Errors
    /// [`SourceError`] if /proc/diskstats cannot be read or the device is gone.
    pub fn line(&self) -> Result<DiskLine, SourceError> {
        let line = lines()?.into_iter().find(|line| line.number == self.number);
        Ok(line.ok_or_else(|| DeviceError::NoSuchDevice { number: self.number.to_string() })?)
    }

    /// The line and the device's sequence number, which is read before and after: a loop device may be set up again in
    /// between.
    fn line_of_one_device(&self) -> Result<(DiskLine, String), SourceError> {
        let mut before = sequence(self.number);
        for _ in 0..TRIES_MAX {
            let line = self.line()?;
            let after = sequence(self.number);
            if before == after {
                return Ok((line, after));
            }
            before = after;
        }
        let error = io::Error::other("the device was replaced each time it was looked at");
        Err(SourceError::System { path: DISKSTATS.into(), error })
    }
}

impl From<DiskCounters> for DiskLine {
    fn from(disk: DiskCounters) -> DiskLine {
        let ns = |ms: u64| ms.saturating_mul(NS_PER_MS);
        let ops = |done: DiskTransfers| {
            Ops::timed(done.count, done.sectors.saturating_mul(SECTOR_BYTES), ns(done.time_ms))
        };
        DiskLine {
            number: disk.number,
            device: disk.name,
            counters: Counters {
                read: ops(disk.reads),
                write: ops(disk.writes),
                sync: match disk.flushes {
                    Some((count, ms)) => Figure::Known(Ops::timed(count, 0, ns(ms))),
                    None => Figure::unknown(Reason::NotCounted),
                },
                busy_ns: Figure::Known(ns(disk.busy_ms)),
            },
        }
    }
}

impl Source for Disk {
    fn name(&self) -> &str {
        &self.name
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let boot_id = boot_id()?;
        let (line, sequence) = self.line_of_one_device()?;
        let (clock_ns, taken_unix_ns) = (host::monotonic_ns(), host::unix_ns());
        let sample = sample(&line, &sequence, &boot_id, &Mounts::read().unwrap_or_default());
        Ok(Snapshot {
            source: "diskstats".into(),
            taken_unix_ns,
            clock_ns,
            samples: vec![sample],
            ..Snapshot::default()
        })
    }
}

/// The kernel's lines of all devices.
pub(crate) fn lines() -> Result<Vec<DiskLine>, SourceError> {
    let failed = |error| SourceError::System { path: DISKSTATS.into(), error };
    Ok(host::read_diskstats().map_err(failed)?.into_iter().map(DiskLine::from).collect())
}

/// Identifies this boot of the machine.
pub(crate) fn boot_id() -> Result<String, SourceError> {
    host::boot_id().map_err(|error| SourceError::System { path: host::BOOT_ID.into(), error })
}

/// Distinguishes a device from the next one of its number: a loop device that is attached again counts from zero only on
/// some kernels. Without a sequence number (before Linux 5.15) boot and name identify it.
pub(crate) fn sequence(number: DeviceNumber) -> String {
    host::device_sequence(number).unwrap_or_else(|| "-".into())
}

/// A device at an instant.
pub(crate) fn sample(line: &DiskLine, sequence: &str, boot_id: &str, mounts: &Mounts) -> Sample {
    let drive = mounts.point_of_device(line.number).map(|point| point.display().to_string());
    Sample {
        size_bytes: host::device_size_bytes(line.number)
            .map_or(Figure::unknown(Reason::NotCounted), Figure::Known),
        file: FileIdentity {
            instance: "kernel".into(),
            file_id: line.number.to_string(),
            kind: FileKind::Device,
            path: format!("/dev/{}", line.device),
            drive,
            ..FileIdentity::default()
        }
        .into(),
        epoch: Epoch::for_run(format!("{boot_id}:{}:{sequence}", line.device)),
        meaning: Meaning { cache: Cache::Below, ..Meaning::REQUESTS },
        counters: line.counters,
        latencies: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_and_milliseconds_become_bytes_and_nanoseconds() {
        let done = DiskTransfers { count: 7, sectors: 16, time_ms: 3 };
        let number = DeviceNumber { major: 254, minor: 0 };
        let disk = DiskCounters {
            number,
            name: "vda".into(),
            reads: done,
            writes: DiskTransfers { count: 9, ..done },
            in_flight: 3,
            busy_ms: 36,
            weighted_ms: 943,
            discards: 0,
            flushes: Some((4190, 128)),
        };
        let line = DiskLine::from(disk.clone());
        let Counters { read, write, sync, busy_ns } = line.counters;
        assert_eq!((read, write), (Ops::timed(7, 8192, 3_000_000), Ops::timed(9, 8192, 3_000_000)));
        assert_eq!(sync, Figure::Known(Ops::timed(4190, 0, 128_000_000)));
        assert_eq!(busy_ns, Figure::Known(36_000_000));
        let old = DiskLine::from(DiskCounters { discards: 0, flushes: None, ..disk });
        assert_eq!(old.counters.sync, Figure::unknown(Reason::NotCounted), "not zero");
    }

    #[test]
    fn a_text_that_is_no_device_number_is_refused() {
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
        for line in lines().unwrap() {
            let mut disk = Disk::open(&line.number.to_string()).unwrap();
            let (earlier, later) = (disk.snapshot().unwrap(), disk.snapshot().unwrap());
            assert!(disk.name().ends_with(earlier.samples[0].file.path.as_str()));
            assert_eq!(earlier.samples[0].epoch, later.samples[0].epoch);
            let rows = filestats::intervals(&earlier, &later, filestats::Rules::default());
            assert!(rows[0].interval.known().is_some(), "{rows:?}");
        }
    }
}
