use crate::block_devices::BlockDevices;
use crate::kernel_file::read_kernel_file;
use crate::{DeviceNumber, Mount, Mounts};
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Open files of a process that are examined, at most: a server with a million connections has that many.
const FILES_MAX: usize = 4096;

/// The block devices that a process has open, or on which files lie that it has open: those of all members of a btrfs, and
/// of all layers of an overlay. Each file's mount is found by its number in `/proc/PID/fdinfo`, so that bind mounts and
/// mounts of containers are followed, and no file system is asked, which may be another user's (FUSE) and not answer.
pub fn open_devices(pid: u32) -> BTreeSet<DeviceNumber> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let mounts = Mounts::read_from(&process.join("mountinfo")).unwrap_or_default();
    // A file that a process opened before it changed its root is on a mount that it no longer sees.
    let own = LazyCell::new(|| Mounts::read().unwrap_or_default());
    let mut devices = BTreeSet::new();
    let mut known = BTreeSet::new();
    let files = fs::read_dir(process.join("fdinfo")).into_iter().flatten().flatten();
    for file in files.take(FILES_MAX) {
        let Some(id) = read_kernel_file(file.path()).ok().and_then(|text| mount_id(&text)) else { continue };
        // Device files are on mounts without a device of their own, and each is another device.
        match mounts.with_id(id).or_else(|| own.with_id(id)) {
            Some(mount) if ["devtmpfs", "tmpfs"].contains(&mount.filesystem.as_str()) => {
                devices.extend(opened_device(&process.join("fd").join(file.file_name())));
            }
            Some(mount) if known.insert(id) => devices.extend(devices_of(mount, LAYERS_DEPTH_MAX)),
            _ => {}
        }
    }
    devices
}

/// "mnt_id:\t27" (proc_pid_fdinfo(5)).
fn mount_id(fdinfo: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(fdinfo).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

fn opened_device(descriptor: &Path) -> Option<DeviceNumber> {
    let metadata = fs::metadata(descriptor).ok()?;
    metadata.file_type().is_block_device().then(|| DeviceNumber::from_dev(metadata.rdev()))
}

/// An overlay may lie on another one; the kernel allows two levels.
const LAYERS_DEPTH_MAX: u32 = 2;

/// The devices that a file system lies on; none of those without storage of this host.
fn devices_of(mount: &Mount, depth: u32) -> BTreeSet<DeviceNumber> {
    match mount.filesystem.as_str() {
        _ if mount.number.major != 0 => BTreeSet::from([mount.number]),
        "btrfs" => {
            let device = mount.block_device();
            let members = device.and_then(|device| BlockDevices::host().btrfs_members(device));
            members.unwrap_or_else(|| device.into_iter().collect())
        }
        // The layers are named as the one that mounted it sees them, for containers the host.
        "overlay" if depth > 0 => {
            let Ok(own) = Mounts::read() else { return BTreeSet::new() };
            let layers = mount.overlay_layers().filter_map(|layer| own.mount_of(layer));
            layers.flat_map(|layer| devices_of(layer, depth - 1)).collect()
        }
        _ => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_of_an_open_file_and_an_open_device_are_found() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let number = DeviceNumber::from_dev(file.metadata().unwrap().dev());
        assert!(number.major == 0 || open_devices(std::process::id()).contains(&number));
        let control = fs::File::open("/dev/loop0").ok();
        let Some(device) = control.as_ref().map(|device| device.metadata().unwrap().rdev()) else {
            return eprintln!("skipped: no /dev/loop0 that this user may open");
        };
        assert!(open_devices(std::process::id()).contains(&DeviceNumber::from_dev(device)));
        assert!(open_devices(u32::MAX).is_empty());
    }

    #[test]
    fn the_layers_of_an_overlay_are_where_its_files_lie() {
        let mountinfo = b"27 1 254:0 / / rw - ext4 /dev/vda rw\n\
            31 27 8:16 / /data rw - xfs /dev/sdb rw\n\
            90 27 0:52 / /data/merged rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/data/up,workdir=/data/work\n";
        let mounts = Mounts::parse(mountinfo);
        let overlay = mounts.with_id(90).unwrap();
        let layers: Vec<&Path> = overlay.overlay_layers().collect();
        assert_eq!(layers, [Path::new("/a"), Path::new("/b"), Path::new("/data/up")]);
        assert_eq!(mounts.mount_of(layers[2]).unwrap().number, DeviceNumber { major: 8, minor: 16 });
        assert_eq!(mount_id(b"pos:\t0\nflags:\t02\nmnt_id:\t90\n"), Some(90));
        assert_eq!(mount_id(b"pos:\t0\nmnt_id:\t-\n"), None);
        assert_eq!(mount_id(b"\xff"), None);
    }
}
