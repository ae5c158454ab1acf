//! Whether the service level was kept over all files.

use crate::finding::{self, at};
use crate::source_case::SourceCase;
use crate::{Finding, FindingKind, Settings};
use findings::{Weight, words};
use workload::Unit;

/// Whether the level was kept, or why that is unknown.
pub(crate) fn service_level(case: &SourceCase) -> Vec<Finding> {
    let Settings { service_level: level, profile, .. } = case.settings;
    let promised = format!(
        "reads {}, writes {}, log writes {}",
        words::time(level.read_ns as f64),
        words::time(level.write_ns as f64),
        words::time(level.log_write_ns as f64)
    );
    let kept = &case.kept;
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
        return vec![
            finding.next("headroom sources doctor, which says what the source needs to time its I/O"),
        ];
    };
    let share = kept.kept as f64 / kept.operations.max(1) as f64;
    let where_worst = match (case.broken, worst.share > 1.0) {
        (true, _) => "farthest beyond the limit:",
        (false, true) => "beyond the limit, but too few or explained:",
        (false, false) => "closest to the limit:",
    };
    let seen = format!(
        "{} of {} in {} were in intervals that kept it; {where_worst} {} of {}, {} ({}) on average until {}{untimed}",
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
        Finding::new(FindingKind::ServiceLevel, Weight::Note, format!("service level ({promised}): {seen}"))
    } else {
        let text = format!("storage is acceptable for its service level ({promised}): {seen}");
        Finding::new(FindingKind::ServiceLevel, Weight::Good, text)
    };
    let finding = finding
        .fact("operations", kept.operations as f64, Unit::Ios)
        .fact("share in intervals that kept it", share, Unit::Share)
        .fact("worst interval's mean latency", worst.latency_ns, Unit::Ns)
        .fact("of what is promised", worst.share, Unit::Share);
    vec![finding]
}
