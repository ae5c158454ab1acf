//! The way to a cached page without a lock: the newest versions in memory, in a hash table of atomic references that
//! readers search while the page table changes under its lock.
//!
//! ```text
//! reader          find: newest version there, if its commit is in the snapshot ── else ──▶ the page table, under its lock
//! page table      put, remove: under its lock, whenever a newest version comes into memory or leaves it
//! ```
//! It is a copy of what the page table knows, and may lack pages: a set holds a few pages, and one more displaces
//! another. A snapshot's commit, and all before it, were put here before the snapshot began, so the version here is at
//! least as new as the snapshot; if its commit is in the snapshot, it is the snapshot's version.

use super::page_memory::Content;
use super::{Page, View};
use crate::types::PageNo;
use arc_swap::{ArcSwapOption, Guard};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Pages of a set.
const WAYS: usize = 4;
/// Sets that are allocated together, when the first of them is used.
const SETS_PER_CHUNK: usize = 1024;
/// Places for each page of the cache, so that a set is hardly ever full.
const PLACES_PER_PAGE: usize = 2;

/// A version that stays in memory while this exists.
pub(crate) type Pinned = Guard<Option<Arc<Content>>>;

type Set = [ArcSwapOption<Content>; WAYS];

/// See the module.
pub(crate) struct Front {
    chunks: Box<[OnceLock<Box<[Set]>>]>,
    sets: usize,
    /// Snapshots before this have lost pages.
    given_up_before: AtomicU64,
}

impl Default for Front {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Front {
    /// For a cache of this many pages.
    pub(super) fn new(pages: usize) -> Self {
        let sets = (pages * PLACES_PER_PAGE / WAYS).next_power_of_two();
        let chunks = sets.div_ceil(SETS_PER_CHUNK);
        Self {
            chunks: (0..chunks).map(|_| OnceLock::new()).collect(),
            sets,
            given_up_before: AtomicU64::new(0),
        }
    }

    /// The chunk of a page's set, and the set's index there. The number is mixed, as neighbours would share sets with
    /// every power of two (Knuth 6.4).
    #[inline]
    fn place(&self, page: PageNo) -> (&OnceLock<Box<[Set]>>, usize) {
        let mixed = page.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let set = mixed as usize & (self.sets - 1);
        (&self.chunks[set / SETS_PER_CHUNK], set % SETS_PER_CHUNK)
    }

    /// The version of a page in `view`, if it is the newest and in memory.
    #[inline]
    pub(crate) fn find(&self, page: PageNo, view: View) -> Option<Pinned> {
        let (chunk, index) = self.place(page);
        let set = &chunk.get()?[index];
        for place in set {
            let found = place.load();
            let Some(version) = &*found else { continue };
            if version.page_no() != page {
                continue;
            }
            if let View::At(sequence) = view
                // Read after the version: what was put here after snapshots were given up may be newer than it says.
                && (sequence < version.since() || sequence < self.given_up_before.load(Ordering::Acquire))
            {
                return None;
            }
            version.note_read();
            return Some(found);
        }
        None
    }

    /// The newest version of a page comes into memory, or replaces the one before.
    pub(super) fn put(&self, page: PageNo, since: u64, version: &Page) {
        version.publish(page, since);
        let (chunk, index) = self.place(page);
        let sets = || (0..SETS_PER_CHUNK.min(self.sets)).map(|_| Set::default()).collect();
        let set = &chunk.get_or_init(sets)[index];
        let holds =
            |place: &ArcSwapOption<Content>, page| place.load().as_ref().map(|other| other.page_no()) == page;
        let place = set
            .iter()
            .find(|place| holds(place, Some(page)))
            .or_else(|| set.iter().find(|place| holds(place, None)))
            .unwrap_or(&set[page.0 as usize % WAYS]);
        place.store(Some(Arc::clone(version.content())));
    }

    /// The newest version of a page is not in memory any more.
    pub(super) fn remove(&self, page: PageNo) {
        let (chunk, index) = self.place(page);
        let Some(chunk) = chunk.get() else { return };
        for place in &chunk[index] {
            if place.load().as_ref().is_some_and(|version| version.page_no() == page) {
                place.store(None);
            }
        }
    }

    /// Snapshots before `sequence` have lost pages.
    pub(super) fn give_up_before(&self, sequence: u64) {
        self.given_up_before.store(sequence, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_memory::PageMemory;
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn put(front: &Front, page: u64, since: u64) {
        front.put(PageNo(page), since, &Page::from(vec![since as u8; 64]));
    }

    fn byte(front: &Front, page: u64, view: View) -> Option<u8> {
        front.find(PageNo(page), view).map(|found| found.as_ref().unwrap()[0])
    }

    #[test]
    fn a_snapshot_finds_the_newest_version_only_if_its_commit_is_in_it() {
        let front = Front::new(64);
        put(&front, 5, 7);
        assert_eq!(byte(&front, 5, View::At(6)), None);
        assert_eq!(byte(&front, 5, View::At(7)), Some(7));
        put(&front, 5, 8);
        assert_eq!(byte(&front, 5, View::At(7)), None);
        assert_eq!(byte(&front, 5, View::Newest), Some(8));
        front.remove(PageNo(5));
        assert_eq!(byte(&front, 5, View::Newest), None);
    }

    #[test]
    fn a_snapshot_that_was_given_up_finds_nothing() {
        let front = Front::new(64);
        put(&front, 5, 0);
        assert_eq!(byte(&front, 5, View::At(3)), Some(0));
        front.give_up_before(4);
        assert_eq!(byte(&front, 5, View::At(3)), None);
        assert_eq!(byte(&front, 5, View::At(4)), Some(0));
    }

    #[test]
    fn more_pages_than_places_displace_others_and_never_answer_for_them() {
        let front = Front::new(8);
        (0..1000).for_each(|page| put(&front, page, page % 250));
        let found: Vec<_> =
            (0..1000).filter_map(|page| Some((page, byte(&front, page, View::Newest)?))).collect();
        assert!((4..=16).contains(&found.len()), "{}", found.len());
        assert!(found.iter().all(|(page, byte)| u64::from(*byte) == page % 250));
    }

    #[test]
    fn a_page_that_displaces_another_is_never_found_for_it() {
        let front = Front::new(1);
        let rounds = if cfg!(miri) { 100 } else { 200_000 };
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for page in (0..64).cycle() {
                        assert!(byte(&front, page, View::Newest).is_none_or(|byte| u64::from(byte) == page));
                        if is_done.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            let versions: Vec<_> = (0..64).map(|page| Page::from(vec![page as u8; 64])).collect();
            let numbers = (0..64).cycle().take(rounds);
            numbers.for_each(|page| front.put(PageNo(page), page, &versions[page as usize]));
            is_done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn what_a_reader_holds_stays_whole_while_its_memory_would_be_used_again() {
        let (front, memory) = (Front::new(8), PageMemory::new(64));
        let rounds = if cfg!(miri) { 30 } else { 50_000 };
        let put_new = |byte: u8| {
            let mut page = memory.allocate();
            page.make_mut().fill(byte);
            front.put(PageNo(5), 1 + u64::from(byte), &page);
        };
        put_new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let found = front.find(PageNo(5), View::Newest).expect("it is always there");
                        let found = found.as_ref().unwrap();
                        let byte = found[0];
                        std::thread::yield_now();
                        assert!(
                            found.iter().all(|other| *other == byte) && found.since() == 1 + u64::from(byte)
                        );
                    }
                });
            }
            (0..rounds).for_each(|round| put_new(round as u8));
        });
        assert!(memory.bytes() < 10_000, "places are used again");
    }

    #[test]
    fn readers_on_other_threads_see_a_whole_version_while_it_is_replaced() {
        let front = Front::new(8);
        put(&front, 5, 1);
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut newest = 0;
                    for _ in 0..rounds {
                        let found = front.find(PageNo(5), View::Newest).expect("it is always there");
                        let found = found.as_ref().unwrap();
                        assert!(found.iter().all(|byte| *byte == found.since() as u8));
                        assert!(found.since() >= newest);
                        newest = found.since();
                    }
                });
            }
            (2..rounds).for_each(|since| put(&front, 5, since));
        });
    }
}
