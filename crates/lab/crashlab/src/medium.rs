//! The medium below the simulated disk: what a crash may leave of the writes and syncs.

use crate::Chance;
use crate::disk::{Files, Op, SECTOR, overwrite};
use std::collections::{BTreeMap, HashSet};

/// The durable content after a number of operations, and the writes that may or may not be on the medium.
#[derive(Clone, Debug, Default)]
pub struct Medium {
    durable: Files,
    /// Sectors that may have any of these contents, or still the durable one.
    waiting: [BTreeMap<usize, Vec<[u8; SECTOR]>>; 3],
    /// Sectors of a failed sync or write: no later sync makes them durable.
    given_up: [HashSet<usize>; 3],
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
            Op::Lost { .. } => {}
        }
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
        let border = chance.below(all.len() as u64 + 1) as usize;
        let shape = chance.below(6);
        let garbled = chance.once_in(4).then(|| chance.below(all.len() as u64) as usize);
        for (index, (sector, content)) in all.iter().enumerate() {
            let landed = match shape {
                0 => false,
                1 => true,
                2 => index < border,
                3 => index >= border,
                4 => chance.once_in(2),
                _ => !chance.once_in(4),
            };
            if landed {
                let mut content = *content;
                if garbled == Some(index) {
                    let at = chance.below(SECTOR as u64) as usize;
                    content[at..].iter_mut().for_each(|byte| *byte = chance.draw() as u8);
                }
                overwrite(&mut files[*file as usize], (sector * SECTOR) as u64, &content);
            }
        }
        files
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
            let lengths: std::collections::BTreeSet<usize> = (0..50).map(length).collect();
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
}
