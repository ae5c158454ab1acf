//! Reads the table of counters many keys at a time: a system call for each key takes longer than all else that a snapshot does.

use super::program::{Counted, Programs};
use super::refused::{no_table, table_error};
use super::table_calls::read_batch;
use super::tables::{Counts, CpuCounts, FileId, Key};
use crate::error::SourceError;
use aya::maps::{MapData, MapError, PerCpuHashMap};
use std::io;
use std::os::fd::AsFd;

/// Keys that are read at once, at first. The kernel needs space for all keys of one of its buckets, which are as many as keys.
const BATCH: usize = 128;
/// The kernel's error for an operation that this kind of table lacks (before Linux 5.6); libc has no name for it.
const ENOTSUPP: i32 = 524;

impl Programs {
    /// The counters of all files and processes.
    pub fn counted(&self) -> Result<Counted, SourceError> {
        let mut counted = Counted::default();
        self.each_counted(|key, counts| drop(counted.insert(*key, counts.into())))?;
        Ok(counted)
    }

    /// Calls `take` for each key.
    pub fn each_counted(&self, mut take: impl FnMut(&Key, &Counts)) -> Result<(), SourceError> {
        let map = self.ebpf.map("files").ok_or_else(|| no_table("files"))?;
        let aya::maps::Map::PerCpuHashMap(data) = map else { return Err(no_table("files")) };
        let no_file = FileId { ino: 0, dev: 0, generation: 0 };
        let mut keys = vec![Key { file: no_file, tgid: 0, started: 0, kind: 0, zero: 0 }; BATCH];
        let mut parts = vec![CpuCounts::ZERO; BATCH * self.cpus];
        let mut position: Option<u32> = None;
        // Each call reads at least one key, or finds that there is too little space; the table cannot grow beyond its bound.
        for call in 0..=2 * self.counters_max {
            let batch = match read_batch(data.fd().as_fd(), &mut position, &mut keys, &mut parts, self.cpus) {
                Ok(batch) => batch,
                Err(error) if is_unsupported(&error) && call == 0 => {
                    return self.each_counted_one_by_one(take);
                }
                // More keys fell into one of the kernel's buckets than are read at once. None were read.
                Err(error)
                    if error.raw_os_error() == Some(libc::ENOSPC) && keys.len() < self.counters_max =>
                {
                    keys.resize(keys.len() * 2, keys[0]);
                    parts.resize(keys.len() * self.cpus, CpuCounts::ZERO);
                    continue;
                }
                Err(error) => return Err(table_error(MapError::IoError(error))),
            };
            let read = keys.iter().zip(parts.chunks_exact(self.cpus)).take(batch.count);
            read.for_each(|(key, parts)| take(key, &Counts::sum(parts)));
            if !batch.more {
                break;
            }
        }
        Ok(())
    }

    /// With a system call for each key.
    fn each_counted_one_by_one(&self, mut take: impl FnMut(&Key, &Counts)) -> Result<(), SourceError> {
        let table: PerCpuHashMap<&MapData, Key, CpuCounts> = self.table("files")?;
        for entry in table.iter() {
            let (key, parts) = entry.map_err(table_error)?;
            take(&key, &Counts::sum(parts.iter()));
        }
        Ok(())
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTSUP | ENOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::super::selection::Selection;
    use super::*;
    use std::io::Write;

    #[test]
    fn a_table_read_in_batches_is_the_table_read_key_by_key() {
        let selection = Selection { pids: vec![std::process::id()], ..Selection::default() };
        let programs = match Programs::load(&selection, None) {
            Ok(programs) => programs,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for number in 0..2 * BATCH {
            let mut file = std::fs::File::create(dir.path().join(number.to_string())).unwrap();
            file.write_all(&[7; 100]).unwrap();
        }
        // Other tests of this process write as well: only these files' counters are still.
        let written = |counted: Counted| {
            let of_here = counted.into_iter().filter(|(_, counts)| (counts.count, counts.bytes) == (1, 100));
            of_here.collect::<std::collections::BTreeMap<_, _>>()
        };
        let in_batches = written(programs.counted().unwrap());
        assert!(in_batches.len() >= 2 * BATCH, "{}", in_batches.len());
        let mut one_by_one = Counted::default();
        let add = |key: &Key, counts: &Counts| drop(one_by_one.insert(*key, counts.into()));
        programs.each_counted_one_by_one(add).unwrap();
        let one_by_one = written(one_by_one);
        let missing = in_batches.iter().filter(|(key, counts)| one_by_one.get(key) != Some(counts)).count();
        assert_eq!(missing, 0);
    }
}
