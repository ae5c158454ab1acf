use io_uring::types::FsyncFlags;
use io_uring::{opcode, squeue};
use std::os::fd::{AsRawFd, BorrowedFd};

/// The submission queue of a ring, open for a batch.
pub struct Queue<'a> {
    pub(super) queue: squeue::SubmissionQueue<'a>,
    pub(super) queued: &'a mut u32,
    pub(super) buffers: BufferStart,
    /// Descriptors, where the files are not registered.
    pub(super) files: Option<&'a [BorrowedFd<'a>]>,
    pub(super) registered_buffers: bool,
}

/// Operation of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Write that is durable before it completes (`RWF_DSYNC`).
    WriteThrough,
    /// `fsync`, of the whole file.
    Fsync,
    /// `fdatasync`, of the whole file.
    Fdatasync,
}

/// One I/O.
#[derive(Clone, Copy, Debug)]
pub struct Io {
    pub op: Op,
    /// Number of the file in the ring.
    pub file: u16,
    /// Offset in the file.
    pub offset: u64,
    pub bytes: u32,
    /// Ignored by syncs.
    pub memory: Memory,
    /// Returned with the completion.
    pub tag: u32,
}

/// An entry of the queue, `struct io_uring_sqe`, with names for the fields used here. The builders of the io_uring
/// crate zero an entry, fill it field by field and copy it, for each I/O.
#[repr(C)]
struct Entry {
    code: u8,
    flags: u8,
    priority: u16,
    descriptor: u32,
    offset: u64,
    address: u64,
    bytes: u32,
    /// `rw_flags` or `fsync_flags`.
    how: u32,
    tag: u64,
    /// The first two bytes are the number of the registered buffer: there is one.
    rest: [u64; 3],
}

/// Memory that an I/O reads into or writes from.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// One of the ring's own buffers.
    Buffer(u32),
    /// Other memory, for writes only.
    Foreign(*const u8),
    /// From an offset in one of the ring's buffers: the parts of an I/O share its buffer.
    Within(u32, u32),
}

/// Address and stride of a ring's buffers.
#[derive(Clone, Copy, Debug)]
pub struct BufferStart {
    pub(super) start: *mut u8,
    pub(super) stride: usize,
}

impl BufferStart {
    /// Start of buffer `at`. Valid to access only if the ring has that buffer.
    #[inline]
    pub fn pointer(self, at: u32) -> *mut u8 {
        self.start.wrapping_add(at as usize * self.stride)
    }
}

impl Queue<'_> {
    /// Start of a buffer, to be filled before a write.
    #[inline]
    pub fn buffer(&self, at: u32) -> *mut u8 {
        self.buffers.pointer(at)
    }

    /// Queues an I/O.
    ///
    /// # Safety
    /// [`Memory::Foreign`] must be readable for `bytes` bytes until the I/O is reaped or the ring dropped; a buffer
    /// must be one of the ring's, hold `bytes` bytes, and belong to no other I/O in flight.
    ///
    /// # Panics
    /// If the queue is full, see [`Ring::free_entries`](super::Ring::free_entries).
    #[inline(always)]
    pub unsafe fn push(&mut self, io: Io) {
        let entry = self.entry(io);
        // SAFETY: the caller guarantees the memory; `Ring::drop` waits for the I/Os in flight.
        unsafe { self.queue.push(&entry) }.expect("the caller checks for free entries");
        *self.queued += 1;
    }

    #[inline(always)]
    fn entry(&self, io: Io) -> squeue::Entry {
        let (pointer, in_buffer) = match io.memory {
            Memory::Buffer(at) => (self.buffers.pointer(at).cast_const(), true),
            Memory::Foreign(pointer) => (pointer, false),
            Memory::Within(at, from) => {
                (self.buffers.pointer(at).wrapping_add(from as usize).cast_const(), true)
            }
        };
        let fixed = in_buffer && self.registered_buffers;
        let (code, how) = match io.op {
            Op::Read => (if fixed { opcode::ReadFixed::CODE } else { opcode::Read::CODE }, 0),
            Op::Write => (if fixed { opcode::WriteFixed::CODE } else { opcode::Write::CODE }, 0),
            Op::WriteThrough => {
                (if fixed { opcode::WriteFixed::CODE } else { opcode::Write::CODE }, libc::RWF_DSYNC as u32)
            }
            Op::Fsync => (opcode::Fsync::CODE, 0),
            Op::Fdatasync => (opcode::Fsync::CODE, FsyncFlags::DATASYNC.bits()),
        };
        let syncs = matches!(io.op, Op::Fsync | Op::Fdatasync);
        let (offset, address, bytes) = if syncs { (0, 0, 0) } else { (io.offset, pointer as u64, io.bytes) };
        let (descriptor, flags) = match self.files {
            None => (u32::from(io.file), squeue::Flags::FIXED_FILE.bits()),
            Some(files) => (files[usize::from(io.file)].as_raw_fd() as u32, 0),
        };
        let entry = Entry {
            code,
            flags,
            priority: 0,
            descriptor,
            offset,
            address,
            bytes,
            how,
            tag: u64::from(io.tag),
            rest: [0; 3],
        };
        // SAFETY: both are the kernel's 64 byte layout, of which any bit pattern is valid.
        unsafe { std::mem::transmute::<Entry, squeue::Entry>(entry) }
    }
}
