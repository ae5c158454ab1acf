use super::super::tables::{SYSCALLS, by_number};
use super::pattern::FilePattern;
use aya::EbpfLoader;
use filestats::TracedOp;

/// I/Os that are reported; all by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Only these operations; empty for all.
    pub ops: Vec<TracedOp>,
    /// Minimum of the bytes transferred.
    pub bytes_min: u64,
    /// Maximum of the bytes transferred.
    pub bytes_max: u64,
    /// Minimum latency of the I/O.
    pub latency_ns_min: u64,
    /// Only threads of this name.
    pub comm: Option<String>,
    /// Only these files; empty for all.
    pub files: Vec<FilePattern>,
    /// Size of the ring buffer, rounded up to a power of two.
    pub buffer_bytes: u32,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter {
            ops: Vec::new(),
            bytes_min: 0,
            bytes_max: u64::MAX,
            latency_ns_min: 0,
            comm: None,
            files: Vec::new(),
            buffer_bytes: Filter::BUFFER_BYTES,
        }
    }
}

impl Filter {
    /// Enough for about 170,000 I/Os.
    pub const BUFFER_BYTES: u32 = 16 << 20;
    /// The kernel's maximum is 2 GiB.
    pub const BUFFER_BYTES_MAX: u32 = 1 << 30;
}

/// Size of a thread's name in the kernel; the last byte is zero.
const COMM_BYTES: usize = 16;
/// The kernel's O_APPEND, which is libc's.
const APPEND: u32 = libc::O_APPEND as u32;

/// `enum shape` of bpf/tell.h: where a system call has its file offset. Others use the file's position.
const SHAPES: &[(libc::c_long, u8)] = &[
    (libc::SYS_pread64, 1),
    (libc::SYS_pwrite64, 1),
    (libc::SYS_preadv, 1),
    (libc::SYS_pwritev, 1),
    (libc::SYS_preadv2, 2),
    (libc::SYS_pwritev2, 2),
    (libc::SYS_fsync, 3),
    (libc::SYS_fdatasync, 4),
    (libc::SYS_sync_file_range, 5),
    (libc::SYS_msync, 6),
    (libc::SYS_copy_file_range, 7),
    (libc::SYS_splice, 7),
    (libc::SYS_sendfile, 8),
];

/// A filter as the constants of the programs.
pub(in super::super) struct FilterConstants<'f> {
    filter: &'f Filter,
    kinds: u32,
    only_comm: u8,
    comm: [u8; COMM_BYTES],
    only_names: u8,
    shapes: [u8; SYSCALLS],
    buffer_bytes: u32,
}

impl<'f> FilterConstants<'f> {
    pub fn new(filter: &'f Filter) -> FilterConstants<'f> {
        let bit = |op: &TracedOp| match op {
            TracedOp::Read => 1,
            TracedOp::Write => 1 << 1,
            TracedOp::Sync => 1 << 2,
            TracedOp::Fault => 1 << 4,
        };
        let ops = if filter.ops.is_empty() { &TracedOp::ALL } else { filter.ops.as_slice() };
        let mut comm = [0; COMM_BYTES];
        let name = filter.comm.as_deref().unwrap_or_default().as_bytes();
        // Truncated as in the kernel.
        let name = &name[..name.len().min(COMM_BYTES - 1)];
        comm[..name.len()].copy_from_slice(name);
        // At least one page, which is 64 KiB at most.
        let buffer_bytes = filter.buffer_bytes.clamp(64 << 10, Filter::BUFFER_BYTES_MAX).next_power_of_two();
        FilterConstants {
            kinds: ops.iter().map(bit).fold(0, |all, bit| all | bit),
            filter,
            only_comm: u8::from(filter.comm.is_some()),
            comm,
            only_names: u8::from(!filter.files.is_empty()),
            shapes: by_number(SHAPES),
            buffer_bytes,
        }
    }

    pub fn set<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader
            .map_max_entries("events", self.buffer_bytes)
            .override_global("wanted_kinds", &self.kinds, true)
            .override_global("bytes_min", &self.filter.bytes_min, true)
            .override_global("bytes_max", &self.filter.bytes_max, true)
            .override_global("ns_min", &self.filter.latency_ns_min, true)
            .override_global("only_comm", &self.only_comm, true)
            .override_global("wanted_comm", self.comm.as_slice(), true)
            .override_global("only_names", &self.only_names, true)
            .override_global("o_append", &APPEND, true)
            .override_global("shapes", self.shapes.as_slice(), true);
    }
}
