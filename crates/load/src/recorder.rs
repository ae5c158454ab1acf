use std::collections::BTreeMap;
use workload::{
    Direction, Latencies, LatencyCounts, LatencyHistogram, MemberShare, Response, Slice, Tally, ThreadShare,
};

/// What one thread measured of one workload.
///
/// Each I/O is counted in a histogram of the present slice of time; when the slice ends, its histogram is
/// kept as a row of the series and added to the total.
#[derive(Debug)]
pub struct Recorder {
    pub read: Direction,
    pub write: Direction,
    pub sync: Direction,
    pub response: Option<Response>,
    pub series: Vec<Slice>,
    /// Of a layout: what each member did.
    pub members: Vec<MemberShare>,
    /// I/Os counted, reads and writes.
    pub counted: u64,
    /// When the last of them completed.
    pub last_ns: u64,
    slice_ns: u64,
    slice_end_ns: u64,
    slice: Slice,
    slice_at: usize,
    slice_read: LatencyCounts,
    slice_write: LatencyCounts,
    runs: [Run; RUNS],
    runs_filled: usize,
}

/// Completions are counted some at a time: right after a system call the processor has other code at hand,
/// and one by one they take it much longer.
const RUNS: usize = 32;

/// I/Os of one direction, size and latency: completions seen together often agree in all three, and are then
/// counted at the cost of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Run {
    write: bool,
    bytes: u32,
    latency_ns: u64,
    count: u64,
}

/// Slices shorter than that are kept without their latencies: folding a histogram takes about 50 us.
const LATENCIES_SLICE_NS_MIN: u64 = 50_000_000;

impl Recorder {
    /// For slices of `slice_ns`; `open` keeps responses as well.
    pub fn new(slice_ns: u64, open: bool) -> Recorder {
        Recorder {
            read: Direction::default(),
            write: Direction::default(),
            sync: Direction::default(),
            response: open.then(Response::default),
            series: Vec::new(),
            members: Vec::new(),
            counted: 0,
            last_ns: 0,
            slice_ns,
            slice_end_ns: slice_ns,
            slice: Slice::default(),
            slice_at: 0,
            slice_read: LatencyCounts::new(),
            slice_write: LatencyCounts::new(),
            runs: [Run::default(); RUNS],
            runs_filled: 0,
        }
    }

    /// What is counted from now on completed `at_ns` after the measured part began.
    #[inline]
    pub fn at(&mut self, at_ns: u64) {
        if at_ns >= self.slice_end_ns {
            self.close_slice();
            self.slice_at = (at_ns / self.slice_ns) as usize;
            self.slice_end_ns = (self.slice_at as u64 + 1) * self.slice_ns;
        }
    }

    /// Counts one completed I/O.
    #[inline]
    pub fn completed(&mut self, write: bool, bytes: u32, latency_ns: u64) {
        self.counted += 1;
        let run = Run { write, bytes, latency_ns, count: 1 };
        if let Some(last) = self.runs[..self.runs_filled].last_mut()
            && *last == (Run { count: last.count, ..run })
        {
            last.count += 1;
            return;
        }
        if self.runs_filled == RUNS {
            self.flush();
        }
        self.runs[self.runs_filled] = run;
        self.runs_filled += 1;
    }

    /// Counts what a completed I/O's user waited, from its intended start on.
    pub fn responded(&mut self, write: bool, response_ns: u64) {
        let Some(response) = &mut self.response else { return };
        let histogram = if write { &mut response.write } else { &mut response.read };
        histogram.record(response_ns);
    }

    /// Counts a completed sync.
    pub fn synced(&mut self, latency_ns: u64) {
        self.sync.count += 1;
        self.sync.latency.record(latency_ns);
    }

    /// Counts a member's part of an I/O, or its failure.
    #[inline]
    pub fn part(&mut self, member: usize, write: bool, result: i32, latency_ns: u64) {
        let Some(share) = self.members.get_mut(member) else { return };
        match u64::try_from(result) {
            Ok(bytes) if write => share.write.record_n(latency_ns, bytes, 1),
            Ok(bytes) => share.read.record_n(latency_ns, bytes, 1),
            Err(_) => share.failed += 1,
        }
    }

    /// Counts a failed I/O.
    #[cold]
    pub fn failed(&mut self, write: bool, errno: i32) {
        let direction = if write { &mut self.write } else { &mut self.read };
        count_error(&mut direction.errors, errno);
    }

    /// Counts a failed sync.
    #[cold]
    pub fn sync_failed(&mut self, errno: i32) {
        count_error(&mut self.sync.errors, errno);
    }

    /// Counts what was held back.
    #[inline(never)]
    fn flush(&mut self) {
        for Run { write, bytes, latency_ns, count } in &self.runs[..self.runs_filled] {
            let (tally, counts) = if *write {
                (&mut self.slice.write, &mut self.slice_write)
            } else {
                (&mut self.slice.read, &mut self.slice_read)
            };
            tally.record_n(*latency_ns, u64::from(*bytes), *count);
            counts.record_n(*latency_ns, *count);
        }
        self.runs_filled = 0;
    }

    fn close_slice(&mut self) {
        self.flush();
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

    /// Closes the last slice; what this thread did in all.
    pub fn finish(&mut self, cpu_ns: u64) -> ThreadShare {
        self.close_slice();
        let mut share = ThreadShare { cpu_ns, ..ThreadShare::default() };
        for slice in &self.series {
            share.read.merge(&slice.read);
            share.write.merge(&slice.write);
        }
        share
    }
}

fn count_error(errors: &mut BTreeMap<i32, u64>, errno: i32) {
    *errors.entry(errno).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_io_counts_once_in_its_slice_and_direction() {
        let mut recorder = Recorder::new(1_000_000_000, false);
        recorder.at(1_500_000_000);
        recorder.completed(false, 4096, 10);
        recorder.completed(false, 4096, 10);
        recorder.completed(true, 512, 10);
        recorder.completed(false, 4096, 30);
        recorder.failed(true, libc::EIO);
        recorder.at(2_000_000_000);
        recorder.completed(false, 4096, 50);
        let share = recorder.finish(7);
        assert_eq!(
            (recorder.read.count, recorder.read.latency.sum_ns(), recorder.read.bytes),
            (4, 100, 16_384)
        );
        assert_eq!((recorder.write.count, recorder.write.bytes), (1, 512));
        assert_eq!((recorder.write.errors[&libc::EIO], recorder.counted), (1, 5));
        let counts: Vec<u64> = recorder.series.iter().map(|slice| slice.read.count).collect();
        assert_eq!(counts, [0, 3, 1]);
        assert_eq!(recorder.series[1].read_latencies.0, [(10, 2), (30, 1)]);
        assert_eq!((share.read.ns_max, share.write.count, share.cpu_ns), (50, 1, 7));
    }
}
