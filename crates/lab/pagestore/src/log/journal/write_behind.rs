//! Writing log while a large transaction appends its records, so that the device works while pages are encoded.

use super::Journal;
use crate::format::geometry::MAX_WRITE_BYTES;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long the writing thread pauses while less than a whole write is waiting: a part of the time that such a write
/// takes.
const PAUSE: Duration = Duration::from_micros(100);

/// Ends the writing thread, even if the appending thread panics.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Journal {
    /// Runs `append` while another thread writes what it appends, a whole write at a time. If the system refuses a
    /// thread, `append` writes alone, as it does when the other thread falls behind.
    pub(crate) fn write_behind<T>(&self, append: impl FnOnce() -> T) -> T {
        let is_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let end = EndOnDrop(&is_ended);
            let write_until_ended = || {
                while !is_ended.load(Ordering::Acquire) {
                    let waiting = self.with_writer(|writer| {
                        if writer.waiting_bytes() > MAX_WRITE_BYTES { writer.take_write() } else { None }
                    });
                    match waiting {
                        // The store is read-only from then on; the next append returns the error.
                        Some(write) => {
                            if self.write(write, false).is_err() {
                                return;
                            }
                        }
                        None => std::thread::sleep(PAUSE),
                    }
                }
            };
            let _ = std::thread::Builder::new().spawn_scoped(scope, write_until_ended);
            let appended = append();
            drop(end);
            appended
        })
    }
}
