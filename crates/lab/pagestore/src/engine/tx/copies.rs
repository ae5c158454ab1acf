//! The pages that the writing transaction has changed: in memory, and beyond a limit set aside in a scratch file.
//!
//! ```text
//! in memory ── not used since the last visit of the clock, leaves first ──▶ aside      one write of 4 KiB
//!           ◀── changed again ──                                                       one read of 4 KiB
//! ```
//! Inner nodes of trees and the meta page stay in memory as long as there is anything else. Nothing of the scratch file
//! outlives the transaction: its commit logs all pages.

use super::allocation::META;
use super::buffers::PageCopy;
use crate::engine::cache::Page;
use crate::engine::tree::is_inner;
use crate::error::{Error, Result};
use crate::format::delta::ZEROS;
use crate::format::page::{TABLES_FROM, owner};
use crate::types::PageNo;
use pagestore_disk::{Disk, Scratch};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Pages are set aside together, one in this many of those in memory, and at most so many.
const ASIDE_SHARE: usize = 16;
const ASIDE_PAGES_MAX: usize = 256;

/// A page in the scratch file.
#[derive(Clone, Copy)]
struct Aside {
    /// Its place, in pages.
    place: u64,
    crc: u32,
}

/// See the module.
pub(super) struct Copies<'a> {
    disk: &'a dyn Disk,
    page_bytes: usize,
    pub(super) in_memory: FxHashMap<PageNo, PageCopy>,
    aside: FxHashMap<PageNo, Aside>,
    /// The pages in memory, in the order in which the clock visits them, and some that are not any more.
    clock: Vec<PageNo>,
    hand: usize,
    scratch: Option<Box<dyn Scratch + 'a>>,
    /// Places that were used and are free, and the number of places.
    free: Vec<u64>,
    places: u64,
}

impl<'a> Copies<'a> {
    /// None; `in_memory` is empty, and used for its capacity.
    pub(super) fn new(disk: &'a dyn Disk, page_bytes: usize, in_memory: FxHashMap<PageNo, PageCopy>) -> Self {
        Self {
            disk,
            page_bytes,
            in_memory,
            aside: FxHashMap::default(),
            clock: Vec::new(),
            hand: 0,
            scratch: None,
            free: Vec::new(),
            places: 0,
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
        let scratch = self.scratch.as_ref().expect("a page is aside in it");
        let mut content = Page::from(&ZEROS[..self.page_bytes]);
        let bytes = Arc::get_mut(&mut content).expect("nothing else refers to it yet");
        let failed = |error| Error::io("read", "the scratch file of the transaction", error);
        scratch.read(aside.place * self.page_bytes as u64, bytes).map_err(failed)?;
        if crc32c::crc32c(bytes) != aside.crc {
            let why = "it was set aside during this transaction, and its checksum does not fit".into();
            return Err(Error::CorruptPage { page, why });
        }
        Ok(Some(content))
    }

    /// Puts a page in memory, which is not there.
    pub(super) fn insert(&mut self, page: PageNo, copy: PageCopy) {
        if let Some(aside) = self.aside.remove(&page) {
            self.free.push(aside.place);
        }
        self.in_memory.insert(page, copy);
        self.clock.push(page);
    }

    /// Sets pages aside, but none of `kept`.
    pub(super) fn set_aside(&mut self, kept: &[PageNo]) -> Result<()> {
        let victims = self.choose_victims(kept);
        for (at, page) in victims.iter().enumerate() {
            if let Err(error) = self.set_one_aside(*page) {
                // They stay in memory, and the clock goes on visiting them.
                self.clock.extend_from_slice(&victims[at..]);
                return Err(error);
            }
        }
        Ok(())
    }

    /// One write a page: the kernel caches what one write appends in one folio, up to 1 MiB large, and ext4 walks all blocks
    /// of a folio for each later write to a part of it, which took half of the time of setting a page aside.
    fn set_one_aside(&mut self, page: PageNo) -> Result<()> {
        if self.scratch.is_none() {
            let failed = |error| Error::io("create", "a scratch file for the transaction", error);
            self.scratch = Some(self.disk.scratch().map_err(failed)?);
        }
        let scratch = self.scratch.as_ref().expect("it was just made");
        let content = &self.in_memory[&page].content;
        let place = self.free.last().copied().unwrap_or(self.places);
        let failed = |error| Error::io("write", "the scratch file of the transaction", error);
        scratch.write(place * self.page_bytes as u64, content).map_err(failed)?;
        let aside = Aside { place, crc: crc32c::crc32c(content) };
        if self.free.pop().is_none() {
            self.places += 1;
        }
        self.in_memory.remove(&page);
        self.aside.insert(page, aside);
        Ok(())
    }

    /// The next pages to set aside: those that were not used since the last visit; leaves first, then any.
    fn choose_victims(&mut self, kept: &[PageNo]) -> Vec<PageNo> {
        let wanted = (self.in_memory.len() / ASIDE_SHARE).clamp(1, ASIDE_PAGES_MAX);
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
mod tests {
    use super::*;
    use crashlab::{Refused, SimDisk, Trouble};
    use std::sync::atomic::AtomicBool;

    fn put(copies: &mut Copies<'_>, page: u64, byte: u8) {
        let used = AtomicBool::new(false);
        copies.insert(PageNo(page), PageCopy { content: Page::from(vec![byte; 4096]), base: None, used });
    }

    fn byte(copies: &Copies<'_>, page: u64) -> u8 {
        match copies.get(PageNo(page)) {
            Some(copy) => copy.content[100],
            None => copies.read_aside(PageNo(page)).unwrap().unwrap()[100],
        }
    }

    #[test]
    fn what_is_set_aside_is_read_back_and_its_place_is_used_again() {
        let disk = SimDisk::new();
        let mut copies = Copies::new(&disk, 4096, FxHashMap::default());
        (1..=64).for_each(|page| put(&mut copies, page, page as u8));
        for round in 0..20 {
            copies.set_aside(&[PageNo(1)]).unwrap();
            assert!(copies.get(PageNo(1)).is_some(), "it is kept");
            assert!((1..=64).all(|page| byte(&copies, page) == page as u8), "round {round}");
            for page in copies.all_aside() {
                put(&mut copies, page.0, page.0 as u8);
            }
        }
        assert!(copies.places <= 8, "{}", copies.places);
    }

    #[test]
    fn pages_that_are_used_stay_longer() {
        let disk = SimDisk::new();
        let mut copies = Copies::new(&disk, 4096, FxHashMap::default());
        (1..=64).for_each(|page| put(&mut copies, page, page as u8));
        for _ in 0..8 {
            (1..=16).for_each(|page| assert_eq!(byte(&copies, page), page as u8));
            copies.set_aside(&[]).unwrap();
        }
        assert!(copies.all_aside().len() >= 8);
        assert!(copies.all_aside().iter().all(|page| page.0 > 16), "{:?}", copies.all_aside());
    }

    #[test]
    fn pages_that_could_not_be_set_aside_stay_and_are_set_aside_later() {
        let disk = SimDisk::new();
        let mut copies = Copies::new(&disk, 4096, FxHashMap::default());
        (1..=64).for_each(|page| put(&mut copies, page, page as u8));
        disk.begin_trouble(Trouble { refused: Refused::Growth, after: 2, times: 1 });
        copies.set_aside(&[]).unwrap_err();
        assert_eq!((copies.aside.len(), copies.in_memory.len()), (2, 62));
        while !copies.in_memory.is_empty() {
            copies.set_aside(&[]).unwrap();
        }
        assert!((1..=64).all(|page| byte(&copies, page) == page as u8));
    }
}
