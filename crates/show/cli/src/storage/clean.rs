use serde::Serialize;
use std::path::{Path, PathBuf};
use storage::{Target, Workspace};
use terminal::{Done, FINE, Output, kept, workspace};

/// Arguments of `headroom storage clean`.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 all is clean, 3 something stays, which is named with what to do.")]
pub struct CleanArgs {
    /// Directory where it was killed
    #[arg(default_value = ".", value_name = "DIR")]
    dir: PathBuf,
}

/// Output of `headroom storage clean --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Clean"))]
pub(crate) struct Cleaned<'a> {
    /// The directory.
    dir: &'a Path,
    /// Test files that were removed.
    test_files_removed: u64,
}

/// `headroom storage clean`: takes over the files that a dead headroom left in a directory, and removes them.
pub fn run(args: &CleanArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let target = Target::open(&args.dir)?;
    let mut history = kept::open_to_write(history)?;
    let workspace = Workspace::open(target.path())?;
    let forgotten = workspace::forget_test_files(&workspace, &mut history)?;
    workspace.remove()?;
    out.answer(
        |_| format!("{} is clean", target.path().display()),
        || serde_json::json!(Cleaned { dir: target.path(), test_files_removed: forgotten }),
    );
    Ok(FINE)
}
