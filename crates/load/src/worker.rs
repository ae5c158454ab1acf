use crate::chooser::Chooser;
use crate::cpu::{now_ns, thread_cpu_ns};
use crate::recorder::Recorder;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use storage::ring::{Io, Ring};
use storage::{IoBuffers, Region};
use workload::{Durability, ThreadShare, Workload};

/// Most I/Os handed over in one system call through the page cache, where most complete within the call.
/// Larger batches gain little and make the last of a batch wait for the first ones.
pub const BATCH: usize = 16;
/// The same of direct I/O. Of larger batches the kernel holds all requests back until the last one is
/// prepared (io_uring plugs above two), which leaves the device idle: at 64 outstanding, batches of 16 gave
/// about 5 % fewer IOPS than pairs (scripts/bench load, 2026-11).
pub const BATCH_DIRECT: usize = 2;

/// A thread ends after this many failures without a success between them.
const FAILURES_MAX: u32 = 1000;

/// What the threads of a run and the one that watches them share. Times are on the monotonic clock.
#[derive(Debug)]
pub struct Shared {
    /// I/Os count that complete from here on; `u64::MAX` during warm-up.
    pub from_ns: AtomicU64,
    /// ... and before this; threads end once it has passed.
    pub until_ns: AtomicU64,
    /// Each thread's own progress.
    pub progress: Vec<Progress>,
}

/// One thread's progress, alone on its cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Progress {
    /// I/Os completed since the run began, warm-up included.
    pub ios: AtomicU64,
    /// Their summed latency.
    pub stall_ns: AtomicU64,
    /// Set when the thread ended on its own.
    pub ended: AtomicU64,
}

/// What a thread hands back.
#[derive(Debug, Default)]
pub struct Outcome {
    pub recorder: Recorder,
    pub share: ThreadShare,
    /// When the last I/O that counts completed.
    pub last_ns: u64,
    /// Ended because only failures came back.
    pub gave_up: bool,
    /// Ended because the ring itself failed.
    pub ring_error: Option<std::io::Error>,
}

/// One thread's part of the workload.
pub struct Worker<'a> {
    pub region: &'a Region,
    pub workload: &'a Workload,
    pub shared: &'a Shared,
    pub at: u32,
    pub ios_max: Option<u64>,
}

/// CPU time since the measured part began.
#[derive(Default)]
struct CpuClock(Option<u64>);

impl CpuClock {
    #[inline]
    fn start(&mut self) {
        if self.0.is_none() {
            self.0 = Some(thread_cpu_ns());
        }
    }

    fn used_ns(&self) -> u64 {
        self.0.map_or(0, |start| thread_cpu_ns() - start)
    }
}

impl Worker<'_> {
    fn chooser(&self) -> Chooser {
        let block_bytes = u64::from(self.workload.shape.block_bytes);
        Chooser::new(self.workload, self.region.offset_bytes, self.region.bytes / block_bytes, self.at)
    }

    fn buffers(&self, chooser: &mut Chooser) -> std::io::Result<IoBuffers> {
        let block_bytes = self.workload.shape.block_bytes as usize;
        let mut buffers = IoBuffers::new(self.workload.outstanding as usize, block_bytes)?;
        if self.workload.shape.writes() {
            buffers.fill(|| chooser.word());
        }
        Ok(buffers)
    }

    /// Makes the thread's ring: on the thread that will use it, as a single issuer must.
    pub fn ring(&self) -> std::io::Result<(Ring, Chooser)> {
        let mut chooser = self.chooser();
        let buffers = self.buffers(&mut chooser)?;
        let depth = self.workload.outstanding;
        let ring = Ring::new(&self.region.file, buffers, self.workload.shape.block_bytes, depth)?;
        Ok((ring, chooser))
    }

    /// The closed loop over a ring.
    pub fn run_ring(&self, mut ring: Ring, mut chooser: Chooser) -> Outcome {
        let depth = self.workload.outstanding as usize;
        let shape = &self.workload.shape;
        let write_through = shape.durability == Durability::WriteThrough;
        let block_bytes = shape.block_bytes;
        let progress = &self.shared.progress[self.at as usize];
        let mut outcome = Outcome::default();
        let mut cpu = CpuClock::default();
        let (mut ios, mut stall_ns, mut counted, mut failures) = (0_u64, 0_u64, 0_u64, 0_u32);
        // A stack: what completed last is used first, while its buffer is still in the cache.
        let mut free: Vec<u32> = (0..depth as u32).rev().collect();
        let mut submitted: Vec<(u64, bool)> = vec![(0, false); depth];
        let mut batch = [0_u32; BATCH];
        let batch_max = if self.region.direct { BATCH_DIRECT } else { BATCH };
        loop {
            let in_flight = (depth - free.len()) as u64;
            let wanted = self.ios_max.map_or(u64::MAX, |most| most.saturating_sub(counted + in_flight));
            let size = free.len().min(batch_max).min(usize::try_from(wanted).unwrap_or(usize::MAX));
            for place in &mut batch[..size] {
                let buffer = free.pop().expect("size is at most free.len()");
                let (offset, write) = chooser.choose();
                if write {
                    stamp(ring.buffer(buffer), block_bytes, chooser.word());
                }
                submitted[buffer as usize].1 = write;
                ring.push(Io { write, write_through: write_through && write, offset, buffer });
                *place = buffer;
            }
            let submitted_ns = now_ns();
            for buffer in &batch[..size] {
                submitted[*buffer as usize].0 = submitted_ns;
            }
            if let Err(error) = ring.submit(free.is_empty() || size == 0) {
                outcome.ring_error = Some(error);
                break;
            }
            let completed_ns = now_ns();
            let until_ns = self.shared.until_ns.load(Relaxed);
            let from_ns = self.shared.from_ns.load(Relaxed);
            let counts = completed_ns >= from_ns && completed_ns < until_ns;
            if counts {
                cpu.start();
                let mut turn = outcome.recorder.turn(completed_ns - from_ns, block_bytes);
                ring.reap(|buffer, result| {
                    let (at_ns, write) = submitted[buffer as usize];
                    free.push(buffer);
                    if result == block_bytes as i32 {
                        turn.completed(write, completed_ns - at_ns);
                        stall_ns += completed_ns - at_ns;
                        ios += 1;
                        counted += 1;
                        failures = 0;
                    } else {
                        turn.failed(write, errno_of(result));
                        failures += 1;
                    }
                });
                outcome.last_ns = completed_ns;
            } else {
                ring.reap(|buffer, result| {
                    free.push(buffer);
                    if result == block_bytes as i32 {
                        stall_ns += completed_ns - submitted[buffer as usize].0;
                        ios += 1;
                        failures = 0;
                    } else {
                        failures += 1;
                        outcome.recorder.failed(submitted[buffer as usize].1, errno_of(result));
                    }
                });
            }
            progress.ios.store(ios, Relaxed);
            progress.stall_ns.store(stall_ns, Relaxed);
            outcome.gave_up = failures >= FAILURES_MAX;
            let enough = self.ios_max.is_some_and(|most| counted >= most);
            if completed_ns >= until_ns || outcome.gave_up || enough {
                break;
            }
        }
        outcome.share = outcome.recorder.share(cpu.used_ns());
        drop(ring);
        progress.ended.store(1, Relaxed);
        outcome
    }

    /// The same loop with one blocking I/O at a time; as many threads as outstanding I/Os run it.
    pub fn run_blocking(&self) -> std::io::Result<Outcome> {
        let mut chooser = self.chooser();
        let shape = &self.workload.shape;
        let buffers = self.buffers(&mut chooser)?;
        let bytes = shape.block_bytes as usize;
        let progress = &self.shared.progress[self.at as usize];
        let mut outcome = Outcome::default();
        let mut cpu = CpuClock::default();
        let (mut ios, mut stall_ns, mut counted, mut failures) = (0_u64, 0_u64, 0_u64, 0_u32);
        // SAFETY: one buffer of at least `bytes` bytes, which only this function touches.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffers.pointer(0), bytes) };
        loop {
            let (offset, write) = chooser.choose();
            if write {
                stamp(buffer.as_mut_ptr(), shape.block_bytes, chooser.word());
            }
            let submitted_ns = now_ns();
            let result = match (write, shape.durability) {
                (false, _) => self.region.file.read_at(buffer, offset),
                (true, Durability::Cached) => self.region.file.write_at(buffer, offset),
                (true, Durability::WriteThrough) => self.write_through(buffer, offset),
                (true, Durability::Synced) => self.region.file.write_at(buffer, offset).and_then(|written| {
                    self.region.file.sync_data()?;
                    Ok(written)
                }),
            };
            let completed_ns = now_ns();
            let until_ns = self.shared.until_ns.load(Relaxed);
            let from_ns = self.shared.from_ns.load(Relaxed);
            let latency_ns = completed_ns - submitted_ns;
            let errno = match result {
                Ok(moved) if moved == bytes => None,
                Ok(_) => Some(libc::EIO),
                Err(error) => Some(error.raw_os_error().unwrap_or(libc::EIO)),
            };
            if let Some(errno) = errno {
                outcome.recorder.failed(write, errno);
                failures += 1;
            } else {
                (ios, stall_ns, failures) = (ios + 1, stall_ns + latency_ns, 0);
                if completed_ns >= from_ns && completed_ns < until_ns {
                    cpu.start();
                    counted += 1;
                    outcome
                        .recorder
                        .turn(completed_ns - from_ns, shape.block_bytes)
                        .completed(write, latency_ns);
                    outcome.last_ns = completed_ns;
                }
            }
            progress.ios.store(ios, Relaxed);
            progress.stall_ns.store(stall_ns, Relaxed);
            outcome.gave_up = failures >= FAILURES_MAX;
            let enough = self.ios_max.is_some_and(|most| counted >= most);
            if completed_ns >= until_ns || outcome.gave_up || enough {
                break;
            }
        }
        outcome.share = outcome.recorder.share(cpu.used_ns());
        progress.ended.store(1, Relaxed);
        Ok(outcome)
    }

    fn write_through(&self, buffer: &[u8], offset: u64) -> std::io::Result<usize> {
        let part = libc::iovec { iov_base: buffer.as_ptr().cast_mut().cast(), iov_len: buffer.len() };
        // SAFETY: `part` describes `buffer`, which the call only reads.
        let written =
            unsafe { libc::pwritev2(self.region.file.as_raw_fd(), &part, 1, offset as i64, libc::RWF_DSYNC) };
        usize::try_from(written).map_err(|_| std::io::Error::last_os_error())
    }
}

fn errno_of(result: i32) -> i32 {
    if result < 0 { -result } else { libc::EIO }
}

/// Makes what is written new without the cost of new random data: one changed word in each 4 KiB keeps a
/// deduplicating or compressing device from recognising the block.
#[inline]
fn stamp(buffer: *mut u8, block_bytes: u32, word: u64) {
    for at in (0..block_bytes as usize).step_by(4096) {
        // SAFETY: `at` lies in the buffer with at least 512 bytes behind it; buffers are page-aligned.
        unsafe { buffer.add(at).cast::<u64>().write(word.wrapping_add(at as u64)) };
    }
}
