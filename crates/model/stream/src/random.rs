//! Random numbers of load and of its simulation. All follow from a seed, so that a run can be repeated.

pub use rand_xoshiro::Xoshiro256PlusPlus as Random;
pub use rand_xoshiro::rand_core::RngCore;
use rand_xoshiro::rand_core::SeedableRng;

/// A generator with the given seed.
pub fn seeded(seed: u64) -> Random {
    Random::seed_from_u64(seed)
}

/// Uniform below `bound`: multiply and shift (Lemire 2019), uniform to 2^-64 x `bound`, no division.
#[inline]
pub fn below(random: &mut Random, bound: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// The upper 32 bits of a random word, to be compared with a probability times 2^32.
#[inline]
pub fn word32(random: &mut Random) -> u64 {
    random.next_u64() >> 32
}

/// Uniform in 0..1, in steps of 2^-53.
#[inline]
pub fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A standard exponential number. The half step keeps the argument of the logarithm above 0.
pub fn exponential(random: &mut Random) -> f64 {
    let uniform = ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -uniform.ln()
}

/// A sequence of words that follows from its seed (SplitMix64, Steele et al. 2014): a few
/// instructions a word.
#[derive(Clone, Copy, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next word.
    #[inline]
    pub fn next_word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_numbers_have_mean_and_variance_1() {
        let mut random = seeded(7);
        let drawn: Vec<f64> = (0..100_000).map(|_| exponential(&mut random)).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        let variance = drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.04, "{mean} {variance}");
    }

    #[test]
    fn split_mix_gives_the_published_sequence() {
        let mut words = SplitMix64(1_234_567);
        assert_eq!(words.next_word(), 6_457_827_717_110_365_317);
        assert_eq!(words.next_word(), 3_203_168_211_198_807_973);
    }
}
