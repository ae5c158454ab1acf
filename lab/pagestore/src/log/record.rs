//! A log record.
//!
//! ```text
//!  0  kind    u8
//!  1  flags   u8   of a page record: 1 = an image, whose base is a page of zeros
//!  2  length  u16  with these twelve bytes
//!  4  tx      u64  the transaction; 0 where there is none
//! 12  body    PAGE: page u64, runs (see `delta`)      COMMIT: sequence u64      ABORT, MARK: nothing
//!             CHECKPOINT_BEGIN, CHECKPOINT_END: redo LSN u64, pages u64
//!             RECOVERY: epoch u64, LSN where the log was cut u64
//!             INDEX: base u64, entries (see `index`); flags 1 = of the transaction that is open at the end
//!             INDEX_END: unit, bytes, crc of the INDEX blocks, entries, open entries, carried, each u32;
//!                        from, sequence, tx, records, commits, dropped, open tx, each u64; flags 1 = there is no index
//! ```

use crate::format::codec::{u16_at, u32_at, u64_at};
use crate::types::{COUNT_MAX, Lsn, PageNo};
use std::fmt;

/// Bytes of an entry of an index.
pub(crate) const ENTRY_BYTES: usize = 8;
/// Bytes before the body.
pub(crate) const RECORD_HEADER_BYTES: usize = 12;

/// How the transaction ended that was open where an index begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It is still open.
    #[default]
    Open = 0,
    /// It committed.
    Committed = 1,
    /// It ended without a commit.
    Dropped = 2,
}

/// The end of a virtual log file, which describes its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexEnd {
    /// There was no space for an index: the whole virtual log file must be read.
    pub missing: bool,
    /// Offset of its first block, in units of 512 bytes.
    pub unit: u32,
    /// Bytes of its blocks.
    pub bytes: u32,
    /// Checksum of their records.
    pub crc: u32,
    /// Entries of transactions that committed in it.
    pub entries: u32,
    /// Entries of the transaction that is open at the end.
    pub open_entries: u32,
    /// How the transaction ended that was open at the beginning.
    pub carried: Outcome,
    /// The index covers the records from here on.
    pub from: Lsn,
    /// The newest commit in it; 0 if there is none.
    pub sequence: u64,
    /// The largest transaction number; 0 where no transaction began.
    pub tx_max: u64,
    /// Records covered.
    pub records: u64,
    /// Commits covered.
    pub commits: u64,
    /// Records of transactions that ended without a commit.
    pub dropped: u64,
    /// The transaction of the last record that has one.
    pub open_tx: u64,
}

/// A log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A page changed.
    Page {
        /// Which page.
        page: PageNo,
        /// Whether the runs apply to a page of zeros, and not to the page as the record before left it.
        image: bool,
        /// The changed bytes.
        runs: &'a [u8],
    },
    /// The transaction commits.
    Commit {
        /// Commits are numbered in order.
        sequence: u64,
    },
    /// The transaction is rolled back.
    Abort,
    /// A checkpoint has listed the pages that it will write.
    CheckpointBegin {
        /// Where recovery will begin once it is complete.
        redo: Lsn,
        /// Pages that it writes.
        pages: u64,
    },
    /// A checkpoint's pages are durable.
    CheckpointEnd {
        /// Where recovery begins from now on.
        redo: Lsn,
        /// Pages that it wrote.
        pages: u64,
    },
    /// The store was opened.
    Recovery {
        /// The number of this opening.
        epoch: u64,
        /// The last record that was found.
        cut: Lsn,
    },
    /// Empty; a later block that is a witness for the one before.
    Mark,
    /// Which pages the virtual log file's records change.
    Index {
        /// Entries of the transaction that is open at the end, instead of those that committed.
        open: bool,
        /// The first page.
        base: PageNo,
        /// Sorted by page.
        entries: &'a [u8],
    },
    /// The end of a virtual log file, and of its index.
    IndexEnd(IndexEnd),
}

impl Record<'_> {
    /// The number in the log, and the name shown in listings.
    fn kind(&self) -> (u8, &'static str) {
        match self {
            Self::Page { image: true, .. } => (1, "page image"),
            Self::Page { .. } => (1, "page delta"),
            Self::Commit { .. } => (2, "commit"),
            Self::Abort => (3, "abort"),
            Self::CheckpointBegin { .. } => (4, "checkpoint begin"),
            Self::CheckpointEnd { .. } => (5, "checkpoint end"),
            Self::Recovery { .. } => (6, "recovery"),
            Self::Mark => (7, "mark"),
            Self::Index { .. } => (8, "index"),
            Self::IndexEnd(_) => (9, "index end"),
        }
    }

    /// The name shown in listings.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind().1
    }

    /// Appends the encoded record.
    pub(crate) fn encode(&self, tx: u64, out: &mut Vec<u8>) {
        let start = out.len();
        let flags = u8::from(match self {
            Self::Page { image, .. } => *image,
            Self::Index { open, .. } => *open,
            Self::IndexEnd(end) => end.missing,
            _ => false,
        });
        out.extend_from_slice(&[self.kind().0, flags, 0, 0]);
        out.extend_from_slice(&tx.to_le_bytes());
        let mut two = |first: u64, second: u64| {
            out.extend_from_slice(&first.to_le_bytes());
            out.extend_from_slice(&second.to_le_bytes());
        };
        match *self {
            Self::Page { page, runs, .. } => {
                out.extend_from_slice(&page.0.to_le_bytes());
                out.extend_from_slice(runs);
            }
            Self::Commit { sequence } => out.extend_from_slice(&sequence.to_le_bytes()),
            Self::Abort | Self::Mark => {}
            Self::CheckpointBegin { redo, pages } | Self::CheckpointEnd { redo, pages } => {
                two(redo.packed(), pages);
            }
            Self::Recovery { epoch, cut } => two(epoch, cut.packed()),
            Self::Index { base, entries, .. } => {
                out.extend_from_slice(&base.0.to_le_bytes());
                out.extend_from_slice(entries);
            }
            Self::IndexEnd(end) => end.encode(out),
        }
        let length = (out.len() - start) as u16;
        out[start + 2..start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

impl IndexEnd {
    pub(crate) const BYTES: usize = 6 * 4 + 7 * 8;

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let carried = self.carried as u32;
        for number in [self.unit, self.bytes, self.crc, self.entries, self.open_entries, carried] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let (from, counts) = (self.from.packed(), [self.records, self.commits, self.dropped]);
        for number in [from, self.sequence, self.tx_max].into_iter().chain(counts).chain([self.open_tx]) {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    pub(crate) fn decode(body: &[u8], flags: u8) -> Option<Self> {
        if body.len() < Self::BYTES {
            return None;
        }
        let outcomes = [Outcome::Open, Outcome::Committed, Outcome::Dropped];
        let carried = *outcomes.get(u32_at(body, 20) as usize)?;
        let number = |index: usize| u64_at(body, 24 + 8 * index);
        let end = Self {
            missing: flags & 1 == 1,
            unit: u32_at(body, 0),
            bytes: u32_at(body, 4),
            crc: u32_at(body, 8),
            entries: u32_at(body, 12),
            open_entries: u32_at(body, 16),
            carried,
            from: Lsn::from_packed(number(0)),
            sequence: number(1),
            tx_max: number(2),
            records: number(3),
            commits: number(4),
            dropped: number(5),
            open_tx: number(6),
        };
        end.is_possible().then_some(end)
    }

    /// Whether a virtual log file can have these totals.
    fn is_possible(&self) -> bool {
        let entries = u64::from(self.entries) + u64::from(self.open_entries);
        let counts =
            [self.records, self.commits, self.dropped].iter().all(|count| *count <= u64::from(u32::MAX));
        let numbers = [self.sequence, self.tx_max, self.open_tx].iter().all(|number| *number < COUNT_MAX);
        counts && numbers && entries * ENTRY_BYTES as u64 <= u64::from(self.bytes)
    }
}

impl fmt::Display for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page { page, runs, .. } => write!(f, "page {page}, {} bytes", runs.len()),
            Self::Commit { sequence } => write!(f, "commit {sequence}"),
            Self::Abort | Self::Mark => Ok(()),
            Self::CheckpointBegin { redo, pages } | Self::CheckpointEnd { redo, pages } => {
                write!(f, "redo from {redo}, {pages} pages")
            }
            Self::Recovery { epoch, cut } => write!(f, "epoch {epoch}, log found up to {cut}"),
            Self::Index { open, base, entries } => {
                let of = if *open { ", of the open transaction" } else { "" };
                write!(f, "{} records of pages from {base}{of}", entries.len() / 8)
            }
            Self::IndexEnd(end) if end.missing => write!(f, "no room for an index"),
            Self::IndexEnd(end) => write!(
                f,
                "{} records of pages, {} of the open transaction; {} commits, the last {}",
                end.entries, end.open_entries, end.commits, end.sequence
            ),
        }
    }
}

/// An iterator over the records of a block: transaction and record, in order. Ends with an error if the bytes are
/// not records; as the block's checksum is valid, another version or a bug wrote them.
pub(crate) struct Records<'a> {
    rest: &'a [u8],
    /// Records read so far.
    count: u16,
}

impl<'a> Records<'a> {
    pub(crate) fn new(used: &'a [u8]) -> Self {
        Self { rest: used, count: 0 }
    }

    /// Bytes not read yet.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    fn parse(&mut self) -> Option<(u64, Record<'a>)> {
        let rest = self.rest;
        if rest.len() < RECORD_HEADER_BYTES {
            return None;
        }
        let length = usize::from(u16_at(rest, 2));
        if length < RECORD_HEADER_BYTES {
            return None;
        }
        let body = rest.get(RECORD_HEADER_BYTES..length)?;
        self.count += 1;
        if self.count == Lsn::MAX_RECORD && length < rest.len() {
            return None;
        }
        let possible = |number: u64| (number < COUNT_MAX).then_some(number);
        let tx = possible(u64_at(rest, 4))?;
        let word = |at: usize| (body.len() >= at + 8).then(|| u64_at(body, at));
        let number = |at: usize| word(at).and_then(possible);
        let record = match rest[0] {
            1 => Record::Page { page: PageNo(number(0)?), image: rest[1] & 1 == 1, runs: &body[8..] },
            2 => Record::Commit { sequence: number(0)? },
            3 => Record::Abort,
            4 => Record::CheckpointBegin { redo: Lsn::from_packed(word(0)?), pages: word(8)? },
            5 => Record::CheckpointEnd { redo: Lsn::from_packed(word(0)?), pages: word(8)? },
            6 => Record::Recovery { epoch: word(0)?, cut: Lsn::from_packed(word(8)?) },
            7 => Record::Mark,
            8 => Record::Index { open: rest[1] & 1 == 1, base: PageNo(number(0)?), entries: &body[8..] },
            9 => Record::IndexEnd(IndexEnd::decode(body, rest[1])?),
            _ => return None,
        };
        self.rest = &rest[length..];
        Some((tx, record))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<(u64, Record<'a>), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let parsed = self.parse();
        if parsed.is_none() {
            self.rest = &[];
        }
        Some(parsed.ok_or("a record of a valid block cannot be read; it was written by another version"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_record_reads_back_with_its_transaction() {
        let lsn = Lsn::new(3, 8, 2);
        let records = [
            Record::Page { page: PageNo(9), image: true, runs: &[1, 0, 1, 0, 5] },
            Record::Page { page: PageNo(9), image: false, runs: &[] },
            Record::Commit { sequence: 77 },
            Record::Abort,
            Record::CheckpointBegin { redo: lsn, pages: 4 },
            Record::CheckpointEnd { redo: lsn, pages: 4 },
            Record::Recovery { epoch: 2, cut: lsn },
            Record::Mark,
            Record::Index { open: true, base: PageNo(4), entries: &[0; 16] },
            Record::IndexEnd(IndexEnd { missing: true, from: lsn, open_tx: 8, ..IndexEnd::default() }),
        ];
        let mut bytes = Vec::new();
        for (tx, record) in records.iter().enumerate() {
            record.encode(tx as u64, &mut bytes);
        }
        let read: Vec<_> = Records::new(&bytes).map(Result::unwrap).collect();
        let expected: Vec<_> =
            records.into_iter().enumerate().map(|(tx, record)| (tx as u64, record)).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn what_no_store_can_have_counted_to_is_refused() {
        let last = |tx: u64, record: Record<'_>| {
            let mut bytes = Vec::new();
            record.encode(tx, &mut bytes);
            Records::new(&bytes).last().unwrap().is_ok()
        };
        assert!(last(COUNT_MAX - 1, Record::Commit { sequence: COUNT_MAX - 1 }));
        assert!(!last(u64::MAX, Record::Abort));
        assert!(!last(1, Record::Commit { sequence: u64::MAX }));
        assert!(!last(1, Record::Page { page: PageNo(u64::MAX), image: true, runs: &[] }));
        let end = IndexEnd { bytes: 4096, entries: 400, open_entries: 112, ..IndexEnd::default() };
        assert!(last(0, Record::IndexEnd(end)));
        assert!(!last(0, Record::IndexEnd(IndexEnd { entries: u32::MAX, ..end })));
        assert!(!last(0, Record::IndexEnd(IndexEnd { records: u64::MAX, ..end })));
        assert!(!last(0, Record::IndexEnd(IndexEnd { tx_max: u64::MAX, ..end })));
    }

    #[test]
    fn a_block_has_no_more_records_than_can_be_told_apart() {
        let all = |records: usize| {
            let mut bytes = Vec::new();
            (0..records).for_each(|_| Record::Mark.encode(0, &mut bytes));
            Records::new(&bytes).map(|record| record.is_ok()).collect::<Vec<_>>()
        };
        let most = usize::from(Lsn::MAX_RECORD);
        assert_eq!(all(most), vec![true; most]);
        let more = all(most + 1);
        assert_eq!((more.len(), more[most - 2], more[most - 1]), (most, true, false));
    }

    proptest! {
        #[test]
        fn bytes_from_outside_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Records::new(&bytes).count();
        }
    }
}
