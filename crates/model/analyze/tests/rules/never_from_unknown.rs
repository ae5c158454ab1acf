use crate::build::*;
use analyze::FindingKind;
use filestats::*;
use proptest::prelude::*;

/// Operations of any number and size, timed or not.
fn any_ops() -> impl Strategy<Value = Ops> {
    (
        any::<u32>(),
        any::<u64>(),
        prop_oneof![any::<u64>().prop_map(Figure::Known), Just(Figure::unknown(Reason::TimingOff))],
    )
        .prop_map(|(count, bytes, stall_ns)| Ops { count: count.into(), bytes, stall_ns })
}

fn any_counters() -> impl Strategy<Value = Counters> {
    (any_ops(), any_ops(), prop::option::of(any_ops())).prop_map(|(read, write, sync)| Counters {
        read,
        write,
        sync: sync.map_or(Figure::unknown(Reason::NotCounted), Figure::Known),
        busy_ns: Figure::unknown(Reason::NotCounted),
    })
}

fn untimed(mut counters: Counters) -> Counters {
    let unknown = Figure::unknown(Reason::TimingOff);
    (counters.read.stall_ns, counters.write.stall_ns) = (unknown, unknown);
    counters.sync = counters.sync.map(|sync| Ops { stall_ns: unknown, ..sync });
    counters
}

proptest! {
    #[test]
    fn untimed_files_of_unknown_size_are_never_said_to_be_slow_serial_read_again_or_at_work(
        added in prop::collection::vec(any_counters(), 30),
        waits in prop::collection::vec(any::<u64>(), 30),
    ) {
        let course = course(30, 15 * S);
        let steps = added.into_iter().enumerate().map(|(at, added)| (at + 1, untimed(added)));
        let file = sized(file("/data/shop.db", &course, steps), Figure::unknown(Reason::NotCounted));
        let steps = waits.into_iter().enumerate().map(|(at, wait_ns)| {
            let wait_ns = Figure::Known(wait_ns);
            (at + 1, Figure::Known(WaitDelta { elapsed_ns: 15 * S, count: Figure::Known(1), wait_ns }))
        });
        let class = WaitClass::DataRead;
        let waits = WaitSeries { instance: "engine".into(), event: "x".into(), class, steps: steps.collect() };
        let analysis = with_waits(&course, &[file], &[waits]);
        for finding in &analysis.findings {
            let allowed = [FindingKind::NoNormal, FindingKind::ServiceLevel, FindingKind::Checkpoint];
            prop_assert!(allowed.contains(&finding.kind), "{finding:?}");
            prop_assert!(finding.weight < findings::Weight::Warning);
        }
    }

    #[test]
    fn unknown_intervals_give_nothing_but_their_reason(
        reasons in prop::collection::vec(prop_oneof![Just(Reason::Restart), Just(Reason::CounterFell), Just(Reason::Lost)], 30),
    ) {
        let course = course(30, 15 * S);
        let mut file = file("/data/shop.db", &course, []);
        file.steps = reasons.iter().enumerate().map(|(at, reason)| Step { at: at + 1, added: Figure::unknown(*reason) }).collect();
        (file.known_ns, file.unknown_ns) = (0, 30 * 15 * S);
        let analysis = analysis(&course, &[file]);
        prop_assert_eq!(analysis.coverage.known_share, Some(0.0));
        for finding in &analysis.findings {
            let allowed = [FindingKind::Epoch, FindingKind::Gap, FindingKind::ServiceLevel, FindingKind::NoNormal];
            prop_assert!(allowed.contains(&finding.kind), "{finding:?}");
        }
    }

    #[test]
    fn the_extremes_break_nothing_and_every_fact_is_a_number(
        files in prop::collection::vec(prop::collection::vec((1_usize..30, any_counters()), 0..30), 1..4),
        size in prop_oneof![Just(0), any::<u64>()],
    ) {
        let course = course(30, 15 * S);
        let files: Vec<FileSeries> = files
            .into_iter()
            .enumerate()
            .map(|(n, mut added)| {
                added.sort_by_key(|(at, _)| *at);
                added.dedup_by_key(|(at, _)| *at);
                let made = sized(file(&format!("/data/{n}"), &course, added), Figure::Known(size));
                if n == 0 { log(made) } else { made }
            })
            .collect();
        let analysis = analysis(&course, &files);
        for finding in &analysis.findings {
            prop_assert!(finding.facts.iter().all(|fact| fact.value.is_finite()));
            prop_assert!(!finding.text.contains("NaN") && !finding.text.contains("inf"), "{}", finding.text);
        }
        let json = serde_json::to_string(&analysis).unwrap();
        prop_assert_eq!(serde_json::from_str::<analyze::Analysis>(&json).unwrap().findings.len(), analysis.findings.len());
    }
}
