//! Opens what a plan runs on, by the rules of `storage`, and takes away afterwards what was made for it:
//! shared by all commands that run load.

use crate::layouts;
use crate::measure::{making, test_file_bytes};
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

/// Opens each target of a plan, once for each way of caching that its workloads ask for. In a directory a test
/// file is made, of `create_bytes` or a size by what is free; at a path with `create_bytes` a lasting file,
/// unless Headroom made it before. What is written to must be Headroom's own, or named in `destroy`.
pub fn open(
    plan: &Plan,
    traces: &Traces,
    destroy: &[PathBuf],
    history: &mut History,
    out: &mut Output,
) -> Result<Opened, Failure> {
    check_destroy(plan, destroy)?;
    let mut opened = Opened::default();
    for (at, target) in plan.targets.iter().enumerate() {
        let asked = Asked::of(plan, traces, at);
        if let Err(failure) = opened.add_laid(at, target, &asked, destroy, history, out) {
            // What was made so far goes again; the first failure is the one to tell.
            let _ = opened.remove(history, out);
            return Err(failure);
        }
    }
    Ok(opened)
}

/// What the workloads ask of one target.
struct Asked {
    writes: bool,
    cachings: Vec<Caching>,
}

impl Asked {
    fn of(plan: &Plan, traces: &Traces, target: usize) -> Asked {
        let mut asked = Asked { writes: false, cachings: Vec::new() };
        let all = plan.phases.iter().flat_map(|phase| &phase.workloads);
        for placed in all.filter(|placed| placed.target == target) {
            asked.writes |= traces.of(placed).map_or(placed.workload.shape.writes(), Trace::writes);
            let caching = placed.workload.shape.caching;
            if !asked.cachings.contains(&caching) {
                asked.cachings.push(caching);
            }
        }
        asked
    }
}

fn check_destroy(plan: &Plan, destroy: &[PathBuf]) -> Result<(), Failure> {
    for named in destroy {
        if named.is_dir() {
            let what = "--destroy-data is for a file or block device; a directory is never written over";
            return Err(Failure::usage(what));
        }
        if !plan
            .targets
            .iter()
            .flat_map(PlanTarget::members)
            .any(|path| workspace::canonical(path) == workspace::canonical(named))
        {
            let what = format!("--destroy-data {}: that is no target of this run", named.display());
            return Err(Failure::usage(what).with_remedy("name the target as it is named for the load"));
        }
    }
    Ok(())
}

impl Opened {
    /// The region of one of the plan's targets.
    pub fn region(&self, target: usize, caching: Caching) -> &Region {
        let of_it =
            |(at, its_caching, _): &&(usize, Caching, Region)| (*at, *its_caching) == (target, caching);
        let found = self.regions.iter().find(of_it);
        &found.expect("each target is open in each way that the plan asks for").2
    }

    /// What is known of the targets, by what load runs on: the name in the results.
    pub fn facts(&self) -> HashMap<String, TargetFacts> {
        let named = |(at, _, region): &(usize, Caching, Region)| (region.name(), self.facts[*at].clone());
        self.regions.iter().map(named).collect()
    }

    /// Files that somebody cut while they were open: path, bytes at the opening, bytes now.
    pub fn cut(&self) -> Vec<(PathBuf, u64, u64)> {
        let members = self.regions.iter().flat_map(|(_, _, region)| region.members());
        let cut = members.filter_map(|region| {
            let metadata = region.file.metadata().ok().filter(std::fs::Metadata::is_file)?;
            let whole = region.offset_bytes + region.bytes;
            (metadata.len() < whole).then(|| (region.path.clone(), whole, metadata.len()))
        });
        let mut cut: Vec<_> = cut.collect();
        cut.dedup_by(|a, b| a.0 == b.0);
        cut
    }

    /// Takes away what was made for the plan alone, and notes that lasting files are whole again.
    pub fn remove(self, history: &mut History, out: &mut Output) -> Result<(), Failure> {
        drop(self.regions);
        let mut done = Ok(());
        for mut file in self.loaded {
            let ended = file.end_load().map_err(Failure::from).and_then(|()| record(&file, history));
            done = done.and(ended);
        }
        for file in self.test_files {
            let path = real_entry(file.path());
            done = done.and(file.remove().map_err(Failure::from));
            if !path.exists() {
                done = done.and(history.forget_test_file(&path).map(drop).map_err(Failure::from));
            }
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

    /// A target, of one file or device or of several as one.
    fn add_laid(
        &mut self,
        at: usize,
        target: &PlanTarget,
        asked: &Asked,
        destroy: &[PathBuf],
        history: &mut History,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let Some(laid) = &target.laid else { return self.add(at, target, asked, destroy, history, out) };
        let (regions_before, facts_before) = (self.regions.len(), self.facts.len());
        for path in target.members() {
            let member = PlanTarget { path: path.clone(), create_bytes: target.create_bytes, laid: None };
            self.add(at, &member, asked, destroy, history, out)?;
        }
        let mut members = self.regions.split_off(regions_before);
        let facts = self.facts.split_off(facts_before);
        for caching in &asked.cachings {
            let mut of_it = Vec::new();
            let mut others = Vec::new();
            for (at, its, region) in members {
                if its == *caching { of_it.push(region) } else { others.push((at, its, region)) }
            }
            members = others;
            let region = Region::combine(laid.layout, of_it)?;
            if self.facts.len() == facts_before {
                self.facts.push(layouts::together(&region, facts.clone()));
            }
            self.regions.push((at, *caching, region));
        }
        Ok(())
    }

    fn add(
        &mut self,
        at: usize,
        target: &PlanTarget,
        asked: &Asked,
        destroy: &[PathBuf],
        history: &mut History,
        out: &mut Output,
    ) -> Result<(), Failure> {
        if target.path.is_dir() {
            return self.add_directory(at, target, asked, history, out);
        }
        let destroyed =
            destroy.iter().any(|named| workspace::canonical(named) == workspace::canonical(&target.path));
        let path = real_entry(&target.path);
        let ours = match target.create_bytes {
            Some(bytes) => Some(lasting(&path, bytes, history, out)?),
            None => known(&path, asked.writes && !destroyed, history)?,
        };
        let opened = Target::open(&target.path).map_err(not_there)?;
        self.facts.push(opened.facts().clone());
        let may_write = destroyed || ours.is_some();
        let access = match asked.writes {
            true => Access::ReadWrite { destroy_data: may_write },
            false => Access::ReadOnly,
        };
        let device = opened.facts().kind == TargetKind::BlockDevice;
        if device && asked.writes && asked.cachings.len() > 1 {
            let what =
                format!("cannot write to {} both through the page cache and past it", target.path.display());
            return Err(Failure::new(what).with_remedy("one caching for all workloads on a block device"));
        }
        if let Some(mut file) = ours.filter(|_| asked.writes) {
            file.begin_load()?;
            record(&file, history)?;
            self.loaded.push(file);
        }
        for caching in &asked.cachings {
            let region = opened.open_for(access, *caching).map_err(not_ours)?;
            self.regions.push((at, *caching, region));
        }
        Ok(())
    }

    fn add_directory(
        &mut self,
        at: usize,
        target: &PlanTarget,
        asked: &Asked,
        history: &mut History,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let opened = Target::open(&target.path)?;
        self.facts.push(opened.facts().clone());
        let direct = asked.cachings.contains(&Caching::Direct);
        let dir = workspace::canonical(opened.path());
        let place = match self.workspaces.iter().position(|workspace| workspace.dir() == dir) {
            Some(place) => place,
            None => {
                self.workspaces.push(workspace::open(&dir, history, out)?);
                self.workspaces.len() - 1
            }
        };
        let workspace = &self.workspaces[place];
        let bytes = target.create_bytes.unwrap_or_else(|| test_file_bytes(&opened));
        // First, since on a full disk nothing else can be found out.
        workspace.check_room(bytes)?;
        if direct && opened.facts().direct_align_bytes.is_none() {
            let what = "its file system does every I/O through memory (no direct I/O)";
            return Err(Failure::new(format_args!("cannot load {}: {what}", opened.path().display()))
                .with_remedy("--buffered, which includes the page cache, or another directory"));
        }
        let name = if self.test_files.is_empty() {
            "test".into()
        } else {
            format!("test-{}", self.test_files.len() + 1)
        };
        // On record before it is there, until it is gone, whatever happens between.
        let path = workspace.entry(&name);
        history.record_test_file(&path, bytes)?;
        match workspace.test_file(&name, bytes, &mut making(out)) {
            Ok(file) => self.test_files.push(file),
            Err(error) => {
                if !path.exists() {
                    history.forget_test_file(&path)?;
                }
                return Err(error.into());
            }
        }
        let file = &self.test_files[self.test_files.len() - 1];
        for caching in &asked.cachings {
            self.regions.push((at, *caching, file.region(*caching)?));
        }
        Ok(())
    }
}

/// The lasting file at `path`: the one that is there if Headroom made it with that size, or else a new one.
fn lasting(path: &Path, bytes: u64, history: &mut History, out: &mut Output) -> Result<MadeFile, Failure> {
    let recorded = history.mark_of(path)?;
    match MadeFile::find(path, recorded.as_deref())? {
        FoundFile::Nothing => {}
        FoundFile::Ours(file) if file.bytes() == bytes => return Ok(file),
        FoundFile::Ours(file) => {
            let (was, is) = (format_bytes(file.bytes()), format_bytes(bytes));
            out.note(format_args!("{} had {was}: it is made anew with {is}", path.display()));
            file.remove()?;
        }
        FoundFile::Unfinished(file) => file.remove()?,
        FoundFile::Changed => return Err(changed(path)),
        FoundFile::NotOurs => return Err(StorageError::Exists { path: path.into() }.into()),
    }
    let file = MadeFile::create(path, bytes)?;
    record(&file, history)?;
    let file = file.fill(&mut making(out));
    if file.is_err() {
        history.forget_test_file(path)?;
    }
    let file = file?;
    record(&file, history)?;
    Ok(file)
}

/// The file at `path` if Headroom made it; refused if load is to write to it and another wrote since.
fn known(path: &Path, must_be_ours: bool, history: &History) -> Result<Option<MadeFile>, Failure> {
    if !path.is_file() {
        return Ok(None);
    }
    let recorded = history.mark_of(path)?;
    match MadeFile::find(path, recorded.as_deref())? {
        FoundFile::Ours(file) => Ok(Some(file)),
        FoundFile::Unfinished(file) => {
            let what =
                format!("cannot load {}: a headroom was ended while it made this file", path.display());
            Err(Failure::new(what).with_remedy(format_args!(
                "--create {}, which makes it anew",
                format_bytes(file.bytes()).replace(" GiB", "G").replace(" MiB", "M")
            )))
        }
        FoundFile::Changed if must_be_ours => Err(changed(path)),
        FoundFile::Changed | FoundFile::Nothing | FoundFile::NotOurs => Ok(None),
    }
}

fn changed(path: &Path) -> Failure {
    let what = "headroom made this file, but another program changed it since";
    Failure::new(format_args!("cannot write to {}: {what}", path.display())).with_remedy(format_args!(
        "another path with --create SIZE; or --destroy-data {}, after which its content is lost",
        path.display()
    ))
}

/// Keeps the mark of a file that cannot carry it.
fn record(file: &MadeFile, history: &mut History) -> Result<(), Failure> {
    if !file.in_file() {
        history.record_mark(file.path(), file.bytes(), &file.mark())?;
    }
    Ok(())
}

fn not_there(error: StorageError) -> Failure {
    match &error {
        StorageError::NotThere { path } if path.parent().is_some_and(Path::is_dir) => Failure::new(&error)
            .with_remedy("check the path; or --create SIZE, which makes a lasting file there"),
        _ => error.into(),
    }
}

/// The remedies of a load, in place of those of a measurement.
fn not_ours(error: StorageError) -> Failure {
    let StorageError::NotOurs { path, kind } = &error else { return error.into() };
    Failure::new(&error).with_remedy(format_args!(
        "only reading; a directory, or another path with --create SIZE; or --destroy-data {}, after which the \
         content of this {kind} is lost",
        path.display()
    ))
}

/// Without symlinks in the directories above, also of what is not there yet.
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
