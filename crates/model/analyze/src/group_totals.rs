//! Totals of all files of a kind in each interval, used by rules over several files. Its size depends on the
//! captures of the stretch, not on the files.

use filestats::{Counters, Figure, FileKind, FileSeries, Reason, Step};

/// Kinds that are summed apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileGroup {
    Data,
    Log,
    Temp,
}

/// Files of a kind in one interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    /// Their known operations.
    pub known: Counters,
    /// Why that is not all.
    pub unknown: Option<Reason>,
    /// Whether any file of the kind did anything.
    pub any: bool,
}

pub(crate) struct GroupTotals {
    cells: [Vec<Cell>; 3],
}

const IDLE: Cell = Cell { known: Counters::ZERO, unknown: None, any: false };

impl FileGroup {
    pub const ALL: [FileGroup; 3] = [FileGroup::Data, FileGroup::Log, FileGroup::Temp];

    pub fn for_kind(kind: FileKind) -> Option<FileGroup> {
        match kind {
            FileKind::Data => Some(FileGroup::Data),
            FileKind::Log | FileKind::Journal => Some(FileGroup::Log),
            FileKind::Temp => Some(FileGroup::Temp),
            FileKind::Device | FileKind::Other => None,
        }
    }

    pub fn kind(self) -> FileKind {
        match self {
            FileGroup::Data => FileKind::Data,
            FileGroup::Log => FileKind::Log,
            FileGroup::Temp => FileKind::Temp,
        }
    }
}

impl GroupTotals {
    /// For a series of this many ticks.
    pub fn new(ticks: usize) -> GroupTotals {
        GroupTotals { cells: [vec![IDLE; ticks], vec![IDLE; ticks], vec![IDLE; ticks]] }
    }

    pub fn add(&mut self, file: &FileSeries) {
        let Some(sum) = FileGroup::for_kind(file.file.kind) else { return };
        for step in &file.steps {
            let cell = &mut self.cells[sum as usize][step.at];
            match step.added.known() {
                Some(added) if cell.any => cell.known = cell.known.beside(added),
                Some(added) => (cell.known, cell.any) = (added, true),
                None => cell.unknown = cell.unknown.or(step.added.reason()),
            }
        }
    }

    /// All files of a kind as if they were one, interval by interval; `None` where they did nothing.
    pub fn steps(&self, sum: FileGroup) -> Option<Vec<Step>> {
        let cells = self.cells(sum).iter().enumerate();
        let steps = cells.flat_map(|(at, cell)| {
            let known = cell.any.then_some(Figure::Known(cell.known));
            let unknown = cell.unknown.map(Figure::unknown);
            known.into_iter().chain(unknown).map(move |added| Step { at, added })
        });
        let steps: Vec<Step> = steps.collect();
        steps.iter().any(|step| step.added.known().is_some()).then_some(steps)
    }

    /// The intervals of a kind; index 0 is none.
    pub fn cells(&self, sum: FileGroup) -> &[Cell] {
        &self.cells[sum as usize]
    }

    /// Known operations of a kind in the intervals that end at these ticks.
    pub fn over(&self, sum: FileGroup, ticks: std::ops::RangeInclusive<usize>) -> Counters {
        let cells = self.cells[sum as usize].get(ticks).unwrap_or_default();
        cells
            .iter()
            .filter(|cell| cell.any)
            .map(|cell| cell.known)
            .reduce(Counters::followed_by)
            .unwrap_or(Counters::ZERO)
    }
}
