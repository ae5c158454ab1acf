//! The distribution of random I/Os over the places of a target.

use crate::random::{Random, below, unit, word32};
use rand_distr::{Distribution as _, Zipf};
use workload::{Distribution, Extent, Zone};

/// A distribution over places `0..places`.
#[derive(Clone, Debug)]
pub enum Skew {
    Uniform,
    Zipf { ranks: Zipf<f64>, scatter: Scatter },
    Pareto { exponent: f64, scatter: Scatter },
    Zones(Vec<Slab>),
}

/// A zone in places, chosen if 32 random bits are below `below` and not below that of the zone before.
#[derive(Clone, Copy, Debug)]
pub struct Slab {
    below: u64,
    first: u64,
    places: u64,
}

/// Maps ranks to places, one to one, so that popular places are not neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    step: u64,
    places: u64,
}

impl Skew {
    /// The distribution over `places` places of `place_bytes` each.
    pub fn new(distribution: &Distribution, places: u64, place_bytes: u64) -> Skew {
        let scatter = Scatter::new(places);
        match distribution {
            Distribution::Uniform => Skew::Uniform,
            Distribution::Zipf { theta } => match Zipf::new(places as f64, *theta) {
                Ok(ranks) => Skew::Zipf { ranks, scatter },
                // `Workload::validate` keeps theta in range, and there is at least one place.
                Err(_) => Skew::Uniform,
            },
            Distribution::Pareto { h } => Skew::Pareto { exponent: h.ln() / (1.0 - h).ln(), scatter },
            Distribution::Zones { zones } => Skew::Zones(slabs(zones, places, place_bytes)),
        }
    }

    /// Draws a place.
    #[inline]
    pub fn place(&self, random: &mut Random, places: u64) -> u64 {
        match self {
            Skew::Uniform => below(random, places),
            Skew::Zipf { ranks, scatter } => scatter.place(ranks.sample(random) as u64 - 1),
            Skew::Pareto { exponent, scatter } => {
                scatter.place((places as f64 * unit(random).powf(*exponent)) as u64)
            }
            Skew::Zones(slabs) => {
                let word = word32(random);
                let slab = slabs.iter().find(|slab| word < slab.below).or(slabs.last());
                slab.map_or(0, |slab| slab.first + below(random, slab.places))
            }
        }
    }
}

/// Zones without I/Os are holes; the share of I/Os that the zones leave goes to the rest of the target.
fn slabs(zones: &[Zone], places: u64, place_bytes: u64) -> Vec<Slab> {
    let mut slabs = Vec::new();
    let (mut percent, mut first, mut of_target) = (0_u64, 0_u64, 0_u64);
    let whole = 1_u64 << 32;
    for zone in zones {
        let end = match zone.extent {
            Extent::Percent(share) => {
                of_target += u64::from(share);
                (u128::from(places) * u128::from(of_target) / 100) as u64
            }
            Extent::Bytes(bytes) => first.saturating_add(bytes / place_bytes.max(1)),
        };
        let end = end.clamp(first, places);
        if zone.ios_percent > 0 && end > first {
            percent += u64::from(zone.ios_percent);
            slabs.push(Slab { below: whole * percent.min(100) / 100, first, places: end - first });
        }
        first = end;
    }
    if percent < 100 && first < places {
        slabs.push(Slab { below: whole, first, places: places - first });
    } else if let Some(last) = slabs.last().map(|slab| slab.below).filter(|last| *last > 0 && *last < whole) {
        // The target ends before the zones do: those that fit share all I/Os in proportion.
        slabs.iter_mut().for_each(|slab| {
            slab.below = (u128::from(slab.below) * u128::from(whole) / u128::from(last)) as u64;
        });
    }
    slabs
}

impl Scatter {
    /// Steps of about the golden section of all places put neighbours in rank far apart; a step that is coprime to
    /// the number of places visits each once.
    fn new(places: u64) -> Scatter {
        let mut step = ((places as f64 * 0.618_033_988_749_895) as u64).max(1);
        while common_factor(step, places) != 1 {
            step += 1;
        }
        Scatter { step, places }
    }

    #[inline]
    fn place(&self, rank: u64) -> u64 {
        (u128::from(rank.min(self.places - 1)) * u128::from(self.step) % u128::from(self.places)) as u64
    }
}

fn common_factor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::seeded;

    const DRAWS: usize = 200_000;

    fn shares(distribution: &Distribution, places: u64) -> Vec<f64> {
        let skew = Skew::new(distribution, places, 4096);
        let mut random = seeded(3);
        let mut hits = vec![0_u32; places as usize];
        (0..DRAWS).for_each(|_| hits[skew.place(&mut random, places) as usize] += 1);
        hits.iter().map(|count| f64::from(*count) / DRAWS as f64).collect()
    }

    fn sorted(mut shares: Vec<f64>) -> Vec<f64> {
        shares.sort_by(|a, b| b.total_cmp(a));
        shares
    }

    #[test]
    fn zipf_shares_fall_as_their_formula_says_and_are_scattered() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.2] {
            let found = sorted(shares(&Distribution::Zipf { theta }, 1000));
            let weight = |rank: f64| rank.powf(-theta);
            let all: f64 = (1..=1000).map(|rank| weight(f64::from(rank))).sum();
            for rank in [1, 2, 10] {
                let wanted = weight(f64::from(rank)) / all;
                let got = found[rank as usize - 1];
                assert!((got - wanted).abs() < 0.003, "theta {theta} rank {rank}: {got} for {wanted}");
            }
        }
        let found = shares(&Distribution::Zipf { theta: 1.2 }, 1000);
        let first = found.iter().position(|share| *share > 0.1).unwrap();
        let neighbour = found[(first + 1) % 1000];
        assert!(neighbour < 0.01, "the most popular places are not neighbours: {neighbour}");
    }

    #[test]
    fn pareto_is_the_80_20_rule() {
        let found = sorted(shares(&Distribution::Pareto { h: 0.2 }, 1000));
        let hot: f64 = found[..200].iter().sum();
        assert!((hot - 0.8).abs() < 0.01, "{hot}");
        let even = sorted(shares(&Distribution::Pareto { h: 0.5 }, 100));
        assert!(even[0] < 0.013, "{}", even[0]);
    }

    #[test]
    fn zones_and_the_rest_get_their_shares_and_a_hole_gets_none() {
        let zone = |ios_percent, extent| Zone { ios_percent, extent: Extent::Percent(extent) };
        let zones = vec![zone(60, 10), zone(0, 20), zone(10, 10)];
        let found = shares(&Distribution::Zones { zones }, 1000);
        let sum = |range: std::ops::Range<usize>| found[range].iter().sum::<f64>();
        assert!((sum(0..100) - 0.6).abs() < 0.01 && sum(100..300) == 0.0);
        assert!((sum(300..400) - 0.1).abs() < 0.01 && (sum(400..1000) - 0.3).abs() < 0.01);
    }

    #[test]
    fn zones_in_bytes_end_where_the_target_does() {
        let zone = |ios_percent, blocks: u64| Zone { ios_percent, extent: Extent::Bytes(blocks * 4096) };
        let found =
            shares(&Distribution::Zones { zones: vec![zone(30, 10), zone(10, 1000), zone(60, 10)] }, 100);
        let hot: f64 = found[..10].iter().sum();
        assert!((hot - 0.75).abs() < 0.01, "{hot}");
    }

    #[test]
    fn a_scatter_visits_every_place_once() {
        for places in [1, 2, 3, 10, 97, 1000, 4096] {
            let scatter = Scatter::new(places);
            let mut met: Vec<u64> = (0..places).map(|rank| scatter.place(rank)).collect();
            met.sort_unstable();
            assert_eq!(met, (0..places).collect::<Vec<_>>());
        }
    }
}
