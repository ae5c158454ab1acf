//! Snapshots: they read the versions that were current when they began, for as long as memory and files hold them.

use super::PageTable;
use super::old_version::OldVersion;
use crate::engine::inner::Inner;
use crate::sync::lock;
use crate::types::PageNo;

/// Pages whose old versions are dropped under one hold of the lock, unless memory is short.
const DROPPED_AT_ONCE: usize = if cfg!(test) { 1 } else { 64 };
/// The pages of a commit that drops what it has replaced itself.
const LARGE_COMMIT_PAGES: usize = 512;

impl PageTable {
    pub(super) fn oldest_needed(&self, visible: u64) -> u64 {
        self.snapshots.keys().next().map_or(visible, |first| visible.min(*first))
    }

    /// Begins a snapshot at `visible`, whose versions have not been dropped.
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
        self.drop_some_old_versions(visible, DROPPED_AT_ONCE);
    }

    /// As `drop_old_versions`, for a few more pages than a commit of this many adds. What a delayed large commit leaves
    /// is dropped by later ones, so that it does not block the next.
    pub(crate) fn drop_old_versions_after_commit(&mut self, visible: u64, pages: usize) {
        self.drop_some_old_versions(visible, DROPPED_AT_ONCE + 2 * pages);
    }

    /// Drops old versions that no snapshot can read, including snapshots that begin at `visible`.
    pub(super) fn drop_old_versions(&mut self, visible: u64) {
        self.drop_some_old_versions(visible, usize::MAX);
    }

    /// As `drop_old_versions`, for at most this many pages.
    fn drop_some_old_versions(&mut self, visible: u64, at_most: usize) {
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
                if let (_, OldVersion::Content(_)) = entry.old.remove(0) {
                    self.cached_bytes -= self.page_bytes;
                    self.old_cached -= 1;
                }
            }
            self.drop_if_stored_only(page, needed);
        }
        for _ in 0..at_most {
            let Some((_, page)) = self.stored_only.first().filter(|(changed, _)| *changed <= needed).copied()
            else {
                break;
            };
            self.stored_only.pop_first();
            self.drop_if_stored_only(page, needed);
        }
    }

    /// Drops the entry of a page that is only in the data file; not while a snapshot from before its last change
    /// would then read the data file's content as its own version.
    pub(super) fn drop_if_stored_only(&mut self, page: PageNo, needed: u64) {
        let Some(entry) = self.entries.get(&page) else { return };
        if entry.newest.is_some() || entry.in_clock || !entry.old.is_empty() || !entry.chain.is_empty() {
            return;
        }
        if entry.newest_sequence <= needed {
            self.entries.remove(&page);
        } else {
            self.stored_only.insert((entry.newest_sequence, page));
        }
    }

    /// Ends all snapshots that began before `visible`; their next read of a page fails with `TooOld`.
    pub(super) fn give_up_snapshots(&mut self, visible: u64) {
        // A thread that saw a later commit may have ended more.
        self.given_up_before = self.given_up_before.max(visible);
        self.front.give_up_before(self.given_up_before);
        self.snapshots = self.snapshots.split_off(&visible);
        self.drop_old_versions(visible);
    }
}

impl Inner {
    /// Drops what a durable commit of this many pages has replaced, unless the next commits do so anyway: the next large
    /// transaction then copies its pages into that memory, and the system need not clear any.
    pub(in crate::engine) fn drop_replaced(&self, pages: usize) {
        if pages >= LARGE_COMMIT_PAGES {
            for _ in 0..pages.div_ceil(DROPPED_AT_ONCE) {
                lock(&self.pages).drop_some_old_versions(self.journal.visible(), DROPPED_AT_ONCE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cache::tests::{cached, change};
    use crate::engine::cache::{Installed, Lookup, View};
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
        table.invalidate_reads();
        table.invalidate_reads();
        table.mark_written(captured.iter().map(|version| (version.page, version.chain[0])), visible);
        table.log_freed();
    }

    /// Commits new pages one by one, evicts and checkpoints them while an older snapshot is open; returns the
    /// number of entries that are left.
    fn entries_after(pages: u64, cache_pages: usize, end: impl FnOnce(&mut PageTable, u64)) -> usize {
        let mut table = PageTable::new(4096, cache_pages * 4096);
        table.install(1, 1, change(5, 1, 8, true));
        let snapshot = table.begin_snapshot(1);
        let last = 1 + pages;
        for sequence in 2..=last {
            table.install(sequence, sequence, change(1000 + sequence, 1, 16 + sequence as u32, true));
            table.evict(sequence, Lsn::new(2, 0, 1));
        }
        checkpoint(&mut table, Lsn::new(3, 8, 1), last);
        assert_eq!(table.dirty_pages(), 0);
        end(&mut table, snapshot);
        table.evict(last, Lsn::new(3, 0, 1));
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

    // Found by seed 42 of the crash laboratory: the snapshot's version is lost, and the one before it must not be
    // read instead.
    #[test]
    fn a_snapshot_whose_page_was_lost_to_a_large_transaction_is_not_shown_an_older_one() {
        let mut table = PageTable::new(4096, 4096);
        table.install(1, 1, change(5, 1, 8, true));
        let _older = table.begin_snapshot(1);
        table.install(2, 2, change(5, 2, 9, true));
        let snapshot = table.begin_snapshot(2);
        table.evict(1, Lsn::new(1, 9, 1));
        // The transaction was large: the old version is not in memory.
        table.install(3, 2, Installed { content: None, base: None, ..change(5, 3, 10, true) });
        table.evict(2, Lsn::new(1, 9, 1));
        let before = table.lookup(PageNo(5), View::At(snapshot));
        assert!(matches!(before, Lookup::Logged(chain, _) if chain == [Lsn::new(1, 9, 1)]));
        checkpoint(&mut table, Lsn::new(1, 11, 1), 3);
        assert!(matches!(table.lookup(PageNo(5), View::At(snapshot)), Lookup::TooOld));
    }
}
