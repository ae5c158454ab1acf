//! `headroom lab clean`: takes over what a killed experiment left in a directory, its disks too, and removes it.

use crate::lun_failure;
use crate::workspace::remove_disks;
use std::path::{Path, PathBuf};
use storage::{Target, Workspace};
use terminal::workspace::forget_test_files;
use terminal::{Done, FINE, Output, kept};

/// Arguments of `headroom lab clean`.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 all is clean, 3 something stays, which is named with what to do.")]
pub struct CleanArgs {
    /// Directory where it was killed
    #[arg(default_value = ".", value_name = "DIR")]
    dir: PathBuf,
}

/// `headroom lab clean`.
pub fn run(args: &CleanArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let target = Target::open(&args.dir)?;
    let mut history = kept::open_to_write(history)?;
    let workspace = Workspace::open(target.path())?;
    let forgotten = forget_test_files(&workspace, &mut history)?;
    let disks = remove_disks(&workspace, out);
    workspace.remove()?;
    let disks = disks.map_err(lun_failure)?;
    out.answer(
        |_| {
            let removed =
                disks.iter().map(|disk| format!("removed {}, a killed experiment's disk\n", disk.display()));
            format!("{}{} is clean", removed.collect::<String>(), target.path().display())
        },
        || {
            serde_json::json!({
                "dir": target.path(),
                "test_files_removed": forgotten,
                "disks_removed": disks,
            })
        },
    );
    Ok(FINE)
}
