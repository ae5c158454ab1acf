//! The directory `headroom.tmp/` in which a program makes everything that it makes on the storage in question.

use crate::{Failure, Output, interrupt};
use history::History;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use storage::{FillProgress, StorageError, TestFile, Workspace};
use workload::format_bytes;

/// Opens the workspace in `dir`, and removes files that a killed Headroom left there.
///
/// # Errors
/// The directory cannot be used, or another Headroom uses it.
pub fn open(dir: &Path, history: &mut History, out: &mut Output) -> Result<Workspace, Failure> {
    let workspace = Workspace::open(dir)?;
    forget_test_files(&workspace, history)?;
    for stranger in workspace.foreign_files() {
        out.warn(format_args!("{stranger} in {} is not Headroom's and stays", workspace.path().display()));
    }
    Ok(workspace)
}

/// Removes the workspace at the end. Files of others in it were reported when it was opened: they are no error now.
///
/// # Errors
/// It cannot be removed.
pub fn remove(workspace: Workspace, out: &mut Output) -> Result<(), Failure> {
    match workspace.remove() {
        Err(kept @ StorageError::WorkspaceKept { .. }) => out.warn(kept),
        other => other?,
    }
    Ok(())
}

/// Makes a test file in a workspace. The history has it before it exists and until it is removed, so that a kill leaves no
/// unrecorded file.
///
/// # Errors
/// It cannot be made or recorded, or the user ended it.
pub fn make_test_file(
    workspace: &Workspace,
    name: &str,
    bytes: u64,
    history: &mut History,
    out: &mut Output,
) -> Result<TestFile, Failure> {
    begin_test_file(workspace, name, (bytes, Duration::MAX), history, out)
}

/// Begins a test file as [`make_test_file`] does, of at most this many bytes and within this time; [`TestFile::complete`]
/// writes the rest.
///
/// # Errors
/// It cannot be made or recorded, or the user ended it.
pub fn begin_test_file(
    workspace: &Workspace,
    name: &str,
    (bytes, time): (u64, Duration),
    history: &mut History,
    out: &mut Output,
) -> Result<TestFile, Failure> {
    let path = recorded_path(&workspace.entry(name));
    history.record_test_file(&path, bytes, None)?;
    let made = workspace.begin_test_file(name, bytes, time, &mut filling(out));
    if made.is_err() && !path.exists() {
        history.forget_test_file(&path)?;
    }
    Ok(made?)
}

/// Removes a test file, and its record with it.
///
/// # Errors
/// It cannot be removed, or the history cannot be changed.
pub fn remove_test_file(file: TestFile, history: &mut History) -> Result<(), Failure> {
    let path = recorded_path(file.path());
    let removed = file.remove();
    if !path.exists() {
        history.forget_test_file(&path)?;
    }
    Ok(removed?)
}

/// The path under which the history knows a file of a workspace.
fn recorded_path(path: &Path) -> PathBuf {
    canonical(path.parent().unwrap_or(path)).join(path.file_name().unwrap_or_default())
}

/// Shows how far the writing of a file is, and ends it on Ctrl-C.
pub fn filling(out: &mut Output) -> impl FnMut(FillProgress) -> ControlFlow<()> {
    let began = Instant::now();
    move |progress| {
        let done = progress.done_bytes as f64 / progress.total_bytes.max(1) as f64;
        let elapsed = began.elapsed();
        let left = (done > 0.02).then(|| elapsed.mul_f64((1.0 - done) / done));
        let speed = progress.done_bytes as f64 / elapsed.as_secs_f64().max(1e-3) / 1048576.0;
        let total = format_bytes(progress.total_bytes);
        out.progress(format_args!("writing a test file of {total}, {speed:.0} MiB/s"), left);
        interrupt::break_if_requested()
    }
}

/// Deletes from the history the test files that a killed Headroom left in the workspace, which are gone now; returns how
/// many.
///
/// # Errors
/// The history cannot be read or changed.
pub fn forget_test_files(workspace: &Workspace, history: &mut History) -> Result<u64, Failure> {
    let path = canonical(workspace.path());
    let mut forgotten = 0;
    for file in history.test_files()? {
        if file.path.starts_with(&path) && history.forget_test_file(&file.path)? {
            forgotten += 1;
        }
    }
    Ok(forgotten)
}

/// The path without symlinks, so that one directory has one name in the history.
pub fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_test_file_goes_with_its_workspace_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(&dir.path().join("history.db")).unwrap();
        let left = canonical(dir.path()).join("headroom.tmp/test");
        let elsewhere = PathBuf::from("/elsewhere/headroom.tmp/test");
        history.record_test_file(&left, 1, None).unwrap();
        history.record_test_file(&elsewhere, 1, None).unwrap();
        let mut out = Output::new(false);
        let workspace = open(dir.path(), &mut history, &mut out).unwrap();
        let paths: Vec<PathBuf> = history.test_files().unwrap().into_iter().map(|file| file.path).collect();
        assert_eq!(paths, [elsewhere]);
        remove(workspace, &mut out).unwrap();
        assert!(!dir.path().join("headroom.tmp").exists());
    }
}
