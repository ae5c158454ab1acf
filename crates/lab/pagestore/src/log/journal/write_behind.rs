//! Writing log while a large transaction appends its records, so that the device works while pages are encoded. One more log
//! write than otherwise is in flight: no commit could share it.

use super::Journal;
use crate::format::geometry::MAX_WRITE_BYTES;
use std::time::Duration;

/// How long the writing thread pauses while less than a whole write is waiting: a part of the time that such a write
/// takes.
const PAUSE: Duration = Duration::from_micros(100);

/// Marks that a transaction appends, until it is dropped; even if the appending thread panics.
struct Appending<'a>(&'a Journal);

impl<'a> Appending<'a> {
    fn begin(journal: &'a Journal) -> Self {
        journal.with_writer(|writer| writer.is_written_behind = true);
        Self(journal)
    }
}

impl Drop for Appending<'_> {
    fn drop(&mut self) {
        self.0.with_writer(|writer| writer.is_written_behind = false);
    }
}

impl Journal {
    /// Whether a large transaction appends its records now.
    pub(crate) fn is_written_behind(&self) -> bool {
        self.with_writer(|writer| writer.is_written_behind)
    }

    /// Runs `append` while another thread writes what it appends, a whole write at a time. If the system refuses a
    /// thread, `append` writes alone, as it does when the other thread falls behind.
    pub(crate) fn write_behind<T>(&self, append: impl FnOnce() -> T) -> T {
        let appending = Appending::begin(self);
        std::thread::scope(|scope| {
            let write_until_ended = || {
                while self.is_written_behind() {
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
            drop(appending);
            appended
        })
    }
}
