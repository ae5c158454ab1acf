//! Some pages of a checkpoint, put together in memory as they will lie in the data file.

use super::Own;
use crate::aligned::AlignedBuffer;
use crate::cache::{Captured, Page};
use crate::disk::{FileId, PageWrite, Told};
use crate::error::Result;
use crate::options::Apply;
use crate::page;
use crate::redo::{Wanted, Windows};
use crate::store::Inner;
use crate::types::Lsn;
use std::sync::atomic::Ordering;

/// The largest single write to the data file.
const WRITE_BYTES_MAX: usize = 1 << 20;
/// So many read log beside each other.
const READERS: usize = 4;

/// Memory for those that read log, where `at_once` I/Os may be in flight.
pub(super) fn windows(at_once: usize) -> Windows {
    Windows::new(READERS.min(at_once).max(1))
}

/// A page that is to be written.
pub(super) struct Gathered {
    pub(super) own: Own,
    last: Lsn,
    /// Where it is in memory: it is copied just before it is written. What is not has been put together in its place.
    content: Option<Page>,
}

/// How many stretches of neighbours these pages are, so many at a time.
pub(super) fn writes_of(captured: &[Captured], pages_at_a_time: usize) -> usize {
    let stretches = |captured: &[Captured]| {
        let mut pages: Vec<u64> = captured.iter().map(|own| own.page.0).collect();
        pages.sort_unstable();
        pages.chunk_by(|a, b| a + 1 == *b).count()
    };
    captured.chunks(pages_at_a_time).map(stretches).sum()
}

/// Puts together what is in the log only, each page of those in `captured`, in the order of their places, in its own of
/// `pages`.
pub(super) fn gather<'a>(
    inner: &Inner,
    mut captured: Vec<Captured>,
    windows: &mut Windows,
    pages: impl Iterator<Item = &'a mut [u8]>,
) -> Result<Vec<Gathered>> {
    captured.sort_unstable_by_key(|own| own.page);
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
    inner.redo_into(&wanted, windows.each(), pages)?;
    inner.counters.engine.page_redone.fetch_add(logged, Ordering::Relaxed);
    Ok(gathered)
}

/// So many of these that lie first as make so many writes: neighbours are written together.
fn of_writes(gathered: &[Gathered], page_bytes: usize, writes_max: usize) -> usize {
    runs(gathered, page_bytes).take(writes_max).map(<[_]>::len).sum()
}

/// One write each.
fn runs(gathered: &[Gathered], page_bytes: usize) -> impl Iterator<Item = &[Gathered]> {
    gathered
        .chunk_by(|a, b| a.own.page.0 + 1 == b.own.page.0)
        .flat_map(move |run| run.chunks(WRITE_BYTES_MAX / page_bytes))
}

/// Writes these pages, which lie one after the other in `memory`, so many writes at once.
pub(super) fn write(inner: &Inner, gathered: &[Gathered], memory: &mut [u8], at_once: usize) -> Result<()> {
    let (page_bytes, store) = (inner.geometry.page_bytes, inner.geometry.store);
    for (Gathered { own, last, content }, page) in gathered.iter().zip(memory.chunks_exact_mut(page_bytes)) {
        if let Some(content) = content {
            page.copy_from_slice(content);
        }
        page::stamp(page, store, own.page, *last);
    }
    let mut rest = &*memory;
    let writes: Vec<_> = runs(gathered, page_bytes)
        .map(|run| {
            let bytes;
            (bytes, rest) = rest.split_at(run.len() * page_bytes);
            PageWrite { offset: run[0].own.page.0 * page_bytes as u64, bytes }
        })
        .collect();
    let counters = &inner.counters;
    let count = |told| {
        if let Told::Ended { bytes, done: true, .. } = told {
            counters.engine.page_writes.fetch_add(1, Ordering::Relaxed);
            counters.engine.page_write_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    };
    let way = if inner.applies_mapped() { Apply::Mapped } else { Apply::Direct };
    let written = inner.disk.write_many(&writes, way, at_once, &count);
    written.map_err(|error| inner.journal.fail("write", FileId::Data, error))
}

/// Pages that are written a few at a time.
pub(super) struct Batch {
    memory: AlignedBuffer,
    /// What lies in it, or will, in the order of its places.
    gathered: Vec<Gathered>,
    /// How many of them have been written.
    written: usize,
    windows: Windows,
}

impl Batch {
    /// That reads so many parts of the log at once, at most.
    pub(super) fn new(at_once: usize) -> Self {
        Self { memory: AlignedBuffer::new(0), gathered: Vec::new(), written: 0, windows: windows(at_once) }
    }

    /// Writes are left.
    pub(super) fn is_left(&self) -> bool {
        self.written < self.gathered.len()
    }

    /// Puts together what is in the log only.
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

    /// Does the next writes, up to so many, so many at once; tells what was written.
    pub(super) fn write(
        &mut self,
        inner: &Inner,
        writes_max: usize,
        at_once: usize,
    ) -> Result<impl Iterator<Item = Own>> {
        let (from, page_bytes) = (self.written, inner.geometry.page_bytes);
        let to = from + of_writes(&self.gathered[from..], page_bytes, writes_max);
        let memory = &mut self.memory.bytes_mut()[from * page_bytes..to * page_bytes];
        if from < to {
            write(inner, &self.gathered[from..to], memory, at_once)?;
        }
        self.written = to;
        Ok(self.gathered[from..to].iter().map(|gathered| gathered.own))
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
        // All of 1,000 pages, far from their neighbours in the log.
        let all = captured((0..1000).map(|at| at * 7 % 1000));
        assert_eq!(writes_of(&all, 1000), 1);
        assert!(writes_of(&all, 100) > 900);
        // Each third of them.
        let some = captured((0..1000).map(|at| at * 7 % 1000 * 3));
        assert_eq!((writes_of(&some, 1000), writes_of(&some, 100)), (1000, 1000));
        // As they lie in the log.
        let in_order = captured(0..1000);
        assert_eq!((writes_of(&in_order, 1000), writes_of(&in_order, 100)), (1, 10));
        assert_eq!(writes_of(&[], 100), 0);
    }
}
