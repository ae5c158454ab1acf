//! The full rows of a run's series, and what is measured of them.

use workload::{Limit, RunResult};

/// Figure that is judged over time: where the rate is given, only the latency can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Rate,
    Latency,
}

/// A full row of the series.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its place in the series.
    pub at: usize,
    pub from_ns: u64,
    pub end_ns: u64,
    pub ios: f64,
    pub stall_ns: f64,
    pub bytes: f64,
}

/// The full rows of a run, and their sums from the first on.
pub struct RunSeries {
    pub rows: Vec<Row>,
    pub measure: Measure,
    sums: Vec<(f64, f64, f64)>,
}

impl RunSeries {
    pub fn from_result(result: &RunResult) -> RunSeries {
        let mut rows: Vec<Row> = Vec::with_capacity(result.series.len());
        let mut from_ns = 0;
        for (at, slice) in result.series.iter().enumerate() {
            let total = slice.total();
            // A short last row has an untypical rate; a row whose end does not advance has no duration.
            if slice.end_ns.saturating_sub(from_ns) > result.slice_ns / 2 {
                let (ios, stall_ns, bytes) = (total.count as f64, total.stall_ns as f64, total.bytes as f64);
                rows.push(Row { at, from_ns, end_ns: slice.end_ns, ios, stall_ns, bytes });
            }
            from_ns = from_ns.max(slice.end_ns);
        }
        let mut sums = vec![(0.0, 0.0, 0.0)];
        let mut sum = (0.0, 0.0, 0.0);
        for row in &rows {
            sum = (sum.0 + row.ios, sum.1 + row.stall_ns, sum.2 + row.ns());
            sums.push(sum);
        }
        let measure = if is_paced(result) { Measure::Latency } else { Measure::Rate };
        RunSeries { rows, measure, sums }
    }

    /// I/Os, summed latency and time (ns) of some rows.
    pub fn sums(&self, rows: std::ops::Range<usize>) -> (f64, f64, f64) {
        let (from, to) = (self.sums[rows.start], self.sums[rows.end]);
        (to.0 - from.0, to.1 - from.1, to.2 - from.2)
    }

    /// Rate (I/Os a second) or mean latency (ns) over some rows; `None` where there is none.
    pub fn value(&self, rows: std::ops::Range<usize>) -> Option<f64> {
        let (ios, stall_ns, ns) = self.sums(rows);
        match self.measure {
            Measure::Rate => (ns > 0.0).then(|| ios * 1e9 / ns),
            Measure::Latency => (ios > 0.0).then(|| stall_ns / ios),
        }
    }

    /// Of each row the rate, or the mean latency where the rate is given and there was any I/O.
    pub fn values(&self) -> Vec<f64> {
        match self.measure {
            Measure::Rate => self.rows.iter().map(Row::rate).collect(),
            Measure::Latency => {
                self.rows.iter().filter(|row| row.ios > 0.0).map(|row| row.stall_ns / row.ios).collect()
            }
        }
    }
}

impl Row {
    fn ns(&self) -> f64 {
        (self.end_ns - self.from_ns) as f64
    }

    pub fn rate(&self) -> f64 {
        self.ios * 1e9 / self.ns()
    }
}

impl Measure {
    pub fn name(self) -> &'static str {
        match self {
            Measure::Rate => "rate",
            Measure::Latency => "latency",
        }
    }
}

/// I/Os come at a given rate rather than as fast as the storage completes them.
pub fn is_paced(result: &RunResult) -> bool {
    result.workload.is_open_loop() || result.workload.limit != Limit::default()
}
