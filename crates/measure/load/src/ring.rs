//! An io_uring for one thread and the files it works on.
//!
//! ```text
//! Ring::new(files, buffers, depth)  setup::create, then registers ring, files and buffers, as far as the kernel and
//!                                   the limits permit
//! queue().push(io) ... push(io)     into the submission queue, no system call
//! submit(wait)                      one system call: submits the batch, waits for completions if requested
//! reap(|tag, result|)               all completions available, no system call
//! ```

mod queue;
mod setup;

pub use queue::{BufferStart, Io, Memory, Op, Queue};

use crate::io_buffers::IoBuffers;
use io_uring::IoUring;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use rustix::io_uring::{
    IoringEnterFlags as Enter, Timespec, io_uring_enter, io_uring_enter_arg, io_uring_getevents_arg,
    io_uring_ptr,
};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// A thread's ring over its files, which it borrows.
pub struct Ring<'f> {
    // Dropped before `buffers`: closing the ring ends their registration.
    ring: IoUring,
    buffers: IoBuffers,
    files: Vec<BorrowedFd<'f>>,
    /// The ring's registered number.
    registered_ring: Option<u32>,
    registered_files: bool,
    registered_buffers: bool,
    queue_entries: u32,
    queued: u32,
    in_flight: u32,
}

/// How [`Ring::submit`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// For one completion, or for 100 ms.
    Completion,
    /// For one completion, or for that time (100 ms at most).
    AtMost(Duration),
}

/// Longest wait in one call, so that a thread can end while a device stalls.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Errors of the call that a later call does not meet again: timeout, signal, lack of memory, completions to reap.
const TRANSIENT: [Errno; 4] = [Errno::TIME, Errno::INTR, Errno::AGAIN, Errno::BUSY];

/// Whether this user may create a ring here; where not, threads that block do the I/O.
///
/// # Errors
/// As [`Ring::new`].
pub fn check_ring() -> io::Result<()> {
    setup::create(1).map(drop)
}

impl<'f> Ring<'f> {
    /// A ring of up to `depth` I/Os on `files`.
    ///
    /// # Errors
    /// Where io_uring (`ENOSYS`, `EPERM`: too old, disabled or filtered) or memory is unavailable.
    pub fn new(files: &[&'f File], buffers: IoBuffers, depth: u32) -> io::Result<Ring<'f>> {
        let ring = setup::create(depth)?;
        let descriptors: Vec<RawFd> = files.iter().map(|file| file.as_raw_fd()).collect();
        let registered_files = ring.submitter().register_files(&descriptors).is_ok();
        // SAFETY: the buffers are owned by the value built below and stay mapped until it has closed the ring: its fields
        // are dropped in the order of their declaration.
        let registered_buffers = unsafe { ring.submitter().register_buffers(&[buffers.as_iovec()]) }.is_ok();
        let registered_ring = setup::register_ring(&ring);
        let queue_entries = ring.params().sq_entries();
        Ok(Ring {
            ring,
            buffers,
            files: files.iter().copied().map(AsFd::as_fd).collect(),
            registered_ring,
            registered_files,
            registered_buffers,
            queue_entries,
            queued: 0,
            in_flight: 0,
        })
    }

    /// Where the buffers are, for access to one while completions are reaped.
    #[inline]
    pub fn buffers_start(&self) -> BufferStart {
        BufferStart { start: self.buffers.start(), stride: self.buffers.stride() }
    }

    /// Number of further I/Os that fit into the queue before the next [`Ring::submit`].
    #[inline]
    pub fn free_entries(&self) -> usize {
        (self.queue_entries - self.queued) as usize
    }

    /// Opens the queue for some I/Os; the kernel receives them with the next [`Ring::submit`].
    #[inline]
    pub fn queue(&mut self) -> Queue<'_> {
        Queue {
            buffers: self.buffers_start(),
            files: (!self.registered_files).then_some(&self.files),
            registered_buffers: self.registered_buffers,
            queued: &mut self.queued,
            queue: self.ring.submission(),
        }
    }

    /// Reads from a file into a buffer if the page cache holds all of it (`RWF_NOWAIT`). One such call takes less time
    /// than one I/O through the ring; without it, one cached I/O at a time took 1.2 x as long (2026-11).
    ///
    /// # Errors
    /// `EAGAIN` where the read would wait, or returned less than `bytes`; `EOPNOTSUPP` where the file system does not
    /// support it; other errors of the kernel.
    ///
    /// # Safety
    /// The buffer must be one of the ring's, hold `bytes` bytes, and belong to no I/O in flight.
    #[inline]
    pub unsafe fn read_nowait(
        &mut self,
        file: u16,
        buffer: u32,
        offset: u64,
        bytes: u32,
    ) -> Result<(), Errno> {
        let start = self.buffers_start().pointer(buffer);
        // SAFETY: the caller guarantees that the buffer exists, is long enough, and that nothing else accesses it.
        let memory = unsafe { std::slice::from_raw_parts_mut(start, bytes as usize) };
        match preadv2(
            self.files[usize::from(file)],
            &mut [IoSliceMut::new(memory)],
            offset,
            ReadWriteFlags::NOWAIT,
        ) {
            Ok(read) if read == bytes as usize => Ok(()),
            Ok(_) => Err(Errno::AGAIN),
            Err(errno) => Err(errno),
        }
    }

    /// Submits the queued I/Os, and waits.
    ///
    /// # Errors
    /// Those of the kernel that are not transient.
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
            // Deferred completions are posted only by a call with GETEVENTS.
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
            Err(errno) if TRANSIENT.contains(&errno) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Calls `io_uring_enter` for `queued` entries and at least `least` completions; how many entries the kernel took.
    #[inline]
    fn enter(&self, queued: u32, least: u32, flags: Enter, time: Option<Duration>) -> Result<u32, Errno> {
        let (descriptor, ring_flag) = match self.registered_ring {
            Some(at) => (at as RawFd, Enter::REGISTERED_RING),
            None => (self.ring.as_raw_fd(), Enter::empty()),
        };
        // SAFETY: the descriptor of a ring that is open, or its registered number, which is passed to this call only.
        let ring = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let Some(time) = time else {
            // SAFETY: `queued` entries were pushed.
            return unsafe { io_uring_enter(ring, queued, least, flags | ring_flag) };
        };
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let until = io_uring_ptr::new(std::ptr::from_ref(&time).cast_mut().cast());
        let argument = io_uring_getevents_arg { ts: until, ..io_uring_getevents_arg::default() };
        // SAFETY: as above; the time outlives the call.
        unsafe {
            io_uring_enter_arg(ring, queued, least, flags | ring_flag | Enter::EXT_ARG, Some(&argument))
        }
    }

    /// Passes all available completions to `each`, after the one of [`Ring::read_nowait`] if there is one: the I/O's tag
    /// and its result, bytes or a negative errno. Returns their number.
    #[inline]
    pub fn reap(&mut self, read_nowait: Option<(u32, i32)>, mut each: impl FnMut(u32, i32)) -> u32 {
        let (mut first, mut count) = (read_nowait, 0);
        let mut completions = self.ring.completion();
        // One call site, so that the closure is inlined.
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
        count + u32::from(read_nowait.is_some())
    }
}

impl Drop for Ring<'_> {
    /// Waits for the I/Os in flight: the kernel may still write into the buffers.
    fn drop(&mut self) {
        while self.in_flight > 0 {
            if self.submit(Wait::Completion).is_err() {
                // The kernel may still write into the buffers: they must stay mapped.
                self.buffers.leak();
                break;
            }
            self.reap(None, |_, _| {});
        }
        // Closing a ring releases its files asynchronously: an exclusively opened device would be in use, and a file
        // system could not be unmounted, for some time after this program has ended.
        if self.registered_files {
            let _ = self.ring.submitter().unregister_files();
        }
    }
}
