//! Memory that is aligned for direct I/O.

use memmap2::{Advice, MmapMut};

/// Memory addresses, offsets and lengths at multiples of this are accepted for direct I/O by every device we know.
pub(crate) const ALIGNMENT: usize = 4096;

/// Whether direct I/O can use these bytes directly.
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
    /// An empty buffer with a capacity of `capacity` bytes.
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

    /// Appends; panics beyond the capacity, which the caller has checked.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let at = self.len;
        self.resize(at + bytes.len());
        self.bytes_mut()[at..].copy_from_slice(bytes);
    }

    /// Sets the length; new bytes keep whatever the memory contains.
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

/// A huge page on common processors.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A buffer in huge pages if the kernel has any: a large read into scattered pages of 4 KiB takes a virtual disk
/// half as long again.
pub(crate) struct HugePageBuffer {
    mapping: MmapMut,
    start: usize,
    len: usize,
}

impl HugePageBuffer {
    /// A buffer of `len` zeros.
    pub(crate) fn new(len: usize) -> Self {
        // The padding before and after the buffer is never touched, so it uses no memory.
        let mapped = len.next_multiple_of(HUGE_PAGE_BYTES) + HUGE_PAGE_BYTES;
        let mapping = MmapMut::map_anon(mapped).unwrap_or_else(|error| panic!("no memory: {error}"));
        let start = mapping.as_ptr().addr().next_multiple_of(HUGE_PAGE_BYTES) - mapping.as_ptr().addr();
        // A smaller buffer must not use a whole huge page, which some systems provide for any mapping that begins
        // at one.
        let advice = if len >= HUGE_PAGE_BYTES { Advice::HugePage } else { Advice::NoHugePage };
        // Miri knows no advice.
        if !cfg!(miri) {
            // If the kernel ignores the advice, the memory is as usable.
            let _ = mapping.advise_range(advice, start, mapped - HUGE_PAGE_BYTES);
        }
        Self { mapping, start, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.mapping[self.start..self.start + self.len]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.mapping[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_zeros_at_an_aligned_address_and_is_written_to_its_end() {
        for len in [1, ALIGNMENT, HUGE_PAGE_BYTES + 1] {
            let mut buffer = HugePageBuffer::new(len);
            assert!(
                buffer.bytes().len() == len && buffer.bytes().iter().rev().take(9).all(|byte| *byte == 0)
            );
            assert!(buffer.bytes().as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES));
            buffer.bytes_mut()[len - 1] = 7;
            assert_eq!(buffer.bytes()[len - 1], 7);
        }
        let mut buffer = AlignedBuffer::new(ALIGNMENT);
        buffer.extend(&[7; 9]);
        buffer.extend_zeros(ALIGNMENT - 9);
        assert!(is_aligned(buffer.bytes()) && buffer.bytes()[8..10] == [7, 0]);
    }
}
