use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Equal buffers in one anonymous mapping, for direct I/O and for registration with a ring as one buffer.
///
/// The kernel writes into them while the program holds no reference, so they are handed out as pointers.
#[derive(Debug)]
pub struct IoBuffers {
    mapping: Arc<Mapping>,
    start: NonNull<u8>,
    bytes: usize,
    stride: usize,
}

// SAFETY: the buffers belong to this value alone; nothing in them is tied to a thread.
unsafe impl Send for IoBuffers {}

#[derive(Debug)]
struct Mapping {
    memory: NonNull<u8>,
    bytes: usize,
    leaked: AtomicBool,
}

// SAFETY: nothing is read or written by way of it; it is unmapped once, by the last of its buffers' owners.
unsafe impl Send for Mapping {}
// SAFETY: the same.
unsafe impl Sync for Mapping {}

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
        let bytes = IoBuffers::bytes_of(count as u64, block_bytes as u64) as usize;
        let mapping = if bytes.is_multiple_of(HUGE_PAGE_BYTES) {
            Mapping::new(bytes + HUGE_PAGE_BYTES, 0)?.at_huge_page()
        } else {
            Mapping::new(bytes, 0)?
        };
        Ok(IoBuffers::of(mapping, block_bytes))
    }

    /// Memory that [`IoBuffers::new`] takes for so many: whole huge pages, unless they are few and of one page.
    ///
    /// A direct I/O out of ordinary pages has a segment for each, which costs the host of a virtual disk time and
    /// cuts a large one into several requests; with huge pages for many buffers alone a curve would jump where they
    /// become many.
    pub fn bytes_of(count: u64, block_bytes: u64) -> u64 {
        let stride = block_bytes.next_multiple_of(PAGE_BYTES as u64);
        let bytes = count * stride;
        let huge = stride > PAGE_BYTES as u64 || bytes >= HUGE_PAGE_BYTES as u64;
        if huge { bytes.next_multiple_of(HUGE_PAGE_BYTES as u64) } else { bytes }
    }

    /// The same in huge pages that were set aside.
    ///
    /// # Errors
    /// Where too few of them are free.
    pub fn in_huge_pages(count: usize, block_bytes: usize) -> io::Result<IoBuffers> {
        // Without an errno, so that it is not taken for a refusal of anything else.
        let lacking = || io::Error::other("too few huge pages are free");
        let pages = HugePages::read().ok_or_else(lacking)?;
        let bytes =
            (count * block_bytes.next_multiple_of(PAGE_BYTES)).next_multiple_of(pages.page_bytes as usize);
        let mapping = Mapping::new(bytes, libc::MAP_HUGETLB).map_err(|_| lacking())?;
        Ok(IoBuffers::of(mapping, block_bytes))
    }

    fn of(mapping: Mapping, block_bytes: usize) -> IoBuffers {
        let (start, bytes) = (mapping.memory, mapping.bytes);
        IoBuffers {
            mapping: Arc::new(mapping),
            start,
            bytes,
            stride: block_bytes.next_multiple_of(PAGE_BYTES),
        }
    }

    /// Gives each of `owners` as many of the buffers. What remains is nobody's.
    ///
    /// # Panics
    /// Where there are not so many.
    pub fn share(self, owners: usize, each: usize) -> Vec<IoBuffers> {
        let bytes = each * self.stride;
        assert!(owners * bytes <= self.bytes, "{owners} times {each} buffers are more than there are");
        let part = |at| {
            // SAFETY: within the mapping, see the assertion.
            let start = unsafe { self.start.add(at * bytes) };
            IoBuffers { mapping: self.mapping.clone(), start, bytes, stride: self.stride }
        };
        (0..owners).map(part).collect()
    }

    /// Start of buffer `at`.
    #[inline]
    pub fn pointer(&self, at: usize) -> *mut u8 {
        debug_assert!((at + 1) * self.stride <= self.bytes, "buffer {at} does not exist");
        // SAFETY: within the mapping, see the assertion.
        unsafe { self.start.as_ptr().add(at * self.stride) }
    }

    /// From the start of one buffer to that of the next.
    #[inline]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Leaves the memory mapped for good, for I/Os that can no longer be waited for.
    pub fn leak(&self) {
        self.mapping.leaked.store(true, Ordering::Relaxed);
    }

    /// All of them, to be registered.
    pub fn as_iovec(&self) -> libc::iovec {
        libc::iovec { iov_base: self.start.as_ptr().cast(), iov_len: self.bytes }
    }
}

impl Mapping {
    fn new(bytes: usize, flags: i32) -> io::Result<Mapping> {
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
        let memory = NonNull::new(memory.cast()).expect("mmap gives no null");
        Ok(Mapping { memory, bytes, leaked: AtomicBool::new(false) })
    }

    /// Gives back what lies around the whole huge pages (kernels differ in whether they begin a mapping at one), one
    /// huge page in all, and asks for huge pages.
    fn at_huge_page(mut self) -> Mapping {
        let before = self.memory.as_ptr().align_offset(HUGE_PAGE_BYTES);
        let bytes = self.bytes - HUGE_PAGE_BYTES;
        // SAFETY: `before` is less than a huge page, and the mapping one longer than `bytes`. The pages given back are
        // our own and nobody has seen them; whether the advice is taken does not matter.
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

    #[test]
    fn one_buffer_of_several_pages_lies_in_a_huge_page() {
        for (count, block_bytes, bytes) in [
            (1, 512, 4096),
            (8, 4096, 32 << 10),
            (1, 8192, 2 << 20),
            (3, 1 << 20, 4 << 20),
            (512, 4096, 2 << 20),
        ] {
            assert_eq!(IoBuffers::bytes_of(count, block_bytes), bytes);
            let buffers = IoBuffers::new(count as usize, block_bytes as usize).unwrap();
            assert_eq!(buffers.as_iovec().iov_len as u64, bytes);
            assert!(bytes < 2 << 20 || buffers.pointer(0).addr().is_multiple_of(HUGE_PAGE_BYTES));
        }
    }

    #[test]
    fn shared_buffers_lie_apart_and_outlive_each_other() {
        let mut parts = IoBuffers::new(6, 8192).unwrap().share(3, 2);
        let pointers: Vec<*mut u8> =
            parts.iter().flat_map(|part| [part.pointer(0), part.pointer(1)]).collect();
        assert!(pointers.windows(2).all(|pair| pair[1].addr() - pair[0].addr() == 8192));
        let last = parts.pop().unwrap();
        drop(parts);
        // SAFETY: the last part's own buffer.
        unsafe { last.pointer(1).add(8191).write(7) };
    }
}
