//! Where a compaction has moved the roots of tables. A handle names the root that its table had when it was asked for,
//! and a snapshot sees the root that the table had when it began.

use crate::types::PageNo;
use arc_swap::ArcSwapOption;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number and one of the roots of a table, and all its roots, each with the commit that made it the root.
type Lineages = FxHashMap<(u32, PageNo), Arc<[(u64, PageNo)]>>;

/// See the module. Most stores never have any.
#[derive(Default)]
pub(crate) struct MovedRoots {
    lineages: ArcSwapOption<Lineages>,
    /// Whether there ever were any; every use of a table asks.
    any: AtomicBool,
}

impl MovedRoots {
    /// The root, as of commit `sequence`, of the table with this number whose root is or was `root`.
    #[inline]
    pub(crate) fn find(&self, number: u32, root: PageNo, sequence: u64) -> PageNo {
        // It was set before any snapshot could see a move.
        if !self.any.load(Ordering::Acquire) {
            return root;
        }
        let lineages = self.lineages.load();
        let Some(lineage) = lineages.as_ref().and_then(|all| all.get(&(number, root))) else { return root };
        let of_then = lineage.iter().rev().find(|(since, _)| *since <= sequence);
        of_then.map_or(root, |(_, root)| *root)
    }

    /// Commit `since` moves the root of a table; called before any snapshot can see the commit.
    pub(crate) fn add(&self, number: u32, from: PageNo, to: PageNo, since: u64) {
        let mut all = self.lineages.load_full().map_or_else(Lineages::default, |all| (*all).clone());
        let before = all.get(&(number, from)).map_or_else(|| vec![(0, from)], |before| before.to_vec());
        let lineage: Arc<[_]> = before.into_iter().chain([(since, to)]).collect();
        for (_, root) in lineage.iter() {
            all.insert((number, *root), Arc::clone(&lineage));
        }
        self.lineages.store(Some(Arc::new(all)));
        self.any.store(true, Ordering::Release);
    }

    /// Commit `since` and later ones did not happen.
    pub(crate) fn forget_from(&self, since: u64) {
        let Some(all) = self.lineages.load_full() else { return };
        let kept = |lineage: &[(u64, PageNo)]| -> Arc<[(u64, PageNo)]> {
            lineage.iter().copied().filter(|(at, _)| *at < since).collect()
        };
        let all: Lineages = all.iter().map(|(key, lineage)| (*key, kept(lineage))).collect();
        self.lineages.store(Some(Arc::new(all)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handle_finds_the_root_of_its_snapshot() {
        let roots = MovedRoots::default();
        assert_eq!(roots.find(16, PageNo(90), 5), PageNo(90));
        roots.add(16, PageNo(90), PageNo(50), 10);
        roots.add(16, PageNo(50), PageNo(20), 12);
        roots.add(17, PageNo(91), PageNo(90), 13);
        for handle in [90, 50, 20].map(PageNo) {
            let found = [9, 10, 11, 12, u64::MAX].map(|sequence| roots.find(16, handle, sequence).0);
            assert_eq!(found, [90, 50, 50, 20, 20], "{handle}");
        }
        assert_eq!(roots.find(17, PageNo(90), 13), PageNo(90));
        assert_eq!(roots.find(18, PageNo(90), 13), PageNo(90));
    }

    #[test]
    fn a_move_that_was_not_committed_is_forgotten() {
        let roots = MovedRoots::default();
        roots.add(16, PageNo(90), PageNo(50), 10);
        roots.add(16, PageNo(50), PageNo(20), 12);
        roots.forget_from(12);
        assert_eq!(roots.find(16, PageNo(90), u64::MAX), PageNo(50));
        roots.add(16, PageNo(50), PageNo(30), 13);
        assert_eq!(roots.find(16, PageNo(90), u64::MAX), PageNo(30));
    }
}
