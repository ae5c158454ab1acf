//! Evicted pages are out of memory: reads of an experiment would measure the page cache otherwise.

use everyday::PageCache;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;

const BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4096;

fn resident_pages(path: &Path) -> usize {
    let file = File::open(path).unwrap();
    let mut pages = vec![0_u8; BYTES / PAGE_BYTES];
    // SAFETY: the mapping is read-only, never dereferenced, of the file's size, and unmapped at the end;
    // mincore writes one byte for each page of it, which `pages` has room for.
    unsafe {
        let map =
            libc::mmap(std::ptr::null_mut(), BYTES, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(map, libc::MAP_FAILED);
        assert_eq!(libc::mincore(map, BYTES, pages.as_mut_ptr()), 0);
        assert_eq!(libc::munmap(map, BYTES), 0);
    }
    pages.iter().filter(|page| **page & 1 == 1).count()
}

#[test]
fn an_evicted_file_is_out_of_memory() {
    // The build directory: the system's temporary one may be in memory altogether.
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("evicted-{}", std::process::id()));
    fs::write(&path, vec![7; BYTES]).unwrap();
    let before = resident_pages(&path);
    let cache = PageCache::open(&path).unwrap();
    cache.write_out().unwrap();
    cache.evict().unwrap();
    let after = resident_pages(&path);
    fs::remove_file(&path).unwrap();
    assert_eq!((before, after), (BYTES / PAGE_BYTES, 0));
}
