//! One I/O of one file, as it was seen from outside: what a trace is made of.

use std::rc::Rc;

/// A completed I/O, in full or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedIo {
    /// When it was issued, nanoseconds since the trace began.
    pub at_ns: u64,
    /// Until it was done.
    pub latency_ns: u64,
    /// The process.
    pub pid: u32,
    /// The thread that issued it.
    pub tid: u32,
    /// The thread's name.
    pub comm: Rc<str>,
    /// The operation.
    pub op: TracedOp,
    /// The full name of the file.
    pub file: Rc<str>,
    /// Offset in the file; `None` where it has none, or it is unknown.
    pub offset_bytes: Option<u64>,
    /// Bytes moved; 0 of a sync.
    pub bytes: u64,
    /// Flags of the call.
    pub flags: IoFlags,
    /// The part that served it; `None` where unknown.
    pub served: Option<Served>,
    /// Outstanding I/Os of its process when it was issued, itself included.
    pub n: u32,
}

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TracedOp {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Make durable what was written.
    Sync,
    /// A page of a mapped file that was not in memory.
    Fault,
}

/// The part of the system that served an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The page cache alone.
    Cache,
    /// It waited for storage.
    Device,
}

impl TracedOp {
    /// All of them.
    pub const ALL: [TracedOp; 4] = [TracedOp::Read, TracedOp::Write, TracedOp::Sync, TracedOp::Fault];

    /// For people and programs: "read".
    pub fn word(self) -> &'static str {
        match self {
            TracedOp::Read => "read",
            TracedOp::Write => "write",
            TracedOp::Sync => "sync",
            TracedOp::Fault => "fault",
        }
    }
}

impl Served {
    /// For people and programs: "cache".
    pub fn word(self) -> &'static str {
        match self {
            Served::Cache => "cache",
            Served::Device => "device",
        }
    }
}

/// Flags of the call that issued an I/O, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoFlags(u32);

/// Each flag's word, from the lowest bit.
const WORDS: [&str; 18] = [
    "uring",
    "aio",
    "mmap",
    "copy",
    "direct",
    "dsync",
    "osync",
    "append",
    "hipri",
    "rwf-dsync",
    "rwf-sync",
    "nowait",
    "rwf-append",
    "dontcache",
    "fsync",
    "fdatasync",
    "range",
    "msync",
];

impl IoFlags {
    /// By io_uring.
    pub const URING: IoFlags = IoFlags(1);
    /// By libaio.
    pub const AIO: IoFlags = IoFlags(1 << 1);
    /// By a mapping.
    pub const MMAP: IoFlags = IoFlags(1 << 2);
    /// From file to file: sendfile, splice, copy_file_range.
    pub const COPY: IoFlags = IoFlags(1 << 3);
    /// O_DIRECT.
    pub const DIRECT: IoFlags = IoFlags(1 << 4);
    /// O_DSYNC.
    pub const DSYNC: IoFlags = IoFlags(1 << 5);
    /// O_SYNC.
    pub const OSYNC: IoFlags = IoFlags(1 << 6);
    /// O_APPEND.
    pub const APPEND: IoFlags = IoFlags(1 << 7);
    /// RWF_HIPRI.
    pub const HIPRI: IoFlags = IoFlags(1 << 8);
    /// RWF_DSYNC.
    pub const RWF_DSYNC: IoFlags = IoFlags(1 << 9);
    /// RWF_SYNC.
    pub const RWF_SYNC: IoFlags = IoFlags(1 << 10);
    /// RWF_NOWAIT.
    pub const NOWAIT: IoFlags = IoFlags(1 << 11);
    /// RWF_APPEND.
    pub const RWF_APPEND: IoFlags = IoFlags(1 << 12);
    /// RWF_DONTCACHE.
    pub const DONTCACHE: IoFlags = IoFlags(1 << 13);
    /// fsync.
    pub const FSYNC: IoFlags = IoFlags(1 << 14);
    /// fdatasync.
    pub const FDATASYNC: IoFlags = IoFlags(1 << 15);
    /// sync_file_range.
    pub const RANGE: IoFlags = IoFlags(1 << 16);
    /// msync.
    pub const MSYNC: IoFlags = IoFlags(1 << 17);

    /// With these too.
    #[must_use]
    pub fn with(self, other: IoFlags) -> IoFlags {
        IoFlags(self.0 | other.0)
    }

    /// With these too, where it is so.
    #[must_use]
    pub fn with_if(self, so: bool, other: IoFlags) -> IoFlags {
        if so { self.with(other) } else { self }
    }

    /// Whether any of those is in it.
    pub fn has(self, other: IoFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// Their words, in one order.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        WORDS.into_iter().enumerate().filter(move |(bit, _)| self.0 >> bit & 1 == 1).map(|(_, word)| word)
    }
}

impl std::fmt::Display for IoFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, word) in self.words().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            f.write_str(word)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_parsed_from_their_names() {
        let all = [(IoFlags::URING, "uring"), (IoFlags::DIRECT, "direct"), (IoFlags::MSYNC, "msync")];
        for (flag, word) in all {
            assert_eq!(flag.to_string(), word);
        }
        let both = IoFlags::RWF_DSYNC.with(IoFlags::DIRECT).with_if(false, IoFlags::AIO);
        assert_eq!(both.to_string(), "direct,rwf-dsync");
        assert!(both.has(IoFlags::DIRECT) && !both.has(IoFlags::URING.with(IoFlags::AIO)));
        assert_eq!(IoFlags::default().to_string(), "");
    }
}
