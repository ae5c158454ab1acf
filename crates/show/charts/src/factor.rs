//! Factors that differ between runs, and the figures that a heat map shows of them.

use crate::number;
use crate::words::capitalised;
use std::fmt;
use std::str::FromStr;
use workload::{Arrival, LatencyFigures, Pattern, RunResult, format_bytes};

/// A factor that differs between the runs of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Factor {
    /// Bytes of an I/O.
    BlockSize,
    /// I/Os outstanding over all threads.
    Outstanding,
    /// Threads.
    Threads,
    /// Share of writes.
    WriteShare,
    /// Random or sequential.
    Pattern,
    /// The storage.
    Target,
}

/// A figure of a run that a heat map can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// I/Os a second.
    Iops,
    /// MiB a second.
    MibPerS,
    /// Mean latency.
    MeanLatency,
    /// 99 % of the I/Os took no longer.
    P99Latency,
}

/// A value of a factor: sorted by `order`, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Level {
    order: u64,
    /// As a label of a run: "8 outstanding".
    pub(crate) name: String,
    /// As a tick of an axis that is titled: "8".
    pub(crate) tick: String,
}

impl Factor {
    pub(crate) const ALL: [Factor; 6] = [
        Factor::Target,
        Factor::Pattern,
        Factor::WriteShare,
        Factor::BlockSize,
        Factor::Outstanding,
        Factor::Threads,
    ];

    /// With its name on the command line and its title on an axis.
    const NAMES: [(Factor, &'static str, &'static str); 6] = [
        (Factor::BlockSize, "block-size", "block size"),
        (Factor::Outstanding, "outstanding", "outstanding I/Os"),
        (Factor::Threads, "threads", "threads"),
        (Factor::WriteShare, "write-share", "share of writes"),
        (Factor::Pattern, "pattern", "pattern"),
        (Factor::Target, "target", "target"),
    ];

    /// The level of a run.
    pub(crate) fn level(self, result: &RunResult) -> Level {
        let workload = &result.workload;
        let (order, tick, after) = match self {
            Factor::BlockSize if workload.sizes.is_empty() => {
                let bytes = u64::from(workload.shape.block_bytes);
                (bytes, format_bytes(bytes), "")
            }
            Factor::BlockSize => {
                let mean = workload.mean_block_bytes();
                (mean as u64, format!("mix of {}", number::bytes(mean)), "")
            }
            Factor::Outstanding if workload.is_open_loop() => match workload.arrival {
                Arrival::Constant { iops } | Arrival::Poisson { iops } => {
                    (iops.max(0.0) as u64, format!("{} IOPS requested", number::rate(iops)), "")
                }
                _ => (0, "a trace".into(), ""),
            },
            Factor::Outstanding => {
                let total = workload.outstanding_total();
                (u64::from(total), total.to_string(), " outstanding")
            }
            Factor::Threads if workload.threads == 1 => (1, "1".into(), " thread"),
            Factor::Threads => (u64::from(workload.threads), workload.threads.to_string(), " threads"),
            Factor::WriteShare => {
                let percent = workload.shape.write_percent;
                (u64::from(percent), format!("{percent} %"), " writes")
            }
            Factor::Pattern => match workload.shape.pattern {
                Pattern::Random => (0, "random".into(), ""),
                Pattern::Sequential => (1, "sequential".into(), ""),
            },
            Factor::Target => (0, result.target.clone(), ""),
        };
        Level { order, name: format!("{tick}{after}"), tick }
    }

    /// As the title of an axis.
    pub(crate) fn title(self) -> &'static str {
        named(&Factor::NAMES, self).1
    }
}

impl Measure {
    /// With its name on the command line and its title.
    const NAMES: [(Measure, &'static str, &'static str); 4] = [
        (Measure::Iops, "iops", "IOPS"),
        (Measure::MibPerS, "mib-per-s", "MiB/s"),
        (Measure::MeanLatency, "mean", "mean latency"),
        (Measure::P99Latency, "p99", "p99 latency"),
    ];

    pub(crate) fn title(self) -> &'static str {
        named(&Measure::NAMES, self).1
    }

    /// As a title begins; "p99" stays.
    pub(crate) fn heading(self) -> String {
        if self == Measure::P99Latency { self.title().to_owned() } else { capitalised(self.title()) }
    }

    /// Whether it is a time, of which more is worse.
    pub(crate) fn is_time(self) -> bool {
        matches!(self, Measure::MeanLatency | Measure::P99Latency)
    }

    /// The figure of a run; `None` where too few I/Os completed for it.
    pub(crate) fn value(self, result: &RunResult) -> Option<f64> {
        if result.ios() == 0 || result.elapsed_ns == 0 {
            return None;
        }
        match self {
            Measure::Iops => Some(result.iops()),
            Measure::MibPerS => Some(result.mib_per_s()),
            Measure::MeanLatency => result.mean_latency_ns(),
            Measure::P99Latency => p99_ns(&result.total_latency()),
        }
    }
}

/// The 99th percentile, where it is known and enough I/Os completed for it.
pub(crate) fn p99_ns(latency: &LatencyFigures) -> Option<f64> {
    latency.supported_percentile_ns(99.0).map(|ns| ns as f64)
}

impl FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Factor, String> {
        parsed(&Factor::NAMES, "an axis", text)
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Measure, String> {
        parsed(&Measure::NAMES, "a value", text)
    }
}

fn parsed<T: Copy>(names: &[(T, &str, &str)], what: &str, text: &str) -> Result<T, String> {
    let found = names.iter().find(|(_, name, _)| *name == text);
    let known = || names.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(", ");
    found
        .map(|(value, ..)| *value)
        .ok_or_else(|| format!("'{text}' is not {what} of a heat map; give one of {}", known()))
}

/// The name and the title of a value.
fn named<T: PartialEq + Copy>(
    names: &[(T, &'static str, &'static str)],
    value: T,
) -> (&'static str, &'static str) {
    names.iter().find(|(each, ..)| *each == value).map_or(("", ""), |(_, name, title)| (name, title))
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(named(&Factor::NAMES, *self).0)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(named(&Measure::NAMES, *self).0)
    }
}
