use crate::chart::Chart;
use crate::palette::Ink;
use crate::run::{self, NamedRun};
use crate::words::capitalised;
use workload::{LatencyHistogram, RunResult};

/// A kind of latency that a run has.
struct LatencyKind {
    name: &'static str,
    /// Where the chart shows one run.
    ink: Ink,
    histogram: fn(&RunResult) -> Option<&LatencyHistogram>,
}

const KINDS: [LatencyKind; 5] = [
    LatencyKind { name: "reads", ink: Ink::Read, histogram: |result| Some(&result.read.latency) },
    LatencyKind { name: "writes", ink: Ink::Commit, histogram: |result| Some(&result.write.latency) },
    LatencyKind { name: "syncs", ink: Ink::Series(3), histogram: |result| Some(&result.sync.latency) },
    LatencyKind {
        name: "reads, from their intended start",
        ink: Ink::Series(4),
        histogram: |result| result.response.as_ref().map(|response| &response.read),
    },
    LatencyKind {
        name: "writes, from their intended start",
        ink: Ink::Series(5),
        histogram: |result| result.response.as_ref().map(|response| &response.write),
    },
];

/// Titles of panels with their figures. One run: all its kinds in one panel, which is called `alone`. Several: a panel
/// for each kind, the runs over each other. A note of the chart says so where there is no latency.
pub(super) fn panels<T>(
    chart: &mut Chart,
    runs: &[NamedRun],
    alone: &str,
    figure: impl Fn(String, Ink, &LatencyHistogram) -> Option<T>,
) -> Vec<(String, Vec<T>)> {
    let drawn = chart.distinguishable(runs.iter().zip(run::labels(runs)).collect(), "more runs");
    let mut panels: Vec<(String, Vec<T>)> = if let [(run, _)] = &drawn[..] {
        let kind = |kind: &LatencyKind| figure(kind.name.into(), kind.ink, (kind.histogram)(&run.result)?);
        vec![(alone.to_owned(), KINDS.iter().filter_map(kind).collect())]
    } else {
        let panel = |kind: &LatencyKind| {
            let line = |(at, (run, label)): (usize, &(&NamedRun, String))| {
                figure(label.clone(), Ink::series(at), (kind.histogram)(&run.result)?)
            };
            (capitalised(kind.name), drawn.iter().enumerate().filter_map(line).collect())
        };
        KINDS.iter().map(panel).collect()
    };
    panels.retain(|(_, figures)| !figures.is_empty());
    if panels.is_empty() {
        chart.notes.push("No I/O completed: there are no latencies.".into());
    }
    panels
}
