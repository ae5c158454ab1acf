//! Memory of the BPF programs: the kernel's types, which are read to load them, and their tables, which the kernel charges to
//! the control group of this process. A table that would exceed its limit is made smaller or refused, before anything is made.
//!
//! ```text
//! read and parse the kernel's types     7 x /sys/kernel/btf/vmlinux for a moment, then 4 x until the programs are loaded
//! the tables                            TableSizes: halved until they fit into what is left
//! ```

use super::error::OpenError;
use super::kernel_types::KERNEL_BTF;
use super::tables::CpuCounts;
use aya::Btf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Numbers of entries of the tables that can be smaller. A full table loses events, which each snapshot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableSizes {
    /// Counters of files by process and kind; on each CPU.
    pub counters: usize,
    /// Names of files.
    pub names: usize,
    /// io_uring requests in flight that have no place in the array of them.
    pub requests: usize,
    /// I/Os of libaio in flight.
    pub iocbs: usize,
}

/// Memory for counters on all CPUs. Reads, writes and syncs of a file by a process take 912 bytes each per CPU.
pub(super) const COUNTERS_BYTES_MAX: usize = 64 << 20;
const KEYS_MAX: usize = 32_768;
/// The least on machines of many CPUs, where memory for it is available.
const KEYS_MIN: usize = 2048;
/// A table of fewer counters would be full at once beside a database of a few hundred files.
const KEYS_LEAST: usize = 512;
/// Bytes of an entry in the kernel: of `names`, `requests` and `iocbs` with the hash table's own; of a counter beside the counts.
const NAME_BYTES: usize = 1400;
const REQUEST_BYTES: usize = 96;
const IOCB_BYTES: usize = 144;
const KEY_BYTES: usize = 104;
/// Tables of one size, and the programs: measured 14 MB on Linux 6.18.
const FIXED_BYTES: u64 = 16 << 20;
/// Memory that this process needs beyond that to read the tables, and keep and print their contents.
const RESERVE_BYTES: u64 = 8 << 20;
/// Memory that reading and parsing the kernel's types takes, in sizes of their file: measured 6 on Linux 6.18 (33 MB of 5.5 MB).
const TYPES_TIMES: u64 = 7;
/// Types that are read from a pipe or another file system have no size: that of a large kernel.
const TYPES_BYTES_UNKNOWN: u64 = 6 << 20;

/// One parse at a time: each takes tens of MiB.
static PARSING: Mutex<()> = Mutex::new(());

/// The kernel's types while programs are loaded by them. No other thread parses them meanwhile.
pub(super) struct KernelTypes {
    pub btf: Btf,
    _parsing: MutexGuard<'static, ()>,
}

impl KernelTypes {
    /// Reads and parses them.
    ///
    /// # Errors
    /// [`OpenError::NoBtf`]; [`OpenError::Memory`] where they do not fit into the memory that is left.
    pub fn read() -> Result<KernelTypes, OpenError> {
        let parsing = PARSING.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = std::fs::metadata(KERNEL_BTF).map_or(TYPES_BYTES_UNKNOWN, |file| file.len());
        check(bytes.saturating_mul(TYPES_TIMES), host::available_memory_bytes())?;
        let btf = Btf::from_sys_fs().map_err(|error| OpenError::NoBtf(error.to_string()))?;
        Ok(KernelTypes { btf, _parsing: parsing })
    }
}

impl TableSizes {
    /// As many as are ever useful.
    fn full(cpus: usize) -> TableSizes {
        let counters = (COUNTERS_BYTES_MAX / (size_of::<CpuCounts>() * cpus)).clamp(KEYS_MIN, KEYS_MAX);
        TableSizes { counters, names: 8192, requests: 65_536, iocbs: 32_768 }
    }

    fn halved(self) -> TableSizes {
        TableSizes {
            counters: self.counters / 2,
            names: self.names / 2,
            requests: self.requests / 2,
            iocbs: self.iocbs / 2,
        }
    }

    /// Bytes in the kernel, with the tables of one size.
    fn bytes(self, cpus: usize) -> u64 {
        let counters = self.counters * (size_of::<CpuCounts>() * cpus + KEY_BYTES);
        let others = self.names * NAME_BYTES + self.requests * REQUEST_BYTES + self.iocbs * IOCB_BYTES;
        FIXED_BYTES + (counters + others) as u64
    }

    /// The largest that fit into that many bytes beside what this process needs itself; all of them where nothing is known of that.
    ///
    /// # Errors
    /// [`OpenError::Memory`] where the least do not.
    pub fn fitting(cpus: usize, available_bytes: Option<u64>) -> Result<TableSizes, OpenError> {
        let mut sizes = TableSizes::full(cpus);
        let fits = |sizes: TableSizes| {
            available_bytes.is_none_or(|available| sizes.bytes(cpus) + RESERVE_BYTES <= available)
        };
        while !fits(sizes) {
            let smaller = sizes.halved();
            if smaller.counters < KEYS_LEAST {
                check(sizes.bytes(cpus) + RESERVE_BYTES, available_bytes)?;
                break;
            }
            sizes = smaller;
        }
        Ok(sizes)
    }

    /// A sentence for the notes of the source where these are not all that are ever useful.
    pub fn note(self, cpus: usize) -> Option<String> {
        let is_smaller = self != TableSizes::full(cpus);
        is_smaller.then(|| {
            format!(
                "little memory is left to this program: there is space for {} counters of files by process, and for {} \
                 names of files",
                self.counters, self.names
            )
        })
    }
}

fn check(needed_bytes: u64, available_bytes: Option<u64>) -> Result<(), OpenError> {
    match available_bytes {
        Some(available_bytes) if available_bytes < needed_bytes => {
            Err(OpenError::Memory { needed_bytes, available_bytes })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn tables_are_as_large_as_the_memory_that_is_left_allows() {
        assert_eq!(TableSizes::fitting(2, None).unwrap(), TableSizes::full(2));
        assert_eq!(TableSizes::fitting(2, Some(200 * MIB)).unwrap(), TableSizes::full(2));
        for (available, cpus) in [(35, 2), (60, 2), (100, 2), (64, 16), (200, 128)] {
            let sizes = TableSizes::fitting(cpus, Some(available * MIB)).unwrap();
            assert!(sizes.bytes(cpus) + RESERVE_BYTES <= available * MIB, "{sizes:?}");
            assert!(sizes.counters >= KEYS_LEAST && sizes.note(cpus).is_some(), "{sizes:?}");
        }
        assert_eq!(TableSizes::full(2).note(2), None);
    }

    #[test]
    fn where_the_least_do_not_fit_both_figures_are_named() {
        let error = TableSizes::fitting(2, Some(24 * MIB)).unwrap_err();
        let OpenError::Memory { needed_bytes, available_bytes } = error else { panic!("{error}") };
        assert!(needed_bytes > 24 * MIB && needed_bytes < 32 * MIB && available_bytes == 24 * MIB);
        assert!(error.to_string().contains("and 24 MiB are available"), "{error}");
        assert!(check(7, None).is_ok() && check(7, Some(7)).is_ok() && check(7, Some(6)).is_err());
    }

    #[test]
    fn the_bound_of_counters_holds_up_to_35_cpus() {
        for cpus in 1..=35 {
            assert!(TableSizes::full(cpus).counters * size_of::<CpuCounts>() * cpus <= COUNTERS_BYTES_MAX);
        }
    }
}
