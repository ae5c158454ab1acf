use crate::accounting::{Accounting, PendingIo};
use crate::clock::now_ns;
use crate::io_buffers::IoBuffers;
use crate::lane::Lane;
use crate::mapping::Mapping;
use crate::recorder::Recorder;
use crate::ring::Op;
use rustix::io::{ReadWriteFlags, pwritev2};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::time::Duration;
use storage::{Region, Volume};
use stream::{IoRequest, NextStep};
use workload::{Durability, TraceKind};

/// One lane with one blocking I/O at a time; as many threads as outstanding I/Os run it.
pub struct BlockingLoop<'a> {
    pub lane: Lane<'a>,
    pub files: BlockingFiles<'a>,
    /// Buffer 0 for reads, 1 for writes.
    pub buffers: IoBuffers,
    pub accounting: Accounting<'a>,
    /// When the I/O was due that completed only after the measured part.
    pub late_ns: Option<u64>,
}

/// Executes I/Os by blocking calls.
#[derive(Clone, Copy)]
pub struct BlockingFiles<'a> {
    pub region: &'a Region,
    /// Where it is set, I/Os copy from and to it.
    pub mapping: Option<&'a Mapping>,
    pub durability: Durability,
}

/// The memory of an I/O: filled by a read, or the content of a write.
enum Block<'b> {
    Read(&'b mut [u8]),
    Write(&'b [u8]),
}

/// Longest sleep before the end of the run is checked again.
const SLEEP_MAX: Duration = Duration::from_millis(100);

impl BlockingLoop<'_> {
    /// Runs until the time is over or the lane is; then the CPU time used in the measured part.
    pub fn run(&mut self) -> u64 {
        let mut now = now_ns();
        self.lane.begin(now);
        loop {
            match self.lane.next(now) {
                NextStep::Io(io) => now = self.execute(io),
                NextStep::Sync => {
                    let result = self.files.sync(self.lane.sync_op);
                    let submitted_ns = std::mem::replace(&mut now, now_ns());
                    let mut batch = self.accounting.begin_batch(std::slice::from_mut(&mut self.lane), now);
                    batch.complete_sync(&mut self.lane, result_code(result.map(|()| 0)), now - submitted_ns);
                    self.accounting.end_batch(batch, 0);
                    self.lane.synced(now);
                }
                NextStep::Later(due_ns) => {
                    let left = Duration::from_nanos(due_ns.saturating_sub(now));
                    std::thread::sleep(left.min(SLEEP_MAX));
                    now = now_ns();
                }
                NextStep::Completion | NextStep::Done => {
                    // Another thread writes to the chosen block.
                    std::thread::yield_now();
                    now = now_ns();
                }
            }
            if self.accounting.must_close(now) {
                self.close();
            }
            if self.accounting.run_has_ended(now) || self.lane.is_over() {
                break;
            }
        }
        self.close();
        self.accounting.cpu_ns
    }

    /// Executes one I/O; when it completed.
    fn execute(&mut self, io: IoRequest) -> u64 {
        let lane = &mut self.lane;
        let op = lane.op(io.kind);
        let (read, write) = self.buffers.two_blocks_mut(io.bytes as usize);
        let mut block = match io.kind {
            TraceKind::Write => match lane.writer.next(write, io.offset, &mut lane.stream.chooser) {
                Some(source) => Block::Write(source),
                None => Block::Write(write),
            },
            TraceKind::Read | TraceKind::Sync => Block::Read(read),
        };
        let submitted_ns = now_ns();
        let result = match (io.kind, self.files.region.volume.as_deref()) {
            (TraceKind::Sync, _) => self.files.sync(op).map(|()| 0),
            (_, Some(volume)) if self.files.mapping.is_none() => {
                let (files, accounting, recorder) = (self.files, &self.accounting, &mut lane.recorder);
                let parts = VolumeIo { files, volume, op, accounting, recorder };
                parts.transfer(&mut block, io.offset, submitted_ns)
            }
            _ => self.files.transfer(op, &mut block, io.offset),
        };
        let now = now_ns();
        let window = self.accounting.window();
        self.late_ns = (now >= window.until_ns && io.intended_ns < window.until_ns).then_some(io.intended_ns);
        if submitted_ns >= window.from_ns {
            self.lane.record_lateness(io.intended_ns, submitted_ns);
        }
        let pending = PendingIo {
            submitted_ns,
            intended_ns: io.intended_ns,
            offset: io.offset,
            bytes: io.bytes,
            lane: 0,
            kind: io.kind,
        };
        let mut batch = self.accounting.begin_batch(std::slice::from_mut(&mut self.lane), now);
        let (read, _) = self.buffers.two_blocks_mut(io.bytes as usize);
        batch.complete::<false>(&mut self.lane, io.slot, &pending, result_code(result), || read);
        self.accounting.end_batch(batch, 0);
        now
    }

    /// Ends the measured part, and records which I/Os of an open loop still wait.
    fn close(&mut self) {
        let Some(until_ns) = self.accounting.close() else { return };
        self.lane.record_waiting(until_ns, std::iter::empty());
        if let (Some(late_ns), Some(responses)) = (self.late_ns, self.lane.recorder.responses()) {
            responses.add_waiting((1, until_ns.saturating_sub(late_ns)));
        }
    }
}

impl BlockingFiles<'_> {
    fn transfer(&self, op: Op, block: &mut Block<'_>, offset: u64) -> io::Result<usize> {
        match (self.mapping, block) {
            (Some(mapping), Block::Read(into)) => mapping.read(into, offset),
            (Some(mapping), Block::Write(from)) => {
                mapping.write(from, offset, self.durability != Durability::Cached)
            }
            (None, Block::Read(into)) => self.region.file.read_at(into, offset),
            (None, Block::Write(from)) => self.write(self.region, op, from, offset),
        }
    }

    fn write(&self, region: &Region, op: Op, from: &[u8], offset: u64) -> io::Result<usize> {
        match (op, self.durability) {
            (Op::WriteThrough, _) => write_through(region, from, offset),
            (_, Durability::Synced) => region.file.write_at(from, offset).and_then(|written| {
                region.file.sync_data()?;
                Ok(written)
            }),
            _ => region.file.write_at(from, offset),
        }
    }

    fn sync(&self, op: Op) -> io::Result<()> {
        match (self.mapping, op) {
            (Some(mapping), _) => mapping.sync_all(),
            (None, Op::Fsync) => self.region.members().iter().try_for_each(|member| member.file.sync_all()),
            (None, _) => self.region.members().iter().try_for_each(|member| member.file.sync_data()),
        }
    }
}

/// An I/O on a volume.
struct VolumeIo<'a> {
    files: BlockingFiles<'a>,
    volume: &'a Volume,
    op: Op,
    accounting: &'a Accounting<'a>,
    recorder: &'a mut Recorder,
}

impl VolumeIo<'_> {
    /// Executes the parts sequentially, since this thread waits for each; ends with the first that fails.
    fn transfer(self, block: &mut Block<'_>, offset: u64, submitted_ns: u64) -> io::Result<usize> {
        let bytes = match block {
            Block::Read(into) => into.len(),
            Block::Write(from) => from.len(),
        };
        let (mut moved, mut began_ns) = (0, submitted_ns);
        for part in self.volume.map.parts(offset, bytes as u64) {
            let member = &self.volume.members[part.member];
            let (at, range) = (member.offset_bytes + part.offset, moved..moved + part.bytes as usize);
            let (write, result) = match block {
                Block::Read(into) => (false, member.file.read_at(&mut into[range], at)),
                Block::Write(from) => (true, self.files.write(member, self.op, &from[range], at)),
            };
            let now = now_ns();
            if self.accounting.window().contains(now) {
                let code = result.as_ref().map_or(-1, |bytes| *bytes as i32);
                self.recorder.member_part(part.member, write, code, now - began_ns);
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
}

/// A result as a ring returns it: bytes or a negative errno.
fn result_code(result: io::Result<usize>) -> i32 {
    match result {
        Ok(bytes) => i32::try_from(bytes).unwrap_or(i32::MAX),
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}

fn write_through(region: &Region, block: &[u8], offset: u64) -> io::Result<usize> {
    Ok(pwritev2(&region.file, &[IoSlice::new(block)], offset, ReadWriteFlags::DSYNC)?)
}
