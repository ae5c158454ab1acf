//! Exact tests that use only order, as a guard beside Student's t: one wild run must not decide.

/// Wilcoxon's signed-rank test (1945): the two-sided p of the differences' being symmetric about 0, and the
/// smallest p that this number of differences can give.
pub(crate) fn signed_rank(differences: &[f64]) -> (f64, f64) {
    let nonzero: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    let magnitudes: Vec<f64> = nonzero.iter().map(|difference| difference.abs()).collect();
    let ranks = doubled_ranks(&magnitudes);
    let total: usize = ranks.iter().sum();
    // Share of all choices of signs that give each sum of positive ranks.
    let mut shares = vec![0.0; total + 1];
    shares[0] = 1.0;
    for rank in &ranks {
        for sum in (0..=total).rev() {
            let with = if sum >= *rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = f64::midpoint(shares[sum], with);
        }
    }
    let positive: usize =
        ranks.iter().zip(&nonzero).filter(|(_, difference)| **difference > 0.0).map(|(rank, _)| rank).sum();
    let least = 0.5_f64.powi(i32::try_from(nonzero.len()).unwrap_or(i32::MAX) - 1).min(1.0);
    (both_tails(&shares, positive), least)
}

/// The rank-sum test of Wilcoxon, Mann and Whitney (1947): the two-sided p of both samples' coming from one
/// distribution, and the smallest p that such samples can give.
pub(crate) fn rank_sum(a: &[f64], b: &[f64]) -> (f64, f64) {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = doubled_ranks(&all);
    let total: usize = ranks.iter().sum();
    // ways[k][s]: choices of k values with that sum of ranks, relative to each other.
    let mut ways = vec![vec![0.0_f64; total + 1]; b.len() + 1];
    ways[0][0] = 1.0;
    for (seen, rank) in ranks.iter().enumerate() {
        for chosen in (1..=b.len().min(seen + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(chosen);
            for sum in *rank..=total {
                more[0][sum] += fewer[chosen - 1][sum - rank];
            }
        }
    }
    let choices: f64 = ways[b.len()].iter().sum();
    let shares: Vec<f64> = ways[b.len()].iter().map(|ways| ways / choices).collect();
    (both_tails(&shares, ranks[a.len()..].iter().sum()), (2.0 / choices).min(1.0))
}

/// Twice the ranks, so that those of equal values, which share the mean of theirs, are whole.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count();
    let equal = |value: f64| values.iter().filter(|other| **other == value).count();
    values.iter().map(|value| 2 * below(*value) + equal(*value) + 1).collect()
}

fn both_tails(shares: &[f64], sum: usize) -> f64 {
    let low: f64 = shares[..=sum].iter().sum();
    let high: f64 = shares[sum..].iter().sum();
    (2.0 * low.min(high)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signed_rank_test_agrees_with_its_tables() {
        // Of 5 positive differences 1 choice of signs in 32 is as extreme, on either side.
        let (p, least) = signed_rank(&[0.1, 0.2, 0.3, 0.4, 0.5]);
        assert!((p - 2.0 / 32.0).abs() < 1e-12 && (least - p).abs() < 1e-12);
        // n = 8, W- = 3: critical value of the 5 % level (two-sided), p = 0.0391.
        let (p, _) = signed_rank(&[-1.0, -2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert!((p - 10.0 / 256.0).abs() < 1e-12, "{p}");
        assert_eq!(signed_rank(&[]).0, 1.0);
    }

    #[test]
    fn the_rank_sum_test_agrees_with_its_tables() {
        let (p, least) = rank_sum(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]);
        assert!((p - 2.0 / 70.0).abs() < 1e-12 && (least - p).abs() < 1e-12);
        let (p, _) = rank_sum(&[1.0, 4.0, 2.0], &[3.0, 1.5, 2.5]);
        assert!(p > 0.5, "{p}");
        assert_eq!(rank_sum(&[1.0, 1.0], &[1.0, 1.0]).0, 1.0);
    }
}
