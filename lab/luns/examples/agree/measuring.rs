//! Runs on the real storages and in virtual time.

use crate::cases::{Case, Sweep};
use crate::storages::Real;
use capability::{Curve, Knee, StorageLimits, find_knee};
use load::{RunControl, run};
use simulate::{Storage, point, simulate};
use std::time::Duration;
use storage::Region;
use workload::{Phase, Plan, RunLength, RunResult, Shape, Workload};

/// Two runs of a row may differ by no more than the row may be off.
pub const RATE_OFF_MAX: f64 = 0.05;
pub const MEAN_OFF_MAX: f64 = 0.10;
pub const KNEE_OFF_MAX: f64 = 0.15;
/// Rounds over all rows, and further ones over those that did not agree.
const ROUNDS: usize = 2;
const ROUNDS_MAX: usize = 4;

/// Throughput, and the mean latency that its user felt.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub iops: f64,
    pub mean_ns: f64,
}

/// One row of the table.
pub struct Row {
    pub tested: &'static str,
    pub model: &'static str,
    pub workload: String,
    pub measured: Figures,
    pub simulated: Figures,
    /// How often it was measured.
    pub rounds: usize,
    /// The last two rounds agree.
    pub is_steady: bool,
}

/// One knee of the table.
pub struct KneeRow {
    pub tested: &'static str,
    pub model: &'static str,
    pub workload: String,
    pub measured: Knee,
    pub simulated: Knee,
}

impl Figures {
    fn from_result(result: &RunResult) -> Figures {
        Figures { iops: result.iops(), mean_ns: result.mean_latency_ns().unwrap_or(0.0) }
    }

    fn agrees(&self, other: &Figures) -> bool {
        off(self.iops, other.iops).abs() <= RATE_OFF_MAX
            && off(self.mean_ns, other.mean_ns).abs() <= MEAN_OFF_MAX
    }

    fn between(&self, other: &Figures) -> Figures {
        Figures { iops: (self.iops + other.iops) / 2.0, mean_ns: (self.mean_ns + other.mean_ns) / 2.0 }
    }
}

/// How far from what was measured, as a share of that.
pub fn off(simulated: f64, measured: f64) -> f64 {
    simulated / measured - 1.0
}

/// Measures all cases in turn, then again; each phase is a row.
pub fn rows(real: &Real, cases: &[Case]) -> Vec<Row> {
    let mut measured: Vec<Vec<Vec<Figures>>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS_MAX {
        for (at, case) in cases.iter().enumerate() {
            if round >= ROUNDS && is_steady(&measured[at]) {
                continue;
            }
            let tested = &real.tested[case.tested];
            eprint!("round {}, case {} of {}: {:60}\r", round + 1, at + 1, cases.len(), tested.name);
            let figures = |phase: &Phase| {
                Figures::from_result(&measured_for(
                    &tested.region,
                    &phase.workloads[0].workload,
                    phase.length,
                ))
            };
            measured[at].push(case.phases.iter().map(figures).collect());
        }
    }
    let mut rows = Vec::new();
    for (case, rounds) in cases.iter().zip(&measured) {
        let tested = &real.tested[case.tested];
        let simulated = in_virtual_time(&tested.storage, &case.phases);
        for (at, phase) in case.phases.iter().enumerate() {
            let (last, before) = last_two(rounds);
            rows.push(Row {
                tested: tested.name,
                model: tested.model,
                workload: phase.name.clone(),
                measured: last[at].between(&before[at]),
                simulated: Figures::from_result(&simulated[at]),
                rounds: rounds.len(),
                is_steady: last[at].agrees(&before[at]),
            });
        }
    }
    rows
}

fn last_two(rounds: &[Vec<Figures>]) -> (&[Figures], &[Figures]) {
    (&rounds[rounds.len() - 1], &rounds[rounds.len() - 2])
}

fn is_steady(rounds: &[Vec<Figures>]) -> bool {
    let (last, before) = last_two(rounds);
    last.iter().zip(before).all(|(one, other)| one.agrees(other))
}

/// Measures the curves and finds their knees.
pub fn knees(real: &Real, sweeps: &[Sweep]) -> Vec<KneeRow> {
    let row = |(at, sweep): (usize, &Sweep)| {
        let tested = &real.tested[sweep.tested];
        eprint!("curve {} of {}: {:60}\r", at + 1, sweeps.len(), tested.name);
        let length = |workload: &Workload| {
            let length = length_s(1.2);
            (in_virtual_time(&tested.storage, &[Phase::single(workload.clone(), length)]), length)
        };
        let mut real = |workload: &Workload| measured_for(&tested.region, workload, length_s(1.2));
        let measured = curve_of(&sweep.shape, sweep.outstanding, &mut real);
        let simulated =
            curve_of(&sweep.shape, sweep.outstanding, &mut |workload| length(workload).0.remove(0));
        let knee = |curve: Curve| curve.knee.expect("points enough");
        KneeRow {
            tested: tested.name,
            model: tested.model,
            workload: sweep.shape.to_string(),
            measured: knee(measured),
            simulated: knee(simulated),
        }
    };
    sweeps.iter().enumerate().map(row).collect()
}

/// A curve of runs.
pub fn curve_of(shape: &Shape, outstanding: &[u32], run: &mut dyn FnMut(&Workload) -> RunResult) -> Curve {
    let points: Vec<_> = outstanding
        .iter()
        .map(|outstanding| point(&run(&Workload::from(*shape).with_outstanding(*outstanding))))
        .collect();
    let knee = find_knee(shape, &points, &StorageLimits::default());
    Curve { workload: *shape, points, knee }
}

/// Runs for `seconds`, after a short warm-up.
pub fn measure(region: &Region, workload: &Workload, seconds: f64) -> RunResult {
    measured_for(region, workload, length_s(seconds))
}

fn length_s(seconds: f64) -> RunLength {
    let warm_up = Duration::from_millis(300);
    RunLength { warm_up, duration: Duration::from_secs_f64(seconds), ..RunLength::default() }
}

fn measured_for(region: &Region, workload: &Workload, length: RunLength) -> RunResult {
    let result = run(region, workload, &length, &mut |_| RunControl::Continue).expect("a run");
    assert_eq!(result.failed(), 0, "I/Os failed");
    result
}

fn in_virtual_time(storage: &Storage, phases: &[Phase]) -> Vec<RunResult> {
    let plan = Plan { targets: Vec::new(), phases: phases.to_vec() };
    let simulated = simulate(&plan, storage, &|_| None, &mut |_| true).expect("a workload that can be");
    simulated.phases.into_iter().map(|mut phase| phase.results.remove(0)).collect()
}
