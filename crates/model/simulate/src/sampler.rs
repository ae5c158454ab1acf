use crate::model::Time;
use rand_distr::{Distribution as _, Exp1, StandardNormal};
use stream::random::{Random, RngCore};

/// Draws random times from a [`Time`].
#[derive(Clone, Debug)]
pub enum Sampler {
    Fixed(u64),
    Exponential(f64),
    Lognormal { mu: f64, sigma: f64 },
    Alias(Vec<Range>),
}

/// A range of an empirical time, by the alias method (Walker 1977): each entry stands for two ranges.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// This range if a random 32 bit word is below, otherwise `other`.
    below: u64,
    other: u32,
    from_ns: u64,
    width_ns: u64,
}

impl Sampler {
    pub fn new(time: &Time) -> Sampler {
        match time {
            Time::Fixed { ns } => Sampler::Fixed(*ns),
            Time::Exponential { mean_ns } => Sampler::Exponential(*mean_ns),
            Time::Lognormal { median_ns, .. } if *median_ns <= 0.0 => Sampler::Fixed(0),
            Time::Lognormal { median_ns, sigma } => Sampler::Lognormal { mu: median_ns.ln(), sigma: *sigma },
            Time::Empirical { ranges } => alias(ranges),
        }
    }

    /// Draws a time, nanoseconds.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Sampler::Fixed(ns) => *ns,
            Sampler::Exponential(mean_ns) => {
                let unit: f64 = Exp1.sample(random);
                (unit * mean_ns) as u64
            }
            Sampler::Lognormal { mu, sigma } => {
                let normal: f64 = StandardNormal.sample(random);
                (mu + sigma * normal).exp() as u64
            }
            Sampler::Alias(ranges) => {
                let word = random.next_u64();
                let (high, low) = (word >> 32, word & 0xffff_ffff);
                let mut range = ranges[((high * ranges.len() as u64) >> 32) as usize];
                if low >= range.below {
                    range = ranges[range.other as usize];
                }
                let within = u128::from(random.next_u64()) * u128::from(range.width_ns);
                range.from_ns + (within >> 64) as u64
            }
        }
    }
}

fn alias(ranges: &[(u64, u64)]) -> Sampler {
    let all: f64 = ranges.iter().map(|(_, times)| *times as f64).sum();
    if all <= 0.0 {
        return Sampler::Fixed(0);
    }
    let count = ranges.len() as f64;
    let mut shares: Vec<f64> = ranges.iter().map(|(_, times)| *times as f64 / all * count).collect();
    let mut from_ns = 0;
    let mut table: Vec<Range> = Vec::with_capacity(ranges.len());
    for (at, (to, _)) in (0..).zip(ranges) {
        // The upper end is part of its range.
        table.push(Range { below: 1 << 32, other: at, from_ns, width_ns: to - from_ns + 1 });
        from_ns = *to;
    }
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..shares.len()).partition(|at| shares[*at] < 1.0);
    while let (Some(less), Some(more)) = (small.pop(), large.last().copied()) {
        table[less].below = (shares[less] * (1_u64 << 32) as f64) as u64;
        table[less].other = more as u32;
        shares[more] -= 1.0 - shares[less];
        if shares[more] < 1.0 {
            large.pop();
            small.push(more);
        }
    }
    Sampler::Alias(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::random::seeded;

    fn mean_and_deviation(time: &Time) -> (f64, f64) {
        let mut random = seeded(5);
        let sampler = Sampler::new(time);
        let drawn: Vec<f64> = (0..200_000).map(|_| sampler.draw(&mut random) as f64).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|ns| (ns - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn drawn_times_have_the_mean_and_the_spread_of_their_distribution() {
        let close =
            |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.02, "{found} for {wanted}");
        let (mean, deviation) = mean_and_deviation(&Time::Exponential { mean_ns: 1e6 });
        close(mean, 1e6);
        close(deviation, 1e6);
        let lognormal = Time::Lognormal { median_ns: 1e6, sigma: 0.5 };
        let (mean, deviation) = mean_and_deviation(&lognormal);
        close(mean, lognormal.mean_ns());
        close(deviation, lognormal.mean_ns() * (0.25_f64.exp() - 1.0).sqrt());
        let empirical = Time::Empirical { ranges: vec![(1_000, 0), (2_000, 70), (10_000, 0), (20_000, 30)] };
        let (mean, _) = mean_and_deviation(&empirical);
        close(mean, 0.7 * 1_500.0 + 0.3 * 15_000.0);
        close(mean, empirical.mean_ns());
    }

    #[test]
    fn an_empirical_time_lies_in_the_measured_ranges() {
        let sampler = Sampler::new(&Time::Empirical { ranges: vec![(100, 0), (110, 9), (500, 0), (510, 1)] });
        let mut random = seeded(1);
        let drawn: Vec<u64> = (0..50_000).map(|_| sampler.draw(&mut random)).collect();
        assert!(drawn.iter().all(|ns| (100..=110).contains(ns) || (500..=510).contains(ns)));
        let slow = drawn.iter().filter(|ns| **ns >= 500).count();
        assert!((4_700..5_300).contains(&slow), "{slow}");
    }
}
