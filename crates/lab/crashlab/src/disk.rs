//! The simulated disk.

use crate::trouble::{Refused, Trouble, Troubles};
use pagestore_disk::{Disk, FileId, MemoryScratch, Scratch};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// The unit that a device writes atomically.
pub(crate) const SECTOR: usize = 512;

/// The three files' bytes, in the order of `FileId::ALL`.
pub type Files = [Vec<u8>; 3];

/// An operation of the disk.
#[derive(Clone, Debug)]
pub enum Op {
    /// A write; with `through` it is durable at once, otherwise after the next sync of the file.
    Write {
        /// The file.
        file: FileId,
        /// The offset.
        offset: u64,
        /// The data.
        bytes: Vec<u8>,
        /// Durable on return.
        through: bool,
    },
    /// Everything written to the file becomes durable.
    Sync {
        /// The file.
        file: FileId,
    },
    /// The file is cut to this length; durable after the next sync.
    Truncate {
        /// The file.
        file: FileId,
        /// The length.
        length: u64,
    },
    /// A cut that failed: it may be on the medium.
    FailedTruncate {
        /// The file.
        file: FileId,
        /// The length.
        length: u64,
    },
    /// A write that was acknowledged and not done.
    Lost {
        /// The file.
        file: FileId,
        /// The offset.
        offset: u64,
        /// The length.
        bytes: usize,
    },
    /// A write that failed: parts of it may be on the medium.
    FailedWrite {
        /// The file.
        file: FileId,
        /// The offset.
        offset: u64,
        /// The data.
        bytes: Vec<u8>,
    },
    /// A sync that failed: pending writes may be on the medium or not, and no later sync makes them durable.
    FailedSync {
        /// The file.
        file: FileId,
    },
}

/// A fault of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A write or sync fails with `EIO`.
    Io,
    /// A write fails with `ENOSPC`; of a sync, as `Io`.
    NoSpace,
    /// A write is acknowledged and not done; syncs work.
    Lost,
    /// A write is acknowledged and done elsewhere in the file; syncs work.
    Misdirected,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Io, Self::NoSpace, Self::Lost, Self::Misdirected];

    /// Whether the engine gets an error.
    #[must_use]
    pub fn is_reported(self) -> bool {
        matches!(self, Self::Io | Self::NoSpace)
    }
}

/// A disk in memory. Reads return the last write, as from a page cache, whether it is durable or not.
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

struct State {
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
        let state = State { view: files, trace, fault: None, fault_met: None, unreadable: None, troubles };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Operation `at` (from 0) has this fault.
    #[must_use]
    pub fn with_fault(self, at: usize, fault: Fault) -> Self {
        self.lock().fault = Some((at, fault));
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

    /// The files as reads see them.
    pub fn files(&self) -> Files {
        self.lock().view.clone()
    }

    fn do_write(&self, file: FileId, offset: u64, bytes: &[u8], through: bool) -> io::Result<()> {
        let mut state = self.lock();
        let op = Op::Write { file, offset, bytes: bytes.to_vec(), through };
        if let Some((at, fault)) = state.fault
            && at == state.trace.len()
        {
            state.fault_met = Some(op.clone());
            match fault {
                Fault::Io | Fault::NoSpace => {
                    state.trace.push(Op::FailedWrite { file, offset, bytes: bytes.to_vec() });
                    let error = if fault == Fault::Io { libc::EIO } else { libc::ENOSPC };
                    return Err(io::Error::from_raw_os_error(error));
                }
                Fault::Lost => {
                    state.trace.push(Op::Lost { file, offset, bytes: bytes.len() });
                    return Ok(());
                }
                Fault::Misdirected => {
                    let elsewhere = misplaced(offset, bytes.len(), state.view[file as usize].len());
                    overwrite(&mut state.view[file as usize], elsewhere, bytes);
                    state.trace.push(Op::Write { file, offset: elsewhere, bytes: bytes.to_vec(), through });
                    return Ok(());
                }
            }
        }
        if !through && file != FileId::Data && state.troubles.refuses(Refused::Growth) {
            state.trace.push(Op::FailedWrite { file, offset, bytes: bytes.to_vec() });
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        overwrite(&mut state.view[file as usize], offset, bytes);
        state.trace.push(op);
        Ok(())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no thread panics with the disk locked")
}

/// Another offset of the same alignment.
fn misplaced(offset: u64, bytes: usize, length: usize) -> u64 {
    let step = bytes.next_multiple_of(4096) as u64;
    if offset >= step { offset - step } else { (offset + step).min((length as u64).next_multiple_of(4096)) }
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
        if let Some((at, fault)) = state.fault
            && at == state.trace.len()
        {
            state.fault_met = Some(Op::Truncate { file, length });
            if fault.is_reported() {
                state.trace.push(Op::FailedTruncate { file, length });
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
        }
        state.view[file as usize].truncate(length as usize);
        state.trace.push(Op::Truncate { file, length });
        Ok(())
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        let mut state = self.lock();
        if let Some((at, fault)) = state.fault
            && at == state.trace.len()
        {
            state.fault_met = Some(Op::Sync { file });
            if fault.is_reported() {
                state.trace.push(Op::FailedSync { file });
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
        }
        state.trace.push(Op::Sync { file });
        Ok(())
    }

    fn len(&self, file: FileId) -> io::Result<u64> {
        Ok(self.lock().view[file as usize].len() as u64)
    }
}
