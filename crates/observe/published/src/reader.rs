//! The reading side: the counters of other processes, through their files.

use crate::layout::{
    BOOT_ID_BYTES, BYPASSES_CACHE, COMMITS, CommitCounters, DURABLE_AT_END, FILES_MAX, HEAD_BYTES, Head,
    Histogram, LOG_RECORDS, MAGIC, ONE_BY_ONE, PATH_BYTES_MAX, PUBLISHED, SLOT_BYTES, Slot, TABLE_BYTES,
    TIMES, Table, VERSION, WRITER_TIME, Way, kind_from_number, load_bytes,
};
use crate::name::parse_name;
use crate::{Access, EngineName, Mapping, ProcessIdentity, PublishedFile};
use filestats::{Counters, Figure, FileKind, Latencies, LatencyBuckets, Ops, Reason};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// The cumulative counters of one file of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReading {
    /// Index in the table of slots, in the order in which files were first opened.
    pub slot: usize,
    /// Nth file of this path that the process opened, from 1: a file that replaced another starts at zero.
    pub generation: u32,
    /// Use of the file by the engine.
    pub kind: FileKind,
    /// Its full name, or what the engine calls a sum of files.
    pub path: PathBuf,
    /// Major and minor number of the device, where known.
    pub device: Option<(u32, u32)>,
    /// Inode, where known. For a log or journal, the one when it was first opened.
    pub inode: Option<u64>,
    /// How it is read and written.
    pub way: Way,
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
    /// in the read count; SQLite's unix VFS makes one more system call for each, which returns nothing.
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

/// Commit counters of an engine; `None` for those that it does not keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitReading {
    /// Transactions that committed.
    pub commits: Option<u64>,
    /// Time that they waited for the log, nanoseconds.
    pub log_wait_ns: Option<u64>,
    /// Time that one of them had the only turn to write, nanoseconds.
    pub writer_ns: Option<u64>,
    /// Records appended to the log.
    pub log_records: Option<u64>,
    /// Their bytes.
    pub log_record_bytes: Option<u64>,
}

/// All counters of one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its files, in the order in which they were first opened.
    pub files: Vec<FileReading>,
    /// Its commits.
    pub commits: CommitReading,
    /// Whether the engine has closed it.
    pub is_closed: bool,
}

/// The database that an engine has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// Its file or directory, as the process named it.
    pub path: PathBuf,
    /// Device (major << 32 | minor) and inode: a database has many names.
    pub identity: (u64, u64),
}

/// Why the counters of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
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
    #[error("cannot read the counters file {path}: user {user} publishes more than {most} of them")]
    TooMany {
        /// The first file that is not read.
        path: PathBuf,
        /// The user.
        user: u32,
        /// Files that are read.
        most: usize,
    },
}

/// The counters of another process, read while it runs. No descriptor stays open: other users' processes may publish
/// more files than this one may open.
#[derive(Clone, Debug)]
pub struct CountersFile {
    path: PathBuf,
    /// The user that the file belongs to: the one that the process runs as, or root.
    pub user: u32,
    /// The process whose counters these are.
    pub process: ProcessIdentity,
    /// The engine's name.
    pub engine: EngineName,
    /// Whether its commits come one by one: they cannot share a write of the log.
    pub commits_one_by_one: bool,
    /// When the engine opened it, on CLOCK_MONOTONIC: one opening differs from the next in the same process.
    pub opened_ns: u64,
    /// The database; `None` before it is open, and for a process with several in one file.
    pub database: Option<Database>,
}

impl CountersFile {
    /// Finds out whose counters are in a file.
    ///
    /// # Errors
    /// [`ReadError`] when it cannot be read, is not a counters file of this version, or claims a process that its name or its
    /// owner does not.
    pub fn open(path: &Path) -> Result<CountersFile, ReadError> {
        let (file, table) = open_head(path)?;
        let foreign = |why| ReadError::Foreign { path: path.into(), why };
        let head = &table.as_board::<Table>().head;
        let process = process_of(head).map_err(foreign)?;
        let named = path.file_name().and_then(|name| parse_name(name.to_str()?));
        if named.map(|(pid, _)| pid) != Some(process.pid) {
            return Err(foreign("its name does not have the number of its process"));
        }
        if process.is_alive() == Some(true) && !file.is_trusted_for(&process) {
            return Err(foreign("it does not belong to the user of its process"));
        }
        Ok(CountersFile {
            path: path.into(),
            user: file.user(),
            process,
            engine: engine_of(head).ok_or_else(|| foreign("its engine has no name"))?,
            commits_one_by_one: head.counted.load(Relaxed) & ONE_BY_ONE != 0,
            opened_ns: head.opened_ns.load(Relaxed),
            database: database_of(head),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All counters so far.
    ///
    /// # Errors
    /// [`ReadError`] if the file was truncated, removed or replaced since it was opened.
    pub fn read(&self) -> Result<Reading, ReadError> {
        let (file, mut table) = open_head(&self.path)?;
        let head = &table.as_board::<Table>().head;
        let is_same = process_of(head).ok().as_ref() == Some(&self.process)
            && (file.user(), head.opened_ns.load(Relaxed)) == (self.user, self.opened_ns);
        if !is_same {
            return Err(ReadError::Foreign { path: self.path.clone(), why: "it was replaced" });
        }
        let counted = head.counted.load(Relaxed);
        let (commits, is_closed) = (read_commits(&head.commits, counted), head.closed.load(Relaxed) != 0);
        let used = (head.slots_used.load(Acquire) as usize).min(FILES_MAX);
        let slots = HEAD_BYTES..HEAD_BYTES + used * SLOT_BYTES;
        file.read(slots, &mut table).map_err(|error| read_failed(&self.path, error))?;
        let slots = table.as_board::<Table>().slots[..used].iter().enumerate();
        let files = slots.filter_map(|(index, slot)| read_slot(index, slot, counted & TIMES != 0)).collect();
        Ok(Reading { files, commits, is_closed })
    }
}

impl CountersFile {
    /// The counters of its files.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn files(&self) -> Result<Vec<FileReading>, ReadError> {
        self.read().map(|reading| reading.files)
    }
}

/// Opens a counters file and copies its head into memory that has space for all of it.
fn open_head(path: &Path) -> Result<(PublishedFile, Mapping), ReadError> {
    let failed = |error| read_failed(path, error);
    let file = PublishedFile::open(path, TABLE_BYTES, Access::Read).map_err(failed)?;
    let file = file.ok_or_else(|| ReadError::Foreign { path: path.into(), why: "its size is wrong" })?;
    let mut table = Mapping::private(TABLE_BYTES).map_err(failed)?;
    file.read(0..HEAD_BYTES, &mut table).map_err(failed)?;
    Ok((file, table))
}

fn read_failed(path: &Path, error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadError::Foreign { path: path.into(), why: "it was cut" },
        _ => ReadError::Io { path: path.into(), error },
    }
}

fn process_of(head: &Head) -> Result<ProcessIdentity, &'static str> {
    if head.magic.load(Acquire) != MAGIC {
        return Err("it does not begin with the mark of one");
    }
    if head.version.load(Relaxed) != VERSION {
        return Err("its layout has another version");
    }
    if [&head.slot_bytes, &head.slots_max].map(|size| size.load(Relaxed))
        != [SLOT_BYTES as u32, FILES_MAX as u32]
    {
        return Err("its tables have other sizes");
    }
    let boot_id: [u8; BOOT_ID_BYTES] = std::array::from_fn(|at| head.boot_id[at].load(Relaxed));
    Ok(ProcessIdentity {
        pid: head.pid.load(Relaxed),
        start_ticks: head.start_ticks.load(Relaxed),
        boot_id: std::str::from_utf8(&boot_id).map_err(|_| "its boot id is no text")?.to_owned(),
        pid_namespace: head.pid_namespace.load(Relaxed),
    })
}

fn engine_of(head: &Head) -> Option<EngineName> {
    EngineName::from_bytes(std::array::from_fn(|at| head.engine[at].load(Relaxed)))
}

fn database_of(head: &Head) -> Option<Database> {
    let bytes = (head.path_bytes.load(Acquire) as usize).min(PATH_BYTES_MAX);
    let path = PathBuf::from(OsString::from_vec(load_bytes(&head.path[..bytes])));
    let identity = (head.device.load(Relaxed), head.inode.load(Relaxed));
    path.is_absolute().then_some(Database { path, identity })
}

pub(crate) fn read_commits(commits: &CommitCounters, counted: u32) -> CommitReading {
    let get = |bit: u32, counter: &AtomicU64| (counted & bit != 0).then(|| counter.load(Relaxed));
    CommitReading {
        commits: get(COMMITS, &commits.commits),
        log_wait_ns: get(COMMITS, &commits.log_wait_ns),
        writer_ns: get(WRITER_TIME, &commits.writer_ns),
        log_records: get(LOG_RECORDS, &commits.log_records),
        log_record_bytes: get(LOG_RECORDS, &commits.log_record_bytes),
    }
}

/// The counters of a slot; `None` if it is not published.
pub(crate) fn read_slot(index: usize, slot: &Slot, timed: bool) -> Option<FileReading> {
    if slot.state.load(Acquire) != PUBLISHED {
        return None;
    }
    let path_bytes = (slot.path_bytes.load(Relaxed) as usize).min(PATH_BYTES_MAX);
    let (device, inode, way) = (slot.device.load(Relaxed), slot.inode.load(Relaxed), slot.way.load(Relaxed));
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
        path: PathBuf::from(OsString::from_vec(load_bytes(&slot.path[..path_bytes]))),
        device: (device != 0).then_some(((device >> 32) as u32, device as u32)),
        inode: (inode != 0).then_some(inode),
        way: Way { bypasses_cache: way & BYPASSES_CACHE != 0, is_durable_at_end: way & DURABLE_AT_END != 0 },
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
