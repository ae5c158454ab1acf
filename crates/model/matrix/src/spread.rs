//! Points as far from each other as they can be: each next one is the farthest from all before it (Gonzalez
//! 1985). Any beginning of the list covers the axes as evenly as its length allows.

use crate::{Matrix, Point};
use workload::Pattern;

const AXES: usize = 6;

/// The first `count` points of the list, by their numbers.
pub(crate) fn farthest_first(matrix: &Matrix, points: &[Point], count: usize) -> Vec<usize> {
    let places: Vec<[f64; AXES]> = points.iter().map(|point| place(matrix, point)).collect();
    let mut nearest = vec![f64::INFINITY; points.len()];
    let mut chosen = Vec::new();
    let mut next = 0;
    while chosen.len() < count.min(points.len()) {
        chosen.push(next);
        let here = places[next];
        let mut farthest = 0.0;
        for (at, place) in places.iter().enumerate() {
            let distance: f64 = place.iter().zip(&here).map(|(a, b)| (a - b).powi(2)).sum();
            nearest[at] = nearest[at].min(distance);
            if nearest[at] > farthest {
                (next, farthest) = (at, nearest[at]);
            }
        }
    }
    chosen
}

/// Where a point is among the values of each axis, 0 to 1.
fn place(matrix: &Matrix, point: &Point) -> [f64; AXES] {
    let axes = &matrix.axes;
    let patterns: Vec<bool> = axes.pattern.iter().map(|it| *it == Pattern::Sequential).collect();
    let blocks: Vec<u32> = axes.block.iter().map(|block| block.0).collect();
    let targets: Vec<usize> = (0..matrix.targets.len()).collect();
    [
        rank(&targets, &point.target),
        rank(&patterns, &(point.pattern == Pattern::Sequential)),
        rank(&axes.write_percent, &point.write_percent),
        rank(&blocks, &point.block_bytes),
        rank(&axes.threads, &point.threads),
        rank(&axes.outstanding, &point.outstanding),
    ]
}

/// By size, in whatever order the values are listed.
fn rank<T: PartialOrd>(values: &[T], value: &T) -> f64 {
    let below = values.iter().filter(|other| *other < value).count();
    below as f64 / values.len().saturating_sub(1).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Axes;

    #[test]
    fn ends_come_first_then_the_middle_and_none_twice() {
        let axes = Axes { outstanding: vec![1, 2, 4, 8, 16], ..Axes::default() };
        let matrix = Matrix { axes, ..Matrix::default() };
        let points = matrix.points();
        let list = farthest_first(&matrix, &points, 9);
        assert_eq!(list[..3], [0, 4, 2]);
        let mut all = list.clone();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_quarter_of_the_points_has_every_value_of_every_axis() {
        let axes = Axes {
            pattern: vec![Pattern::Random, Pattern::Sequential],
            write_percent: vec![0, 10, 25, 100],
            threads: vec![4, 8, 16, 32],
            outstanding: vec![2, 4, 8, 16],
            ..Axes::default()
        };
        let matrix = Matrix { axes, ..Matrix::default() };
        let points = matrix.points();
        let chosen: Vec<&Point> =
            farthest_first(&matrix, &points, points.len() / 4).iter().map(|at| &points[*at]).collect();
        for write_percent in &matrix.axes.write_percent {
            assert!(chosen.iter().any(|point| point.write_percent == *write_percent));
        }
        for outstanding in &matrix.axes.outstanding {
            assert!(chosen.iter().any(|point| point.outstanding == *outstanding));
        }
        for threads in &matrix.axes.threads {
            assert!(chosen.iter().any(|point| point.threads == *threads));
        }
    }
}
