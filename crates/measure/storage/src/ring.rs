//! An io_uring for one thread and the files it works on.
//!
//! ```text
//! Ring::new(files, buffers, depth)  single issuer, deferred task work, registered ring, files and buffers,
//!                                   each left out where this kernel or a limit refuses it
//! queue().push(io) ... push(io)     into the submission queue, no system call
//! submit(wait)                      one system call: hands over the batch, waits for completions if asked
//! reap(|tag, result|)               all completions there are, no system call
//! ```

use crate::IoBuffers;
use io_uring::types::FsyncFlags;
use io_uring::{IoUring, opcode, squeue};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use rustix::io_uring::{
    IoringEnterFlags as Enter, Timespec, io_uring_enter, io_uring_enter_arg, io_uring_getevents_arg,
    io_uring_ptr,
};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// A thread's ring over its files.
pub struct Ring {
    ring: IoUring,
    buffers: IoBuffers,
    files: Vec<RawFd>,
    registered_ring: Option<u32>,
    registered_files: bool,
    registered_buffers: bool,
    queue_entries: u32,
    queued: u32,
    in_flight: u32,
}

/// The submission queue, open for a batch.
pub struct Queue<'a> {
    queue: squeue::SubmissionQueue<'a>,
    queued: &'a mut u32,
    buffers: BufferStart,
    /// Descriptors, where the ring does not know the files by number.
    files: Option<&'a [RawFd]>,
    registered_buffers: bool,
}

/// What an I/O does.
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
    /// What.
    pub op: Op,
    /// On which of the ring's files.
    pub file: u16,
    /// Where in the file, bytes.
    pub offset: u64,
    /// How much.
    pub bytes: u32,
    /// From or to where in memory; ignored by syncs.
    pub memory: Memory,
    /// Handed back with the completion.
    pub tag: u32,
}

/// An entry of the queue as the kernel reads it: `struct io_uring_sqe`, of which only what is needed here has a
/// name. The crate's builders zero an entry, fill it field by field and copy it, for each I/O.
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

/// Memory of an I/O.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// One of the ring's own buffers.
    Buffer(u32),
    /// Elsewhere, for writes only.
    Foreign(*const u8),
    /// Within one of the ring's own buffers: an I/O that is cut into parts has one buffer.
    Within(u32, u32),
}

/// How [`Ring::submit`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// For one completion, or for 100 ms.
    Completion,
    /// For one completion, or for so long (100 ms at most).
    AtMost(Duration),
}

/// Where a ring's buffers are.
#[derive(Clone, Copy, Debug)]
pub struct BufferStart {
    start: *mut u8,
    stride: usize,
}

impl BufferStart {
    /// Start of buffer `at`, which must be one of the ring's.
    #[inline]
    pub fn of(self, at: u32) -> *mut u8 {
        self.start.wrapping_add(at as usize * self.stride)
    }
}

/// Wakes a waiting thread this often, so that a stalled device cannot keep it from ending.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Most I/Os that are queued for one call. A short queue stays in the processor's cache.
const QUEUE_MAX: u32 = 64;

/// Errors of the call that end by themselves: time is up, a signal, no memory just now, completions to reap.
const PASSING: [Errno; 4] = [Errno::TIME, Errno::INTR, Errno::AGAIN, Errno::BUSY];

// include/uapi/linux/io_uring.h
const IORING_REGISTER_RING_FDS: u32 = 20;

/// Makes the ring known by a small number, which spares the kernel the look-up of its descriptor with each
/// call; `None` before 5.18.
fn register_ring(ring: &IoUring) -> Option<u32> {
    #[repr(C)]
    struct Update {
        offset: u32,
        reserved: u32,
        data: u64,
    }
    let mut update = Update { offset: u32::MAX, reserved: 0, data: ring.as_raw_fd() as u64 };
    // SAFETY: one update, which the kernel reads and writes during the call.
    let registered = unsafe {
        libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), IORING_REGISTER_RING_FDS, &mut update, 1)
    };
    (registered == 1).then_some(update.offset)
}

/// The fastest set-up that this kernel takes: no index array is 6.6, one issuer with deferred task work 6.1,
/// the rest older.
fn build(depth: u32) -> io::Result<IoUring> {
    let queue = depth.clamp(1, QUEUE_MAX);
    let unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    let plain = || {
        let mut builder = IoUring::builder();
        // Completions beyond the largest queue wait in the kernel.
        builder.setup_cqsize(depth.max(2 * queue)).setup_clamp();
        builder
    };
    let single = || {
        let mut builder = plain();
        builder.setup_single_issuer().setup_defer_taskrun();
        builder
    };
    match single().setup_no_sqarray().build(queue) {
        Err(error) if unknown(&error) => {}
        other => return other,
    }
    match single().build(queue) {
        Err(error) if unknown(&error) => plain().build(queue),
        other => other,
    }
}

impl Ring {
    /// A ring of up to `depth` I/Os on `files`, which must stay open as long as the ring.
    ///
    /// # Errors
    /// Where io_uring is not to be had (`ENOSYS`, `EPERM`: too old, switched off or filtered), or memory is
    /// not.
    pub fn new(files: &[&File], buffers: IoBuffers, depth: u32) -> io::Result<Ring> {
        let ring = build(depth)?;
        if !ring.params().is_feature_ext_arg() {
            // Before 5.11 a wait cannot end by time.
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let files: Vec<RawFd> = files.iter().map(|file| file.as_raw_fd()).collect();
        let registered_files = ring.submitter().register_files(&files).is_ok();
        // SAFETY: the buffers live in the value built below, which unregisters by closing the ring first
        // (fields drop in order).
        let registered_buffers = unsafe { ring.submitter().register_buffers(&[buffers.as_iovec()]) }.is_ok();
        let registered_ring = register_ring(&ring);
        let queue_entries = ring.params().sq_entries();
        Ok(Ring {
            ring,
            buffers,
            files,
            registered_ring,
            registered_files,
            registered_buffers,
            queue_entries,
            queued: 0,
            in_flight: 0,
        })
    }

    /// Where the buffers are, for a look at one while completions are reaped.
    #[inline]
    pub fn buffers_start(&self) -> BufferStart {
        BufferStart { start: self.buffers.pointer(0), stride: self.buffers.stride() }
    }

    /// I/Os handed to the kernel and not reaped.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// How many more I/Os the queue takes before the next [`Ring::submit`].
    #[inline]
    pub fn room(&self) -> usize {
        (self.queue_entries - self.queued) as usize
    }

    /// Opens the queue for some I/Os; the kernel sees them with the next [`Ring::submit`].
    #[inline]
    pub fn queue(&mut self) -> Queue<'_> {
        Queue {
            buffers: BufferStart { start: self.buffers.pointer(0), stride: self.buffers.stride() },
            files: (!self.registered_files).then_some(&self.files),
            registered_buffers: self.registered_buffers,
            queued: &mut self.queued,
            queue: self.ring.submission(),
        }
    }

    /// Reads from a file into a buffer if that takes no waiting: the page cache has all of it. One plain call takes
    /// less than one over the ring; without this, one cached I/O at a time took 1.2 x as long (2026-11).
    ///
    /// # Errors
    /// `EAGAIN` where it takes waiting, or less than all was there; `EOPNOTSUPP` where the file system cannot
    /// tell; what else the kernel says.
    ///
    /// # Safety
    /// The buffer must hold `bytes` bytes and belong to no I/O in flight.
    #[inline]
    pub unsafe fn read_at_once(
        &mut self,
        file: u16,
        buffer: u32,
        offset: u64,
        bytes: u32,
    ) -> Result<(), Errno> {
        let start = self.buffers.pointer(buffer as usize);
        // SAFETY: as the caller promises.
        let memory = unsafe { std::slice::from_raw_parts_mut(start, bytes as usize) };
        // SAFETY: the files stay open as long as the ring.
        let file = unsafe { BorrowedFd::borrow_raw(self.files[usize::from(file)]) };
        match preadv2(file, &mut [IoSliceMut::new(memory)], offset, ReadWriteFlags::NOWAIT) {
            Ok(read) if read == bytes as usize => Ok(()),
            Ok(_) => Err(Errno::AGAIN),
            Err(errno) => Err(errno),
        }
    }

    /// Hands the queued I/Os over, and waits as asked.
    ///
    /// # Errors
    /// What the kernel says, other than interruption.
    #[inline]
    pub fn submit(&mut self, wait: Wait) -> io::Result<()> {
        let queued = self.queued;
        let time = match wait {
            Wait::No => None,
            Wait::Completion => Some(WAIT_MAX),
            Wait::AtMost(time) => Some(time.min(WAIT_MAX)),
        };
        let result = match time {
            Some(time) => self.enter(queued, 1, Enter::GETEVENTS, Some(time)),
            // Deferred completions are posted only when events are asked for.
            None if self.in_flight > 0 => self.enter(queued, 0, Enter::GETEVENTS, None),
            None if queued > 0 => self.enter(queued, 0, Enter::empty(), None),
            None => Ok(0),
        };
        match result {
            Ok(taken) => {
                self.queued -= taken;
                self.in_flight += taken;
                Ok(())
            }
            Err(errno) if PASSING.contains(&errno) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// How many of the queued the kernel took.
    #[inline]
    fn enter(&self, queued: u32, least: u32, flags: Enter, time: Option<Duration>) -> Result<u32, Errno> {
        let (descriptor, known) = match self.registered_ring {
            Some(at) => (at as RawFd, Enter::REGISTERED_RING),
            None => (self.ring.as_raw_fd(), Enter::empty()),
        };
        // SAFETY: the ring's own descriptor, or its number, which is used for nothing but this call.
        let ring = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let Some(time) = time else {
            // SAFETY: `queued` entries were pushed.
            return unsafe { io_uring_enter(ring, queued, least, flags | known) };
        };
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let until = io_uring_ptr::new(std::ptr::from_ref(&time).cast_mut().cast());
        let argument = io_uring_getevents_arg { ts: until, ..io_uring_getevents_arg::default() };
        // SAFETY: as above; the time outlives the call.
        unsafe { io_uring_enter_arg(ring, queued, least, flags | known | Enter::EXT_ARG, Some(&argument)) }
    }

    /// Takes all completions there are, after the one that came without the ring: each I/O's tag and its result,
    /// bytes or a negative errno. How many.
    #[inline]
    pub fn reap(&mut self, at_once: Option<(u32, i32)>, mut each: impl FnMut(u32, i32)) -> u32 {
        let (mut first, mut count) = (at_once, 0);
        let mut completions = self.ring.completion();
        // One place calls `each`, so that its code is put here and not behind a call.
        loop {
            let (tag, result) = match first.take() {
                Some(read) => read,
                None => match completions.next() {
                    Some(completion) => {
                        count += 1;
                        (completion.user_data() as u32, completion.result())
                    }
                    None => break,
                },
            };
            each(tag, result);
        }
        drop(completions);
        self.in_flight -= count;
        count + u32::from(at_once.is_some())
    }
}

impl Queue<'_> {
    /// Start of a buffer, for whoever fills it before a write.
    #[inline]
    pub fn buffer(&self, at: u32) -> *mut u8 {
        self.buffers.of(at)
    }

    /// Queues an I/O.
    ///
    /// # Safety
    /// [`Memory::Foreign`] must be readable for `bytes` bytes until the I/O is reaped or the ring dropped;
    /// a buffer must hold `bytes` bytes and belong to no other I/O meanwhile.
    ///
    /// # Panics
    /// If there is no [`Ring::room`].
    #[inline(always)]
    pub unsafe fn push(&mut self, io: Io) {
        let entry = self.entry(io);
        // SAFETY: as the caller promises; `drop` waits for what is in flight.
        unsafe { self.queue.push(&entry) }.expect("the caller looks for room first");
        *self.queued += 1;
    }

    #[inline(always)]
    fn entry(&self, io: Io) -> squeue::Entry {
        let (pointer, own) = match io.memory {
            Memory::Buffer(at) => (self.buffers.of(at).cast_const(), true),
            Memory::Foreign(pointer) => (pointer, false),
            Memory::Within(at, from) => (self.buffers.of(at).wrapping_add(from as usize).cast_const(), true),
        };
        let fixed = own && self.registered_buffers;
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
        let (descriptor, known) = match self.files {
            None => (u32::from(io.file), squeue::Flags::FIXED_FILE.bits()),
            Some(files) => (files[usize::from(io.file)] as u32, 0),
        };
        let entry = Entry {
            code,
            flags: known,
            priority: 0,
            descriptor,
            offset,
            address,
            bytes,
            how,
            tag: u64::from(io.tag),
            rest: [0; 3],
        };
        // SAFETY: as the kernel has it, 64 bytes, any of which are valid.
        unsafe { std::mem::transmute::<Entry, squeue::Entry>(entry) }
    }
}

impl Drop for Ring {
    /// The kernel may still write into the buffers: waits for all that is in flight.
    fn drop(&mut self) {
        while self.in_flight > 0 {
            if self.submit(Wait::Completion).is_err() {
                // What the kernel may still write into must stay.
                self.buffers.leak();
                break;
            }
            self.reap(None, |_, _| {});
        }
        // A ring that is closed lets go of them later, out of sight: an exclusively opened device would still
        // be in use, and a file system could not be unmounted, for some time after this program ended.
        if self.registered_files {
            let _ = self.ring.submitter().unregister_files();
        }
    }
}
