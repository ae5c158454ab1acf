//! No result, however odd, keeps a report from being written.

use crate::tree;
use diskspd::profile::{Profile, Target, TimeSpan};
use diskspd::report::{CpuFacts, Report, SystemFacts, text, text_2016, xml};
use proptest::prelude::*;
use workload::{
    CoreUse, Direction, LatencyHistogram, PhaseResult, RunResult, Shape, Slice, Tally, ThreadShare,
};

/// Zeros, ones and the largest are as likely as all others together.
fn odd() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>()]
}

fn tally() -> impl Strategy<Value = Tally> {
    (odd(), odd(), odd(), prop::num::f64::ANY, odd(), odd()).prop_map(
        |(count, bytes, stall_ns, squares_ns2, ns_min, ns_max)| Tally {
            count,
            bytes,
            stall_ns,
            squares_ns2,
            ns_min,
            ns_max,
        },
    )
}

fn series() -> impl Strategy<Value = Vec<Slice>> {
    let slice = (odd(), tally(), tally()).prop_map(|(end_ns, read, write)| Slice {
        end_ns,
        read,
        write,
        ..Slice::default()
    });
    prop::collection::vec(slice, 0..4)
}

fn direction() -> impl Strategy<Value = Direction> {
    // HdrHistogram itself adds counts up without a check; no run has more I/Os than these.
    let latencies = prop::collection::vec((odd(), 0_u64..1 << 60), 0..3);
    (odd(), odd(), latencies).prop_map(|(count, bytes, latencies)| {
        let mut latency = LatencyHistogram::new();
        latencies.iter().for_each(|(ns, n)| latency.record_n(*ns, *n));
        Direction { count, bytes, latency, ..Direction::default() }
    })
}

fn thread() -> impl Strategy<Value = ThreadShare> {
    (tally(), tally(), odd(), series()).prop_map(|(read, write, cpu_ns, series)| ThreadShare {
        read,
        write,
        cpu_ns,
        series,
    })
}

prop_compose! {
    fn run_result()(
        path in ".*",
        elapsed_ns in odd(),
        slice_ns in odd(),
        target_bytes in odd(),
        read in direction(),
        write in direction(),
        series in series(),
        threads in prop::collection::vec(thread(), 0..3),
        cores in prop::collection::vec((any::<u32>(), prop::num::f64::ANY), 0..3),
    ) -> RunResult {
        let core = |(core, percent)| CoreUse { core, user_percent: percent, ..CoreUse::default() };
        let cores = cores.into_iter().map(core).collect();
        let empty = RunResult::empty(Shape::random_read(4096).into(), path);
        RunResult { elapsed_ns, slice_ns, target_bytes, read, write, series, threads, cores, ..empty }
    }
}

/// Paths of any characters but NUL, which no path has and XML has no way to say.
fn time_span() -> impl Strategy<Value = TimeSpan> {
    let target = ("[^\\x00]*", any::<u8>(), any::<u8>(), any::<u64>()).prop_map(
        |(path, write_percent, random_percent, base_bytes)| Target {
            write_percent,
            random_percent,
            base_bytes,
            ..Target::new(path)
        },
    );
    (any::<bool>(), any::<bool>(), 0_u32..3, prop::collection::vec(target, 0..3)).prop_map(
        |(measure_latency, iops_deviation, threads_total, targets)| TimeSpan {
            measure_latency,
            iops_deviation,
            threads_total,
            targets,
            ..TimeSpan::new()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn every_result_has_its_report(
        command_line in ".*",
        time_spans in prop::collection::vec(time_span(), 0..3),
        phases in prop::collection::vec(prop::collection::vec(run_result(), 0..3), 0..3),
        started_unix_ns in prop::option::of(odd()),
        cpu_ids in prop::collection::vec(any::<u32>(), 0..3),
    ) {
        let phases: Vec<PhaseResult> =
            phases.into_iter().map(|results| PhaseResult { name: String::new(), results }).collect();
        let cpus = cpu_ids.into_iter().map(|id| CpuFacts { id, ..CpuFacts::default() }).collect();
        let system = SystemFacts { started_unix_ns, cpus, ..SystemFacts::default() };
        let profile = Profile { time_spans, ..Profile::default() };
        let report = Report { command_line: &command_line, profile: &profile, system: &system, phases: &phases };
        let spans = profile.time_spans.len().min(phases.len());
        for text in [text(&report), text_2016(&report)] {
            prop_assert!(text.matches("\nResults for timespan ").count() >= spans);
        }
        prop_assert_eq!(tree::read(&xml(&report)).all("Results.TimeSpan").len(), spans);
    }
}
