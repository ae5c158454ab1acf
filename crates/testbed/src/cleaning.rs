use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

const PREFIX: &str = "headroom-testbed-";
/// A file system stays busy for a moment after its last user was killed.
const UNMOUNT_TRIES: u32 = 40;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(50);

/// A new directory that lives as long as the returned lock; those of dead tests are cleaned away first.
pub(crate) fn scratch() -> std::io::Result<(PathBuf, File)> {
    let root = fs::canonicalize(std::env::temp_dir())?;
    // Between the making of a directory and its lock nobody else may look.
    let gate = OpenOptions::new().create(true).append(true).open(root.join(format!("{PREFIX}gate")))?;
    flock(&gate, FlockOperation::LockExclusive)?;
    let entries = fs::read_dir(&root)?.flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let mut disks: Vec<_> = ours
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .map(|path| (changed(&path), path))
        .collect();
    // A disk may stand on an older one.
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

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn clean_if_dead(directory: &Path) {
    let dead = match File::open(directory.join("alive")) {
        Ok(alive) => flock(&alive, FlockOperation::NonBlockingLockExclusive).is_ok(),
        // Killed before it was made.
        Err(_) => true,
    };
    if dead {
        clean(directory);
    }
}

/// Unmounts, detaches and removes everything of one directory, as far as it goes: it also runs while a
/// failed test unwinds.
pub(crate) fn clean(directory: &Path) {
    crate::postgres_server::end_left_over(directory);
    unmount(&directory.join("mnt"));
    let image = directory.join("disk.img");
    // A link where the image lies elsewhere.
    let image = fs::read_link(&image).unwrap_or(image);
    for device in attached(&image) {
        unthrottle(&device);
        let _ = run("partx", &["--delete", &device.to_string_lossy()]);
        let _ = run("losetup", &["--detach", &device.to_string_lossy()]);
    }
    let _ = fs::remove_file(image);
    let _ = fs::remove_dir_all(directory);
}

pub(crate) fn unmount(point: &Path) {
    let point = point.to_string_lossy();
    let mounted = || {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        mounts.lines().any(|line| line.split(' ').nth(4) == Some(&point))
    };
    for _ in 0..UNMOUNT_TRIES {
        if !mounted() || run("umount", &[&point]).is_ok() {
            return;
        }
        thread::sleep(UNMOUNT_PAUSE);
    }
    let _ = run("umount", &["--lazy", &point]);
}

/// The loop devices on that file, by what the kernel says.
fn attached(image: &Path) -> Vec<PathBuf> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let ours = devices.filter(|device| {
        let file = fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        Path::new(file.trim_end().trim_end_matches(" (deleted)")) == image
    });
    ours.map(|device| Path::new("/dev").join(device.file_name())).collect()
}

const BLKIO: &str = "/sys/fs/cgroup/blkio";
const THROTTLES: [&str; 4] = ["read_iops", "write_iops", "read_bps", "write_bps"];

/// Throttles outlive the attachment of a loop device: a killed test's would slow down a later one.
pub(crate) fn unthrottle(device: &Path) {
    let name = device.file_name().unwrap_or_default();
    let Ok(number) = fs::read_to_string(Path::new("/sys/block").join(name).join("dev")) else { return };
    for throttle in THROTTLES {
        let _ = fs::write(throttle_file(throttle), format!("{} 0", number.trim()));
    }
}

/// In the blkio group (cgroup v1) of this process: no other group's limits act on what it does.
pub(crate) fn throttle_file(throttle: &str) -> PathBuf {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.split_once(":blkio:")).map_or("/", |(_, group)| group);
    Path::new(BLKIO).join(own.trim_start_matches('/')).join(format!("blkio.throttle.{throttle}_device"))
}

/// Runs a program of the system; its complaints are the error.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{program} {}: {}", arguments.join(" "), said.trim()))
    }
}
