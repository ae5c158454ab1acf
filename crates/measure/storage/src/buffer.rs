use std::collections::TryReserveError;
use std::ops::{Deref, DerefMut};

/// Memory with the alignment that direct I/O requires.
#[derive(Debug)]
pub struct AlignedBuffer {
    // Larger than needed: the aligned part starts at `start`. A vector that is not resized does not move its memory.
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl AlignedBuffer {
    /// `bytes` zeros at a multiple of `align_bytes`.
    ///
    /// # Panics
    /// If `align_bytes` is not a power of two, or memory is short.
    pub fn new(bytes: usize, align_bytes: usize) -> AlignedBuffer {
        AlignedBuffer::try_new(bytes, align_bytes).expect("a buffer of a fixed, small size fits into memory")
    }

    /// `bytes` zeros at a multiple of `align_bytes`, for a size that a user chose.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    ///
    /// # Panics
    /// If `align_bytes` is not a power of two.
    pub fn try_new(bytes: usize, align_bytes: usize) -> Result<AlignedBuffer, TryReserveError> {
        assert!(align_bytes.is_power_of_two(), "alignment {align_bytes} is not a power of two");
        let allocated_bytes = bytes.saturating_add(align_bytes - 1);
        let mut memory = Vec::new();
        memory.try_reserve_exact(allocated_bytes)?;
        memory.resize(allocated_bytes, 0);
        let start = memory.as_ptr().align_offset(align_bytes);
        assert!(start < align_bytes);
        Ok(AlignedBuffer { memory, start, bytes })
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.bytes]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_the_requested_alignment_and_size() {
        for align in [1, 4, 512, 4096, 1 << 20] {
            let mut buffer = AlignedBuffer::new(12_288, align);
            assert_eq!(buffer.as_ptr() as usize % align, 0);
            buffer.fill(7);
            assert_eq!(buffer.iter().filter(|byte| **byte == 7).count(), 12_288);
        }
    }

    #[test]
    fn a_buffer_larger_than_the_address_space_is_an_error() {
        assert!(AlignedBuffer::try_new(usize::MAX, 4096).is_err());
        assert!(AlignedBuffer::try_new(1 << 63, 512).is_err());
    }
}
