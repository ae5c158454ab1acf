use crate::measure::forget_test_files;
use crate::output::Output;
use crate::{Done, FINE};
use std::path::{Path, PathBuf};
use storage::{Target, Workspace};

/// Arguments of `headroom clean`.
#[derive(clap::Args)]
pub struct CleanArgs {
    /// Directory in which a headroom was killed
    #[arg(default_value = ".", value_name = "DIR")]
    dir: PathBuf,
}

/// `headroom clean`: takes over what a dead headroom left in a directory, and removes it.
pub fn run(args: &CleanArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let target = Target::open(&args.dir)?;
    let mut history = crate::history::open_to_write(history)?;
    let workspace = Workspace::open(target.path())?;
    let forgotten = forget_test_files(&workspace, &mut history)?;
    workspace.remove()?;
    out.answer(
        |_| format!("{} is clean", target.path().display()),
        || serde_json::json!({"dir": target.path(), "test_files_removed": forgotten}),
    );
    Ok(FINE)
}
