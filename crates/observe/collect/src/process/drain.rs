//! What leaves the kernel's tables, so that they do not fill up however long it is counted. Nothing is lost by it: what
//! is taken out is kept in user space, and a key that comes again begins at zero and is added to it.

use super::places::Places;
use super::program::Programs;
use super::refused::{no_table, table_error};
use super::tables::{Aio, AioKey, Counts, FileId, Key, Name, OfCpu, Pending};
use crate::error::SourceError;
use aya::maps::{HashMap as KernelMap, MapData, MapError};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// BPF_MAP_LOOKUP_AND_DELETE_ELEM of linux/bpf.h.
const LOOKUP_AND_DELETE: libc::c_long = 21;

/// The part of union bpf_attr that it uses.
#[repr(C)]
struct OfElement {
    map: u32,
    zero: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl Programs {
    /// Takes counters out of the kernel, with what they are at that moment; `None` where they are not there.
    pub fn take(&mut self, key: &Key) -> Result<Option<Counts>, SourceError> {
        let map = self.ebpf.map("files").ok_or_else(|| no_table("files"))?;
        let aya::maps::Map::PerCpuHashMap(data) = map else { return Err(no_table("files")) };
        let mut parts = vec![OfCpu::ZERO; self.cpus];
        match lookup_and_delete(data.fd().as_fd(), key, &mut parts) {
            Ok(()) => Ok(Some(Counts::sum(&parts))),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(table_error(MapError::IoError(error))),
        }
    }

    /// Takes all names that were written down since the last time.
    pub fn take_names(&mut self) -> Result<HashMap<FileId, Box<Name>>, SourceError> {
        let mut table: KernelMap<&mut MapData, FileId, Name> = self.table_mut("names")?;
        let ids: Vec<FileId> = table.keys().collect::<Result<_, _>>().map_err(table_error)?;
        let mut names = HashMap::with_capacity(ids.len());
        for id in ids {
            if let Some(name) = found(table.get(&id, 0))? {
                names.insert(id, Box::new(name));
            }
            found(table.remove(&id))?;
        }
        Ok(names)
    }

    /// Takes out what is kept of a process that ended.
    pub fn remove_process(&mut self, (tgid, started): (u32, u32)) -> Result<(), SourceError> {
        let mut table: KernelMap<&mut MapData, u64, super::tables::Started> = self.table_mut("processes")?;
        found(table.remove(&(u64::from(tgid) << 32 | u64::from(started)))).map(drop)
    }

    /// Takes out what processes that ended left behind: their place among the chosen, and asynchronous I/Os under way,
    /// whose completion the programs were not called for.
    pub fn sweep(&mut self) -> Result<(), SourceError> {
        let in_places = self.places.as_ref().map(Places::in_use).unwrap_or_default();
        let pending: Vec<(u64, Pending)> =
            self.table_mut::<KernelMap<&mut MapData, u64, Pending>>("requests")?.iter().flatten().collect();
        let fetched: Vec<(AioKey, Aio)> =
            self.table_mut::<KernelMap<&mut MapData, AioKey, Aio>>("iocbs")?.iter().flatten().collect();
        let chosen: Vec<u32> = self
            .table_mut::<KernelMap<&mut MapData, u32, u8>>("chosen_processes")?
            .keys()
            .flatten()
            .collect();
        // Later than the tables: none of a process that began in between.
        let running = super::target::running()?;
        // The last completion of all may have come since.
        for (index, address, pending) in in_places {
            let ours = self.places.as_ref().filter(|_| !running.contains(&pending.tgid));
            if ours.is_some_and(|places| places.take(index, address, &pending)) {
                self.left_behind += 1;
            }
        }
        let mut table: KernelMap<&mut MapData, u64, Pending> = self.table_mut("requests")?;
        let mut left_behind = 0;
        for (address, _) in pending.iter().filter(|(_, pending)| !running.contains(&pending.tgid)) {
            left_behind += u64::from(found(table.remove(address))?.is_some());
        }
        self.left_behind += left_behind;
        let mut table: KernelMap<&mut MapData, AioKey, Aio> = self.table_mut("iocbs")?;
        for (key, _) in fetched.iter().filter(|(_, aio)| !running.contains(&aio.key.tgid)) {
            found(table.remove(key))?;
        }
        let mut table: KernelMap<&mut MapData, u32, u8> = self.table_mut("chosen_processes")?;
        for pid in chosen.iter().filter(|pid| !running.contains(pid)) {
            found(table.remove(pid))?;
        }
        Ok(())
    }

    /// Takes out files that nothing is counted of any more. Used again, they are seen for the first time again.
    pub fn remove_used(&mut self, files: &[FileId]) -> Result<(), SourceError> {
        let mut used: KernelMap<&mut MapData, FileId, u8> = self.table_mut("used_files")?;
        for id in files {
            found(used.remove(id))?;
        }
        Ok(())
    }

    pub(super) fn table_mut<'a, T: TryFrom<&'a mut aya::maps::Map, Error = MapError>>(
        &'a mut self,
        name: &str,
    ) -> Result<T, SourceError> {
        T::try_from(self.ebpf.map_mut(name).ok_or_else(|| no_table(name))?).map_err(table_error)
    }
}

/// What a table has of a key, which may be nothing.
pub(super) fn found<T>(result: Result<T, MapError>) -> Result<Option<T>, SourceError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(MapError::KeyNotFound) => Ok(None),
        Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(table_error(error)),
    }
}

/// Both in one step, so that what is added in between is not lost.
fn lookup_and_delete(map: BorrowedFd<'_>, key: &Key, parts: &mut [OfCpu]) -> io::Result<()> {
    let attributes = OfElement {
        map: map.as_raw_fd() as u32,
        zero: 0,
        key: std::ptr::from_ref(key) as u64,
        value: parts.as_mut_ptr() as u64,
        flags: 0,
    };
    // SAFETY: key and value are of the table's layout, and the value has a part for each possible CPU.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, LOOKUP_AND_DELETE, &raw const attributes, size_of::<OfElement>())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
