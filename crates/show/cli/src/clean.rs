use crate::measure::{forget_test_files, real};
use crate::output::Output;
use crate::{Done, FINE};
use luns::{Laboratory, LunError};
use std::path::{Path, PathBuf};
use storage::{Target, Workspace};

/// Arguments of `headroom clean`.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 all is clean, 3 something stays, which is named with what to do.")]
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
    let disks = remove_disks(&workspace, out);
    workspace.remove()?;
    let disks = disks?;
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

/// Takes away the disks whose files lay in a workspace that a dead headroom left: what it killed with it, mounts of
/// its own among them, is gone, but the device, its server and its mount live on. Their devices' names.
///
/// # Errors
/// The first that cannot be removed, once all others are: it is mounted or held by somebody else.
pub fn remove_disks(workspace: &Workspace, out: &mut Output) -> Result<Vec<PathBuf>, LunError> {
    let laboratory = Laboratory::here();
    let workspace = real(workspace.path());
    let disks = match laboratory.list() {
        // Only root makes disks, and a workspace with one in it is root's: this one, which we hold, has none.
        Err(LunError::Io { error, .. }) if error.kind() == std::io::ErrorKind::PermissionDenied => Vec::new(),
        Err(error) => {
            out.warn(format_args!("whether a killed experiment left a disk is not known: {error}"));
            Vec::new()
        }
        Ok(disks) => disks,
    };
    let mut removed = Vec::new();
    let mut done = Ok(());
    for (disk, _) in disks.into_iter().filter(|(disk, _)| disk.file.starts_with(&workspace)) {
        match laboratory.remove(&disk) {
            Ok(()) => removed.push(disk.device.unwrap_or(disk.file)),
            Err(error) => done = done.and(Err(error)),
        }
    }
    done.map(|()| removed)
}
