//! Waiting for events that many threads wait for at once.

use rustix::thread::futex::{self, Flags};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// A count of events on which threads sleep until another happens: an *eventcount* on a futex. Waiters sleep in
/// classes, so that one call wakes all of a class while the others stay asleep.
///
/// A waiter checks its condition; if it does not hold, it takes `key`, checks again (or has held the lock under
/// which the condition changes throughout), and calls `wait`. The notifier changes the condition, then calls
/// `notify`.
#[derive(Default)]
pub(crate) struct EventCount {
    happened: AtomicU32,
}

/// A set of classes: bit n stands for the numbers that are n modulo 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classes(pub u32);

impl Classes {
    pub(crate) const ALL: Self = Self(u32::MAX);
    /// Numbers this far apart are in the same class.
    pub(crate) const COUNT: u64 = 32;

    pub(crate) fn from_numbers(numbers: impl IntoIterator<Item = u64>) -> Self {
        Self(numbers.into_iter().fold(0, |bits, number| bits | 1 << (number % Self::COUNT)))
    }
}

impl EventCount {
    /// The number of events so far.
    pub(crate) fn key(&self) -> u32 {
        self.happened.load(Ordering::Acquire)
    }

    /// Sleeps until the class of `number` is woken; returns at once if an event has happened since `key`. May wake
    /// up spuriously.
    pub(crate) fn wait(&self, key: u32, number: u64) {
        let class = NonZeroU32::new(Classes::from_numbers([number]).0).expect("a number has a bit");
        // The caller checks its condition again, whatever the reason.
        let _ = futex::wait_bitset(&self.happened, Flags::PRIVATE, key, None, class);
    }

    /// Records an event and wakes at most `at_most` threads of these classes, the longest sleepers first.
    pub(crate) fn notify(&self, classes: Classes, at_most: u32) {
        self.happened.fetch_add(1, Ordering::Release);
        if let Some(classes) = NonZeroU32::new(classes.0) {
            let woken =
                futex::wake_bitset(&self.happened, Flags::PRIVATE, at_most.min(i32::MAX as u32), classes);
            debug_assert!(woken.is_ok(), "{woken:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    /// Returns when this thread of the process sleeps.
    fn is_seen_asleep(thread: u32) {
        let stat = format!("/proc/self/task/{thread}/stat");
        while !std::fs::read_to_string(&stat).unwrap().rsplit_once(") ").unwrap().1.starts_with('S') {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Eight threads sleep, four in each of two classes; after each call those that have woken are counted.
    #[test]
    fn one_class_is_woken_and_the_other_sleeps_on() {
        let (events, awake) = (EventCount::default(), Mutex::new(Vec::new()));
        /// Wakes all threads, also when an assertion fails; otherwise the scope would wait for them forever.
        struct Wakes<'a>(&'a EventCount);
        impl Drop for Wakes<'_> {
            fn drop(&mut self) {
                self.0.notify(Classes::ALL, u32::MAX);
            }
        }
        std::thread::scope(|scope| {
            let _wakes = Wakes(&events);
            let key = events.key();
            for class in [3, 3, 3, 3, 36, 36, 36, 36] {
                let (events, awake, number) = (&events, &awake, Arc::new(AtomicU32::new(0)));
                let shared_number = Arc::clone(&number);
                scope.spawn(move || {
                    shared_number
                        .store(rustix::thread::gettid().as_raw_nonzero().get() as u32, Ordering::Release);
                    events.wait(key, class);
                    awake.lock().unwrap().push(class);
                });
                while number.load(Ordering::Acquire) == 0 {
                    std::thread::yield_now();
                }
                is_seen_asleep(number.load(Ordering::Acquire));
            }
            let seen_after = |classes, at_most, expected: usize| {
                events.notify(classes, at_most);
                let begun = Instant::now();
                while awake.lock().unwrap().len() < expected && begun.elapsed() < Duration::from_secs(60) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                // Threads that must not wake get the time to be seen doing so.
                std::thread::sleep(Duration::from_millis(50));
                let mut seen = awake.lock().unwrap().clone();
                seen.sort_unstable();
                seen
            };
            assert_eq!(seen_after(Classes::from_numbers([4]), 1, 1), [36], "36 is 4 modulo 32");
            assert_eq!(seen_after(Classes::from_numbers([3]), u32::MAX, 5), [3, 3, 3, 3, 36]);
            assert_eq!(seen_after(Classes::from_numbers([3]), u32::MAX, 5), [3, 3, 3, 3, 36]);
            assert_eq!(seen_after(Classes::ALL, u32::MAX, 8).len(), 8);
        });
    }

    #[test]
    fn a_wait_with_an_old_key_does_not_sleep() {
        let events = EventCount::default();
        let key = events.key();
        events.notify(Classes::from_numbers([1]), 1);
        events.wait(key, 2);
    }

    #[test]
    fn classes_are_numbers_modulo_32() {
        assert_eq!(Classes::from_numbers([0, 33, 64]), Classes(0b11));
        assert_eq!(Classes::from_numbers(0..32), Classes::ALL);
    }
}
