use loop_devices::LoopDevice;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

const PREFIX: &str = "headroom-testbed-";
/// A file system stays busy for a moment after its last user was killed.
const UNMOUNT_TRIES: u32 = 40;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// A new directory and its lock; directories of dead tests are cleaned first.
pub(crate) fn scratch() -> std::io::Result<(PathBuf, File)> {
    let root = fs::canonicalize(std::env::temp_dir())?;
    // Between the creation of a directory and its lock no other test may clean.
    let gate = OpenOptions::new().create(true).append(true).open(root.join(format!("{PREFIX}gate")))?;
    flock(&gate, FlockOperation::LockExclusive)?;
    let entries = fs::read_dir(&root)?.flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let mut disks: Vec<_> = ours
        .map(|entry| entry.path())
        .filter(|path| is_own_directory(path))
        .map(|path| (changed(&path), path))
        .collect();
    // A disk may lie on an older one.
    disks.sort_by(|a, b| b.cmp(a));
    disks.iter().for_each(|(_, path)| clean_if_dead(path));
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let directory = root.join(format!("{PREFIX}{}-{number}", std::process::id()));
    fs::create_dir_all(directory.join("mnt"))?;
    let alive = File::create(directory.join("alive"))?;
    flock(&alive, FlockOperation::NonBlockingLockExclusive)?;
    Ok((directory, alive))
}

/// Another user may make such names in the temporary directory too, with links in them to what is to be removed.
fn is_own_directory(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user)
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn clean_if_dead(directory: &Path) {
    let is_dead = match File::open(directory.join("alive")) {
        Ok(alive) => flock(&alive, FlockOperation::NonBlockingLockExclusive).is_ok(),
        // Killed before it created the file.
        Err(_) => true,
    };
    if is_dead {
        clean(directory);
    }
}

/// Unmounts, detaches and removes everything of one directory. Ignores failures: it also runs while a failed test unwinds.
pub(crate) fn clean(directory: &Path) {
    crate::postgres_server::end_left_over(directory);
    unmount(&directory.join("mnt"));
    let image = directory.join("disk.img");
    // A link where the image lies elsewhere.
    let image = fs::read_link(&image).unwrap_or(image);
    for device in LoopDevice::attached_to(&image) {
        let _ = run("partx", &["--delete", &device.path().to_string_lossy()]);
        let _ = device.detach();
    }
    let _ = fs::remove_file(image);
    let _ = fs::remove_dir_all(directory);
}

pub(crate) fn unmount(point: &Path) {
    let name = point.to_string_lossy();
    for _ in 0..UNMOUNT_TRIES {
        let is_mounted = host::Mounts::read().is_ok_and(|mounts| mounts.is_mount_point(point));
        if !is_mounted || run("umount", &[&name]).is_ok() {
            return;
        }
        thread::sleep(UNMOUNT_PAUSE);
    }
    let _ = run("umount", &["--lazy", &name]);
}

/// Runs a program. Returns its standard output, or its standard error as the error.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let failed = |why: String| format!("{program} {}: {why}", arguments.join(" "));
    output(Command::new(program).args(arguments)).map_err(failed)
}

/// Runs a program and returns its stdout, or its stderr where it failed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

/// Runs a program; panics with its output if it fails.
pub(crate) fn must(program: &str, arguments: &[&str]) {
    run(program, arguments).unwrap_or_else(|error| panic!("{error}"));
}

/// Waits until the condition holds; panics with `otherwise` if it does not hold in time.
pub(crate) fn wait_until(otherwise: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < WAIT_MAX, "{otherwise}");
        thread::sleep(POLL_EVERY);
    }
}

/// Does nothing if the process has ended.
pub(crate) fn signal(process: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}
