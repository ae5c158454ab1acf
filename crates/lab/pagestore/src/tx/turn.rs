//! Whose turn it is to write.

use crate::error::{Error, Result};
use crate::store::{Inner, Writing};
use crate::sync::{thread, thread_number};
use pagestore_counters::monotonic_ns;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, TryLockError};

/// How often a thread gives way to others before it sleeps until it is its turn to write: most turns take less than to
/// fall asleep and be woken.
const YIELDS_MAX: usize = 32;

impl Inner {
    /// The turn to write, and how long it was waited for.
    pub(super) fn turn(&self) -> Result<(MutexGuard<'_, Writing>, u64)> {
        if let Some(writing) = self.turn_at_once() {
            return Ok((writing, 0));
        }
        if self.whose_turn.load(Ordering::Relaxed) == thread_number() {
            return Err(Error::AlreadyWriting);
        }
        let begun = monotonic_ns();
        let yielded = (0..YIELDS_MAX).find_map(|_| {
            thread::yield_now();
            self.turn_at_once()
        });
        let writing = yielded.unwrap_or_else(|| self.writing.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((writing, monotonic_ns() - begun))
    }

    /// The turn, if nobody has it. A program that panicked in its turn has given its transaction up by that, as
    /// `WriteTx::drop` does; a panic in the middle of a commit leaves `gate` poisoned, which ends all writing.
    fn turn_at_once(&self) -> Option<MutexGuard<'_, Writing>> {
        match self.writing.try_lock() {
            Ok(writing) => Some(writing),
            Err(TryLockError::Poisoned(given_up)) => Some(given_up.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
