//! A sliding window over a virtual log file, in a small buffer that is reused. Fresh memory has a cost: a virtual
//! machine may have to obtain each page of it from its host.
//!
//! ```text
//! memory   |  not yet consumed       |          the next reads, many at once          |
//!          start                     loaded                                    capacity    moved to the front when full
//! ```

use super::{LogFile, Reading};
use crate::disk::aligned::{ALIGNMENT, AlignedBuffer, HugePageBuffer};
use crate::error::{Error, Result};
use crate::format::geometry::MAX_BLOCK_BYTES;
use crate::log::index;
use crate::sync::{Mutex, lock, run_on_threads};
use crate::types::UNIT_BYTES;
use pagestore_disk::FileId;

/// The most that may be left of a read when the next one continues it.
const REST_BYTES: usize = MAX_BLOCK_BYTES.next_multiple_of(ALIGNMENT) + ALIGNMENT;

/// See the module.
pub(super) struct Window<'a> {
    log: &'a LogFile<'a>,
    reading: Reading,
    memory: HugePageBuffer,
    slot: usize,
    /// The bytes of the slot that are in memory: from here …
    start: usize,
    /// … to here.
    loaded: usize,
    end: AlignedBuffer,
}

impl<'a> Window<'a> {
    /// An empty window.
    pub(super) fn new(log: &'a LogFile<'a>, reading: Reading) -> Self {
        let wanted = reading.read_bytes * reading.parallel.max(1) + REST_BYTES;
        let memory = HugePageBuffer::new(wanted.min(log.geometry.vlf_bytes as usize));
        Self { log, reading, memory, slot: usize::MAX, start: 0, loaded: 0, end: AlignedBuffer::new(0) }
    }

    /// The bytes at `unit` of a slot: at least a whole block, or all up to the slot's end.
    pub(super) fn at(&mut self, slot: usize, unit: u32) -> Result<&[u8]> {
        let vlf_bytes = self.log.geometry.vlf_bytes as usize;
        let at = ((u64::from(unit) * UNIT_BYTES) as usize).min(vlf_bytes);
        if slot != self.slot || at < self.start || at > self.loaded {
            (self.slot, self.start) = (slot, at / ALIGNMENT * ALIGNMENT);
            self.loaded = self.start;
        }
        let upto = (at + MAX_BLOCK_BYTES).min(vlf_bytes);
        while self.loaded < upto {
            self.read_ahead(at)?;
        }
        Ok(&self.memory.bytes()[at - self.start..self.loaded - self.start])
    }

    /// The bytes of the last sector of a slot; the window is unchanged.
    pub(super) fn end_sector(&mut self, slot: usize) -> Result<&[u8]> {
        let geometry = self.log.geometry;
        let at = u64::from(index::end_unit(&geometry)) * UNIT_BYTES;
        let bytes = (geometry.vlf_bytes - at) as usize;
        if self.end.capacity() < bytes {
            self.end = AlignedBuffer::new(bytes);
        }
        self.end.resize(bytes);
        read(self.log, geometry.slot_offset(slot) + at, self.end.bytes_mut())?;
        Ok(self.end.bytes())
    }

    /// Reads the bytes after those that are loaded; bytes before `at` may be dropped.
    fn read_ahead(&mut self, at: usize) -> Result<()> {
        let Reading { read_bytes, parallel } = self.reading;
        let (vlf_bytes, capacity) = (self.log.geometry.vlf_bytes as usize, self.memory.len());
        let wanted = (read_bytes * parallel.max(1)).min(vlf_bytes - self.loaded);
        if self.loaded - self.start + wanted > capacity {
            let from = at / ALIGNMENT * ALIGNMENT;
            self.memory.bytes_mut().copy_within(from - self.start..self.loaded - self.start, 0);
            self.start = from;
        }
        let kept = self.loaded - self.start;
        let target = &mut self.memory.bytes_mut()[kept..(kept + wanted).min(capacity)];
        let (log, bytes) = (self.log, target.len());
        let begin = log.geometry.slot_offset(self.slot) + self.loaded as u64;
        if bytes <= read_bytes {
            read(log, begin, target)?;
        } else {
            let parts = Mutex::new(target.chunks_mut(read_bytes).zip((begin..).step_by(read_bytes)));
            run_on_threads(bytes.div_ceil(read_bytes), || {
                loop {
                    let next = lock(&parts).next();
                    let Some((part, offset)) = next else { return Ok(()) };
                    read(log, offset, part)?;
                }
            })?;
        }
        self.loaded += bytes;
        Ok(())
    }
}

fn read(log: &LogFile<'_>, offset: u64, bytes: &mut [u8]) -> Result<()> {
    log.disk.read(FileId::Log, offset, bytes).map_err(Error::during("read", FileId::Log))
}
