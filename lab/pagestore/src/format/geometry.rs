//! The dimensions of a store: constants of the format, and what is fixed when a store is created.

/// Bytes before the first slot of the log file.
pub(crate) use pagestore_counters::LOG_HEAD_BYTES;
/// Bytes of a slot's header.
pub(crate) const VLF_HEADER_BYTES: usize = 4096;
/// The largest block, in bytes.
pub(crate) const MAX_BLOCK_BYTES: usize = 60 << 10;
/// The largest single write to the log, in bytes: contiguous sealed blocks are written together.
pub(crate) const MAX_WRITE_BYTES: usize = 512 << 10;

/// Sizes and identity that are fixed when a store is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// The low half of the store's identity.
    pub store: u64,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Blocks are padded to a multiple of this.
    pub sector_bytes: usize,
    /// Bytes of a virtual log file, including its header.
    pub vlf_bytes: u64,
}

impl Geometry {
    /// Where slot `slot` begins in the log file.
    pub(crate) fn slot_offset(&self, slot: usize) -> u64 {
        LOG_HEAD_BYTES + slot as u64 * self.vlf_bytes
    }

    /// Whether a slot begins at this offset in the log file.
    pub(crate) fn is_slot_offset(&self, offset: u64) -> bool {
        offset >= LOG_HEAD_BYTES && (offset - LOG_HEAD_BYTES).is_multiple_of(self.vlf_bytes)
    }
}
