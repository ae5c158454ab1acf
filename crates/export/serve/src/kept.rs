//! Results that are given again for a while, with a bound in bytes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Results that are kept, at most, also where they are short: each search reads their keys.
const KEPT_MAX: usize = 256;

/// The size of a result.
pub(crate) trait Weight {
    /// Its bytes; `None` where it must not be given again.
    fn bytes(&self) -> Option<usize>;
}

/// The newest results.
pub(crate) struct Kept<V> {
    bytes_max: usize,
    bytes: usize,
    /// The oldest first.
    results: VecDeque<One<V>>,
}

struct One<V> {
    key: String,
    until: Instant,
    bytes: usize,
    result: V,
}

impl<V: Clone + Weight> Kept<V> {
    pub fn new(bytes_max: usize) -> Kept<V> {
        Kept { bytes_max, bytes: 0, results: VecDeque::new() }
    }

    pub fn get(&self, key: &str, now: Instant) -> Option<V> {
        let found = self.results.iter().find(|one| one.key == key && now < one.until);
        found.map(|one| one.result.clone())
    }

    /// Keeps a result for a time; the oldest ones give way. One that is larger than the bound is not kept.
    pub fn insert(&mut self, key: &str, result: &V, now: Instant, kept_for: Duration) {
        self.remove(|one| one.until <= now || one.key == key);
        let Some(bytes) = result.bytes().map(|bytes| bytes + key.len()) else { return };
        if kept_for.is_zero() || bytes > self.bytes_max {
            return;
        }
        self.bytes += bytes;
        self.results.push_back(One {
            key: key.to_owned(),
            until: now + kept_for,
            bytes,
            result: result.clone(),
        });
        while self.bytes > self.bytes_max || self.results.len() > KEPT_MAX {
            let Some(oldest) = self.results.pop_front() else { return };
            self.bytes -= oldest.bytes;
        }
    }

    fn remove(&mut self, is_removed: impl Fn(&One<V>) -> bool) {
        self.results.retain(|one| !is_removed(one));
        self.bytes = self.results.iter().map(|one| one.bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Bytes;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn results_are_kept_for_their_time_and_within_their_bytes() {
        let now = Instant::now();
        let mut kept = Kept::new(100);
        let result = |length: usize| Bytes::from(vec![b'x'; length]);
        kept.insert("a", &result(40), now, SECOND);
        kept.insert("b", &result(40), now, 2 * SECOND);
        kept.insert("none", &result(1), now, Duration::ZERO);
        kept.insert("large", &result(100), now, SECOND);
        assert!(kept.get("a", now).is_some() && kept.get("b", now).is_some());
        assert!(kept.get("none", now).is_none() && kept.get("large", now).is_none());
        assert!(kept.get("a", now + SECOND).is_none() && kept.get("b", now + SECOND).is_some());
        // The oldest gives way.
        kept.insert("c", &result(40), now, SECOND);
        assert!(kept.get("a", now).is_none() && kept.get("b", now).is_some() && kept.get("c", now).is_some());
        // Those whose time is over leave their bytes.
        kept.insert("d", &result(90), now + 2 * SECOND, SECOND);
        assert_eq!((kept.bytes, kept.results.len()), (91, 1));
        for number in 0..2 * KEPT_MAX {
            kept.insert(&number.to_string(), &result(0), now + 4 * SECOND, SECOND);
        }
        assert!(kept.results.len() <= KEPT_MAX && kept.bytes <= 100);
    }
}
