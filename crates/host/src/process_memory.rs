//! Reads that the user of a process can delay, within a limit: of its memory by `/proc`, and of the files that it names.
//!
//! `/proc/PID/cmdline`, `environ`, `maps` and `map_files` take the lock of the process's memory. A user can map a file of a FUSE
//! file system of his own, answer no read of it, and so hold that lock for as long as he likes; `ps` hangs on such a process, too.
//! A link in a name that a process gives may lead to such a file system as well.

use crate::process::user_of;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

/// Longest wait for one process. A read takes microseconds; this long only on a machine that is far too busy.
const READ_LIMIT: Duration = Duration::from_millis(500);
/// Reads of one user's processes that are stuck at a time. While there are this many, no further process of that user is
/// read.
const STUCK_OF_USER_MAX: usize = 2;
/// Stuck reads of all users: each keeps a thread until its process ends.
const STUCK_MAX: usize = 32;

/// The threads of stuck reads belong to this process, and so does their number.
static STUCK: Stuck = Stuck::new();

/// Performs `read`, which the user of the process can delay, in a thread of its own. `None` where it takes longer than half a
/// second, or too many such reads are stuck: what it would read stays unknown.
pub fn within_limit<T: Send + 'static>(pid: u32, read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    STUCK.within_limit(user_of(pid)?, read)
}

/// Numbers of stuck reads, by the user of their process.
struct Stuck(Mutex<BTreeMap<u32, usize>>);

impl Stuck {
    const fn new() -> Stuck {
        Stuck(Mutex::new(BTreeMap::new()))
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_full_for(&self, user: u32) -> bool {
        let counts = self.counts();
        let of_user = counts.get(&user).copied().unwrap_or(0);
        of_user >= STUCK_OF_USER_MAX || counts.values().sum::<usize>() >= STUCK_MAX
    }

    fn within_limit<T: Send + 'static>(
        &'static self,
        user: u32,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if self.is_full_for(user) {
            return None;
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let was_abandoned = Arc::clone(&is_abandoned);
        let reader = move || {
            let value = read();
            let mut counts = self.counts();
            if was_abandoned.load(Relaxed) {
                let left = counts.get(&user).map_or(0, |count| count.saturating_sub(1));
                if left == 0 {
                    counts.remove(&user)
                } else {
                    counts.insert(user, left)
                };
            } else {
                // The receiver waits, or reads it under the lock.
                let _ = sender.send(value);
            }
        };
        std::thread::Builder::new().name("process-memory".into()).spawn(reader).ok()?;
        receiver.recv_timeout(READ_LIMIT).ok().or_else(|| {
            let mut counts = self.counts();
            // It may have been sent since.
            receiver.try_recv().ok().or_else(|| {
                is_abandoned.store(true, Relaxed);
                *counts.entry(user).or_default() += 1;
                None
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Each stuck read waits for this test.
    #[test]
    fn stuck_reads_cost_their_user_and_end_with_their_process() {
        static READS: Stuck = Stuck::new();
        let (user, other) = (1000, 1001);
        assert_eq!(READS.within_limit(user, || 7), Some(7));
        let (releases, waits): (Vec<_>, Vec<_>) =
            (0..STUCK_OF_USER_MAX).map(|_| mpsc::channel::<()>()).unzip();
        for wait in waits {
            assert_eq!(READS.within_limit(user, move || wait.recv().is_ok()), None);
        }
        assert_eq!(READS.counts().get(&user), Some(&STUCK_OF_USER_MAX));
        let began = Instant::now();
        assert_eq!(READS.within_limit(user, || 7), None);
        assert!(began.elapsed() < READ_LIMIT, "nothing is begun");
        assert_eq!(READS.within_limit(other, || 7), Some(7));
        drop(releases);
        while READS.counts().contains_key(&user) {
            std::thread::yield_now();
        }
        assert_eq!(READS.within_limit(user, || 7), Some(7));
    }
}
