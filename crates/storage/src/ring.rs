//! An io_uring for one thread and one file.
//!
//! ```text
//! Ring::new(file, buffers, depth)   single issuer, deferred task work, registered file and buffers,
//!                                   each left out where this kernel or a limit refuses it
//! push(io) ... push(io)             into the submission queue, no system call
//! submit(wait)                      one system call: hands over the batch, waits for completions if asked
//! reap(|tag, result|)               all completions there are, no system call
//! ```

use crate::IoBuffers;
use io_uring::types::{Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// A thread's ring over one file.
pub struct Ring {
    ring: IoUring,
    buffers: IoBuffers,
    block_bytes: u32,
    file: RawFd,
    registered_file: bool,
    registered_buffers: bool,
    in_flight: u32,
}

/// One I/O of a whole block.
#[derive(Clone, Copy, Debug)]
pub struct Io {
    /// Write, or read.
    pub write: bool,
    /// Durable before it completes (`RWF_DSYNC`).
    pub write_through: bool,
    /// Where in the file, bytes.
    pub offset: u64,
    /// Which buffer; it is the I/O's tag as well.
    pub buffer: u32,
}

/// Wakes a waiting thread this often, so that a stalled device cannot keep it from ending.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Errors of the call that end by themselves: time is up, a signal, no memory just now, completions to reap.
const PASSING: [i32; 4] = [libc::ETIME, libc::EINTR, libc::EAGAIN, libc::EBUSY];

const IORING_ENTER_GETEVENTS: u32 = 1;

/// The fastest set-up that this kernel takes: one issuer with deferred task work is 6.1, the rest older.
fn build(depth: u32) -> io::Result<IoUring> {
    let fast = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(depth);
    match fast {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(depth),
        other => other,
    }
}

impl Ring {
    /// A ring of up to `depth` I/Os of `block_bytes` on `file`, which must stay open as long as the ring.
    ///
    /// # Errors
    /// Where io_uring is not to be had (`ENOSYS`, `EPERM`: too old, switched off or filtered), or memory is
    /// not.
    pub fn new(file: &File, buffers: IoBuffers, block_bytes: u32, depth: u32) -> io::Result<Ring> {
        let ring = build(depth)?;
        if !ring.params().is_feature_ext_arg() {
            // Before 5.11 a wait cannot end by time.
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let registered_file = ring.submitter().register_files(&[file.as_raw_fd()]).is_ok();
        // SAFETY: the buffers live in the value built below, which unregisters by closing the ring first
        // (fields drop in order).
        let registered_buffers = unsafe { ring.submitter().register_buffers(&[buffers.as_iovec()]) }.is_ok();
        Ok(Ring {
            ring,
            buffers,
            block_bytes,
            file: file.as_raw_fd(),
            registered_file,
            registered_buffers,
            in_flight: 0,
        })
    }

    /// Start of a buffer, for whoever fills it before a write.
    pub fn buffer(&self, at: u32) -> *mut u8 {
        self.buffers.pointer(at as usize)
    }

    /// I/Os handed to the kernel and not reaped.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Queues an I/O; the kernel sees it with the next [`Ring::submit`].
    ///
    /// # Panics
    /// If more than `depth` I/Os are queued: the caller has that many buffers.
    #[inline]
    pub fn push(&mut self, io: Io) {
        let entry = self.entry(io).user_data(u64::from(io.buffer));
        // SAFETY: the buffer lives as long as the ring, and `drop` waits for what is in flight.
        unsafe { self.ring.submission().push(&entry) }.expect("the queue is as deep as there are buffers");
    }

    #[inline]
    fn entry(&self, io: Io) -> squeue::Entry {
        let pointer = self.buffers.pointer(io.buffer as usize);
        let (bytes, offset) = (self.block_bytes, io.offset);
        let flags = if io.write_through { libc::RWF_DSYNC } else { 0 };
        macro_rules! on {
            ($file:expr) => {
                match (io.write, self.registered_buffers) {
                    (false, true) => opcode::ReadFixed::new($file, pointer, bytes, 0).offset(offset).build(),
                    (false, false) => opcode::Read::new($file, pointer, bytes).offset(offset).build(),
                    (true, true) => opcode::WriteFixed::new($file, pointer, bytes, 0)
                        .offset(offset)
                        .rw_flags(flags)
                        .build(),
                    (true, false) => {
                        opcode::Write::new($file, pointer, bytes).offset(offset).rw_flags(flags).build()
                    }
                }
            };
        }
        if self.registered_file { on!(Fixed(0)) } else { on!(Fd(self.file)) }
    }

    /// Hands the queued I/Os over; with `wait`, returns once one has completed or after 100 ms.
    ///
    /// # Errors
    /// What the kernel says, other than interruption.
    #[inline]
    pub fn submit(&mut self, wait: bool) -> io::Result<()> {
        let queued = self.ring.submission().len() as u32;
        let result = if wait {
            let timeout = Timespec::from(WAIT_MAX);
            self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout))
        } else if self.in_flight > 0 {
            // Deferred completions are posted only when events are asked for.
            // SAFETY: `queued` entries were pushed; there is no argument.
            unsafe { self.ring.submitter().enter::<libc::sigset_t>(queued, 0, IORING_ENTER_GETEVENTS, None) }
        } else {
            self.ring.submit()
        };
        self.in_flight += queued - self.ring.submission().len() as u32;
        match result {
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error().is_some_and(|errno| PASSING.contains(&errno)) => Ok(()),
            Err(error) => Err(error),
        }
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
            if self.submit(true).is_err() {
                // What the kernel may still write into must stay.
                self.buffers.leak();
                break;
            }
            self.reap(|_, _| {});
        }
    }
}
