//! The indices of a log as sorted runs, newest first: what a page's records are is looked up in them until they have
//! been moved into the page table, which a checkpoint does before anything else. Those that the directory tells of are
//! read when a page may be in them, by their filters, or by that checkpoint.

use crate::disk::{Disk, FileId};
use crate::error::{Error, Result};
use crate::log::block;
use crate::log::directory::{self, Ended, Filter};
use crate::log::index::{Entry, Index};
use crate::log::scan::{FIRST_UNIT, Known, LogFile, Reading, Way};
use crate::log::writer::Position;
use crate::log::{Geometry, VLF_HEADER_BYTES};
use crate::store::{Inner, lock};
use crate::types::{Lsn, PageNo, UNIT_BYTES};
use std::sync::{Arc, OnceLock};

/// Pages that are moved into the page table before it is let go.
const PAGES_A_TURN: usize = 256;
/// Filters that are read at once.
const FILTERS_AT_ONCE: usize = 256;

/// Records of pages in one virtual log file, all of transactions that committed.
pub(crate) struct Run {
    vlf: u32,
    /// Sorted by page and place; of each page since its newest image. First, as it is newer, of the transaction that was
    /// open at the end of the virtual log file; then of those that committed in it.
    entries: OnceLock<[Vec<Entry>; 2]>,
    /// Where they are to be had.
    told: Option<Told>,
    /// Entries before this place are not needed any more.
    floor: u32,
}

/// What the directory tells of a run.
struct Told {
    slot: usize,
    ended: Ended,
    /// What was open at its end committed.
    open_too: bool,
    filter: OnceLock<Option<Filter>>,
}

impl Run {
    /// Of `vlf`, as far as recovery from `redo` on needs it.
    pub(super) fn new(vlf: u32, entries: Vec<Entry>, redo: Lsn) -> Self {
        Self { vlf, entries: OnceLock::from([Vec::new(), entries]), told: None, floor: floor(vlf, redo) }
    }

    /// As the directory tells of the virtual log file in `slot`, and its filter where that was read.
    pub(super) fn told(
        vlf: u32,
        (slot, ended): (usize, Ended),
        open_too: bool,
        filter: Option<Option<Filter>>,
        redo: Lsn,
    ) -> Self {
        let filter = filter.map_or_else(OnceLock::new, OnceLock::from);
        let told = Told { slot, ended, open_too, filter };
        Self { vlf, entries: OnceLock::new(), told: Some(told), floor: floor(vlf, redo) }
    }

    fn lsn(&self, entry: &Entry) -> Lsn {
        Lsn::from_packed(u64::from(self.vlf) << 32 | u64::from(entry.place))
    }

    /// Of what has been read.
    fn needed(&self) -> impl Iterator<Item = &Entry> {
        self.entries.get().into_iter().flatten().flatten().filter(|entry| entry.place >= self.floor)
    }

    /// The entries of a page in one of the two parts.
    fn of<'a>(&self, part: &'a [Entry], page: PageNo) -> &'a [Entry] {
        let first = part.partition_point(|entry| (entry.page, entry.place) < (page.0, self.floor));
        let rest = &part[first..];
        &rest[..rest.iter().take_while(|entry| entry.page == page.0).count()]
    }

    fn len(&self) -> usize {
        match (self.entries.get(), &self.told) {
            (Some(parts), _) => parts.iter().map(Vec::len).sum(),
            (None, Some(told)) => {
                let open = if told.open_too { told.ended.end.open_entries } else { 0 };
                (told.ended.end.entries + open) as usize
            }
            (None, None) => 0,
        }
    }

    /// Whether the page's records may be here, as far as is known without reading them.
    fn may_hold(&self, page: PageNo) -> bool {
        let filter = self.told.as_ref().and_then(|told| told.filter.get());
        filter.and_then(Option::as_ref).is_none_or(|filter| filter.may_hold(page))
    }
}

fn floor(vlf: u32, redo: Lsn) -> u32 {
    if vlf == redo.vlf() { redo.packed() as u32 } else { 0 }
}

/// All of them.
pub(crate) struct Runs {
    /// Newest first.
    runs: Vec<Run>,
    disk: Arc<dyn Disk>,
    geometry: Geometry,
}

impl Runs {
    pub(super) fn new(runs: Vec<Run>, disk: Arc<dyn Disk>, geometry: Geometry) -> Self {
        Self { runs, disk, geometry }
    }

    /// The page's records from its newest image on; `None` where the data file has it.
    ///
    /// # Errors
    /// When what is to be read cannot be, or is damaged.
    pub(crate) fn chain(&self, page: PageNo) -> Result<Option<Vec<Lsn>>> {
        let mut chain = Vec::new();
        for (at, run) in self.runs.iter().enumerate() {
            if run.entries.get().is_none() {
                self.load_filters(at);
                if !run.may_hold(page) {
                    continue;
                }
            }
            for part in self.entries_of(run)? {
                let own = run.of(part, page);
                chain.extend(own.iter().rev().map(|entry| run.lsn(entry)));
                if own.first().is_some_and(|entry| entry.image) {
                    chain.reverse();
                    return Ok(Some(chain));
                }
            }
        }
        // Changes without an image before them: the data file had the page when redo moved past it.
        Ok(None)
    }

    /// Reads the filters of a run and of those after it, unless they were.
    fn load_filters(&self, from: usize) {
        if self.runs[from].told.as_ref().is_none_or(|told| told.filter.get().is_some()) {
            return;
        }
        let wanted: Vec<_> = self.runs[from..]
            .iter()
            .take(FILTERS_AT_ONCE)
            .filter_map(|run| run.told.as_ref().map(|told| (run.vlf, told)))
            .filter(|(_, told)| told.filter.get().is_none())
            .collect();
        let places: Vec<_> = wanted.iter().map(|(vlf, told)| (*vlf, told.slot)).collect();
        // Where they cannot be read, the indices themselves are.
        let filters = directory::read_filters(self.disk.as_ref(), self.geometry.store, &places)
            .unwrap_or_else(|_| places.iter().map(|_| None).collect());
        for ((_, told), filter) in wanted.into_iter().zip(filters) {
            // Another thread may have read it as well.
            let _ = told.filter.set(filter);
        }
    }

    /// The entries of a run, read if they were not yet.
    fn entries_of<'a>(&self, run: &'a Run) -> Result<&'a [Vec<Entry>; 2]> {
        if let (None, Some(told)) = (run.entries.get(), &run.told) {
            let index = self.load(run.vlf, told)?;
            let open = if told.open_too { index.open } else { Vec::new() };
            let _ = run.entries.set([open, index.committed]);
        }
        Ok(run.entries.get().expect("it was read"))
    }

    fn load(&self, vlf: u32, told: &Told) -> Result<Index> {
        let end = told.ended.end;
        let inside = u64::from(end.unit) * UNIT_BYTES + u64::from(end.bytes) <= self.geometry.vlf_bytes;
        if !end.missing && inside {
            let mut blocks = crate::aligned::AlignedBuffer::new(end.bytes as usize);
            blocks.resize(end.bytes as usize);
            let at = self.geometry.slot_offset(told.slot) + u64::from(end.unit) * UNIT_BYTES;
            self.disk
                .read(FileId::Log, at, blocks.bytes_mut())
                .map_err(|error| Error::io("read", FileId::Log, error))?;
            if let Some(index) = Index::read(blocks.bytes(), end) {
                return Ok(index);
            }
        }
        self.load_whole(vlf, told)
    }

    /// From the records themselves: there was no room for an index, or it is damaged.
    fn load_whole(&self, vlf: u32, told: &Told) -> Result<Index> {
        let start = Lsn::new(vlf, FIRST_UNIT, 1);
        let damaged = |why: &str| Error::CorruptLog { lsn: start, why: why.into() };
        let reading = Reading { read_bytes: 1 << 20, parallel: 1 };
        let mut head = vec![0; VLF_HEADER_BYTES];
        self.disk
            .read(FileId::Log, self.geometry.slot_offset(told.slot), &mut head)
            .map_err(|error| Error::io("read", FileId::Log, error))?;
        let header = block::read_vlf_header(&head, &self.geometry)
            .filter(|header| header.vlf == vlf)
            .ok_or_else(|| damaged("its index and its header cannot be read"))?;
        let mut headers = vec![None; told.slot + 1];
        headers[told.slot] = Some(header);
        let log = LogFile::told(self.disk.as_ref(), self.geometry, headers, &[], reading)?;
        let mut way = Way::begin(told.slot, Position { lsn: start, previous: header.previous });
        let mut index = Index::begin(start, 0);
        // All of it was durable before the next one was begun.
        let known = Known { durable: Lsn::new(vlf + 1, 0, 0), epoch: 0 };
        log.walk_one(&mut way, known, reading, |header, used| index.take_block(header, used, Lsn::ZERO))?;
        if way.position.previous != told.ended.crc {
            return Err(Error::CorruptLog {
                lsn: way.position.lsn,
                why: "no block there continues the log, which goes on later".into(),
            });
        }
        index.sort();
        Ok(index)
    }

    /// Reads what was not read yet, one after the other: those who read and write pages meanwhile have the disk first.
    fn load_all(&self) -> Result<()> {
        self.runs.iter().try_for_each(|run| self.entries_of(run).map(|_| ()))
    }

    /// Pages in them, at most: one that is in several runs counts in each, and of runs that were not read each record.
    pub(super) fn pages(&self) -> u64 {
        let distinct = |run: &Run| match run.entries.get() {
            Some(parts) => {
                parts.iter().map(|part| part.chunk_by(|a, b| a.page == b.page).count() as u64).sum()
            }
            None => run.len() as u64,
        };
        self.runs.iter().map(distinct).sum()
    }

    /// Entries in them.
    pub(crate) fn entries(&self) -> usize {
        self.runs.iter().map(Run::len).sum()
    }

    /// Reads the run that lies furthest back, so that `oldest` is in it.
    pub(super) fn load_oldest(&self) -> Result<()> {
        self.runs.last().map_or(Ok(()), |run| self.entries_of(run).map(|_| ()))
    }

    /// The record that lies furthest back, of those that were read.
    pub(crate) fn oldest(&self) -> Option<(PageNo, Lsn)> {
        let all =
            self.runs.iter().flat_map(|run| run.needed().map(|entry| (PageNo(entry.page), run.lsn(entry))));
        all.min_by_key(|(_, lsn)| *lsn)
    }

    /// Every page's chain, in the order of the pages, of runs that were all read.
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
    ///
    /// # Errors
    /// When what is to be read cannot be, or is damaged.
    pub(crate) fn absorb_runs(&self) -> Result<()> {
        let Some(runs) = lock(&self.pages).runs() else { return Ok(()) };
        runs.load_all()?;
        let merged = runs.merged();
        self.course.pages_are(merged.len() as u64);
        lock(&self.pages).expect_pages(merged.len());
        let mut merged = merged.into_iter();
        while merged.len() > 0 {
            lock(&self.pages).absorb(merged.by_ref().take(PAGES_A_TURN));
        }
        lock(&self.pages).forget_runs();
        Ok(())
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
            let mut indices: BTreeMap<u32, Index> = BTreeMap::new();
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
            let geometry = Geometry { store: 7, page_bytes: 4096, sector_bytes: 512, vlf_bytes: 128 << 10 };
            let runs = Runs::new(runs.collect(), Arc::new(crate::sim::SimDisk::new()), geometry);
            for page in 0..12 {
                prop_assert_eq!(runs.chain(PageNo(page)).unwrap(), model.get(&page).cloned());
            }
            let merged: BTreeMap<u64, Vec<Lsn>> = runs.merged().into_iter().map(|(page, chain)| (page.0, chain)).collect();
            prop_assert_eq!(merged, model);
        }
    }
}
