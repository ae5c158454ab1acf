//! The memory that snapshots take while they wait for a slow disk.

use filestats::{FileIdentity, LatencyBuckets, Sample, Snapshot, WaitSample};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The most memory, about, that the waiting snapshots of all sources take: a third of the service's limit.
pub const BYTES_MAX: usize = 64 << 20;

/// Bytes of the waiting snapshots.
#[derive(Debug, Default)]
pub struct QueueMemory(AtomicUsize);

impl QueueMemory {
    /// Reserves memory for a snapshot. Returns false where there is not enough; a single snapshot always fits.
    pub fn reserve(&self, bytes: usize) -> bool {
        let reserved = |waiting: usize| match waiting {
            0 => Some(bytes),
            waiting => waiting.checked_add(bytes).filter(|all| *all <= BYTES_MAX),
        };
        self.0.fetch_update(Relaxed, Relaxed, reserved).is_ok()
    }

    /// Releases the memory of a snapshot that was saved or dropped.
    pub fn release(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Relaxed);
    }
}

/// The approximate memory of a snapshot.
pub fn bytes_of(snapshot: &Snapshot) -> usize {
    let histograms = 3 * LatencyBuckets::LEN * size_of::<u64>();
    let text = |file: &FileIdentity| {
        let named = [&file.database, &file.drive, &file.handle].into_iter().flatten();
        let always = [&file.instance, &file.file_id, &file.path];
        named.chain(always).map(String::len).sum::<usize>()
    };
    let sample = |sample: &Sample| {
        let epoch = sample.epoch.run.len() + sample.epoch.reset.len();
        let latencies = sample.latencies.as_ref().map_or(0, |_| histograms);
        size_of::<Sample>() + text(&sample.file) + epoch + latencies
    };
    let wait = |wait: &WaitSample| {
        size_of::<WaitSample>() + wait.instance.len() + wait.event.len() + wait.epoch.run.len()
    };
    let notes: usize = snapshot.notes.iter().map(String::len).sum();
    let samples: usize = snapshot.samples.iter().map(sample).sum();
    size_of::<Snapshot>() + samples + snapshot.waits.iter().map(wait).sum::<usize>() + notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_bounded_but_a_single_snapshot_always_fits() {
        let memory = QueueMemory::default();
        assert!(memory.reserve(BYTES_MAX * 2), "one alone");
        assert!(!memory.reserve(1));
        memory.release(BYTES_MAX * 2);
        assert!(memory.reserve(BYTES_MAX / 2) && memory.reserve(BYTES_MAX / 2));
        assert!(!memory.reserve(1));
        memory.release(BYTES_MAX / 2);
        assert!(memory.reserve(1));
    }
}
