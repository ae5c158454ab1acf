//! Reads the counters of this process and, through their files, those of other processes.

use crate::layout::{
    BOOT_ID_BYTES, FILES_MAX, HEADER_BYTES, Header, Histogram, MAGIC, PATH_BYTES_MAX, PUBLISHED,
    REGION_BYTES, SLOT_BYTES, Slot, Table, VERSION, file_name, kind_from_number, pid_in_name,
};
use filestats::{Counters, Figure, FileKind, Latencies, LatencyBuckets, Ops, Reason};
use published::{Access, Mapping, ProcessIdentity, PublishedFile};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Bounds what one user can make a reader read: 5 MiB for each of this many processes. Those beyond are reported as
/// unreadable.
const PROCESSES_PER_USER_MAX: usize = 1024;
/// Bounds the search for files of processes that have ended; those beyond stay.
const ENTRIES_SEARCHED_MAX: usize = 1 << 16;

/// The cumulative counters of one file of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReading {
    /// Index in the table of slots, in the order in which files were first opened.
    pub slot: usize,
    /// Nth file of this path that the process opened, from 1: a file that replaced another starts at zero.
    pub generation: u32,
    /// SQLite's use of the file.
    pub kind: FileKind,
    /// Full name; [`crate::TEMP_FILES`] for the sum of all temporary files.
    pub path: PathBuf,
    /// Major and minor number of the device, where known.
    pub device: Option<(u32, u32)>,
    /// Inode, where known. For a log or journal, the one when it was first opened.
    pub inode: Option<u64>,
    /// Reads, writes and syncs.
    pub counters: Counters,
    /// Their histograms.
    pub latencies: Latencies,
    /// Events that [`Counters`] has no fields for.
    pub details: Details,
}

/// Rarer events of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Reads that returned at least one byte, but fewer than requested: they crossed the end of the file. They are
    /// in the read count; the unix VFS makes one more system call for each, which returns nothing.
    pub reads_short: u64,
    /// Reads past the end of the file, which returned nothing. They are not in the read count.
    pub reads_empty: u64,
    /// Pages handed out of a memory map. The kernel reads them on page faults: not timed, not in the
    /// read count.
    pub fetches: u64,
    /// Bytes of those pages.
    pub fetched_bytes: u64,
    /// Truncates.
    pub truncates: u64,
    /// Summed time of truncates in nanoseconds.
    pub truncate_stall_ns: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// Syncs that failed.
    pub sync_errors: u64,
    /// Truncates that failed.
    pub truncate_errors: u64,
}

/// Why the counters of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened or mapped.
    #[error("cannot read the counters file {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is not (or not yet) a counters file of this version.
    #[error("{path} is not a counters file of this version of headroom: {why}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The defect of the file.
        why: &'static str,
    },
    /// One user's processes publish more files than are read.
    #[error(
        "cannot read the counters file {path}: user {user} publishes more than {PROCESSES_PER_USER_MAX} of them"
    )]
    TooMany {
        /// The first file that is not read.
        path: PathBuf,
        /// The user.
        user: u32,
    },
}

/// The counters of another process, read while it runs. No descriptor stays open: other users' processes may publish
/// more files than this one may open.
#[derive(Debug)]
pub struct CountersFile {
    path: PathBuf,
    /// The user that the file belongs to: the one that the process runs as, or root.
    pub user: u32,
    /// The process whose counters these are.
    pub process: ProcessIdentity,
}

impl CountersFile {
    /// Finds out whose counters are in a file.
    ///
    /// # Errors
    /// [`ReadError`] when it cannot be read, is not a counters file of this version, or claims a process that its name or its
    /// owner does not.
    pub fn open(path: &Path) -> Result<CountersFile, ReadError> {
        let (file, header) = open_header(path)?;
        let foreign = |why| ReadError::Foreign { path: path.into(), why };
        let process = process_of(&header.as_board::<Table>().header).map_err(foreign)?;
        if path.file_name().and_then(|name| pid_in_name(name.to_str()?)) != Some(process.pid) {
            return Err(foreign("its name does not have the number of its process"));
        }
        if process.is_alive() == Some(true) && !file.is_trusted_for(&process) {
            return Err(foreign("it does not belong to the user of its process"));
        }
        Ok(CountersFile { path: path.into(), user: file.user(), process })
    }

    /// All files that the process has opened so far.
    ///
    /// # Errors
    /// [`ReadError`] if the file was truncated, removed or replaced since it was opened.
    pub fn files(&self) -> Result<Vec<FileReading>, ReadError> {
        let (file, mut table) = open_header(&self.path)?;
        let header = &table.as_board::<Table>().header;
        if process_of(header).ok().as_ref() != Some(&self.process) || file.user() != self.user {
            return Err(ReadError::Foreign { path: self.path.clone(), why: "it was replaced" });
        }
        let used = (header.slots_used.load(Acquire) as usize).min(FILES_MAX);
        let timed = header.timing.load(Relaxed) == 1;
        let slots = HEADER_BYTES..HEADER_BYTES + used * SLOT_BYTES;
        file.read(slots, &mut table).map_err(|error| read_failed(&self.path, error))?;
        let slots = table.as_board::<Table>().slots[..used].iter().enumerate();
        Ok(slots.filter_map(|(index, slot)| read_slot(index, slot, timed)).collect())
    }
}

/// Opens a counters file and copies its header into memory that has space for all of it.
fn open_header(path: &Path) -> Result<(PublishedFile, Mapping), ReadError> {
    let failed = |error| read_failed(path, error);
    let file = PublishedFile::open(path, REGION_BYTES, Access::Read).map_err(failed)?;
    let file = file.ok_or_else(|| ReadError::Foreign { path: path.into(), why: "its size is wrong" })?;
    let mut table = Mapping::private(REGION_BYTES).map_err(failed)?;
    file.read(0..HEADER_BYTES, &mut table).map_err(failed)?;
    Ok((file, table))
}

fn read_failed(path: &Path, error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadError::Foreign { path: path.into(), why: "it was cut" },
        _ => ReadError::Io { path: path.into(), error },
    }
}

fn process_of(header: &Header) -> Result<ProcessIdentity, &'static str> {
    if header.magic.load(Acquire) != MAGIC {
        return Err("it does not begin with the mark of one");
    }
    if header.version.load(Relaxed) != VERSION {
        return Err("its layout has another version");
    }
    let sizes = [&header.header_bytes, &header.slot_bytes, &header.slots_max].map(|size| size.load(Relaxed));
    if sizes != [HEADER_BYTES as u32, SLOT_BYTES as u32, FILES_MAX as u32] {
        return Err("its tables have other sizes");
    }
    let boot_id: [u8; BOOT_ID_BYTES] = std::array::from_fn(|i| header.boot_id[i].load(Relaxed));
    Ok(ProcessIdentity {
        pid: header.pid.load(Relaxed),
        start_ticks: header.start_ticks.load(Relaxed),
        boot_id: std::str::from_utf8(&boot_id).map_err(|_| "its boot id is no text")?.to_owned(),
        pid_namespace: header.pid_namespace.load(Relaxed),
    })
}

/// The counters of a slot; `None` if it is not published.
pub(crate) fn read_slot(index: usize, slot: &Slot, timed: bool) -> Option<FileReading> {
    if slot.state.load(Acquire) != PUBLISHED {
        return None;
    }
    let path_bytes = (slot.path_bytes.load(Relaxed) as usize).min(PATH_BYTES_MAX);
    let path: Vec<u8> = slot.path[..path_bytes].iter().map(|byte| byte.load(Relaxed)).collect();
    let device = slot.device.load(Relaxed);
    let inode = slot.inode.load(Relaxed);
    let get = |counter: &AtomicU64| counter.load(Relaxed);
    let ops = |latencies: &LatencyBuckets, bytes, stall: &AtomicU64| Ops {
        count: latencies.count(),
        bytes,
        stall_ns: if timed { Figure::Known(get(stall)) } else { Figure::unknown(Reason::TimingOff) },
    };
    let latencies = Latencies {
        read: buckets(&slot.read_latencies),
        write: buckets(&slot.write_latencies),
        sync: buckets(&slot.sync_latencies),
    };
    let (reads, writes, others) = (&slot.reads, &slot.writes, &slot.others);
    Some(FileReading {
        slot: index,
        generation: slot.generation.load(Relaxed),
        kind: kind_from_number(slot.kind.load(Relaxed)),
        path: PathBuf::from(OsString::from_vec(path)),
        device: (device != 0).then_some(((device >> 32) as u32, device as u32)),
        inode: (inode != 0).then_some(inode),
        counters: Counters {
            read: ops(&latencies.read, get(&reads.bytes), &reads.stall_ns),
            write: ops(&latencies.write, get(&writes.bytes), &writes.stall_ns),
            sync: Figure::Known(ops(&latencies.sync, 0, &others.sync_stall_ns)),
            busy_ns: Figure::unknown(Reason::NotCounted),
        },
        latencies,
        details: Details {
            reads_short: get(&reads.short),
            reads_empty: get(&reads.empty),
            fetches: get(&reads.fetches),
            fetched_bytes: get(&reads.fetched_bytes),
            truncates: get(&others.truncates),
            truncate_stall_ns: get(&others.truncate_stall_ns),
            read_errors: get(&reads.errors),
            write_errors: get(&writes.errors),
            sync_errors: get(&others.sync_errors),
            truncate_errors: get(&others.truncate_errors),
        },
    })
}

fn buckets(histogram: &Histogram) -> LatencyBuckets {
    LatencyBuckets::from_counts(std::array::from_fn(|index| histogram[index].load(Relaxed)))
}

/// The counters files of a directory.
#[derive(Debug, Default)]
pub struct CountersFiles {
    /// Those of processes that run.
    pub live: Vec<CountersFile>,
    /// Those that cannot be read, mostly because they are another user's.
    pub unreadable: Vec<ReadError>,
}

/// Finds the counters files of the processes that run, in a directory that everyone may write. Files of processes that
/// have ended are removed where that is permitted; files of other pid namespaces, forged files and files that are not
/// counters files are ignored.
///
/// The processes are searched for their files: what another user puts into the directory hides none of them.
///
/// # Errors
/// The directory cannot be listed.
pub fn published_in(dir: &Path) -> io::Result<CountersFiles> {
    remove_dead(dir)?;
    let mut found = CountersFiles::default();
    let mut per_user: HashMap<u32, usize> = HashMap::new();
    let mut pids = host::pids()?;
    pids.sort_unstable();
    for pid in pids {
        let path = dir.join(file_name(pid));
        match CountersFile::open(&path) {
            Ok(counters) if counters.process.is_alive() == Some(true) => {
                let user = counters.user;
                let of_user = per_user.entry(user).or_default();
                *of_user += 1;
                match (*of_user).cmp(&(PROCESSES_PER_USER_MAX + 1)) {
                    Ordering::Less => found.live.push(counters),
                    Ordering::Equal => found.unreadable.push(ReadError::TooMany { path, user }),
                    Ordering::Greater => {}
                }
            }
            Ok(_) | Err(ReadError::Foreign { .. }) => {}
            Err(ReadError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.unreadable.push(error),
        }
    }
    Ok(found)
}

fn remove_dead(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)?.take(ENTRIES_SEARCHED_MAX) {
        let entry = entry?;
        if entry.file_name().to_str().and_then(pid_in_name).is_some()
            && CountersFile::open(&entry.path()).is_ok_and(|file| file.process.is_alive() == Some(false))
        {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}
