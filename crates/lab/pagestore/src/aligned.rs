//! Memory at addresses that direct I/O takes.

use std::ptr::NonNull;

/// Direct I/O on every device we know takes memory, offsets and lengths at multiples of this.
pub(crate) const ALIGNMENT: usize = 4096;

/// Whether direct I/O can use these bytes as they are.
pub(crate) fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().addr().is_multiple_of(ALIGNMENT)
}

/// A buffer of fixed capacity at an aligned address.
pub(crate) struct AlignedBuffer {
    raw: Box<[u8]>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// An empty one that can hold `capacity` bytes.
    pub(crate) fn new(capacity: usize) -> Self {
        let raw = vec![0; capacity + ALIGNMENT].into_boxed_slice();
        let start = raw.as_ptr().addr().next_multiple_of(ALIGNMENT) - raw.as_ptr().addr();
        Self { raw, start, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn capacity(&self) -> usize {
        self.raw.len() - ALIGNMENT
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.raw[self.start..self.start + self.len]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.raw[self.start..self.start + self.len]
    }

    /// Appends; panics over the capacity, which the caller has checked.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let at = self.len;
        self.resize(at + bytes.len());
        self.bytes_mut()[at..].copy_from_slice(bytes);
    }

    /// Sets the length; what is new holds whatever was there.
    pub(crate) fn resize(&mut self, len: usize) {
        assert!(len <= self.capacity(), "an aligned buffer of {} bytes cannot hold {len}", self.capacity());
        self.len = len;
    }

    /// Appends `bytes` zeros.
    pub(crate) fn extend_zeros(&mut self, bytes: usize) {
        let at = self.len;
        self.resize(at + bytes);
        self.bytes_mut()[at..].fill(0);
    }
}

/// What processors call a large page.
const PIECE_BYTES: usize = 2 << 20;

/// Memory of one piece, where the kernel has it to give: a large read into pages of 4 KiB that lie anywhere takes a virtual
/// disk half as long again.
pub(crate) struct InOnePiece {
    mapping: NonNull<libc::c_void>,
    mapped: usize,
    start: usize,
    len: usize,
}

// SAFETY: the memory belongs to the mapping and not to a thread.
unsafe impl Send for InOnePiece {}

impl InOnePiece {
    /// So many bytes, zeros at first.
    pub(crate) fn new(len: usize) -> Self {
        // What lies before and after is not touched, and takes none.
        let mapped = len.next_multiple_of(PIECE_BYTES) + PIECE_BYTES;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), mapped, protection, flags, -1, 0) };
        assert!(at != libc::MAP_FAILED, "no memory: {}", std::io::Error::last_os_error());
        let mapping = NonNull::new(at).expect("nothing is mapped at address 0");
        let start = at.addr().next_multiple_of(PIECE_BYTES) - at.addr();
        // What is smaller shall not take a whole large page, which some systems give to whoever begins at one.
        let advice = if len >= PIECE_BYTES { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: a part of an own mapping. Where the kernel does not do it, the memory is as any other.
        unsafe { libc::madvise(at.byte_add(start), mapped - PIECE_BYTES, advice) };
        Self { mapping, mapped, start, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: it lies in an own mapping, holds zeros or what was written there, and is borrowed as this is.
        unsafe {
            let start = self.mapping.as_ptr().byte_add(self.start);
            std::slice::from_raw_parts(start.cast(), self.len)
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: it lies in an own mapping, holds zeros or what was written there, and is borrowed as this is.
        unsafe {
            let start = self.mapping.as_ptr().byte_add(self.start);
            std::slice::from_raw_parts_mut(start.cast(), self.len)
        }
    }
}

impl Drop for InOnePiece {
    fn drop(&mut self) {
        // SAFETY: an own mapping that nothing refers to any more. It cannot fail for a mapping that is there.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.mapped) };
    }
}
