//! Writing log while a commit of many pages appends its records, so that the device works while pages are encoded. One more
//! log write may be in flight than otherwise. That makes writes of single commits smaller, and these are full anyway.

use super::{Journal, WRITE_PAUSE};
use crate::format::geometry::MAX_WRITE_BYTES;
use std::sync::atomic::{AtomicBool, Ordering};

/// As many as there may be writes in flight by default: the appending thread then need not write itself.
const THREADS: usize = 2;

/// Marks that a commit appends, until it is dropped; even if the appending thread panics.
struct Appending<'a>(&'a AtomicBool);

impl<'a> Appending<'a> {
    fn begin(mark: &'a AtomicBool) -> Self {
        mark.store(true, Ordering::Release);
        Self(mark)
    }
}

impl Drop for Appending<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Journal {
    /// Runs `append` while other threads write what it appends, a whole write at a time. If the system refuses to start them,
    /// or they fall behind, `append` writes too.
    pub(crate) fn write_behind<T>(&self, append: impl FnOnce() -> T) -> T {
        let appending = Appending::begin(&self.written_behind);
        std::thread::scope(|scope| {
            let write_until_ended = || {
                while self.is_written_behind() {
                    let waiting = self.with_writer(|writer| {
                        if writer.waiting_bytes() > MAX_WRITE_BYTES {
                            writer.take_write(self.more_in_flight())
                        } else {
                            None
                        }
                    });
                    match waiting {
                        // The store is read-only from then on; the next append returns the error.
                        Some(write) => {
                            if self.write(write, false).is_err() {
                                return;
                            }
                        }
                        None => std::thread::sleep(WRITE_PAUSE),
                    }
                }
            };
            for _ in 0..THREADS {
                let _ = std::thread::Builder::new().spawn_scoped(scope, write_until_ended);
            }
            let appended = append();
            drop(appending);
            appended
        })
    }
}
