//! Whatever the values, a page comes out: NaN, infinity, 0, nothing at all and the largest numbers.

use crate::sample;
use capability::{Capability, CostModel, Curve, Knee, Point};
use filestats::{
    Counters, Delta, Epoch, Figure, FileKind, Interval, Meaning, Ops, Reason, Sample, Snapshot, WaitClass,
    WaitSample,
};
use proptest::prelude::*;
use report::text::{self, Style};
use report::{Check, Phase, html, json};
use workload::{CoreUse, Direction, RunResult, Shape, Slice, Tally, ThreadShare, Workload};

fn odd() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        Just(0.0),
        Just(-1.0),
        Just(1.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE),
        Just(1e18),
        0.0..1e7_f64,
    ]
}

fn large() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..1_000_000_u64, any::<u64>()]
}

/// The sample with odd numbers wherever there is one; an empty list of them empties the lists.
fn odd_capability(floats: &[f64], whole: &[u64]) -> Capability {
    let mut capability = sample::capability();
    let float = |at: usize| floats.get(at % floats.len().max(1)).copied().unwrap_or(0.0);
    let int = |at: usize| whole.get(at % whole.len().max(1)).copied().unwrap_or(0);
    for (at, curve) in capability.curves.iter_mut().enumerate() {
        let points: Vec<Point> = curve.points.iter().take(floats.len()).cloned().collect();
        *curve = Curve { points, ..curve.clone() };
        for (n, point) in curve.points.iter_mut().enumerate() {
            let at = at + n;
            point.outstanding = int(at) as u32;
            (point.iops, point.latency_ns, point.mib_per_s) = (float(at), float(at + 1), float(at + 2));
            (point.iops_half_width, point.cpu_ns_per_io) = (float(at + 3), float(at + 4));
            (point.latency_ns_max, point.failed, point.ios) = (int(at), int(at + 1), int(at + 2));
        }
        if let Some(knee) = &mut curve.knee {
            *knee = Knee {
                outstanding: float(at),
                iops: float(at + 1),
                low: float(at + 2),
                high: float(at + 3),
                latency_ns_floor: float(at + 4),
                ..knee.clone()
            };
        }
    }
    if let Some(CostModel { read_random, sharing, held_out, error, .. }) = &mut capability.cost_model {
        (read_random.fixed_ns, read_random.per_byte_ns, sharing.bytes) = (float(0), float(1), float(2));
        held_out.iter_mut().for_each(|held| (held.measured_iops, held.predicted_iops) = (float(3), float(4)));
        *error = Some(float(5));
    }
    capability.measured_unix_ns = int(0);
    (capability.conditions.took_s, capability.conditions.foreign_iops) = (float(1), Some(float(2)));
    (capability.conditions.region_bytes, capability.target.free_bytes) = (int(1), int(2));
    capability
}

fn odd_counters(whole: &[u64], at: usize) -> Counters {
    let int = |offset: usize| whole.get((at + offset) % whole.len().max(1)).copied().unwrap_or(0);
    Counters {
        read: Ops::timed(int(0), int(1), int(2)),
        write: Ops { stall_ns: Figure::unknown(Reason::TimingOff), ..Ops::timed(int(3), int(4), 0) },
        sync: if at.is_multiple_of(2) {
            Figure::Known(Ops::timed(int(5), 0, int(6)))
        } else {
            Figure::unknown(Reason::NotCounted)
        },
        busy_ns: Figure::Known(int(7)),
    }
}

fn odd_check(floats: &[f64], whole: &[u64]) -> Check {
    let mut check = sample::demand_exceeds();
    let float = |at: usize| floats.get(at % floats.len().max(1)).copied().unwrap_or(0.0);
    let int = |at: usize| whole.get(at % whole.len().max(1)).copied().unwrap_or(0);
    check.capability = (!floats.is_empty()).then(|| odd_capability(floats, whole));
    check.observation.moments.truncate(whole.len());
    for (at, moment) in check.observation.moments.iter_mut().enumerate() {
        moment.ended_unix_ns = int(at);
        for file in moment.files.iter_mut().chain(&mut moment.device) {
            let delta = Delta { elapsed_ns: int(at + 1), counters: odd_counters(whole, at), latencies: None };
            file.interval = Interval::Known(delta);
        }
    }
    check.phases = vec![Phase { name: String::new(), from_unix_ns: int(0), to_unix_ns: int(1) }];
    let verdict = &mut check.verdict;
    (verdict.utilisation, verdict.headroom) = (Some(float(0)), Some(float(1)));
    verdict
        .evidence
        .iter_mut()
        .enumerate()
        .for_each(|(at, fact)| (fact.value, fact.at) = (float(at), int(at)));
    if let Some(place) = &mut verdict.place {
        (place.outstanding, place.iops) = (float(2), float(3));
        (place.latency_ns, place.expected_ns) = (float(4), float(5));
    }
    check
}

fn odd_run(floats: &[f64], whole: &[u64]) -> RunResult {
    let int = |at: usize| whole.get(at % whole.len().max(1)).copied().unwrap_or(0);
    let float = |at: usize| floats.get(at % floats.len().max(1)).copied().unwrap_or(0.0);
    let mut direction = Direction { count: int(0), bytes: int(1), ..Direction::default() };
    whole.iter().for_each(|ns| direction.latency.record(*ns));
    direction.errors.extend([(5, int(2)), (-7, int(3))]);
    RunResult {
        workload: Workload { outstanding: u32::MAX, threads: u32::MAX, ..Shape::random_read(8192).into() },
        target: String::new(),
        backend: workload::Backend::Blocking,
        started_unix_ns: int(4),
        elapsed_ns: int(5),
        interrupted: false,
        read: direction.clone(),
        write: direction,
        series: whole
            .iter()
            .map(|end_ns| Slice {
                end_ns: *end_ns,
                read: Tally { count: int(6), ..Tally::default() },
                ..Slice::default()
            })
            .collect(),
        cores: floats
            .iter()
            .map(|user_percent| CoreUse {
                user_percent: *user_percent,
                idle_percent: float(1),
                ..CoreUse::default()
            })
            .collect(),
        threads: whole
            .iter()
            .map(|count| ThreadShare {
                read: Tally { count: *count, bytes: int(1), ..Tally::default() },
                cpu_ns: int(2),
                ..ThreadShare::default()
            })
            .collect(),
        ..RunResult::empty(Shape::random_read(8192).into(), String::new())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_check_is_always_shown(
        floats in prop::collection::vec(odd(), 0..9),
        whole in prop::collection::vec(large(), 0..9),
        width in 0..300_usize,
    ) {
        let check = odd_check(&floats, &whole);
        let screen = text::check(&check, &Style { color: false, width });
        prop_assert!(screen.lines().count() <= 40, "{}", screen);
        prop_assert!(screen.lines().all(|line| line.chars().count() <= width.max(80)), "{}", screen);
        let page = html::check(&check);
        prop_assert!(page.ends_with("</html>\n"));
        prop_assert!(!page.contains("NaN") && !page.contains("inf "));
        prop_assert!(json::check(&check).is_object());
    }

    #[test]
    fn a_capability_is_always_shown(
        floats in prop::collection::vec(odd(), 0..9),
        whole in prop::collection::vec(large(), 0..9),
    ) {
        let capability = odd_capability(&floats, &whole);
        prop_assert!(!text::capability(&capability, &Style::default()).is_empty());
        prop_assert!(html::capability(&capability).ends_with("</html>\n"));
        prop_assert!(json::capability(&capability).is_object());
    }

    #[test]
    fn a_run_and_its_intervals_are_always_shown(
        floats in prop::collection::vec(odd(), 0..9),
        whole in prop::collection::vec(large(), 0..9),
    ) {
        let run = odd_run(&floats, &whole);
        let found = findings::findings(&run, &findings::RunConditions::default());
        for columns in [80, 300] {
            let screen = text::run(&run, &found, &Style { color: false, width: columns });
            prop_assert!(screen.lines().all(|line| line.chars().count() <= columns), "{}", screen);
        }
        prop_assert!(json::run(&run, &found).is_object());
        let phases = [workload::PhaseResult { name: String::new(), results: vec![run.clone(), run] }];
        prop_assert!(!text::phases(&phases, |_| found.clone(), &Style::default()).is_empty());
        let snapshot = |at: usize| Snapshot {
            source: String::new(),
            taken_unix_ns: whole.get(at).copied().unwrap_or(0),
            clock_ns: whole.get(at + 1).copied().unwrap_or(0),
            complete: None,
            waits: vec![WaitSample {
                instance: String::new(),
                event: "x".into(),
                class: WaitClass::DataRead,
                epoch: Epoch::for_run(String::new()),
                count: Figure::Known(whole.get(at).copied().unwrap_or(0)),
                wait_ns: Figure::Known(whole.get(at + 1).copied().unwrap_or(0)),
            }],
            notes: vec![],
            samples: vec![Sample {
                file: sample::identity(FileKind::Data, "/x"),
                epoch: Epoch::for_run(String::new()), meaning: Meaning::REQUESTS,
                counters: odd_counters(&whole, at),
                size_bytes: Figure::unknown(Reason::NotCounted),
                latencies: None,
            }],
        };
        let (earlier, later) = (snapshot(0), snapshot(1));
        let rows = filestats::intervals(&earlier, &later, filestats::Rules::default());
        for (earlier, later) in [(&earlier, &later), (&later, &earlier)] {
            let between = report::WatchedInterval::between(earlier, later);
            prop_assert!(!text::intervals(earlier, later, &rows, &between, &Style::default()).is_empty());
            prop_assert!(report::csv::watch(&between).lines().count() > 0);
        }
    }
}
