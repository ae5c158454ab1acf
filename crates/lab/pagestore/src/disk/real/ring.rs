//! Many writes of one thread at once, by io_uring: 128 in flight cost one thread, where each would need one of its own.

use crate::aligned::ALIGNMENT;
use crate::disk::{PageWrite, Told};
use io_uring::{IoUring, Probe, opcode, types};
use pagestore_counters::monotonic_ns;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// In flight of one thread at most.
const DEPTH: u32 = 256;
/// The kernel could not be asked: it is asked again after this.
const PATIENCE: Duration = Duration::from_millis(1);

/// Rings that are not in use, for whoever writes next.
#[derive(Default)]
pub(super) struct Rings {
    free: Mutex<Vec<IoUring>>,
}

impl Rings {
    /// As `Disk::write_many`; the bytes lie where direct I/O takes them. `None` where io_uring is not to be had (too
    /// old, switched off or filtered), and nothing was written.
    pub(super) fn write(
        &self,
        file: &File,
        writes: &[PageWrite<'_>],
        at_once: usize,
        tell: &(dyn Fn(Told) + Sync),
    ) -> Option<io::Result<()>> {
        let kept = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut ring = match kept {
            Some(ring) => ring,
            None => working_ring().ok()?,
        };
        let result = write_all(&mut ring, file, writes, at_once.min(DEPTH as usize), tell);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(ring);
        Some(result)
    }
}

/// Whether the kernel knows the write that is used here: rings are of Linux 5.1, it and this question of 5.6.
fn knows_write(ring: &IoUring) -> io::Result<bool> {
    let mut known = Probe::new();
    ring.submitter().register_probe(&mut known)?;
    Ok(known.is_supported(opcode::Write::CODE))
}

/// A ring that can write and has done something: where it may be made, it need not be allowed to be used.
fn working_ring() -> io::Result<IoUring> {
    let mut ring = IoUring::new(DEPTH)?;
    if !knows_write(&ring)? {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // SAFETY: it refers to no memory.
    let pushed = unsafe { ring.submission().push(&opcode::Nop::new().build()) };
    pushed.map_err(io::Error::other)?;
    ring.submit_and_wait(1)?;
    match ring.completion().next() {
        Some(done) if done.result() == 0 => {}
        _ => return Err(io::ErrorKind::Unsupported.into()),
    }
    Ok(ring)
}

/// Writes on their way, which read from the buffers: whatever happens, a panic of who is told included, they are waited
/// for.
struct Flying<'a> {
    ring: &'a mut IoUring,
    count: usize,
}

impl Flying<'_> {
    /// Waits until one has come back at least.
    fn wait(&mut self) {
        if let Err(error) = self.ring.submit_and_wait(1)
            && error.kind() != io::ErrorKind::Interrupted
        {
            std::thread::sleep(PATIENCE);
        }
    }
}

impl Drop for Flying<'_> {
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
    tell: &(dyn Fn(Told) + Sync),
) -> io::Result<()> {
    let fd = types::Fd(file.as_raw_fd());
    let mut begun_ns = vec![0; writes.len()];
    let mut next = 0;
    let mut failure = None;
    let mut flying = Flying { ring, count: 0 };
    loop {
        if next < writes.len() && failure.is_none() {
            let now = monotonic_ns();
            while next < writes.len() && flying.count < at_once {
                let PageWrite { offset, bytes } = writes[next];
                let entry = opcode::Write::new(fd, bytes.as_ptr(), bytes.len() as u32)
                    .offset(offset)
                    .build()
                    .user_data(next as u64);
                // SAFETY: this function does not return before the kernel has told that it is done with `bytes`.
                if unsafe { flying.ring.submission().push(&entry) }.is_err() {
                    break;
                }
                flying.count += 1;
                begun_ns[next] = now;
                next += 1;
                tell(Told::Begun);
            }
        }
        if flying.count == 0 {
            return failure.map_or(Ok(()), Err);
        }
        flying.wait();
        let now = monotonic_ns();
        while let Some(completion) = flying.ring.completion().next() {
            flying.count -= 1;
            let at = completion.user_data() as usize;
            let write = &writes[at];
            let result = finish(file, write, completion.result());
            let (bytes, ns) = (write.bytes.len(), now - begun_ns[at]);
            tell(Told::Ended { bytes, ns, done: result.is_ok() });
            if let Err(error) = result {
                failure.get_or_insert(error);
            }
        }
    }
}

/// What the kernel wrote only a part of, or was kept from, is written here.
fn finish(file: &File, write: &PageWrite<'_>, result: i32) -> io::Result<()> {
    let done = match result {
        0.. => result as usize,
        error if -error == libc::EINTR || -error == libc::EAGAIN => 0,
        error => return Err(io::Error::from_raw_os_error(-error)),
    };
    if done == write.bytes.len() {
        return Ok(());
    }
    // Direct I/O begins at a multiple of what a device takes.
    let done = done / ALIGNMENT * ALIGNMENT;
    file.write_all_at(&write.bytes[done..], write.offset + done as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aligned::AlignedBuffer;
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

    const PAGE: usize = 4096;

    /// Pages with their numbers in them, to be written in another order than they lie in.
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
    fn all_are_written_as_many_at_once_as_asked_and_each_is_told_of() {
        let file = tempfile::tempfile().unwrap();
        let (buffer, places) = pages(1000);
        let (in_flight, most, ended) = (AtomicI64::new(0), AtomicI64::new(0), AtomicU64::new(0));
        let tell = |told| match told {
            Told::Begun => {
                most.fetch_max(in_flight.fetch_add(1, Relaxed) + 1, Relaxed);
            }
            Told::Ended { bytes, done, .. } => {
                assert!(done && bytes == PAGE);
                in_flight.fetch_sub(1, Relaxed);
                ended.fetch_add(1, Relaxed);
            }
        };
        let rings = Rings::default();
        match rings.write(&file, &writes(&buffer, &places), 32, &tell) {
            None => return eprintln!("skipped: io_uring is not to be had here"),
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
    fn a_panic_of_who_is_told_leaves_nothing_on_its_way() {
        let file = tempfile::tempfile().unwrap();
        let (buffer, places) = pages(100);
        let writes = writes(&buffer, &places);
        let Ok(mut ring) = working_ring() else {
            return eprintln!("skipped: io_uring is not to be had here");
        };
        for panics_at in [5, 40] {
            let told = AtomicU64::new(0);
            let tell = |_: Told| assert!(told.fetch_add(1, Relaxed) < panics_at, "it has heard enough");
            let write = || write_all(&mut ring, &file, &writes, 32, &tell);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(write)).expect_err("it panics");
            assert_eq!(ring.submission().len(), 0, "all were submitted");
            assert_eq!(ring.completion().count(), 0, "and came back");
        }
        // The ring is as it was: what is counted next is of its own.
        write_all(&mut ring, &file, &writes, 32, &|_| {}).unwrap();
    }

    /// From now on the kernel knows no question about rings in this thread, as before Linux 5.6.
    fn forget_the_question() {
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
    fn a_kernel_that_makes_rings_and_knows_no_write_is_one_without_them() {
        if working_ring().is_err() {
            return eprintln!("skipped: io_uring is not to be had here");
        }
        let file = tempfile::tempfile().unwrap();
        let written = std::thread::spawn(move || {
            forget_the_question();
            assert!(IoUring::new(DEPTH).is_ok(), "a ring is to be had");
            let (buffer, places) = pages(4);
            Rings::default().write(&file, &writes(&buffer, &places), 4, &|_| {}).is_some()
        });
        assert!(!written.join().unwrap());
    }

    #[test]
    fn the_first_error_is_told_and_nothing_is_on_its_way_then() {
        let file = File::open("/dev/null").unwrap();
        let (buffer, places) = pages(100);
        let in_flight = AtomicI64::new(0);
        let tell = |told| {
            in_flight.fetch_add(if told == Told::Begun { 1 } else { -1 }, Relaxed);
        };
        let Some(result) = Rings::default().write(&file, &writes(&buffer, &places), 8, &tell) else {
            return eprintln!("skipped: io_uring is not to be had here");
        };
        assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EBADF), "it was opened for reading");
        assert_eq!(in_flight.load(Relaxed), 0);
        // By threads as well.
        let by_threads = super::super::on_threads(&writes(&buffer, &places), 8, |write| {
            write.by(|offset, bytes| file.write_all_at(bytes, offset), &tell)
        });
        assert_eq!(by_threads.unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
