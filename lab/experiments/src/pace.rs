/// A part of an experiment: rows inserted by an engine in so many commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which engine, and how durably: steps of one name take about the same time a commit.
    pub name: String,
    /// Commits.
    pub commits: u64,
    /// Rows.
    pub rows: u64,
}

/// How long steps took so far, to estimate the time left.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    done: Vec<(Step, f64)>,
}

impl Pace {
    /// Records how long a step took.
    pub fn record(&mut self, step: Step, seconds: f64) {
        self.done.push((step, seconds));
    }

    /// Seconds left of the running step, `share` of which is done after `elapsed_s`, and of the steps to come. `None` while
    /// no step has ended or got far enough. A step may do more than was planned: its share may exceed 1.
    pub fn left_s(&self, running: &Step, share: f64, elapsed_s: f64, to_come: &[Step]) -> Option<f64> {
        let share = share.min(1.0);
        let (whole_s, known) = if share > 0.02 && elapsed_s > 0.2 {
            (elapsed_s / share, true)
        } else {
            (self.expected_s(running, None).unwrap_or(0.0).max(elapsed_s), false)
        };
        let running_so_far = known.then_some((running, whole_s));
        let mut left_s = whole_s - elapsed_s;
        for step in to_come {
            left_s += self.expected_s(step, running_so_far)?;
        }
        (known || !self.done.is_empty()).then_some(left_s)
    }

    /// Assumes the time per commit of the step of that name with the most commits, and at least the shortest time per row
    /// of any step.
    fn expected_s(&self, step: &Step, running: Option<(&Step, f64)>) -> Option<f64> {
        let all = || self.done.iter().map(|(done, seconds)| (done, *seconds)).chain(running);
        let same = || all().filter(|(done, _)| done.name == step.name);
        let of = |(done, seconds): (&Step, f64)| seconds / done.commits.max(1) as f64;
        let most = same()
            .max_by_key(|(done, _)| done.commits)
            .or_else(|| all().max_by_key(|(done, _)| done.commits));
        let commit_s = of(most?);
        let row_s =
            all().map(|(done, seconds)| seconds / done.rows.max(1) as f64).fold(f64::INFINITY, f64::min);
        Some((commit_s * step.commits as f64).max(row_s * step.rows as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, commits: u64) -> Step {
        Step { name: name.into(), commits, rows: 1_000 }
    }

    #[test]
    fn a_step_takes_as_long_a_commit_as_the_one_before() {
        let mut pace = Pace::default();
        assert_eq!(pace.left_s(&step("wal", 1_000), 0.0, 0.0, &[]), None, "nothing to go by");
        pace.record(step("wal", 1_000), 10.0);
        let left = pace.left_s(&step("wal", 100), 0.0, 0.0, &[step("wal", 10)]).unwrap();
        // No row ever took less than 10 ms, for all that is known.
        assert!((left - 20.0).abs() < 1e-9, "{left}");
        pace.record(step("wal", 1), 0.1);
        let left = pace.left_s(&step("wal", 100), 0.0, 0.0, &[step("wal", 10)]).unwrap();
        assert!((left - 1.1).abs() < 1e-9, "{left}");
    }

    #[test]
    fn the_running_step_predicts_itself_and_later_steps() {
        let pace = Pace::default();
        let left = pace.left_s(&step("postgres", 1_000), 0.25, 5.0, &[step("postgres", 1_000)]).unwrap();
        assert!((left - 35.0).abs() < 1e-9, "{left}");
    }

    proptest::proptest! {
        #[test]
        fn what_is_left_is_never_negative(
            done in proptest::collection::vec((1_u64..10_000, 0.0_f64..1e3), 0..5),
            share in 0.0_f64..=2.0, elapsed_s in 0.0_f64..1e3, commits in 1_u64..10_000,
        ) {
            let mut pace = Pace::default();
            done.iter().for_each(|(commits, seconds)| pace.record(step("wal", *commits), *seconds));
            let left = pace.left_s(&step("wal", commits), share, elapsed_s, &[step("wal", 1)]);
            proptest::prop_assert!(left.is_none_or(|left| left >= 0.0 && left.is_finite()), "{:?}", left);
        }
    }
}
