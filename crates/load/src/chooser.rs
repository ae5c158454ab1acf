use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use workload::{Pattern, Workload};

/// Chooses the next I/O of one thread: where, and whether it writes. The same seed and thread choose the
/// same sequence.
#[derive(Clone, Debug)]
pub struct Chooser {
    random: Xoshiro256PlusPlus,
    pattern: Pattern,
    block_bytes: u64,
    /// First byte of the region.
    base: u64,
    /// Blocks of the region; at least one.
    blocks: u64,
    /// Next block of a sequential walk, and the part of the region that this thread walks.
    next: u64,
    part: std::ops::Range<u64>,
    /// A write if the top 32 bits of a random word lie below: 0 never, 2^32 always.
    write_below: u64,
}

impl Chooser {
    /// The chooser of thread `at`; `blocks` must not be 0.
    pub fn new(workload: &Workload, base: u64, blocks: u64, at: u32) -> Chooser {
        assert!(blocks > 0, "a region holds at least one block");
        let threads = u64::from(workload.threads);
        // With more threads than blocks some share a block; each part holds at least one.
        let start = (blocks * u64::from(at) / threads).min(blocks - 1);
        let end = (blocks * (u64::from(at) + 1) / threads).clamp(start + 1, blocks);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(workload.seed);
        (0..at).for_each(|_| random.jump());
        Chooser {
            random,
            pattern: workload.shape.pattern,
            block_bytes: u64::from(workload.shape.block_bytes),
            base,
            blocks,
            next: start,
            part: start..end,
            write_below: (1 << 32) * u64::from(workload.shape.write_percent) / 100,
        }
    }

    /// Offset of the next I/O and whether it is a write.
    #[inline]
    pub fn choose(&mut self) -> (u64, bool) {
        let write = match self.write_below {
            0 => false,
            0x1_0000_0000 => true,
            below => (self.random.next_u64() >> 32) < below,
        };
        let block = match self.pattern {
            // Multiply and shift (Lemire 2019): uniform to 2^-64 x blocks, no division.
            Pattern::Random => ((u128::from(self.random.next_u64()) * u128::from(self.blocks)) >> 64) as u64,
            Pattern::Sequential => {
                let block = self.next;
                self.next = if block + 1 == self.part.end { self.part.start } else { block + 1 };
                block
            }
        };
        (self.base + block * self.block_bytes, write)
    }

    /// A random word, for what is written.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.random.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::Shape;

    fn workload(shape: Shape, threads: u32) -> Workload {
        Workload { threads, seed: 7, ..Workload::from(shape) }
    }

    #[test]
    fn the_same_seed_asks_the_same_and_threads_differ() {
        let asked = workload(Shape::random_read(4096).with_writes(30), 2);
        let take = |at| {
            let mut chooser = Chooser::new(&asked, 0, 1000, at);
            (0..50).map(|_| chooser.choose()).collect::<Vec<_>>()
        };
        assert_eq!(take(0), take(0));
        assert_ne!(take(0), take(1));
    }

    #[test]
    fn random_offsets_cover_the_region_evenly_and_stay_inside() {
        let mut chooser = Chooser::new(&workload(Shape::random_read(512), 1), 4096, 16, 0);
        let mut hits = [0_u32; 16];
        for _ in 0..16_000 {
            let (offset, write) = chooser.choose();
            assert!(!write);
            hits[((offset - 4096) / 512) as usize] += 1;
        }
        assert!(hits.iter().all(|count| (850..1150).contains(count)), "{hits:?}");
    }

    #[test]
    fn the_write_share_is_a_coin() {
        let share = |percent| {
            let asked = workload(Shape::random_read(512).with_writes(percent), 1);
            let mut chooser = Chooser::new(&asked, 0, 16, 0);
            (0..20_000).filter(|_| chooser.choose().1).count()
        };
        assert_eq!((share(0), share(100)), (0, 20_000));
        assert!((5_700..6_300).contains(&share(30)), "{}", share(30));
    }

    #[test]
    fn sequential_threads_walk_their_own_parts_and_wrap() {
        let asked = workload(Shape::sequential_read(512), 2);
        let walk = |at| {
            let mut chooser = Chooser::new(&asked, 0, 4, at);
            (0..3).map(|_| chooser.choose().0 / 512).collect::<Vec<_>>()
        };
        assert_eq!((walk(0), walk(1)), (vec![0, 1, 0], vec![2, 3, 2]));
    }

    #[test]
    fn more_threads_than_blocks_still_have_a_block_each() {
        for at in 0..5 {
            let (offset, _) = Chooser::new(&workload(Shape::sequential_read(512), 5), 0, 2, at).choose();
            assert!(offset < 1024);
        }
    }
}
