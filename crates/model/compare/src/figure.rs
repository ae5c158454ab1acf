use serde::{Deserialize, Serialize};
use statistics::{SAMPLES_ABOVE_MIN, supports_percentile};
use std::fmt;
use workload::{Direction, LatencyFigures, RunResult};

/// Figure of a result that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Operations a second.
    Iops,
    /// MiB a second.
    Throughput,
    /// Mean latency.
    Mean,
    /// Median latency.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// 99.99th percentile.
    P9999,
    /// The longest latency.
    Max,
}

/// Operations of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedOperations"))]
#[serde(rename_all = "kebab-case")]
pub enum Operations {
    /// Reads and writes together.
    All,
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// `fsync` and `fdatasync` calls.
    Syncs,
    /// Reads of an open loop, from their intended start.
    ReadResponses,
    /// Writes of an open loop, from their intended start.
    WriteResponses,
}

/// A figure of a result: "IOPS", "p99 of reads".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedFigure"))]
pub struct Figure {
    /// The measure.
    pub measure: Measure,
    /// The operations.
    #[serde(rename = "of")]
    pub operations: Operations,
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FigureUnit {
    /// Operations a second.
    PerSecond,
    /// MiB a second.
    MibPerSecond,
    /// Nanoseconds.
    Ns,
    /// Outstanding I/Os.
    Outstanding,
}

impl Measure {
    /// In the order of a table.
    pub(crate) const LATENCIES: [Measure; 7] = [
        Measure::Mean,
        Measure::P50,
        Measure::P90,
        Measure::P99,
        Measure::P999,
        Measure::P9999,
        Measure::Max,
    ];

    /// The percentile; `None` where the measure is no percentile.
    pub fn percent(self) -> Option<f64> {
        match self {
            Measure::P50 => Some(50.0),
            Measure::P90 => Some(90.0),
            Measure::P99 => Some(99.0),
            Measure::P999 => Some(99.9),
            Measure::P9999 => Some(99.99),
            _ => None,
        }
    }

    /// Whether a higher figure is a faster result.
    pub fn higher_is_faster(self) -> bool {
        matches!(self, Measure::Iops | Measure::Throughput)
    }

    /// Its unit.
    pub fn unit(self) -> FigureUnit {
        match self {
            Measure::Iops => FigureUnit::PerSecond,
            Measure::Throughput => FigureUnit::MibPerSecond,
            _ => FigureUnit::Ns,
        }
    }

    /// Margin of this figure, from that for rates, means and medians: the tail varies more, and a few percent
    /// of it matter less.
    pub fn margin(self, margin: f64) -> f64 {
        match self {
            Measure::P90 | Measure::P99 | Measure::P999 | Measure::P9999 | Measure::Max => {
                TAIL_MARGIN * margin
            }
            _ => margin,
        }
    }
}

/// The margin of the tail is this many times that of rates, means and medians.
const TAIL_MARGIN: f64 = 5.0;

impl Operations {
    /// The latencies of those operations; `None` where none were done, or none are known.
    pub(crate) fn latency(self, run: &RunResult) -> Option<LatencyFigures<'_>> {
        let found = match self {
            Operations::All => run.total_latency(),
            Operations::Reads => run.read_latency(),
            Operations::Writes => run.write_latency(),
            Operations::Syncs => run.sync_latency(),
            Operations::ReadResponses => LatencyFigures::from(&run.response.as_ref()?.read),
            Operations::WriteResponses => LatencyFigures::from(&run.response.as_ref()?.write),
        };
        (found.count() > 0).then_some(found)
    }

    fn moved(self, run: &RunResult) -> (u64, u64) {
        let of = |direction: &Direction| (direction.count, direction.bytes);
        match self {
            Operations::All => (run.ios(), run.read.bytes.saturating_add(run.write.bytes)),
            Operations::Reads | Operations::ReadResponses => of(&run.read),
            Operations::Writes | Operations::WriteResponses => of(&run.write),
            Operations::Syncs => of(&run.sync),
        }
    }
}

impl Figure {
    /// Value of a run; the error says why there is no figure.
    pub(crate) fn value(self, run: &RunResult) -> Result<f64, String> {
        if run.elapsed_ns == 0 {
            return Err("no time was measured".into());
        }
        let (count, bytes) = self.operations.moved(run);
        let value = match self.measure {
            Measure::Iops => count as f64 / run.elapsed_s(),
            Measure::Throughput => bytes as f64 / run.elapsed_s() / (1024.0 * 1024.0),
            measure => {
                let latency = self.operations.latency(run).ok_or_else(|| self.missing(count))?;
                self.enough(latency.count())?;
                let ns = match measure.percent() {
                    Some(percent) => latency.percentile_ns(percent).map(|ns| ns as f64),
                    None if measure == Measure::Max => latency.max_ns().map(|ns| ns as f64),
                    None => latency.mean_ns(),
                };
                ns.ok_or_else(|| self.missing(count))?
            }
        };
        if value > 0.0 && value.is_finite() { Ok(value) } else { Err(format!("no {}", self.operations)) }
    }

    /// Why a run with `count` of the operations has no such latency.
    fn missing(self, count: u64) -> String {
        match count {
            0 => format!("no {}", self.operations),
            _ => "the other tool did not report it".into(),
        }
    }

    /// Refuses a percentile with too few operations above it.
    pub(crate) fn enough(self, count: u64) -> Result<(), String> {
        let Some(percent) = self.measure.percent() else { return Ok(()) };
        if supports_percentile(count, percent) {
            return Ok(());
        }
        let needed = SAMPLES_ABOVE_MIN / (1.0 - percent / 100.0);
        Err(format!("{count} {} are too few for it: {needed:.0} are needed", self.operations))
    }
}

/// "reads", "reads, from when they were due".
impl fmt::Display for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operations::All => "I/Os",
            Operations::Reads => "reads",
            Operations::Writes => "writes",
            Operations::Syncs => "syncs",
            Operations::ReadResponses => "reads from when due",
            Operations::WriteResponses => "writes from when due",
        })
    }
}

/// "p99".
impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Measure::Iops => "IOPS",
            Measure::Throughput => "MiB/s",
            Measure::Mean => "mean",
            Measure::P50 => "p50",
            Measure::P90 => "p90",
            Measure::P99 => "p99",
            Measure::P999 => "p99.9",
            Measure::P9999 => "p99.99",
            Measure::Max => "max",
        })
    }
}

/// "IOPS", "read IOPS", "p99 of reads", "syncs a second".
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { measure, operations } = self;
        match operations {
            Operations::All if measure.higher_is_faster() => measure.fmt(f),
            Operations::Reads if measure.higher_is_faster() => write!(f, "read {measure}"),
            Operations::Writes if measure.higher_is_faster() => write!(f, "write {measure}"),
            Operations::Syncs if *measure == Measure::Iops => f.write_str("syncs a second"),
            operations => write!(f, "{measure} of {operations}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{Shape, Workload};

    #[test]
    fn a_percentile_without_enough_ios_behind_it_is_no_figure() {
        let mut run = RunResult::empty(Workload::from(Shape::random_read(8192)), "t".into());
        run.elapsed_ns = 1_000_000_000;
        run.read.count = 999;
        run.read.latency.record_n(100_000, 999);
        let p99 = Figure { measure: Measure::P99, operations: Operations::Reads };
        assert_eq!(p99.value(&run).unwrap_err(), "999 reads are too few for it: 1000 are needed");
        assert!(Figure { measure: Measure::P90, operations: Operations::Reads }.value(&run).is_ok());
        assert_eq!(
            Figure { measure: Measure::Mean, operations: Operations::Writes }.value(&run).unwrap_err(),
            "no writes"
        );
    }

    #[test]
    fn a_figure_is_called_as_people_call_it() {
        let name = |measure, operations| Figure { measure, operations }.to_string();
        assert_eq!(name(Measure::Iops, Operations::All), "IOPS");
        assert_eq!(name(Measure::P999, Operations::Writes), "p99.9 of writes");
        assert_eq!(name(Measure::Iops, Operations::Syncs), "syncs a second");
    }
}
