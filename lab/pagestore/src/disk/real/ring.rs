//! Concurrent writes by io_uring: 128 in flight need one thread instead of one each.

use crate::disk::aligned::ALIGNMENT;
use io_uring::{IoUring, Probe, opcode, types};
use pagestore_counters::monotonic_ns;
use pagestore_disk::{IoEvent, PageWrite};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The most writes in flight of one thread.
const DEPTH: u32 = 256;
/// The pause before submission is retried after an error.
const RETRY_AFTER: Duration = Duration::from_millis(1);

/// Rings that are not in use, kept for the next writer.
#[derive(Default)]
pub(super) struct Rings {
    free: Mutex<Vec<IoUring>>,
}

impl Rings {
    /// As `Disk::write_many`, for bytes that are aligned for direct I/O. `None` if io_uring is unavailable (an old
    /// kernel, disabled or filtered); then nothing was written.
    pub(super) fn write(
        &self,
        file: &File,
        writes: &[PageWrite<'_>],
        at_once: usize,
        on_event: &(dyn Fn(IoEvent) + Sync),
    ) -> Option<io::Result<()>> {
        let kept = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut ring = match kept {
            Some(ring) => ring,
            None => working_ring().ok()?,
        };
        let result = write_all(&mut ring, file, writes, at_once.min(DEPTH as usize), on_event);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(ring);
        Some(result)
    }
}

/// Whether the kernel supports the write opcode: rings exist since Linux 5.1, the opcode and this probe since 5.6.
fn knows_write(ring: &IoUring) -> io::Result<bool> {
    let mut known = Probe::new();
    ring.submitter().register_probe(&mut known)?;
    Ok(known.is_supported(opcode::Write::CODE))
}

/// A ring that can write and has completed an operation: some systems let a process create a ring but not use it.
fn working_ring() -> io::Result<IoUring> {
    let mut ring = IoUring::new(DEPTH)?;
    if !knows_write(&ring)? {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // SAFETY: the entry refers to no memory.
    let pushed = unsafe { ring.submission().push(&opcode::Nop::new().build()) };
    pushed.map_err(io::Error::other)?;
    ring.submit_and_wait(1)?;
    match ring.completion().next() {
        Some(done) if done.result() == 0 => {}
        _ => return Err(io::ErrorKind::Unsupported.into()),
    }
    Ok(ring)
}

/// Writes in flight, which refer to the caller's buffers. Dropping it waits for all of them, also after a panic in
/// the callback.
struct InFlight<'a> {
    ring: &'a mut IoUring,
    count: usize,
}

impl InFlight<'_> {
    /// Waits until at least one has completed.
    fn wait(&mut self) {
        if let Err(error) = self.ring.submit_and_wait(1)
            && error.kind() != io::ErrorKind::Interrupted
        {
            std::thread::sleep(RETRY_AFTER);
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        while self.count > 0 {
            self.wait();
            self.count -= self.ring.completion().count();
        }
    }
}

fn write_all(
    ring: &mut IoUring,
    file: &File,
    writes: &[PageWrite<'_>],
    at_once: usize,
    on_event: &(dyn Fn(IoEvent) + Sync),
) -> io::Result<()> {
    let fd = types::Fd(file.as_raw_fd());
    let mut begun_ns = vec![0; writes.len()];
    let mut next = 0;
    let mut failure = None;
    let mut in_flight = InFlight { ring, count: 0 };
    loop {
        if next < writes.len() && failure.is_none() {
            let now = monotonic_ns();
            while next < writes.len() && in_flight.count < at_once {
                let PageWrite { offset, bytes } = writes[next];
                let entry = opcode::Write::new(fd, bytes.as_ptr(), bytes.len() as u32)
                    .offset(offset)
                    .build()
                    .user_data(next as u64);
                // SAFETY: `bytes` outlives the write, since this function returns only when the kernel has
                // completed it.
                if unsafe { in_flight.ring.submission().push(&entry) }.is_err() {
                    break;
                }
                in_flight.count += 1;
                begun_ns[next] = now;
                next += 1;
                on_event(IoEvent::Begun);
            }
        }
        if in_flight.count == 0 {
            return failure.map_or(Ok(()), Err);
        }
        in_flight.wait();
        let now = monotonic_ns();
        while let Some(completion) = in_flight.ring.completion().next() {
            in_flight.count -= 1;
            let at = completion.user_data() as usize;
            let write = &writes[at];
            let result = finish(file, write, completion.result());
            let (bytes, ns) = (write.bytes.len(), now - begun_ns[at]);
            on_event(IoEvent::Ended { bytes, ns, done: result.is_ok() });
            if let Err(error) = result {
                failure.get_or_insert(error);
            }
        }
    }
}

/// Completes a write that the kernel did only in part or did not attempt.
fn finish(file: &File, write: &PageWrite<'_>, result: i32) -> io::Result<()> {
    let done = match result {
        0.. => result as usize,
        error if -error == libc::EINTR || -error == libc::EAGAIN => 0,
        error => return Err(io::Error::from_raw_os_error(-error)),
    };
    if done == write.bytes.len() {
        return Ok(());
    }
    // Direct I/O must begin at an aligned offset.
    let done = done / ALIGNMENT * ALIGNMENT;
    file.write_all_at(&write.bytes[done..], write.offset + done as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::aligned::AlignedBuffer;
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

    const PAGE: usize = 4096;

    /// Pages that contain their numbers, and their places in the file, which are in another order.
    fn pages(count: usize) -> (AlignedBuffer, Vec<u64>) {
        let mut buffer = AlignedBuffer::new(count * PAGE);
        (0..count).for_each(|page| buffer.extend(&[page as u8; PAGE]));
        (buffer, (0..count as u64).map(|page| page * 7 % count as u64).collect())
    }

    fn writes<'a>(buffer: &'a AlignedBuffer, places: &[u64]) -> Vec<PageWrite<'a>> {
        let parts = buffer.bytes().chunks(PAGE);
        places
            .iter()
            .zip(parts)
            .map(|(place, bytes)| PageWrite { offset: place * PAGE as u64, bytes })
            .collect()
    }

    #[test]
    fn all_are_written_at_the_requested_depth_and_each_is_reported() {
        let file = tempfile::tempfile().unwrap();
        let (buffer, places) = pages(1000);
        let (in_flight, most, ended) = (AtomicI64::new(0), AtomicI64::new(0), AtomicU64::new(0));
        let on_event = |event| match event {
            IoEvent::Begun => {
                most.fetch_max(in_flight.fetch_add(1, Relaxed) + 1, Relaxed);
            }
            IoEvent::Ended { bytes, done, .. } => {
                assert!(done && bytes == PAGE);
                in_flight.fetch_sub(1, Relaxed);
                ended.fetch_add(1, Relaxed);
            }
        };
        let rings = Rings::default();
        match rings.write(&file, &writes(&buffer, &places), 32, &on_event) {
            None => return eprintln!("skipped: io_uring is unavailable"),
            Some(result) => result.unwrap(),
        }
        assert_eq!((in_flight.into_inner(), most.into_inner(), ended.into_inner()), (0, 32, 1000));
        let mut found = vec![0; PAGE];
        for (page, place) in places.iter().enumerate() {
            file.read_exact_at(&mut found, place * PAGE as u64).unwrap();
            assert!(found.iter().all(|byte| *byte == page as u8), "page {page}");
        }
        assert_eq!(rings.free.lock().unwrap().len(), 1, "the ring is kept");
    }

    #[test]
    fn a_panic_in_the_callback_leaves_nothing_in_flight() {
        let file = tempfile::tempfile().unwrap();
        let (buffer, places) = pages(100);
        let writes = writes(&buffer, &places);
        let Ok(mut ring) = working_ring() else {
            return eprintln!("skipped: io_uring is unavailable");
        };
        for panics_at in [5, 40] {
            let calls = AtomicU64::new(0);
            let on_event =
                |_: IoEvent| assert!(calls.fetch_add(1, Relaxed) < panics_at, "it has heard enough");
            let write = || write_all(&mut ring, &file, &writes, 32, &on_event);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(write)).expect_err("it panics");
            assert_eq!(ring.submission().len(), 0, "all were submitted");
            assert_eq!(ring.completion().count(), 0, "and came back");
        }
        // The ring works as before, and its counts start again.
        write_all(&mut ring, &file, &writes, 32, &|_| {}).unwrap();
    }

    /// From now on the kernel rejects probes of rings on this thread, as before Linux 5.6.
    fn refuse_probes() {
        let code = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
        let is_other = libc::sock_filter {
            jf: 1,
            ..code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_io_uring_register as u32)
        };
        let refuses = code(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32);
        let allows = code(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);
        let mut filter = [code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0), is_other, refuses, allows];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: the filter outlives the call, which copies it.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                + libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        assert_eq!(done, 0);
    }

    #[test]
    fn a_kernel_whose_rings_cannot_write_counts_as_one_without_rings() {
        if working_ring().is_err() {
            return eprintln!("skipped: io_uring is unavailable");
        }
        let file = tempfile::tempfile().unwrap();
        let written = std::thread::spawn(move || {
            refuse_probes();
            assert!(IoUring::new(DEPTH).is_ok(), "a ring can be created");
            let (buffer, places) = pages(4);
            Rings::default().write(&file, &writes(&buffer, &places), 4, &|_| {}).is_some()
        });
        assert!(!written.join().unwrap());
    }

    #[test]
    fn the_first_error_is_returned_and_nothing_is_in_flight_then() {
        let file = File::open("/dev/null").unwrap();
        let (buffer, places) = pages(100);
        let in_flight = AtomicI64::new(0);
        let on_event = |event| {
            in_flight.fetch_add(if event == IoEvent::Begun { 1 } else { -1 }, Relaxed);
        };
        let Some(result) = Rings::default().write(&file, &writes(&buffer, &places), 8, &on_event) else {
            return eprintln!("skipped: io_uring is unavailable");
        };
        assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EBADF), "it was opened for reading");
        assert_eq!(in_flight.load(Relaxed), 0);
        // Threads fail as the ring does.
        let by_threads = super::super::on_threads(&writes(&buffer, &places), 8, |write| {
            write.run_with(|offset, bytes| file.write_all_at(bytes, offset), &on_event)
        });
        assert_eq!(by_threads.unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
