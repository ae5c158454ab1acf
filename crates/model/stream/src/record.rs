use workload::{Direction, Latencies, LatencyCounts, LatencyHistogram, Response, Slice, Tally};

/// The measured part of a run, on the clock of whoever runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// After the warm-up.
    pub from_ns: u64,
    /// Before the cool-down.
    pub until_ns: u64,
}

impl Window {
    /// What comes back then counts.
    #[inline]
    pub fn counts(&self, now_ns: u64) -> bool {
        now_ns >= self.from_ns && now_ns < self.until_ns
    }

    /// How long was measured: until the last I/O came back, at `last_ns` since the beginning, where nothing more was
    /// to be `over`.
    pub fn elapsed_ns(&self, over: bool, last_ns: u64) -> u64 {
        let whole_ns = self.until_ns.saturating_sub(self.from_ns);
        if over { last_ns.min(whole_ns) } else { whole_ns }
    }
}

/// What is measured of the I/Os of a workload: each is counted in a histogram of the present slice of time; when the
/// slice ends, its histogram is kept as a row of the series and added to the total.
#[derive(Debug)]
pub struct Record {
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Syncs.
    pub sync: Direction,
    /// A row for each slice in which something was counted.
    pub series: Vec<Slice>,
    /// Of an open loop, what its users wait.
    pub responses: Option<Responses>,
    slice_ns: u64,
    slice_end_ns: u64,
    slice: Slice,
    slice_at: usize,
    slice_read: LatencyCounts,
    slice_write: LatencyCounts,
}

/// What users of an open loop wait, from the intended start of each I/O on.
#[derive(Debug, Default)]
pub struct Responses {
    read: LatencyCounts,
    write: LatencyCounts,
    read_sum_ns: u64,
    write_sum_ns: u64,
    waiting: u64,
    waiting_ns_max: u64,
    /// Latest start, after the I/O was due and there was room for it: time that the load took, not the storage.
    pub late_ns_max: u64,
}

/// Slices shorter than that are kept without their latencies: folding a histogram takes about 50 us.
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

    /// So many still wait at the end, the oldest for so long.
    pub fn wait(&mut self, (count, longest_ns): (u64, u64)) {
        self.waiting += count;
        self.waiting_ns_max = self.waiting_ns_max.max(longest_ns);
    }

    /// As results have it.
    pub fn told(mut self) -> Response {
        let poured = |counts: &mut LatencyCounts, sum_ns| {
            let mut histogram = LatencyHistogram::new();
            counts.pour(&mut histogram, sum_ns);
            histogram
        };
        Response {
            read: poured(&mut self.read, self.read_sum_ns),
            write: poured(&mut self.write, self.write_sum_ns),
            waiting: self.waiting,
            waiting_ns_max: self.waiting_ns_max,
            late_ns_max: self.late_ns_max,
        }
    }
}

impl Record {
    /// For slices of `slice_ns`; of an `open` loop with responses.
    pub fn new(slice_ns: u64, open: bool) -> Record {
        Record {
            read: Direction::default(),
            write: Direction::default(),
            sync: Direction::default(),
            series: Vec::new(),
            responses: open.then(Responses::default),
            slice_ns,
            slice_end_ns: slice_ns,
            slice: Slice::default(),
            slice_at: 0,
            slice_read: LatencyCounts::new(),
            slice_write: LatencyCounts::new(),
        }
    }

    /// Whether the present slice is over `at_ns` after the measured part began.
    #[inline]
    pub fn is_over(&self, at_ns: u64) -> bool {
        at_ns >= self.slice_end_ns
    }

    /// What is counted from now on came back `at_ns` after the measured part began.
    #[inline]
    pub fn at(&mut self, at_ns: u64) {
        if self.is_over(at_ns) {
            self.close();
            self.slice_at = (at_ns / self.slice_ns) as usize;
            self.slice_end_ns = (self.slice_at as u64 + 1).saturating_mul(self.slice_ns);
        }
    }

    /// Counts I/Os that are alike.
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

    /// Ends the present slice.
    pub fn close(&mut self) {
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

/// A series with a row for each slice of what was measured, also where nothing came back any more, each with its end.
pub fn whole(series: &mut Vec<Slice>, slice_ns: u64, elapsed_ns: u64) {
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
        let mut record = Record::new(S, true);
        record.at(S + S / 2);
        record.completed(false, 4096, 10, 2);
        record.completed(true, 512, 10, 1);
        record.completed(false, 4096, 30, 1);
        record.at(2 * S);
        record.completed(false, 4096, 50, 1);
        record.synced(70);
        record.close();
        assert_eq!((record.read.count, record.read.latency.sum_ns(), record.read.bytes), (4, 100, 16_384));
        assert_eq!((record.write.count, record.write.bytes, record.sync.count), (1, 512, 1));
        let mut series = record.series;
        assert_eq!(series.iter().map(|slice| slice.read.count).collect::<Vec<u64>>(), [0, 3, 1]);
        assert_eq!(series[1].read_latencies.0, [(10, 2), (30, 1)]);
        whole(&mut series, S, 3 * S + 5);
        assert_eq!(
            series.iter().map(|slice| slice.end_ns).collect::<Vec<u64>>(),
            [S, 2 * S, 3 * S, 3 * S + 5]
        );
    }

    #[test]
    fn who_still_waits_is_told_beside_who_was_served() {
        let mut record = Record::new(S, true);
        let mut responses = record.responses.take().unwrap();
        responses.record(false, 100);
        responses.wait((2, 30));
        responses.wait((1, 70));
        let told = responses.told();
        assert_eq!((told.read.sum_ns(), told.write.count()), (100, 0));
        assert_eq!((told.waiting, told.waiting_ns_max), (3, 70));
    }

    #[test]
    fn what_comes_back_in_the_measured_part_counts() {
        let window = Window { from_ns: 10, until_ns: 30 };
        assert_eq!([9, 10, 29, 30].map(|at| window.counts(at)), [false, true, true, false]);
        assert_eq!((window.elapsed_ns(false, 5), window.elapsed_ns(true, 5)), (20, 5));
    }
}
