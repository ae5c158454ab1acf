//! Some pages of a checkpoint, put together in memory as they will lie in the data file.

use super::Own;
use crate::aligned::AlignedBuffer;
use crate::cache::{Captured, Page};
use crate::disk::{FileId, PageWrite, Told};
use crate::error::Result;
use crate::lsn::Lsn;
use crate::options::Apply;
use crate::page;
use crate::redo::{Wanted, Window};
use crate::store::{Inner, lock};
use crate::sync::{Mutex, together};
use std::sync::atomic::Ordering;

/// The largest single write to the data file.
const WRITE_BYTES_MAX: usize = 1 << 20;
/// So many read log and write pages beside each other.
const THREADS: usize = 4;
/// Of each of them at a time: long enough that what is in flight of the others hides its end …
const PART_WRITES: usize = 1024;
/// … and short enough that they end together.
const PART_BYTES: usize = 8 << 20;

/// See the module.
pub(super) struct Batch {
    pages: AlignedBuffer,
    /// What lies in them, or will, in the order of their places.
    own: Vec<Gathered>,
    /// How many of them have been written.
    written: usize,
    windows: Vec<Window>,
}

/// A page of a batch.
struct Gathered {
    own: Own,
    last: Lsn,
    /// Where it is in memory: it is copied just before it is written. What is not has been put together in its place.
    content: Option<Page>,
}

/// Neighbours in a batch that one thread writes.
struct Part<'a> {
    gathered: &'a [Gathered],
    pages: &'a mut [u8],
}

impl Batch {
    /// That reads so many parts of the log at once, at most.
    pub(super) fn new(at_once: usize) -> Self {
        let windows = (0..THREADS.min(at_once).max(1)).map(|_| Window::wide()).collect();
        Self { pages: AlignedBuffer::new(0), own: Vec::new(), written: 0, windows }
    }

    /// Writes are left.
    pub(super) fn is_left(&self) -> bool {
        self.written < self.own.len()
    }

    /// Puts together what is in the log only.
    pub(super) fn gather(&mut self, inner: &Inner, mut captured: Vec<Captured>) -> Result<()> {
        assert!(!self.is_left(), "what was put together before has been written");
        let page_bytes = inner.geometry.page_bytes;
        captured.sort_unstable_by_key(|own| own.page);
        self.own.clear();
        self.written = 0;
        let bytes = captured.len() * page_bytes;
        if self.pages.capacity() < bytes {
            self.pages = AlignedBuffer::new(0);
            self.pages = AlignedBuffer::new(bytes);
        }
        self.pages.resize(bytes);
        let mut wanted: Vec<Wanted> = Vec::new();
        let mut logged = 0;
        let mut gathered = Vec::with_capacity(captured.len());
        for (at, Captured { page, chain, content }) in captured.into_iter().enumerate() {
            if content.is_none() {
                wanted.extend(chain.iter().map(|lsn| (*lsn, at)));
                logged += 1;
            }
            let last = *chain.last().expect("what is dirty has a record");
            gathered.push(Gathered { own: Own { page, first: chain[0] }, last, content });
        }
        wanted.sort_unstable();
        inner.redo_into(&wanted, &mut self.windows, self.pages.bytes_mut())?;
        inner.counters.page_redone.fetch_add(logged, Ordering::Relaxed);
        self.own = gathered;
        Ok(())
    }

    /// Does the next writes, up to so many, so many at once; tells what was written.
    pub(super) fn write(
        &mut self,
        inner: &Inner,
        writes_max: usize,
        at_once: usize,
    ) -> Result<impl Iterator<Item = Own>> {
        let from = self.written;
        let part = self.parts(inner.geometry.page_bytes, writes_max, usize::MAX).next();
        if let Some(mut part) = part {
            part.write(inner, at_once)?;
            self.written += part.gathered.len();
        }
        Ok(self.own[from..self.written].iter().map(|gathered| gathered.own))
    }

    /// Does all that are left, so many at once, by several threads; tells what was written.
    pub(super) fn write_all(&mut self, inner: &Inner, at_once: usize) -> Result<impl Iterator<Item = Own>> {
        let from = self.written;
        let parts: Vec<_> = self.parts(inner.geometry.page_bytes, PART_WRITES, PART_BYTES).collect();
        let threads = THREADS.min(at_once).min(parts.len()).max(1);
        let parts = Mutex::new(parts.into_iter());
        together(threads, || {
            loop {
                // What another could not write makes the store read-only: there is no use in the rest.
                inner.journal.check()?;
                let next = lock(&parts).next();
                match next {
                    Some(mut part) => part.write(inner, at_once / threads)?,
                    None => return Ok(()),
                }
            }
        })?;
        self.written = self.own.len();
        Ok(self.own[from..].iter().map(|gathered| gathered.own))
    }

    /// What is left, in parts of up to so many writes and so many bytes.
    fn parts(
        &mut self,
        page_bytes: usize,
        writes_max: usize,
        bytes_max: usize,
    ) -> impl Iterator<Item = Part<'_>> {
        let mut gathered = &self.own[self.written..];
        let mut pages = &mut self.pages.bytes_mut()[self.written * page_bytes..];
        std::iter::from_fn(move || {
            let mut count = 0;
            for write in runs(gathered, page_bytes).take(writes_max) {
                if count > 0 && (count + write.len()) * page_bytes > bytes_max {
                    break;
                }
                count += write.len();
            }
            let (own, own_pages);
            (own, gathered) = gathered.split_at(count);
            (own_pages, pages) = std::mem::take(&mut pages).split_at_mut(count * page_bytes);
            (count > 0).then_some(Part { gathered: own, pages: own_pages })
        })
    }
}

/// One write each: neighbours together.
fn runs(gathered: &[Gathered], page_bytes: usize) -> impl Iterator<Item = &[Gathered]> {
    gathered
        .chunk_by(|a, b| a.own.page.0 + 1 == b.own.page.0)
        .flat_map(move |run| run.chunks(WRITE_BYTES_MAX / page_bytes))
}

impl Part<'_> {
    fn write(&mut self, inner: &Inner, at_once: usize) -> Result<()> {
        let (page_bytes, store) = (inner.geometry.page_bytes, inner.geometry.store);
        for (Gathered { own, last, content }, page) in
            self.gathered.iter().zip(self.pages.chunks_exact_mut(page_bytes))
        {
            if let Some(content) = content {
                page.copy_from_slice(content);
            }
            page::stamp(page, store, own.page, *last);
        }
        let mut rest = &*self.pages;
        let writes: Vec<_> = runs(self.gathered, page_bytes)
            .map(|run| {
                let bytes;
                (bytes, rest) = rest.split_at(run.len() * page_bytes);
                PageWrite { offset: run[0].own.page.0 * page_bytes as u64, bytes }
            })
            .collect();
        let counters = &inner.counters;
        let count = |told| {
            if let Told::Ended { bytes, done: true, .. } = told {
                counters.page_writes.fetch_add(1, Ordering::Relaxed);
                counters.page_write_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        };
        let way = if inner.applies_mapped() { Apply::Mapped } else { Apply::Direct };
        let written = inner.disk.write_many(&writes, way, at_once, &count);
        written.map_err(|error| inner.journal.fail("write", FileId::Data, error))
    }
}
