//! Several volumes, one answer.

use crate::builder::*;
use filestats::ServiceLevel;
use verdict::{Answer, Confidence, Figures, JudgedVolume, Observation, Verdict, VerdictKind, judge};

/// A volume of a database, and what is said of it.
struct Judged {
    name: &'static str,
    verdict: Verdict,
    outstanding: f64,
}

fn judged(name: &'static str, observation: &Observation) -> Judged {
    let outstanding = Figures::from_moments(&observation.moments, Some(&disk())).outstanding;
    Judged { name, verdict: verdict(observation), outstanding }
}

fn never_measured(name: &'static str, observation: &Observation) -> Judged {
    let verdict = judge(observation, None, &ServiceLevel::OLTP);
    Judged { verdict, ..judged(name, observation) }
}

fn answer(volumes: &[Judged]) -> Answer {
    let volumes: Vec<JudgedVolume> = volumes
        .iter()
        .map(|one| JudgedVolume {
            name: one.name.into(),
            verdict: &one.verdict,
            outstanding: one.outstanding,
        })
        .collect();
    Answer::from_volumes(&volumes).unwrap()
}

/// Reads at the latency of the curve.
fn reads(per_second: u64) -> Observation {
    steady(Load { reads: per_second, read_ns: 4 * MS, ..Load::default() })
}

/// Reads ten times as slow as the curve.
fn slow_reads(per_second: u64) -> Observation {
    steady(Load { reads: per_second, read_ns: 40 * MS, ..Load::default() })
}

#[test]
fn one_volume_is_the_answer_unchanged() {
    for observation in [reads(100), slow_reads(100), steady(Load::default())] {
        let alone = judged("/data", &observation);
        let answer = answer(std::slice::from_ref(&alone));
        assert_eq!((answer.volume, &answer.verdict), (0, &alone.verdict));
    }
    assert_eq!(Answer::from_volumes(&[]), None);
}

#[test]
fn the_problem_that_is_waited_for_most_is_the_answer_and_names_its_volume() {
    let volumes = [
        judged("/data (data)", &reads(1_000)),
        judged("/wal (log)", &slow_reads(100)),
        judged("/spill (temp)", &slow_reads(20)),
    ];
    assert_eq!(volumes[0].verdict.verdict, VerdictKind::Healthy, "{:#?}", volumes[0].verdict);
    assert_eq!(volumes[2].verdict.verdict, VerdictKind::StorageDegraded, "{:#?}", volumes[2].verdict);
    let answer = answer(&volumes);
    assert_eq!((answer.volume, answer.verdict.verdict), (1, VerdictKind::StorageDegraded));
    assert_eq!(answer.verdict.summary, format!("on /wal (log): {}", volumes[1].verdict.summary));
    assert_eq!(answer.verdict.next_step, volumes[1].verdict.next_step);
}

#[test]
fn without_a_problem_the_smallest_headroom_is_the_answer() {
    let volumes = [
        judged("/data", &reads(100)),
        judged("/more", &reads(2_000)),
        // Hardly any I/O, and none that anybody waits for: nothing can be said, and nothing need be.
        judged("/idle", &steady(Load { reads: 1, read_ns: 4 * MS, ..Load::default() })),
    ];
    assert_eq!(volumes[2].verdict.verdict, VerdictKind::CannotSay);
    let answer = answer(&volumes);
    assert_eq!((answer.volume, answer.headroom_of), (1, Some(1)), "{answer:#?}");
    assert_eq!(answer.verdict.verdict, VerdictKind::Healthy);
    assert_eq!(answer.verdict.headroom, volumes[1].verdict.headroom);
    assert_eq!(answer.verdict.confidence, Confidence::High, "{:?}", answer.verdict.doubts);
}

#[test]
fn the_headroom_is_the_smallest_of_all_volumes_at_each_end() {
    let with = |headroom: [f64; 3], reason: Option<&str>, mut one: Judged| {
        one.verdict.headroom = Some(headroom[0]);
        one.verdict.headroom_low = Some(headroom[1]);
        one.verdict.headroom_high = Some(headroom[2]);
        one.verdict.headroom_reason = reason.map(str::to_owned);
        one
    };
    let volumes = [
        with([4.0, 4.0, 4.0], None, judged("/data", &reads(1_000))),
        with([9.0, 3.0, 60.0], Some("commits share log writes"), judged("/wal", &slow_reads(100))),
    ];
    let answer = answer(&volumes);
    assert_eq!((answer.volume, answer.headroom_of), (1, Some(0)));
    let verdict = answer.verdict;
    assert_eq!(
        (verdict.headroom, verdict.headroom_low, verdict.headroom_high),
        (Some(4.0), Some(3.0), Some(4.0))
    );
    assert_eq!(verdict.headroom_reason, None, "the reason is that of the figure");
}

#[test]
fn what_was_never_measured_is_the_answer_only_with_most_of_the_waiting() {
    let waited_for = [judged("/data", &reads(100)), never_measured("/wal", &reads(1_000))];
    let unknown = answer(&waited_for);
    assert_eq!((unknown.volume, unknown.verdict.verdict), (1, VerdictKind::CannotSay));
    let verdict = &unknown.verdict;
    assert_eq!((verdict.headroom, verdict.headroom_low, verdict.headroom_high), (None, None, None));
    assert_eq!(unknown.headroom_of, None);

    let beside = answer(&[judged("/data", &reads(1_000)), never_measured("/wal", &reads(200))]);
    assert_eq!((beside.volume, beside.verdict.verdict), (0, VerdictKind::Healthy));
    assert_eq!(beside.verdict.confidence, Confidence::Medium);
    let [doubt] = &beside.verdict.doubts[..] else { panic!("{:?}", beside.verdict.doubts) };
    assert!(doubt.contains("on /wal, 17 % of the time waited: this storage was never measured"), "{doubt}");

    let hardly = answer(&[judged("/data", &reads(1_000)), never_measured("/wal", &reads(40))]);
    assert_eq!(hardly.verdict.doubts, Vec::<String>::new());
}

#[test]
fn a_problem_is_not_hidden_by_what_was_never_measured() {
    let both = answer(&[never_measured("/data", &reads(2_000)), judged("/wal", &slow_reads(20))]);
    assert_eq!((both.volume, both.verdict.verdict), (1, VerdictKind::StorageDegraded));
    assert!(both.verdict.doubts.iter().any(|doubt| doubt.contains("on /data, 91 %")), "{:?}", both.verdict);
}

#[test]
fn where_nothing_can_be_said_of_any_the_one_most_waited_for_is_named() {
    let volumes = [never_measured("/data", &reads(200)), never_measured("/wal", &reads(300))];
    let both = answer(&volumes);
    assert_eq!((both.volume, both.verdict.verdict), (1, VerdictKind::CannotSay));
    let idle = || never_measured("/data", &steady(Load::default()));
    assert_eq!(answer(&[idle(), idle()]).volume, 0, "the volume of the data");
}
