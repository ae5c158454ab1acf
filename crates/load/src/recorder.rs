use std::collections::BTreeMap;
use workload::{Direction, Slice, ThreadShare};

/// What one thread measured so far.
#[derive(Debug, Default)]
pub struct Recorder {
    pub read: Direction,
    pub write: Direction,
    pub series: Vec<Slice>,
}

const SECOND_NS: u64 = 1_000_000_000;

/// The completions of one turn of the loop: they share the time of completion, so that equal latencies can
/// be counted at once.
pub struct Turn<'a> {
    recorder: &'a mut Recorder,
    block_bytes: u64,
    second: usize,
    run_write: bool,
    run_ns: u64,
    run: u64,
}

impl Recorder {
    /// Begins a turn whose completions were seen `at_ns` after the measured part began.
    #[inline]
    pub fn turn(&mut self, at_ns: u64, block_bytes: u32) -> Turn<'_> {
        let second = (at_ns / SECOND_NS) as usize;
        if self.series.len() <= second {
            self.series.resize(second + 1, Slice::default());
        }
        let block_bytes = u64::from(block_bytes);
        Turn { recorder: self, block_bytes, second, run_write: false, run_ns: 0, run: 0 }
    }

    /// What this thread did in all.
    pub fn share(&self, cpu_ns: u64) -> ThreadShare {
        let mut share = ThreadShare { cpu_ns, ..ThreadShare::default() };
        for slice in &self.series {
            share.read.merge(&slice.read);
            share.write.merge(&slice.write);
        }
        share
    }

    /// Counts a failed I/O.
    #[cold]
    pub fn failed(&mut self, write: bool, errno: i32) {
        let errors: &mut BTreeMap<i32, u64> =
            if write { &mut self.write.errors } else { &mut self.read.errors };
        *errors.entry(errno).or_default() += 1;
    }
}

impl Turn<'_> {
    /// Counts one completed I/O.
    #[inline]
    pub fn completed(&mut self, write: bool, latency_ns: u64) {
        if latency_ns != self.run_ns || write != self.run_write {
            self.flush();
            (self.run_write, self.run_ns) = (write, latency_ns);
        }
        self.run += 1;
    }

    /// Counts a failed I/O.
    #[cold]
    pub fn failed(&mut self, write: bool, errno: i32) {
        self.recorder.failed(write, errno);
    }

    #[inline]
    fn flush(&mut self) {
        if self.run == 0 {
            return;
        }
        let (count, bytes) = (self.run, self.run * self.block_bytes);
        let slice = &mut self.recorder.series[self.second];
        let (tally, direction) = if self.run_write {
            (&mut slice.write, &mut self.recorder.write)
        } else {
            (&mut slice.read, &mut self.recorder.read)
        };
        tally.record_n(self.run_ns, self.block_bytes, count);
        direction.count += count;
        direction.bytes += bytes;
        direction.latency.record_n(self.run_ns, count);
        self.run = 0;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_counts_each_io_once_in_its_second_and_direction() {
        let mut recorder = Recorder::default();
        {
            let mut turn = recorder.turn(1_500_000_000, 4096);
            turn.completed(false, 10);
            turn.completed(false, 10);
            turn.completed(true, 10);
            turn.completed(false, 30);
            turn.failed(true, libc::EIO);
        }
        assert_eq!((recorder.read.count, recorder.read.latency.sum_ns()), (3, 50));
        assert_eq!((recorder.write.count, recorder.write.bytes), (1, 4096));
        assert_eq!(recorder.write.errors[&libc::EIO], 1);
        assert_eq!(recorder.series.len(), 2);
        assert_eq!((recorder.series[0].read.count, recorder.series[1].read.count), (0, 3));
        assert_eq!((recorder.series[1].read.ns_max, recorder.series[1].write.count), (30, 1));
    }
}
