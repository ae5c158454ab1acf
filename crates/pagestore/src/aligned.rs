//! Memory at addresses that direct I/O takes.

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
