use crate::cpu::{now_ns, thread_cpu_ns};
use crate::lane::Lane;
use crate::live::{Progress, Shared, Told};
use crate::mapped::Mapping;
use crate::ring_loop::{errno_of, is_over};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use storage::ring::Op;
use storage::{IoBuffers, Region};
use stream::{Ask, Want, Window};
use workload::{Durability, TraceKind};

/// One lane with one blocking I/O at a time; as many threads as outstanding I/Os run it.
pub struct BlockingLoop<'a> {
    pub lane: Lane<'a>,
    pub region: &'a Region,
    /// Copies to and from this instead of calls on the file.
    pub mapping: Option<&'a Mapping>,
    pub durability: Durability,
    pub buffers: IoBuffers,
    pub shared: &'a Shared,
    pub progress: &'a Progress,
    /// When the I/O was due that came back only after the measured part.
    pub late_ns: Option<u64>,
}

/// Longest sleep before the end of the run is looked at again.
const SLEEP_MAX: Duration = Duration::from_millis(100);

impl BlockingLoop<'_> {
    /// Runs until the time is over or the lane done; then the CPU time used in the measured part.
    pub fn run(&mut self) -> u64 {
        let mut told = Told::default();
        let mut cpu_start_ns = None;
        let mut now = now_ns();
        let mut closed = false;
        self.lane.stream.begin(now);
        loop {
            match self.lane.want(now) {
                Want::Io(ask) => now = self.io(ask, &mut told, &mut cpu_start_ns),
                Want::Sync => {
                    let result = self.sync(self.lane.sync_op);
                    let completed_ns = now_ns();
                    self.count_sync(result, completed_ns - now, completed_ns);
                    self.lane.synced(completed_ns);
                    now = completed_ns;
                }
                Want::Later(due_ns) => {
                    let far = Duration::from_nanos(due_ns.saturating_sub(now));
                    std::thread::sleep(far.min(SLEEP_MAX));
                    now = now_ns();
                }
                Want::Completion | Want::Done => {
                    // Another thread's write is on the place that was chosen.
                    std::thread::yield_now();
                    now = now_ns();
                }
            }
            self.progress.tell(told);
            if now >= self.shared.until_ns.load(Relaxed) && !closed {
                closed = true;
                self.close();
            }
            if now >= self.shared.end_ns.load(Relaxed) || is_over(&self.lane) {
                break;
            }
        }
        if !closed {
            self.close();
        }
        cpu_start_ns.map_or(0, |start| thread_cpu_ns() - start)
    }

    /// One I/O; when it was back.
    fn io(&mut self, ask: Ask, told: &mut Told, cpu_start_ns: &mut Option<u64>) -> u64 {
        let lane = &mut self.lane;
        // SAFETY: two buffers of at least the largest block, which only this loop touches.
        let buffer = |at: usize| unsafe {
            std::slice::from_raw_parts_mut(self.buffers.pointer(at), ask.bytes as usize)
        };
        let (read, write) = (buffer(0), buffer(1));
        let (op, writes) = (lane.op(ask.kind), ask.kind != TraceKind::Read);
        let is_sync = ask.kind == TraceKind::Sync;
        let mut from: &[u8] = write;
        if ask.kind == TraceKind::Write {
            // SAFETY: as above; the writer changes the buffer before it is written from.
            let block =
                unsafe { std::slice::from_raw_parts_mut(write.as_ptr().cast_mut(), ask.bytes as usize) };
            if let Some(elsewhere) = lane.writer.next(block, ask.offset, &mut lane.stream.chooser) {
                // SAFETY: a source holds a block at every place it names, and lives as long as the lane.
                from = unsafe { std::slice::from_raw_parts(elsewhere, ask.bytes as usize) };
            }
        }
        let submitted_ns = now_ns();
        let could_ns = ask.intended_ns.max(lane.room_ns);
        if let Some(responses) = lane.recorder.responses()
            && submitted_ns >= self.shared.from_ns.load(Relaxed)
        {
            responses.late_ns_max = responses.late_ns_max.max(submitted_ns.saturating_sub(could_ns));
        }
        let result = match (self.mapping, op) {
            (_, Op::Fsync | Op::Fdatasync) => Ok(0),
            (Some(mapping), Op::Read) => mapping.read(read, ask.offset),
            (Some(mapping), _) => mapping.write(from, ask.offset, self.durability != Durability::Cached),
            _ if self.region.laid.is_some() => self.in_parts(ask, op, read, from, submitted_ns),
            (None, Op::Read) => self.region.file.read_at(read, ask.offset),
            (None, op) => write_as(self.region, op, self.durability, from, ask.offset),
        };
        let result = if is_sync { self.sync(op).map(|()| 0) } else { result };
        let now = now_ns();
        let latency_ns = now - submitted_ns;
        let until_ns = self.shared.until_ns.load(Relaxed);
        self.late_ns = (now >= until_ns && ask.intended_ns < until_ns).then_some(ask.intended_ns);
        self.lane.returned(ask.slot, writes, now);
        if is_sync {
            self.count_sync(result.map(|_| ()), latency_ns, now);
            return now;
        }
        let lane = &mut self.lane;
        let moved = match result {
            Ok(moved) => i32::try_from(moved).unwrap_or(i32::MAX),
            Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
        };
        let well = moved == ask.bytes as i32;
        if writes && let Some(ledger) = &lane.ledger {
            ledger.release(ask.offset, well);
        }
        if !well {
            lane.recorder.failed(writes, errno_of(moved));
            lane.failed();
            return now;
        }
        lane.failures = 0;
        (told.ios, told.bytes) = (told.ios + 1, told.bytes + u64::from(ask.bytes));
        told.stall_ns += latency_ns;
        self.progress.took(latency_ns, 1);
        if lane.checks_reads && !writes {
            lane.check_read(read, ask.offset);
        }
        let window = self.window();
        if window.counts(now) {
            if cpu_start_ns.is_none() {
                *cpu_start_ns = Some(thread_cpu_ns());
            }
            let lane = &mut self.lane;
            lane.recorder.at(now - window.from_ns);
            lane.recorder.last_ns = now;
            lane.stream.counted += 1;
            lane.recorder.completed(writes, ask.bytes, latency_ns);
            if let Some(responses) = lane.recorder.responses() {
                responses.record(writes, now.saturating_sub(ask.intended_ns));
            }
        }
        now
    }

    /// An I/O on a layout: the parts one after the other, since this thread waits for each. It ends with the first that
    /// fails.
    fn in_parts(
        &mut self,
        ask: Ask,
        op: Op,
        read: &mut [u8],
        from: &[u8],
        submitted_ns: u64,
    ) -> io::Result<usize> {
        let Some(laid) = self.region.laid.as_deref() else { return Ok(0) };
        let (mut moved, mut began_ns) = (0, submitted_ns);
        for part in laid.map.parts(ask.offset, ask.bytes.into()) {
            let member = &laid.members[part.member];
            let at = member.offset_bytes + part.offset;
            let range = moved..moved + part.bytes as usize;
            let result = match op {
                Op::Read => member.file.read_at(&mut read[range], at),
                op => write_as(member, op, self.durability, &from[range], at),
            };
            let now = now_ns();
            if self.window().counts(now) {
                let told = result.as_ref().map_or(-1, |bytes| *bytes as i32);
                self.lane.recorder.part(part.member, op != Op::Read, told, now - began_ns);
            }
            began_ns = now;
            let bytes = result?;
            moved += bytes;
            if bytes as u64 != part.bytes {
                break;
            }
        }
        Ok(moved)
    }

    fn sync(&self, op: Op) -> io::Result<()> {
        match (self.mapping, op) {
            (Some(mapping), _) => mapping.sync_all(),
            (None, Op::Fsync) => self.region.members().iter().try_for_each(|member| member.file.sync_all()),
            (None, _) => self.region.members().iter().try_for_each(|member| member.file.sync_data()),
        }
    }

    fn count_sync(&mut self, result: io::Result<()>, latency_ns: u64, now: u64) {
        match result {
            Ok(()) if self.window().counts(now) => self.lane.recorder.record.synced(latency_ns),
            Ok(()) => {}
            Err(error) => {
                self.lane.recorder.sync_failed(error.raw_os_error().unwrap_or(libc::EIO));
                self.lane.failed();
            }
        }
    }

    /// The measured part is over: what of an open loop still waits?
    fn close(&mut self) {
        if self.lane.recorder.record.responses.is_none() {
            return;
        }
        let until_ns = self.shared.until_ns.load(Relaxed).min(now_ns());
        let (mut waiting, mut longest_ns) = self.lane.stream.waiting(until_ns, std::iter::empty());
        if let Some(late_ns) = self.late_ns {
            (waiting, longest_ns) = (waiting + 1, longest_ns.max(until_ns.saturating_sub(late_ns)));
        }
        if let Some(responses) = self.lane.recorder.responses() {
            responses.wait((waiting, longest_ns));
        }
    }

    /// What is measured.
    fn window(&self) -> Window {
        Window { from_ns: self.shared.from_ns.load(Relaxed), until_ns: self.shared.until_ns.load(Relaxed) }
    }
}

fn write_as(region: &Region, op: Op, durability: Durability, from: &[u8], offset: u64) -> io::Result<usize> {
    match (op, durability) {
        (Op::WriteThrough, _) => write_through(region, from, offset),
        (_, Durability::Synced) => region.file.write_at(from, offset).and_then(|written| {
            region.file.sync_data()?;
            Ok(written)
        }),
        _ => region.file.write_at(from, offset),
    }
}

fn write_through(region: &Region, block: &[u8], offset: u64) -> io::Result<usize> {
    let part = libc::iovec { iov_base: block.as_ptr().cast_mut().cast(), iov_len: block.len() };
    // SAFETY: `part` describes `block`, which the call only reads.
    let written =
        unsafe { libc::pwritev2(region.file.as_raw_fd(), &part, 1, offset as i64, libc::RWF_DSYNC) };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}
