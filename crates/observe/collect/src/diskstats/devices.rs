//! Block devices of this host as one source.
//!
//! ```text
//! /proc/diskstats, one reading ─> a line a device (diskstats::parse) ─> a sample of kind device, below the page cache
//! /sys/dev/block/*/diskseq before and after: a device that was set up again in between is left out
//! ```
//!
//! A partition and its disk are separate samples, and so are a disk and the dm or md device on it: do not add them up.
//! Each device has an epoch of its own: the boot, its name, and its sequence number.

use super::error::DeviceError;
use super::{DiskLine, boot_id, lines, sample, sequence};
use crate::error::SourceError;
use crate::source::Source;
use filestats::{Counters, Snapshot};
use host::{DeviceNumber, Mounts};
use std::collections::HashMap;

/// Some devices, or all that did I/O.
#[derive(Debug)]
pub struct Devices {
    name: String,
    /// Kernel names; empty for all devices.
    chosen: Vec<String>,
}

impl Devices {
    /// The devices of those names ("vda", "/dev/mapper" names are "dm-0"); all, where none is named.
    ///
    /// # Errors
    /// [`SourceError::NoSuchDevice`] where the kernel has no device of a name.
    pub fn open(names: &[String]) -> Result<Devices, SourceError> {
        let found = lines()?;
        for name in names {
            if !found.iter().any(|line| line.device == *name) {
                return Err(DeviceError::NoSuchDevice { number: name.clone() }.into());
            }
        }
        Ok(Devices { name: format!("devices:{}", names.join(",")), chosen: names.to_vec() })
    }

    fn wants(&self, line: &DiskLine) -> bool {
        if self.chosen.is_empty() {
            // Leaves out memory disks, and loop devices that are not set up.
            let Counters { read, write, .. } = line.counters;
            return read.count.saturating_add(write.count) > 0 && !line.device.starts_with("ram");
        }
        self.chosen.contains(&line.device)
    }
}

impl Source for Devices {
    fn name(&self) -> &str {
        &self.name
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let boot_id = boot_id()?;
        let wanted = lines()?.into_iter().filter(|line| self.wants(line));
        let before: HashMap<DeviceNumber, String> =
            wanted.map(|line| (line.number, sequence(line.number))).collect();
        let found = lines()?;
        let (clock_ns, taken_unix_ns) = (host::monotonic_ns(), host::unix_ns());
        let mounts = Mounts::read().unwrap_or_default();
        let samples: Vec<_> = found
            .into_iter()
            .filter_map(|line| {
                let sequence_before = before.get(&line.number)?;
                let same = sequence(line.number) == *sequence_before;
                same.then(|| sample(&line, sequence_before, &boot_id, &mounts))
            })
            .collect();
        if samples.is_empty() && !self.chosen.is_empty() {
            return Err(DeviceError::NoSuchDevice { number: self.chosen.join(",") }.into());
        }
        Ok(Snapshot { source: self.name.clone(), taken_unix_ns, clock_ns, samples, ..Snapshot::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diskstats::Disk;
    use filestats::{FileKind, Rules, intervals};

    #[test]
    fn every_device_that_did_io_is_sampled_once_and_equals_the_source_of_one_device() {
        let mut all = Devices::open(&[]).unwrap();
        let (earlier, later) = (all.snapshot().unwrap(), all.snapshot().unwrap());
        assert_eq!(earlier.source, "devices:");
        let mut paths: Vec<&str> = later.samples.iter().map(|sample| sample.file.path.as_str()).collect();
        let count = paths.len();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), count);
        for row in intervals(&earlier, &later, Rules::default()) {
            assert_eq!(row.file.kind, FileKind::Device);
            // Other tests set loop devices up.
            let is_loop = row.file.path.starts_with("/dev/loop");
            assert!(row.interval.known().is_some() || is_loop, "{row:?}");
        }
        let Some(first) = later.samples.first() else { return };
        let alone = Disk::open(&first.file.file_id).unwrap().snapshot().unwrap().samples.remove(0);
        assert_eq!((alone.file, alone.epoch), (first.file.clone(), first.epoch.clone()));
        let name = first.file.path.trim_start_matches("/dev/").to_owned();
        let mut chosen = Devices::open(std::slice::from_ref(&name)).unwrap();
        let chosen = chosen.snapshot().unwrap();
        assert_eq!((chosen.source, chosen.samples.len()), (format!("devices:{name}"), 1));
    }

    #[test]
    fn a_missing_device_is_named_in_the_error() {
        let error = Devices::open(&["nosuch9".into()]).unwrap_err();
        assert!(error.to_string().contains("nosuch9"), "{error}");
    }
}
