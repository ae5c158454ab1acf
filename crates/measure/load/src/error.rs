use crate::io_buffers::HugePages;
use crate::job::THREADS_MAX;
use std::io;
use workload::{InvalidWorkload, TargetChange, format_bytes};

/// Memory that a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryUse {
    /// The buffers of the outstanding I/Os of all threads and workloads.
    #[error("the buffers of {outstanding} outstanding I/Os of up to {block}", block = format_bytes(u64::from(*block_bytes)))]
    Outstanding {
        /// Outstanding I/Os.
        outstanding: u64,
        /// The largest block.
        block_bytes: u32,
    },
    /// The buffers that writes take their content from.
    #[error("the buffers that writes take their content from")]
    Content,
    /// Marks of the writes to each block of verified workloads.
    #[error("the marks of all blocks that are verified")]
    Ledger,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The workload is out of range.
    #[error("cannot run this workload: {0}")]
    Workload(#[from] InvalidWorkload),
    /// The region is smaller than one block.
    #[error("cannot load {path}: it has {bytes} bytes, less than one block of {block_bytes} bytes")]
    TooSmall {
        /// Target.
        path: String,
        /// Its bytes.
        bytes: u64,
        /// The block size.
        block_bytes: u32,
    },
    /// The target does not support direct I/O of that size.
    #[error(
        "cannot load {path} directly: {block_bytes} bytes are no multiple of its {align_bytes} byte blocks"
    )]
    Unaligned {
        /// Target.
        path: String,
        /// The block size.
        block_bytes: u32,
        /// Required alignment.
        align_bytes: u32,
    },
    /// Memory, threads or a ring are unavailable.
    #[error("cannot start the load on {path}: {error}")]
    Start {
        /// Target.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// A trace that does not match the target.
    #[error("cannot replay on {path}: I/O {at} of the trace {why}")]
    Trace {
        /// Target.
        path: String,
        /// Number of the I/O in the trace, from 1.
        at: usize,
        /// The mismatch.
        why: String,
    },
    /// The memory that the run needs would not fit.
    #[error(
        "cannot start the load: {used_by} need {needed} of memory, and {available} are available",
        needed = format_bytes(*needed_bytes),
        available = format_bytes(*available_bytes)
    )]
    Memory {
        /// The part that does not fit any more.
        used_by: MemoryUse,
        /// Bytes of it.
        needed_bytes: u64,
        /// Bytes available for it.
        available_bytes: u64,
    },
    /// Too few huge pages are free.
    #[error(
        "cannot start the load: its buffers need {needed} huge pages of {page}, and {free} are free",
        page = format_bytes(pages.page_bytes),
        free = pages.free
    )]
    HugePages {
        /// Pages needed by all threads.
        needed: u64,
        /// The reserved pages.
        pages: HugePages,
    },
    /// Too many threads at once.
    #[error("cannot start the load: it needs {threads} threads, and {THREADS_MAX} is the most{why}")]
    Threads {
        /// Threads needed.
        threads: u64,
        /// Appended to the message: why it needs this many.
        why: &'static str,
    },
    /// Threads that share what is outstanding need io_uring.
    #[error("cannot start the load: a pool that shares its outstanding I/Os needs io_uring: {error}")]
    Pool {
        /// The error of the ring.
        error: io::Error,
    },
    /// The buffer that supplies the content of writes cannot be allocated, or its file cannot be read.
    #[error("cannot fill the buffer of writes from {path}: {error}")]
    Source {
        /// The file, or "random bytes".
        path: String,
        /// Why.
        error: io::Error,
    },
    /// Reading the written blocks again failed.
    #[error("cannot verify {path}: {error}")]
    Verify {
        /// Target.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// Every I/O failed.
    #[error("every I/O on {path} failed, {count} times: {error}")]
    AllFailed {
        /// Target.
        path: String,
        /// Failed I/Os.
        count: u64,
        /// The most frequent error.
        error: io::Error,
        /// Changes of the target by other programs during the run.
        changes: Vec<TargetChange>,
    },
}
