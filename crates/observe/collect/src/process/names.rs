//! The full name of a file that the kernel knows by device and inode.
//!
//! The programs record the name when the file is first seen: as its process sees it, and its path within the file
//! system. It is checked here at every snapshot, because files are renamed and deleted:
//!
//! ```text
//! found through one of this machine's mounts    that name
//! found by its process only (in a container)    the name in the process's mount namespace
//! found under an open descriptor                renamed: its present name
//! not found                                     deleted: the last name, its size unknown
//! deleted before it was first seen              the name and " (deleted)"
//! ```
//!
//! A new name is shown from the snapshot after the one that found it. I/O until then is shown under the old name; I/O
//! after it begins at zero under the new name (kept.rs).

use super::tables::{FileId, Name};
use host::{DeviceNumber, Mounts, device_name, device_size_bytes};
use rustc_hash::FxHashMap;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Names found so far.
#[derive(Default)]
pub(super) struct Names {
    known: FxHashMap<FileId, KnownFile>,
    /// Names that the programs recorded and that are not used yet; and whether they are older than the last snapshot.
    written: HashMap<FileId, (Box<Name>, bool)>,
    commands: HashMap<(u32, u32), Command>,
    snapshot: u64,
}

/// The name of a process's program, and the one that is shown from the next snapshot on.
#[derive(Debug, Default)]
struct Command {
    shown: String,
    next: Option<(String, u64)>,
}

/// One file's name.
#[derive(Clone, Debug)]
pub(super) struct KnownFile {
    /// The path that is shown.
    pub path: PathBuf,
    /// The path by which this process reaches the file where it is another one: the file may be in another mount namespace.
    reach: Option<PathBuf>,
    /// Bytes, where it still exists.
    pub size_bytes: Option<u64>,
    /// Neither at its path nor held open by its processes. It is searched for once.
    gone: bool,
    /// The programs had not recorded its name yet.
    unwritten: bool,
    /// A new name, and the snapshot that found it.
    next: Option<(Box<KnownFile>, u64)>,
}

impl Names {
    /// Adds names that the programs recorded.
    pub fn add(&mut self, written: HashMap<FileId, Box<Name>>) {
        let wanted = |id: &FileId| self.known.get(id).is_none_or(|known| known.unwritten);
        let new = written.into_iter().filter(|(id, _)| wanted(id));
        self.written.extend(new.map(|(id, name)| (id, (name, false))));
    }

    /// Begins a snapshot.
    pub fn begin_snapshot(&mut self) {
        self.snapshot += 1;
    }

    /// The name of a file. `processes` are the running processes that used it.
    pub fn name(&mut self, id: FileId, processes: &[u32], mounts: &Mounts) -> &KnownFile {
        let written = self.written.remove(&id).map(|(name, _)| name);
        let known = match self.known.remove(&id).map(|known| known.at(self.snapshot)) {
            None => find_name(id, written.as_deref(), processes, mounts),
            Some(known) if known.next.is_some() => known,
            Some(known) if known.unwritten && written.is_some() => {
                known.becomes(find_name(id, written.as_deref(), processes, mounts), self.snapshot)
            }
            Some(mut known) => match metadata_of(id, known.reach()) {
                Some(_) if id.is_device() => known,
                Some(found) => {
                    known.size_bytes = Some(found.len());
                    known
                }
                None if known.gone => {
                    known.size_bytes = None;
                    known
                }
                None => match by_descriptor(id, processes) {
                    Some(now) => known.becomes(now, self.snapshot),
                    None => {
                        (known.size_bytes, known.gone) = (None, true);
                        known
                    }
                },
            },
        };
        self.known.entry(id).insert_entry(known).into_mut()
    }

    /// The name of a process's program, and whether the next snapshot shows another one. Without `now`, the last name.
    pub fn command(&mut self, who: (u32, u32), now: Option<String>) -> (String, bool) {
        let snapshot = self.snapshot;
        let Some(now) = now else {
            let last = self.commands.entry(who).or_default();
            return (last.shown.clone(), last.next.is_some());
        };
        let known = self.commands.entry(who).or_insert_with(|| Command { shown: now.clone(), next: None });
        if let Some((next, _)) = known.next.take_if(|(_, found)| *found < snapshot) {
            known.shown = next;
        }
        if known.shown != now && known.next.is_none() {
            known.next = Some((now, snapshot));
        }
        (known.shown.clone(), known.next.is_some())
    }

    /// Forgets files and processes without counters. Returns these files.
    pub fn keep_only(&mut self, files: &HashSet<FileId>, processes: &HashSet<(u32, u32)>) -> Vec<FileId> {
        let forgotten: Vec<FileId> = self.known.keys().filter(|id| !files.contains(id)).copied().collect();
        self.known.retain(|id, _| files.contains(id));
        self.commands.retain(|who, _| processes.contains(who));
        // Names may be of files whose first counters came after the tables were read: they stay for the next snapshot.
        self.written.retain(|_, (_, old)| !std::mem::replace(old, true));
        forgotten
    }
}

impl KnownFile {
    /// A file that is gone where it has no size.
    fn new(path: PathBuf, reach: PathBuf, size_bytes: Option<u64>) -> KnownFile {
        let reach = Some(reach).filter(|reach| *reach != path);
        KnownFile { path, reach, size_bytes, gone: size_bytes.is_none(), unwritten: false, next: None }
    }

    fn reach(&self) -> &Path {
        self.reach.as_ref().unwrap_or(&self.path)
    }

    /// Whether the next snapshot shows another name.
    pub fn changes(&self) -> bool {
        self.next.is_some()
    }

    /// The name that a snapshot shows: the new one if an earlier snapshot found it.
    fn at(mut self, snapshot: u64) -> KnownFile {
        match self.next.take_if(|(_, found)| *found < snapshot) {
            Some((next, _)) => *next,
            None => self,
        }
    }

    /// Takes what a search found; a different name only from the next snapshot on.
    fn becomes(mut self, now: KnownFile, snapshot: u64) -> KnownFile {
        if now.path == self.path {
            return now;
        }
        self.size_bytes = now.size_bytes;
        self.unwritten = false;
        self.next = Some((Box::new(now), snapshot));
        self
    }
}

/// Searches for the name of a file.
pub(super) fn find_name(id: FileId, written: Option<&Name>, processes: &[u32], mounts: &Mounts) -> KnownFile {
    let (major, minor) = id.major_minor();
    let device = DeviceNumber { major, minor };
    let unnamed = || PathBuf::from(format!("device {device} inode {}", id.ino));
    if id.is_device() {
        let name = device_path(device);
        return match (id.purpose(), mounts.point_of_device(device).map(Path::display)) {
            (0, _) => {
                let size_bytes = metadata_of(id, &name).and_then(|_| device_size_bytes(device));
                KnownFile::new(name.clone(), name, size_bytes)
            }
            (1, Some(point)) => gone(format!("{point} (file system's journal and metadata)").into()),
            (1, None) => gone(format!("{} (file system's journal and metadata)", name.display()).into()),
            _ => gone(format!("{} (unattributed)", name.display()).into()),
        };
    }
    let Some(written) = written else {
        return KnownFile {
            unwritten: true,
            ..by_descriptor(id, processes).unwrap_or_else(|| gone(unnamed()))
        };
    };
    let within = written.within();
    let seen = written.seen();
    let candidates = seen.iter().cloned().chain(mounts.names_of(device, &within));
    for path in candidates {
        if let Some(found) = metadata_of(id, &path) {
            return KnownFile::new(path.clone(), path, Some(found.len()));
        }
    }
    let path = seen.filter(|_| written.truncated == 0).unwrap_or(within);
    for pid in processes {
        let reach = Path::new("/proc").join(pid.to_string()).join("root").join(relative(&path));
        if let Some(found) = metadata_of(id, &reach) {
            return KnownFile::new(path, reach, Some(found.len()));
        }
    }
    if let Some(found) = by_descriptor(id, processes) {
        return found;
    }
    match path.parent().is_none() {
        true => gone(unnamed()),
        false if written.links == 0 => {
            let mut name = path.into_os_string();
            name.push(" (deleted)");
            gone(name.into())
        }
        false => gone(path),
    }
}

/// The device's path in /dev, where the kernel has its name.
fn device_path(number: DeviceNumber) -> PathBuf {
    let name = device_name(number);
    name.map_or_else(|| PathBuf::from(format!("block device {number}")), |name| Path::new("/dev").join(name))
}

fn gone(path: PathBuf) -> KnownFile {
    KnownFile::new(path.clone(), path, None)
}

/// Searches the open descriptors of the processes: their links have the present name.
fn by_descriptor(id: FileId, processes: &[u32]) -> Option<KnownFile> {
    for pid in processes {
        let process = Path::new("/proc").join(pid.to_string());
        // No permission, or the process has ended: another one may have the file open.
        let Ok(descriptors) = fs::read_dir(process.join("fd")) else { continue };
        for descriptor in descriptors.flatten() {
            if metadata_of(id, &descriptor.path()).is_none() {
                continue;
            }
            let Ok(path) = fs::read_link(descriptor.path()) else { continue };
            let reach = process.join("root").join(relative(&path));
            let size_bytes = metadata_of(id, &reach).map(|found| found.len());
            return Some(KnownFile::new(path, reach, size_bytes));
        }
    }
    None
}

/// The metadata of a path, if it is this file's.
fn metadata_of(id: FileId, path: &Path) -> Option<Metadata> {
    let found = fs::metadata(path).ok()?;
    let (major, minor) = id.major_minor();
    let same = match id.is_device() {
        true if id.purpose() != 0 => false,
        true => {
            let device = found.rdev();
            found.file_type().is_block_device()
                && (libc::major(device), libc::minor(device)) == (major, minor)
        }
        // The device is not compared: for a btrfs subvolume or an overlay, stat(2) returns another than the kernel's.
        false => found.is_file() && found.ino() == id.ino,
    };
    same.then_some(found)
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

impl Name {
    /// The path that its process saw through its mounts; `None` for an inode that was not seen through an open file.
    fn seen(&self) -> Option<PathBuf> {
        let mount = self.bytes.get(..usize::from(self.mount_end))?;
        let above = self.bytes.get(usize::from(self.fs_end)..usize::from(self.end))?;
        (self.mounted != 0).then(|| joined(above.split(|byte| *byte == b'/'), mount))
    }

    /// The path within the file system.
    pub(super) fn within(&self) -> PathBuf {
        let all = self.bytes.get(..usize::from(self.fs_end)).unwrap_or_default();
        joined(std::iter::empty(), all)
    }
}

/// Joins components that are listed from the last one up; those of `above` are the upper ones.
fn joined<'a>(above: impl Iterator<Item = &'a [u8]>, below: &'a [u8]) -> PathBuf {
    let mut components: Vec<&[u8]> = below.split(|byte| *byte == b'/').chain(above).collect();
    components.retain(|component| !component.is_empty());
    let mut path = PathBuf::from("/");
    path.extend(components.iter().rev().map(|component| OsStr::from_bytes(component)));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(mount: &str, fs: &str, above: &str) -> Name {
        let text = [mount, fs, above].concat();
        let mut bytes = [0; 1024 + 256];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Name {
            mode: 0o100_644,
            links: 1,
            magic: 0,
            mount_end: mount.len() as u16,
            fs_end: (mount.len() + fs.len()) as u16,
            end: text.len() as u16,
            truncated: 0,
            mounted: 1,
            bytes,
        }
    }

    #[test]
    fn a_name_is_joined_from_its_last_component_up() {
        let volume = name("16384/base/", "pg/volumes/", "data/var/");
        assert_eq!(volume.seen().unwrap(), Path::new("/var/data/base/16384"));
        assert_eq!(volume.within(), Path::new("/volumes/pg/base/16384"));
        assert_eq!(name("", "", "").within(), Path::new("/"));
    }

    #[test]
    fn impossible_lengths_give_no_name() {
        let broken = Name { fs_end: 9, end: 3, mount_end: 9999, ..name("a/", "b/", "c/") };
        assert_eq!(broken.seen(), None);
        broken.within();
    }

    #[test]
    fn a_file_keeps_its_name_until_it_gets_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shop.db");
        let file = fs::File::create(&path).unwrap();
        let ino = file.metadata().unwrap().ino();
        let id = FileId { ino, dev: 0, generation: 0 };
        let (mut names, mounts) = (Names::default(), Mounts::read().unwrap_or_default());
        let written: String = path
            .iter()
            .rev()
            .filter(|part| *part != "/")
            .flat_map(|part| [part.to_str().unwrap(), "/"])
            .collect();
        let here = [std::process::id()];
        names.add(HashMap::from([(id, Box::new(name(&written, "", "")))]));
        let next_name = |names: &mut Names| {
            names.begin_snapshot();
            names.name(id, &here, &mounts).clone()
        };
        assert_eq!(next_name(&mut names).path, path);
        let renamed = directory.path().join("shop.bak");
        fs::rename(&path, &renamed).unwrap();
        let shown = next_name(&mut names);
        assert_eq!((&shown.path, shown.changes()), (&path, true), "the old name once more");
        let shown = next_name(&mut names);
        assert_eq!((&shown.path, shown.changes()), (&renamed, false));
        fs::remove_file(&renamed).unwrap();
        next_name(&mut names);
        let deleted = next_name(&mut names);
        assert_eq!(
            (deleted.path.clone(), deleted.size_bytes),
            (format!("{} (deleted)", renamed.display()).into(), None)
        );
        drop(file);
        assert_eq!(next_name(&mut names).path, deleted.path, "the last name stays");
        assert_eq!(names.keep_only(&HashSet::new(), &HashSet::new()), [id]);
    }

    #[test]
    fn a_name_that_arrives_late_replaces_the_number_at_the_next_snapshot() {
        let id = FileId { ino: u64::MAX, dev: 0, generation: 0 };
        let (mut names, mounts) = (Names::default(), Mounts::read().unwrap_or_default());
        let unnamed = Path::new("device 0:0 inode 18446744073709551615");
        assert_eq!(names.name(id, &[], &mounts).path, unnamed);
        names.add(HashMap::from([(id, Box::new(name("shop.db/", "", "")))]));
        names.begin_snapshot();
        assert_eq!(names.name(id, &[], &mounts).path, unnamed, "once more");
        assert_eq!(names.name(id, &[], &mounts).path, unnamed, "within a snapshot the name stays");
        names.begin_snapshot();
        assert_eq!(names.name(id, &[], &mounts).path, Path::new("/shop.db"));
    }

    #[test]
    fn the_last_command_is_kept_when_the_kernel_no_longer_has_it() {
        let mut names = Names::default();
        let mut command = |now: Option<&str>| {
            names.begin_snapshot();
            names.command((1, 1), now.map(str::to_owned))
        };
        assert_eq!(command(Some("sh")), ("sh".into(), false));
        assert_eq!(command(Some("dd")), ("sh".into(), true));
        assert_eq!(command(Some("dd")), ("dd".into(), false));
        assert_eq!(command(None), ("dd".into(), false));
    }
}
