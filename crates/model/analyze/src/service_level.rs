//! The service level over all files: said exactly where it was kept.

use crate::analyzer::SourceCase;
use crate::case::{Direction, FileCase, Reading};
use crate::finding::{self, at};
use crate::{Finding, FindingKind, Settings};
use filestats::IoClass;
use findings::{Weight, words};

/// All graded operations of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kept {
    pub files: usize,
    pub operations: u64,
    /// Of those, in intervals whose mean kept the level.
    pub kept: u64,
    pub worst: Option<Worst>,
    /// Operations that nobody timed to their completion.
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

impl Kept {
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

/// Whether the level was kept, or why that cannot be said.
pub(crate) fn service_level(case: &SourceCase) -> Vec<Finding> {
    let Settings { service_level: level, profile, .. } = case.settings;
    let promised = format!(
        "reads {}, writes {}, log writes {}",
        words::time(level.read_ns as f64),
        words::time(level.write_ns as f64),
        words::time(level.log_write_ns as f64)
    );
    let kept = case.kept;
    let untimed = match kept.untimed {
        0 => String::new(),
        count => format!("; {} more are not timed to their completion", words::rate(count as f64)),
    };
    let Some(worst) = &kept.worst else {
        let text = if kept.untimed == 0 {
            "no I/O was seen in what is known of the stretch: nothing can be said of its service level"
                .to_owned()
        } else {
            format!(
                "whether the service level ({promised}) was kept cannot be said: no I/O is timed{untimed}"
            )
        };
        let finding = Finding::new(FindingKind::ServiceLevel, Weight::Note, text);
        return vec![finding.next("headroom doctor, which says what the source needs to time its I/O")];
    };
    let share = kept.kept as f64 / kept.operations.max(1) as f64;
    let seen = format!(
        "{} of {} in {} were in intervals that kept it; nearest to it came {} of {}: {} ({}) in the mean until {}{untimed}",
        finding::share(share),
        words::counted(kept.operations, "I/O"),
        words::counted(kept.files as u64, "file"),
        worst.direction.plural(),
        worst.path,
        words::time(worst.latency_ns),
        profile.band(worst.class, worst.latency_ns).name,
        at(worst.until_unix_ns),
    );
    let finding = if case.broken {
        let seen = seen.replacen("nearest to it came", "farthest from it were", 1);
        Finding::new(FindingKind::ServiceLevel, Weight::Note, format!("service level ({promised}): {seen}"))
    } else {
        let seen = if worst.share > 1.0 {
            seen.replacen("nearest to it came", "beyond it, but too few or explained, were", 1)
        } else {
            seen
        };
        let text = format!("storage is acceptable for its service level ({promised}): {seen}");
        Finding::new(FindingKind::ServiceLevel, Weight::Good, text)
    };
    let finding = finding
        .fact("operations", kept.operations as f64, "I/Os")
        .fact("share in intervals that kept it", share, "share")
        .fact("worst interval's mean latency", worst.latency_ns, "ns")
        .fact("of what is promised", worst.share, "share");
    vec![finding]
}
