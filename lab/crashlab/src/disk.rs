//! The simulated disk.

use crate::op::NameOp;
use crate::trouble::{Refused, Trouble, Troubles};
use crate::{Chance, Fault, Medium, Op};
use pagestore_disk::{Disk, FileId, MemoryScratch, Scratch};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// The unit that a device writes atomically.
pub(crate) const SECTOR: usize = 512;
/// The unit that the page cache keeps or drops.
pub(crate) const CACHED_PAGE: usize = 4096;

/// The three files' bytes, in the order of `FileId::ALL`.
pub type Files = [Vec<u8>; 3];

/// A disk in memory. Reads return the last write, as from a page cache, whether it is durable or not. After a failed sync or
/// write some return what was there before: the cache drops pages that it could not write.
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

struct State {
    /// The medium before the trace; needed where a fault is to come.
    before: Option<Medium>,
    view: Files,
    trace: Vec<Op>,
    fault: Option<(usize, Fault)>,
    /// The faulty operation, once it was issued.
    fault_met: Option<Op>,
    unreadable: Option<(FileId, Range<u64>)>,
    troubles: Troubles,
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::holding(Files::default())
    }

    /// A disk with these files, all of it durable.
    #[must_use]
    pub fn holding(files: Files) -> Self {
        let (trace, troubles) = Default::default();
        let (before, fault, fault_met, unreadable) = Default::default();
        let state = State { before, view: files, trace, fault, fault_met, unreadable, troubles };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A disk whose files are read from the page cache: some of what is read is not on the medium.
    #[must_use]
    pub fn caching(medium: &Medium) -> Self {
        Self::holding(medium.cached())
    }

    /// Operation `at` (from 0) has this fault.
    #[must_use]
    pub fn with_fault(self, at: usize, fault: Fault) -> Self {
        {
            let mut state = self.lock();
            assert!(state.trace.is_empty(), "the fault comes after the beginning");
            state.before = Some(Medium::holding(state.view.clone()));
            state.fault = Some((at, fault));
        }
        self
    }

    /// Reads that touch these bytes fail with `EIO`; writes work.
    #[must_use]
    pub fn with_unreadable(self, file: FileId, bytes: Range<u64>) -> Self {
        self.lock().unreadable = Some((file, bytes));
        self
    }

    /// Refuses operations from now on.
    pub fn begin_trouble(&self, trouble: Trouble) {
        self.lock().troubles.begin(trouble);
    }

    /// Stops refusing; returns whether anything was refused.
    pub fn end_trouble(&self) -> bool {
        self.lock().troubles.end()
    }

    /// Whether the engine got an error: a refusal since trouble began, or the fault.
    pub(crate) fn reported_an_error(&self) -> bool {
        let state = self.lock();
        let faulty = state.fault.is_some_and(|(_, fault)| fault.is_reported()) && state.fault_met.is_some();
        state.troubles.met || faulty
    }

    /// Whether anything was ever refused.
    pub(crate) fn was_in_trouble(&self) -> bool {
        self.lock().troubles.ever_met
    }

    /// Runs `work` while nothing is refused.
    pub(crate) fn without_trouble<T>(&self, work: impl FnOnce() -> T) -> T {
        self.lock().troubles.suspended = true;
        let done = work();
        self.lock().troubles.suspended = false;
        done
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The number of writes and syncs so far.
    pub fn ops(&self) -> usize {
        self.lock().trace.len()
    }

    /// Takes the writes and syncs so far.
    pub fn take_trace(&self) -> Vec<Op> {
        std::mem::take(&mut self.lock().trace)
    }

    /// The operation that had the fault, once it was issued.
    pub fn fault_met(&self) -> Option<Op> {
        self.lock().fault_met.clone()
    }

    /// Records an operation on a name. An empty file takes the place of the one that is made again.
    pub(crate) fn name(&self, op: NameOp) {
        let mut state = self.lock();
        if let NameOp::Create(path, _) = &op
            && let Some(file) = FileId::ALL.iter().find(|file| path.ends_with(file.name()))
        {
            state.view[*file as usize].clear();
        }
        state.trace.push(Op::Name(op));
    }

    /// The files as reads see them.
    pub fn files(&self) -> Files {
        self.lock().view.clone()
    }

    fn do_write(&self, file: FileId, offset: u64, bytes: &[u8], through: bool) -> io::Result<()> {
        let mut state = self.lock();
        let op = Op::Write { file, offset, bytes: bytes.to_vec(), through };
        let fault = state.fault_of(&op);
        match fault {
            Some(Fault::Io | Fault::NoSpace) => {
                state.fail_write(file, offset, bytes);
                let error = if fault == Some(Fault::Io) { libc::EIO } else { libc::ENOSPC };
                return Err(io::Error::from_raw_os_error(error));
            }
            Some(Fault::Lost) => {
                state.trace.push(Op::Lost { file, offset, bytes: bytes.len() });
                return Ok(());
            }
            _ => {}
        }
        let lengths = state.view.each_ref().map(|file| file.len() as u64);
        let place = fault.and_then(|fault| fault.misplaced((file, offset), bytes.len(), lengths));
        if place.is_none() && !through && file != FileId::Data && state.troubles.refuses(Refused::Growth) {
            state.trace.push(Op::FailedWrite { file, offset, bytes: bytes.to_vec() });
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        let (file, offset) = place.unwrap_or((file, offset));
        let through = through && !fault.is_some_and(Fault::lies);
        overwrite(&mut state.view[file as usize], offset, bytes);
        state.trace.push(Op::Write { file, offset, bytes: bytes.to_vec(), through });
        Ok(())
    }
}

impl State {
    /// The fault of this operation, which comes next.
    fn fault_of(&mut self, op: &Op) -> Option<Fault> {
        let (at, fault) = self.fault?;
        let is_met = at == self.trace.len() || fault == Fault::LyingDevice && at < self.trace.len();
        if !is_met {
            return None;
        }
        self.fault_met.get_or_insert_with(|| op.clone());
        Some(fault)
    }

    /// Records a write that fails. The cache has taken some of its pages.
    fn fail_write(&mut self, file: FileId, offset: u64, bytes: &[u8]) {
        let mut chance = Chance::new(self.trace.len() as u64 ^ 0xca_c4ed);
        for (page, part) in bytes.chunks(CACHED_PAGE).enumerate() {
            if chance.once_in(2) {
                overwrite(&mut self.view[file as usize], offset + (page * CACHED_PAGE) as u64, part);
            }
        }
        self.trace.push(Op::FailedWrite { file, offset, bytes: bytes.to_vec() });
    }

    /// Records a sync that fails. Its pages count as clean, and the cache drops some of them: reads return what was on the
    /// medium before (Rebello et al., ATC 2020).
    fn fail_sync(&mut self, file: FileId) {
        self.trace.push(Op::FailedSync { file });
        let Some(mut medium) = self.before.clone() else { return };
        self.trace.iter().for_each(|op| medium.apply(op));
        let mut chance = Chance::new(self.trace.len() as u64 ^ 0xca_c4ed);
        for (offset, content) in medium.dropped(file, &mut chance) {
            overwrite(&mut self.view[file as usize], offset, &content);
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no thread panics with the disk locked")
}

pub(crate) fn overwrite(file: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if file.len() < end {
        file.resize(end, 0);
    }
    file[start..end].copy_from_slice(bytes);
}

/// A transaction's scratch file, whose reads are refused as those of other files are.
struct SimScratch {
    state: Arc<Mutex<State>>,
    memory: MemoryScratch,
}

impl Scratch for SimScratch {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if lock(&self.state).troubles.refuses(Refused::Reads) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        self.memory.read(offset, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if lock(&self.state).troubles.refuses(Refused::Growth) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.memory.write(offset, bytes)
    }
}

impl Disk for SimDisk {
    fn scratch(&self) -> io::Result<Arc<dyn Scratch>> {
        Ok(Arc::new(SimScratch { state: Arc::clone(&self.state), memory: MemoryScratch::default() }))
    }

    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut state = self.lock();
        let touches = |bad: &Range<u64>| offset < bad.end && offset + buffer.len() as u64 > bad.start;
        let unreadable = state.unreadable.as_ref();
        if unreadable.is_some_and(|(bad_file, bad)| *bad_file == file && touches(bad))
            || state.troubles.refuses(Refused::Reads)
        {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let start = offset as usize;
        let bytes =
            state.view[file as usize].get(start..start + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.do_write(file, offset, bytes, false)
    }

    fn write_through(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.do_write(file, offset, bytes, true)
    }

    fn reserve(&self, _: FileId, _: u64) -> io::Result<()> {
        if self.lock().troubles.refuses(Refused::Growth) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        Ok(())
    }

    fn truncate(&self, file: FileId, length: u64) -> io::Result<()> {
        let mut state = self.lock();
        if state.view[file as usize].len() as u64 <= length {
            return Ok(());
        }
        if state.fault_of(&Op::Truncate { file, length }).is_some_and(Fault::is_reported) {
            state.trace.push(Op::FailedTruncate { file, length });
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        state.view[file as usize].truncate(length as usize);
        state.trace.push(Op::Truncate { file, length });
        Ok(())
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        let mut state = self.lock();
        let fault = state.fault_of(&Op::Sync { file });
        if fault.is_some_and(Fault::is_reported) {
            state.fail_sync(file);
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let lies = fault.is_some_and(Fault::lies);
        state.trace.push(if lies { Op::IgnoredSync { file } } else { Op::Sync { file } });
        Ok(())
    }

    fn len(&self, file: FileId) -> io::Result<u64> {
        Ok(self.lock().view[file as usize].len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes of two pages.
    fn pages(disk: &SimDisk) -> [u8; 2] {
        [0, CACHED_PAGE as u64].map(|offset| {
            let mut byte = [9];
            disk.read(FileId::Data, offset, &mut byte).unwrap();
            byte[0]
        })
    }

    #[test]
    fn after_a_failed_sync_reads_return_new_and_old_pages_and_later_syncs_succeed() {
        let mut seen = std::collections::BTreeSet::new();
        for before in 0..12 {
            let disk = SimDisk::new().with_fault(before + 4, Fault::Io);
            (0..before).for_each(|_| disk.sync(FileId::Log).unwrap());
            for (offset, byte) in [(0, 1), (CACHED_PAGE as u64, 1)] {
                disk.write_through(FileId::Data, offset, &[byte; SECTOR]).unwrap();
            }
            for (offset, byte) in [(0, 2), (CACHED_PAGE as u64, 2)] {
                disk.write(FileId::Data, offset, &[byte; SECTOR]).unwrap();
            }
            assert_eq!(pages(&disk), [2, 2]);
            assert!(disk.sync(FileId::Data).is_err());
            let found = pages(&disk);
            seen.insert(found);
            disk.sync(FileId::Data).unwrap();
            assert_eq!(pages(&disk), found, "until it is written again");
            disk.write(FileId::Data, 0, &[3; SECTOR]).unwrap();
            assert_eq!(pages(&disk)[0], 3);
        }
        assert!(seen.len() > 2, "{seen:?}");
    }
}
