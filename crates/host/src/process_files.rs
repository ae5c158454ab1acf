//! Where the files of a process lie on this host, also of one in another mount namespace, as those of containers and of
//! services with a /tmp of their own.

use crate::bounded_read::read_bounded;
use crate::open_files::OpenFile;
use crate::process_memory::within_limit;
use crate::{DeviceNumber, Mount, Mounts};
use std::fs;
use std::path::{Path, PathBuf};

/// The mounts that a process sees, beside those of this one.
#[derive(Debug)]
pub struct ProcessFiles {
    pid: u32,
    own: Mounts,
    /// `None` where the process is in the mount namespace of this one, or its mounts cannot be read.
    theirs: Option<Mounts>,
    view: MountView,
}

/// How the mounts of a process relate to those of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountView {
    /// Names mean the same.
    Shared,
    /// Another namespace, whose mounts are known.
    Other,
    /// It cannot be read: the process is another user's and this process is not root, or it has ended.
    Unknown,
}

/// Where a file lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlace {
    /// Its name on this host; `None` where no mount of this host shows it.
    pub path: Option<PathBuf>,
    /// The mount point: on this host, or of the process where `path` is `None`.
    pub mount: PathBuf,
    /// "ext4"; of what an overlay lies on where it is one.
    pub filesystem: String,
    /// The block device; `None` for a file system without one.
    pub device: Option<DeviceNumber>,
}

/// File systems whose server is another program or machine, which may not answer.
const SERVED: [&str; 14] = [
    "9p",
    "afs",
    "autofs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "glusterfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "smb3",
    "smbfs",
];
/// File systems in memory or of the kernel.
const WITHOUT_STORAGE: [&str; 12] = [
    "bpf",
    "cgroup",
    "cgroup2",
    "debugfs",
    "devpts",
    "devtmpfs",
    "hugetlbfs",
    "mqueue",
    "proc",
    "ramfs",
    "sysfs",
    "tmpfs",
];

impl FilePlace {
    /// Whether its files can be read without waiting for another program or machine.
    pub fn is_local(&self) -> bool {
        !self.filesystem.starts_with("fuse") && !SERVED.contains(&self.filesystem.as_str())
    }

    /// Whether it is stored anywhere: not in memory, and no file of the kernel.
    pub fn is_stored(&self) -> bool {
        !WITHOUT_STORAGE.contains(&self.filesystem.as_str())
    }
}

impl ProcessFiles {
    /// Reads the mounts of a process.
    pub fn of_process(pid: u32) -> ProcessFiles {
        let own = Mounts::read().unwrap_or_default();
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        let (view, theirs) = match (namespace(&pid.to_string()), namespace("self")) {
            (Some(theirs), Some(ours)) if theirs == ours => (MountView::Shared, None),
            (Some(_), _) => match Mounts::read_from(Path::new(&format!("/proc/{pid}/mountinfo"))) {
                Ok(mounts) => (MountView::Other, Some(mounts)),
                Err(_) => (MountView::Unknown, None),
            },
            (None, _) => (MountView::Unknown, None),
        };
        ProcessFiles { pid, own, theirs, view }
    }

    /// How its mounts relate to those of this process.
    pub fn view(&self) -> MountView {
        self.view
    }

    /// Where a file lies that the process names so, by an absolute path without links.
    pub fn place_of(&self, path: &Path) -> Option<FilePlace> {
        let theirs = self.theirs.as_ref().unwrap_or(&self.own);
        self.place_on(theirs.mount_of(path)?, path)
    }

    /// Where an open file lies.
    pub fn place_of_open(&self, file: &OpenFile) -> Option<FilePlace> {
        let theirs = self.theirs.as_ref().unwrap_or(&self.own);
        // A file that a process opened before it changed its root is on a mount that it no longer sees.
        let mount = theirs.with_id(file.mount_id).or_else(|| self.own.with_id(file.mount_id))?;
        self.place_on(mount, &file.path)
    }

    fn place_on(&self, mount: &Mount, path: &Path) -> Option<FilePlace> {
        if self.theirs.is_none() && mount.filesystem != "overlay" {
            return Some(place(mount, Some(path.to_path_buf())));
        }
        let within = path.strip_prefix(&mount.point).unwrap_or(Path::new(""));
        if mount.filesystem == "overlay"
            && let Some(upper) = mount.overlay_layers().last()
            && let Some(below) = self.own.mount_of(upper)
        {
            // Files that were written lie in the upper layer, which the kernel names last.
            return Some(place(below, Some(upper.join(within))));
        }
        let names: Vec<PathBuf> = self.own.names_of(mount.number, &mount.root.join(within)).collect();
        let visible = |name: &&PathBuf| self.own.mount_of(name).is_some_and(|own| own.number == mount.number);
        let name = names.iter().filter(visible).find(|name| *name == path);
        let name = name.or_else(|| names.iter().find(visible));
        match name.and_then(|name| Some((name, self.own.mount_of(name)?))) {
            Some((name, own)) => Some(place(own, Some(name.clone()))),
            None => Some(place(mount, None)),
        }
    }

    /// The first bytes of a regular file that the process names so. Nothing of a file system that may not answer is read, and
    /// of one that a link leads to within the limit of [`within_limit`].
    pub fn read(&self, path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
        let real = self.reachable(path)?;
        within_limit(self.pid, move || read_bounded(&real, bytes_max).ok())?
    }

    /// Target of a link that the process names so; `None` also where it is no link.
    pub fn read_link(&self, path: &Path) -> Option<PathBuf> {
        let real = self.reachable(path)?;
        within_limit(self.pid, move || fs::read_link(real).ok())?
    }

    /// The name without links of a file that the process names so.
    pub fn real_path(&self, path: &Path) -> Option<PathBuf> {
        let real = self.reachable(path)?;
        within_limit(self.pid, move || fs::canonicalize(real).ok())?
    }

    /// The names in a directory that the process names so, at most `names_max`.
    pub fn list(&self, directory: &Path, names_max: usize) -> Vec<PathBuf> {
        let names = self.reachable(directory).and_then(|real| {
            within_limit(self.pid, move || {
                let entries = fs::read_dir(real).into_iter().flatten().take(names_max).flatten();
                entries.map(|entry| entry.file_name()).collect::<Vec<_>>()
            })
        });
        names.into_iter().flatten().map(|name| directory.join(name)).collect()
    }

    /// The name under which this process reaches a file, also one that no mount of its own shows. `None` on a file system
    /// that may not answer.
    pub fn reachable(&self, path: &Path) -> Option<PathBuf> {
        let place = self.place_of(path)?;
        if !path.is_absolute() || !place.is_local() {
            return None;
        }
        match self.view {
            MountView::Other => {
                let below = path.strip_prefix("/").ok()?;
                Some(Path::new(&format!("/proc/{}/root", self.pid)).join(below))
            }
            MountView::Shared | MountView::Unknown => Some(path.to_path_buf()),
        }
    }
}

fn place(mount: &Mount, path: Option<PathBuf>) -> FilePlace {
    FilePlace {
        path,
        mount: mount.point.clone(),
        filesystem: mount.filesystem.clone(),
        device: mount.block_device(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use std::ffi::CString;
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    const OWN: &[u8] = b"27 1 254:0 / / rw - ext4 /dev/vda rw\n\
        31 27 8:16 / /data rw - xfs /dev/sdb rw\n\
        33 27 0:40 / /home/ann/mnt rw - fuse.sshfs ann@x:/ rw\n";

    fn files(theirs: &[u8]) -> ProcessFiles {
        let theirs = Some(Mounts::parse(theirs));
        ProcessFiles { pid: u32::MAX, own: Mounts::parse(OWN), theirs, view: MountView::Other }
    }

    #[test]
    fn a_volume_of_a_container_is_named_as_the_host_names_it() {
        let files = files(
            b"50 1 0:52 / / rw - overlay overlay rw,lowerdir=/a,upperdir=/data/docker/7/diff,workdir=/data/docker/7/work\n\
              51 50 8:16 /volumes/pg /var/lib/postgresql/data rw - xfs /dev/sdb rw\n\
              52 50 259:3 / /secret rw - ext4 /dev/nvme0n1p3 rw\n",
        );
        let data = files.place_of(Path::new("/var/lib/postgresql/data/base")).unwrap();
        assert_eq!(data.path.as_deref(), Some(Path::new("/data/volumes/pg/base")));
        assert_eq!((data.mount.as_path(), data.filesystem.as_str()), (Path::new("/data"), "xfs"));
        let root = files.place_of(Path::new("/tmp/sort")).unwrap();
        assert_eq!(root.path.as_deref(), Some(Path::new("/data/docker/7/diff/tmp/sort")));
        assert_eq!(root.device, DeviceNumber::parse("8:16"));
        let hidden = files.place_of(Path::new("/secret/x")).unwrap();
        assert_eq!((hidden.path, hidden.mount), (None, "/secret".into()));
        assert_eq!(hidden.device, DeviceNumber::parse("259:3"));
    }

    #[test]
    fn a_service_with_a_namespace_of_its_own_keeps_the_names_of_the_host() {
        let files = files(
            b"70 1 254:0 / / rw - ext4 /dev/vda rw\n71 70 8:16 / /data rw - xfs /dev/sdb rw\n\
              72 70 254:0 /tmp/systemd-private-7/tmp /tmp rw - ext4 /dev/vda rw\n",
        );
        let path = |path: &str| files.place_of(Path::new(path)).unwrap().path.unwrap();
        assert_eq!(path("/data/pg/base"), Path::new("/data/pg/base"));
        assert_eq!(path("/tmp/ib"), Path::new("/tmp/systemd-private-7/tmp/ib"));
    }

    #[test]
    fn nothing_is_read_from_a_file_system_of_another_program() {
        let files = ProcessFiles { pid: 1, own: Mounts::parse(OWN), theirs: None, view: MountView::Shared };
        assert_eq!(files.reachable(Path::new("/home/ann/mnt/PG_VERSION")), None);
        assert_eq!(files.reachable(Path::new("/data/x")), Some("/data/x".into()));
        assert!(!files.place_of(Path::new("/home/ann/mnt")).unwrap().is_local());
    }

    #[test]
    fn a_file_system_that_answers_nothing_delays_no_scan_by_the_links_of_a_process() {
        const NOBODY: u32 = 65_534;
        let place = tempfile::tempdir().unwrap();
        let (point, link) = (place.path().join("mnt"), place.path().join("link"));
        fs::create_dir(&point).unwrap();
        symlink(point.join("file"), &link).unwrap();
        // This server answers no request, not even the first.
        let Ok(server) = File::options().read(true).write(true).open("/dev/fuse") else {
            return println!("skipped: no FUSE here");
        };
        let data = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        let data = CString::new(data).unwrap();
        if let Err(error) = mount("mute", &point, "fuse", MountFlags::empty(), data.as_c_str()) {
            return println!("skipped: no FUSE file system may be mounted here: {error}");
        }
        let mut process = Command::new("sleep").arg("60").uid(NOBODY).gid(NOBODY).spawn().unwrap();
        let files = ProcessFiles::of_process(process.id());
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let found = (files.real_path(&link), files.read(&link, 16), files.list(&link, 16));
            sender.send(found).unwrap();
        });
        let found = receiver.recv_timeout(Duration::from_secs(20));
        // Its end is that of all who wait for it.
        drop(server);
        unmount(&point, UnmountFlags::DETACH).unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(found, Ok((None, None, Vec::new())));
    }

    #[test]
    fn own_files_are_where_they_are() {
        let files = ProcessFiles::of_process(std::process::id());
        assert_eq!(files.view(), MountView::Shared);
        let open = crate::open_files(std::process::id());
        let _ = open.iter().filter_map(|file| files.place_of_open(file)).count();
        let place = files.place_of(Path::new("/")).unwrap();
        assert_eq!((place.path, place.mount), (Some("/".into()), "/".into()));
        assert_eq!(ProcessFiles::of_process(u32::MAX).view(), MountView::Unknown);
    }

    proptest! {
        #[test]
        fn any_mounts_and_any_path_have_a_place_or_none(mountinfo in any::<Vec<u8>>(), path in "(/|\\.\\.|[a-z]){0,12}") {
            let files = files(&mountinfo);
            files.place_of(Path::new(&path));
            files.reachable(Path::new(&path));
        }
    }
}
