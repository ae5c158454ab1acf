//! The types and limits that all modules share.

pub use pagestore_counters::{Lsn, PageNo};

/// Blocks are placed at multiples of this many bytes in a virtual log file.
pub(crate) const UNIT_BYTES: u64 = Lsn::UNIT_BYTES;

/// Above every count of commits, transactions and openings, and above the number of every page whose offset a file can
/// have: a store never wrote a larger one.
pub(crate) const COUNT_MAX: u64 = 1 << 48;
/// As `COUNT_MAX`, for counts of 32 bits.
pub(crate) const COUNT_MAX_U32: u32 = 1 << 31;

/// A position in the log from which it can be read: the next record's LSN and the checksum of the block before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub lsn: Lsn,
    pub previous: u32,
}
