use serde::{Deserialize, Serialize};
use workload::LatencyHistogram;

/// Latencies in two groups with almost nothing between them: the sign of a token bucket, which lets I/Os
/// pass at full speed until the budget is spent and holds the others until the next refill.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Humps {
    /// Upper end of the fast group, nanoseconds.
    pub fast_ns: f64,
    /// Lower end of the slow group, nanoseconds.
    pub slow_ns: f64,
    /// Share of the I/Os in the slow group, 0 to 1.
    pub slow_share: f64,
}

/// A group has at least this share of all I/Os.
const GROUP_SHARE_MIN: f64 = 0.02;
/// The stretch between the groups has at most this share.
const GAP_SHARE_MAX: f64 = 0.002;
/// And the slow group begins at this many times the latency at which the fast one ends.
const GAP_RATIO_MIN: f64 = 3.0;

/// Finds two groups of latencies.
pub fn humps(latencies: &LatencyHistogram) -> Option<Humps> {
    let total = latencies.count() as f64;
    if total < 200.0 {
        return None;
    }
    let filled: Vec<(f64, f64)> = latencies.filled().map(|(ns, count)| (ns as f64, count as f64)).collect();
    let mut best: Option<Humps> = None;
    let mut fast = 0.0;
    for (at, (fast_ns, count)) in filled.iter().enumerate() {
        fast += count;
        if fast / total < GROUP_SHARE_MIN {
            continue;
        }
        let mut between = 0.0;
        for (slow_ns, more) in &filled[at + 1..] {
            let slow = total - fast - between;
            if slow / total < GROUP_SHARE_MIN || between / total > GAP_SHARE_MAX {
                break;
            }
            let ratio = slow_ns / fast_ns;
            if ratio >= GAP_RATIO_MIN && best.is_none_or(|gap| ratio > gap.slow_ns / gap.fast_ns) {
                best = Some(Humps { fast_ns: *fast_ns, slow_ns: *slow_ns, slow_share: slow / total });
            }
            between += more;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(groups: &[(u64, u64, u64)]) -> LatencyHistogram {
        let mut latencies = LatencyHistogram::new();
        for (from_ns, to_ns, count) in groups {
            for at in 0..*count {
                latencies.record(from_ns + (to_ns - from_ns) * at / count);
            }
        }
        latencies
    }

    #[test]
    fn a_token_bucket_shows_as_two_humps() {
        let found = humps(&histogram(&[(50_000, 150_000, 900), (90_000_000, 99_000_000, 100)])).unwrap();
        assert!((0.09..0.11).contains(&found.slow_share), "{found:?}");
        assert!(found.slow_ns / found.fast_ns > 500.0, "{found:?}");
    }

    #[test]
    fn one_broad_hump_with_a_thin_tail_is_none() {
        assert_eq!(humps(&histogram(&[(50_000, 900_000, 5_000), (5_000_000, 6_000_000, 20)])), None);
        assert_eq!(humps(&histogram(&[(50_000, 60_000, 10)])), None);
    }
}
