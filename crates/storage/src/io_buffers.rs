use std::io;
use std::ptr::NonNull;

/// Equal buffers in one anonymous mapping, for direct I/O and for registration with a ring as one buffer.
///
/// The kernel writes into them while the program holds no reference, so they are handed out as pointers.
#[derive(Debug)]
pub struct IoBuffers {
    memory: NonNull<u8>,
    bytes: usize,
    stride: usize,
}

// SAFETY: the mapping belongs to this value alone; nothing in it is tied to a thread.
unsafe impl Send for IoBuffers {}

const PAGE_BYTES: usize = 4096;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The huge pages that an administrator set aside (`vm.nr_hugepages`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// Of one of them.
    pub page_bytes: u64,
    /// How many were set aside.
    pub total: u64,
    /// How many nobody uses, with those that may still be made (`vm.nr_overcommit_hugepages`).
    pub free: u64,
}

impl HugePages {
    /// What there is; `None` where the kernel has none.
    pub fn read() -> Option<HugePages> {
        let overcommit = std::fs::read_to_string("/proc/sys/vm/nr_overcommit_hugepages").ok();
        let overcommit = overcommit.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        HugePages::parse(&std::fs::read_to_string("/proc/meminfo").ok()?, overcommit)
    }

    fn parse(meminfo: &str, overcommit: u64) -> Option<HugePages> {
        let number = |name: &str| {
            let rest = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        let made = number("HugePages_Free:")?.saturating_sub(number("HugePages_Rsvd:")?);
        let free = made + overcommit.saturating_sub(number("HugePages_Surp:")?);
        let total = number("HugePages_Total:")?;
        Some(HugePages { page_bytes: number("Hugepagesize:")? << 10, total, free })
    }
}

impl IoBuffers {
    /// `count` buffers of `block_bytes`, each aligned to a page.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn new(count: usize, block_bytes: usize) -> io::Result<IoBuffers> {
        IoBuffers::mapped(count, block_bytes, PAGE_BYTES, 0)
    }

    /// The same in huge pages that were set aside.
    ///
    /// # Errors
    /// Where too few of them are free.
    pub fn in_huge_pages(count: usize, block_bytes: usize) -> io::Result<IoBuffers> {
        // Without an errno, so that it is not taken for a refusal of anything else.
        let lacking = || io::Error::other("too few huge pages are free");
        let pages = HugePages::read().ok_or_else(lacking)?;
        let mapped = IoBuffers::mapped(count, block_bytes, pages.page_bytes as usize, libc::MAP_HUGETLB);
        mapped.map_err(|_| lacking())
    }

    fn mapped(count: usize, block_bytes: usize, page_bytes: usize, flags: i32) -> io::Result<IoBuffers> {
        let stride = block_bytes.next_multiple_of(PAGE_BYTES);
        let bytes = (count * stride).next_multiple_of(page_bytes);
        // SAFETY: a new anonymous mapping, no address asked for.
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
        if flags == 0 && bytes >= HUGE_PAGE_BYTES {
            // SAFETY: advice on our own mapping; whether it is taken does not matter.
            unsafe { libc::madvise(memory, bytes, libc::MADV_HUGEPAGE) };
        }
        let memory = NonNull::new(memory.cast()).expect("mmap gives no null");
        Ok(IoBuffers { memory, bytes, stride })
    }

    /// Start of buffer `at`.
    #[inline]
    pub fn pointer(&self, at: usize) -> *mut u8 {
        debug_assert!((at + 1) * self.stride <= self.bytes, "buffer {at} does not exist");
        // SAFETY: within the mapping, see the assertion.
        unsafe { self.memory.as_ptr().add(at * self.stride) }
    }

    /// From the start of one buffer to that of the next.
    #[inline]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Fills all of them, 8 bytes at a time.
    pub fn fill(&mut self, mut word: impl FnMut() -> u64) {
        // SAFETY: the mapping is `bytes` long, page-aligned, and borrowed mutably here.
        let words =
            unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr().cast::<u64>(), self.bytes / 8) };
        words.iter_mut().for_each(|slot| *slot = word());
    }

    /// Leaves the memory mapped for good, for I/Os that can no longer be waited for.
    pub fn leak(&mut self) {
        self.bytes = 0;
    }

    /// The whole mapping, to be registered.
    pub fn as_iovec(&self) -> libc::iovec {
        libc::iovec { iov_base: self.memory.as_ptr().cast(), iov_len: self.bytes }
    }
}

impl Drop for IoBuffers {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        // SAFETY: our own mapping, unmapped once. Whoever submits I/O waits for it before dropping.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_that_are_promised_to_somebody_are_not_free() {
        let text = "HugePages_Total:      16\nHugePages_Free:       12\nHugePages_Rsvd:        5\nHugePages_Surp:        1\nHugepagesize:       2048 kB\n";
        assert_eq!(HugePages::parse(text, 0), Some(HugePages { page_bytes: 2 << 20, total: 16, free: 7 }));
        assert_eq!(HugePages::parse(text, 4), Some(HugePages { page_bytes: 2 << 20, total: 16, free: 10 }));
        assert_eq!(HugePages::parse("MemTotal: 1 kB\n", 4), None);
    }
}
