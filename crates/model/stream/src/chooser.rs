use crate::random::{Random, below, seeded, word32};
use crate::skew::Skew;
use rand_xoshiro::rand_core::RngCore;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use workload::{Pattern, SizeShare, Walk, Workload};

/// Offset, size and direction of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Of its first byte, from the beginning of the target.
    pub offset: u64,
    /// Its size.
    pub bytes: u32,
    /// Whether it is a write.
    pub write: bool,
}

/// Index of a thread among a workload's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadIndex {
    /// From 0.
    pub index: u32,
    /// Threads of the workload.
    pub count: u32,
}

impl ThreadIndex {
    /// The only thread.
    pub const ONLY: ThreadIndex = ThreadIndex { index: 0, count: 1 };
}

/// Chooses the I/Os of one thread. A seed and a thread determine the sequence.
#[derive(Clone, Debug)]
pub struct Chooser {
    /// Index of this thread among the workload's.
    pub thread: ThreadIndex,
    /// Source of every random choice of the thread, in the order of its I/Os.
    pub random: Random,
    order: Order,
    sizes: Sizes,
    /// First byte and size of the part that is used.
    base: u64,
    span: u64,
    /// Random offsets are `base` plus a multiple below `places` of `align`.
    align: u64,
    places: u64,
    skew: Skew,
    write_below: u64,
}

#[derive(Clone, Debug)]
enum Order {
    Random,
    Walk(Steps),
    /// One offset for all threads, in steps of the stride.
    Shared {
        next: Arc<AtomicU64>,
        stride: u64,
        steps: u64,
    },
    /// A walk for each outstanding I/O, all from the same start.
    Together(Vec<Steps>),
    /// With a probability to a random place, otherwise behind the last I/O; a run keeps its direction, `write`.
    Runs {
        random_below: u64,
        walk: Steps,
        write: bool,
    },
}

/// A sequential walk relative to the base: from `next` in steps of `stride` (0: of the I/O's size), from `end` back to
/// `start`.
#[derive(Clone, Copy, Debug)]
struct Steps {
    start: u64,
    end: u64,
    next: u64,
    stride: u64,
}

#[derive(Clone, Debug)]
enum Sizes {
    One(u32),
    /// (bound, size): the first size of which 32 random bits are below the bound.
    Mix(Vec<(u64, u32)>),
}

const WHOLE: u64 = 1 << 32;

impl Steps {
    #[inline]
    fn step(&mut self, bytes: u32) -> u64 {
        if self.next.saturating_add(u64::from(bytes)) > self.end {
            self.next = self.start;
        }
        let place = self.next;
        self.next = self.next.saturating_add(if self.stride == 0 { u64::from(bytes) } else { self.stride });
        place
    }
}

impl Chooser {
    /// The chooser of a thread on the bytes of `region`. `shared` is the offset that the threads of a shared walk have
    /// in common.
    ///
    /// # Panics
    /// If the part that is used does not hold one I/O, which the caller checks.
    pub fn new(
        workload: &Workload,
        region: Range<u64>,
        thread: ThreadIndex,
        shared: &Arc<AtomicU64>,
    ) -> Chooser {
        let (access, shape) = (&workload.access, &workload.shape);
        let block = u64::from(shape.block_bytes);
        let (base, span) = used_range(workload, region.start, region.end - region.start);
        assert!(span >= block, "a region holds at least one block");
        let align = access.align_bytes.unwrap_or(block);
        let places = (span - block) / align + 1;
        let mut random = seeded(workload.seed);
        (0..thread.index).for_each(|_| random.jump());
        // With one size and no stride, steps are blocks; parts then begin at whole blocks.
        let stride = access.stride_bytes.unwrap_or(if workload.sizes.is_empty() { block } else { 0 });
        let walk = |start: u64, end: u64| Steps { start, end, next: start, stride };
        let order = match (shape.pattern, access.random_percent) {
            (_, Some(100)) | (Pattern::Random, None) => Order::Random,
            (_, Some(percent)) if percent > 0 => Order::Runs {
                random_below: WHOLE * u64::from(percent) / 100,
                // The first I/O goes to a random place.
                walk: Steps { next: span, ..walk(0, span) },
                write: false,
            },
            _ if access.same_offset => Order::Together(vec![walk(0, span); workload.outstanding as usize]),
            _ => match access.walk {
                Walk::OwnParts => {
                    let (start, end) = part(span / block, thread);
                    Order::Walk(walk(start * block, end * block))
                }
                Walk::Apart(apart) => {
                    let start = u64::from(thread.index).saturating_mul(apart) % (places * align);
                    let start = if start + block > span { 0 } else { start };
                    Order::Walk(Steps { start: start % stride.max(1), next: start, ..walk(0, span) })
                }
                Walk::Shared => {
                    let stride = if stride == 0 { block } else { stride };
                    Order::Shared { next: shared.clone(), stride, steps: (span - block) / stride + 1 }
                }
            },
        };
        Chooser {
            thread,
            random,
            order,
            sizes: Sizes::new(shape.block_bytes, &workload.sizes),
            base,
            span,
            align,
            places,
            skew: Skew::new(&access.distribution, places, align),
            write_below: WHOLE * u64::from(shape.write_percent) / 100,
        }
    }

    /// Chooses the next I/O, of slot `slot` of the thread.
    #[inline]
    pub fn choose(&mut self, slot: u32) -> Choice {
        let bytes = match &self.sizes {
            Sizes::One(bytes) => *bytes,
            Sizes::Mix(shares) => {
                let word = word32(&mut self.random);
                let found = shares.iter().find(|(below, _)| word < *below);
                found.or(shares.last()).map_or(0, |(_, bytes)| *bytes)
            }
        };
        if let Order::Runs { .. } = self.order {
            return self.choose_in_runs(bytes);
        }
        let write = self.choose_direction();
        let place = match &mut self.order {
            Order::Random | Order::Runs { .. } => self.skew.place(&mut self.random, self.places) * self.align,
            Order::Walk(walk) => walk.step(bytes),
            Order::Shared { next, stride, steps } => next.fetch_add(1, Relaxed) % *steps * *stride,
            // Slots of a stream are consecutive, but need not begin at 0.
            Order::Together(walks) => {
                let at = slot as usize % walks.len();
                walks[at].step(bytes)
            }
        };
        Choice { offset: self.base + place, bytes, write }
    }

    fn choose_in_runs(&mut self, bytes: u32) -> Choice {
        let jump = word32(&mut self.random);
        let write_next = self.choose_direction();
        let place = self.skew.place(&mut self.random, self.places) * self.align;
        let Order::Runs { random_below, walk, write } = &mut self.order else {
            unreachable!("called for runs only")
        };
        if jump < *random_below || walk.next >= self.span {
            (walk.next, *write) = (place, write_next);
        }
        Choice { offset: self.base + walk.step(bytes), bytes, write: *write }
    }

    #[inline]
    fn choose_direction(&mut self) -> bool {
        match self.write_below {
            0 => false,
            WHOLE => true,
            below => word32(&mut self.random) < below,
        }
    }

    /// A random word, for the content of writes.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// A random number below `places`.
    #[inline]
    pub fn below(&mut self, places: u64) -> u64 {
        below(&mut self.random, places)
    }
}

/// Chooses an index at random, in proportion to the weights.
pub fn choose_weighted(weights: &[u32], chooser: &mut Chooser) -> usize {
    let mut point = chooser.below(weights.iter().map(|weight| u64::from(*weight)).sum());
    let hit = |weight: &u32| match point.checked_sub(u64::from(*weight)) {
        None => true,
        Some(rest) => {
            point = rest;
            false
        }
    };
    weights.iter().position(hit).unwrap_or(0)
}

/// First byte and size of the part of a region that a workload uses.
pub fn used_range(workload: &Workload, offset: u64, bytes: u64) -> (u64, u64) {
    let base = workload.access.base_bytes.min(bytes);
    let span = workload.access.length_bytes.unwrap_or(u64::MAX).min(bytes - base);
    (offset + base, span)
}

/// First and last block of a thread's part. With more threads than blocks some share a block.
fn part(blocks: u64, thread: ThreadIndex) -> (u64, u64) {
    let cut = |index: u32| (u128::from(blocks) * u128::from(index) / u128::from(thread.count)) as u64;
    let start = cut(thread.index).min(blocks - 1);
    (start, cut(thread.index + 1).clamp(start + 1, blocks))
}

impl Sizes {
    fn new(block_bytes: u32, shares: &[SizeShare]) -> Sizes {
        if shares.is_empty() {
            return Sizes::One(block_bytes);
        }
        let mut percent = 0;
        let cumulated = shares.iter().map(|share| {
            percent += u64::from(share.percent);
            (WHOLE * percent / 100, share.block_bytes)
        });
        Sizes::Mix(cumulated.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{Access, Shape};

    fn choices(workload: &Workload, bytes: u64, index: u32, threads: u32, count: usize) -> Vec<Choice> {
        let thread = ThreadIndex { index, count: threads };
        let mut chooser = Chooser::new(workload, 0..bytes, thread, &Arc::default());
        (0..count).map(|io| chooser.choose(io as u32 % workload.outstanding)).collect()
    }

    fn blocks(workload: &Workload, bytes: u64, at: u32, threads: u32, count: usize) -> Vec<u64> {
        let block = u64::from(workload.shape.block_bytes);
        choices(workload, bytes, at, threads, count).iter().map(|choice| choice.offset / block).collect()
    }

    fn with(shape: Shape, access: Access) -> Workload {
        Workload { access, seed: 7, ..shape.into() }
    }

    #[test]
    fn the_same_seed_chooses_the_same_and_threads_differ() {
        let workload = with(Shape::random_read(4096).with_writes(30), Access::default());
        let take = |at| choices(&workload, 4_096_000, at, 2, 50);
        assert_eq!(take(0), take(0));
        assert_ne!(take(0), take(1));
    }

    #[test]
    fn random_offsets_cover_the_used_part_evenly_and_stay_inside() {
        let access = Access { base_bytes: 4096, length_bytes: Some(8192), ..Access::default() };
        let workload = with(Shape::random_read(512), access);
        let mut hits = [0_u32; 16];
        for choice in choices(&workload, 1 << 20, 0, 1, 16_000) {
            assert!(!choice.write);
            hits[((choice.offset - 4096) / 512) as usize] += 1;
        }
        assert!(hits.iter().all(|count| (850..1150).contains(count)), "{hits:?}");
    }

    #[test]
    fn an_alignment_finer_than_the_block_lets_blocks_overlap_but_not_leave_the_target() {
        let access = Access { align_bytes: Some(512), ..Access::default() };
        let found = choices(&with(Shape::random_read(4096), access), 8192, 0, 1, 2_000);
        let mut offsets: Vec<u64> = found.iter().map(|choice| choice.offset).collect();
        offsets.sort_unstable();
        offsets.dedup();
        assert_eq!(offsets, (0..=8).map(|step| step * 512).collect::<Vec<u64>>());
    }

    #[test]
    fn writes_have_their_share_at_random() {
        let share = |percent| {
            let workload = with(Shape::random_read(512).with_writes(percent), Access::default());
            choices(&workload, 8192, 0, 1, 20_000).iter().filter(|choice| choice.write).count()
        };
        assert_eq!((share(0), share(100)), (0, 20_000));
        assert!((5_700..6_300).contains(&share(30)), "{}", share(30));
    }

    #[test]
    fn sequential_threads_walk_their_own_parts_and_wrap() {
        let workload = with(Shape::sequential_read(512), Access::default());
        assert_eq!(blocks(&workload, 2048, 0, 2, 3), [0, 1, 0]);
        assert_eq!(blocks(&workload, 2048, 1, 2, 3), [2, 3, 2]);
        for at in 0..5 {
            assert!(blocks(&workload, 1024, at, 5, 1)[0] < 2, "more threads than blocks have a block each");
        }
    }

    #[test]
    fn threads_at_a_distance_walk_to_the_end_and_then_from_the_beginning() {
        let access = Access { walk: Walk::Apart(1024), ..Access::default() };
        let workload = with(Shape::sequential_read(512), access);
        assert_eq!(blocks(&workload, 2560, 0, 2, 6), [0, 1, 2, 3, 4, 0]);
        assert_eq!(blocks(&workload, 2560, 1, 2, 4), [2, 3, 4, 0]);
        let same = with(Shape::sequential_read(512), Access { walk: Walk::Apart(0), ..Access::default() });
        assert_eq!(blocks(&same, 2560, 1, 2, 2), [0, 1], "0 apart: all over the same blocks");
    }

    #[test]
    fn a_shared_walk_gives_each_block_to_one_thread() {
        let access = Access { walk: Walk::Shared, ..Access::default() };
        let workload = with(Shape::sequential_read(512), access);
        let shared = Arc::default();
        let mut threads: Vec<Chooser> = (0..2)
            .map(|index| Chooser::new(&workload, 0..2048, ThreadIndex { index, count: 2 }, &shared))
            .collect();
        let walked: Vec<u64> = [0, 1, 1, 0, 1].iter().map(|at| threads[*at].choose(0).offset / 512).collect();
        assert_eq!(walked, [0, 1, 2, 3, 0]);
    }

    #[test]
    fn a_stride_leaves_gaps_and_outstanding_ios_may_go_together() {
        let access = Access { stride_bytes: Some(1536), ..Access::default() };
        assert_eq!(blocks(&with(Shape::sequential_read(512), access), 4096, 0, 1, 4), [0, 3, 6, 0]);
        let access = Access { same_offset: true, ..Access::default() };
        let workload = Workload { outstanding: 2, ..with(Shape::sequential_read(512), access) };
        assert_eq!(blocks(&workload, 4096, 0, 1, 6), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn outstanding_ios_go_together_also_if_slots_do_not_begin_at_0() {
        let access = Access { same_offset: true, ..Access::default() };
        let workload = Workload { outstanding: 2, ..with(Shape::sequential_read(512), access) };
        let mut chooser = Chooser::new(&workload, 0..4096, ThreadIndex::ONLY, &Arc::default());
        let walked: Vec<u64> = [6, 7, 6, 7].iter().map(|slot| chooser.choose(*slot).offset / 512).collect();
        assert_eq!(walked, [0, 0, 1, 1]);
    }

    #[test]
    fn runs_have_the_length_that_their_share_gives_and_one_direction() {
        let access = Access { random_percent: Some(20), ..Access::default() };
        let workload = with(Shape::sequential_read(512).with_writes(50), access);
        let found = choices(&workload, 512 << 20, 0, 1, 50_000);
        let follows = |pair: &&[Choice]| pair[1].offset == pair[0].offset + 512;
        let sequential = found.windows(2).filter(follows).count();
        assert!((39_300..40_700).contains(&sequential), "{sequential}");
        assert!(found.windows(2).filter(follows).all(|pair| pair[0].write == pair[1].write));
        let writes = found.iter().filter(|choice| choice.write).count();
        assert!((23_500..26_500).contains(&writes), "{writes}");
    }

    #[test]
    fn sizes_come_in_their_shares_and_a_walk_follows_them() {
        let sizes =
            vec![SizeShare { block_bytes: 512, percent: 25 }, SizeShare { block_bytes: 4096, percent: 75 }];
        let workload = Workload { sizes, ..with(Shape::sequential_read(4096), Access::default()) };
        let found = choices(&workload, 1 << 30, 0, 1, 20_000);
        let small = found.iter().filter(|choice| choice.bytes == 512).count();
        assert!((4_700..5_300).contains(&small), "{small}");
        assert!(found.windows(2).all(|pair| pair[1].offset == pair[0].offset + u64::from(pair[0].bytes)));
    }
}
