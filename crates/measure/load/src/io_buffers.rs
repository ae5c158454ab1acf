use std::collections::HashMap;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Equal buffers in one anonymous mapping, for direct I/O and for registration with a ring as one buffer.
///
/// A ring owns its buffers and accesses them by pointers, since the kernel writes into them at any time.
#[derive(Debug)]
pub struct IoBuffers {
    mapping: Arc<Mapping>,
    start: NonNull<u8>,
    bytes: usize,
    stride: usize,
}

// SAFETY: no other value accesses these bytes of the mapping, and they are not tied to a thread.
unsafe impl Send for IoBuffers {}

#[derive(Debug)]
struct Mapping {
    memory: NonNull<u8>,
    bytes: usize,
    leaked: AtomicBool,
}

// SAFETY: no memory is accessed through it; the last owner unmaps it, once.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

const PAGE_BYTES: usize = 4096;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The huge pages that an administrator has reserved (`vm.nr_hugepages`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// Size of a page.
    pub page_bytes: u64,
    /// Reserved pages.
    pub total: u64,
    /// Pages that can be allocated: unused ones, and those that `vm.nr_overcommit_hugepages` permits.
    pub free: u64,
}

impl HugePages {
    /// Those of this host; `None` where the kernel has no huge pages.
    pub fn read() -> Option<HugePages> {
        let overcommit = std::fs::read_to_string("/proc/sys/vm/nr_overcommit_hugepages").ok();
        let overcommit = overcommit.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        HugePages::new(&host::memory_figures(), overcommit)
    }

    fn new(memory: &HashMap<String, u64>, overcommit: u64) -> Option<HugePages> {
        let number = |name: &str| memory.get(name).copied();
        let made = number("HugePages_Free")?.saturating_sub(number("HugePages_Rsvd")?);
        let free = made + overcommit.saturating_sub(number("HugePages_Surp")?);
        let total = number("HugePages_Total")?;
        Some(HugePages { page_bytes: number("Hugepagesize")?, total, free })
    }
}

impl IoBuffers {
    /// `count` buffers of `block_bytes`, each aligned to a page.
    ///
    /// # Errors
    /// Where the memory cannot be mapped.
    pub fn new(count: usize, block_bytes: usize) -> io::Result<IoBuffers> {
        let bytes = IoBuffers::allocated_bytes(count as u64, block_bytes as u64) as usize;
        let mapping = if bytes.is_multiple_of(HUGE_PAGE_BYTES) {
            Mapping::new(bytes + HUGE_PAGE_BYTES, 0)?.at_huge_page()
        } else {
            Mapping::new(bytes, 0)?
        };
        Ok(IoBuffers::from_mapping(mapping, block_bytes))
    }

    /// Bytes that [`IoBuffers::new`] maps: whole huge pages, except for a few buffers of one page each.
    ///
    /// A direct I/O from ordinary pages has a segment for each page, which costs the host of a virtual disk time and
    /// splits a large I/O into several requests. If only many buffers were in huge pages, a curve would jump at the
    /// depth where they begin.
    pub fn allocated_bytes(count: u64, block_bytes: u64) -> u64 {
        let stride = block_bytes.next_multiple_of(PAGE_BYTES as u64);
        let bytes = count * stride;
        let huge = stride > PAGE_BYTES as u64 || bytes >= HUGE_PAGE_BYTES as u64;
        if huge { bytes.next_multiple_of(HUGE_PAGE_BYTES as u64) } else { bytes }
    }

    /// Allocates the buffers in reserved huge pages.
    ///
    /// # Errors
    /// Where too few of them are free.
    pub fn in_huge_pages(count: usize, block_bytes: usize) -> io::Result<IoBuffers> {
        // Without an errno: the caller must not take it for a refusal of io_uring.
        let lacking = || io::Error::other("too few huge pages are free");
        let pages = HugePages::read().ok_or_else(lacking)?;
        let bytes =
            (count * block_bytes.next_multiple_of(PAGE_BYTES)).next_multiple_of(pages.page_bytes as usize);
        let mapping = Mapping::new(bytes, libc::MAP_HUGETLB).map_err(|_| lacking())?;
        Ok(IoBuffers::from_mapping(mapping, block_bytes))
    }

    fn from_mapping(mapping: Mapping, block_bytes: usize) -> IoBuffers {
        let (start, bytes) = (mapping.memory, mapping.bytes);
        IoBuffers {
            mapping: Arc::new(mapping),
            start,
            bytes,
            stride: block_bytes.next_multiple_of(PAGE_BYTES),
        }
    }

    /// Splits off `each` buffers for each of `owners`; the rest stays unused.
    ///
    /// # Panics
    /// If there are fewer buffers.
    pub fn split(self, owners: usize, each: usize) -> Vec<IoBuffers> {
        let bytes = each * self.stride;
        assert!(owners * bytes <= self.bytes, "{owners} times {each} buffers are more than there are");
        let part = |at| {
            // SAFETY: within the mapping, as asserted.
            let start = unsafe { self.start.add(at * bytes) };
            IoBuffers { mapping: self.mapping.clone(), start, bytes, stride: self.stride }
        };
        (0..owners).map(part).collect()
    }

    /// Start of buffer 0.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The first `bytes` bytes of buffer `at`.
    ///
    /// # Panics
    /// If there is no such buffer, or it is shorter.
    pub fn block_mut(&mut self, at: usize, bytes: usize) -> &mut [u8] {
        assert!(
            bytes <= self.stride && (at + 1) * self.stride <= self.bytes,
            "buffer {at} holds no {bytes} bytes"
        );
        // SAFETY: the range lies in the mapping, as asserted, and is initialized: the kernel maps zeros. The buffers are
        // borrowed mutably for as long as the slice exists, and a ring that the kernel writes for never calls this.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(at * self.stride), bytes) }
    }

    /// The first `bytes` bytes of buffers 0 and 1.
    ///
    /// # Panics
    /// If there are no two buffers, or they are shorter.
    #[inline]
    pub fn two_blocks_mut(&mut self, bytes: usize) -> (&mut [u8], &mut [u8]) {
        assert!(bytes <= self.stride && 2 * self.stride <= self.bytes, "no two buffers of {bytes} bytes");
        let start = self.start.as_ptr();
        // SAFETY: as in `block_mut`; the ranges do not overlap, since neither is longer than the stride.
        unsafe {
            let second = start.add(self.stride);
            (std::slice::from_raw_parts_mut(start, bytes), std::slice::from_raw_parts_mut(second, bytes))
        }
    }

    /// From the start of one buffer to that of the next.
    #[inline]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Keeps the memory mapped for ever, for I/Os that can no longer be waited for.
    pub fn leak(&self) {
        self.mapping.leaked.store(true, Ordering::Relaxed);
    }

    /// All buffers, for registration.
    pub fn as_iovec(&self) -> libc::iovec {
        libc::iovec { iov_base: self.start.as_ptr().cast(), iov_len: self.bytes }
    }
}

impl Mapping {
    fn new(bytes: usize, flags: i32) -> io::Result<Mapping> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).expect("mmap gives no null");
        Ok(Mapping { memory, bytes, leaked: AtomicBool::new(false) })
    }

    /// Unmaps what lies before and behind the whole huge pages, one huge page in total (kernels differ in whether a
    /// mapping begins at one), and advises huge pages for the rest.
    fn at_huge_page(mut self) -> Mapping {
        let before = self.memory.as_ptr().align_offset(HUGE_PAGE_BYTES);
        let bytes = self.bytes - HUGE_PAGE_BYTES;
        // SAFETY: `before` is less than a huge page, and the mapping is one huge page longer than `bytes`. No pointer to
        // the unmapped pages exists. The advice may be ignored.
        unsafe {
            let memory = self.memory.add(before);
            if before > 0 {
                libc::munmap(self.memory.as_ptr().cast(), before);
            }
            libc::munmap(memory.add(bytes).as_ptr().cast(), HUGE_PAGE_BYTES - before);
            libc::madvise(memory.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            (self.memory, self.bytes) = (memory, bytes);
        }
        self
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if *self.leaked.get_mut() {
            return;
        }
        // SAFETY: a mapping of this value, unmapped once. A ring waits for its I/Os before it drops its buffers.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_huge_pages_are_not_free() {
        let figures = [
            ("HugePages_Total", 16),
            ("HugePages_Free", 12),
            ("HugePages_Rsvd", 5),
            ("HugePages_Surp", 1),
            ("Hugepagesize", 2 << 20),
        ];
        let memory = HashMap::from(figures.map(|(name, figure)| (name.to_owned(), figure)));
        assert_eq!(HugePages::new(&memory, 0), Some(HugePages { page_bytes: 2 << 20, total: 16, free: 7 }));
        assert_eq!(HugePages::new(&memory, 4), Some(HugePages { page_bytes: 2 << 20, total: 16, free: 10 }));
        assert_eq!(HugePages::new(&HashMap::new(), 4), None);
    }

    #[test]
    fn one_buffer_of_several_pages_lies_in_a_huge_page() {
        for (count, block_bytes, bytes) in [
            (1, 512, 4096),
            (8, 4096, 32 << 10),
            (1, 8192, 2 << 20),
            (3, 1 << 20, 4 << 20),
            (512, 4096, 2 << 20),
        ] {
            assert_eq!(IoBuffers::allocated_bytes(count, block_bytes), bytes);
            let buffers = IoBuffers::new(count as usize, block_bytes as usize).unwrap();
            assert_eq!(buffers.as_iovec().iov_len as u64, bytes);
            assert!(bytes < 2 << 20 || buffers.start().addr().is_multiple_of(HUGE_PAGE_BYTES));
        }
    }

    #[test]
    #[should_panic(expected = "buffer 2 holds no 512 bytes")]
    fn a_buffer_that_does_not_exist_is_refused() {
        IoBuffers::new(2, 4096).unwrap().block_mut(2, 512);
    }

    #[test]
    fn shared_buffers_do_not_overlap_and_outlive_each_other() {
        // In ordinary pages: Miri cannot unmap a part of a mapping.
        let mut parts = IoBuffers::new(6, 4096).unwrap().split(3, 2);
        let mut addresses = Vec::new();
        for part in &mut parts {
            let (first, second) = part.two_blocks_mut(4096);
            addresses.extend([first.as_ptr().addr(), second.as_ptr().addr()]);
        }
        assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] == 4096));
        let mut last = parts.pop().unwrap();
        drop(parts);
        last.block_mut(1, 4096).fill(7);
    }
}
