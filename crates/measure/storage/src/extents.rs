use rustix::fs::SeekFrom;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Bytes of a file that were never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unwritten {
    /// In holes.
    pub hole_bytes: u64,
    /// Allocated.
    pub unwritten_bytes: u64,
}

impl Unwritten {
    /// Scans the first `bytes` bytes of `file` by the file system's extents (FIEMAP), or by its holes where there is no list
    /// of extents.
    pub fn scan(file: &File, bytes: u64) -> io::Result<Unwritten> {
        Unwritten::scan_with(file, bytes, FLAG_SYNC)
    }

    /// Scans without writing dirty pages first: those that have no extent yet count as never written.
    pub fn scan_unsynced(file: &File, bytes: u64) -> io::Result<Unwritten> {
        Unwritten::scan_with(file, bytes, 0)
    }

    fn scan_with(file: &File, bytes: u64, flags: u32) -> io::Result<Unwritten> {
        match by_extents(file, bytes, flags) {
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL)) =>
            {
                by_holes(file, bytes)
            }
            result => result,
        }
    }

    pub fn total_bytes(&self) -> u64 {
        self.hole_bytes + self.unwritten_bytes
    }
}

const EXTENTS_AT_ONCE: usize = 256;
/// `_IOWR('f', 11, struct fiemap)` of linux/fs.h.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// Writes dirty pages first: they may have no extent yet.
const FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_UNWRITTEN: u32 = 0x800;

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` of linux/fiemap.h.
#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS_AT_ONCE],
}

fn by_extents(file: &File, bytes: u64, flags: u32) -> io::Result<Unwritten> {
    let mut found = Unwritten::default();
    let mut at = 0;
    while at < bytes {
        let mut map = Map {
            start: at,
            length: bytes - at,
            flags: if at == 0 { flags } else { 0 },
            mapped_extents: 0,
            extent_count: EXTENTS_AT_ONCE as u32,
            reserved: 0,
            extents: [Extent::default(); EXTENTS_AT_ONCE],
        };
        // SAFETY: `map` is a `struct fiemap` with room for the `extent_count` extents it announces, and
        // outlives the call.
        if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = &map.extents[..(map.mapped_extents as usize).min(EXTENTS_AT_ONCE)];
        let last = mapped.last().is_none_or(|extent| extent.flags & EXTENT_LAST != 0);
        let reached = add(&mut found, at, bytes, mapped);
        // On a broken file system, an extent that does not advance would loop for ever.
        if last || reached <= at {
            found.hole_bytes += bytes - reached;
            break;
        }
        at = reached;
    }
    Ok(found)
}

/// Counts from `at` to the end of the last extent, which it returns, `bytes` at most.
fn add(found: &mut Unwritten, at: u64, bytes: u64, extents: &[Extent]) -> u64 {
    let mut reached = at;
    for extent in extents {
        let begin = extent.logical.clamp(reached, bytes);
        let end = extent.logical.saturating_add(extent.length).clamp(begin, bytes);
        found.hole_bytes += begin - reached;
        if extent.flags & EXTENT_UNWRITTEN != 0 {
            found.unwritten_bytes += end - begin;
        }
        reached = end;
    }
    reached
}

fn by_holes(file: &File, bytes: u64) -> io::Result<Unwritten> {
    let mut found = Unwritten::default();
    let mut at = 0;
    while at < bytes {
        let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.min(bytes),
            Err(rustix::io::Errno::NXIO) => bytes,
            Err(error) => return Err(error.into()),
        };
        found.hole_bytes += data.saturating_sub(at);
        if data >= bytes {
            break;
        }
        at = rustix::fs::seek(file, SeekFrom::Hole(data))?.max(data + 1);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const MIB: u64 = 1 << 20;

    /// 1 MiB written, 1 MiB allocated, 2 MiB of holes.
    fn file_in(directory: &str) -> Option<File> {
        let file = tempfile::tempfile_in(directory).ok()?;
        file.set_len(4 * MIB).unwrap();
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), MIB, MIB).ok()?;
        file.write_all_at(&vec![1; MIB as usize], 0).unwrap();
        Some(file)
    }

    #[test]
    fn holes_and_unwritten_extents_are_counted_apart() {
        let Some(file) = file_in(".") else {
            eprintln!("skipped: no preallocation here");
            return;
        };
        match by_extents(&file, 4 * MIB, FLAG_SYNC) {
            Ok(found) => {
                assert_eq!(found, Unwritten { hole_bytes: 2 * MIB, unwritten_bytes: MIB });
                file.write_all_at(&vec![1; 3 * MIB as usize], MIB).unwrap();
                assert_eq!(by_extents(&file, 4 * MIB, FLAG_SYNC).unwrap().total_bytes(), 0);
            }
            Err(error) => eprintln!("skipped: no list of extents here ({error})"),
        }
    }

    #[test]
    fn a_file_system_without_a_list_of_extents_still_shows_holes() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.set_len(4 * MIB).unwrap();
        file.write_all_at(&vec![1; MIB as usize], MIB).unwrap();
        let found = Unwritten::scan(&file, 4 * MIB).unwrap();
        assert_eq!(found, Unwritten { hole_bytes: 3 * MIB, unwritten_bytes: 0 });
    }

    #[test]
    fn extents_that_overlap_or_reach_past_the_end_count_once() {
        let extent = |logical, length, flags| Extent { logical, length, flags, ..Extent::default() };
        let mut found = Unwritten::default();
        let extents = [extent(10, 20, EXTENT_UNWRITTEN), extent(20, 20, 0), extent(90, u64::MAX, 0x800)];
        assert_eq!(add(&mut found, 0, 100, &extents), 100);
        assert_eq!(found, Unwritten { hole_bytes: 10 + 50, unwritten_bytes: 20 + 10 });
    }
}
