//! What leaves memory when there is too much in it: a clock of the pages whose newest version may be there.

use super::PageTable;
use crate::types::{Lsn, PageNo};

/// After all pages were looked at for a clean one in vain, they are not for a while: it costs no more than to look at so
/// many each time that room is made.
const LOOKED_AT_MAX: usize = 16;

/// Memory of the entry of a page that is in the data file only, for as long as a snapshot must not take it for what it was; and
/// of an old version that is not in memory, of those that are more than the pages that are not in the data file; and the
/// part of the cache that all of them may have.
const BARE_BYTES: usize = 300;
const REFERENCE_BYTES: usize = 100;
const BARE_SHARE: usize = 8;

/// The pages in the order in which they are looked at: one that was used since the last time stays.
#[derive(Default)]
pub(super) struct Clock {
    pages: Vec<PageNo>,
    hand: usize,
    /// How often room was made, and when clean pages are sought again.
    rooms_made: u64,
    clean_sought_from: u64,
}

impl PageTable {
    pub(super) fn enter_clock(&mut self, page: PageNo) {
        if let Some(entry) = self.entries.get_mut(&page)
            && !entry.in_clock
        {
            entry.in_clock = true;
            self.clock.pages.push(page);
        }
    }

    /// Makes room: what was not used lately leaves, clean pages before dirty ones, dirty ones only if their
    /// records are durable, and at last the snapshots.
    pub(crate) fn make_room(&mut self, visible: u64, durable: Lsn) {
        if self.beside_bytes() > self.limit_bytes / BARE_SHARE {
            self.forget_old(visible);
            if self.beside_bytes() > self.limit_bytes / BARE_SHARE {
                self.give_up_snapshots(visible);
            }
        }
        if self.cached_bytes <= self.limit_bytes {
            return;
        }
        self.forget_old(visible);
        self.clock.rooms_made += 1;
        for round in usize::from(self.clock.rooms_made < self.clock.clean_sought_from)..3 {
            let mut steps = self.clock.pages.len();
            while self.cached_bytes > self.limit_bytes && steps > 0 && !self.clock.pages.is_empty() {
                steps -= 1;
                self.turn_clock(visible, durable, round > 0);
            }
            if round == 0 && self.cached_bytes > self.limit_bytes {
                let Clock { pages, rooms_made, clean_sought_from, .. } = &mut self.clock;
                *clean_sought_from = *rooms_made + (pages.len() / LOOKED_AT_MAX) as u64;
            }
        }
        if self.cached_bytes > self.limit_bytes && self.old_cached > 0 {
            self.give_up_snapshots(visible);
        }
    }

    /// What snapshots have of memory, beside the pages in it.
    fn beside_bytes(&self) -> usize {
        let more = self.retained.len().saturating_sub(self.old_cached + self.dirty.len());
        self.bare.len() * BARE_BYTES + more * REFERENCE_BYTES
    }

    fn turn_clock(&mut self, visible: u64, durable: Lsn, dirty_too: bool) {
        let needed = self.oldest_needed(visible);
        let Clock { pages, hand, .. } = &mut self.clock;
        if *hand >= pages.len() {
            *hand = 0;
        }
        let page = pages[*hand];
        let Some(entry) = self.entries.get_mut(&page) else {
            pages.swap_remove(*hand);
            return;
        };
        if entry.recently_used {
            entry.recently_used = false;
            *hand += 1;
            return;
        }
        let clean = entry.chain.is_empty();
        let may_go = clean || (dirty_too && entry.chain.last().is_some_and(|last| *last <= durable));
        if entry.newest.is_some() && !may_go {
            *hand += 1;
            return;
        }
        if entry.newest.take().is_some() {
            self.cached_bytes -= self.page_bytes;
        }
        entry.in_clock = false;
        pages.swap_remove(*hand);
        self.drop_if_bare(page, needed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::{change, page};
    use crate::cache::{Lookup, View};

    /// Puts a page there as it was read from the data file.
    fn read(table: &mut PageTable, number: u64) {
        let Lookup::Stored(token) = table.lookup(PageNo(number), View::Newest) else {
            panic!("it is stored")
        };
        assert!(table.keep(PageNo(number), &page(1), token));
    }

    fn is_cached(table: &PageTable, number: u64) -> bool {
        table.entries.get(&PageNo(number)).is_some_and(|entry| entry.newest.is_some())
    }

    #[test]
    fn a_dirty_page_leaves_a_full_cache_only_when_its_records_are_durable() {
        let mut table = PageTable::new(4096, 4096);
        table.install(1, 1, change(5, 1, 8, true));
        table.install(2, 2, change(6, 2, 9, true));
        table.make_room(2, Lsn::new(1, 7, 1));
        assert_eq!(table.cached_bytes(), 8192);
        table.make_room(2, Lsn::new(1, 9, 1));
        assert_eq!(table.cached_bytes(), 4096);
        let logged =
            [5, 6].map(|number| matches!(table.lookup(PageNo(number), View::Newest), Lookup::Logged(..)));
        assert_eq!(logged.iter().filter(|logged| **logged).count(), 1);
    }

    #[test]
    fn a_clean_page_leaves_before_a_dirty_one() {
        let mut table = PageTable::new(4096, 4096);
        table.install(1, 1, change(5, 1, 8, true));
        read(&mut table, 6);
        table.make_room(1, Lsn::new(1, 9, 1));
        assert!(is_cached(&table, 5) && !is_cached(&table, 6));
    }

    #[test]
    fn clean_pages_are_sought_again_some_time_after_there_were_none() {
        let pages = 2 * LOOKED_AT_MAX as u64;
        let mut table = PageTable::new(4096, pages as usize * 4096);
        let all = Lsn::new(1, 1000, 1);
        for number in 0..=pages {
            table.install(1, 1, change(number, 1, 8 + number as u32, true));
        }
        table.make_room(1, all);
        read(&mut table, 100);
        table.make_room(1, all);
        assert!(is_cached(&table, 100), "all of them were just looked at");
        table.install(2, 2, change(200, 1, 900, true));
        table.make_room(2, all);
        assert!(!is_cached(&table, 100));
        assert_eq!(table.cached_bytes(), pages as usize * 4096);
    }

    #[test]
    fn a_snapshot_that_outgrows_the_cache_is_given_up() {
        let mut table = PageTable::new(4096, 2 * 4096);
        table.install(1, 1, change(5, 1, 8, true));
        let snapshot = table.begin_snapshot(1);
        for sequence in 2..6 {
            table.install(sequence, sequence, change(5, sequence as u8, 8 + sequence as u32, true));
        }
        table.make_room(5, Lsn::ZERO);
        assert!(matches!(table.lookup(PageNo(5), View::At(snapshot)), Lookup::TooOld));
        assert_eq!(table.cached_bytes(), 4096);
    }
}
