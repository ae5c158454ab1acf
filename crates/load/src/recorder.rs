use std::collections::BTreeMap;
use workload::{Direction, Second};

/// What one thread measured so far.
#[derive(Debug, Default)]
pub struct Recorder {
    pub read: Direction,
    pub write: Direction,
    pub seconds: Vec<Second>,
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
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, Second::default());
        }
        let block_bytes = u64::from(block_bytes);
        Turn { recorder: self, block_bytes, second, run_write: false, run_ns: 0, run: 0 }
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
        let (count, bytes, stall_ns) = (self.run, self.run * self.block_bytes, self.run * self.run_ns);
        let second = &mut self.recorder.seconds[self.second];
        let direction = if self.run_write {
            second.writes += count;
            second.write_bytes += bytes;
            second.write_stall_ns += stall_ns;
            second.write_ns_max = second.write_ns_max.max(self.run_ns);
            &mut self.recorder.write
        } else {
            second.reads += count;
            second.read_bytes += bytes;
            second.read_stall_ns += stall_ns;
            second.read_ns_max = second.read_ns_max.max(self.run_ns);
            &mut self.recorder.read
        };
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
        assert_eq!(recorder.seconds.len(), 2);
        assert_eq!((recorder.seconds[0].reads, recorder.seconds[1].reads), (0, 3));
        assert_eq!((recorder.seconds[1].read_ns_max, recorder.seconds[1].writes), (30, 1));
    }
}
