//! The totals of a trace, in bounded memory however long it is.

use charts::{Chart, TraceLabels, TracePicture};
use filestats::{LatencyBuckets, TracedIo, TracedOp};
use std::collections::HashMap;
use std::rc::Rc;

/// A trace so far.
#[derive(Clone, Debug, Default)]
pub struct TraceSummary {
    /// The traced I/Os, in words: "pid 812, *.db, reads, slower than 1 ms".
    pub of: String,
    /// Until its end.
    pub elapsed_ns: u64,
    /// In the order of [`TracedOp::ALL`].
    pub ops: [OpTotals; 4],
    /// In the order of their first I/O, at most [`TraceSummary::FILES_MAX`].
    pub files: Vec<TraceFile>,
    /// I/Os of files beyond those.
    pub other_files_ios: u64,
    /// I/Os that were lost because the buffer was full.
    pub lost: u64,
    /// Events that this kernel does not report, and other notes.
    pub notes: Vec<String>,
    places: HashMap<Rc<str>, usize>,
    picture: TracePicture,
}

/// The I/Os of one kind.
#[derive(Clone, Debug, Default)]
pub struct OpTotals {
    /// Number of I/Os.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// The sum of their latencies.
    pub stall_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Their latencies.
    pub latencies: LatencyBuckets,
}

/// The I/Os of one file.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// Its full name.
    pub path: Rc<str>,
    /// Number of I/Os.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// The sum of their latencies.
    pub stall_ns: u64,
    /// The trace that was written of it, for `run --replay`.
    pub trace: Option<String>,
}

impl TraceSummary {
    /// Files that have totals of their own.
    pub const FILES_MAX: usize = TracePicture::FILES_TRACKED_MAX;

    /// An empty summary; `of` is in words.
    pub fn new(of: String) -> TraceSummary {
        TraceSummary { of, ..TraceSummary::default() }
    }

    /// Adds an I/O.
    pub fn add(&mut self, io: &TracedIo) {
        let totals = &mut self.ops[io.op as usize];
        totals.ios += 1;
        totals.bytes += io.bytes;
        totals.stall_ns += io.latency_ns;
        totals.max_ns = totals.max_ns.max(io.latency_ns);
        totals.latencies.record(io.latency_ns);
        let place = match self.places.get(&io.file) {
            Some(place) => *place,
            None if self.files.len() >= TraceSummary::FILES_MAX => {
                self.other_files_ios += 1;
                self.picture.add(TraceSummary::FILES_MAX, io);
                return;
            }
            None => {
                let place = self.files.len();
                self.files.push(TraceFile {
                    path: Rc::clone(&io.file),
                    ios: 0,
                    bytes: 0,
                    stall_ns: 0,
                    trace: None,
                });
                self.places.insert(Rc::clone(&io.file), place);
                place
            }
        };
        let file = &mut self.files[place];
        file.ios += 1;
        file.bytes += io.bytes;
        file.stall_ns += io.latency_ns;
        self.picture.add(place, io);
    }

    /// The picture: where the I/Os were, and how long they took.
    pub fn chart(&self) -> Chart {
        charts::trace(
            &self.picture,
            &TraceLabels { subject: &self.of, files: self.files.len(), lost: self.lost },
        )
    }

    /// I/Os of all kinds.
    pub fn ios(&self) -> u64 {
        self.ops.iter().map(|totals| totals.ios).sum()
    }

    /// Bytes transferred.
    pub fn bytes(&self) -> u64 {
        self.ops.iter().map(|totals| totals.bytes).sum()
    }

    /// The kinds that occurred, with their totals.
    pub fn by_op(&self) -> impl Iterator<Item = (TracedOp, &OpTotals)> {
        TracedOp::ALL.into_iter().zip(&self.ops).filter(|(_, totals)| totals.ios > 0)
    }
}

impl OpTotals {
    /// The latency that this percentage of the I/Os did not exceed, by the buckets, at most the longest.
    pub fn percentile_ns(&self, percent: f64) -> Option<f64> {
        self.latencies.percentile_ns(percent).map(|ns| ns.min(self.max_ns as f64))
    }

    /// Mean time.
    pub fn mean_ns(&self) -> f64 {
        self.stall_ns as f64 / self.ios.max(1) as f64
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use filestats::{IoFlags, Served};

    pub(crate) fn io(at_ns: u64, op: TracedOp, offset_bytes: u64, latency_ns: u64) -> TracedIo {
        TracedIo {
            at_ns,
            latency_ns,
            pid: 812,
            tid: 812,
            comm: "postgres".into(),
            op,
            file: "/data/base/5/16384".into(),
            offset_bytes: (op != TracedOp::Sync).then_some(offset_bytes),
            bytes: if op == TracedOp::Sync { 0 } else { 8192 },
            flags: IoFlags::DIRECT,
            served: (op != TracedOp::Sync).then_some(Served::Device),
            n: 1,
        }
    }

    /// `count` I/Os, a microsecond apart.
    pub(crate) fn trace(count: u64) -> TraceSummary {
        let mut traced =
            TraceSummary { of: "pid 812".into(), elapsed_ns: count * 1000, ..TraceSummary::default() };
        for at in 0..count {
            let op = if at % 3 == 0 { TracedOp::Write } else { TracedOp::Read };
            traced.add(&io(at * 1000, op, at * 8192 % (64 << 20), 50_000 + at * 7));
        }
        traced
    }

    #[test]
    fn totals_are_of_each_kind_and_file() {
        let mut traced = trace(9);
        traced.add(&io(9000, TracedOp::Sync, 0, 2_000_000));
        let kinds: Vec<_> =
            traced.by_op().map(|(op, totals)| (op.word(), totals.ios, totals.bytes)).collect();
        assert_eq!(kinds, [("read", 6, 6 * 8192), ("write", 3, 3 * 8192), ("sync", 1, 0)]);
        assert_eq!((traced.files.len(), traced.files[0].ios, traced.ops[2].max_ns), (1, 10, 2_000_000));
    }

    #[test]
    fn files_beyond_the_limit_are_counted_together() {
        let mut traced = TraceSummary::default();
        for at in 0..=TraceSummary::FILES_MAX as u64 {
            traced.add(&TracedIo { file: format!("/{at}").into(), ..io(at, TracedOp::Read, 0, 1) });
        }
        assert_eq!((traced.files.len(), traced.other_files_ios), (TraceSummary::FILES_MAX, 1));
    }
}
