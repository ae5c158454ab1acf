use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// Random numbers and bytes: the same seed gives the same sequence.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// A generator with that seed.
    pub fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number below `end`; 0 where `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The upper half of the product: even to within end / 2^64, without a division (Lemire 2019).
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// `length` bytes that no storage can compress or deduplicate.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.fill(&mut bytes);
        bytes
    }

    /// Fills `bytes` with bytes that no storage can compress or deduplicate.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// Hexadecimal text of 16 characters for each of `words`.
    pub fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| format!("{:016x}", self.0.next_u64())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_sequence_again() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (random.below(1 << 40), random.bytes(16), random.text(2))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn every_number_below_the_end_comes_up_and_no_other() {
        let mut random = Random::new(7);
        let mut seen = [0; 10];
        (0..10_000).for_each(|_| seen[random.below(10) as usize] += 1);
        assert!(seen.iter().all(|count| (850..1_150).contains(count)), "{seen:?}");
    }
}
