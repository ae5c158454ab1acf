use crate::model::{Limit, Metered};

/// A token bucket in virtual time. An I/O takes its tokens when it arrives, and waits until they have been added: a debt
/// that the next one waits behind.
///
/// Where tokens are added in steps, it is the kernel's throttle (block/blk-throttle.c): a slice of time begins with the
/// first I/O, with its tokens; while I/Os pass, the next slices add theirs, up to the tokens of two; a slice without an
/// I/O ends the sequence, and the tokens left are lost.
#[derive(Clone, Debug)]
pub struct Bucket {
    of: Metered,
    per_ns: f64,
    /// Most tokens at once.
    burst: f64,
    /// Most tokens that outlast a slice without I/Os.
    saved: f64,
    refill_ns: u64,
    tokens: f64,
    /// Time of the last addition of tokens.
    at_ns: u64,
    /// When the last I/O passes.
    last_ns: u64,
}

impl Bucket {
    pub fn new(limit: &Limit) -> Bucket {
        let per_ns = limit.per_second / 1e9;
        let step = per_ns * limit.refill_ns as f64;
        Bucket {
            of: limit.of,
            per_ns,
            burst: limit.burst.max(2.0 * step),
            saved: limit.burst,
            refill_ns: limit.refill_ns,
            tokens: limit.burst.max(step),
            at_ns: 0,
            last_ns: 0,
        }
    }

    /// When an I/O that arrives at `now_ns` passes.
    #[inline]
    pub fn take(&mut self, now_ns: u64, write: bool, bytes: u64) -> u64 {
        let tokens = self.of.tokens(write, bytes);
        if tokens == 0.0 {
            return now_ns;
        }
        self.refill(now_ns);
        self.tokens -= tokens;
        // Sums of fractions may miss a whole token by a rounding error.
        if self.tokens < -1e-6 {
            let wait_ns = -self.tokens / self.per_ns;
            let there_ns = match self.refill_ns {
                0 => self.at_ns + wait_ns.ceil() as u64,
                every => self.at_ns + ((wait_ns / every as f64 - 1e-9).ceil() as u64) * every,
            };
            self.last_ns = there_ns.max(now_ns);
        } else {
            self.last_ns = now_ns;
        }
        self.last_ns
    }

    /// Adds the tokens due by now.
    #[inline]
    fn refill(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.at_ns);
        let Some(slices) = elapsed_ns.checked_div(self.refill_ns) else {
            self.tokens = (self.tokens + elapsed_ns as f64 * self.per_ns).min(self.burst);
            self.at_ns = now_ns;
            return;
        };
        if now_ns > (self.last_ns + self.refill_ns).next_multiple_of(self.refill_ns) {
            let all = self.tokens + elapsed_ns as f64 * self.per_ns;
            self.tokens = all.min(self.saved).max(self.per_ns * self.refill_ns as f64);
            self.at_ns = now_ns;
        } else if slices > 0 {
            let added_ns = slices * self.refill_ns;
            self.tokens = (self.tokens + added_ns as f64 * self.per_ns).min(self.burst);
            self.at_ns += added_ns;
        }
    }
}

/// When an I/O passes all buckets.
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
    fn a_burst_passes_and_then_the_rate_holds() {
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
    fn an_io_waits_for_the_step_that_adds_its_tokens() {
        let mut bucket = Bucket::new(&limit(800.0, 0.0, S / 10));
        let granted: Vec<u64> = (0..200).map(|_| bucket.take(0, false, 1)).collect();
        assert!(granted[..80].iter().all(|at| *at == 0), "a step's tokens are there at once");
        assert!(granted[80..160].iter().all(|at| *at == S / 10));
        assert!(granted[160..].iter().all(|at| *at == S / 5));
    }

    #[test]
    fn a_slice_begins_with_the_first_io_and_one_without_any_ends_it() {
        let mut bucket = Bucket::new(&limit(800.0, 0.0, S / 10));
        let at = 47 * S / 100;
        let granted: Vec<u64> = (0..200).map(|_| bucket.take(at, false, 1)).collect();
        let count = |ns| granted.iter().filter(|granted| **granted == ns).count();
        assert_eq!([at, at + S / 10, at + S / 5].map(count), [80, 80, 40]);
        // A second later nothing was saved up.
        let later = (0..81).map(|_| bucket.take(2 * S, false, 1)).collect::<Vec<u64>>();
        assert_eq!((later[79], later[80]), (2 * S, 2 * S + S / 10));
        // One I/O in each slice keeps it alive: what those left is there, up to that of two slices.
        let mut bucket = Bucket::new(&limit(800.0, 0.0, S / 10));
        (0..10).for_each(|slice| assert_eq!(bucket.take(slice * S / 10, false, 1), slice * S / 10));
        let burst = (0..170).take_while(|_| bucket.take(S, false, 1) == S).count();
        assert_eq!(burst, 160);
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
                let most = burst.max(2.0 * step) + per_second * granted as f64 / 1e9;
                prop_assert!(count <= most + step + 1e-3, "{count} by {granted}, at most {most}");
            }
        }
    }
}
