//! The indices of a log as sorted runs, newest first. A page's records are looked up in them until they have been
//! moved into the page table, which a checkpoint does before anything else. Runs that the directory describes are
//! read when a page may be in them, according to their filters, or by that checkpoint.

use crate::error::{Error, Result};
use crate::format::control::KnownLog;
use crate::format::geometry::{Geometry, VLF_HEADER_BYTES};
use crate::log::block;
use crate::log::directory::{self, Filter, VlfEnd};
use crate::log::index::{Entry, Index};
use crate::log::scan::{FIRST_UNIT, LogFile, Reading, ScanCursor};
use crate::types::{Lsn, PageNo, Position, UNIT_BYTES};
use pagestore_disk::{Disk, FileId};
use std::sync::{Arc, OnceLock};

/// Filters that are read at once.
const FILTERS_AT_ONCE: usize = 256;

/// The page records in one virtual log file, all of transactions that committed.
pub(crate) struct Run {
    vlf: u32,
    /// Sorted by page and place; of each page since its newest image. The first part is newer: records of the
    /// transaction that was open at the end of the virtual log file. The second: those of transactions that
    /// committed in it.
    entries: OnceLock<[Vec<Entry>; 2]>,
    /// Where the entries can be read.
    stored: Option<StoredIndex>,
    /// Entries before this place are not needed.
    floor: u32,
}

/// The index of a virtual log file on disk, as the directory describes it.
struct StoredIndex {
    slot: usize,
    ended: VlfEnd,
    /// The transaction that was open at its end committed.
    open_too: bool,
    filter: OnceLock<Option<Filter>>,
}

impl Run {
    /// A run of `vlf`, of which recovery needs the part from `redo` on.
    pub(super) fn new(vlf: u32, entries: Vec<Entry>, redo: Lsn) -> Self {
        Self { vlf, entries: OnceLock::from([Vec::new(), entries]), stored: None, floor: floor(vlf, redo) }
    }

    /// A run that is read on demand: the index in `slot`, and its filter if that was read.
    pub(super) fn stored(
        vlf: u32,
        (slot, ended): (usize, VlfEnd),
        open_too: bool,
        filter: Option<Option<Filter>>,
        redo: Lsn,
    ) -> Self {
        let filter = filter.map_or_else(OnceLock::new, OnceLock::from);
        let stored = StoredIndex { slot, ended, open_too, filter };
        Self { vlf, entries: OnceLock::new(), stored: Some(stored), floor: floor(vlf, redo) }
    }

    fn lsn(&self, entry: &Entry) -> Lsn {
        Lsn::from_packed(u64::from(self.vlf) << 32 | u64::from(entry.place))
    }

    /// The entries that are needed, of what has been read.
    fn needed(&self) -> impl Iterator<Item = &Entry> {
        self.entries.get().into_iter().flatten().flatten().filter(|entry| entry.place >= self.floor)
    }

    /// The entries of a page in one of the two parts.
    fn entries_of_page<'a>(&self, part: &'a [Entry], page: PageNo) -> &'a [Entry] {
        let first = part.partition_point(|entry| (entry.page, entry.place) < (page.0, self.floor));
        let rest = &part[first..];
        &rest[..rest.iter().take_while(|entry| entry.page == page.0).count()]
    }

    fn len(&self) -> usize {
        match (self.entries.get(), &self.stored) {
            (Some(parts), _) => parts.iter().map(Vec::len).sum(),
            (None, Some(stored)) => {
                let open = if stored.open_too { stored.ended.end.open_entries } else { 0 };
                (stored.ended.end.entries + open) as usize
            }
            (None, None) => 0,
        }
    }

    /// Whether the page's records may be in this run, as far as is known without reading it.
    fn may_hold(&self, page: PageNo) -> bool {
        let filter = self.stored.as_ref().and_then(|stored| stored.filter.get());
        filter.and_then(Option::as_ref).is_none_or(|filter| filter.may_hold(page))
    }
}

fn floor(vlf: u32, redo: Lsn) -> u32 {
    if vlf == redo.vlf() { redo.packed() as u32 } else { 0 }
}

/// All runs of a log.
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

    /// The page's records from its newest image on; `None` if the page is in the data file.
    ///
    /// # Errors
    /// When an index cannot be read or is damaged.
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
                let entries = run.entries_of_page(part, page);
                chain.extend(entries.iter().rev().map(|entry| run.lsn(entry)));
                if entries.first().is_some_and(|entry| entry.image) {
                    chain.reverse();
                    return Ok(Some(chain));
                }
            }
        }
        // Changes without an image before them: the data file had the page when redo moved past it.
        Ok(None)
    }

    /// Reads the filters of a run and of those after it, unless they were read before.
    fn load_filters(&self, from: usize) {
        if self.runs[from].stored.as_ref().is_none_or(|stored| stored.filter.get().is_some()) {
            return;
        }
        let wanted: Vec<_> = self.runs[from..]
            .iter()
            .take(FILTERS_AT_ONCE)
            .filter_map(|run| run.stored.as_ref().map(|stored| (run.vlf, stored)))
            .filter(|(_, stored)| stored.filter.get().is_none())
            .collect();
        let places: Vec<_> = wanted.iter().map(|(vlf, stored)| (*vlf, stored.slot)).collect();
        // If they cannot be read, the indices themselves are.
        let filters = directory::read_filters(self.disk.as_ref(), self.geometry.store, &places)
            .unwrap_or_else(|_| places.iter().map(|_| None).collect());
        for ((_, stored), filter) in wanted.into_iter().zip(filters) {
            // Another thread may have read it as well.
            let _ = stored.filter.set(filter);
        }
    }

    /// The entries of a run, which are read if they were not yet.
    fn entries_of<'a>(&self, run: &'a Run) -> Result<&'a [Vec<Entry>; 2]> {
        if let (None, Some(stored)) = (run.entries.get(), &run.stored) {
            let index = self.load(run.vlf, stored)?;
            let open = if stored.open_too { index.open } else { Vec::new() };
            let _ = run.entries.set([open, index.committed]);
        }
        Ok(run.entries.get().expect("it was read"))
    }

    fn load(&self, vlf: u32, stored: &StoredIndex) -> Result<Index> {
        let end = stored.ended.end;
        let inside = u64::from(end.unit) * UNIT_BYTES + u64::from(end.bytes) <= self.geometry.vlf_bytes;
        if !end.missing && inside {
            let mut blocks = crate::disk::aligned::AlignedBuffer::new(end.bytes as usize);
            blocks.resize(end.bytes as usize);
            let at = self.geometry.slot_offset(stored.slot) + u64::from(end.unit) * UNIT_BYTES;
            self.disk
                .read(FileId::Log, at, blocks.bytes_mut())
                .map_err(Error::during("read", FileId::Log))?;
            if let Some(index) = Index::read(blocks.bytes(), end) {
                return Ok(index);
            }
        }
        self.load_whole(vlf, stored)
    }

    /// Builds the index from the records themselves: there was no space for one, or it is damaged.
    fn load_whole(&self, vlf: u32, stored: &StoredIndex) -> Result<Index> {
        let start = Lsn::new(vlf, FIRST_UNIT, 1);
        let damaged = |why: &str| Error::corrupt_log(start, why);
        let reading = Reading { read_bytes: 1 << 20, parallel: 1 };
        let mut head = vec![0; VLF_HEADER_BYTES];
        self.disk
            .read(FileId::Log, self.geometry.slot_offset(stored.slot), &mut head)
            .map_err(Error::during("read", FileId::Log))?;
        let header = block::read_vlf_header(&head, &self.geometry)
            .filter(|header| header.vlf == vlf)
            .ok_or_else(|| damaged("its index and its header cannot be read"))?;
        let mut headers = vec![None; stored.slot + 1];
        headers[stored.slot] = Some(header);
        let log = LogFile::with_headers(self.disk.as_ref(), self.geometry, headers, &[], reading)?;
        let mut cursor = ScanCursor::begin(stored.slot, Position { lsn: start, previous: header.previous });
        let mut index = Index::begin(start, 0);
        // All of it was durable before the next one was begun.
        let known = KnownLog { durable: Lsn::new(vlf + 1, 0, 0), epoch: 0 };
        log.walk_one(&mut cursor, known, reading, |header, used| index.add_block(header, used, Lsn::ZERO))?;
        if cursor.position.previous != stored.ended.crc {
            return Err(Error::CorruptLog {
                lsn: cursor.position.lsn,
                why: "no block there continues the log, which goes on later".into(),
            });
        }
        index.sort();
        Ok(index)
    }

    /// Reads the runs that were not read yet, sequentially: concurrent reads and writes of pages have priority on
    /// the disk.
    pub(crate) fn load_all(&self) -> Result<()> {
        self.runs.iter().try_for_each(|run| self.entries_of(run).map(|_| ()))
    }

    /// An upper bound of the pages in the runs: a page in several runs counts in each, and in runs that were not
    /// read each record counts.
    pub(super) fn pages(&self) -> u64 {
        let distinct = |run: &Run| match run.entries.get() {
            Some(parts) => {
                parts.iter().map(|part| part.chunk_by(|a, b| a.page == b.page).count() as u64).sum()
            }
            None => run.len() as u64,
        };
        self.runs.iter().map(distinct).sum()
    }

    /// The number of entries.
    pub(crate) fn entries(&self) -> usize {
        self.runs.iter().map(Run::len).sum()
    }

    /// Reads the oldest run, so that `oldest` can find its records.
    pub(super) fn load_oldest(&self) -> Result<()> {
        self.runs.last().map_or(Ok(()), |run| self.entries_of(run).map(|_| ()))
    }

    /// The oldest record, among those that were read.
    pub(crate) fn oldest(&self) -> Option<(PageNo, Lsn)> {
        let all =
            self.runs.iter().flat_map(|run| run.needed().map(|entry| (PageNo(entry.page), run.lsn(entry))));
        all.min_by_key(|(_, lsn)| *lsn)
    }

    /// Every page's chain, in the order of pages. All runs must have been read.
    pub(crate) fn merged(&self) -> Vec<(PageNo, Vec<Lsn>)> {
        let mut all: Vec<(u64, Lsn, bool)> = Vec::with_capacity(self.entries());
        for run in self.runs.iter().rev() {
            all.extend(run.needed().map(|entry| (entry.page, run.lsn(entry), entry.image)));
        }
        // The input consists of sorted runs, which a stable sort merges.
        all.sort();
        all.chunk_by(|a, b| a.0 == b.0)
            .filter_map(|chain| {
                let image = chain.iter().rposition(|(_, _, image)| *image)?;
                Some((PageNo(chain[0].0), chain[image..].iter().map(|(_, lsn, _)| *lsn).collect()))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        // The model reads the records in order.
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
            let runs = Runs::new(runs.collect(), Arc::new(crashlab::SimDisk::new()), geometry);
            for page in 0..12 {
                prop_assert_eq!(runs.chain(PageNo(page)).unwrap(), model.get(&page).cloned());
            }
            let merged: BTreeMap<u64, Vec<Lsn>> = runs.merged().into_iter().map(|(page, chain)| (page.0, chain)).collect();
            prop_assert_eq!(merged, model);
        }
    }
}
