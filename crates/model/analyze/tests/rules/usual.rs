//! Against the same hour of other days.

use crate::build::*;
use analyze::{Analysis, Analyzer, FindingKind};
use filestats::{FileSeries, TimeSeries};

/// An hour of captures on each of some days, the last of which is the stretch; what is read a minute on each.
fn days(before: &[(u64, u64)], count: u64, ns: u64) -> Analysis {
    let mut earlier = TimeSeries { source: "engine:1".into(), ticks: Vec::new() };
    let mut added = Vec::new();
    for (day, (count, ns)) in before.iter().enumerate() {
        let hour = course_from(BEGIN + day as u64 * 24 * HOUR + 14 * HOUR, 1, HOUR);
        for (end, mut tick) in hour.ticks.into_iter().enumerate() {
            tick.clock_ns += day as u64 * 23 * HOUR + 14 * HOUR;
            earlier.ticks.push(tick);
            if end == 1 {
                added.push((earlier.ticks.len() - 1, reads(60 * count, 8192, *ns)));
            }
        }
    }
    let everyday = before.first().copied().unwrap_or(USUAL);
    let stretch = course_from(BEGIN + 10 * 24 * HOUR + 14 * HOUR, 60, MIN);
    let now = file(
        "/data/shop.db",
        &stretch,
        (1..=60).map(|at| {
            if at == 30 { (at, reads(count, 8192, ns)) } else { (at, reads(everyday.0, 8192, everyday.1)) }
        }),
    );
    let then: Option<FileSeries> = (!before.is_empty()).then(|| file("/data/shop.db", &earlier, added));
    let settings = settings(&stretch);
    let mut analyzer = Analyzer::new(&stretch, Some(&earlier), &settings);
    analyzer.add_file(&now, then.as_ref());
    analyzer.finish()
}

const USUAL: (u64, u64) = (600, 2 * MS);

#[test]
fn a_spike_is_one_against_the_same_hour_of_other_days() {
    let analysis = days(&[USUAL; 3], 600, 9 * MS);
    let slower = found(&analysis, FindingKind::Slower);
    assert_eq!(fact(&slower, "usual at that hour"), 2e6);
    assert_eq!(fact(&slower, "worst interval's mean latency"), 9e6);
    assert!(slower.text.contains("median of 3 other days"), "{}", slower.text);
    assert_eq!(slower.when[0].length_ns(), MIN);
    assert!(
        find(&days(&[USUAL; 3], 600, 6 * MS), FindingKind::Slower).is_none(),
        "three times as slow is not more"
    );
    assert!(
        find(&days(&[(600, 20_000); 3], 600, 500_000), FindingKind::Slower).is_none(),
        "half a millisecond is jitter"
    );
    assert!(find(&days(&[USUAL; 3], 99, 9 * MS), FindingKind::Slower).is_none(), "too few");
}

#[test]
fn what_is_usual_is_the_median_and_one_bad_day_does_not_move_it() {
    let odd = [USUAL, (600, 90 * MS), USUAL];
    assert_eq!(fact(&found(&days(&odd, 600, 9 * MS), FindingKind::Slower), "usual at that hour"), 2e6);
}

#[test]
fn too_little_history_is_said_and_nothing_is_compared() {
    for before in 0..3 {
        let analysis = days(&vec![USUAL; before], 600_000, 9 * MS);
        assert!(
            find(&analysis, FindingKind::Slower).is_none() && find(&analysis, FindingKind::More).is_none()
        );
        assert_eq!(fact(&found(&analysis, FindingKind::NoNormal), "other days"), before as f64);
    }
    assert!(find(&days(&[USUAL; 3], 600, 2 * MS), FindingKind::NoNormal).is_none());
}

#[test]
fn much_more_io_than_usual_is_found_too() {
    let more = found(&days(&[USUAL; 4], 3_001, MS), FindingKind::More);
    assert_eq!(fact(&more, "usual at that hour"), 10.0);
    assert_eq!(more.when[0].length_ns(), MIN);
    assert!(find(&days(&[USUAL; 4], 3_000, MS), FindingKind::More).is_none());
}
