//! The pages that the writing transaction has changed: in memory, and beyond a limit set aside in a scratch file.
//!
//! ```text
//! in memory ── not used since the last visit of the clock, leaves first ──▶ queue ──▶ scratch file
//!           ◀── changed again ──────────────────────────────────────────────            one write and one read of 4 KiB
//! ```
//! A thread writes the queue, if the store has threads. A page in the queue is still in memory and counts there.
//! Inner nodes of trees and the meta page stay in memory as long as there is anything else. Nothing of the scratch file
//! outlives the transaction: its commit logs all pages.

use super::allocation::META;
use super::buffers::PageCopy;
use super::write_queue::{Queued, WriteQueue, Written};
use crate::engine::cache::Page;
use crate::engine::cache::page_memory::PageMemory;
use crate::engine::tree::node::is_inner;
use crate::error::{Error, Result};
use crate::format::page::{TABLES_FROM, owner};
use crate::types::PageNo;
use pagestore_disk::Disk;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Pages are set aside together, one in this many of those in memory, and at most so many.
const ASIDE_SHARE: usize = 16;
const ASIDE_PAGES_MAX: usize = 256;
/// One in this many of the changed pages may wait to be written, and at most so many: several parts that are set aside
/// together, so that a busy processor does not make the transaction wait.
const QUEUE_SHARE: usize = ASIDE_SHARE / 4;
const QUEUE_PAGES_MAX: usize = 8 * ASIDE_PAGES_MAX;

/// A page in the scratch file.
#[derive(Clone, Copy)]
struct Aside {
    /// Its place, in pages.
    place: u64,
    /// Its number in the queue.
    number: u64,
}

/// See the module.
pub(super) struct Copies<'a> {
    disk: &'a dyn Disk,
    memory: Arc<PageMemory>,
    pub(super) in_memory: FxHashMap<PageNo, PageCopy>,
    aside: FxHashMap<PageNo, Aside>,
    /// The pages in memory, in the order in which the clock visits them, and some that are not any more.
    clock: Vec<PageNo>,
    hand: usize,
    /// The scratch file and the pages on their way to it; made for the first page.
    queue: Option<WriteQueue>,
    has_thread: bool,
    queue_pages: usize,
    /// Places that were used and are free.
    free: Vec<u64>,
    /// The checksum of what was written at each place.
    crcs: Vec<u32>,
}

impl<'a> Copies<'a> {
    /// None; `in_memory` is empty, and used for its capacity. With `has_thread` pages are written by a thread.
    pub(super) fn new(
        disk: &'a dyn Disk,
        memory: Arc<PageMemory>,
        in_memory: FxHashMap<PageNo, PageCopy>,
        has_thread: bool,
    ) -> Self {
        Self {
            disk,
            memory,
            in_memory,
            aside: FxHashMap::default(),
            clock: Vec::new(),
            hand: 0,
            queue: None,
            has_thread,
            queue_pages: 0,
            free: Vec::new(),
            crcs: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_memory.is_empty() && self.aside.is_empty()
    }

    /// The page in memory.
    pub(super) fn get(&self, page: PageNo) -> Option<&PageCopy> {
        let copy = self.in_memory.get(&page)?;
        if !copy.used.load(Ordering::Relaxed) {
            copy.used.store(true, Ordering::Relaxed);
        }
        Some(copy)
    }

    pub(super) fn is_aside(&self, page: PageNo) -> bool {
        self.aside.contains_key(&page)
    }

    /// The pages that are set aside, in order.
    pub(super) fn all_aside(&self) -> Vec<PageNo> {
        let mut pages: Vec<_> = self.aside.keys().copied().collect();
        pages.sort_unstable();
        pages
    }

    /// The content of a page that was set aside.
    pub(super) fn read_aside(&self, page: PageNo) -> Result<Option<Page>> {
        let Some(aside) = self.aside.get(&page) else { return Ok(None) };
        let queue = self.queue.as_ref().expect("a page was set aside by it");
        if let Some(content) = queue.content(aside.number) {
            return Ok(Some(content.clone()));
        }
        let mut content = self.memory.allocate();
        let bytes = content.make_mut();
        let failed = |error| Error::io("read", "the scratch file of the transaction", error);
        queue.read(aside.place, bytes).map_err(failed)?;
        if crc32c::crc32c(bytes) != self.crcs[aside.place as usize] {
            let why = "it was set aside during this transaction, and its checksum does not fit".into();
            return Err(Error::CorruptPage { page, why });
        }
        Ok(Some(content))
    }

    /// Puts a page in memory, which is not there.
    pub(super) fn insert(&mut self, page: PageNo, copy: PageCopy) {
        if let Some(aside) = self.aside.remove(&page) {
            self.free.push(aside.place);
            self.queue.iter_mut().for_each(|queue| queue.cancel(aside.number));
        }
        self.in_memory.insert(page, copy);
        self.clock.push(page);
    }

    /// The pages in memory that wait to be written, at most.
    pub(super) fn queue_pages(&self) -> usize {
        self.queue_pages
    }

    /// Sets at least `least` pages aside, but none of `kept`. Returns when all but `queue_pages` are written.
    ///
    /// # Errors
    /// When these or earlier ones could not be written: all that were not are in memory again.
    pub(super) fn set_aside(&mut self, kept: &[PageNo], least: usize) -> Result<()> {
        if self.queue.is_none() {
            let failed = |error| Error::io("create", "a scratch file for the transaction", error);
            let scratch = self.disk.scratch().map_err(failed)?;
            self.queue = Some(WriteQueue::new(scratch, self.memory.page_bytes(), self.has_thread));
            if self.has_thread {
                self.queue_pages = (self.in_memory.len() / QUEUE_SHARE).min(QUEUE_PAGES_MAX);
            }
        }
        let wanted = (self.in_memory.len() / ASIDE_SHARE).clamp(1, ASIDE_PAGES_MAX).max(least);
        let victims = self.choose_victims(kept, wanted);
        let queue = self.queue.as_mut().expect("it was just made");
        for page in victims {
            let copy = self.in_memory.remove(&page).expect("the clock has found it");
            let place = self.free.pop().unwrap_or_else(|| {
                self.crcs.push(0);
                self.crcs.len() as u64 - 1
            });
            let number = queue.push(page, place, copy.content);
            self.aside.insert(page, Aside { place, number });
        }
        queue.submit();
        self.settle()
    }

    /// Waits until the queue has no more pages than it may.
    fn settle(&mut self) -> Result<()> {
        let Self { queue: Some(queue), crcs, .. } = self else { return Ok(()) };
        let settled = queue.settle(self.queue_pages, |Written { queued, crc }| {
            crcs[queued.place as usize] = crc;
        });
        settled.map_err(|error| {
            for Queued { page, place, content } in queue.take_unwritten() {
                if let Some(content) = content {
                    self.aside.remove(&page);
                    self.free.push(place);
                    let mut copy = PageCopy::new(content, None);
                    *copy.used.get_mut() = false;
                    self.in_memory.insert(page, copy);
                    self.clock.push(page);
                }
            }
            Error::io("write", "the scratch file of the transaction", error)
        })
    }

    /// The next pages to set aside: those that were not used since the last visit; leaves first, then any.
    fn choose_victims(&mut self, kept: &[PageNo], wanted: usize) -> Vec<PageNo> {
        let mut victims = Vec::with_capacity(wanted);
        // The first round clears what the second finds unused.
        for round in 0..3 {
            let mut steps = self.clock.len();
            while victims.len() < wanted && steps > 0 && !self.clock.is_empty() {
                steps -= 1;
                if self.hand >= self.clock.len() {
                    self.hand = 0;
                }
                let page = self.clock[self.hand];
                let Some(copy) = self.in_memory.get(&page) else {
                    self.clock.swap_remove(self.hand);
                    continue;
                };
                let is_kept = page == META || kept.contains(&page);
                let is_hot = copy.used.swap(false, Ordering::Relaxed);
                let is_leaf = !(owner(&copy.content) >= TABLES_FROM && is_inner(&copy.content));
                if is_kept || round < 2 && (is_hot || !is_leaf) {
                    self.hand += 1;
                    continue;
                }
                self.clock.swap_remove(self.hand);
                victims.push(page);
            }
        }
        victims
    }
}

#[cfg(test)]
mod tests;
