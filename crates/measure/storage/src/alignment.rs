use crate::buffer::AlignedBuffer;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// What direct I/O on a file must be multiples of.
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

/// The alignment that direct I/O on `file` needs; `None` if every I/O goes through the page cache.
///
/// The kernel says so since Linux 6.1 (`STATX_DIOALIGN`). Before that, and on file systems that do not tell,
/// real reads are tried: some accept `O_DIRECT` at open and refuse the transfer.
pub(crate) fn of_file(file: &File, filesystem: Option<&str>) -> Option<Alignment> {
    if filesystem.is_some_and(|name| IN_MEMORY.contains(&name)) {
        return None;
    }
    match from_statx(file) {
        Some(told) => told,
        None => from_transfers(file, filesystem),
    }
}

/// The same for a file of our own: it gets content first where only trying tells.
pub(crate) fn of_new_file(file: &File, filesystem: Option<&str>) -> io::Result<Option<Alignment>> {
    let in_memory = filesystem.is_some_and(|name| IN_MEMORY.contains(&name));
    if !in_memory && from_statx(file).is_none() {
        file.write_all_at(&[0x5a; 16 << 10], 0)?;
        file.sync_data()?;
    }
    Ok(of_file(file, filesystem))
}

/// Why `of_file` found no direct I/O.
pub(crate) fn refusal(filesystem: Option<&str>) -> String {
    match filesystem {
        Some(name) if IN_MEMORY.contains(&name) => format!("{name} keeps its files in memory"),
        Some(name) => format!("{name} does not offer it here"),
        None => "the kernel does not offer it here".into(),
    }
}

/// `None`: the kernel does not tell; `Some(None)`: it tells that there is no direct I/O.
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
        // At an offset that is no multiple of anything larger; at the start any alignment would pass.
        matches!(direct.read_at(&mut buffer, u64::from(align)), Ok(read) if read > 0)
    };
    // btrfs does what is not aligned to its sectors through the page cache, without a word.
    let smallest = if filesystem == Some("btrfs") { 4096 } else { 512 };
    let align = TRIED_BYTES.into_iter().filter(|align| *align >= smallest).find(|align| works(*align))?;
    Some(Alignment { offset_bytes: align, memory_bytes: align })
}

/// The same file (also one that has no name any more) opened anew, with other flags.
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
        assert_eq!(of_file(&file, Some("tmpfs")), None);
        assert_eq!(refusal(Some("tmpfs")), "tmpfs keeps its files in memory");
    }
}
