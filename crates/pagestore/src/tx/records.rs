//! A transaction's records on their way into the log, in parts, so that they take little memory however many they are.

use crate::delta::{self, ZEROS};
use crate::error::Result;
use crate::journal::Journal;
use crate::log::record::Record;
use crate::lsn::{Lsn, PageNo};

/// What is put together before the log takes it; one record may go over it.
const PART_BYTES: usize = 256 << 10;

/// Memory that one transaction leaves to the next.
#[derive(Default)]
pub(crate) struct Buffers {
    encoded: Vec<u8>,
    runs: Vec<u8>,
    ends: Vec<usize>,
}

/// A page's record in the log.
pub(super) struct Logged {
    pub lsn: Lsn,
    pub bytes: usize,
}

/// See the module.
pub(super) struct Records<'a> {
    journal: &'a Journal,
    tx: u64,
    buffers: &'a mut Buffers,
    pages: Vec<Logged>,
}

impl<'a> Records<'a> {
    pub(super) fn begin(journal: &'a Journal, tx: u64, buffers: &'a mut Buffers, pages: usize) -> Self {
        buffers.encoded.clear();
        buffers.ends.clear();
        Self { journal, tx, buffers, pages: Vec::with_capacity(pages) }
    }

    /// A page's change since `base`, or its image without one.
    pub(super) fn page(&mut self, page: PageNo, base: Option<&[u8]>, new: &[u8]) -> Result<()> {
        let Buffers { encoded, runs, ends } = &mut *self.buffers;
        runs.clear();
        delta::encode(base.unwrap_or(&ZEROS[..new.len()]), new, runs);
        Record::Page { page, image: base.is_none(), runs }.encode(self.tx, encoded);
        ends.push(encoded.len());
        if encoded.len() >= PART_BYTES { self.append(None).map(|_| ()) } else { Ok(()) }
    }

    /// The transaction's end; tells where all of it lies.
    pub(super) fn commit(mut self, sequence: u64) -> Result<(Vec<Logged>, Lsn)> {
        Record::Commit { sequence }.encode(self.tx, &mut self.buffers.encoded);
        self.buffers.ends.push(self.buffers.encoded.len());
        let commit = self.append(Some(sequence))?;
        self.pages.pop();
        Ok((self.pages, commit))
    }

    /// The transaction goes on.
    pub(super) fn pause(mut self) -> Result<Vec<Logged>> {
        self.append(None)?;
        Ok(self.pages)
    }

    fn append(&mut self, commit: Option<u64>) -> Result<Lsn> {
        let Buffers { encoded, ends, .. } = &mut *self.buffers;
        let appended = self.journal.append(encoded, ends, commit)?;
        let mut start = 0;
        for (end, lsn) in ends.iter().zip(appended.lsns) {
            self.pages.push(Logged { lsn, bytes: end - start });
            start = *end;
        }
        encoded.clear();
        ends.clear();
        Ok(appended.commit)
    }
}
