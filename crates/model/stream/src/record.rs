use workload::{Direction, Latencies, LatencyCounts, LatencyHistogram, Response, Slice, Tally};

/// The measured part of a run, on the clock of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredWindow {
    /// End of the warm-up.
    pub from_ns: u64,
    /// Beginning of the cool-down.
    pub until_ns: u64,
}

impl MeasuredWindow {
    /// Whether an I/O that completes then counts.
    #[inline]
    pub fn contains(&self, now_ns: u64) -> bool {
        now_ns >= self.from_ns && now_ns < self.until_ns
    }

    /// Length of the measured part: if all I/Os were done before its end (`finished`), until the last one completed,
    /// `last_ns` after the beginning.
    pub fn elapsed_ns(&self, finished: bool, last_ns: u64) -> u64 {
        let whole_ns = self.until_ns.saturating_sub(self.from_ns);
        if finished { last_ns.min(whole_ns) } else { whole_ns }
    }
}

/// Measurements of the I/Os of a workload: each is counted in a histogram of the current slice of time; when the slice
/// ends, its histogram becomes a row of the series and is added to the total.
#[derive(Debug)]
pub struct IoRecord {
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Syncs.
    pub sync: Direction,
    /// A row for each slice in which something was counted.
    pub series: Vec<Slice>,
    /// Response times, of an open loop.
    pub responses: Option<Responses>,
    slice_ns: u64,
    slice_end_ns: u64,
    slice: Slice,
    slice_at: usize,
    slice_read: LatencyCounts,
    slice_write: LatencyCounts,
}

/// Response times of an open loop, from the intended start of each I/O.
#[derive(Debug, Default)]
pub struct Responses {
    read: LatencyCounts,
    write: LatencyCounts,
    read_sum_ns: u64,
    write_sum_ns: u64,
    waiting: u64,
    waiting_ns_max: u64,
    /// Longest delay between the time when an I/O was due and had a free slot, and its submission: caused by the load
    /// generator, not by the storage.
    pub late_ns_max: u64,
}

/// Shorter slices are kept without their latencies: converting a histogram takes about 50 us.
const LATENCIES_SLICE_NS_MIN: u64 = 50_000_000;

impl Responses {
    /// Counts one.
    #[inline]
    pub fn record(&mut self, write: bool, response_ns: u64) {
        let (counts, sum_ns) = if write {
            (&mut self.write, &mut self.write_sum_ns)
        } else {
            (&mut self.read, &mut self.read_sum_ns)
        };
        counts.record_n(response_ns, 1);
        *sum_ns = sum_ns.saturating_add(response_ns);
    }

    /// Adds I/Os that still wait at the end, the oldest for `longest_ns`.
    pub fn add_waiting(&mut self, (count, longest_ns): (u64, u64)) {
        self.waiting += count;
        self.waiting_ns_max = self.waiting_ns_max.max(longest_ns);
    }

    /// The response times of a result.
    pub fn into_response(mut self) -> Response {
        let histogram = |counts: &mut LatencyCounts, sum_ns| {
            let mut latencies = LatencyHistogram::new();
            counts.pour(&mut latencies, sum_ns);
            latencies
        };
        Response {
            read: histogram(&mut self.read, self.read_sum_ns),
            write: histogram(&mut self.write, self.write_sum_ns),
            waiting: self.waiting,
            waiting_ns_max: self.waiting_ns_max,
            late_ns_max: self.late_ns_max,
        }
    }
}

impl IoRecord {
    /// An empty record with slices of `slice_ns`, and with response times for an `open` loop.
    pub fn new(slice_ns: u64, open: bool) -> IoRecord {
        IoRecord {
            read: Direction::default(),
            write: Direction::default(),
            sync: Direction::default(),
            series: Vec::new(),
            responses: open.then(Responses::default),
            slice_ns,
            slice_end_ns: slice_ns,
            slice: Slice::default(),
            slice_at: 0,
            slice_read: LatencyCounts::default(),
            slice_write: LatencyCounts::default(),
        }
    }

    /// Whether the current slice has ended `at_ns` after the measured part began.
    #[inline]
    pub fn slice_ends_by(&self, at_ns: u64) -> bool {
        at_ns >= self.slice_end_ns
    }

    /// Sets the time of the completions counted next, `at_ns` after the measured part began.
    #[inline]
    pub fn advance_to(&mut self, at_ns: u64) {
        if self.slice_ends_by(at_ns) {
            self.close_slice();
            self.slice_at = (at_ns / self.slice_ns) as usize;
            self.slice_end_ns = (self.slice_at as u64 + 1).saturating_mul(self.slice_ns);
        }
    }

    /// Counts `count` I/Os of one direction, size and latency.
    #[inline]
    pub fn completed(&mut self, write: bool, bytes: u32, latency_ns: u64, count: u64) {
        let (tally, counts) = if write {
            (&mut self.slice.write, &mut self.slice_write)
        } else {
            (&mut self.slice.read, &mut self.slice_read)
        };
        tally.record_n(latency_ns, u64::from(bytes), count);
        counts.record_n(latency_ns, count);
    }

    /// Counts a sync.
    pub fn synced(&mut self, latency_ns: u64) {
        self.sync.count += 1;
        self.sync.latency.record(latency_ns);
    }

    /// Ends the current slice.
    pub fn close_slice(&mut self) {
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
}

/// Completes a series: a row for each slice of the measured part, also if nothing completed in it, with its end.
pub fn complete_series(series: &mut Vec<Slice>, slice_ns: u64, elapsed_ns: u64) {
    let rows = usize::try_from(elapsed_ns.div_ceil(slice_ns)).unwrap_or(usize::MAX);
    if series.len() < rows {
        series.resize(rows, Slice::default());
    }
    for (at, slice) in (1..).zip(series) {
        slice.end_ns = slice_ns.saturating_mul(at).min(elapsed_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn each_io_counts_once_in_its_slice_and_direction() {
        let mut record = IoRecord::new(S, true);
        record.advance_to(S + S / 2);
        record.completed(false, 4096, 10, 2);
        record.completed(true, 512, 10, 1);
        record.completed(false, 4096, 30, 1);
        record.advance_to(2 * S);
        record.completed(false, 4096, 50, 1);
        record.synced(70);
        record.close_slice();
        assert_eq!((record.read.count, record.read.latency.sum_ns(), record.read.bytes), (4, 100, 16_384));
        assert_eq!((record.write.count, record.write.bytes, record.sync.count), (1, 512, 1));
        let mut series = record.series;
        assert_eq!(series.iter().map(|slice| slice.read.count).collect::<Vec<u64>>(), [0, 3, 1]);
        assert_eq!(series[1].read_latencies.0, [(10, 2), (30, 1)]);
        complete_series(&mut series, S, 3 * S + 5);
        assert_eq!(
            series.iter().map(|slice| slice.end_ns).collect::<Vec<u64>>(),
            [S, 2 * S, 3 * S, 3 * S + 5]
        );
    }

    #[test]
    fn ios_that_still_wait_are_reported_beside_those_that_completed() {
        let mut record = IoRecord::new(S, true);
        let mut responses = record.responses.take().unwrap();
        responses.record(false, 100);
        responses.add_waiting((2, 30));
        responses.add_waiting((1, 70));
        let response = responses.into_response();
        assert_eq!((response.read.sum_ns(), response.write.count()), (100, 0));
        assert_eq!((response.waiting, response.waiting_ns_max), (3, 70));
    }

    #[test]
    fn completions_in_the_measured_part_count() {
        let window = MeasuredWindow { from_ns: 10, until_ns: 30 };
        assert_eq!([9, 10, 29, 30].map(|at| window.contains(at)), [false, true, true, false]);
        assert_eq!((window.elapsed_ns(false, 5), window.elapsed_ns(true, 5)), (20, 5));
    }
}
