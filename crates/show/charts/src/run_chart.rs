//! The charts of runs: those that can be named on the command line, and those that fit.

use crate::chart::Chart;
use crate::factor::{Factor, Measure};
use crate::palette::SERIES_INKS;
use crate::run::NamedRun;
use crate::runs::{heat_map, histogram, latency_map, load_curve, over_time, percentiles};
use crate::sweep;
use std::fmt;
use std::str::FromStr;

/// A chart that runs can be drawn as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunChart {
    /// I/Os a second and latency against outstanding I/Os.
    LoadCurve,
    /// The load curve with knees and crossings, and latency, IOPS and outstanding I/Os over time.
    Sweep,
    /// A figure of every run over two of a matrix's axes.
    HeatMap {
        /// Across.
        x: Factor,
        /// Upwards.
        y: Factor,
        /// The figure in the cells.
        value: Measure,
    },
    /// Latency against percentiles, on an axis of nines.
    Percentiles,
    /// Rates and latencies, a point each slice of the run.
    OverTime,
    /// How the latencies were distributed in each slice of the run.
    LatencyOverTime,
    /// I/Os by their latency.
    Histogram,
}

/// Text that names no chart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownChart(String);

impl RunChart {
    /// IOPS over block size and outstanding I/Os.
    pub const HEAT_MAP: RunChart =
        RunChart::HeatMap { x: Factor::Outstanding, y: Factor::BlockSize, value: Measure::Iops };

    /// The charts with their names on the command line.
    pub const NAMES: [(&'static str, RunChart); 7] = [
        ("load-curve", RunChart::LoadCurve),
        ("sweep", RunChart::Sweep),
        ("heat-map", RunChart::HEAT_MAP),
        ("percentiles", RunChart::Percentiles),
        ("over-time", RunChart::OverTime),
        ("latency-over-time", RunChart::LatencyOverTime),
        ("histogram", RunChart::Histogram),
    ];

    /// Draws the runs. Never fails: where there is nothing to draw, the chart is empty and its notes say why.
    pub fn draw(self, runs: &[NamedRun]) -> Chart {
        match self {
            RunChart::LoadCurve => load_curve::load_curve(runs),
            RunChart::Sweep => sweep::chart_of_runs(runs),
            RunChart::HeatMap { x, y, value } => heat_map::heat_map(runs, x, y, value),
            RunChart::Percentiles => percentiles::percentiles(runs),
            RunChart::OverTime => over_time::over_time(runs),
            RunChart::LatencyOverTime => latency_map::latency_map(runs),
            RunChart::Histogram => histogram::histogram(runs),
        }
    }

    /// The charts that suit these runs.
    pub fn fitting(runs: &[NamedRun]) -> Vec<RunChart> {
        let levels = |factor: Factor| crate::run::levels(factor, runs).len();
        let mut charts = Vec::new();
        if levels(Factor::Outstanding) > 2 {
            charts.push(RunChart::LoadCurve);
        }
        let mut factors: Vec<(usize, Factor)> =
            Factor::ALL.into_iter().map(|factor| (levels(factor), factor)).collect();
        factors.sort_by_key(|(levels, _)| std::cmp::Reverse(*levels));
        if let [(_, x), (2.., y), ..] = factors[..] {
            let (x, y) = if y == Factor::Outstanding { (y, x) } else { (x, y) };
            charts.push(RunChart::HeatMap { x, y, value: Measure::Iops });
            charts.push(RunChart::HeatMap { x, y, value: Measure::P99Latency });
        }
        if runs.len() <= SERIES_INKS {
            charts.extend([
                RunChart::Percentiles,
                RunChart::OverTime,
                RunChart::LatencyOverTime,
                RunChart::Histogram,
            ]);
        }
        charts
    }
}

impl FromStr for RunChart {
    type Err = UnknownChart;

    fn from_str(text: &str) -> Result<RunChart, UnknownChart> {
        let axes = |text: &str| -> Result<RunChart, String> {
            let words: Vec<&str> = text.split(',').map(str::trim).collect();
            let [x, y, value] = words[..] else {
                return Err(format!(
                    "'{text}' is no X,Y,VALUE; give as in heat-map:outstanding,block-size,p99"
                ));
            };
            let (x, y, value) = (x.parse()?, y.parse()?, value.parse()?);
            if x == y {
                return Err(format!("both axes of the heat map are {x}; give two different ones"));
            }
            Ok(RunChart::HeatMap { x, y, value })
        };
        if let Some((_, chart)) = RunChart::NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*chart);
        }
        if let Some(rest) = text.strip_prefix("heat-map:") {
            return axes(rest).map_err(UnknownChart);
        }
        let names = RunChart::NAMES.map(|(name, _)| name).join(", ");
        Err(UnknownChart(format!("'{text}' is not a chart; give one of {names}")))
    }
}

impl fmt::Display for RunChart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let RunChart::HeatMap { x, y, value } = self {
            return write!(f, "heat-map:{x},{y},{value}");
        }
        let name = RunChart::NAMES.iter().find(|(_, chart)| chart == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_parsed_from_its_name() {
        for (name, _) in RunChart::NAMES {
            let chart: RunChart = name.parse().unwrap();
            assert_eq!(chart.to_string().parse(), Ok(chart));
        }
        let chosen = RunChart::HeatMap { x: Factor::Threads, y: Factor::Target, value: Measure::P99Latency };
        assert_eq!("heat-map:threads,target,p99".parse(), Ok(chosen));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let refusal = |text: &str| text.parse::<RunChart>().unwrap_err().to_string();
        assert!(refusal("pie").contains("load-curve, sweep, heat-map, percentiles"));
        assert!(refusal("heat-map:threads").contains("X,Y,VALUE"));
        assert!(refusal("heat-map:threads,size,iops").contains("block-size"));
        assert!(refusal("heat-map:threads,threads,iops").contains("two different"));
    }
}
