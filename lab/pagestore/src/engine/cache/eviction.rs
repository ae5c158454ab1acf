//! Eviction: a clock over the pages whose newest version may be in memory.

use super::{Page, PageTable};
use crate::types::{Lsn, PageNo};

/// After a full sweep found no clean page, clean pages are not searched for in the next calls. The pause is long
/// enough that sweeps cost no more than this many pages per call on average.
const SCAN_PAGES_PER_CALL: usize = 16;

/// Memory of an entry that is kept although the page is only in the data file, so that an older snapshot does not
/// read that content as its version; memory of an old version whose content is not in memory, counted beyond the
/// number of dirty pages; and the share of the cache that both may take (one eighth).
const STORED_ONLY_BYTES: usize = 300;
const OLD_VERSION_BYTES: usize = 100;
const SNAPSHOT_SHARE: usize = 8;

/// Pages in the order in which the clock visits them; a page that was used since the last visit stays.
#[derive(Default)]
pub(super) struct Clock {
    pages: Vec<PageNo>,
    hand: usize,
    /// Calls of `evict` that had to evict, and the call from which clean pages are searched for again.
    evictions: u64,
    clean_scan_from: u64,
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

    /// Lowers the limit for a while, in favour of the writing transaction. Refused, and false, if snapshots need the
    /// memory.
    pub(crate) fn shrink_to(&mut self, limit_bytes: usize) -> bool {
        let has_room = self.old_cached * self.page_bytes * 2 <= limit_bytes;
        if has_room {
            self.limit_bytes = limit_bytes.min(self.full_limit_bytes);
        }
        has_room
    }

    /// Ends `shrink_to`.
    pub(crate) fn restore_limit(&mut self) {
        self.limit_bytes = self.full_limit_bytes;
    }

    /// Evicts pages until the cache is within its limit: those not used recently, clean pages before dirty ones,
    /// dirty ones only if their records are durable. If that is not enough, ends the snapshots.
    pub(crate) fn evict(&mut self, visible: u64, durable: Lsn) {
        if self.snapshot_bytes() > self.full_limit_bytes / SNAPSHOT_SHARE {
            self.drop_old_versions(visible);
            if self.snapshot_bytes() > self.full_limit_bytes / SNAPSHOT_SHARE {
                self.give_up_snapshots(visible);
            }
        }
        if self.cached_bytes <= self.limit_bytes {
            return;
        }
        self.drop_old_versions(visible);
        self.clock.evictions += 1;
        for round in usize::from(self.clock.evictions < self.clock.clean_scan_from)..3 {
            let mut steps = self.clock.pages.len();
            while self.cached_bytes > self.limit_bytes && steps > 0 && !self.clock.pages.is_empty() {
                steps -= 1;
                self.advance_clock(visible, durable, round > 0);
            }
            if round == 0 && self.cached_bytes > self.limit_bytes {
                let Clock { pages, evictions, clean_scan_from, .. } = &mut self.clock;
                *clean_scan_from = *evictions + (pages.len() / SCAN_PAGES_PER_CALL) as u64;
            }
        }
        if self.cached_bytes > self.limit_bytes && self.old_cached > 0 {
            self.give_up_snapshots(visible);
        }
    }

    /// Memory that snapshots take beside cached pages.
    fn snapshot_bytes(&self) -> usize {
        let more = self.retained.len().saturating_sub(self.old_cached + self.dirty.len());
        self.stored_only.len() * STORED_ONLY_BYTES + more * OLD_VERSION_BYTES
    }

    fn advance_clock(&mut self, visible: u64, durable: Lsn, dirty_too: bool) {
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
        let was_read = entry.newest.as_ref().is_some_and(Page::take_was_read);
        if entry.recently_used || was_read {
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
            self.front.remove(page);
            self.cached_bytes -= self.page_bytes;
        }
        entry.in_clock = false;
        pages.swap_remove(*hand);
        self.drop_if_stored_only(page, needed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cache::tests::{change, page};
    use crate::engine::cache::{Lookup, View};

    /// Inserts a page as it was read from the data file.
    fn read(table: &mut PageTable, number: u64) {
        let Lookup::Stored(token) = table.lookup(PageNo(number), View::Newest) else {
            panic!("it is stored")
        };
        assert!(table.insert_read(PageNo(number), &page(1), token));
    }

    fn is_cached(table: &PageTable, number: u64) -> bool {
        table.entries.get(&PageNo(number)).is_some_and(|entry| entry.newest.is_some())
    }

    #[test]
    fn a_dirty_page_leaves_a_full_cache_only_when_its_records_are_durable() {
        let mut table = PageTable::new(4096, 4096);
        table.install(1, 1, change(5, 1, 8, true));
        table.install(2, 2, change(6, 2, 9, true));
        table.evict(2, Lsn::new(1, 7, 1));
        assert_eq!(table.cached_bytes(), 8192);
        table.evict(2, Lsn::new(1, 9, 1));
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
        table.evict(1, Lsn::new(1, 9, 1));
        assert!(is_cached(&table, 5) && !is_cached(&table, 6));
    }

    #[test]
    fn clean_pages_are_sought_again_some_time_after_there_were_none() {
        let pages = 2 * SCAN_PAGES_PER_CALL as u64;
        let mut table = PageTable::new(4096, pages as usize * 4096);
        let all = Lsn::new(1, 1000, 1);
        for number in 0..=pages {
            table.install(1, 1, change(number, 1, 8 + number as u32, true));
        }
        table.evict(1, all);
        read(&mut table, 100);
        table.evict(1, all);
        assert!(is_cached(&table, 100), "all of them were just looked at");
        table.install(2, 2, change(200, 1, 900, true));
        table.evict(2, all);
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
        table.evict(5, Lsn::ZERO);
        assert!(matches!(table.lookup(PageNo(5), View::At(snapshot)), Lookup::TooOld));
        assert_eq!(table.cached_bytes(), 4096);
    }
}
