use crate::chart::Chart;
use crate::palette::Ink;
use crate::run::{self, NamedRun};
use crate::words::capitalised;
use workload::{LatencyFigures, RunResult};

/// The distribution over ranges of latency, as shares of `total`: the number of the range and the share, rising.
/// `latencies` are nanoseconds with their counts, rising.
pub(super) fn shares_by_range(
    latencies: impl Iterator<Item = (u64, u64)>,
    total: f64,
    ranges_a_decade: f64,
) -> Vec<(i32, f64)> {
    let mut shares: Vec<(i32, f64)> = Vec::new();
    for (ns, count) in latencies {
        let range = ((ns as f64).max(1.0).log10() * ranges_a_decade).floor() as i32;
        let share = count as f64 / total;
        match shares.last_mut() {
            Some((last, sum)) if *last == range => *sum += share,
            _ => shares.push((range, share)),
        }
    }
    shares
}

/// A kind of latency that a run has.
struct LatencyKind {
    name: &'static str,
    /// Where the chart shows one run.
    ink: Ink,
    latency: fn(&RunResult) -> Option<LatencyFigures<'_>>,
}

const KINDS: [LatencyKind; 5] = [
    LatencyKind { name: "reads", ink: Ink::Read, latency: |result| Some(result.read_latency()) },
    LatencyKind { name: "writes", ink: Ink::Commit, latency: |result| Some(result.write_latency()) },
    LatencyKind { name: "syncs", ink: Ink::Series(3), latency: |result| Some(result.sync_latency()) },
    LatencyKind {
        name: "reads, from their intended start",
        ink: Ink::Series(4),
        latency: |result| Some(LatencyFigures::from(&result.response.as_ref()?.read)),
    },
    LatencyKind {
        name: "writes, from their intended start",
        ink: Ink::Series(5),
        latency: |result| Some(LatencyFigures::from(&result.response.as_ref()?.write)),
    },
];

/// Titles of panels with their figures. One run: all its kinds in one panel, which is called `alone`. Several: a panel
/// for each kind, the runs over each other. A note of the chart says so where there is no latency.
pub(super) fn panels<T>(
    chart: &mut Chart,
    runs: &[NamedRun],
    alone: &str,
    figure: impl Fn(String, Ink, &LatencyFigures) -> Option<T>,
) -> Vec<(String, Vec<T>)> {
    let drawn = chart.distinguishable(runs.iter().zip(run::labels(runs)).collect(), "more runs");
    let mut panels: Vec<(String, Vec<T>)> = if let [(run, _)] = &drawn[..] {
        let kind = |kind: &LatencyKind| figure(kind.name.into(), kind.ink, &(kind.latency)(&run.result)?);
        vec![(alone.to_owned(), KINDS.iter().filter_map(kind).collect())]
    } else {
        let panel = |kind: &LatencyKind| {
            let line = |(at, (run, label)): (usize, &(&NamedRun, String))| {
                figure(label.clone(), Ink::series(at), &(kind.latency)(&run.result)?)
            };
            (capitalised(kind.name), drawn.iter().enumerate().filter_map(line).collect())
        };
        KINDS.iter().map(panel).collect()
    };
    panels.retain(|(_, figures)| !figures.is_empty());
    if panels.is_empty() {
        chart.notes.push(nothing_drawn(runs).into());
    }
    panels
}

/// Why no run has what a chart draws of latencies.
fn nothing_drawn(runs: &[NamedRun]) -> &'static str {
    if runs.iter().all(|run| run.result.ios() == 0) {
        "No I/O completed: there are no latencies."
    } else if runs.iter().all(|run| run.result.total_latency().count() == 0) {
        "The tool that ran this reported no latencies."
    } else {
        "The tool that ran this reported means or percentiles of its latencies, but no histogram."
    }
}
