//! A workload in a sentence.

use charts::number;
use workload::{Arrival, Distribution, RunResult, SyncKind, Workload, format_bytes};

/// "random 70/30 8 KiB, 2 outstanding x 2 threads, 10,000 IOPS at random times".
pub(crate) fn sentence(result: &RunResult) -> String {
    let workload = &result.workload;
    let name = if workload.name.is_empty() { String::new() } else { format!("{}: ", workload.name) };
    let threads = if workload.threads == 1 { "thread" } else { "threads" };
    let mut parts = vec![
        format!("{name}{}", result.shape_words()),
        if result.settings_unreported {
            "outstanding I/Os and threads unknown".into()
        } else {
            format!("{} outstanding x {} {threads}", workload.outstanding, workload.threads)
        },
    ];
    parts.extend(sizes(workload));
    parts.extend(places(workload));
    parts.extend(pace(workload));
    parts.join(", ")
}

fn sizes(workload: &Workload) -> Option<String> {
    let each = workload.sizes.iter();
    let shares: Vec<String> = each
        .map(|size| format!("{} {} %", format_bytes(u64::from(size.block_bytes)), size.percent))
        .collect();
    (!shares.is_empty()).then(|| format!("sizes {}", shares.join(" ")))
}

fn places(workload: &Workload) -> Vec<String> {
    let access = &workload.access;
    let mut parts: Vec<String> = match &access.distribution {
        Distribution::Uniform => Vec::new(),
        Distribution::Zipf { theta } => vec![format!("zipf {theta}")],
        Distribution::Pareto { h } => vec![format!("pareto {h}")],
        Distribution::Zones { zones } => vec![format!("{} zones", zones.len())],
    };
    parts.extend(access.random_percent.map(|percent| format!("{percent} % random")));
    if access.base_bytes > 0 || access.length_bytes.is_some() {
        let from = format_bytes(access.base_bytes);
        let length =
            access.length_bytes.map_or("to the end".into(), |bytes| format!("for {}", format_bytes(bytes)));
        parts.push(format!("from {from} {length}"));
    }
    parts
}

fn pace(workload: &Workload) -> Vec<String> {
    let mut parts = match workload.arrival {
        Arrival::Closed => Vec::new(),
        Arrival::Constant { iops } => vec![format!("{} IOPS at even times", number::rate(iops))],
        Arrival::Poisson { iops } => vec![format!("{} IOPS at random times", number::rate(iops))],
        Arrival::Recorded { speed } => vec![format!("recorded times at {} speed", number::times(speed))],
    };
    parts.extend(workload.limit.iops.map(|iops| format!("at most {} IOPS", number::rate(iops))));
    parts.extend(workload.limit.bytes_per_s.map(|bytes| format!("at most {}/s", number::bytes(bytes))));
    parts.extend(workload.burst.map(|burst| {
        let pause = number::time(burst.pause.as_nanos() as f64);
        format!("bursts of {} I/Os and {pause} of rest", number::count(u64::from(burst.ios)))
    }));
    parts.extend(workload.sync.map(|sync| {
        let call = match sync.how {
            SyncKind::Fsync => "fsync",
            SyncKind::Fdatasync => "fdatasync",
        };
        match sync.writes {
            1 => format!("{call} after each write"),
            writes => format!("{call} after {writes} writes"),
        }
    }));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use workload::{Access, Burst, Limit, Shape, SizeShare, SyncEvery};

    #[test]
    fn a_sentence_has_what_the_workload_sets_and_nothing_else() {
        let sentence = |workload: &Workload| sentence(&RunResult::empty(workload.clone(), String::new()));
        let plain = Workload::from(Shape::random_read(8192));
        assert_eq!(sentence(&plain), "random read 8 KiB, 1 outstanding x 1 thread");
        let full = Workload {
            name: "log".into(),
            threads: 2,
            access: Access {
                distribution: Distribution::Zipf { theta: 0.9 },
                base_bytes: 1 << 30,
                ..Access::default()
            },
            sizes: vec![SizeShare { block_bytes: 8192, percent: 100 }],
            arrival: Arrival::Poisson { iops: 10_000.0 },
            limit: Limit { iops: None, bytes_per_s: Some(1_048_576.0) },
            burst: Some(Burst { ios: 10, pause: Duration::from_millis(5) }),
            sync: Some(SyncEvery { writes: 1, how: SyncKind::Fdatasync }),
            ..plain
        };
        assert_eq!(
            sentence(&full),
            "log: random read 8 KiB, 1 outstanding x 2 threads, sizes 8 KiB 100 %, zipf 0.9, from 1 GiB to the end, \
             10,000 IOPS at random times, at most 1 MiB/s, bursts of 10 I/Os and 5.00 ms of rest, \
             fdatasync after each write"
        );
    }

    #[test]
    fn settings_that_another_tool_did_not_report_are_unknown() {
        let imported = RunResult {
            settings_unreported: true,
            ..RunResult::empty(Workload::from(Shape::random_read(8192)), String::new())
        };
        let words = "read 8 KiB, pattern and caching unknown, outstanding I/Os and threads unknown";
        assert_eq!(sentence(&imported), words);
    }

    #[test]
    fn a_replay_is_described_without_the_settings_that_its_trace_overrules() {
        let replayed = |arrival| {
            let workload = Workload { arrival, ..Workload::from(Shape::random_read(8192)) };
            sentence(&RunResult { replayed: true, ..RunResult::empty(workload, String::new()) })
        };
        assert_eq!(replayed(Arrival::Closed), "a recorded trace, 1 outstanding x 1 thread");
        assert_eq!(
            replayed(Arrival::Recorded { speed: 2.0 }),
            "a recorded trace, 1 outstanding x 1 thread, recorded times at 2 x speed"
        );
    }
}
