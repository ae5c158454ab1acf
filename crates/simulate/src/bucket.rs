use crate::model::{Limit, Metered};

/// A token bucket in virtual time. Who asks takes its tokens at once, and may have to wait until they are there:
/// a debt that the next one waits behind.
#[derive(Clone, Debug)]
pub struct Bucket {
    of: Metered,
    per_ns: f64,
    burst: f64,
    refill_ns: u64,
    tokens: f64,
    /// Until when tokens were added.
    at_ns: u64,
}

impl Bucket {
    pub fn new(limit: &Limit) -> Bucket {
        let per_ns = limit.per_second / 1e9;
        // What comes at once must have room.
        let burst = limit.burst.max(per_ns * limit.refill_ns as f64);
        Bucket { of: limit.of, per_ns, burst, refill_ns: limit.refill_ns, tokens: burst, at_ns: 0 }
    }

    /// When an I/O that asks at `now_ns` may go on.
    #[inline]
    pub fn take(&mut self, now_ns: u64, write: bool, bytes: u64) -> u64 {
        let tokens = self.of.tokens(write, bytes);
        if tokens == 0.0 {
            return now_ns;
        }
        let until_ns = now_ns.checked_div(self.refill_ns).map_or(now_ns, |steps| steps * self.refill_ns);
        if until_ns > self.at_ns {
            self.tokens = (self.tokens + (until_ns - self.at_ns) as f64 * self.per_ns).min(self.burst);
            self.at_ns = until_ns;
        }
        self.tokens -= tokens;
        // Sums of fractions may miss a whole token by a hair.
        if self.tokens >= -1e-6 {
            return now_ns;
        }
        let wait_ns = -self.tokens / self.per_ns;
        let there_ns = match self.refill_ns {
            0 => self.at_ns + wait_ns.ceil() as u64,
            every => self.at_ns + ((wait_ns / every as f64 - 1e-9).ceil() as u64) * every,
        };
        there_ns.max(now_ns)
    }
}

/// When an I/O may go on by all of them.
#[inline]
pub fn take_all(buckets: &mut [Bucket], now_ns: u64, write: bool, bytes: u64) -> u64 {
    buckets.iter_mut().fold(now_ns, |latest, bucket| latest.max(bucket.take(now_ns, write, bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn limit(per_second: f64, burst: f64, refill_ns: u64) -> Limit {
        Limit { of: Metered::Ios, per_second, burst, refill_ns }
    }

    #[test]
    fn a_burst_goes_through_and_then_the_rate_holds() {
        let mut bucket = Bucket::new(&limit(100.0, 1_000.0, 0));
        let granted: Vec<u64> = (0..1_500).map(|_| bucket.take(0, false, 4096)).collect();
        assert!(granted[..1_000].iter().all(|at| *at == 0));
        assert_eq!((granted[1_000], granted[1_099], granted[1_499]), (S / 100, S, 5 * S));
        // Five seconds later the debt is paid; an hour later it is full again, and no fuller than that.
        assert_eq!(bucket.take(5 * S, false, 1), 5 * S + S / 100);
        let much_later = (0..1_001).map(|_| bucket.take(3600 * S, false, 1)).collect::<Vec<u64>>();
        assert_eq!((much_later[999], much_later[1_000]), (3600 * S, 3600 * S + S / 100));
    }

    #[test]
    fn tokens_that_come_in_steps_are_waited_for_till_the_step() {
        let mut bucket = Bucket::new(&limit(800.0, 0.0, S / 10));
        let granted: Vec<u64> = (0..200).map(|_| bucket.take(0, false, 1)).collect();
        assert!(granted[..80].iter().all(|at| *at == 0), "a step's tokens are there at once");
        assert!(granted[80..160].iter().all(|at| *at == S / 10));
        assert!(granted[160..].iter().all(|at| *at == S / 5));
    }

    #[test]
    fn bytes_are_metered_by_the_byte_and_the_other_direction_is_not() {
        let mut bucket = Bucket::new(&Limit { of: Metered::ReadBytes, ..limit(1e6, 0.0, 0) });
        assert_eq!(bucket.take(0, false, 1_000_000), S);
        assert_eq!(bucket.take(0, true, 1_000_000), 0);
        assert_eq!(bucket.take(0, false, 500_000), S * 3 / 2);
    }

    proptest! {
        #[test]
        fn no_more_goes_through_than_rate_and_burst_allow(
            gaps in prop::collection::vec(0_u64..20_000_000, 1..300),
            per_second in 10.0_f64..10_000.0,
            burst in 0.0_f64..50.0,
            refill_ns in prop::sample::select(vec![0, 20_000_000_u64, 100_000_000]),
        ) {
            let mut bucket = Bucket::new(&limit(per_second, burst, refill_ns));
            let (mut now, mut last) = (0, 0);
            let mut count = 0.0;
            for gap in gaps {
                now += gap;
                let granted = bucket.take(now, false, 1);
                prop_assert!(granted >= now && granted >= last, "in their order");
                last = granted;
                count += 1.0;
                let step = per_second * refill_ns as f64 / 1e9;
                let most = burst.max(step) + per_second * granted as f64 / 1e9;
                prop_assert!(count <= most + step + 1e-3, "{count} by {granted}, at most {most}");
            }
        }
    }
}
