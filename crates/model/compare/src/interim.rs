/// When a growing series of rounds is analysed: after 2, 4, 8 ... rounds and the last one, fixed beforehand.
///
/// To analyse repeatedly and to stop at the first difference finds one where there is none far more often than
/// 5 % of the time. Here each of the K interim analyses may be wrong with 5 % / K only (Bonferroni), and shows the
/// interval of that confidence: all intervals hold together in 95 % of cases (repeated confidence intervals,
/// Jennison and Turnbull 1989), wherever the series ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterimSchedule {
    rounds: Vec<u32>,
}

/// With fewer rounds, which are two pairs each, noise cannot be estimated.
const ROUNDS_MIN: u32 = 2;

impl InterimSchedule {
    /// Most rounds of any series: pairs are compared run by run, and [`RUNS_MAX`](crate::RUNS_MAX) is the bound.
    pub const ROUNDS_MAX: u32 = 25;

    /// For a series of at most that many rounds; `None` with fewer than two.
    pub fn for_rounds(rounds_max: u32) -> Option<InterimSchedule> {
        let rounds_max = rounds_max.min(Self::ROUNDS_MAX);
        if rounds_max < ROUNDS_MIN {
            return None;
        }
        let doubling = std::iter::successors(Some(ROUNDS_MIN), |rounds| Some(rounds * 2));
        let mut rounds: Vec<u32> = doubling.take_while(|rounds| *rounds < rounds_max).collect();
        rounds.push(rounds_max);
        Some(InterimSchedule { rounds })
    }

    /// Number of analyses.
    pub fn count(&self) -> u32 {
        self.rounds.len() as u32
    }

    /// Whether the series is analysed after that many rounds.
    pub fn is_due(&self, rounds: u32) -> bool {
        self.rounds.contains(&rounds)
    }

    /// The last round.
    pub fn rounds_max(&self) -> u32 {
        self.rounds.last().copied().unwrap_or(ROUNDS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn analyses_double_and_end_with_the_last_round() {
        let rounds = |max| InterimSchedule::for_rounds(max).map(|schedule| schedule.rounds);
        assert_eq!(rounds(1), None);
        assert_eq!(rounds(2), Some(vec![2]));
        assert_eq!(rounds(10), Some(vec![2, 4, 8, 10]));
        assert_eq!(rounds(16), Some(vec![2, 4, 8, 16]));
        assert_eq!(rounds(900).unwrap().last(), Some(&InterimSchedule::ROUNDS_MAX));
    }
}
