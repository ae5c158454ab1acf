//! Some pages of a checkpoint, put together in memory as they will lie in the data file.

use super::Own;
use crate::aligned::AlignedBuffer;
use crate::cache::Captured;
use crate::disk::{FileId, PageWrite, Told};
use crate::error::Result;
use crate::options::Apply;
use crate::page;
use crate::redo::{Wanted, Window};
use crate::store::Inner;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The largest single write to the data file.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// See the module.
pub(super) struct Batch {
    pages_max: usize,
    pages: AlignedBuffer,
    /// What lies in them, in the order of their places.
    own: Vec<Own>,
    /// The writes that are left: neighbours together.
    writes: VecDeque<Range<usize>>,
    window: Window,
}

impl Batch {
    /// Of up to so many pages at a time.
    pub(super) fn of_pages(pages: usize, page_bytes: usize) -> Self {
        let (pages_max, pages) = (pages, AlignedBuffer::new(pages * page_bytes));
        Self { pages_max, pages, own: Vec::new(), writes: VecDeque::new(), window: Window::wide() }
    }

    /// How many it takes at a time.
    pub(super) fn pages_max(&self) -> usize {
        self.pages_max
    }

    /// Writes are left.
    pub(super) fn is_left(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Puts pages together, and plans their writes.
    pub(super) fn gather(&mut self, inner: &Inner, mut captured: Vec<Captured>) -> Result<()> {
        assert!(self.writes.is_empty(), "what was put together before has been written");
        let (page_bytes, store) = (inner.geometry.page_bytes, inner.geometry.store);
        captured.sort_unstable_by_key(|own| own.page);
        self.pages.resize(captured.len() * page_bytes);
        let mut wanted: Vec<Wanted> = Vec::new();
        let (mut own, mut logged) = (Vec::with_capacity(captured.len()), 0);
        for (at, captured) in captured.iter().enumerate() {
            match &captured.content {
                Some(content) => {
                    self.pages.bytes_mut()[at * page_bytes..][..page_bytes].copy_from_slice(content);
                }
                None => {
                    wanted.extend(captured.chain.iter().map(|lsn| (*lsn, at)));
                    logged += 1;
                }
            }
            let last = *captured.chain.last().expect("what is dirty has a record");
            own.push((Own { page: captured.page, first: captured.chain[0] }, last));
        }
        drop(captured);
        wanted.sort_unstable();
        inner.redo_into(&wanted, &mut self.window, self.pages.bytes_mut())?;
        inner.counters.page_redone.fetch_add(logged, Ordering::Relaxed);
        for ((own, last), page) in own.iter().zip(self.pages.bytes_mut().chunks_mut(page_bytes)) {
            page::stamp(page, store, own.page, *last);
        }
        self.own = own.into_iter().map(|(own, _)| own).collect();

        let per_write = WRITE_BYTES_MAX / page_bytes;
        let mut start = 0;
        for group in self.own.chunk_by(|a, b| a.page.0 + 1 == b.page.0) {
            for part in group.chunks(per_write) {
                self.writes.push_back(start..start + part.len());
                start += part.len();
            }
        }
        Ok(())
    }

    /// Does the next writes, up to so many, so many at once; tells what was written.
    pub(super) fn write(&mut self, inner: &Inner, writes_max: usize, at_once: usize) -> Result<&[Own]> {
        let page_bytes = inner.geometry.page_bytes;
        let count = writes_max.min(self.writes.len());
        let ranges = self.writes.drain(..count).collect::<Vec<_>>();
        let writes: Vec<_> = ranges
            .iter()
            .map(|range| PageWrite {
                offset: self.own[range.start].page.0 * page_bytes as u64,
                bytes: &self.pages.bytes()[range.start * page_bytes..range.end * page_bytes],
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
        written.map_err(|error| inner.journal.fail("write", FileId::Data, error))?;
        let [Some(first), Some(last)] = [ranges.first(), ranges.last()] else { return Ok(&[]) };
        Ok(&self.own[first.start..last.end])
    }
}
