//! Faults of the disk: operations that fail, are lost, go elsewhere, or are acknowledged before they are durable.

use crate::Op;
use pagestore_disk::FileId;

/// A write that is done beyond the end of a file lands this far behind it.
const BEYOND_BYTES: u64 = 64 << 10;

/// A fault of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A write or sync fails with `EIO`. Reads return what was there or what was written, page by page.
    Io,
    /// A write fails with `ENOSPC`; of a sync, as `Io`.
    NoSpace,
    /// A write is acknowledged and not done; syncs work.
    Lost,
    /// A write is acknowledged and done elsewhere in the file; syncs work.
    Misdirected,
    /// A write is acknowledged and done in another file of the store; syncs work.
    OtherFile,
    /// A write is acknowledged and done beyond the end of its file; syncs work.
    BeyondEnd,
    /// A sync is acknowledged and not done, or a write that is to be durable is not; later ones work.
    LyingSync,
    /// From here on no sync is done, and no write is durable when it returns.
    LyingDevice,
}

impl Fault {
    /// The faults of a single operation that any seed draws.
    pub const ALL: [Self; 4] = [Self::Io, Self::NoSpace, Self::Lost, Self::Misdirected];
    /// The others.
    pub(crate) const RARE: [Self; 4] = [Self::OtherFile, Self::BeyondEnd, Self::LyingSync, Self::LyingDevice];

    /// Whether the engine gets an error.
    #[must_use]
    pub fn is_reported(self) -> bool {
        matches!(self, Self::Io | Self::NoSpace)
    }

    /// Whether something is acknowledged as durable that is not.
    pub(crate) fn lies(self) -> bool {
        matches!(self, Self::LyingSync | Self::LyingDevice)
    }

    /// Whether it can happen to this operation.
    pub(crate) fn fits(self, op: &Op) -> bool {
        match self {
            Self::LyingSync | Self::LyingDevice => {
                matches!(op, Op::Sync { .. } | Op::Write { through: true, .. })
            }
            Self::OtherFile | Self::BeyondEnd => matches!(op, Op::Write { .. }),
            Self::Io | Self::NoSpace | Self::Lost | Self::Misdirected => true,
        }
    }

    /// The place of a misdirected write of this many bytes, in files of these lengths; `None`: it is not misdirected.
    pub(crate) fn misplaced(
        self,
        (file, offset): (FileId, u64),
        bytes: usize,
        lengths: [u64; 3],
    ) -> Option<(FileId, u64)> {
        let step = bytes.next_multiple_of(4096) as u64;
        match self {
            Self::Misdirected if offset >= step => Some((file, offset - step)),
            Self::Misdirected => {
                Some((file, (offset + step).min(lengths[file as usize].next_multiple_of(4096))))
            }
            Self::OtherFile => {
                // Which of the two: by a bit of the offset, so that both are met.
                let skipped = 1 + (offset / 4096 % 2) as usize;
                let other = FileId::ALL[(file as usize + skipped) % FileId::ALL.len()];
                let pages = lengths[other as usize] / 4096;
                Some((other, offset / 4096 % pages.max(1) * 4096))
            }
            Self::BeyondEnd => Some((file, lengths[file as usize].next_multiple_of(4096) + BEYOND_BYTES)),
            Self::Io | Self::NoSpace | Self::Lost | Self::LyingSync | Self::LyingDevice => None,
        }
    }
}
