use workload::{Direction, Latencies, LatencyCounts, LatencyHistogram, Response, RunResult, Slice, Tally};

/// What is measured of one workload: each I/O is counted in a histogram of the present slice of time, as the load
/// crate does it.
#[derive(Debug)]
pub struct Record {
    read: Direction,
    write: Direction,
    sync: Direction,
    series: Vec<Slice>,
    slice_ns: u64,
    slice_end_ns: u64,
    slice_at: usize,
    slice: Slice,
    slice_read: LatencyCounts,
    slice_write: LatencyCounts,
    response: Option<Responses>,
    /// When the last I/O that counts was done, since the measured part began.
    pub last_ns: u64,
}

/// What users of an open loop waited.
#[derive(Debug, Default)]
struct Responses {
    read: LatencyCounts,
    write: LatencyCounts,
    read_sum_ns: u64,
    write_sum_ns: u64,
    waiting: u64,
    waiting_ns_max: u64,
}

/// Slices shorter than that are kept without their latencies.
const LATENCIES_SLICE_NS_MIN: u64 = 50_000_000;

impl Record {
    pub fn new(slice_ns: u64, open: bool) -> Record {
        Record {
            read: Direction::default(),
            write: Direction::default(),
            sync: Direction::default(),
            series: Vec::new(),
            slice_ns,
            slice_end_ns: slice_ns,
            slice_at: 0,
            slice: Slice::default(),
            slice_read: LatencyCounts::new(),
            slice_write: LatencyCounts::new(),
            response: open.then(Responses::default),
            last_ns: 0,
        }
    }

    /// Counts an I/O that was done `at_ns` after the measured part began.
    #[inline]
    pub fn completed(&mut self, at_ns: u64, write: bool, bytes: u32, latency_ns: u64, response_ns: u64) {
        if at_ns >= self.slice_end_ns {
            self.close_slice();
            self.slice_at = (at_ns / self.slice_ns) as usize;
            self.slice_end_ns = (self.slice_at as u64 + 1).saturating_mul(self.slice_ns);
        }
        self.last_ns = at_ns;
        let (tally, counts) = if write {
            (&mut self.slice.write, &mut self.slice_write)
        } else {
            (&mut self.slice.read, &mut self.slice_read)
        };
        tally.record_n(latency_ns, u64::from(bytes), 1);
        counts.record_n(latency_ns, 1);
        if let Some(responses) = &mut self.response {
            let (counts, sum_ns) = if write {
                (&mut responses.write, &mut responses.write_sum_ns)
            } else {
                (&mut responses.read, &mut responses.read_sum_ns)
            };
            counts.record_n(response_ns, 1);
            *sum_ns = sum_ns.saturating_add(response_ns);
        }
    }

    pub fn synced(&mut self, latency_ns: u64) {
        self.sync.count += 1;
        self.sync.latency.record(latency_ns);
    }

    /// So many of an open loop still wait at the end, the oldest for so long.
    pub fn waiting(&mut self, count: u64, longest_ns: u64) {
        if let Some(responses) = &mut self.response {
            responses.waiting += count;
            responses.waiting_ns_max = responses.waiting_ns_max.max(longest_ns);
        }
    }

    fn close_slice(&mut self) {
        if self.slice.total().count == 0 {
            return;
        }
        let keep = self.slice_ns >= LATENCIES_SLICE_NS_MIN;
        let mut slice = std::mem::take(&mut self.slice);
        let close = |direction: &mut Direction, counts: &mut LatencyCounts, tally: &Tally| {
            if tally.count == 0 {
                return Latencies::default();
            }
            direction.count += tally.count;
            direction.bytes += tally.bytes;
            let mut histogram = LatencyHistogram::new();
            counts.pour(&mut histogram, tally.stall_ns);
            direction.latency.merge(&histogram);
            if keep { Latencies::from(&histogram) } else { Latencies::default() }
        };
        slice.read_latencies = close(&mut self.read, &mut self.slice_read, &slice.read);
        slice.write_latencies = close(&mut self.write, &mut self.slice_write, &slice.write);
        if self.series.len() <= self.slice_at {
            self.series.resize(self.slice_at + 1, Slice::default());
        }
        self.series[self.slice_at].merge(&slice);
    }

    /// Puts all of it into a result whose length is known.
    pub fn finish(mut self, result: &mut RunResult) {
        self.close_slice();
        (result.read, result.write, result.sync) = (self.read, self.write, self.sync);
        result.series = self.series;
        let rows = usize::try_from(result.elapsed_ns.div_ceil(self.slice_ns)).unwrap_or(usize::MAX);
        if result.series.len() < rows {
            result.series.resize(rows, Slice::default());
        }
        for (at, slice) in (1..).zip(&mut result.series) {
            slice.end_ns = self.slice_ns.saturating_mul(at).min(result.elapsed_ns);
        }
        result.response = self.response.map(|mut responses| {
            let poured = |counts: &mut LatencyCounts, sum_ns| {
                let mut histogram = LatencyHistogram::new();
                counts.pour(&mut histogram, sum_ns);
                histogram
            };
            Response {
                read: poured(&mut responses.read, responses.read_sum_ns),
                write: poured(&mut responses.write, responses.write_sum_ns),
                waiting: responses.waiting,
                waiting_ns_max: responses.waiting_ns_max,
                late_ns_max: 0,
            }
        });
    }
}
