use crate::FillProgress;
use crate::buffer::AlignedBuffer;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// One write; files are multiples of it.
pub(crate) const CHUNK_BYTES: u64 = 1 << 20;
/// Writes in flight: enough for a disk array, not too many for a USB stick.
const WRITERS: u64 = 4;
/// Through the page cache each writer syncs after this many chunks, so that the progress is that of the storage and
/// memory does not fill up.
const CHUNKS_PER_SYNC: u64 = 16;
/// Interval at which the caller can stop the writing, however slow the storage is.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// Most chunks written that were not reported yet, so that a caller can stop the writing in time.
const UNREPORTED_MAX: usize = 8;
/// Alignment of buffers, sufficient for any device.
const BUFFER_ALIGN_BYTES: usize = 4096;

#[derive(Debug)]
pub(crate) enum NotFilled {
    /// The caller ended it; the file is full up to here.
    Stopped {
        done_bytes: u64,
    },
    Failed {
        done_bytes: u64,
        error: io::Error,
    },
}

/// Writes `file` from `from_bytes` up to `bytes` full of data that neither compresses nor repeats.
pub(crate) fn fill(
    file: &File,
    direct: bool,
    from_bytes: u64,
    bytes: u64,
    on_progress: &mut dyn FnMut(FillProgress) -> ControlFlow<()>,
) -> Result<(), NotFilled> {
    debug_assert!(bytes.is_multiple_of(CHUNK_BYTES) && from_bytes.is_multiple_of(CHUNK_BYTES));
    let (first, chunks) = (from_bytes / CHUNK_BYTES, bytes / CHUNK_BYTES);
    let seed = RandomState::new().build_hasher().finish();
    let (next, stop) = (AtomicU64::new(first), AtomicBool::new(false));
    let (sender, receiver) = mpsc::sync_channel(UNREPORTED_MAX);
    let mut progress = FillProgress { done_bytes: from_bytes, total_bytes: bytes };
    let (mut failed, mut stopped) = (None, false);

    thread::scope(|scope| {
        for _ in 0..WRITERS.min(chunks.saturating_sub(first)) {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            scope.spawn(move || {
                let mut buffer = AlignedBuffer::new(CHUNK_BYTES as usize, BUFFER_ALIGN_BYTES);
                let mut unsynced = 0;
                while !stop.load(Ordering::Relaxed) {
                    let chunk = next.fetch_add(1, Ordering::Relaxed);
                    if chunk >= chunks {
                        break;
                    }
                    randomize(&mut buffer, seed, chunk);
                    let mut written = file.write_all_at(&buffer, chunk * CHUNK_BYTES);
                    unsynced += 1;
                    if !direct && unsynced == CHUNKS_PER_SYNC {
                        written = written.and_then(|()| file.sync_data());
                        unsynced = 0;
                    }
                    let failed = written.is_err();
                    // The receiver lives until all writers are done.
                    let _ = sender.send(written);
                    if failed {
                        break;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(PROGRESS_EVERY) {
                Ok(Ok(())) => progress.done_bytes += CHUNK_BYTES,
                Ok(Err(error)) => {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(NotFilled::Failed { done_bytes: progress.done_bytes, error });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if failed.is_none() && !stopped && on_progress(progress).is_break() {
                stop.store(true, Ordering::Relaxed);
                stopped = true;
            }
        }
    });
    // Writers take the chunks by rising number and finish those that they took, so that no chunk before the end is missing.
    match failed {
        Some(failed) => Err(failed),
        None if stopped => Err(NotFilled::Stopped { done_bytes: progress.done_bytes }),
        None => Ok(()),
    }
}

/// Fills a chunk with random data that depends on its number.
fn randomize(buffer: &mut [u8], seed: u64, chunk: u64) {
    // `seed_from_u64` makes independent states of consecutive seeds (SplitMix64).
    Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(chunk)).fill_bytes(buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_sectors_of_neighbouring_chunks_are_equal() {
        let mut chunks = vec![0; 4 << 20];
        for (chunk, part) in chunks.chunks_mut(CHUNK_BYTES as usize).enumerate() {
            randomize(part, 42, chunk as u64);
        }
        let sectors: HashSet<&[u8]> = chunks.chunks(512).collect();
        assert_eq!(sectors.len(), chunks.len() / 512);
        let mut counts = [0_u32; 256];
        chunks.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        let expected = (chunks.len() / 256) as f64;
        let spread = counts.iter().map(|count| (f64::from(*count) - expected).abs()).fold(0.0, f64::max);
        assert!(spread < expected * 0.05, "some byte is {spread} off {expected}: that compresses");
    }
}
