//! A transaction's records on their way into the log, in parts, so that they take little memory however many they are.

use crate::delta;
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
    images: Vec<bool>,
}

/// A page's record in the log.
pub(super) struct Logged {
    pub lsn: Lsn,
    pub image: bool,
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
        buffers.images.clear();
        Self { journal, tx, buffers, pages: Vec::with_capacity(pages) }
    }

    /// A page's change since `base`, or its image: without one, and where that costs hardly more.
    pub(super) fn page(&mut self, page: PageNo, base: Option<&[u8]>, new: &[u8]) -> Result<()> {
        let Buffers { encoded, runs, ends, images } = &mut *self.buffers;
        runs.clear();
        let image = delta::encode_page(base, new, runs);
        Record::Page { page, image, runs }.encode(self.tx, encoded);
        ends.push(encoded.len());
        images.push(image);
        if encoded.len() >= PART_BYTES { self.append(None).map(|_| ()) } else { Ok(()) }
    }

    /// The transaction's end; tells where all of it lies.
    pub(super) fn commit(mut self, sequence: u64) -> Result<(Vec<Logged>, Lsn)> {
        Record::Commit { sequence }.encode(self.tx, &mut self.buffers.encoded);
        self.buffers.ends.push(self.buffers.encoded.len());
        self.buffers.images.push(false);
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
        let Buffers { encoded, ends, images, .. } = &mut *self.buffers;
        let appended = self.journal.append(encoded, ends, commit)?;
        let mut start = 0;
        for ((end, image), lsn) in ends.drain(..).zip(images.drain(..)).zip(appended.lsns) {
            self.pages.push(Logged { lsn, image, bytes: end - start });
            start = end;
        }
        encoded.clear();
        Ok(appended.commit)
    }
}
