use crate::{Matrix, Order};
use serde::{Deserialize, Serialize};
use stream::random::SplitMix64;
use workload::Pattern;

/// One combination of the values of the axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MatrixPoint"))]
pub struct Point {
    /// Index of the target among the matrix's.
    pub target: usize,
    /// Where the I/Os go.
    pub pattern: Pattern,
    /// Share of writes.
    pub write_percent: u8,
    /// Bytes of each I/O.
    pub block_bytes: u32,
    /// Threads.
    pub threads: u32,
    /// I/Os outstanding in each thread.
    pub outstanding: u32,
}

/// One run of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunKey {
    /// Index of the point, in the order of [`Matrix::points`].
    pub point: usize,
    /// Number of the repeat, from 0 on.
    pub repeat: u32,
}

impl Matrix {
    /// All points, as listed: targets outermost, outstanding I/Os innermost.
    pub fn points(&self) -> Vec<Point> {
        let axes = &self.axes;
        let mut points = Vec::new();
        for target in 0..self.targets.len() {
            for &pattern in &axes.pattern {
                for &write_percent in &axes.write_percent {
                    for block in &axes.block {
                        for &threads in &axes.threads {
                            points.extend(axes.outstanding.iter().map(|&outstanding| Point {
                                target,
                                pattern,
                                write_percent,
                                block_bytes: block.0,
                                threads,
                                outstanding,
                            }));
                        }
                    }
                }
            }
        }
        points
    }

    /// All runs in their order: pass after pass over the points.
    pub fn order(&self) -> Vec<RunKey> {
        let points = self.point_count() as usize;
        let pass = |repeat| {
            let mut keys: Vec<RunKey> = (0..points).map(|point| RunKey { point, repeat }).collect();
            if self.runs.order == Order::Random {
                shuffle(&mut keys, mix(self.runs.seed ^ mix(u64::from(repeat) + 1)));
            }
            keys
        };
        (0..self.runs.repeats).flat_map(pass).collect()
    }
}

impl Point {
    /// Independent of the target, so that two targets get the same I/Os.
    pub(crate) fn seed(&self, seed: u64, repeat: u32) -> u64 {
        let values = [
            u64::from(self.pattern == Pattern::Sequential),
            u64::from(self.write_percent),
            u64::from(self.block_bytes),
            u64::from(self.threads),
            u64::from(self.outstanding),
            u64::from(repeat),
        ];
        values.iter().fold(mix(seed), |state, value| mix(state ^ mix(*value)))
    }
}

/// A step of SplitMix64 (Steele, Lea and Flood 2014). Ours, since a matrix that is continued by a later
/// Headroom must find the same order and seeds.
fn mix(value: u64) -> u64 {
    SplitMix64(value).next_word()
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for at in (1..items.len()).rev() {
        state = mix(state);
        items.swap(at, (state % (at as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axes, BlockBytes, RunSchedule};
    use std::collections::BTreeSet;

    fn matrix(order: Order) -> Matrix {
        let axes = Axes { block: vec![BlockBytes(8192), BlockBytes(65536)], ..Axes::default() };
        let runs = RunSchedule { repeats: 3, order, ..RunSchedule::default() };
        Matrix { axes, runs, ..Matrix::default() }
    }

    #[test]
    fn orders_and_seeds_stay_as_they_are() {
        // Another version of Headroom that continues a matrix must come to the same ones.
        let matrix = matrix(Order::Random);
        let (order, points) = (matrix.order(), matrix.points());
        let first: Vec<usize> = order.iter().take(14).map(|key| key.point).collect();
        assert_eq!(first, FIRST);
        assert_eq!(matrix.seed(order[0], &points[order[0].point]), SEED);
    }

    const FIRST: [usize; 14] = [5, 3, 6, 2, 4, 0, 13, 10, 11, 8, 12, 9, 7, 1];
    const SEED: u64 = 5_098_340_335_916_093_722;

    #[test]
    fn a_random_order_is_another_one_in_each_pass_and_with_each_seed() {
        let one = matrix(Order::Random);
        let passes: BTreeSet<Vec<usize>> =
            one.order().chunks(14).map(|pass| pass.iter().map(|key| key.point).collect()).collect();
        assert_eq!(passes.len(), 3);
        let mut other = one.clone();
        other.runs.seed = 1;
        assert_ne!(one.order(), other.order());
        assert_eq!(
            matrix(Order::Listed).order()[..14],
            (0..14).map(|point| RunKey { point, repeat: 0 }).collect::<Vec<_>>()
        );
    }

    #[test]
    fn every_run_has_a_seed_of_its_own_which_a_larger_matrix_keeps() {
        let small = matrix(Order::Listed);
        let mut large = small.clone();
        large.axes.threads = vec![4, 1];
        let seeds = |matrix: &Matrix| -> BTreeSet<u64> {
            let points = matrix.points();
            matrix.order().iter().map(|key| matrix.seed(*key, &points[key.point])).collect()
        };
        assert_eq!(seeds(&small).len(), 42);
        assert!(seeds(&small).is_subset(&seeds(&large)));
    }
}
