use std::collections::BTreeMap;
use stream::{IoRecord, Responses};
use workload::{MemberShare, ThreadShare};

/// Measurements of one workload in one thread: an [`IoRecord`], filled in batches, and failures.
#[derive(Debug)]
pub struct Recorder {
    pub record: IoRecord,
    /// On a volume: what each member did.
    pub members: Vec<MemberShare>,
    /// Completion of the last I/O that counts.
    pub last_ns: u64,
    runs: [Run; RUNS],
    runs_filled: usize,
}

/// Runs that are counted together: right after a system call the code and data of the histograms are not in the
/// processor's caches, and counting one by one takes much longer.
const RUNS: usize = 32;

/// I/Os of one direction, size and latency: completions seen together often agree in all three, and then cost as much
/// as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Run {
    write: bool,
    bytes: u32,
    latency_ns: u64,
    count: u64,
}

impl Recorder {
    /// With slices of `slice_ns`, and with response times for an `open` loop.
    pub fn new(slice_ns: u64, open: bool) -> Recorder {
        Recorder {
            record: IoRecord::new(slice_ns, open),
            members: Vec::new(),
            last_ns: 0,
            runs: [Run::default(); RUNS],
            runs_filled: 0,
        }
    }

    /// Response times, of an open loop.
    #[inline]
    pub fn responses(&mut self) -> Option<&mut Responses> {
        self.record.responses.as_mut()
    }

    /// Sets the time of the completions counted next, `at_ns` after the measured part began.
    #[inline]
    pub fn advance_to(&mut self, at_ns: u64) {
        if self.record.slice_ends_by(at_ns) {
            self.flush();
            self.record.advance_to(at_ns);
        }
    }

    /// Counts one completed I/O.
    #[inline]
    pub fn completed(&mut self, write: bool, bytes: u32, latency_ns: u64) {
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

    /// Counts a member's part of an I/O, or its failure.
    #[inline]
    pub fn member_part(&mut self, member: usize, write: bool, result: i32, latency_ns: u64) {
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
        let direction = if write { &mut self.record.write } else { &mut self.record.read };
        count_error(&mut direction.errors, errno);
    }

    /// Counts a failed sync.
    #[cold]
    pub fn sync_failed(&mut self, errno: i32) {
        count_error(&mut self.record.sync.errors, errno);
    }

    /// Counts the runs.
    #[inline(never)]
    fn flush(&mut self) {
        for Run { write, bytes, latency_ns, count } in &self.runs[..self.runs_filled] {
            self.record.completed(*write, *bytes, *latency_ns, *count);
        }
        self.runs_filled = 0;
    }

    /// Closes the last slice; the totals of the thread.
    pub fn finish(&mut self, cpu_ns: u64) -> ThreadShare {
        self.flush();
        self.record.close_slice();
        let mut share = ThreadShare { cpu_ns, ..ThreadShare::default() };
        for slice in &self.record.series {
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
    fn completions_counted_in_batches_count_once_and_in_their_slice() {
        let mut recorder = Recorder::new(1_000_000_000, false);
        recorder.advance_to(1_500_000_000);
        recorder.completed(false, 4096, 10);
        recorder.completed(false, 4096, 10);
        recorder.completed(true, 512, 10);
        (0..100).for_each(|at| recorder.completed(false, 4096, 20 + at % 2));
        recorder.failed(true, libc::EIO);
        recorder.advance_to(2_000_000_000);
        recorder.completed(false, 4096, 50);
        let share = recorder.finish(7);
        let record = &recorder.record;
        assert_eq!((record.read.count, record.read.latency.sum_ns()), (103, 20 + 50 * 41 + 50));
        assert_eq!((record.write.count, record.write.errors[&libc::EIO]), (1, 1));
        let counts: Vec<u64> = record.series.iter().map(|slice| slice.read.count).collect();
        assert_eq!(counts, [0, 102, 1]);
        assert_eq!((share.read.ns_max, share.write.count, share.cpu_ns), (50, 1, 7));
    }
}
