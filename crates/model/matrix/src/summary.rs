use crate::{Estimate, Forecast, Matrix, Point, RunKey};
use serde::Serialize;
use workload::{LatencyHistogram, RunResult, Shape};

/// The result of a matrix: the value that its text, CSV, JSON and page are views of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Its number in the history.
    pub id: i64,
    /// The matrix.
    pub matrix: Matrix,
    /// A row for each point, as listed.
    pub rows: Vec<Row>,
    /// Forecast of the remaining runs; `None` when all are done.
    pub left: Option<Forecast>,
}

/// The result of a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MatrixRow"))]
pub struct Row {
    /// The point.
    #[serde(flatten)]
    pub point: Point,
    /// The path of its target.
    pub target_path: String,
    /// Shape of each of its I/Os.
    pub shape: Shape,
    /// I/Os a second; `None` before the first run.
    pub iops: Option<Estimate>,
    /// MiB a second.
    pub mib_per_s: Option<Estimate>,
    /// Mean latency of all I/Os of all its runs; `None` without I/Os.
    pub latency_ns: Option<f64>,
    /// 99th percentile over all its runs; `None` with too few I/Os behind it.
    pub latency_ns_p99: Option<u64>,
    /// I/Os that failed.
    pub failed: u64,
    /// Its runs that are done.
    pub runs: Vec<RunFigures>,
    /// Why (the other) runs were left out.
    pub skipped: Option<String>,
    /// Runs still to come.
    pub planned: u32,
}

/// One run of a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunFigures {
    /// Its number in the history.
    pub id: i64,
    /// Number of the repeat, from 0 on.
    pub repeat: u32,
    /// Its seed.
    pub seed: u64,
    /// When its measured part began.
    pub started_unix_ns: u64,
    /// I/Os a second.
    pub iops: f64,
    /// MiB a second.
    pub mib_per_s: f64,
    /// Mean latency; `None` without I/Os.
    pub latency_ns: Option<f64>,
    /// 99th percentile; `None` with too few I/Os behind it.
    pub latency_ns_p99: Option<u64>,
}

impl Row {
    /// Of a point and its results, each with its number in the history.
    pub fn from_results(matrix: &Matrix, point: &Point, results: &[(RunKey, i64, RunResult)]) -> Row {
        let mut all = LatencyHistogram::new();
        let mut failed = 0;
        let mut runs = Vec::new();
        for (key, id, result) in results {
            let latency = result.latency();
            runs.push(RunFigures {
                id: *id,
                repeat: key.repeat,
                seed: result.workload.seed,
                started_unix_ns: result.started_unix_ns,
                iops: result.iops(),
                mib_per_s: result.mib_per_s(),
                latency_ns: latency.mean_ns(),
                latency_ns_p99: p99(&latency),
            });
            failed += result.failed();
            all.merge(&latency);
        }
        let estimate =
            |of: fn(&RunFigures) -> f64| Estimate::from_values(&runs.iter().map(of).collect::<Vec<_>>());
        Row {
            point: point.clone(),
            target_path: matrix.targets[point.target].clone(),
            shape: matrix.workload(point, 0).shape,
            iops: estimate(|run| run.iops),
            mib_per_s: estimate(|run| run.mib_per_s),
            latency_ns: all.mean_ns(),
            latency_ns_p99: p99(&all),
            failed,
            runs,
            skipped: None,
            planned: 0,
        }
    }
}

fn p99(latency: &LatencyHistogram) -> Option<u64> {
    latency.supports_percentile(99.0).then(|| latency.percentile_ns(99.0))?
}
