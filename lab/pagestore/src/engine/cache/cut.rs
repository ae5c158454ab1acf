//! Pages past the end of the data file, which a compaction has cut off.

use super::PageTable;
use super::old_version::OldVersion;
use crate::types::PageNo;
use std::ops::Range;

impl PageTable {
    /// Whether a snapshot is open that began before commit `sequence`.
    pub(crate) fn has_snapshot_before(&self, sequence: u64) -> bool {
        self.snapshots.keys().next().is_some_and(|oldest| *oldest < sequence)
    }

    /// Forgets these pages, as far as they were not changed after commit `sequence`: no snapshot reads them, and no
    /// checkpoint need write them.
    pub(crate) fn forget_cut(&mut self, pages: Range<u64>, sequence: u64) {
        for page in pages.map(PageNo) {
            let Some(entry) = self.entries.get(&page).filter(|entry| entry.newest_sequence <= sequence)
            else {
                continue;
            };
            let old = entry.old.iter().filter(|(_, old)| matches!(old, OldVersion::Content(_))).count();
            let cached = old + usize::from(entry.newest.is_some());
            self.stored_only.remove(&(entry.newest_sequence, page));
            self.old_cached -= old;
            self.cached_bytes -= cached * self.page_bytes;
            self.dirty.remove(&page);
            self.front.remove(page);
            self.entries.remove(&page);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::cache::tests::{cached, change};
    use crate::engine::cache::{Lookup, PageTable, View};
    use crate::types::PageNo;

    #[test]
    fn pages_that_were_cut_off_are_forgotten_and_those_added_since_are_not() {
        let mut table = PageTable::new(4096, 1 << 20);
        for (sequence, page) in [(1, 5), (1, 6), (1, 7)] {
            table.install(sequence, sequence, change(page, 1, page as u32, true));
        }
        let snapshot = table.begin_snapshot(1);
        table.install(2, 2, change(6, 2, 20, true));
        assert!(table.has_snapshot_before(2) && !table.has_snapshot_before(1));
        table.end_snapshot(snapshot, 2);
        // Page 7 is added again by commit 3, after commit 2 has cut off the three.
        table.install(3, 3, change(7, 1, 30, true));
        table.forget_cut(5..8, 2);
        assert_eq!((table.dirty_pages(), table.cached_bytes()), (1, 4096));
        assert_eq!(cached(table.lookup(PageNo(7), View::Newest)), 1);
        assert!(matches!(table.lookup(PageNo(6), View::Newest), Lookup::Stored(_)));
    }
}
