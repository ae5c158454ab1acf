//! Readings of the host that several observers share: the databases of a host are sampled at the same times, and most lie on
//! the same storage.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Readings by what was read.
pub struct Recent<K, T>(Mutex<Option<HashMap<K, Reading<T>>>>);

/// When it was read, and what.
type Reading<T> = (Instant, Arc<T>);

/// Readings that are older are of no use to anybody.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// How old a shared reading may be of what each sample has: the databases of a host are sampled at the same times.
pub const SAMPLED_TOGETHER: Duration = Duration::from_millis(300);

/// Whether an observer shares readings of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each reading is made when it is requested.
    Never,
    /// Readings of others are taken, as old as each kind of reading may be.
    Always,
}

impl Sharing {
    /// How old a reading may be that may be `max` old where readings are shared.
    pub fn age(self, max: Duration) -> Duration {
        match self {
            Sharing::Never => Duration::ZERO,
            Sharing::Always => max,
        }
    }
}

impl<K: Eq + Hash, T> Recent<K, T> {
    pub const fn new() -> Recent<K, T> {
        Recent(Mutex::new(None))
    }

    /// Returns a reading of at most `age` ago, or the result of `read` now. Others that ask meanwhile wait
    /// for it.
    pub fn get(&self, key: K, age: Duration, read: impl FnOnce() -> T) -> Arc<T> {
        if age.is_zero() {
            return Arc::new(read());
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        match all.get(&key) {
            Some((at, known)) if at.elapsed() < age => known.clone(),
            _ => {
                all.retain(|_, (at, _)| at.elapsed() < KEPT_FOR);
                let (at, new) = (Instant::now(), Arc::new(read()));
                all.insert(key, (at, new.clone()));
                new
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_shared_as_long_as_it_is_young_enough() {
        static READINGS: Recent<u8, u32> = Recent::new();
        let hour = Duration::from_secs(3600);
        let first = READINGS.get(1, hour, || 7);
        assert!(Arc::ptr_eq(&first, &READINGS.get(1, hour, || 8)));
        assert_eq!(*READINGS.get(2, hour, || 9), 9);
        assert_eq!(*READINGS.get(1, Duration::ZERO, || 10), 10);
        assert_eq!(*READINGS.get(1, Duration::from_nanos(1), || 11), 11);
    }
}
