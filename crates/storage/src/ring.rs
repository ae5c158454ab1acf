//! An io_uring for one thread and the files it works on.
//!
//! ```text
//! Ring::new(files, buffers, depth)  single issuer, deferred task work, registered ring, files and buffers,
//!                                   each left out where this kernel or a limit refuses it
//! push(io) ... push(io)             into the submission queue, no system call
//! submit(wait)                      one system call: hands over the batch, waits for completions if asked
//! reap(|tag, result|)               all completions there are, no system call
//! ```

use crate::IoBuffers;
use io_uring::types::{Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// A thread's ring over its files.
pub struct Ring {
    ring: IoUring,
    buffers: IoBuffers,
    files: Vec<RawFd>,
    registered_ring: Option<u32>,
    registered_files: bool,
    registered_buffers: bool,
    in_flight: u32,
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

/// Memory of an I/O.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// One of the ring's own buffers.
    Buffer(u32),
    /// Elsewhere, for writes only.
    Foreign(*const u8),
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

/// Errors of the call that end by themselves: time is up, a signal, no memory just now, completions to reap.
const PASSING: [i32; 4] = [libc::ETIME, libc::EINTR, libc::EAGAIN, libc::EBUSY];

// include/uapi/linux/io_uring.h
const IORING_ENTER_GETEVENTS: u32 = 1;
const IORING_ENTER_EXT_ARG: u32 = 1 << 3;
const IORING_ENTER_REGISTERED_RING: u32 = 1 << 4;
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
    let unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    let single = || {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun();
        builder
    };
    match single().setup_no_sqarray().build(depth) {
        Err(error) if unknown(&error) => {}
        other => return other,
    }
    match single().build(depth) {
        Err(error) if unknown(&error) => IoUring::new(depth),
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
        Ok(Ring { ring, buffers, files, registered_ring, registered_files, registered_buffers, in_flight: 0 })
    }

    /// Start of a buffer, for whoever fills it before a write.
    pub fn buffer(&self, at: u32) -> *mut u8 {
        self.buffers.pointer(at as usize)
    }

    /// Where the buffers are, for a look at one while completions are reaped.
    pub fn buffers_start(&self) -> BufferStart {
        BufferStart { start: self.buffers.pointer(0), stride: self.buffers.stride() }
    }

    /// I/Os handed to the kernel and not reaped.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Queues an I/O; the kernel sees it with the next [`Ring::submit`].
    ///
    /// # Safety
    /// [`Memory::Foreign`] must be readable for `bytes` bytes until the I/O is reaped or the ring dropped;
    /// a buffer must hold `bytes` bytes and belong to no other I/O meanwhile.
    ///
    /// # Panics
    /// If more than `depth` I/Os are queued: the caller counts them.
    #[inline]
    pub unsafe fn push(&mut self, io: Io) {
        let entry = self.entry(io).user_data(u64::from(io.tag));
        // SAFETY: as the caller promises; `drop` waits for what is in flight.
        unsafe { self.ring.submission().push(&entry) }.expect("the queue is as deep as the caller's slots");
    }

    #[inline]
    fn entry(&self, io: Io) -> squeue::Entry {
        let (bytes, offset) = (io.bytes, io.offset);
        let flags = if io.op == Op::WriteThrough { libc::RWF_DSYNC } else { 0 };
        let (pointer, own) = match io.memory {
            Memory::Buffer(at) => (self.buffers.pointer(at as usize), true),
            Memory::Foreign(pointer) => (pointer.cast_mut(), false),
        };
        let fixed = own && self.registered_buffers;
        macro_rules! on {
            ($file:expr) => {
                match io.op {
                    Op::Read if fixed => {
                        opcode::ReadFixed::new($file, pointer, bytes, 0).offset(offset).build()
                    }
                    Op::Read => opcode::Read::new($file, pointer, bytes).offset(offset).build(),
                    Op::Write | Op::WriteThrough if fixed => {
                        opcode::WriteFixed::new($file, pointer, bytes, 0)
                            .offset(offset)
                            .rw_flags(flags)
                            .build()
                    }
                    Op::Write | Op::WriteThrough => {
                        opcode::Write::new($file, pointer, bytes).offset(offset).rw_flags(flags).build()
                    }
                    Op::Fsync => opcode::Fsync::new($file).build(),
                    Op::Fdatasync => opcode::Fsync::new($file).flags(FsyncFlags::DATASYNC).build(),
                }
            };
        }
        if self.registered_files {
            on!(Fixed(u32::from(io.file)))
        } else {
            on!(Fd(self.files[usize::from(io.file)]))
        }
    }

    /// Hands the queued I/Os over, and waits as asked.
    ///
    /// # Errors
    /// What the kernel says, other than interruption.
    #[inline]
    pub fn submit(&mut self, wait: Wait) -> io::Result<()> {
        let queued = self.ring.submission().len() as u32;
        let time = match wait {
            Wait::No => None,
            Wait::Completion => Some(WAIT_MAX),
            Wait::AtMost(time) => Some(time.min(WAIT_MAX)),
        };
        let result = match time {
            Some(time) => {
                let time = Timespec::from(time);
                self.enter(
                    queued,
                    1,
                    IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                    Some(&SubmitArgs::new().timespec(&time)),
                )
            }
            // Deferred completions are posted only when events are asked for.
            None if self.in_flight > 0 => self.enter(queued, 0, IORING_ENTER_GETEVENTS, None),
            None if queued > 0 => self.enter(queued, 0, 0, None),
            None => Ok(()),
        };
        self.in_flight += queued - self.ring.submission().len() as u32;
        match result {
            Err(error) if !error.raw_os_error().is_some_and(|errno| PASSING.contains(&errno)) => Err(error),
            _ => Ok(()),
        }
    }

    #[inline]
    fn enter(
        &self,
        queued: u32,
        least: u32,
        flags: u32,
        argument: Option<&SubmitArgs<'_, '_>>,
    ) -> io::Result<()> {
        let (descriptor, registered) = match self.registered_ring {
            Some(at) => (at as i32, IORING_ENTER_REGISTERED_RING),
            None => (self.ring.as_raw_fd(), 0),
        };
        let (pointer, bytes) = match argument {
            Some(argument) => (std::ptr::from_ref(argument), size_of::<SubmitArgs<'_, '_>>()),
            None => (std::ptr::null(), 0),
        };
        // SAFETY: `queued` entries were pushed; the argument, if any, outlives the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                descriptor,
                queued,
                least,
                flags | registered,
                pointer,
                bytes,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Takes all completions there are: the I/O's buffer and its result, bytes or a negative errno.
    #[inline]
    pub fn reap(&mut self, mut each: impl FnMut(u32, i32)) -> u32 {
        let mut count = 0;
        for completion in self.ring.completion() {
            count += 1;
            each(completion.user_data() as u32, completion.result());
        }
        self.in_flight -= count;
        count
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
            self.reap(|_, _| {});
        }
        // A ring that is closed lets go of them later, out of sight: an exclusively opened device would still
        // be in use, and a file system could not be unmounted, for some time after this program ended.
        if self.registered_files {
            let _ = self.ring.submitter().unregister_files();
        }
    }
}
