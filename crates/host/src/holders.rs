//! The processes that can write to a device or a file, or hold a lock on it.
//!
//! ```text
//! /proc/PID/fd, fdinfo      a descriptor that is open for writing, or has a lock
//! /proc/PID/fdinfo          the registered files of an io_uring ring, whose descriptors may be closed
//! /proc/PID/maps, map_files a shared mapping that is writable, whose descriptor may be closed
//! ```
//!
//! A descriptor that waits in a socket is in no process, and other users' processes are seen by root only. No file system is
//! queried: it may be another user's (FUSE) and not answer.

use crate::bounded_read::read_bounded;
use crate::kernel_file::read_kernel_file;
use crate::process::{ProcessStat, numbers_in};
use crate::process_memory::within_limit;
use crate::{DeviceNumber, command_name, open_files, pids};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Descriptors of a process that are read: no process has more, unless root raises fs.nr_open.
const DESCRIPTORS_MAX: usize = 1 << 20;
/// Longer than any fdinfo of a file. It ends with the locks.
const FDINFO_BYTES_MAX: u64 = 64 << 10;
/// The fdinfo of a ring with 32,768 registered files, the most that it takes (IORING_MAX_FIXED_FILES), of usual names.
const RING_BYTES_MAX: u64 = 8 << 20;

/// One storage under all its numbers: devices, and files by `st_dev` and `st_ino`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Storage {
    pub devices: BTreeSet<DeviceNumber>,
    pub files: BTreeSet<(u64, u64)>,
}

/// How a process holds a storage; what matters most comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// It has it open for writing.
    Writes,
    /// Its memory is a shared mapping of it.
    Maps,
    /// It has a lock on it.
    Locks,
}

/// A process that can write to a storage, or holds a lock on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its pid.
    pub pid: u32,
    /// The name of its program.
    pub command: String,
    /// How it holds it.
    pub hold: Hold,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.hold {
            Hold::Writes => "open for writing in",
            Hold::Maps => "mapped by",
            Hold::Locks => "locked by",
        };
        write!(f, "{how} process {} ({})", self.pid, self.command)
    }
}

/// The kind of file that a name of /proc leads to.
enum Reached {
    Storage,
    /// Perhaps a file without a name, such as a ring.
    Anonymous,
    Other,
}

impl Storage {
    /// Classifies the file at the end of a path without querying its file system's server.
    fn classify(&self, path: &Path) -> Option<Reached> {
        let wanted = StatxFlags::TYPE | StatxFlags::INO;
        let found = rustix::fs::statx(CWD, path, AtFlags::STATX_DONT_SYNC, wanted).ok()?;
        let file = (rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino);
        let device = DeviceNumber { major: found.stx_rdev_major, minor: found.stx_rdev_minor };
        Some(match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::BlockDevice if self.devices.contains(&device) => Reached::Storage,
            FileType::RegularFile if self.files.contains(&file) => Reached::Storage,
            // Newer kernels call it a regular file.
            FileType::Unknown | FileType::RegularFile if found.stx_dev_major == 0 => Reached::Anonymous,
            _ => Reached::Other,
        })
    }

    fn includes(&self, path: &Path) -> bool {
        matches!(self.classify(path), Some(Reached::Storage))
    }

    /// The processes that can write to it or hold a lock on it, this one among them.
    ///
    /// # Errors
    /// If /proc is not readable.
    pub fn holders(&self) -> io::Result<Vec<Holder>> {
        let storage = Arc::new(self.clone());
        let held = pids()?.into_iter().filter_map(|pid| {
            let hold = tables_of(pid).into_iter().filter_map(|table| storage.hold_of(pid, table)).min()?;
            Some(Holder { pid, command: command_name(pid).unwrap_or_default(), hold })
        });
        Ok(held.collect())
    }

    /// Whether a process has it open.
    pub fn is_open_in(&self, pid: u32) -> bool {
        let descriptors = |table: &PathBuf| fs::read_dir(table.join("fd")).into_iter().flatten().flatten();
        tables_of(pid).iter().flat_map(descriptors).any(|entry| self.includes(&entry.path()))
    }

    /// The hold of a process, by its directory or that of a thread of it.
    fn hold_of(self: &Arc<Self>, pid: u32, table: PathBuf) -> Option<Hold> {
        let descriptors = fs::read_dir(table.join("fd")).into_iter().flatten().flatten();
        let held = descriptors.take(DESCRIPTORS_MAX).filter_map(|entry| {
            let info = || table.join("fdinfo").join(entry.file_name());
            match self.classify(&entry.path())? {
                Reached::Storage => hold_of_descriptor(&read_bounded(&info(), FDINFO_BYTES_MAX).ok()?),
                Reached::Anonymous => {
                    let is_ring = fs::read_link(entry.path()).is_ok_and(|name| name == Path::new(RING));
                    let info = is_ring.then(|| read_bounded(&info(), RING_BYTES_MAX).ok()).flatten()?;
                    registered_files(&info).any(|path| self.includes(&path)).then_some(Hold::Writes)
                }
                Reached::Other => None,
            }
        });
        let held = held.min();
        if held == Some(Hold::Writes) {
            return held;
        }
        let storage = Arc::clone(self);
        let is_mapped = within_limit(pid, move || storage.is_mapped(&table));
        if is_mapped == Some(true) { Some(Hold::Maps) } else { held }
    }

    fn is_mapped(&self, table: &Path) -> bool {
        let Ok(maps) = read_kernel_file(table.join("maps")) else { return false };
        let mut lines = maps.split(|byte| *byte == b'\n');
        lines.any(|line| {
            let Some((range, path)) = writable_shared_mapping(line) else { return false };
            // Without CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE the name alone is known.
            let found = self.classify(&table.join("map_files").join(range));
            found.map_or_else(|| self.includes(&path), |found| matches!(found, Reached::Storage))
        })
    }
}

/// Where a process has its descriptors. One whose first thread has ended shows them at its other threads only.
fn tables_of(pid: u32) -> Vec<PathBuf> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    if ProcessStat::read(pid).is_none_or(ProcessStat::is_running) {
        return vec![process];
    }
    let threads = numbers_in(&process.join("task")).unwrap_or_default();
    threads.into_iter().map(|thread| process.join("task").join(thread.to_string())).collect()
}

const RING: &str = "anon_inode:[io_uring]";

fn hold_of_descriptor(info: &[u8]) -> Option<Hold> {
    if open_files::parse_info(info)?.0 {
        return Some(Hold::Writes);
    }
    // "lock:\t1: FLOCK  ADVISORY  READ 4711 fe:00:1234 0 EOF"; a lease is no lock.
    let text = String::from_utf8_lossy(info);
    let mut locks = text.lines().filter_map(|line| line.strip_prefix("lock:"));
    locks
        .any(|lock| {
            let mut words = lock.split_ascii_whitespace();
            words.any(|word| ["POSIX", "FLOCK", "OFDLCK"].contains(&word))
        })
        .then_some(Hold::Locks)
}

/// "UserFiles:\t2\n    0: /dev/sdb\n    1: /data/x\nUserBufs:\t0\n"
fn registered_files(info: &[u8]) -> impl Iterator<Item = PathBuf> {
    let text = String::from_utf8_lossy(info).into_owned();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let begin = lines.iter().position(|line| line.starts_with("UserFiles:")).map_or(lines.len(), |at| at + 1);
    let files = lines.split_off(begin).into_iter();
    files.map_while(|line| {
        let (number, path) = line.split_once(": ")?;
        number.trim().parse::<u32>().ok()?;
        Some(PathBuf::from(path))
    })
}

/// "7f00a000-7f00b000 rw-s 00000000 fe:00 1234    /data/x": its range as map_files names it, and its path.
fn writable_shared_mapping(line: &[u8]) -> Option<(String, PathBuf)> {
    let text = std::str::from_utf8(line).ok()?;
    let (range, rest) = text.split_once(' ')?;
    let (rights, rest) = rest.split_once(' ')?;
    if !matches!(rights.as_bytes(), [_, b'w', _, b's']) {
        return None;
    }
    let (from, to) = range.split_once('-')?;
    let [from, to] = [from, to].map(|address| u64::from_str_radix(address, 16));
    Some((format!("{:x}-{:x}", from.ok()?, to.ok()?), PathBuf::from(&rest[rest.find('/')?..])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustix::fs::{FlockOperation, flock};
    use rustix::io_uring::{IoringRegisterOp, io_uring_params, io_uring_register, io_uring_setup};
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    fn own_hold(file: &Path) -> Option<Hold> {
        let found = fs::metadata(file).unwrap();
        let storage = Storage { files: BTreeSet::from([(found.dev(), found.ino())]), ..Storage::default() };
        let own = |holder: &Holder| holder.pid == std::process::id();
        storage.holders().unwrap().into_iter().find(own).map(|holder| holder.hold)
    }

    #[test]
    fn a_writer_and_a_lock_hold_a_file_and_a_reader_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "data").unwrap();
        assert_eq!(own_hold(&path), None);
        let reader = File::open(&path).unwrap();
        assert_eq!(own_hold(&path), None);
        flock(&reader, FlockOperation::LockShared).unwrap();
        assert_eq!(own_hold(&path), Some(Hold::Locks));
        drop(reader);
        let writer = File::options().append(true).open(&path).unwrap();
        assert_eq!(own_hold(&path), Some(Hold::Writes));
        drop(writer);
        assert_eq!(own_hold(&path), None);
    }

    /// Its descriptor is closed: the ring has the file.
    #[test]
    fn a_registered_file_of_a_ring_is_held() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "data").unwrap();
        let mut params = io_uring_params::default();
        // SAFETY: the parameters are zero, and outlive the call.
        let Ok(ring) = (unsafe { io_uring_setup(1, &mut params) }) else {
            return eprintln!("skipped: io_uring is refused here");
        };
        let writer = File::options().write(true).open(&path).unwrap();
        let files = [writer.as_raw_fd()];
        // SAFETY: the kernel reads one descriptor during the call.
        unsafe { io_uring_register(&ring, IoringRegisterOp::RegisterFiles, files.as_ptr().cast(), 1) }
            .unwrap();
        drop(writer);
        assert_eq!(own_hold(&path), Some(Hold::Writes));
    }

    #[test]
    fn a_line_of_maps_counts_where_it_is_shared_and_writable() {
        let parse = |line: &str| writable_shared_mapping(line.as_bytes());
        let range = "7f0000400000-7f0000401000".to_owned();
        assert_eq!(
            parse("7f0000400000-7f0000401000 rw-s 00000000 fe:00 77   /data/a b"),
            Some((range, "/data/a b".into()))
        );
        assert_eq!(parse("00400000-00401000 rw-s 0 fe:00 7 /x").unwrap().0, "400000-401000");
        for other in [
            "7f0000400000-7f0000401000 rw-p 00000000 fe:00 77   /data/a",
            "7f0000400000-7f0000401000 r--s 00000000 fe:00 77   /data/a",
            "7f0000400000-7f0000401000 rw-s 00000000 00:00 0",
            "",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_files_of_a_ring_are_listed_between_its_other_lines() {
        let info = b"pos:\t0\nflags:\t02\nSqMask:\t0x3\nUserFiles:\t3\n    0: /dev/sdb\n    2: /data/a b\nUserBufs:\t1\n    0: 7f/4096\n";
        let files: Vec<PathBuf> = registered_files(info).collect();
        assert_eq!(files, [Path::new("/dev/sdb"), Path::new("/data/a b")]);
        assert_eq!(registered_files(b"pos:\t0\n").count(), 0);
    }

    #[test]
    fn a_lease_is_no_lock() {
        let hold = |info: &str| hold_of_descriptor(info.as_bytes());
        let read = "pos:\t0\nflags:\t0100000\nmnt_id:\t27\nino:\t7\n";
        assert_eq!(hold(read), None);
        let lock = |kind: &str| format!("{read}lock:\t1: {kind}  ADVISORY  READ 4711 fe:00:7 0 EOF\n");
        assert_eq!(hold(&lock("LEASE")), None);
        for kind in ["POSIX", "FLOCK", "OFDLCK"] {
            assert_eq!(hold(&lock(kind)), Some(Hold::Locks), "{kind}");
        }
        assert_eq!(hold("pos:\t0\nflags:\t0100002\nmnt_id:\t27\n"), Some(Hold::Writes));
    }

    proptest! {
        #[test]
        fn any_text_of_proc_is_parsed_or_refused(text in "(lock:|UserFiles:|flags:|\\t|\\n|[0-9a-f-]{1,9}| |rw-s|/x|0: ){0,20}") {
            hold_of_descriptor(text.as_bytes());
            registered_files(text.as_bytes()).for_each(drop);
            text.lines().for_each(|line| drop(writable_shared_mapping(line.as_bytes())));
        }
    }
}
