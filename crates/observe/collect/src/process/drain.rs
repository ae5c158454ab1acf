//! Takes entries out of the kernel's tables, so that they do not fill up. No count is lost: user space keeps what it
//! takes out (`kept.rs`), and adds what the key counts later, again from zero.

use super::places::Places;
use super::program::Programs;
use super::refused::{no_table, table_error};
use super::table_calls;
use super::tables::{Aio, AioKey, Counts, CpuCounts, FileId, Key, Name, Pending};
use crate::error::SourceError;
use aya::Pod;
use aya::maps::{HashMap as KernelMap, MapData, MapError};
use std::collections::HashMap;
use std::os::fd::AsFd;

impl Programs {
    /// Takes a key's counters out of the kernel; `None` where it has none.
    pub fn take(&mut self, key: &Key) -> Result<Option<Counts>, SourceError> {
        let map = self.ebpf.map("files").ok_or_else(|| no_table("files"))?;
        let aya::maps::Map::PerCpuHashMap(data) = map else { return Err(no_table("files")) };
        let mut parts = vec![CpuCounts::ZERO; self.cpus];
        match table_calls::take(data.fd().as_fd(), key, &mut parts, self.cpus) {
            Ok(()) => Ok(Some(Counts::sum(&parts))),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(table_error(MapError::IoError(error))),
        }
    }

    /// Takes all names that the programs recorded since the last call.
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

    /// Removes the entry of a process that ended.
    pub fn remove_process(&mut self, (tgid, started): (u32, u32)) -> Result<(), SourceError> {
        let mut table: KernelMap<&mut MapData, u64, super::tables::Started> = self.table_mut("processes")?;
        found(table.remove(&(u64::from(tgid) << 32 | u64::from(started)))).map(drop)
    }

    /// Removes entries of ended processes: those among the chosen processes, and asynchronous I/Os in flight for whose
    /// completion no program was called.
    pub fn sweep(&mut self) -> Result<(), SourceError> {
        let in_places = self.places.as_ref().map(Places::in_use).unwrap_or_default();
        let pending: Vec<(u64, Pending)> = self.entries("requests")?;
        let iocbs: Vec<(AioKey, Aio)> = self.entries("iocbs")?;
        let chosen: Vec<(u32, u32)> = self.entries("chosen_processes")?;
        // Read after the tables, so that a process that started meanwhile counts as running.
        let running = super::target::running()?;
        // A request may have completed since: then its entry is free, or has another request.
        for (index, address, pending) in in_places {
            let ours = self.places.as_ref().filter(|_| !running.contains(&pending.tgid));
            if ours.is_some_and(|places| places.take(index, address, &pending)) {
                self.left_behind += 1;
            }
        }
        self.left_behind +=
            self.remove_unless("requests", &pending, |(_, pending)| running.contains(&pending.tgid))?;
        self.remove_unless("iocbs", &iocbs, |(_, aio)| running.contains(&aio.key.tgid))?;
        self.remove_unless("chosen_processes", &chosen, |(pid, _)| running.contains(pid))?;
        Ok(())
    }

    /// Removes those of a table's entries that are not to stay; returns how many it still had.
    pub fn remove_unless<K: Pod, V: Pod>(
        &mut self,
        table: &str,
        entries: &[(K, V)],
        stays: impl Fn(&(K, V)) -> bool,
    ) -> Result<u64, SourceError> {
        let mut table: KernelMap<&mut MapData, K, V> = self.table_mut(table)?;
        let mut removed = 0;
        for (key, _) in entries.iter().filter(|entry| !stays(entry)) {
            removed += u64::from(found(table.remove(key))?.is_some());
        }
        Ok(removed)
    }

    /// Removes files that have no counters any more. When they are used again, they are recorded again.
    pub fn remove_used(&mut self, files: &[FileId]) -> Result<(), SourceError> {
        let mut used: KernelMap<&mut MapData, FileId, u8> = self.table_mut("used_files")?;
        for id in files {
            found(used.remove(id))?;
        }
        Ok(())
    }

    /// The chosen processes and their descendants, each with its root (bpf/who.h).
    pub fn chosen(&self) -> Result<HashMap<u32, u32>, SourceError> {
        Ok(self.entries("chosen_processes")?.into_iter().collect())
    }

    /// Gives the processes of a root to another one, or ends their counting.
    pub fn move_chosen(&mut self, root: u32, to: Option<u32>) -> Result<(), SourceError> {
        let of_root = self.chosen()?.into_iter().filter(|(_, of)| *of == root);
        let pids: Vec<u32> = of_root.map(|(pid, _)| pid).collect();
        let mut table: KernelMap<&mut MapData, u32, u32> = self.table_mut("chosen_processes")?;
        for pid in pids {
            match to {
                Some(to) => table.insert(pid, to, 0).map_err(table_error)?,
                None => found(table.remove(&pid)).map(drop)?,
            }
        }
        Ok(())
    }

    /// The entries of a hash table that can be read.
    pub(super) fn entries<K: Pod, V: Pod>(&self, name: &str) -> Result<Vec<(K, V)>, SourceError> {
        let table: KernelMap<&MapData, K, V> = self.table(name)?;
        Ok(table.iter().flatten().collect())
    }

    pub(super) fn table_mut<'a, T: TryFrom<&'a mut aya::maps::Map, Error = MapError>>(
        &'a mut self,
        name: &str,
    ) -> Result<T, SourceError> {
        T::try_from(self.ebpf.map_mut(name).ok_or_else(|| no_table(name))?).map_err(table_error)
    }
}

/// A key's value, or `None` where the table does not have the key.
fn found<T>(result: Result<T, MapError>) -> Result<Option<T>, SourceError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(MapError::KeyNotFound) => Ok(None),
        Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(table_error(error)),
    }
}
