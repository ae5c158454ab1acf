//! A batch of a checkpoint: pages assembled in memory as they will lie in the data file.

use super::CheckpointPage;
use crate::disk::aligned::AlignedBuffer;
use crate::engine::cache::{Captured, Page};
use crate::engine::inner::Inner;
use crate::engine::redo::{Wanted, Windows};
use crate::error::Result;
use crate::format::page;
use crate::types::Lsn;
use pagestore_disk::{Apply, FileId, IoEvent, PageWrite};
use std::sync::atomic::Ordering;

/// The largest write to the data file at full speed.
pub(super) const WRITE_BYTES_MAX: usize = 1 << 20;
/// The largest write of a step: commits wait behind it. EBS counts up to this as one I/O.
const STEP_WRITE_BYTES_MAX: usize = 256 << 10;
/// The most bytes of a step.
const STEP_BYTES_MAX: usize = 4 << 20;
/// Threads that read log at once.
const READERS: usize = 4;

/// Buffers for reading log, where `at_once` I/Os may be in flight.
pub(super) fn windows(at_once: usize) -> Windows {
    Windows::new(READERS.min(at_once).max(1))
}

/// A page that is to be written.
pub(super) struct Gathered {
    pub(super) entry: CheckpointPage,
    last: Lsn,
    /// The content if it is in memory; copied just before the write. Otherwise it was redone into the buffer.
    content: Option<Page>,
}

/// The number of writes for these pages, in batches of this many pages.
pub(super) fn count_writes(captured: &[Captured], pages_at_a_time: usize) -> usize {
    let stretches = |captured: &[Captured]| {
        let mut pages: Vec<u64> = captured.iter().map(|entry| entry.page.0).collect();
        pages.sort_unstable();
        pages.chunk_by(|a, b| a + 1 == *b).count()
    };
    captured.chunks(pages_at_a_time).map(stretches).sum()
}

/// Redoes the pages of `captured` that are only in the log, each into its element of `pages`. The elements of
/// `pages` are in the order of page numbers.
pub(super) fn gather<'a>(
    inner: &Inner,
    mut captured: Vec<Captured>,
    windows: &mut Windows,
    pages: impl Iterator<Item = &'a mut [u8]>,
) -> Result<Vec<Gathered>> {
    captured.sort_unstable_by_key(|entry| entry.page);
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut logged = 0;
    let mut gathered = Vec::with_capacity(captured.len());
    for (at, Captured { page, chain, content }) in captured.into_iter().enumerate() {
        if content.is_none() {
            wanted.extend(chain.iter().map(|lsn| (*lsn, at)));
            logged += 1;
        }
        let last = *chain.last().expect("what is dirty has a record");
        gathered.push(Gathered { entry: CheckpointPage { page, first: chain[0] }, last, content });
    }
    wanted.sort_unstable();
    inner.redo_into(&wanted, windows.each(), pages)?;
    inner.counters.engine.page_redone.fetch_add(logged, Ordering::Relaxed);
    Ok(gathered)
}

/// How many of these pages the first `writes_max` writes cover: neighbours are written together.
fn pages_in_writes(gathered: &[Gathered], pages_a_write: usize, writes_max: usize) -> usize {
    runs(gathered, pages_a_write).take(writes_max).map(<[_]>::len).sum()
}

/// Splits pages into runs of neighbours, one write each.
fn runs(gathered: &[Gathered], pages_a_write: usize) -> impl Iterator<Item = &[Gathered]> {
    gathered
        .chunk_by(|a, b| a.entry.page.0 + 1 == b.entry.page.0)
        .flat_map(move |run| run.chunks(pages_a_write))
}

/// Writes these pages, which are contiguous in `memory`, with up to `at_once` writes in flight of up to `write_bytes_max`.
pub(super) fn write(
    inner: &Inner,
    gathered: &[Gathered],
    memory: &mut [u8],
    at_once: usize,
    write_bytes_max: usize,
) -> Result<()> {
    let (page_bytes, store) = (inner.geometry.page_bytes, inner.geometry.store);
    for (Gathered { entry, last, content }, page) in gathered.iter().zip(memory.chunks_exact_mut(page_bytes))
    {
        if let Some(content) = content {
            page.copy_from_slice(content);
        }
        page::stamp(page, store, entry.page, *last);
    }
    let mut rest = &*memory;
    let writes: Vec<_> = runs(gathered, write_bytes_max / page_bytes)
        .map(|run| {
            let bytes;
            (bytes, rest) = rest.split_at(run.len() * page_bytes);
            PageWrite { offset: run[0].entry.page.0 * page_bytes as u64, bytes }
        })
        .collect();
    let counters = &inner.counters;
    let count = |event| {
        if let IoEvent::Ended { bytes, done: true, .. } = event {
            counters.engine.page_writes.fetch_add(1, Ordering::Relaxed);
            counters.engine.page_write_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    };
    let apply = if inner.applies_mapped() { Apply::Mapped } else { Apply::Direct };
    let written = inner.disk.write_many(&writes, apply, at_once, &count);
    written.map_err(|error| inner.journal.fail("write", FileId::Data, error))
}

/// A batch that is written in steps.
pub(super) struct Batch {
    memory: AlignedBuffer,
    /// The pages in it, in file order.
    gathered: Vec<Gathered>,
    /// How many of them have been written.
    written: usize,
    windows: Windows,
}

impl Batch {
    /// Up to `at_once` parts of the log are read at once.
    pub(super) fn new(at_once: usize) -> Self {
        Self { memory: AlignedBuffer::new(0), gathered: Vec::new(), written: 0, windows: windows(at_once) }
    }

    /// Whether writes are left.
    pub(super) fn is_left(&self) -> bool {
        self.written < self.gathered.len()
    }

    /// Assembles the next batch.
    pub(super) fn gather(&mut self, inner: &Inner, captured: Vec<Captured>) -> Result<()> {
        assert!(!self.is_left(), "what was put together before has been written");
        let page_bytes = inner.geometry.page_bytes;
        self.gathered.clear();
        self.written = 0;
        let bytes = captured.len() * page_bytes;
        if self.memory.capacity() < bytes {
            self.memory = AlignedBuffer::new(0);
            self.memory = AlignedBuffer::new(bytes);
        }
        self.memory.resize(bytes);
        let pages = self.memory.bytes_mut().chunks_exact_mut(page_bytes);
        self.gathered = gather(inner, captured, &mut self.windows, pages)?;
        Ok(())
    }

    /// Does the next writes, up to `writes_max` in all and `at_once` in flight; returns the pages that were
    /// written.
    pub(super) fn write_some(
        &mut self,
        inner: &Inner,
        writes_max: usize,
        at_once: usize,
    ) -> Result<impl Iterator<Item = CheckpointPage>> {
        let page_bytes = inner.geometry.page_bytes;
        let pages =
            pages_in_writes(&self.gathered[self.written..], STEP_WRITE_BYTES_MAX / page_bytes, writes_max);
        self.write(inner, pages.min(STEP_BYTES_MAX / page_bytes), at_once, STEP_WRITE_BYTES_MAX)
    }

    /// Does all its writes.
    pub(super) fn write_rest(
        &mut self,
        inner: &Inner,
        at_once: usize,
    ) -> Result<impl Iterator<Item = CheckpointPage>> {
        self.write(inner, self.gathered.len() - self.written, at_once, WRITE_BYTES_MAX)
    }

    fn write(
        &mut self,
        inner: &Inner,
        pages: usize,
        at_once: usize,
        write_bytes_max: usize,
    ) -> Result<impl Iterator<Item = CheckpointPage>> {
        let (from, page_bytes) = (self.written, inner.geometry.page_bytes);
        let to = from + pages;
        let memory = &mut self.memory.bytes_mut()[from * page_bytes..to * page_bytes];
        if from < to {
            write(inner, &self.gathered[from..to], memory, at_once, write_bytes_max)?;
        }
        self.written = to;
        Ok(self.gathered[from..to].iter().map(|gathered| gathered.entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::PageNo;

    fn captured(pages: impl Iterator<Item = u64>) -> Vec<Captured> {
        let chain = |at: usize| vec![Lsn::new(1, 8 + at as u32, 1)];
        pages
            .enumerate()
            .map(|(at, page)| Captured { page: PageNo(page), chain: chain(at), content: None })
            .collect()
    }

    #[test]
    fn neighbours_that_are_put_together_at_the_same_time_are_one_write() {
        // All of 1,000 pages, in an order that separates neighbours in the log.
        let all = captured((0..1000).map(|at| at * 7 % 1000));
        assert_eq!(count_writes(&all, 1000), 1);
        assert!(count_writes(&all, 100) > 900);
        // Every third page.
        let some = captured((0..1000).map(|at| at * 7 % 1000 * 3));
        assert_eq!((count_writes(&some, 1000), count_writes(&some, 100)), (1000, 1000));
        // In the order of the log.
        let in_order = captured(0..1000);
        assert_eq!((count_writes(&in_order, 1000), count_writes(&in_order, 100)), (1, 10));
        assert_eq!(count_writes(&[], 100), 0);
    }
}
