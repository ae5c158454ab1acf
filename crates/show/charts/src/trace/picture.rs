//! What the picture of a trace needs, in bounded memory however long the trace is.

use filestats::{TracedIo, TracedOp};
use std::rc::Rc;

/// The I/Os of a trace as points, and as cells of grids where they are too many.
#[derive(Clone, Debug, Default)]
pub struct TracePicture {
    pub(super) ios: u64,
    first_ns: Option<u64>,
    /// One more than is drawn: then they are too many.
    pub(super) points: Vec<Point>,
    pub(super) latencies: Grid,
    /// Of the first files: the path, and where its I/Os were over time.
    pub(super) offsets: Vec<(Rc<str>, Grid)>,
}

/// One I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) at_ns: u64,
    pub(super) latency_ns: u64,
    pub(super) offset_bytes: Option<u64>,
    /// In the order of files.
    pub(super) file: usize,
    pub(super) op: TracedOp,
}

impl TracePicture {
    /// Files that have a panel.
    pub(super) const FILES_MAX: usize = 6;
    /// More I/Os than these are drawn as heat maps.
    pub(super) const POINTS_MAX: usize = 3000;

    /// Adds an I/O of the file with that number, in the order of the files' first I/Os.
    pub fn add(&mut self, file: usize, io: &TracedIo) {
        self.ios += 1;
        // I/Os come in the order of their ends.
        self.first_ns = Some(self.first_ns.map_or(io.at_ns, |first| first.min(io.at_ns)));
        self.latencies.add(io.at_ns, latency_row(io.latency_ns), io.op);
        if file == self.offsets.len() && file < TracePicture::FILES_MAX {
            self.offsets.push((Rc::clone(&io.file), Grid::default()));
        }
        if let (Some((_, grid)), Some(offset)) = (self.offsets.get_mut(file), io.offset_bytes) {
            grid.add(io.at_ns, offset, io.op);
        }
        if self.points.len() <= TracePicture::POINTS_MAX {
            self.points.push(Point {
                at_ns: io.at_ns,
                latency_ns: io.latency_ns,
                offset_bytes: io.offset_bytes,
                file,
                op: io.op,
            });
        }
    }

    /// From the beginning of the first I/O to that of the last one, at least a millisecond.
    pub(super) fn elapsed_ns(&self) -> u64 {
        self.latencies.end().saturating_sub(self.first_ns()).max(1_000_000)
    }

    /// When the first I/O began.
    pub(super) fn first_ns(&self) -> u64 {
        self.first_ns.unwrap_or(0)
    }
}

/// Ranges of latency for each power of ten.
pub(super) const RANGES_A_DECADE: f64 = 12.0;

fn latency_row(ns: u64) -> u64 {
    ((ns.max(1) as f64).log10() * RANGES_A_DECADE) as u64
}

/// How many I/Os of each kind there were in each cell of time and place. Where an I/O lies beyond the end, all cells grow
/// to twice their width or height, so that every I/O is in a cell.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) cell_ns: u64,
    pub(super) row: u64,
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
    /// Enough for latencies up to ten thousand seconds.
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

    fn end(&self) -> u64 {
        self.end
    }

    /// The cells with anything in them: column, row, and how many of each kind.
    pub(super) fn filled(&self) -> impl Iterator<Item = (u64, u64, &[u32; 4])> {
        let cells = self.cells.iter().enumerate().filter(|(_, counts)| counts.iter().any(|count| *count > 0));
        cells.map(|(at, counts)| ((at % Grid::COLUMNS) as u64, (at / Grid::COLUMNS) as u64, counts))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use filestats::{IoFlags, Served};

    pub(in crate::trace) fn io(at_ns: u64, op: TracedOp, offset_bytes: u64, latency_ns: u64) -> TracedIo {
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
    pub(in crate::trace) fn picture(count: u64) -> TracePicture {
        let mut picture = TracePicture::default();
        for at in 0..count {
            let op = if at % 3 == 0 { TracedOp::Write } else { TracedOp::Read };
            picture.add(0, &io(at * 1000, op, at * 8192 % (64 << 20), 50_000 + at * 7));
        }
        picture
    }

    #[test]
    fn memory_is_bounded_and_every_io_is_in_the_picture() {
        let count = 400_000;
        let mut picture = picture(count);
        picture.add(0, &io(3_600_000_000_000, TracedOp::Read, 1 << 44, 9_000_000_000_000));
        assert_eq!(picture.points.len(), TracePicture::POINTS_MAX + 1);
        let sum = |grid: &Grid| {
            grid.filled().flat_map(|(_, _, counts)| counts).map(|count| u64::from(*count)).sum::<u64>()
        };
        let grid = &picture.offsets[0].1;
        assert_eq!((sum(&picture.latencies), sum(grid)), (count + 1, count + 1));
        let last = grid.filled().max_by_key(|(column, row, _)| (*column, *row)).unwrap();
        assert!((last.1 * grid.row..(last.1 + 1) * grid.row).contains(&(1 << 44)), "{last:?}");
    }

    #[test]
    fn only_the_first_files_have_a_grid() {
        let mut picture = TracePicture::default();
        for at in 0..20 {
            let file = format!("/{at}").into();
            picture.add(at, &TracedIo { file, ..io(at as u64, TracedOp::Read, 0, 1) });
        }
        assert_eq!((picture.offsets.len(), picture.points.len()), (TracePicture::FILES_MAX, 20));
    }
}
