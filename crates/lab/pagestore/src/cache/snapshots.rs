//! What readers see: the versions that were current when their snapshots began, for as long as there is room for them.

use super::old::Old;
use super::{Page, PageTable};
use crate::types::PageNo;

/// Pages that are kept for who wants their memory.
const FORGOTTEN_MAX: usize = 8;
/// Pages of which old versions are dropped under one hold of the lock, where memory is not short.
const FORGOTTEN_AT_ONCE: usize = if cfg!(test) { 1 } else { 64 };

impl PageTable {
    pub(super) fn oldest_needed(&self, visible: u64) -> u64 {
        self.snapshots.keys().next().map_or(visible, |first| visible.min(*first))
    }

    /// Begins a snapshot at `visible`, of which nothing is ever given up.
    pub(crate) fn begin_snapshot(&mut self, visible: u64) -> u64 {
        debug_assert!(visible >= self.given_up_before, "what is visible stays so");
        *self.snapshots.entry(visible).or_insert(0) += 1;
        visible
    }

    pub(crate) fn end_snapshot(&mut self, sequence: u64, visible: u64) {
        if let Some(count) = self.snapshots.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                self.snapshots.remove(&sequence);
            }
        }
        self.forget_some(visible, FORGOTTEN_AT_ONCE);
    }

    /// As `forget_old`, of a few pages more than a commit of so many adds to them: what a large one leaves does not keep the
    /// next one waiting.
    pub(crate) fn forget_beside(&mut self, visible: u64, pages: usize) {
        self.forget_some(visible, FORGOTTEN_AT_ONCE + 2 * pages);
    }

    /// Drops the old versions that no snapshot, those yet to begin at `visible` included, can read.
    pub(super) fn forget_old(&mut self, visible: u64) {
        self.forget_some(visible, usize::MAX);
    }

    /// As that, of so many pages.
    fn forget_some(&mut self, visible: u64, at_most: usize) {
        let needed = self.oldest_needed(visible);
        for _ in 0..at_most {
            let Some((_, page)) = self.retained.front().filter(|(replaced, _)| *replaced <= needed).copied()
            else {
                break;
            };
            self.retained.pop_front();
            let Some(entry) = self.entries.get_mut(&page) else { continue };
            while !entry.old.is_empty() {
                let successor = entry.old.get(1).map_or(entry.newest_sequence, |(sequence, _)| *sequence);
                if successor > needed {
                    break;
                }
                if let (_, Old::Content(content)) = entry.old.remove(0) {
                    self.cached_bytes -= self.page_bytes;
                    self.old_cached -= 1;
                    if self.forgotten.len() < FORGOTTEN_MAX {
                        self.forgotten.push(content);
                    }
                }
            }
            self.drop_if_bare(page, needed);
        }
        for _ in 0..at_most {
            let Some((_, page)) = self.bare.first().filter(|(changed, _)| *changed <= needed).copied() else {
                break;
            };
            self.bare.pop_first();
            self.drop_if_bare(page, needed);
        }
    }

    /// Drops the entry of a page that is in the data file only; not while a snapshot from before its last change would then
    /// take what is there for what it was.
    pub(super) fn drop_if_bare(&mut self, page: PageNo, needed: u64) {
        let Some(entry) = self.entries.get(&page) else { return };
        if entry.newest.is_some() || entry.in_clock || !entry.old.is_empty() || !entry.chain.is_empty() {
            return;
        }
        if entry.newest_sequence <= needed {
            self.entries.remove(&page);
        } else {
            self.bare.insert((entry.newest_sequence, page));
        }
    }

    /// Ends all snapshots that begun before `visible`: what they read next is told to be too old.
    pub(super) fn give_up_snapshots(&mut self, visible: u64) {
        // Another, who had seen a later commit, may have given up more.
        self.given_up_before = self.given_up_before.max(visible);
        self.snapshots = self.snapshots.split_off(&visible);
        self.forget_old(visible);
    }

    /// Old versions that were forgotten, for `spare` to have a few of them.
    pub(crate) fn take_forgotten(&mut self, spare: &mut Vec<Page>) {
        let room = FORGOTTEN_MAX.saturating_sub(spare.len());
        spare.extend(self.forgotten.drain(..).take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::{cached, change};
    use crate::cache::{Installed, Lookup, View};
    use crate::types::Lsn;

    #[test]
    fn a_snapshot_reads_what_was_there_when_it_began_until_it_ends() {
        let mut table = PageTable::new(4096, 1 << 20);
        table.install(1, 0, change(5, 1, 8, true));
        let snapshot = table.begin_snapshot(1);
        table.install(2, 1, change(5, 2, 9, false));
        assert_eq!(cached(table.lookup(PageNo(5), View::At(snapshot))), 1);
        assert_eq!(cached(table.lookup(PageNo(5), View::Newest)), 2);
        table.end_snapshot(snapshot, 2);
        assert_eq!(table.cached_bytes(), 4096);
    }

    fn checkpoint(table: &mut PageTable, redo: Lsn, visible: u64) {
        table.begin_capture(redo);
        let mut captured = Vec::new();
        assert_eq!(table.capture(PageNo(0), usize::MAX, &mut captured), None);
        table.go_on();
        table.go_on();
        table.written(captured.iter().map(|own| (own.page, own.chain[0])), visible);
        table.free_log();
    }

    /// New pages, one a commit, that leave the cache and are written beside a snapshot from before; what is left of them.
    fn entries_after(pages: u64, cache_pages: usize, end: impl FnOnce(&mut PageTable, u64)) -> usize {
        let mut table = PageTable::new(4096, cache_pages * 4096);
        table.install(1, 1, change(5, 1, 8, true));
        let snapshot = table.begin_snapshot(1);
        let last = 1 + pages;
        for sequence in 2..=last {
            table.install(sequence, sequence, change(1000 + sequence, 1, 16 + sequence as u32, true));
            table.make_room(sequence, Lsn::new(2, 0, 1));
        }
        checkpoint(&mut table, Lsn::new(3, 8, 1), last);
        assert_eq!(table.dirty_pages(), 0);
        end(&mut table, snapshot);
        table.make_room(last, Lsn::new(3, 0, 1));
        table.entries.len()
    }

    #[test]
    fn entries_of_pages_that_are_in_the_data_file_only_go_with_the_snapshot_from_before_them() {
        let left = entries_after(300, 64, |table, snapshot| {
            assert!(table.entries.len() > 200, "it must not take what is there for what it was");
            assert!(matches!(table.lookup(PageNo(1002), View::At(snapshot)), Lookup::TooOld));
            table.end_snapshot(snapshot, 301);
        });
        assert!(left <= 64, "{left}");
    }

    #[test]
    fn a_snapshot_is_given_up_that_would_need_too_many_of_them() {
        let left = entries_after(10_000, 64, |_, _| {});
        assert!(left <= 64, "{left}");
    }

    // What the laboratory's seed 42 found: the page before is gone, and the one before that must not be read for it.
    #[test]
    fn a_snapshot_whose_page_was_lost_to_a_large_transaction_is_not_shown_an_older_one() {
        let mut table = PageTable::new(4096, 4096);
        table.install(1, 1, change(5, 1, 8, true));
        let _older = table.begin_snapshot(1);
        table.install(2, 2, change(5, 2, 9, true));
        let snapshot = table.begin_snapshot(2);
        table.make_room(1, Lsn::new(1, 9, 1));
        // Its pages went to the log early, and what they were before is in no memory.
        table.install(3, 2, Installed { content: None, base: None, ..change(5, 3, 10, true) });
        table.make_room(2, Lsn::new(1, 9, 1));
        let before = table.lookup(PageNo(5), View::At(snapshot));
        assert!(matches!(before, Lookup::Logged(chain, _) if chain == [Lsn::new(1, 9, 1)]));
        checkpoint(&mut table, Lsn::new(1, 11, 1), 3);
        assert!(matches!(table.lookup(PageNo(5), View::At(snapshot)), Lookup::TooOld));
    }
}
