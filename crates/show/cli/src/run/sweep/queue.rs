//! The queue of a target's devices during a step: the kernel's time-weighted mean, and samples of the current length.

use capability::QueueSeen;
use host::{DeviceNumber, disk_counters};
use load::{LiveStats, RunStage};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::{Duration, Instant};
use storage::Region;

pub struct QueueWatch {
    /// The devices of the members or of their file systems; empty where the kernel counts none.
    devices: Vec<DeviceNumber>,
    every: Duration,
    /// The start of the measured part, and the weighted time at that instant.
    began: Option<(Instant, u64)>,
    /// The last sample, and the weighted time at that instant.
    last: Option<(Instant, u64)>,
    samples: Vec<u64>,
}

impl QueueWatch {
    pub fn new(region: &Region, every: Duration) -> QueueWatch {
        let number = |member: &Region| {
            let metadata = member.file.metadata().ok()?;
            let device =
                if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
            disk_counters(DeviceNumber::from_dev(device)).map(|disk| disk.number)
        };
        let mut devices: Vec<DeviceNumber> = region.members().iter().filter_map(number).collect();
        devices.sort();
        devices.dedup();
        QueueWatch { devices, every, began: None, last: None, samples: Vec::new() }
    }

    /// Called often; samples when one is due.
    pub fn sample(&mut self, live: &LiveStats) {
        if self.devices.is_empty() || live.stage != RunStage::Measuring {
            return;
        }
        let now = Instant::now();
        let due = match self.began {
            None => true,
            Some((began, _)) => now >= began + self.every * (self.samples.len() as u32 + 1),
        };
        let Some((in_flight, weighted_ms)) = self.read() else { return };
        if self.began.is_none() {
            self.began = Some((now, weighted_ms));
        } else if due {
            self.samples.push(in_flight);
        }
        self.last = Some((now, weighted_ms));
    }

    /// The mean and the samples; `None` where the kernel counts nothing, or the step was too short for a sample.
    pub fn finish(self) -> Option<QueueSeen> {
        let ((began, before), (last, after)) = (self.began?, self.last?);
        let elapsed = last.duration_since(began).as_secs_f64();
        let weighted = after.checked_sub(before)? as f64 / 1e3 / elapsed;
        weighted.is_finite().then_some(QueueSeen {
            weighted,
            samples: self.samples,
            every_ns: self.every.as_nanos() as u64,
        })
    }

    /// All devices together: I/Os in flight, and their weighted time.
    fn read(&self) -> Option<(u64, u64)> {
        let mut sums = (0, 0);
        for number in &self.devices {
            let counters = disk_counters(*number)?;
            sums = (sums.0 + counters.in_flight, sums.1 + counters.weighted_ms);
        }
        Some(sums)
    }
}
