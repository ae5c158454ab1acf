//! What a trace comes to: totals, files, and what its picture needs, in bounded memory however long it is.

use filestats::{LatencyBuckets, TracedIo, TracedOp};
use std::collections::HashMap;
use std::rc::Rc;

/// A trace so far.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    /// Of whom and what, in words: "pid 812, *.db, reads, slower than 1 ms".
    pub of: String,
    /// Until its end.
    pub elapsed_ns: u64,
    /// In the order of [`TracedOp::ALL`].
    pub ops: [OpTotals; 4],
    /// In the order of their first I/O; of more than [`Traced::FILES_MAX`] the first ones.
    pub files: Vec<TracedFile>,
    /// I/Os of files beyond those.
    pub other_files_ios: u64,
    /// I/Os that were to be told and found the buffer full.
    pub lost: u64,
    /// What this kernel does not tell, and what else is to be known.
    pub notes: Vec<String>,
    first_ns: Option<u64>,
    places: HashMap<Rc<str>, usize>,
    pub(crate) points: Vec<Point>,
    pub(crate) latencies: Grid,
}

/// The I/Os of one kind.
#[derive(Clone, Debug, Default)]
pub struct OpTotals {
    /// How many.
    pub ios: u64,
    /// What they moved.
    pub bytes: u64,
    /// Their times' sum.
    pub stall_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How long they took.
    pub latencies: LatencyBuckets,
}

/// The I/Os of one file.
#[derive(Clone, Debug)]
pub struct TracedFile {
    /// Its full name.
    pub path: Rc<str>,
    /// How many.
    pub ios: u64,
    /// What they moved.
    pub bytes: u64,
    /// Their times' sum.
    pub stall_ns: u64,
    /// The trace that was written of it, for `run --replay`.
    pub trace: Option<String>,
    /// Where they were over time; `None` of all but the first few files.
    pub(crate) offsets: Option<Grid>,
}

/// One I/O of the picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub at_ns: u64,
    pub latency_ns: u64,
    pub offset_bytes: Option<u64>,
    pub file: usize,
    pub op: TracedOp,
}

impl Traced {
    /// So many files are told apart.
    pub const FILES_MAX: usize = 1000;
    /// So many have a picture of their own.
    pub(crate) const PICTURES_MAX: usize = 6;
    /// More I/Os than these are drawn as heat maps.
    pub(crate) const POINTS_MAX: usize = 3000;

    /// Nothing yet, of what is said there in words.
    pub fn new(of: String) -> Traced {
        Traced { of, ..Traced::default() }
    }

    /// Takes one in.
    pub fn add(&mut self, io: &TracedIo) {
        // They come in the order of their ends.
        self.first_ns = Some(self.first_ns.map_or(io.at_ns, |first| first.min(io.at_ns)));
        let totals = &mut self.ops[io.op as usize];
        totals.ios += 1;
        totals.bytes += io.bytes;
        totals.stall_ns += io.latency_ns;
        totals.max_ns = totals.max_ns.max(io.latency_ns);
        totals.latencies.record(io.latency_ns);
        self.latencies.add(io.at_ns, latency_row(io.latency_ns), io.op);
        let place = match self.places.get(&io.file) {
            Some(place) => *place,
            None if self.files.len() >= Traced::FILES_MAX => {
                self.other_files_ios += 1;
                return;
            }
            None => {
                let place = self.files.len();
                self.files.push(TracedFile {
                    path: Rc::clone(&io.file),
                    ios: 0,
                    bytes: 0,
                    stall_ns: 0,
                    trace: None,
                    offsets: (place < Traced::PICTURES_MAX).then(Grid::default),
                });
                self.places.insert(Rc::clone(&io.file), place);
                place
            }
        };
        let file = &mut self.files[place];
        file.ios += 1;
        file.bytes += io.bytes;
        file.stall_ns += io.latency_ns;
        if let (Some(grid), Some(offset)) = (&mut file.offsets, io.offset_bytes) {
            grid.add(io.at_ns, offset, io.op);
        }
        // One more than is drawn: then it is known that they are too many.
        if self.points.len() <= Traced::POINTS_MAX {
            self.points.push(Point {
                at_ns: io.at_ns,
                latency_ns: io.latency_ns,
                offset_bytes: io.offset_bytes,
                file: place,
                op: io.op,
            });
        }
    }

    /// All of them.
    pub fn ios(&self) -> u64 {
        self.ops.iter().map(|totals| totals.ios).sum()
    }

    /// What they moved.
    pub fn bytes(&self) -> u64 {
        self.ops.iter().map(|totals| totals.bytes).sum()
    }

    /// Each kind that there was, with its totals.
    pub fn by_op(&self) -> impl Iterator<Item = (TracedOp, &OpTotals)> {
        TracedOp::ALL.into_iter().zip(&self.ops).filter(|(_, totals)| totals.ios > 0)
    }

    /// From the first I/O's beginning to the last one's, at least a millisecond.
    pub(crate) fn stretch_ns(&self) -> u64 {
        self.latencies.end().saturating_sub(self.first_ns()).max(1_000_000)
    }

    /// When the first I/O began.
    pub(crate) fn first_ns(&self) -> u64 {
        self.first_ns.unwrap_or(0)
    }
}

impl OpTotals {
    /// The time that so many percent of them took at most, as well as the buckets tell: never more than the longest.
    pub fn percentile_ns(&self, percent: f64) -> Option<f64> {
        self.latencies.percentile_ns(percent).map(|ns| ns.min(self.max_ns as f64))
    }

    /// Mean time.
    pub fn mean_ns(&self) -> f64 {
        self.stall_ns as f64 / self.ios.max(1) as f64
    }
}

/// Ranges of latency for each power of ten.
pub(crate) const RANGES_A_DECADE: f64 = 12.0;

fn latency_row(ns: u64) -> u64 {
    ((ns.max(1) as f64).log10() * RANGES_A_DECADE) as u64
}

/// How many I/Os of each kind there were in each cell of time and place. Where one lies beyond its end, its cells grow to
/// twice their width or height: all I/Os are in it, whenever and wherever they are.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub cell_ns: u64,
    pub row: u64,
    end: u64,
    /// Row by row; empty before the first.
    cells: Vec<[u32; 4]>,
}

impl Default for Grid {
    fn default() -> Grid {
        Grid { cell_ns: 1_000_000, row: 1, end: 0, cells: Vec::new() }
    }
}

impl Grid {
    const COLUMNS: usize = 200;
    /// Even those of latency, up to ten thousand seconds.
    const ROWS: usize = 160;

    fn add(&mut self, at_ns: u64, place: u64, op: TracedOp) {
        if self.cells.is_empty() {
            self.cells = vec![[0; 4]; Grid::COLUMNS * Grid::ROWS];
        }
        self.end = self.end.max(at_ns);
        while at_ns / self.cell_ns >= Grid::COLUMNS as u64 {
            self.merge(|column, row| (column / 2, row));
            self.cell_ns *= 2;
        }
        while place / self.row >= Grid::ROWS as u64 {
            self.merge(|column, row| (column, row / 2));
            self.row *= 2;
        }
        let (column, row) = ((at_ns / self.cell_ns) as usize, (place / self.row) as usize);
        let count = &mut self.cells[row * Grid::COLUMNS + column][op as usize];
        *count = count.saturating_add(1);
    }

    fn merge(&mut self, to: impl Fn(usize, usize) -> (usize, usize)) {
        let old = std::mem::replace(&mut self.cells, vec![[0; 4]; Grid::COLUMNS * Grid::ROWS]);
        for (at, counts) in old.into_iter().enumerate() {
            let (column, row) = to(at % Grid::COLUMNS, at / Grid::COLUMNS);
            let sums = &mut self.cells[row * Grid::COLUMNS + column];
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// The cells with anything in them: column, row, and how many of each kind.
    pub fn filled(&self) -> impl Iterator<Item = (u64, u64, &[u32; 4])> {
        let cells = self.cells.iter().enumerate().filter(|(_, counts)| counts.iter().any(|count| *count > 0));
        cells.map(|(at, counts)| ((at % Grid::COLUMNS) as u64, (at / Grid::COLUMNS) as u64, counts))
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
    pub(crate) fn trace(count: u64) -> Traced {
        let mut traced = Traced { of: "pid 812".into(), elapsed_ns: count * 1000, ..Traced::default() };
        for at in 0..count {
            let op = if at % 3 == 0 { TracedOp::Write } else { TracedOp::Read };
            traced.add(&io(at * 1000, op, at * 8192 % (64 << 20), 50_000 + at * 7));
        }
        traced
    }

    #[test]
    fn memory_is_bounded_and_every_io_is_in_the_picture() {
        let count = 400_000;
        let mut traced = trace(count);
        traced.add(&io(3_600_000_000_000, TracedOp::Read, 1 << 44, 9_000_000_000_000));
        assert_eq!(traced.ios(), count + 1);
        assert_eq!(traced.points.len(), Traced::POINTS_MAX + 1);
        let sum = |grid: &Grid| {
            grid.filled().flat_map(|(_, _, counts)| counts).map(|one| u64::from(*one)).sum::<u64>()
        };
        assert_eq!(
            (sum(&traced.latencies), sum(traced.files[0].offsets.as_ref().unwrap())),
            (count + 1, count + 1)
        );
        let grid = traced.files[0].offsets.as_ref().unwrap();
        let last = grid.filled().max_by_key(|(column, row, _)| (*column, *row)).unwrap();
        assert!((last.1 * grid.row..(last.1 + 1) * grid.row).contains(&(1 << 44)), "{last:?}");
    }

    #[test]
    fn totals_are_of_each_kind_and_file() {
        let mut traced = trace(9);
        traced.add(&io(9000, TracedOp::Sync, 0, 2_000_000));
        let told: Vec<_> = traced.by_op().map(|(op, totals)| (op.word(), totals.ios, totals.bytes)).collect();
        assert_eq!(told, [("read", 6, 6 * 8192), ("write", 3, 3 * 8192), ("sync", 1, 0)]);
        assert_eq!((traced.files.len(), traced.files[0].ios, traced.ops[2].max_ns), (1, 10, 2_000_000));
    }

    #[test]
    fn files_beyond_the_bound_are_told_together() {
        let mut traced = Traced::default();
        for at in 0..=Traced::FILES_MAX as u64 {
            traced.add(&TracedIo { file: format!("/{at}").into(), ..io(at, TracedOp::Read, 0, 1) });
        }
        assert_eq!((traced.files.len(), traced.other_files_ios), (Traced::FILES_MAX, 1));
        assert_eq!(traced.files.iter().filter(|file| file.offsets.is_some()).count(), Traced::PICTURES_MAX);
    }
}
