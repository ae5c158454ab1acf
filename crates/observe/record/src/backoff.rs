//! The wait before a failed source is tried again.

use std::time::Duration;

/// How long to wait before a source that failed is tried again: twice as long each time, up to a limit.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    failures: u32,
}

/// The longest wait: a server that was down all night is noticed within this time.
const LONGEST: Duration = Duration::from_secs(300);

impl Backoff {
    /// Waits `first` after the first failure.
    pub fn new(first: Duration) -> Backoff {
        Backoff { first, failures: 0 }
    }

    /// The wait after one more failure.
    pub fn failed(&mut self) -> Duration {
        let wait = self.first.saturating_mul(1 << self.failures.min(16)).min(LONGEST.max(self.first));
        self.failures += 1;
        wait
    }

    /// Resets the wait after a success.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_a_limit_and_restarts_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_secs(15));
        let waits: Vec<u64> = (0..7).map(|_| backoff.failed().as_secs()).collect();
        assert_eq!(waits, [15, 30, 60, 120, 240, 300, 300]);
        backoff.succeeded();
        assert_eq!(backoff.failed().as_secs(), 15);
        assert_eq!(
            Backoff::new(Duration::from_secs(900)).failed().as_secs(),
            900,
            "never more often than the interval"
        );
    }
}
