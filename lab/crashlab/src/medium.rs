//! The medium below the simulated disk: what a crash may leave of the writes and syncs.

use crate::disk::{CACHED_PAGE, Files, SECTOR, overwrite};
use crate::{Chance, Op};
use pagestore_disk::FileId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The durable content after a number of operations, and the writes that may or may not be on the medium.
#[derive(Clone, Debug, Default)]
pub struct Medium {
    durable: Files,
    /// Sectors that may have any of these contents, or still the durable one.
    waiting: [BTreeMap<usize, Vec<[u8; SECTOR]>>; 3],
    /// Sectors of a failed sync or write: no later sync makes them durable.
    given_up: [BTreeSet<usize>; 3],
    /// Files may have been cut to this length.
    cut: [Option<u64>; 3],
}

impl Medium {
    /// These files, all of it durable.
    #[must_use]
    pub fn holding(files: Files) -> Self {
        Self { durable: files, ..Self::default() }
    }

    /// Takes in a completed operation.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Write { file, offset, bytes, through } => {
                let index = *file as usize;
                for (sector, content) in sectors(*offset, bytes) {
                    self.given_up[index].remove(&sector);
                    if *through {
                        self.waiting[index].remove(&sector);
                        // The length becomes durable with the write.
                        let end = ((sector + 1) * SECTOR) as u64;
                        if let Some(length) = self.cut[index].take_if(|length| end > *length) {
                            self.durable[index].truncate(length as usize);
                        }
                        overwrite(&mut self.durable[index], (sector * SECTOR) as u64, &content);
                    } else {
                        self.waiting[index].entry(sector).or_default().push(content);
                    }
                }
            }
            Op::Truncate { file, length } | Op::FailedTruncate { file, length } => {
                let index = *file as usize;
                self.waiting[index].retain(|sector, _| ((sector * SECTOR) as u64) < *length);
                self.cut[index] = Some(self.cut[index].map_or(*length, |before| before.min(*length)));
            }
            Op::Sync { file } => {
                let index = *file as usize;
                if let Some(length) = self.cut[index].take() {
                    self.durable[index].truncate(length as usize);
                }
                let given_up = &self.given_up[index];
                let durable = &mut self.durable[index];
                self.waiting[index].retain(|sector, contents| {
                    let keep = given_up.contains(sector);
                    if !keep && let Some(last) = contents.last() {
                        overwrite(durable, (*sector * SECTOR) as u64, last);
                    }
                    keep
                });
            }
            Op::FailedWrite { file, offset, bytes } => {
                for (sector, content) in sectors(*offset, bytes) {
                    self.waiting[*file as usize].entry(sector).or_default().push(content);
                    self.given_up[*file as usize].insert(sector);
                }
            }
            Op::FailedSync { file } => {
                let index = *file as usize;
                let waiting: Vec<usize> = self.waiting[index].keys().copied().collect();
                self.given_up[index].extend(waiting);
            }
            Op::Lost { .. } | Op::IgnoredSync { .. } | Op::Name(_) => {}
        }
    }

    /// Another file takes the place of this one: an empty one, or the content of one that was there before.
    pub(crate) fn replace(&mut self, file: FileId, content: Vec<u8>) {
        let index = file as usize;
        self.durable[index] = content;
        self.waiting[index].clear();
        self.given_up[index].clear();
        self.cut[index] = None;
    }

    /// The content of a file that is durable.
    pub(crate) fn durable(&self, file: FileId) -> &[u8] {
        &self.durable[file as usize]
    }

    /// The files as reads see them: with all that was written.
    #[must_use]
    pub(crate) fn cached(&self) -> Files {
        let mut files = self.durable.clone();
        for (file, cut) in files.iter_mut().zip(self.cut) {
            file.truncate(cut.map_or(usize::MAX, |length| length as usize));
        }
        for (file, waiting) in files.iter_mut().zip(&self.waiting) {
            for (sector, contents) in waiting {
                if let Some(last) = contents.last() {
                    overwrite(file, (sector * SECTOR) as u64, last);
                }
            }
        }
        files
    }

    /// After a failed sync of a file: what is on the medium of some of its pages, which the cache has dropped.
    pub(crate) fn dropped(&self, file: FileId, chance: &mut Chance) -> Vec<(u64, [u8; SECTOR])> {
        let index = file as usize;
        let mut page = None;
        let mut is_dropped = false;
        let mut dropped = Vec::new();
        for sector in &self.given_up[index] {
            if page.replace(page_of(*sector)) != Some(page_of(*sector)) {
                is_dropped = chance.once_in(2);
            }
            if is_dropped {
                let mut content = [0; SECTOR];
                let found = self.durable[index].get(sector * SECTOR..(sector + 1) * SECTOR);
                content.copy_from_slice(found.unwrap_or(&[0; SECTOR]));
                dropped.push(((sector * SECTOR) as u64, content));
            }
        }
        dropped
    }

    /// The medium of a process that is killed during `in_flight`: nothing is lost, but what was not durable is in a cache only,
    /// the write in flight too. Of pages that could not be written the cache may have dropped any by then: files are read by
    /// direct I/O, so that the next process reads what is on the medium, and its sync covers that.
    #[must_use]
    pub(crate) fn killed(&self, in_flight: Option<&Op>, chance: &mut Chance) -> Self {
        let mut left = self.clone();
        for (waiting, given_up) in left.waiting.iter_mut().zip(&mut left.given_up) {
            let mut page = None;
            let mut is_kept = false;
            for sector in std::mem::take(given_up) {
                if page.replace(page_of(sector)) != Some(page_of(sector)) {
                    is_kept = chance.once_in(2);
                }
                if !is_kept {
                    waiting.remove(&sector);
                }
            }
        }
        match in_flight {
            Some(Op::Write { file, offset, bytes, .. } | Op::FailedWrite { file, offset, bytes }) => {
                let landing = Landing::draw(sectors(*offset, bytes).count(), chance);
                for (index, (sector, content)) in sectors(*offset, bytes).enumerate() {
                    if landing.has_landed(index, chance) {
                        left.waiting[*file as usize].entry(sector).or_default().push(content);
                    }
                }
            }
            Some(op @ Op::Truncate { .. }) if chance.once_in(2) => left.apply(op),
            _ => {}
        }
        left
    }

    /// Files that a crash during `in_flight` may leave: for every pending sector the durable content or one of those written
    /// since; for the write in flight also a mixture.
    #[must_use]
    pub fn crash(&self, in_flight: Option<&Op>, chance: &mut Chance) -> Files {
        let mut files = self.crash_before(chance);
        if let Some(Op::Truncate { file, length } | Op::FailedTruncate { file, length }) = in_flight
            && chance.once_in(2)
        {
            files[*file as usize].truncate(*length as usize);
        }
        let (Some(Op::Write { file, offset, bytes, .. }) | Some(Op::FailedWrite { file, offset, bytes })) =
            in_flight
        else {
            return files;
        };
        let all: Vec<_> = sectors(*offset, bytes).collect();
        let landing = Landing::draw(all.len(), chance);
        let garbled = chance.once_in(4).then(|| chance.below(all.len() as u64) as usize);
        for (index, (sector, content)) in all.iter().enumerate() {
            if landing.has_landed(index, chance) {
                let mut content = *content;
                if garbled == Some(index) {
                    garble(&mut content, chance);
                }
                overwrite(&mut files[*file as usize], (sector * SECTOR) as u64, &content);
            }
        }
        files
    }

    /// As `crash`, on a device that maps units of this many bytes and rewrites a unit in place: those that the write in flight
    /// touches are damaged beyond its own sectors. Returns also which bytes of which file these are.
    #[must_use]
    pub(crate) fn crash_in_units(
        &self,
        op: &Op,
        unit: u64,
        chance: &mut Chance,
    ) -> Option<(Files, FileId, Range<u64>)> {
        let Op::Write { file, offset, bytes, .. } = op else { return None };
        let mut files = self.crash(Some(op), chance);
        let all = &mut files[*file as usize];
        let end = (offset + bytes.len() as u64).next_multiple_of(unit).min(all.len() as u64);
        let units = offset / unit * unit..end;
        if units.is_empty() {
            return None;
        }
        let first = units.start + chance.below((units.end - units.start).div_ceil(unit)) * unit;
        let damaged = first as usize..(first + unit).min(units.end) as usize;
        // A unit that is being written is garbled from some byte on, or erased.
        match chance.below(4) {
            0 => all[damaged].fill(if chance.once_in(2) { 0 } else { 0xff }),
            1 => garble(&mut all[damaged], chance),
            _ => {
                for sector in all[damaged].chunks_mut(SECTOR) {
                    if chance.once_in(2) {
                        garble(sector, chance);
                    }
                }
            }
        }
        Some((files, *file, units))
    }

    /// As `crash`; of the write in flight exactly the sectors landed that `landed` selects.
    #[must_use]
    pub fn crash_landing(&self, op: &Op, chance: &mut Chance, landed: impl Fn(usize) -> bool) -> Files {
        let mut files = self.crash_before(chance);
        if let Op::Write { file, offset, bytes, .. } = op {
            for (sector, content) in
                sectors(*offset, bytes).enumerate().filter(|(index, _)| landed(*index)).map(|(_, own)| own)
            {
                overwrite(&mut files[*file as usize], (sector * SECTOR) as u64, &content);
            }
        }
        files
    }

    /// As `crash`; of the write in flight the last sectors landed and the first did not.
    #[must_use]
    pub fn crash_with_end(&self, op: &Op, chance: &mut Chance) -> Files {
        let Op::Write { bytes, .. } = op else { return self.crash(Some(op), chance) };
        let border = 1 + chance.below((bytes.len() / SECTOR) as u64) as usize;
        self.crash_landing(op, chance, |sector| sector >= border)
    }

    /// The files with a random choice of the pending writes.
    fn crash_before(&self, chance: &mut Chance) -> Files {
        let mut files = self.durable.clone();
        // Sometimes no pending write has landed, sometimes all, mostly some.
        for (file, cut) in files.iter_mut().zip(self.cut) {
            if let Some(length) = cut.filter(|_| chance.once_in(2)) {
                file.truncate(length as usize);
            }
        }
        let landing = [0, 4, 4, 8, 7, 1][chance.below(6) as usize];
        for (file, waiting) in files.iter_mut().zip(&self.waiting) {
            for (sector, contents) in waiting {
                if chance.below(8) < landing {
                    let content = &contents[chance.below(contents.len() as u64) as usize];
                    overwrite(file, (sector * SECTOR) as u64, content);
                }
            }
        }
        files
    }
}

/// The page of the cache that a sector is in.
fn page_of(sector: usize) -> usize {
    sector * SECTOR / CACHED_PAGE
}

/// Overwrites the bytes from a drawn one on.
fn garble(bytes: &mut [u8], chance: &mut Chance) {
    let at = chance.below(bytes.len() as u64) as usize;
    bytes[at..].iter_mut().for_each(|byte| *byte = chance.draw() as u8);
}

/// Which sectors of a write in flight have landed.
struct Landing {
    border: usize,
    shape: u64,
}

impl Landing {
    fn draw(sectors: usize, chance: &mut Chance) -> Self {
        let border = chance.below(sectors as u64 + 1) as usize;
        Self { border, shape: chance.below(6) }
    }

    fn has_landed(&self, sector: usize, chance: &mut Chance) -> bool {
        match self.shape {
            0 => false,
            1 => true,
            2 => sector < self.border,
            3 => sector >= self.border,
            4 => chance.once_in(2),
            _ => !chance.once_in(4),
        }
    }
}

/// The sectors of a write, which consists of whole sectors.
fn sectors(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (usize, [u8; SECTOR])> {
    assert!(
        offset.is_multiple_of(SECTOR as u64) && bytes.len().is_multiple_of(SECTOR),
        "the engine writes sectors"
    );
    let first = offset as usize / SECTOR;
    bytes
        .chunks(SECTOR)
        .enumerate()
        .map(move |(index, part)| (first + index, part.try_into().expect("a whole sector")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagestore_disk::FileId;

    fn write(at: u64, byte: u8, through: bool) -> Op {
        Op::Write { file: FileId::Data, offset: at, bytes: vec![byte; SECTOR], through }
    }

    fn outcomes(medium: &Medium) -> Vec<u8> {
        let mut seen: Vec<u8> = (0..200)
            .map(|seed| {
                medium.crash(None, &mut Chance::new(seed))[FileId::Data as usize]
                    .first()
                    .copied()
                    .unwrap_or(0)
            })
            .collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    #[test]
    fn unsynced_writes_may_be_lost_and_synced_ones_may_not() {
        let mut medium = Medium::holding(Files::default());
        medium.apply(&write(0, 1, true));
        medium.apply(&write(0, 2, false));
        assert_eq!(outcomes(&medium), [1, 2]);
        medium.apply(&write(0, 3, false));
        assert_eq!(outcomes(&medium), [1, 2, 3]);
        medium.apply(&Op::Sync { file: FileId::Data });
        assert_eq!(outcomes(&medium), [3]);
    }

    #[test]
    fn a_cut_may_be_lost_until_the_file_is_synced() {
        let lengths = |medium: &Medium| -> Vec<usize> {
            let length = |seed| medium.crash(None, &mut Chance::new(seed))[FileId::Data as usize].len();
            let lengths: BTreeSet<usize> = (0..50).map(length).collect();
            lengths.into_iter().collect()
        };
        let mut medium = Medium::holding(Files::default());
        medium.apply(&write(0, 1, true));
        medium.apply(&write(SECTOR as u64, 1, true));
        let both = lengths(&medium)[0];
        let cut = Op::Truncate { file: FileId::Data, length: SECTOR as u64 };
        medium.apply(&cut);
        assert_eq!(lengths(&medium), [SECTOR, both]);
        medium.apply(&Op::Sync { file: FileId::Data });
        assert_eq!(lengths(&medium), [SECTOR]);
    }

    #[test]
    fn a_later_sync_does_not_make_up_for_a_failed_one() {
        let mut medium = Medium::holding(Files::default());
        medium.apply(&write(0, 1, false));
        medium.apply(&Op::FailedSync { file: FileId::Data });
        medium.apply(&Op::Sync { file: FileId::Data });
        assert_eq!(outcomes(&medium), [0, 1]);
    }

    #[test]
    fn a_power_failure_may_lose_what_a_killed_process_left_in_the_cache_until_it_is_synced() {
        let in_flight = write(0, 2, true);
        let killed = (0..50).find_map(|seed| {
            let left = Medium::holding(Files::default()).killed(Some(&in_flight), &mut Chance::new(seed));
            (left.cached()[FileId::Data as usize].first() == Some(&2)).then_some(left)
        });
        let mut left = killed.expect("the write in flight has reached the cache");
        assert_eq!(outcomes(&left), [0, 2]);
        left.apply(&Op::Sync { file: FileId::Data });
        assert_eq!(outcomes(&left), [2]);
    }

    #[test]
    fn after_a_kill_a_page_that_could_not_be_synced_is_read_from_the_medium() {
        let mut medium = Medium::holding(Files::default());
        medium.apply(&write(0, 1, false));
        medium.apply(&Op::FailedSync { file: FileId::Data });
        let read = |seed| {
            let mut left = medium.killed(None, &mut Chance::new(seed));
            let read = left.cached()[FileId::Data as usize].first().copied().unwrap_or(0);
            left.apply(&Op::Sync { file: FileId::Data });
            assert_eq!(outcomes(&left), [read], "what was read and synced stays");
            read
        };
        let seen: BTreeSet<u8> = (0..50).map(read).collect();
        assert_eq!(seen, [0, 1].into());
    }

    #[test]
    fn a_torn_unit_damages_neighbours_within_it_and_nothing_else() {
        let mut medium = Medium::holding(Files::default());
        (0..24).for_each(|sector| medium.apply(&write(sector * SECTOR as u64, 1, true)));
        let mut neighbours = 0;
        for seed in 0..50 {
            let op = write(9 * SECTOR as u64, 2, true);
            let (files, file, units) = medium.crash_in_units(&op, 4096, &mut Chance::new(seed)).unwrap();
            assert_eq!((file, units), (FileId::Data, 4096..8192));
            let data = &files[FileId::Data as usize];
            assert!(data[..4096].iter().chain(&data[8192..]).all(|byte| *byte == 1));
            neighbours += usize::from(data[10 * SECTOR..8192].iter().any(|byte| *byte != 1));
        }
        assert!(neighbours > 20, "{neighbours}");
    }
}
