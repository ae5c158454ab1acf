//! The indices of a log as sorted runs, newest first: what a page's records are is looked up in them until they have
//! been moved into the page table, which a checkpoint does before anything else.

use crate::log::index::Entry;
use crate::lsn::{Lsn, PageNo};
use crate::store::{Inner, lock};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Pages that are moved into the page table before it is let go.
const PAGES_A_TURN: usize = 256;

/// Records of pages in one virtual log file, all of transactions that committed.
pub(crate) struct Run {
    vlf: u32,
    /// Sorted by page and place; of each page since its newest image.
    entries: Vec<Entry>,
    /// Entries before this place are not needed any more.
    floor: u32,
}

impl Run {
    /// Of `vlf`, as far as recovery from `redo` on needs it.
    pub(super) fn new(vlf: u32, entries: Vec<Entry>, redo: Lsn) -> Self {
        let floor = if vlf == redo.vlf() { redo.packed() as u32 } else { 0 };
        Self { vlf, entries, floor }
    }

    fn lsn(&self, entry: &Entry) -> Lsn {
        Lsn::from_packed(u64::from(self.vlf) << 32 | u64::from(entry.place))
    }

    fn needed(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.place >= self.floor)
    }

    /// The entries of a page.
    fn of(&self, page: PageNo) -> &[Entry] {
        let first = self.entries.partition_point(|entry| (entry.page, entry.place) < (page.0, self.floor));
        let rest = &self.entries[first..];
        &rest[..rest.iter().take_while(|entry| entry.page == page.0).count()]
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Runs {
    /// Newest first.
    pub(super) runs: Vec<Run>,
}

impl Runs {
    /// The page's records from its newest image on; `None` where the data file has it.
    pub(crate) fn chain(&self, page: PageNo) -> Option<Vec<Lsn>> {
        let mut chain = Vec::new();
        for run in &self.runs {
            let own = run.of(page);
            chain.extend(own.iter().rev().map(|entry| run.lsn(entry)));
            if own.first().is_some_and(|entry| entry.image) {
                chain.reverse();
                return Some(chain);
            }
        }
        // Changes without an image before them: the data file had the page when redo moved past it.
        None
    }

    /// Pages in them, at most: one that is in several runs counts in each.
    pub(super) fn pages(&self) -> u64 {
        let distinct = |run: &Run| run.entries.chunk_by(|a, b| a.page == b.page).count() as u64;
        self.runs.iter().map(distinct).sum()
    }

    /// Entries in them.
    pub(crate) fn entries(&self) -> usize {
        self.runs.iter().map(|run| run.entries.len()).sum()
    }

    /// The record that lies furthest back.
    pub(crate) fn oldest(&self) -> Option<(PageNo, Lsn)> {
        let all =
            self.runs.iter().flat_map(|run| run.needed().map(|entry| (PageNo(entry.page), run.lsn(entry))));
        all.min_by_key(|(_, lsn)| *lsn)
    }

    /// Every page's chain, in the order of the pages.
    fn merged(&self) -> Vec<(PageNo, Vec<Lsn>)> {
        let mut all: Vec<(u64, Lsn, bool)> = Vec::with_capacity(self.entries());
        for run in self.runs.iter().rev() {
            all.extend(run.needed().map(|entry| (entry.page, run.lsn(entry), entry.image)));
        }
        // Sorted stretches one after the other: they are merged and not sorted anew.
        all.sort();
        all.chunk_by(|a, b| a.0 == b.0)
            .filter_map(|own| {
                let image = own.iter().rposition(|(_, _, image)| *image)?;
                Some((PageNo(own[0].0), own[image..].iter().map(|(_, lsn, _)| *lsn).collect()))
            })
            .collect()
    }
}

impl Inner {
    /// Moves what is left of the runs into the page table, a few pages at a time.
    pub(crate) fn absorb_runs(&self) {
        let Some(runs) = lock(&self.pages).runs() else { return };
        let runs: Arc<Runs> = runs;
        let merged = runs.merged();
        self.recovering.store(merged.len() as u64, Ordering::Release);
        lock(&self.pages).expect_pages(merged.len());
        for part in merged.chunks(PAGES_A_TURN) {
            lock(&self.pages).absorb(part);
        }
        lock(&self.pages).forget_runs();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        // What a reader that goes through the records in order would come to.
        #[test]
        fn a_page_is_looked_up_and_merged_as_reading_the_records_in_order_would_have_it(
            records in proptest::collection::vec((0..12_u64, any::<bool>(), 0..6_u32), 0..200),
            redo in 0..200_u32,
        ) {
            let mut records: Vec<_> = records;
            records.sort_by_key(|(_, _, vlf)| *vlf);
            let at = |index: usize, vlf: u32| Lsn::new(vlf + 1, index as u32 + 8, 1);
            let redo = records.get(redo as usize).map_or(Lsn::ZERO, |(_, _, vlf)| at(redo as usize, *vlf));
            let mut model: BTreeMap<u64, Vec<Lsn>> = BTreeMap::new();
            let mut indices: BTreeMap<u32, crate::log::index::Index> = BTreeMap::new();
            for (index, (page, image, vlf)) in records.iter().enumerate() {
                let lsn = at(index, *vlf);
                let place = lsn.packed() as u32;
                indices.entry(vlf + 1).or_default().committed.push(Entry { page: *page, place, image: *image });
                if lsn < redo {
                    continue;
                }
                if *image {
                    model.insert(*page, vec![lsn]);
                } else if let Some(chain) = model.get_mut(page) {
                    chain.push(lsn);
                }
            }
            let runs = indices.into_iter().rev().filter(|(vlf, _)| *vlf >= redo.vlf()).map(|(vlf, mut index)| {
                index.sort();
                Run::new(vlf, index.committed, redo)
            });
            let runs = Runs { runs: runs.collect() };
            for page in 0..12 {
                prop_assert_eq!(runs.chain(PageNo(page)), model.get(&page).cloned());
            }
            let merged: BTreeMap<u64, Vec<Lsn>> = runs.merged().into_iter().map(|(page, chain)| (page.0, chain)).collect();
            prop_assert_eq!(merged, model);
        }
    }
}
