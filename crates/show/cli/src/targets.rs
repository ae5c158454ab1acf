//! Opens the targets of a plan by the rules of `storage`, and removes the files made for it afterwards. All commands
//! that run load use it.

use crate::layouts;
use crate::traces::Traces;
use history::History;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use storage::{Access, FoundFile, MadeFile, Region, StorageError, Target, TestFile, Workspace};
use terminal::{Failure, Output, workspace};
use workload::{Caching, Plan, PlanTarget, TargetFacts, TargetKind, Trace, format_bytes};

/// The open targets of a plan.
#[derive(Default)]
pub struct Opened {
    regions: Vec<(usize, Caching, Region)>,
    test_files: Vec<TestFile>,
    workspaces: Vec<Workspace>,
    loaded: Vec<MadeFile>,
    facts: Vec<TargetFacts>,
}

/// Opens each target of a plan, once for each caching mode of its workloads. In a directory a test file is created, of
/// `create_bytes` or a size by the free space; at a path with `create_bytes` a lasting file, unless Headroom created it
/// before. A target that is written must be Headroom's own, or named in `destroy`.
pub fn open(
    plan: &Plan,
    traces: &Traces,
    destroy: &[PathBuf],
    history: &mut History,
    out: &mut Output,
) -> Result<Opened, Failure> {
    let members: Vec<PathBuf> = plan.targets.iter().flat_map(PlanTarget::members).cloned().collect();
    check_destroy(&members, destroy)?;
    let mut opening = Opening { opened: Opened::default(), destroy, history, out };
    for (at, target) in plan.targets.iter().enumerate() {
        let demand = Demand::on_target(plan, traces, at);
        if let Err(failure) = opening.add_laid(at, target, &demand) {
            // Files that were created so far are removed again; the first failure is reported.
            let Opening { opened, history, out, .. } = opening;
            let _ = opened.remove(history, out);
            return Err(failure);
        }
    }
    Ok(opening.opened)
}

/// The access that the workloads need to one target.
struct Demand {
    writes: bool,
    cachings: Vec<Caching>,
}

impl Demand {
    fn on_target(plan: &Plan, traces: &Traces, target: usize) -> Demand {
        let mut demand = Demand { writes: false, cachings: Vec::new() };
        let all = plan.phases.iter().flat_map(|phase| &phase.workloads);
        for placed in all.filter(|placed| placed.target == target) {
            demand.writes |= traces.replayed_by(placed).map_or(placed.workload.shape.writes(), Trace::writes);
            let caching = placed.workload.shape.caching;
            if !demand.cachings.contains(&caching) {
                demand.cachings.push(caching);
            }
        }
        demand
    }
}

/// Size of the test file where nothing is said.
const TEST_FILE_BYTES: u64 = 1 << 30;
/// A smaller test file measures little but caches.
const TEST_FILE_BYTES_MIN: u64 = 64 << 20;

/// A quarter of the free space, within reason.
pub fn test_file_bytes(target: &Target) -> u64 {
    TEST_FILE_BYTES.min(target.facts().free_bytes / 4).max(TEST_FILE_BYTES_MIN)
}

/// Refuses `--destroy-data` with a directory.
const NO_DIRECTORY_IS_DESTROYED: &str =
    "--destroy-data is for a file or block device; a directory is never written over";

/// Checks that each path of `--destroy-data` is one of the targets and no directory.
pub fn check_destroy(targets: &[PathBuf], destroy: &[PathBuf]) -> Result<(), Failure> {
    for named in destroy {
        if named.is_dir() {
            return Err(Failure::usage(NO_DIRECTORY_IS_DESTROYED));
        }
        if !targets.iter().any(|path| workspace::canonical(path) == workspace::canonical(named)) {
            let what = format!("--destroy-data {}: that is no target of this run", named.display());
            return Err(Failure::usage(what).with_remedy("name the target as it is named for the load"));
        }
    }
    Ok(())
}

impl Opened {
    /// The region of one of the plan's targets.
    pub fn region(&self, target: usize, caching: Caching) -> &Region {
        let found = self.regions.iter().find(|(at, its_caching, _)| (*at, *its_caching) == (target, caching));
        &found.expect("each target is open for each caching mode of the plan").2
    }

    /// The facts of the targets, by the name of their region in the results.
    pub fn facts(&self) -> HashMap<String, TargetFacts> {
        let named = |(at, _, region): &(usize, Caching, Region)| (region.name(), self.facts[*at].clone());
        self.regions.iter().map(named).collect()
    }

    /// Removes the files made for the plan, and marks lasting files as unchanged by others.
    pub fn remove(self, history: &mut History, out: &mut Output) -> Result<(), Failure> {
        drop(self.regions);
        let mut done = Ok(());
        for mut file in self.loaded {
            let ended = file.end_load().map_err(Failure::from).and_then(|()| record(&file, history));
            done = done.and(ended);
        }
        for file in self.test_files {
            done = done.and(workspace::remove_test_file(file, history));
        }
        for workspace in self.workspaces {
            if !workspace.path().exists() {
                out.warn(format_args!(
                    "{} was removed while headroom worked in it",
                    workspace.path().display()
                ));
                continue;
            }
            done = done.and(workspace::remove(workspace, out));
        }
        done
    }
}

/// Targets while they are opened.
struct Opening<'a> {
    opened: Opened,
    destroy: &'a [PathBuf],
    history: &'a mut History,
    out: &'a mut Output,
}

impl Opening<'_> {
    /// Adds a target: a file or device, or several laid out as one.
    fn add_laid(&mut self, at: usize, target: &PlanTarget, demand: &Demand) -> Result<(), Failure> {
        let Some(laid) = &target.laid else { return self.add(at, target, demand) };
        let (regions_before, facts_before) = (self.opened.regions.len(), self.opened.facts.len());
        for path in target.members() {
            let member = PlanTarget { path: path.clone(), create_bytes: target.create_bytes, laid: None };
            self.add(at, &member, demand)?;
        }
        let mut members = self.opened.regions.split_off(regions_before);
        let facts = self.opened.facts.split_off(facts_before);
        for caching in &demand.cachings {
            let mut regions = Vec::new();
            let mut others = Vec::new();
            for (at, its, region) in members {
                if its == *caching { regions.push(region) } else { others.push((at, its, region)) }
            }
            members = others;
            let region = Region::combine(laid.layout, regions)?;
            if self.opened.facts.len() == facts_before {
                self.opened.facts.push(layouts::together(&region, facts.clone()));
            }
            self.opened.regions.push((at, *caching, region));
        }
        Ok(())
    }

    fn add(&mut self, at: usize, target: &PlanTarget, demand: &Demand) -> Result<(), Failure> {
        if target.path.is_dir() {
            return self.add_directory(at, target, demand);
        }
        let destroyed = self
            .destroy
            .iter()
            .any(|named| workspace::canonical(named) == workspace::canonical(&target.path));
        let path = real_entry(&target.path);
        let mut ours = match target.create_bytes {
            Some(bytes) => Some(lasting(&path, bytes, self.history, self.out)?),
            None => known(&path, demand.writes && !destroyed, self.history)?,
        };
        let opened = Target::open(&target.path).map_err(not_there)?;
        self.opened.facts.push(opened.facts().clone());
        let may_write = destroyed || ours.is_some();
        let access = match demand.writes {
            true => Access::ReadWrite { destroy_data: may_write },
            false => Access::ReadOnly,
        };
        let device = opened.facts().kind == TargetKind::BlockDevice;
        if device && demand.writes && demand.cachings.len() > 1 {
            let what =
                format!("cannot write to {} both through the page cache and past it", target.path.display());
            return Err(Failure::new(what).with_remedy("one caching for all workloads on a block device"));
        }
        if let Some(file) = ours.as_mut().filter(|_| demand.writes) {
            file.begin_load()?;
            record(file, self.history)?;
        }
        let regions = demand.cachings.iter().map(|caching| {
            let region = match &ours {
                Some(file) => opened.open_made(file, access, *caching),
                None => opened.open_for(access, *caching),
            };
            Ok((at, *caching, region.map_err(not_ours)?))
        });
        let regions: Result<Vec<_>, Failure> = regions.collect();
        // Also if one cannot be opened: the load has begun.
        self.opened.loaded.extend(ours.filter(|_| demand.writes));
        self.opened.regions.extend(regions?);
        Ok(())
    }

    fn add_directory(&mut self, at: usize, target: &PlanTarget, demand: &Demand) -> Result<(), Failure> {
        let opened = Target::open(&target.path)?;
        self.opened.facts.push(opened.facts().clone());
        let direct = demand.cachings.contains(&Caching::Direct);
        let dir = workspace::canonical(opened.path());
        let place = match self.opened.workspaces.iter().position(|workspace| workspace.dir() == dir) {
            Some(place) => place,
            None => {
                self.opened.workspaces.push(workspace::open(&dir, self.history, self.out)?);
                self.opened.workspaces.len() - 1
            }
        };
        let workspace = &self.opened.workspaces[place];
        let bytes = target.create_bytes.unwrap_or_else(|| test_file_bytes(&opened));
        // Checked first, because the further checks need space too.
        workspace.check_room(bytes)?;
        if direct && opened.facts().direct_align_bytes.is_none() {
            let what = "its file system does every I/O through memory (no direct I/O)";
            return Err(Failure::new(format_args!("cannot load {}: {what}", opened.path().display()))
                .with_remedy("--buffered, which includes the page cache, or another directory"));
        }
        let name = if self.opened.test_files.is_empty() {
            "test".into()
        } else {
            format!("test-{}", self.opened.test_files.len() + 1)
        };
        let file = workspace::make_test_file(workspace, &name, bytes, self.history, self.out)?;
        let regions = demand.cachings.iter().map(|caching| Ok((at, *caching, file.region(*caching)?)));
        let regions = regions.collect::<Result<Vec<_>, StorageError>>();
        self.opened.test_files.push(file);
        self.opened.regions.extend(regions?);
        Ok(())
    }
}

/// The lasting file at `path`: the existing one if Headroom made it with that size, or else a new one.
fn lasting(path: &Path, bytes: u64, history: &mut History, out: &mut Output) -> Result<MadeFile, Failure> {
    let recorded = history.mark_of(path)?;
    match MadeFile::find(path, recorded.as_deref())? {
        FoundFile::Nothing => {}
        FoundFile::Ours(file) if file.bytes() == bytes => return Ok(file),
        FoundFile::Ours(file) => {
            let (was, is) = (format_bytes(file.bytes()), format_bytes(bytes));
            out.note(format_args!("{} had {was}: it is made again with {is}", path.display()));
            file.remove()?;
        }
        FoundFile::Interrupted => return Err(killed(path)),
        FoundFile::Changed => return Err(changed(path)),
        FoundFile::Unproven => return Err(unproven(path)),
        FoundFile::NotOurs => return Err(StorageError::Exists { path: path.into() }.into()),
    }
    let file = MadeFile::create(path, bytes)?;
    record(&file, history)?;
    let file = file.fill(&mut workspace::filling(out));
    if file.is_err() {
        history.forget_test_file(path)?;
    }
    let file = file?;
    record(&file, history)?;
    Ok(file)
}

/// The file at `path` if Headroom made it. Refused if load writes to it and another program changed it.
fn known(path: &Path, must_be_ours: bool, history: &History) -> Result<Option<MadeFile>, Failure> {
    if !path.is_file() {
        return Ok(None);
    }
    let recorded = history.mark_of(path)?;
    match MadeFile::find(path, recorded.as_deref())? {
        FoundFile::Ours(file) => Ok(Some(file)),
        FoundFile::Interrupted if must_be_ours => Err(killed(path)),
        FoundFile::Changed if must_be_ours => Err(changed(path)),
        FoundFile::Unproven if must_be_ours => Err(unproven(path)),
        FoundFile::Interrupted
        | FoundFile::Changed
        | FoundFile::Unproven
        | FoundFile::Nothing
        | FoundFile::NotOurs => Ok(None),
    }
}

fn changed(path: &Path) -> Failure {
    not_overwritten(
        path,
        "headroom made this file, but it was written to, renamed or given other rights since",
    )
}

fn killed(path: &Path) -> Failure {
    let what = "a headroom was killed while it wrote to this file, or another program wrote to it meanwhile, and what is in it \
                now is unknown";
    not_overwritten(path, what)
}

fn unproven(path: &Path) -> Failure {
    let what = "headroom made this file, but whether another program has changed it since is unknown: an earlier headroom marked \
                it, or its file system keeps no time of changes";
    not_overwritten(path, what)
}

fn not_overwritten(path: &Path, why: &str) -> Failure {
    Failure::new(format_args!("cannot write to {}: {why}", path.display())).with_remedy(format_args!(
        "remove it if nothing of yours is in it, and make it again with --size SIZE; or --destroy-data {}, after \
         which its content is lost",
        path.display()
    ))
}

/// Records the mark of a file whose file system has no extended attributes.
fn record(file: &MadeFile, history: &mut History) -> Result<(), Failure> {
    if !file.in_file() {
        history.record_test_file(file.path(), file.bytes(), Some(&file.mark()))?;
    }
    Ok(())
}

fn not_there(error: StorageError) -> Failure {
    match &error {
        StorageError::NotThere { path } if path.parent().is_some_and(Path::is_dir) => Failure::new(&error)
            .with_remedy("check the path; or --size SIZE, which makes a lasting file there"),
        _ => error.into(),
    }
}

/// The error with the remedies of a load instead of those of a measurement.
fn not_ours(error: StorageError) -> Failure {
    let StorageError::NotOurs { path, kind } = &error else { return error.into() };
    Failure::new(&error).with_remedy(format_args!(
        "only reading; a directory, or another path with --size SIZE; or --destroy-data {}, after which the \
         content of this {kind} is lost",
        path.display()
    ))
}

/// The path with the symbolic links of its directories resolved, also for a file that does not exist yet.
fn real_entry(path: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if parent.as_os_str().is_empty() => {
            workspace::canonical(Path::new(".")).join(name)
        }
        (Some(parent), Some(name)) => workspace::canonical(parent).join(name),
        _ => path.into(),
    }
}
