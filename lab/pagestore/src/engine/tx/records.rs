//! Appends a transaction's records to the log in parts, so that they take little memory however many there are.

use crate::error::Result;
use crate::format::delta;
use crate::log::journal::Journal;
use crate::log::record::Record;
use crate::types::{Lsn, PageNo};

/// Bytes that are encoded before they are appended; one record may exceed it. Few in unit tests, whose commits are
/// small.
const PART_BYTES: usize = if cfg!(test) { 1 << 10 } else { 256 << 10 };

/// Encoded records, and the positions of those that were appended.
#[derive(Default)]
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    runs: Vec<u8>,
    ends: Vec<usize>,
    lsns: Vec<Lsn>,
    logged: Vec<Logged>,
}

/// A page's record in the log.
#[derive(Clone, Copy)]
pub(super) struct Logged {
    pub lsn: Lsn,
    pub image: bool,
    pub bytes: usize,
}

/// See the module.
pub(super) struct Records<'a> {
    journal: &'a Journal,
    tx: u64,
    encoded: &'a mut Encoded,
}

impl<'a> Records<'a> {
    pub(super) fn begin(journal: &'a Journal, tx: u64, encoded: &'a mut Encoded) -> Self {
        encoded.bytes.clear();
        encoded.ends.clear();
        encoded.logged.clear();
        Self { journal, tx, encoded }
    }

    /// Encodes a page's change since `base`; or its image, if there is no base or the image is hardly larger.
    pub(super) fn page(&mut self, page: PageNo, base: Option<&[u8]>, new: &[u8]) -> Result<()> {
        let mut runs = std::mem::take(&mut self.encoded.runs);
        runs.clear();
        let image = delta::encode_page(base, new, &mut runs);
        let encoded = self.encoded_page(page, image, &runs);
        self.encoded.runs = runs;
        encoded
    }

    /// As `page`, of a page whose change was encoded before.
    pub(super) fn encoded_page(&mut self, page: PageNo, image: bool, runs: &[u8]) -> Result<()> {
        let Encoded { bytes, ends, logged, .. } = &mut *self.encoded;
        let begun = bytes.len();
        Record::Page { page, image, runs }.encode(self.tx, bytes);
        ends.push(bytes.len());
        // Its LSN is known once it is appended.
        logged.push(Logged { lsn: Lsn::ZERO, image, bytes: bytes.len() - begun });
        if bytes.len() >= PART_BYTES { self.append(None).map(|_| ()) } else { Ok(()) }
    }

    /// The page records that were appended so far.
    pub(super) fn appended(&self) -> &[Logged] {
        &self.encoded.logged[..self.encoded.logged.len() - self.encoded.ends.len()]
    }

    /// Ends the transaction with a commit; returns its page records and the LSN of the commit.
    pub(super) fn commit(mut self, sequence: u64) -> Result<(&'a [Logged], Lsn)> {
        let Encoded { bytes, ends, .. } = &mut *self.encoded;
        Record::Commit { sequence }.encode(self.tx, bytes);
        ends.push(bytes.len());
        let commit = self.append(Some(sequence))?;
        Ok((&self.encoded.logged, commit))
    }

    /// Appends what is encoded; the transaction goes on.
    pub(super) fn pause(mut self) -> Result<&'a [Logged]> {
        self.append(None)?;
        Ok(&self.encoded.logged)
    }

    fn append(&mut self, commit: Option<u64>) -> Result<Lsn> {
        let Encoded { bytes, ends, lsns, logged, .. } = &mut *self.encoded;
        lsns.clear();
        let last = self.journal.append(bytes, ends, commit, lsns)?;
        let pages = ends.len() - usize::from(commit.is_some());
        let first = logged.len() - pages;
        for (logged, lsn) in logged[first..].iter_mut().zip(lsns) {
            logged.lsn = *lsn;
        }
        bytes.clear();
        ends.clear();
        Ok(last)
    }
}
