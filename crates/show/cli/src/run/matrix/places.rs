//! Targets of a matrix: test files in directories, made once for all runs, and files and devices unchanged.

use crate::layouts;
use crate::targets::check_destroy;
use ::matrix::{Matrix, Planner, Progress};
use history::{History, MatrixId};
use std::path::PathBuf;
use storage::{Access, Region, Target, TestFile, Workspace};
use terminal::{Failure, Output, workspace, workspace::canonical};
use workload::{Caching, Layout, TargetKind, format_bytes};

/// The targets, looked at and found fit; nothing is made yet.
pub struct Places<'a> {
    matrix: &'a Matrix,
    /// `None`: nothing is left to do there.
    targets: Vec<Option<Aim>>,
    /// Files and devices that may be written over, as the person named them.
    destroy: &'a [PathBuf],
}

/// One target of a matrix: a directory, file or device, or several files or devices as one.
struct Aim {
    targets: Vec<Target>,
    layout: Option<Layout>,
}

impl Aim {
    fn open(name: &str) -> Result<Aim, Failure> {
        let layout = layouts::of_name(name).map(|(layout, _)| layout);
        let targets = members(name).iter().map(|path| Target::open(path)).collect::<Result<_, _>>()?;
        Ok(Aim { targets, layout })
    }

    /// The directory that a test file is to be made in.
    fn directory(&self) -> Option<&Target> {
        self.targets.first().filter(|target| self.layout.is_none() && is_directory(target))
    }

    fn name(&self) -> String {
        let paths: Vec<String> =
            self.targets.iter().map(|target| target.path().display().to_string()).collect();
        self.layout.map_or_else(|| paths.join(", "), |layout| layouts::name(layout, &paths))
    }

    fn region(&self, places: &Places<'_>) -> Result<Region, Failure> {
        let open = |target: &Target| target.open_for(places.access(target), places.matrix.fixed.caching);
        match self.layout {
            None => Ok(open(&self.targets[0])?),
            Some(layout) => {
                let members = self.targets.iter().map(open).collect::<Result<_, _>>()?;
                Ok(Region::combine(layout, members)?)
            }
        }
    }
}

/// The paths of a target's name: one, or the members of a layout.
fn members(name: &str) -> Vec<PathBuf> {
    layouts::of_name(name).map_or_else(|| vec![PathBuf::from(name)], |(_, members)| members)
}

/// The targets, ready for load.
pub struct Prepared {
    places: Vec<Option<Place>>,
}

struct Place {
    // Dropped in this order: the file before the directory it is in.
    region: Region,
    made: Option<Made>,
}

struct Made {
    file: TestFile,
    workspace: Workspace,
}

/// A smaller test file measures little but caches.
const TEST_FILE_BYTES_MIN: u64 = 64 << 20;
/// The test file's name in the workspace.
const TEST_FILE: &str = "matrix";

impl<'a> Places<'a> {
    /// Checks every target of the remaining runs.
    pub fn check(
        matrix: &'a Matrix,
        planner: &Planner,
        progress: &Progress,
        destroy: &'a [PathBuf],
    ) -> Result<Places<'a>, Failure> {
        let named = matrix.targets.iter().flat_map(|name| members(name));
        check_destroy(&named.collect::<Vec<_>>(), destroy)?;
        let mut targets: Vec<Option<Aim>> = Vec::new();
        for (at, path) in matrix.targets.iter().enumerate() {
            let left = planner
                .order()
                .iter()
                .any(|key| planner.points()[key.point].target == at && progress.is_planned(*key));
            let target = if left { Some(Aim::open(path)?) } else { None };
            for target in target.iter().flat_map(|aim| &aim.targets) {
                check(target, matrix)?;
            }
            targets.push(target);
        }
        Ok(Places { matrix, targets, destroy })
    }

    fn access(&self, target: &Target) -> Access {
        if !self.matrix.writes() {
            return Access::ReadOnly;
        }
        let path = canonical(target.path());
        Access::ReadWrite { destroy_data: self.destroy.iter().any(|named| canonical(named) == path) }
    }

    /// Bytes of the test files that [`prepare`](Places::prepare) will write.
    pub fn bytes_to_write(&self) -> u64 {
        self.targets.iter().flatten().filter_map(Aim::directory).map(|it| file_bytes(self.matrix, it)).sum()
    }

    /// Opens the targets, and makes the test files.
    pub fn prepare(self, id: MatrixId, history: &mut History, out: &mut Output) -> Result<Prepared, Failure> {
        let mut prepared = Prepared { places: Vec::new() };
        for target in &self.targets {
            let place = match target {
                None => Ok(None),
                Some(aim) => self.place(id, aim, history, out).map(Some),
            };
            match place {
                Ok(place) => prepared.places.push(place),
                Err(failure) => {
                    prepared.remove(history, out)?;
                    return Err(failure);
                }
            }
        }
        Ok(prepared)
    }

    fn place(
        &self,
        id: MatrixId,
        aim: &Aim,
        history: &mut History,
        out: &mut Output,
    ) -> Result<Place, Failure> {
        let caching = self.matrix.fixed.caching;
        let Some(target) = aim.directory() else {
            let region = aim.region(self)?;
            let least = self.matrix.bytes_least();
            if region.bytes < least {
                return Err(Failure::new(format_args!(
                    "cannot run this matrix on {}: it has {}, and the threads' blocks need {}",
                    aim.name(),
                    format_bytes(region.bytes),
                    format_bytes(least)
                ))
                .with_remedy("a larger target, smaller blocks or fewer threads"));
            }
            return Ok(Place { region, made: None });
        };
        let bytes = history.matrix_file_bytes(id, file_bytes(self.matrix, target))?;
        let workspace = workspace::open(target.path(), history, out)?;
        workspace.check_room(bytes)?;
        let file = workspace::make_test_file(&workspace, TEST_FILE, bytes, history, out)?;
        match file.region(caching) {
            Ok(region) => Ok(Place { region, made: Some(Made { file, workspace }) }),
            Err(error) => {
                workspace::remove_test_file(file, history)?;
                Err(error.into())
            }
        }
    }
}

impl Prepared {
    /// Where the runs on a target go.
    ///
    /// # Panics
    /// For a target that no run was left on.
    pub fn region(&self, target: usize) -> &Region {
        &self.places[target].as_ref().expect("runs are left on this target").region
    }

    /// Removes the files that were made.
    pub fn remove(self, history: &mut History, out: &mut Output) -> Result<(), Failure> {
        let mut removed = Ok(());
        for place in self.places.into_iter().flatten() {
            let Place { region, made } = place;
            drop(region);
            if let Some(made) = made {
                removed = removed.and(made.remove(history, out));
            }
        }
        removed
    }
}

impl Made {
    fn remove(self, history: &mut History, out: &mut Output) -> Result<(), Failure> {
        workspace::remove_test_file(self.file, history)?;
        workspace::remove(self.workspace, out)
    }
}

/// Refuses a target that would fail after minutes of writing.
fn check(target: &Target, matrix: &Matrix) -> Result<(), Failure> {
    let path = target.path().display();
    if matrix.fixed.caching != Caching::Direct {
        return Ok(());
    }
    let Some(align_bytes) = target.facts().direct_align_bytes else {
        return Err(Failure::new(format_args!(
            "cannot run on {path}: its file system does every I/O through memory (no direct I/O)"
        ))
        .with_remedy("--buffered, which includes the page cache and is labelled so, or another directory"));
    };
    let odd = matrix.axes.block.iter().find(|block| !block.0.is_multiple_of(align_bytes));
    match odd {
        None => Ok(()),
        Some(block) => Err(Failure::new(format_args!(
            "cannot run blocks of {} B directly on {path}: it takes multiples of {align_bytes} B",
            block.0
        ))
        .with_remedy("larger blocks, or --buffered")),
    }
}

fn is_directory(target: &Target) -> bool {
    target.facts().kind == TargetKind::Directory
}

/// The requested size; otherwise enough for the largest point, at most a quarter of the free space.
fn file_bytes(matrix: &Matrix, target: &Target) -> u64 {
    let most = (target.facts().free_bytes / 4).max(TEST_FILE_BYTES_MIN).max(matrix.bytes_least());
    matrix.fixed.size.unwrap_or_else(|| matrix.test_file_bytes().min(most))
}
