use crate::buffer::AlignedBuffer;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Alignment that direct I/O on a file requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alignment {
    /// Offsets and lengths.
    pub offset_bytes: u32,
    /// Addresses of buffers.
    pub memory_bytes: u32,
}

/// File systems whose files are the page cache. Since Linux 6.6 tmpfs accepts `O_DIRECT` and copies memory
/// all the same: there is no storage that a direct I/O could reach.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "hugetlbfs", "devtmpfs"];

/// The alignments tried where the kernel does not say, smallest first.
const TRIED_BYTES: [u32; 2] = [512, 4096];

/// The alignment that direct I/O on `file` requires; `None` if every I/O uses the page cache.
///
/// The kernel reports it since Linux 6.1 (`STATX_DIOALIGN`). Before that, and on file systems that do not report it,
/// reads are tried: some accept `O_DIRECT` at open and refuse the transfer.
pub(crate) fn for_file(file: &File, filesystem: Option<&str>) -> Option<Alignment> {
    if filesystem.is_some_and(|name| IN_MEMORY.contains(&name)) {
        return None;
    }
    match from_statx(file) {
        Some(reported) => reported,
        None => from_transfers(file, filesystem),
    }
}

/// Alignment for a new, empty file, which is given content first where reads must be tried.
pub(crate) fn for_new_file(file: &File, filesystem: Option<&str>) -> io::Result<Option<Alignment>> {
    let in_memory = filesystem.is_some_and(|name| IN_MEMORY.contains(&name));
    if !in_memory && from_statx(file).is_none() {
        file.write_all_at(&[0x5a; 16 << 10], 0)?;
        file.sync_data()?;
    }
    Ok(for_file(file, filesystem))
}

/// Why `for_file` found no direct I/O.
pub(crate) fn refusal(filesystem: Option<&str>) -> String {
    match filesystem {
        Some(name) if IN_MEMORY.contains(&name) => format!("{name} keeps its files in memory"),
        Some(name) => format!("{name} does not offer it here"),
        None => "the kernel does not offer it here".into(),
    }
}

/// `None`: not reported; `Some(None)`: reported that there is no direct I/O.
fn from_statx(file: &File) -> Option<Option<Alignment>> {
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    if stat.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return None;
    }
    let usable = stat.stx_dio_offset_align.is_power_of_two() && stat.stx_dio_mem_align.is_power_of_two();
    Some(usable.then_some(Alignment {
        offset_bytes: stat.stx_dio_offset_align,
        memory_bytes: stat.stx_dio_mem_align,
    }))
}

fn from_transfers(file: &File, filesystem: Option<&str>) -> Option<Alignment> {
    let direct = reopen(file, OFlags::RDONLY | OFlags::DIRECT).ok()?;
    let works = |align: u32| {
        let mut buffer = AlignedBuffer::new(align as usize, align as usize);
        // At an offset that is not a multiple of a larger alignment; offset 0 would fit any.
        matches!(direct.read_at(&mut buffer, u64::from(align)), Ok(read) if read > 0)
    };
    // btrfs executes I/Os that are not aligned to its sectors through the page cache, without an error.
    let smallest = if filesystem == Some("btrfs") { 4096 } else { 512 };
    let align = TRIED_BYTES.into_iter().filter(|align| *align >= smallest).find(|align| works(*align))?;
    Some(Alignment { offset_bytes: align, memory_bytes: align })
}

/// Opens the same file again with other flags, also if it has no name any more.
pub(crate) fn reopen(file: &File, flags: OFlags) -> rustix::io::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).map(File::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_agrees_with_what_the_kernel_tells() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[1; 65_536], 0).unwrap();
        file.sync_all().unwrap();
        let Some(Some(told)) = from_statx(&file) else {
            eprintln!("skipped: this kernel or file system does not tell");
            return;
        };
        let tried = from_transfers(&file, None).unwrap();
        assert!(tried.offset_bytes >= told.offset_bytes, "tried {tried:?}, told {told:?}");
        assert!(tried.memory_bytes >= told.memory_bytes);
        assert_eq!(from_transfers(&file, Some("btrfs")).unwrap().offset_bytes, 4096);
    }

    #[test]
    fn a_file_in_memory_has_no_direct_io_though_the_kernel_may_accept_it() {
        let Ok(file) = tempfile::tempfile_in("/dev/shm") else {
            eprintln!("skipped: no /dev/shm");
            return;
        };
        file.write_all_at(&[1; 65_536], 0).unwrap();
        assert_eq!(for_file(&file, Some("tmpfs")), None);
        assert_eq!(refusal(Some("tmpfs")), "tmpfs keeps its files in memory");
    }
}
