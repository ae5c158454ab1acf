//! What snapshots that wait for a slow disk take of memory.

use filestats::{FileIdentity, LatencyBuckets, Sample, Snapshot, WaitSample};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Snapshots of all sources that wait take so much at most, about: a third of what the service may take.
pub const BYTES_MAX: usize = 64 << 20;

/// Bytes that wait.
#[derive(Debug, Default)]
pub struct Waiting(AtomicUsize);

impl Waiting {
    /// Whether there is room for a snapshot of so many bytes: then they are counted. One alone always has room.
    pub fn enter(&self, bytes: usize) -> bool {
        let room = |waiting: usize| match waiting {
            0 => Some(bytes),
            waiting => waiting.checked_add(bytes).filter(|all| *all <= BYTES_MAX),
        };
        self.0.fetch_update(Relaxed, Relaxed, room).is_ok()
    }

    /// They were kept, or found no other room.
    pub fn leave(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Relaxed);
    }
}

/// About what a snapshot takes.
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
    fn there_is_room_for_so_many_bytes_and_for_one_however_large() {
        let waiting = Waiting::default();
        assert!(waiting.enter(BYTES_MAX * 2), "one alone");
        assert!(!waiting.enter(1));
        waiting.leave(BYTES_MAX * 2);
        assert!(waiting.enter(BYTES_MAX / 2) && waiting.enter(BYTES_MAX / 2));
        assert!(!waiting.enter(1));
        waiting.leave(BYTES_MAX / 2);
        assert!(waiting.enter(1));
    }
}
