//! Changing pages: the transaction's copies of them, and the memory that these take.
//!
//! ```text
//! up to a quarter of the cache   copies, and the earlier versions, from which the changes are logged
//! beyond                         copies only, logged as images; they take up to seven eighths of the cache, step by step
//! beyond that                    pages are set aside: see `copies`
//! ```

use super::WriteTx;
use super::buffers::{Changed, PageCopy};
use super::encoded_ahead::{Ahead, EncodedAhead};
use super::records::Records;
use crate::engine::cache::Page;
use crate::engine::inner::Inner;
use crate::error::Result;
use crate::format::delta::RUN_HEADER;
use crate::log::record::RECORD_HEADER_BYTES;
use crate::sync::lock;
use crate::types::PageNo;

/// Changed pages of even the smallest cache.
const PAGES_MIN: usize = 16;
/// A larger transaction takes another of this many parts of the cache at a time.
const STEPS: usize = 16;
/// Pages of a large transaction that are logged together: few, since space for twice their size is requested.
const LOGGED_AT_ONCE: usize = 16;
/// A full block has at most a sector of padding (4 KiB) for 60 KiB less a record (at most 16 KiB): less than one part in this
/// many.
const PADDING_DIVISOR: usize = 8;

impl WriteTx<'_> {
    /// As `any_page_mut`, for a page that the caller has read: `before` is its content.
    pub(crate) fn change(&mut self, page: PageNo, before: Page) -> Result<&mut [u8]> {
        if self.copies.get(page).is_some() {
            // Drop this reference, so that the transaction's copy is the only one and is changed in place.
            drop(before);
        } else {
            self.add_copy(page, before)?;
        }
        Ok(self.copy_bytes(page))
    }

    /// Whether the transaction has changed the page.
    pub(crate) fn is_changed(&self, page: PageNo) -> bool {
        self.copies.in_memory.contains_key(&page) || self.copies.is_aside(page)
    }

    fn add_copy(&mut self, page: PageNo, before: Page) -> Result<()> {
        self.reserve_pages(&[page])?;
        let copy = if self.copies.is_aside(page) {
            PageCopy::new(before, None)
        } else {
            PageCopy::new(before.copy(), (!self.is_large).then_some(before))
        };
        self.copies.insert(page, copy);
        Ok(())
    }

    /// Hands over a page that the transaction will hardly change again, so that its change is encoded.
    pub(crate) fn encode_ahead(&mut self, page: PageNo) {
        if let Some(copy) = self.copies.in_memory.get_mut(&page)
            && copy.base.is_some()
        {
            let base = copy.base_of_change().cloned();
            copy.ahead = self.ahead.add(page, base, copy.content.clone());
            if let Some(batch) = self.ahead.full_batch() {
                let pages = lock(&self.inner.pages);
                batch.iter_mut().for_each(|job| {
                    job.base.take_if(|_| pages.needs_image(job.page));
                });
                drop(pages);
                self.ahead.encode_batch();
            }
        }
    }

    /// Adds a page that did not exist before.
    pub(super) fn add_fresh(&mut self, page: PageNo, content: Page) {
        self.copies.insert(page, PageCopy::new(content, None));
    }

    fn copy_bytes(&mut self, page: PageNo) -> &mut [u8] {
        self.clear_lent_header();
        self.changes += 1;
        self.content_mut(page)
    }

    pub(super) fn content_mut(&mut self, page: PageNo) -> &mut [u8] {
        self.copies.in_memory.get_mut(&page).expect("it was put there").content_mut()
    }

    /// Ensures that these pages fit among the changed ones, so that changing all of them cannot fail after the
    /// first.
    pub(in crate::engine) fn reserve_pages(&mut self, pages: &[PageNo]) -> Result<()> {
        let in_memory = &self.copies.in_memory;
        let more = pages.iter().filter(|page| !in_memory.contains_key(page)).count();
        let (wanted, most) = (in_memory.len() + more, self.memory_pages - self.copies.queue_pages());
        if wanted <= most {
            return Ok(());
        }
        self.clear_lent_header();
        self.drop_bases()?;
        if self.enlarge() { Ok(()) } else { self.copies.set_aside(pages, wanted - most) }
    }

    /// Drops the earlier versions of the changed pages. Snapshots read them from the files, so they must be durable.
    fn drop_bases(&mut self) -> Result<()> {
        if !self.is_large {
            self.inner.journal.flush()?;
            self.is_large = true;
            for copy in self.copies.in_memory.values_mut() {
                (copy.base, copy.ahead) = (None, None);
            }
            self.ahead.discard();
        }
        Ok(())
    }

    /// Takes a larger part of the cache; returns false if there is none to take.
    fn enlarge(&mut self) -> bool {
        let all = self.inner.cache_pages();
        let most = (all - all / 8).max(PAGES_MIN);
        let next = (self.memory_pages + (all / STEPS).max(1)).min(most);
        if next <= self.memory_pages {
            return false;
        }
        let mut pages = lock(&self.inner.pages);
        if !pages.shrink_to((all - next) * self.inner.geometry.page_bytes) {
            return false;
        }
        pages.evict(self.inner.journal.visible(), self.inner.journal.durable());
        self.memory_pages = next;
        true
    }

    /// An upper bound of the log that the changed pages need, in bytes.
    pub(super) fn log_bytes(&self) -> u64 {
        self.inner.log_bytes(&self.ahead, self.copies.in_memory.values())
    }

    /// Logs all pages of a large transaction, before its commit is logged.
    pub(super) fn log_ahead(&mut self) -> Result<()> {
        if !self.is_large {
            return Ok(());
        }
        let mut pages = self.copies.all_aside();
        pages.extend(self.copies.in_memory.keys());
        pages.sort_unstable();
        let inner = self.inner;
        if inner.options.background {
            inner.journal.write_behind(|| self.log_pages(&pages))
        } else {
            self.log_pages(&pages)
        }?;
        // Pages that are not in memory are read from the log after the commit.
        inner.journal.flush()
    }

    fn log_pages(&mut self, pages: &[PageNo]) -> Result<()> {
        for part in pages.chunks(LOGGED_AT_ONCE) {
            self.inner.ensure_log_space(self.inner.log_bytes_of(part.iter().map(|_| None)))?;
            let encoded = &mut self.writing.buffers.records;
            let mut records = Records::begin(&self.inner.journal, self.tx, encoded);
            for page in part {
                match self.copies.in_memory.get(page) {
                    Some(copy) => records.page(*page, None, &copy.content)?,
                    None => {
                        let content = self.copies.read_aside(*page)?.expect("it is one or the other");
                        records.page(*page, None, &content)?;
                    }
                }
            }
            let logged = records.pause()?.iter().map(|record| (record.lsn, record.bytes));
            self.logged.extend(part.iter().copied().zip(logged));
        }
        Ok(())
    }
}

impl Inner {
    /// The pages that a cache of the stated size holds.
    fn cache_pages(&self) -> usize {
        self.options.cache_bytes / self.geometry.page_bytes
    }

    /// An upper bound of the log that the records of pages need, in bytes.
    pub(super) fn log_bytes<'a>(
        &self,
        encoded: &EncodedAhead,
        copies: impl Iterator<Item = &'a PageCopy>,
    ) -> u64 {
        self.log_bytes_of(copies.map(|copy| Some(encoded.runs(copy.ahead?)?.bytes.len())))
    }

    /// Bytes of the log for `pages`: of each page, the bytes of its runs if they are known.
    fn log_bytes_of(&self, pages: impl Iterator<Item = Option<usize>>) -> u64 {
        // The gap before each run but the first is larger than its header, and a run of zeros saves more than the two headers
        // that it may add, so a page's runs are hardly larger than the page. Each record also has an index entry. A block ends
        // at a whole sector, before a record that does not fit.
        let runs_max = self.geometry.page_bytes + RUN_HEADER;
        let record = |runs: usize| {
            let record = runs + RECORD_HEADER_BYTES + 24;
            record + record.div_ceil(PADDING_DIVISOR)
        };
        let records = pages.map(|runs| record(runs.unwrap_or(runs_max)));
        (records.sum::<usize>() + self.geometry.sector_bytes + 64) as u64
    }

    /// Determines which of the changed pages must be logged as images, and drops what was encoded of them as a change. Returns
    /// whether nothing was dropped.
    pub(super) fn mark_images(&self, encoded: &EncodedAhead, changed: &mut [Changed]) -> bool {
        let pages = lock(&self.pages);
        let is_change = |ahead: &mut Ahead| encoded.runs(*ahead).is_some_and(|runs| !runs.image);
        let mut dropped = 0;
        for Changed { page, copy, image } in changed {
            let Some(copy) = copy else { continue };
            *image = copy.base.is_none() || pages.needs_image(*page);
            dropped += usize::from(*image && copy.ahead.take_if(is_change).is_some());
        }
        dropped == 0
    }

    /// The changed pages that a transaction keeps in memory with their earlier versions.
    pub(in crate::engine) fn copies_max(&self) -> usize {
        (self.cache_pages() / 4).max(PAGES_MIN)
    }
}
