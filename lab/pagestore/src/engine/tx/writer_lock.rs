//! The writer lock: one transaction writes at a time.

use crate::engine::inner::{Inner, Writing};
use crate::error::{Error, Result};
use crate::sync::{thread, thread_number};
use pagestore_counters::monotonic_ns;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, TryLockError};

/// How often a thread yields before it sleeps on the lock: most transactions hold it for less time than sleeping
/// and waking take.
const YIELDS_MAX: usize = 32;

impl Inner {
    /// Takes the writer lock; also returns how long that took, in nanoseconds.
    pub(super) fn begin_writing(&self) -> Result<(MutexGuard<'_, Writing>, u64)> {
        if let Some(writing) = self.try_begin_writing() {
            return Ok((writing, 0));
        }
        if self.writer_thread.load(Ordering::Relaxed) == thread_number() {
            return Err(Error::AlreadyWriting);
        }
        let begun = monotonic_ns();
        let yielded = (0..YIELDS_MAX).find_map(|_| {
            thread::yield_now();
            self.try_begin_writing()
        });
        let writing = yielded.unwrap_or_else(|| self.writing.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((writing, monotonic_ns() - begun))
    }

    /// Takes the lock if it is free. If the program panicked while it held the lock, `WriteTx::drop` has rolled its
    /// transaction back, so the poison is ignored; a panic in the middle of a commit poisons `gate` instead, which
    /// ends all writing.
    fn try_begin_writing(&self) -> Option<MutexGuard<'_, Writing>> {
        match self.writing.try_lock() {
            Ok(writing) => Some(writing),
            Err(TryLockError::Poisoned(given_up)) => Some(given_up.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
