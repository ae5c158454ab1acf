//! The full name of a file that the kernel knows by device and inode.
//!
//! The name is written down in the kernel when the file is first seen, as its process saw it and as it lies in its
//! file system. It is checked here at every snapshot, because files are renamed and deleted:
//!
//! ```text
//! seen through one of this machine's mounts    that name
//! seen by its process only (a container's)     the name in the process's own mount namespace
//! elsewhere under an open descriptor           renamed: the name it has now
//! nowhere                                      deleted: the last name, its size unknown
//! deleted before it was first seen             the name and " (deleted)"
//! ```
//!
//! A new name is told from the look after the one at which it was found: what was done until then is told by the old one,
//! and what comes later begins at zero by the new one (kept.rs).

use super::tables::{FileId, Name};
use host::{DeviceNumber, Mounts, device_name, device_size_bytes};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Names found so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: HashMap<FileId, Known>,
    /// What the kernel wrote down, until it is asked for; and whether that was before the last snapshot.
    written: HashMap<FileId, (Box<Name>, bool)>,
    commands: HashMap<(u32, u32), Command>,
    look: u64,
}

/// What a process runs, and what from the next look on.
#[derive(Debug, Default)]
struct Command {
    told: String,
    next: Option<(String, u64)>,
}

/// One file's name.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// For people.
    pub path: PathBuf,
    /// Where this process can look at it; it may lie in another mount namespace.
    reach: PathBuf,
    /// Bytes, where it still exists.
    pub size_bytes: Option<u64>,
    /// Neither there nor held open by those who used it: looked for once.
    gone: bool,
    /// The kernel had not written it down yet.
    unwritten: bool,
    /// Another name, and the look at which it was found.
    next: Option<(Box<Known>, u64)>,
}

impl Names {
    /// Takes over what the kernel wrote down.
    pub fn add(&mut self, written: HashMap<FileId, Box<Name>>) {
        let wanted = |id: &FileId| self.known.get(id).is_none_or(|known| known.unwritten);
        let new = written.into_iter().filter(|(id, _)| wanted(id));
        self.written.extend(new.map(|(id, name)| (id, (name, false))));
    }

    /// A snapshot begins.
    pub fn begin(&mut self) {
        self.look += 1;
    }

    /// The name of a file that some processes used, of those that run.
    pub fn name(&mut self, id: FileId, processes: &[u32], mounts: &Mounts) -> Known {
        let written = self.written.remove(&id).map(|(name, _)| name);
        let known = match self.known.remove(&id).map(|known| known.at(self.look)) {
            None => first(id, written.as_deref(), processes, mounts),
            Some(known) if known.next.is_some() => known,
            Some(known) if known.unwritten && written.is_some() => {
                known.becomes(first(id, written.as_deref(), processes, mounts), self.look)
            }
            Some(mut known) => match looked_at(id, &known.reach) {
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
                    Some(now) => known.becomes(now, self.look),
                    None => {
                        (known.size_bytes, known.gone) = (None, true);
                        known
                    }
                },
            },
        };
        self.known.insert(id, known.clone());
        known
    }

    /// The name of a process's program, and whether it gets another one at the next look; the last one, where the kernel
    /// has it no more.
    pub fn command(&mut self, who: (u32, u32), now: Option<String>) -> (String, bool) {
        let look = self.look;
        let Some(now) = now else {
            let last = self.commands.entry(who).or_default();
            return (last.told.clone(), last.next.is_some());
        };
        let known = self.commands.entry(who).or_insert_with(|| Command { told: now.clone(), next: None });
        if let Some((next, _)) = known.next.take_if(|(_, found)| *found < look) {
            known.told = next;
        }
        if known.told != now && known.next.is_none() {
            known.next = Some((now, look));
        }
        (known.told.clone(), known.next.is_some())
    }

    /// Forgets files and processes that nothing is counted of any more. Returns those files.
    pub fn keep_only(&mut self, files: &HashSet<FileId>, processes: &HashSet<(u32, u32)>) -> Vec<FileId> {
        let forgotten: Vec<FileId> = self.known.keys().filter(|id| !files.contains(id)).copied().collect();
        self.known.retain(|id, _| files.contains(id));
        self.commands.retain(|who, _| processes.contains(who));
        // Of files whose first counters came after the tables were read: the next snapshot has them.
        self.written.retain(|_, (_, old)| !std::mem::replace(old, true));
        forgotten
    }
}

impl Known {
    /// Whether it is told by another name at the next look.
    pub fn changes(&self) -> bool {
        self.next.is_some()
    }

    /// What holds at a look: a name that was found before it.
    fn at(mut self, look: u64) -> Known {
        match self.next.take_if(|(_, found)| *found < look) {
            Some((next, _)) => *next,
            None => self,
        }
    }

    /// Takes over what was found.
    fn becomes(mut self, now: Known, look: u64) -> Known {
        if now.path == self.path {
            return now;
        }
        self.size_bytes = now.size_bytes;
        self.unwritten = false;
        self.next = Some((Box::new(now), look));
        self
    }
}

/// The name of a file that was not looked at before.
pub(super) fn first(id: FileId, written: Option<&Name>, processes: &[u32], mounts: &Mounts) -> Known {
    let (major, minor) = id.major_minor();
    let device = DeviceNumber { major, minor };
    let unnamed = || PathBuf::from(format!("device {device} inode {}", id.ino));
    if id.is_device() {
        let name = device_path(device);
        return match (id.purpose(), mounts.point_of_device(device).map(Path::display)) {
            (0, _) => {
                let size_bytes = looked_at(id, &name).and_then(|_| device_size_bytes(device));
                Known {
                    reach: name.clone(),
                    path: name,
                    size_bytes,
                    gone: size_bytes.is_none(),
                    unwritten: false,
                    next: None,
                }
            }
            (1, Some(point)) => gone(format!("{point} (file system's journal and metadata)").into()),
            (1, None) => gone(format!("{} (file system's journal and metadata)", name.display()).into()),
            _ => gone(format!("{} (not told for which file)", name.display()).into()),
        };
    }
    let Some(written) = written else {
        return Known { unwritten: true, ..by_descriptor(id, processes).unwrap_or_else(|| gone(unnamed())) };
    };
    let within = written.within();
    let seen = written.seen();
    let candidates = seen.iter().cloned().chain(mounts.names_of(device, &within));
    for path in candidates {
        if let Some(found) = looked_at(id, &path) {
            return Known {
                reach: path.clone(),
                path,
                size_bytes: Some(found.len()),
                gone: false,
                unwritten: false,
                next: None,
            };
        }
    }
    let path = seen.filter(|_| written.truncated == 0).unwrap_or(within);
    for pid in processes {
        let reach = Path::new("/proc").join(pid.to_string()).join("root").join(relative(&path));
        if let Some(found) = looked_at(id, &reach) {
            return Known {
                path,
                reach,
                size_bytes: Some(found.len()),
                gone: false,
                unwritten: false,
                next: None,
            };
        }
    }
    if let Some(found) = by_descriptor(id, processes) {
        return found;
    }
    match path.parent().is_none() {
        true => gone(unnamed()),
        false if written.links == 0 => gone(with_suffix(&path, " (deleted)")),
        false => gone(path),
    }
}

/// As /dev has it, where the kernel tells.
fn device_path(number: DeviceNumber) -> PathBuf {
    let name = device_name(number);
    name.map_or_else(|| PathBuf::from(format!("block device {number}")), |name| Path::new("/dev").join(name))
}

fn gone(path: PathBuf) -> Known {
    Known { reach: path.clone(), path, size_bytes: None, gone: true, unwritten: false, next: None }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// By the descriptors of the processes that used it: their links tell the present name.
fn by_descriptor(id: FileId, processes: &[u32]) -> Option<Known> {
    for pid in processes {
        let process = Path::new("/proc").join(pid.to_string());
        // Not ours to look into, or it ended: the next one may tell.
        let Ok(descriptors) = fs::read_dir(process.join("fd")) else { continue };
        for descriptor in descriptors.flatten() {
            if looked_at(id, &descriptor.path()).is_none() {
                continue;
            }
            let Ok(path) = fs::read_link(descriptor.path()) else { continue };
            let reach = process.join("root").join(relative(&path));
            let size_bytes = looked_at(id, &reach).map(|found| found.len());
            return Some(Known {
                path,
                reach,
                size_bytes,
                gone: size_bytes.is_none(),
                unwritten: false,
                next: None,
            });
        }
    }
    None
}

/// The file, if that name is its.
fn looked_at(id: FileId, path: &Path) -> Option<Metadata> {
    let found = fs::metadata(path).ok()?;
    let (major, minor) = id.major_minor();
    let same = match id.is_device() {
        true if id.purpose() != 0 => false,
        true => {
            let device = found.rdev();
            found.file_type().is_block_device()
                && (libc::major(device), libc::minor(device)) == (major, minor)
        }
        // Not the device: of a btrfs subvolume or an overlay, stat(2) tells another than the kernel works with.
        false => found.is_file() && found.ino() == id.ino,
    };
    same.then_some(found)
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

impl Name {
    /// As its process saw it, through its mounts; `None` of an inode that was not seen through an open file.
    fn seen(&self) -> Option<PathBuf> {
        let mount = self.bytes.get(..usize::from(self.mount_end))?;
        let above = self.bytes.get(usize::from(self.fs_end)..usize::from(self.end))?;
        (self.mounted != 0).then(|| joined(above.split(|byte| *byte == b'/'), mount))
    }

    /// As it lies in its file system.
    pub(super) fn within(&self) -> PathBuf {
        let all = self.bytes.get(..usize::from(self.fs_end)).unwrap_or_default();
        joined(std::iter::empty(), all)
    }
}

/// Components from the last one up, those of `above` being the upper ones.
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
    fn a_name_is_put_together_from_its_last_component_up() {
        let volume = name("16384/base/", "pg/volumes/", "data/var/");
        assert_eq!(volume.seen().unwrap(), Path::new("/var/data/base/16384"));
        assert_eq!(volume.within(), Path::new("/volumes/pg/base/16384"));
        assert_eq!(name("", "", "").within(), Path::new("/"));
    }

    #[test]
    fn lengths_that_cannot_be_are_no_name() {
        let broken = Name { fs_end: 9, end: 3, mount_end: 9999, ..name("a/", "b/", "c/") };
        assert_eq!(broken.seen(), None);
        broken.within();
    }

    #[test]
    fn a_file_keeps_its_name_until_it_has_another() {
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
        let look = |names: &mut Names| {
            names.begin();
            names.name(id, &here, &mounts)
        };
        assert_eq!(look(&mut names).path, path);
        let renamed = directory.path().join("shop.bak");
        fs::rename(&path, &renamed).unwrap();
        let told = look(&mut names);
        assert_eq!((&told.path, told.changes()), (&path, true), "the old name once more");
        let told = look(&mut names);
        assert_eq!((&told.path, told.changes()), (&renamed, false));
        fs::remove_file(&renamed).unwrap();
        look(&mut names);
        let deleted = look(&mut names);
        assert_eq!((deleted.path.clone(), deleted.size_bytes), (with_suffix(&renamed, " (deleted)"), None));
        drop(file);
        assert_eq!(look(&mut names).path, deleted.path, "the last name stays");
        assert_eq!(names.keep_only(&HashSet::new(), &HashSet::new()), [id]);
    }

    #[test]
    fn a_name_that_came_late_is_taken_and_told_as_another() {
        let id = FileId { ino: u64::MAX, dev: 0, generation: 0 };
        let (mut names, mounts) = (Names::default(), Mounts::read().unwrap_or_default());
        let unnamed = Path::new("device 0:0 inode 18446744073709551615");
        assert_eq!(names.name(id, &[], &mounts).path, unnamed);
        names.add(HashMap::from([(id, Box::new(name("shop.db/", "", "")))]));
        names.begin();
        assert_eq!(names.name(id, &[], &mounts).path, unnamed, "once more");
        assert_eq!(names.name(id, &[], &mounts).path, unnamed, "at one look by one name");
        names.begin();
        assert_eq!(names.name(id, &[], &mounts).path, Path::new("/shop.db"));
    }

    #[test]
    fn a_command_is_kept_when_the_kernel_has_it_no_more() {
        let mut names = Names::default();
        let mut told = |now: Option<&str>| {
            names.begin();
            names.command((1, 1), now.map(str::to_owned))
        };
        assert_eq!(told(Some("sh")), ("sh".into(), false));
        assert_eq!(told(Some("dd")), ("sh".into(), true));
        assert_eq!(told(Some("dd")), ("dd".into(), false));
        assert_eq!(told(None), ("dd".into(), false));
    }
}
