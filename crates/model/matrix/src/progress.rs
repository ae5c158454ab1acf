use crate::{Matrix, RunKey};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// State of each run of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    states: Vec<RunState>,
    repeats: u32,
    /// Time that went into it so far, preparation included.
    pub spent: Duration,
}

/// How a run stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum RunState {
    /// Still to come.
    #[default]
    Planned,
    /// Ended, and kept.
    Done(Figures),
    /// Will not be run.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// Figures of a result that decide the next step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RunFiguresSoFar"))]
pub struct Figures {
    /// I/Os a second.
    pub iops: f64,
    /// Mean latency; 0 without I/Os.
    pub latency_ns: f64,
    /// Time the run took in all.
    pub took: Duration,
}

impl Progress {
    /// Nothing is done yet.
    pub fn new(matrix: &Matrix) -> Progress {
        let runs = matrix.point_count() as usize * matrix.runs.repeats as usize;
        Progress {
            states: vec![RunState::Planned; runs],
            repeats: matrix.runs.repeats,
            spent: Duration::ZERO,
        }
    }

    /// How a run stands; `None` for one that the matrix does not have.
    pub fn get(&self, run: RunKey) -> Option<&RunState> {
        (run.repeat < self.repeats).then(|| self.states.get(self.at(run)))?
    }

    /// Notes how a run stands.
    ///
    /// # Panics
    /// For a run that the matrix does not have.
    pub fn set(&mut self, run: RunKey, state: RunState) {
        assert!(run.repeat < self.repeats, "repeat {} of {}", run.repeat, self.repeats);
        let at = self.at(run);
        self.states[at] = state;
    }

    /// Whether it is still to come.
    pub fn is_planned(&self, run: RunKey) -> bool {
        self.get(run) == Some(&RunState::Planned)
    }

    /// Runs still to come, done, and skipped.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |is: fn(&RunState) -> bool| self.states.iter().filter(|state| is(state)).count();
        (
            count(|it| *it == RunState::Planned),
            count(|it| matches!(it, RunState::Done(_))),
            count(|it| matches!(it, RunState::Skipped { .. })),
        )
    }

    /// The figures of a point's runs that are done.
    pub fn done(&self, point: usize) -> impl Iterator<Item = &Figures> {
        let first = point * self.repeats as usize;
        self.states[first..first + self.repeats as usize].iter().filter_map(|state| match state {
            RunState::Done(figures) => Some(figures),
            _ => None,
        })
    }

    /// Mean IOPS and latency of a point; `None` where no I/O was done.
    pub(crate) fn mean(&self, point: usize) -> Option<(f64, f64)> {
        let (mut iops, mut latency_ns, mut n) = (0.0, 0.0, 0.0);
        for figures in self.done(point).filter(|figures| figures.iops > 0.0 && figures.latency_ns > 0.0) {
            iops += figures.iops;
            latency_ns += figures.latency_ns;
            n += 1.0;
        }
        (n > 0.0).then(|| (iops / n, latency_ns / n))
    }

    /// Mean time of the runs that are done.
    pub fn mean_took(&self) -> Option<Duration> {
        let took = self.states.iter().filter_map(|state| match state {
            RunState::Done(figures) => Some(figures.took),
            _ => None,
        });
        let (sum, n) = took.fold((Duration::ZERO, 0_u32), |(sum, n), took| (sum.saturating_add(took), n + 1));
        (n > 0).then(|| sum / n)
    }

    fn at(&self, run: RunKey) -> usize {
        run.point * self.repeats as usize + run.repeat as usize
    }
}
