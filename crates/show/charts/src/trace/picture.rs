//! Data for the picture of a trace, in bounded memory however long the trace is.

use filestats::{TracedIo, TracedOp};
use std::collections::HashMap;
use std::rc::Rc;

/// The I/Os of a trace as points, and as cells of grids where they are too many.
#[derive(Clone, Debug, Default)]
pub struct TracePicture {
    pub(super) ios: u64,
    first_ns: Option<u64>,
    /// One more than is drawn: then they are too many.
    pub(super) points: Vec<Point>,
    pub(super) latencies: Grid,
    /// By the numbers of the files.
    pub(super) files: Vec<FileOffsets>,
    /// Cells of all their grids.
    cells: usize,
}

/// Where the I/Os of a file were over time.
#[derive(Clone, Debug)]
pub(super) struct FileOffsets {
    pub(super) path: Rc<str>,
    pub(super) ios: u64,
    /// `None` where it was given up because all grids together became too large.
    pub(super) grid: Option<Grid>,
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
    /// Files that have a panel: the busiest.
    pub(super) const FILES_MAX: usize = 6;
    /// Files of which it is known where their I/Os were: which of them are the busiest shows at the end only.
    pub const FILES_TRACKED_MAX: usize = 1000;
    /// Cells of the grids of all files, some 12 MiB: twice what the drawn ones may have at most.
    const CELLS_MAX: usize = 2 * TracePicture::FILES_MAX * Grid::COLUMNS * Grid::ROWS;
    /// More I/Os than these are drawn as heat maps.
    pub(super) const POINTS_MAX: usize = 3000;

    /// Adds an I/O of the file with that number, in the order of the files' first I/Os.
    pub fn add(&mut self, file: usize, io: &TracedIo) {
        self.ios += 1;
        // I/Os come in the order of their ends.
        self.first_ns = Some(self.first_ns.map_or(io.at_ns, |first| first.min(io.at_ns)));
        self.latencies.add(io.at_ns, latency_row(io.latency_ns), io.op);
        if file == self.files.len() && file < TracePicture::FILES_TRACKED_MAX {
            self.files.push(FileOffsets { path: Rc::clone(&io.file), ios: 0, grid: Some(Grid::default()) });
        }
        if let Some(of_file) = self.files.get_mut(file) {
            of_file.ios += 1;
            if let (Some(grid), Some(offset)) = (&mut of_file.grid, io.offset_bytes) {
                let before = grid.cells.len();
                grid.add(io.at_ns, offset, io.op);
                self.cells = self.cells - before + grid.cells.len();
            }
        }
        if self.cells > TracePicture::CELLS_MAX {
            self.give_up_least_busy();
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

    fn give_up_least_busy(&mut self) {
        let with_cells = self
            .files
            .iter_mut()
            .filter(|file| file.grid.as_ref().is_some_and(|grid| !grid.cells.is_empty()));
        if let Some(grid) = with_cells.min_by_key(|file| file.ios).and_then(|file| file.grid.take()) {
            self.cells -= grid.cells.len();
        }
    }

    /// The numbers of the files that have a panel, the busiest first.
    pub(super) fn busiest(&self) -> Vec<usize> {
        let mut files: Vec<usize> =
            (0..self.files.len()).filter(|at| self.files[*at].grid.is_some()).collect();
        files.sort_by_key(|at| std::cmp::Reverse(self.files[*at].ios));
        files.truncate(TracePicture::FILES_MAX);
        files
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

/// The number of I/Os of each kind in each cell of time and place. Where an I/O lies beyond the end, all cells grow to
/// twice their width or height, so that every I/O is in a cell.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) cell_ns: u64,
    pub(super) row: u64,
    end: u64,
    /// Those with I/Os, by row x columns + column.
    cells: HashMap<usize, [u32; 4]>,
}

impl Default for Grid {
    fn default() -> Grid {
        Grid { cell_ns: 1_000_000, row: 1, end: 0, cells: HashMap::new() }
    }
}

impl Grid {
    const COLUMNS: usize = 200;
    /// Enough for latencies up to ten thousand seconds.
    const ROWS: usize = 160;

    fn add(&mut self, at_ns: u64, place: u64, op: TracedOp) {
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
        let count = &mut self.cells.entry(row * Grid::COLUMNS + column).or_default()[op as usize];
        *count = count.saturating_add(1);
    }

    fn merge(&mut self, to: impl Fn(usize, usize) -> (usize, usize)) {
        for (at, counts) in std::mem::take(&mut self.cells) {
            let (column, row) = to(at % Grid::COLUMNS, at / Grid::COLUMNS);
            let sums = self.cells.entry(row * Grid::COLUMNS + column).or_default();
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
    }

    fn end(&self) -> u64 {
        self.end
    }

    /// The cells with anything in them: column, row, and how many of each kind.
    pub(super) fn filled(&self) -> impl Iterator<Item = (u64, u64, &[u32; 4])> {
        // In one order, so that the same trace gives the same picture.
        let mut cells: Vec<(usize, &[u32; 4])> =
            self.cells.iter().map(|(at, counts)| (*at, counts)).collect();
        cells.sort_unstable_by_key(|(at, _)| *at);
        cells
            .into_iter()
            .map(|(at, counts)| ((at % Grid::COLUMNS) as u64, (at / Grid::COLUMNS) as u64, counts))
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
        let grid = picture.files[0].grid.as_ref().unwrap();
        assert_eq!((sum(&picture.latencies), sum(grid)), (count + 1, count + 1));
        let last = grid.filled().max_by_key(|(column, row, _)| (*column, *row)).unwrap();
        assert!((last.1 * grid.row..(last.1 + 1) * grid.row).contains(&(1 << 44)), "{last:?}");
    }

    #[test]
    fn the_busiest_files_are_drawn_and_not_the_first() {
        let mut picture = TracePicture::default();
        let mut at_ns = 0;
        for (file, ios) in (0..20).map(|file| (file, if file == 17 { 9 } else { 1 + file / 10 })) {
            for _ in 0..ios {
                let path = format!("/{file}").into();
                picture.add(file, &TracedIo { file: path, ..io(at_ns, TracedOp::Read, 0, 1) });
                at_ns += 1;
            }
        }
        assert_eq!(picture.busiest(), [17, 10, 11, 12, 13, 14]);
    }

    #[test]
    fn the_grids_of_many_scattered_files_stay_within_their_bound() {
        let mut picture = TracePicture::default();
        let (files, ios) = (30_usize, 25_000_u64);
        for at in 0..ios * files as u64 {
            let file = (at % files as u64) as usize;
            let offset = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24) % (1 << 36);
            picture.add(
                file,
                &TracedIo { file: format!("/{file}").into(), ..io(at * 50_000, TracedOp::Read, offset, 1) },
            );
        }
        let cells = |file: &FileOffsets| file.grid.as_ref().map_or(0, |grid| grid.cells.len());
        let all: usize = picture.files.iter().map(cells).sum();
        assert_eq!(all, picture.cells);
        assert!(all <= TracePicture::CELLS_MAX && all > TracePicture::CELLS_MAX / 2, "{all}");
        assert_eq!(picture.busiest().len(), TracePicture::FILES_MAX);
    }
}
