use crate::build::*;
use analyze::{FindingKind, WaitSeries};
use filestats::*;
use findings::Weight;

/// Commits that wait `wait_ns` in each interval of 15 s.
fn commits(course: &TimeSeries, wait_ns: u64) -> WaitSeries {
    let delta = WaitDelta { elapsed_ns: 15 * S, count: Figure::Known(100), wait_ns: Figure::Known(wait_ns) };
    let steps = (1..course.ticks.len()).map(|at| (at, Figure::Known(delta))).collect();
    WaitSeries { instance: "engine".into(), event: "WALSync".into(), class: WaitClass::LogSync, steps }
}

fn log_file(course: &TimeSeries, ns_each: u64) -> FileSeries {
    let added = (1..course.ticks.len()).map(|at| (at, with_syncs(writes(100, 8192, MS), 100, ns_each)));
    log(file("/data/pg_wal/1", course, added))
}

#[test]
fn waits_beyond_what_the_files_took_are_not_the_disk() {
    let course = course(20, 15 * S);
    let of =
        |wait_ns, ns_each| with_waits(&course, &[log_file(&course, ns_each)], &[commits(&course, wait_ns)]);
    // 100 syncs and writes of 1 ms each are 200 ms an interval.
    let found = found(&of(401 * MS, MS), FindingKind::NotTheDisk);
    assert_eq!(found.weight, Weight::Warning);
    assert_eq!(fact(&found, "time the files took"), 20.0 * 200e6);
    assert_eq!((found.when.len(), found.when[0].length_ns()), (1, 5 * MIN));
    assert!(find(&of(400 * MS, MS), FindingKind::NotTheDisk).is_none());
}

#[test]
fn an_untimed_file_does_not_make_its_waits_something_else() {
    let course = course(20, 15 * S);
    let mut file = log_file(&course, MS);
    for step in &mut file.steps {
        let Figure::Known(added) = &mut step.added else { continue };
        added.write.stall_ns = Figure::unknown(Reason::TimingOff);
    }
    assert!(
        find(&with_waits(&course, &[file], &[commits(&course, 900 * MS)]), FindingKind::NotTheDisk).is_none()
    );
}

#[test]
fn a_slow_log_that_nobody_waits_for_is_a_note() {
    let course = course(20, 15 * S);
    let slow = || [log_file(&course, 50 * MS)];
    let nobody = with_waits(&course, &slow(), &[commits(&course, MS)]);
    let breach = found(&nobody, FindingKind::Breach);
    assert_eq!(breach.weight, Weight::Note);
    assert!(breach.text.ends_with("nobody waits for it, as the server's own waits say"), "{}", breach.text);
    let somebody = with_waits(&course, &slow(), &[commits(&course, 5 * S)]);
    assert_eq!(found(&somebody, FindingKind::Breach).weight, Weight::Warning);
    assert_eq!(
        found(&analysis(&course, &slow()), FindingKind::Breach).weight,
        Weight::Warning,
        "no waits are told"
    );
}
