//! All operations of a source, graded by the service level.

use crate::case::{Direction, FileCase, Reading};
use filestats::IoClass;

/// All graded operations of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GradedOperations {
    pub files: usize,
    pub operations: u64,
    /// Of those, in intervals whose mean kept the level.
    pub kept: u64,
    pub worst: Option<Worst>,
    /// Operations that are not timed to their completion.
    pub untimed: u64,
}

/// The interval that is farthest beyond (or nearest to) its level.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Worst {
    /// Its latency, of what is promised.
    pub share: f64,
    pub latency_ns: f64,
    pub class: IoClass,
    pub path: String,
    pub direction: Direction,
    pub until_unix_ns: u64,
}

impl GradedOperations {
    pub fn add(&mut self, case: &FileCase) {
        let mut graded: u64 = 0;
        for direction in Direction::ALL {
            let class = case.class(direction);
            let readings = case.readings(direction);
            let level = &case.settings.service_level;
            for reading in &readings {
                graded = u64::saturating_add(graded, reading.ops.count);
                if level.kept(class, reading.latency_ns) {
                    self.kept = self.kept.saturating_add(reading.ops.count);
                }
                let share = reading.latency_ns / level.limit_ns(class) as f64;
                if self.worst.as_ref().is_none_or(|worst| share > worst.share) {
                    self.worst = Some(worst(case, direction, class, reading, share));
                }
            }
        }
        let known = case.file.steps.iter().filter_map(|step| step.added.known());
        let all = known.fold(0_u64, |sum, added| sum.saturating_add(added.operations()));
        self.files += usize::from(graded > 0);
        self.operations = self.operations.saturating_add(graded);
        self.untimed = self.untimed.saturating_add(all.saturating_sub(graded));
    }
}

fn worst(case: &FileCase, direction: Direction, class: IoClass, reading: &Reading, share: f64) -> Worst {
    Worst {
        share,
        latency_ns: reading.latency_ns,
        class,
        path: case.file.file.path.clone(),
        direction,
        until_unix_ns: reading.span.until_unix_ns,
    }
}
