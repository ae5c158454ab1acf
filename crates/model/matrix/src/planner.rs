use crate::saturation::{saturated, series};
use crate::{Matrix, Point, Progress, RunKey, RunState, refine, spread};
use serde::Serialize;
use std::time::Duration;

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// This run.
    Run(RunKey),
    /// These runs are left out, each for its reason; then call again.
    Skip(Vec<(RunKey, String)>),
    /// Nothing.
    Finished,
}

/// Forecast of the runs, before they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forecast {
    /// Runs still to come.
    pub runs: usize,
    /// Of those, runs of the coarse pass that a budget begins with.
    pub coarse: usize,
    /// Runs that the budget leaves no time for.
    pub left_out: usize,
    /// Time for the runs and the preparation.
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    pub time: Duration,
}

/// Time that a run takes besides its warm-up, duration and cool-down, until it is known better: threads,
/// rings, and keeping the result.
pub const RUN_OVERHEAD: Duration = Duration::from_millis(50);
/// A test file is written with about that, until it is known better.
const FILL_BYTES_PER_S: u64 = 300 << 20;

/// Decides what comes next, from the matrix and what is done alone.
#[derive(Clone, Debug)]
pub struct Planner {
    matrix: Matrix,
    points: Vec<Point>,
    order: Vec<RunKey>,
    series: Vec<Vec<usize>>,
    coarse: Vec<usize>,
}

impl Planner {
    /// For a matrix that is [valid](Matrix::validate).
    pub fn new(matrix: &Matrix) -> Planner {
        let points = matrix.points();
        let coarse = match matrix.runs.budget {
            None => Vec::new(),
            Some(budget) => {
                let affordable = fitting(budget.0, predicted_cost(matrix));
                spread::farthest_first(matrix, &points, (affordable / 2).max(1))
            }
        };
        let (order, series) = (matrix.order(), series(&points));
        Planner { matrix: matrix.clone(), points, order, series, coarse }
    }

    /// All points, as listed.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// All runs in the order they have without a budget.
    pub fn order(&self) -> &[RunKey] {
        &self.order
    }

    /// Points of the coarse pass in their order; none without a budget.
    pub fn coarse(&self) -> &[usize] {
        &self.coarse
    }

    /// Returns the next step.
    pub fn next(&self, progress: &Progress) -> Step {
        let beyond = self.beyond_saturation(progress);
        if !beyond.is_empty() {
            return Step::Skip(beyond);
        }
        let Some(first) = self.order.iter().find(|key| progress.is_planned(**key)) else {
            return Step::Finished;
        };
        let Some(budget) = self.matrix.runs.budget else {
            return Step::Run(*first);
        };
        let planned = progress.counts().0;
        let affordable = fitting(budget.0.saturating_sub(progress.spent), self.cost(progress));
        if affordable == 0 {
            let reason = format!("the budget of {} was spent", in_words(budget.0));
            let all = self.order.iter().filter(|key| progress.is_planned(**key));
            return Step::Skip(all.map(|key| (*key, reason.clone())).collect());
        }
        let mut coarse = self.coarse.iter().map(|point| RunKey { point: *point, repeat: 0 });
        if let Some(key) = coarse.find(|key| progress.is_planned(*key)) {
            return Step::Run(key);
        }
        if affordable >= planned {
            return Step::Run(*first);
        }
        let telling = refine::most_telling(&self.series, &self.points, progress, self.matrix.runs.repeats);
        Step::Run(telling.unwrap_or(*first))
    }

    /// Forecasts the remaining runs, where `prepared_bytes` of test files are written first. Points that will
    /// be pruned are not known before.
    pub fn forecast(&self, progress: &Progress, prepared_bytes: u64) -> Forecast {
        let preparation = Duration::from_secs_f64(prepared_bytes as f64 / FILL_BYTES_PER_S as f64);
        let planned = progress.counts().0;
        let cost = self.cost(progress);
        let runs = match self.matrix.runs.budget {
            None => planned,
            Some(budget) => {
                let left = budget.0.saturating_sub(progress.spent).saturating_sub(preparation);
                planned.min(fitting(left, cost))
            }
        };
        let coarse = self.coarse.iter().map(|point| RunKey { point: *point, repeat: 0 });
        let coarse = coarse.filter(|key| progress.is_planned(*key)).count().min(runs);
        let time = cost.saturating_mul(u32::try_from(runs).unwrap_or(u32::MAX)).saturating_add(preparation);
        Forecast { runs, coarse, left_out: planned - runs, time }
    }

    /// Time of one run, as measured or as predicted.
    pub fn cost(&self, progress: &Progress) -> Duration {
        progress.mean_took().unwrap_or_else(|| predicted_cost(&self.matrix))
    }

    fn beyond_saturation(&self, progress: &Progress) -> Vec<(RunKey, String)> {
        let Some(percent) = self.matrix.runs.prune_percent else {
            return Vec::new();
        };
        let mut beyond = Vec::new();
        for line in &self.series {
            let Some(place) = saturated(line, &self.points, progress, percent) else { continue };
            let above = line.iter().filter(|at| self.points[**at].outstanding > place.outstanding);
            for &point in above {
                let keys = (0..self.matrix.runs.repeats).map(|repeat| RunKey { point, repeat });
                let planned = keys.filter(|key| progress.is_planned(*key));
                beyond.extend(planned.map(|key| (key, place.reason(percent))));
            }
        }
        beyond
    }
}

impl Progress {
    /// Notes that runs are left out.
    pub fn skip(&mut self, skipped: &[(RunKey, String)]) {
        for (key, reason) in skipped {
            self.set(*key, RunState::Skipped { reason: reason.clone() });
        }
    }
}

fn as_seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

fn predicted_cost(matrix: &Matrix) -> Duration {
    matrix.runs.length().total().saturating_add(RUN_OVERHEAD)
}

fn fitting(time: Duration, cost: Duration) -> usize {
    (time.as_nanos() / cost.as_nanos().max(1)).try_into().unwrap_or(usize::MAX)
}

fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 120.0 { format!("{:.0} min", seconds / 60.0) } else { format!("{seconds} s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axes, BlockBytes, Figures, Order, RunSchedule, Time};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// A storage with a knee whose place depends on the block size, and some noise.
    fn measured(point: &Point, repeat: u32, noise: u64) -> Figures {
        let knee = 64.0 / f64::from(point.block_bytes / 4096);
        let n = f64::from(point.outstanding * point.threads);
        let jitter = (point.seed(noise, repeat) % 1000) as f64 / 10_000.0;
        let iops = 1000.0 * n.min(knee) * (1.0 + jitter);
        // Between a half and one and a half times the predicted cost.
        let took = Duration::from_millis(525 + point.seed(!noise, repeat) % 1000);
        Figures { iops, latency_ns: n / iops * 1e9, took }
    }

    /// Runs a matrix until `stop` runs are done, or to its end.
    fn drive(matrix: &Matrix, progress: &mut Progress, noise: u64, stop: usize) -> Vec<RunKey> {
        let planner = Planner::new(matrix);
        let mut ran = Vec::new();
        while ran.len() < stop {
            match planner.next(progress) {
                Step::Run(key) => {
                    assert!(progress.is_planned(key), "{key:?} a second time");
                    let figures = measured(&planner.points()[key.point], key.repeat, noise);
                    progress.spent += figures.took;
                    progress.set(key, RunState::Done(figures));
                    ran.push(key);
                }
                Step::Skip(skipped) => {
                    assert!(!skipped.is_empty());
                    assert!(skipped.iter().all(|(key, _)| progress.is_planned(*key)));
                    progress.skip(&skipped);
                }
                Step::Finished => break,
            }
        }
        ran
    }

    fn matrices() -> impl Strategy<Value = Matrix> {
        let axes = (1_usize..3, 1_usize..4, 1_usize..6, 1_usize..3);
        let course = (1_u32..4, any::<bool>(), any::<u64>(), prop::option::of(0.0..60.0_f64));
        (axes, course, prop::option::of(1_u64..200)).prop_map(|(axes, course, budget_s)| {
            let (writes, blocks, outstanding, threads) = axes;
            let (repeats, random, seed, prune_percent) = course;
            Matrix {
                axes: Axes {
                    write_percent: (0..writes as u8).map(|at| at * 30).collect(),
                    block: (0..blocks).map(|at| BlockBytes(4096 << at)).collect(),
                    outstanding: (0..outstanding).map(|at| 1 << at).collect(),
                    threads: (0..threads).map(|at| 1 << at).collect(),
                    ..Axes::default()
                },
                runs: RunSchedule {
                    duration: Time(Duration::from_secs(1)),
                    warm_up: Time(Duration::ZERO),
                    repeats,
                    order: if random { Order::Random } else { Order::Listed },
                    seed,
                    prune_percent,
                    budget: budget_s.map(|seconds| Time(Duration::from_secs(seconds))),
                    ..RunSchedule::default()
                },
                ..Matrix::default()
            }
        })
    }

    proptest! {
        #[test]
        fn each_run_is_done_or_skipped_exactly_once(matrix in matrices(), noise in any::<u64>()) {
            let mut progress = Progress::new(&matrix);
            let ran = drive(&matrix, &mut progress, noise, usize::MAX);
            let unique: BTreeSet<&RunKey> = ran.iter().collect();
            prop_assert_eq!(unique.len(), ran.len());
            let (planned, done, skipped) = progress.counts();
            prop_assert_eq!(planned, 0);
            prop_assert_eq!((done, done + skipped), (ran.len(), matrix.order().len()));
            if matrix.runs.prune_percent.is_none() && matrix.runs.budget.is_none() {
                prop_assert_eq!(ran, matrix.order());
            }
        }

        #[test]
        fn after_any_stop_the_order_is_the_same(matrix in matrices(), noise in any::<u64>(), stop in 0_usize..80) {
            let whole = drive(&matrix, &mut Progress::new(&matrix), noise, usize::MAX);
            let mut progress = Progress::new(&matrix);
            let mut ran = drive(&matrix, &mut progress, noise, stop);
            ran.extend(drive(&matrix, &mut progress, noise, usize::MAX));
            prop_assert_eq!(ran, whole);
        }

        #[test]
        fn a_budget_is_overrun_by_less_than_one_run(matrix in matrices(), noise in any::<u64>()) {
            let Some(budget) = matrix.runs.budget else { return Ok(()) };
            let mut progress = Progress::new(&matrix);
            drive(&matrix, &mut progress, noise, usize::MAX);
            let points = matrix.points();
            let order = matrix.order();
            let longest = order.iter().map(|key| measured(&points[key.point], key.repeat, noise).took);
            prop_assert!(progress.spent < budget.0 + longest.max().unwrap());
        }

        #[test]
        fn the_forecast_without_pruning_comes_true(matrix in matrices(), noise in any::<u64>()) {
            let mut matrix = matrix;
            matrix.runs.prune_percent = None;
            let planner = Planner::new(&matrix);
            let mut progress = Progress::new(&matrix);
            let forecast = planner.forecast(&progress, 0);
            prop_assert_eq!(forecast.runs + forecast.left_out, matrix.order().len());
            let ran = drive(&matrix, &mut progress, noise, usize::MAX).len();
            match matrix.runs.budget {
                None => prop_assert_eq!(ran, forecast.runs),
                // Runs take half to one and a half times the forecast.
                Some(_) => prop_assert!(ran * 3 + 2 >= forecast.runs && ran <= forecast.runs * 2 + 1),
            }
        }

        #[test]
        fn pruning_takes_a_tail_of_each_curve_and_more_with_a_larger_threshold(
            matrix in matrices(), noise in any::<u64>(), percent in 0.0..30.0_f64,
        ) {
            let mut matrix = matrix;
            matrix.runs.budget = None;
            matrix.runs.order = Order::Listed;
            let mut ran = |percent| {
                matrix.runs.prune_percent = Some(percent);
                let keys = drive(&matrix, &mut Progress::new(&matrix), noise, usize::MAX);
                keys.into_iter().filter(|key| key.repeat == 0).map(|key| key.point).collect::<BTreeSet<_>>()
            };
            let (more, fewer) = (ran(percent), ran(percent * 2.0));
            prop_assert!(fewer.is_subset(&more));
            let points = matrix.points();
            for line in series(&points) {
                let is_run: Vec<bool> = line.iter().map(|at| more.contains(at)).collect();
                prop_assert!(is_run.is_sorted_by(|a, b| a >= b), "{is_run:?}");
            }
        }
    }

    #[test]
    fn a_budget_that_has_time_for_all_runs_all() {
        let mut matrix = Matrix::default();
        matrix.runs.budget = Some(Time(Duration::from_secs(3600)));
        let mut progress = Progress::new(&matrix);
        let forecast = Planner::new(&matrix).forecast(&progress, 0);
        assert_eq!((forecast.runs, forecast.left_out), (7, 0));
        assert_eq!(drive(&matrix, &mut progress, 1, usize::MAX).len(), 7);
    }

    #[test]
    fn half_a_budget_is_spread_and_the_rest_goes_where_the_curve_bends() {
        let mut matrix = Matrix::default();
        matrix.axes.block = vec![BlockBytes(4096), BlockBytes(32768)];
        matrix.axes.outstanding = (0..12).map(|at| 1 << at).collect();
        matrix.runs.duration = Time(Duration::from_secs(1));
        matrix.runs.warm_up = Time(Duration::ZERO);
        matrix.runs.budget = Some(Time(Duration::from_secs(17)));
        let planner = Planner::new(&matrix);
        assert_eq!(planner.coarse().len(), 8);
        let forecast = planner.forecast(&Progress::new(&matrix), 0);
        assert_eq!((forecast.runs, forecast.coarse, forecast.left_out), (16, 8, 8));
        let ran = drive(&matrix, &mut Progress::new(&matrix), 7, usize::MAX);
        // The knees are at 64 (number 6) and 8 (number 3) outstanding: the doublings around them are run.
        let points: BTreeSet<usize> = ran.iter().map(|key| key.point).collect();
        assert!(points.contains(&6) && points.contains(&(12 + 3)), "{points:?}");
    }
}
