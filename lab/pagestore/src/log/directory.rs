//! The log's directory: for each slot the end of its virtual log file and a filter of the pages that its records
//! change. All of it is in one place, so that opening does not read headers and indices one by one.
//!
//! ```text
//! in the control file, after its two copies, for every 256 slots a group:
//! group       256 entries of 128 bytes | 256 filters of 4 KiB
//! entry        0 crc of the rest   4 vlf   8 parity   12 epoch of the INDEX_END block   16 its checksum
//!             20 slot of the next virtual log file   24 INDEX_END's body, 80 bytes   104 flags: 1 ended, 2 no index
//!             108 own slot   112 store u64                                            all but the last u32
//! filter       0 crc of the rest   4 vlf   8 store u64   16 a Bloom filter of pages: 32,640 bits, seven a page
//! ```
//! An entry is written after its virtual log file is complete on the medium and the next one has been begun. No
//! commit depends on it, and nothing is lost without it: if an entry is torn, or the entries do not lead to a
//! virtual log file that is still being written, opening reads the headers and index ends of the log itself.

use crate::disk::aligned::AlignedBuffer;
use crate::error::{Error, Result};
use crate::format::codec::{put_u32, put_u64, u32_at, u64_at};
use crate::format::control::COPIES_BYTES;
use crate::log::record::IndexEnd;
use crate::types::{COUNT_MAX_U32, Lsn, PageNo};
use pagestore_disk::{Disk, FileId};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

const GROUP_SLOTS: usize = 256;
const ENTRY_BYTES: usize = 128;
const END_AT: usize = 24;
const FLAGS_AT: usize = END_AT + IndexEnd::BYTES;
const ENTRIES_BYTES: usize = GROUP_SLOTS * ENTRY_BYTES;
/// Entries are rewritten in sectors, each time one of their virtual log files ends.
const SECTOR_BYTES: usize = 4096;
const SECTOR_ENTRIES: usize = SECTOR_BYTES / ENTRY_BYTES;
pub(crate) const FILTER_BYTES: usize = 4096;
const FILTER_HEAD_BYTES: usize = 16;
const FILTER_BITS: u64 = (FILTER_BYTES - FILTER_HEAD_BYTES) as u64 * 8;
/// With 2,000 pages (an 8 MiB virtual log file of images) one lookup in 2,000 is a false positive.
const BITS_A_PAGE: u64 = 7;
const GROUP_BYTES: usize = ENTRIES_BYTES + GROUP_SLOTS * FILTER_BYTES;
/// Unwanted filters between two wanted ones are read along with them, if there are no more than this.
const FILTERS_GAP_MAX: usize = 16;

/// Groups that are searched for slots which the log file does not have: enough for 2 TiB of log in virtual log
/// files of 8 MiB.
const GROUPS_MAX: usize = 1024;

const ENDED: u32 = 1;
const NO_INDEX: u32 = 2;

/// The known state of the last virtual log file in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub vlf: u32,
    pub parity: u32,
    /// How it ended; `None` if only its header is known.
    pub ended: Option<VlfEnd>,
}

/// How a virtual log file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VlfEnd {
    /// The epoch of the last block,
    pub epoch: u32,
    /// its checksum, which the next virtual log file continues,
    pub crc: u32,
    /// and the slot of that.
    pub next_slot: u32,
    pub end: IndexEnd,
}

impl Entry {
    fn encode(&self, slot: usize, store: u64) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        put_u32(&mut bytes, 4, self.vlf);
        put_u32(&mut bytes, 8, self.parity);
        if let Some(ended) = self.ended {
            put_u32(&mut bytes, 12, ended.epoch);
            put_u32(&mut bytes, 16, ended.crc);
            put_u32(&mut bytes, 20, ended.next_slot);
            let mut body = Vec::with_capacity(IndexEnd::BYTES);
            ended.end.encode(&mut body);
            bytes[END_AT..FLAGS_AT].copy_from_slice(&body);
            put_u32(&mut bytes, FLAGS_AT, if ended.end.missing { ENDED | NO_INDEX } else { ENDED });
        }
        put_u32(&mut bytes, FLAGS_AT + 4, slot as u32);
        put_u64(&mut bytes, FLAGS_AT + 8, store);
        let crc = crc32c::crc32c(&bytes[4..]);
        put_u32(&mut bytes, 0, crc);
        bytes
    }

    /// `Err` if there is an entry that cannot be decoded.
    fn decode(bytes: &[u8], slot: usize, store: u64) -> std::result::Result<Option<Self>, ()> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let is_own = u32_at(bytes, 0) == crc32c::crc32c(&bytes[4..])
            && u32_at(bytes, FLAGS_AT + 4) == slot as u32
            && u64_at(bytes, FLAGS_AT + 8) == store
            && u32_at(bytes, 4) < COUNT_MAX_U32;
        if !is_own {
            return Err(());
        }
        let flags = u32_at(bytes, FLAGS_AT);
        let ended = if flags & ENDED == 0 {
            None
        } else {
            let missing = u8::from(flags & NO_INDEX != 0);
            Some(VlfEnd {
                epoch: u32_at(bytes, 12),
                crc: u32_at(bytes, 16),
                next_slot: u32_at(bytes, 20),
                end: IndexEnd::decode(&bytes[END_AT..FLAGS_AT], missing).ok_or(())?,
            })
        };
        Ok(Some(Self { vlf: u32_at(bytes, 4), parity: u32_at(bytes, 8), ended }))
    }
}

fn entry_offset(slot: usize) -> u64 {
    let group = (slot / GROUP_SLOTS * GROUP_BYTES) as u64;
    COPIES_BYTES + group + (slot % GROUP_SLOTS * ENTRY_BYTES) as u64
}

fn filter_offset(slot: usize) -> u64 {
    let group = (slot / GROUP_SLOTS * GROUP_BYTES + ENTRIES_BYTES) as u64;
    COPIES_BYTES + group + (slot % GROUP_SLOTS * FILTER_BYTES) as u64
}

/// The offset in the control file where the directory of this many slots ends.
pub(crate) fn end_of(slots: usize) -> u64 {
    slots.checked_sub(1).map_or(COPIES_BYTES, |last| filter_offset(last) + FILTER_BYTES as u64)
}

/// The entries of all slots; `None` if any is missing or damaged.
pub(crate) fn read(disk: &dyn Disk, store: u64, slots: usize) -> Result<Option<Vec<Option<Entry>>>> {
    let length = disk.len(FileId::Control).map_err(Error::during("measure", FileId::Control))?;
    if length < end_of(slots) {
        return Ok(None);
    }
    let mut entries = Vec::with_capacity(slots);
    let mut buffer = AlignedBuffer::new(ENTRIES_BYTES);
    while entries.len() < slots {
        let count = (slots - entries.len()).min(GROUP_SLOTS);
        buffer.resize((count * ENTRY_BYTES).next_multiple_of(SECTOR_BYTES));
        disk.read(FileId::Control, entry_offset(entries.len()), buffer.bytes_mut())
            .map_err(Error::during("read", FileId::Control))?;
        for bytes in buffer.bytes().chunks(ENTRY_BYTES).take(count) {
            match Entry::decode(bytes, entries.len(), store) {
                Ok(entry) => entries.push(entry),
                Err(()) => return Ok(None),
            }
        }
    }
    Ok(Some(entries))
}

/// The virtual log files (number, slot) that were begun in slots from `slots` on, according to the entries that can
/// be read. There are none if the control file ends with the slots before.
pub(crate) fn begun_from(disk: &dyn Disk, store: u64, slots: usize) -> Result<Vec<(u32, usize)>> {
    let length = disk.len(FileId::Control).map_err(Error::during("measure", FileId::Control))?;
    let mut begun = Vec::new();
    if length == end_of(slots) {
        return Ok(begun);
    }
    let mut buffer = AlignedBuffer::new(ENTRIES_BYTES);
    for first in (0..GROUPS_MAX * GROUP_SLOTS).step_by(GROUP_SLOTS) {
        let left = length.saturating_sub(entry_offset(first)).min(ENTRIES_BYTES as u64) as usize;
        if left < ENTRY_BYTES {
            break;
        }
        buffer.resize(left / ENTRY_BYTES * ENTRY_BYTES);
        // An unreadable entry is no evidence, like a torn one.
        if disk.read(FileId::Control, entry_offset(first), buffer.bytes_mut()).is_err() {
            continue;
        }
        let entries = buffer.bytes().chunks(ENTRY_BYTES).zip(first..);
        for (slot, entry) in
            entries.filter_map(|(bytes, slot)| Some((slot, Entry::decode(bytes, slot, store).ok()??)))
        {
            let next = entry.ended.map(|ended| (entry.vlf + 1, ended.next_slot as usize));
            begun.extend([(entry.vlf, slot)].into_iter().chain(next).filter(|(_, slot)| *slot >= slots));
        }
    }
    Ok(begun)
}

/// The pages that the records of a virtual log file change; may have false positives.
pub(crate) struct Filter {
    /// Shared by all filters that were read together.
    all: Arc<AlignedBuffer>,
    at: usize,
}

fn bits(page: PageNo) -> impl Iterator<Item = u64> {
    // The finalizer of SplitMix64; two halves of one hash serve for all bits (Kirsch and Mitzenmacher 2006).
    let mut hash = page.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    let (first, step) = (hash & 0xffff_ffff, hash >> 32 | 1);
    (0..BITS_A_PAGE).map(move |number| (first + number * step) % FILTER_BITS)
}

impl Filter {
    pub(crate) fn from_pages(pages: impl Iterator<Item = u64>, vlf: u32, store: u64) -> Self {
        let mut buffer = AlignedBuffer::new(FILTER_BYTES);
        buffer.extend_zeros(FILTER_BYTES);
        let bytes = buffer.bytes_mut();
        for bit in pages.flat_map(|page| bits(PageNo(page))) {
            bytes[FILTER_HEAD_BYTES + bit as usize / 8] |= 1 << (bit % 8);
        }
        put_u32(bytes, 4, vlf);
        put_u64(bytes, 8, store);
        let crc = crc32c::crc32c(&bytes[4..]);
        put_u32(bytes, 0, crc);
        Self { all: Arc::new(buffer), at: 0 }
    }

    /// The filter at `at` in `all`; `None` if it is torn or belongs to another virtual log file.
    fn open(all: &Arc<AlignedBuffer>, at: usize, vlf: u32, store: u64) -> Option<Self> {
        let filter = Self { all: Arc::clone(all), at };
        let bytes = filter.bytes();
        let is_own = u32_at(bytes, 4) == vlf
            && u64_at(bytes, 8) == store
            && u32_at(bytes, 0) == crc32c::crc32c(&bytes[4..]);
        is_own.then_some(filter)
    }

    fn bytes(&self) -> &[u8] {
        &self.all.bytes()[self.at..][..FILTER_BYTES]
    }

    pub(crate) fn may_hold(&self, page: PageNo) -> bool {
        let filter_bits = &self.bytes()[FILTER_HEAD_BYTES..];
        bits(page).all(|bit| filter_bits[bit as usize / 8] >> (bit % 8) & 1 == 1)
    }
}

/// Reads the filters of these virtual log files (number, slot), with one read for those that are near each other.
pub(crate) fn read_filters(
    disk: &dyn Disk,
    store: u64,
    places: &[(u32, usize)],
) -> Result<Vec<Option<Filter>>> {
    let mut sorted: Vec<_> = places.iter().map(|(vlf, slot)| (*slot, *vlf)).collect();
    sorted.sort_unstable();
    let mut found = HashMap::new();
    let near = |a: &(usize, u32), b: &(usize, u32)| {
        a.0 / GROUP_SLOTS == b.0 / GROUP_SLOTS && b.0 - a.0 <= FILTERS_GAP_MAX
    };
    for part in sorted.chunk_by(near) {
        let (first, last) = (part[0].0, part[part.len() - 1].0);
        let mut buffer = AlignedBuffer::new((last + 1 - first) * FILTER_BYTES);
        buffer.resize(buffer.capacity());
        disk.read(FileId::Control, filter_offset(first), buffer.bytes_mut())
            .map_err(Error::during("read", FileId::Control))?;
        let all = Arc::new(buffer);
        for (slot, vlf) in part {
            found.insert(*slot, Filter::open(&all, (slot - first) * FILTER_BYTES, *vlf, store));
        }
    }
    Ok(places.iter().map(|(_, slot)| found.remove(slot).flatten()).collect())
}

/// A write to the control file that the caller must do.
pub(crate) struct DirectoryWrite {
    pub offset: u64,
    pub buffer: AlignedBuffer,
}

/// An entry that is not in the file yet.
pub(super) struct Pending {
    /// Written once the log is durable up to here.
    pub after: Lsn,
    pub slot: usize,
    pub entry: Entry,
    /// `None` if the virtual log file was only begun.
    pub filter: Option<Filter>,
}

/// The directory of a log in use.
#[derive(Default)]
pub(crate) struct Directory {
    store: u64,
    entries: Vec<Option<Entry>>,
    pending: VecDeque<Pending>,
    /// Sectors of entries that differ from the file.
    stale: BTreeSet<usize>,
    /// After a crash the file lacks entries that must be written soon: they are the evidence if the log file is
    /// truncated.
    behind: bool,
}

impl Directory {
    /// A directory as it was read.
    pub(crate) fn new(store: u64, entries: Vec<Option<Entry>>) -> Self {
        Self { store, entries, ..Self::default() }
    }

    /// A directory rebuilt from the slots' headers, because the file differs or cannot be read.
    pub(crate) fn rebuilt(store: u64, entries: Vec<Option<Entry>>) -> Self {
        let stale = (0..entries.len().div_ceil(SECTOR_ENTRIES)).collect();
        Self { stale, behind: true, ..Self::new(store, entries) }
    }

    /// The log has this many slots now, fewer than before.
    pub(crate) fn truncate(&mut self, slots: usize) {
        self.entries.truncate(slots);
        self.pending.retain(|pending| pending.slot < slots);
    }

    /// The slots up to this one are about to be used, of which those beyond the present ones may have been used and
    /// removed: their entries must be cleared first.
    pub(crate) fn grow(&mut self, slots: usize) {
        if self.entries.len() < slots {
            self.stale.extend(self.entries.len() / SECTOR_ENTRIES..slots.div_ceil(SECTOR_ENTRIES));
            self.entries.resize(slots, None);
        }
    }

    /// A virtual log file has ended, and the next one is begun; or it is begun after one that was closed in an earlier
    /// opening.
    pub(super) fn vlf_ended(&mut self, ended: Pending) {
        self.pending.push_back(ended);
    }

    /// Whether there is something to write now that the log is durable up to `durable`.
    pub(crate) fn is_due(&self, durable: Lsn) -> bool {
        self.behind || self.pending.front().is_some_and(|first| first.after <= durable)
    }

    /// The writes to do, in this order: a filter before its entry.
    pub(crate) fn take_writes(&mut self, durable: Lsn) -> Vec<DirectoryWrite> {
        let mut writes = Vec::new();
        let mut changed = std::mem::take(&mut self.behind);
        while self.is_due(durable)
            && let Some(Pending { slot, entry, filter, .. }) = self.pending.pop_front()
        {
            changed = true;
            if self.entries.len() <= slot {
                self.entries.resize(slot + 1, None);
            }
            self.entries[slot] = Some(entry);
            self.stale.insert(slot / SECTOR_ENTRIES);
            let Some(filter) = filter else { continue };
            let mut buffer = AlignedBuffer::new(FILTER_BYTES);
            buffer.extend(filter.bytes());
            writes.push(DirectoryWrite { offset: filter_offset(slot), buffer });
        }
        if changed {
            writes.extend(self.stale_sectors());
        }
        writes
    }

    /// Writes of the sectors of entries that differ from the file.
    pub(crate) fn stale_sectors(&mut self) -> Vec<DirectoryWrite> {
        let sector = |sector: usize| {
            let first = sector * SECTOR_ENTRIES;
            let mut buffer = AlignedBuffer::new(SECTOR_BYTES);
            for slot in first..first + SECTOR_ENTRIES {
                match self.entries.get(slot).copied().flatten() {
                    Some(entry) => buffer.extend(&entry.encode(slot, self.store)),
                    None => buffer.extend_zeros(ENTRY_BYTES),
                }
            }
            DirectoryWrite { offset: entry_offset(first), buffer }
        };
        std::mem::take(&mut self.stale).into_iter().map(sector).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crashlab::SimDisk;

    const STORE: u64 = 7;

    fn entry(vlf: u32) -> Entry {
        let end = IndexEnd { unit: 99, bytes: 4096, entries: 3, sequence: 17, ..IndexEnd::default() };
        Entry { vlf, parity: 64, ended: Some(VlfEnd { epoch: 2, crc: 5, next_slot: vlf, end }) }
    }

    fn disk(slots: usize) -> SimDisk {
        let disk = SimDisk::new();
        disk.write(FileId::Control, 0, &vec![0; end_of(slots) as usize]).unwrap();
        disk
    }

    fn put(disk: &SimDisk, writes: &[DirectoryWrite]) {
        for write in writes {
            disk.write(FileId::Control, write.offset, write.buffer.bytes()).unwrap();
        }
    }

    #[test]
    fn entries_and_filters_read_back_in_every_group_and_a_wrong_bit_makes_it_silent() {
        let disk = disk(600);
        let mut directory = Directory::new(STORE, vec![None; 600]);
        let slots = [0, 31, 32, 255, 256, 599];
        for slot in slots {
            let vlf = slot as u32 + 1;
            let filter = Filter::from_pages([u64::from(vlf) * 10].into_iter(), vlf, STORE);
            let after = Lsn::new(vlf, 8, 1);
            directory.vlf_ended(Pending { after, slot, entry: entry(vlf), filter: Some(filter) });
        }
        put(&disk, &directory.take_writes(Lsn::new(599, 8, 1)));
        assert!(!directory.is_due(Lsn::new(599, 8, 1)) && directory.is_due(Lsn::new(600, 8, 1)));
        put(&disk, &directory.take_writes(Lsn::new(600, 8, 1)));
        let found = read(&disk, STORE, 600).unwrap().unwrap();
        for (slot, found) in found.iter().enumerate() {
            assert_eq!(*found, slots.contains(&slot).then(|| entry(slot as u32 + 1)), "slot {slot}");
        }
        let places: Vec<_> = slots.iter().map(|slot| (*slot as u32 + 1, *slot)).collect();
        for (filter, (vlf, _)) in read_filters(&disk, STORE, &places).unwrap().iter().zip(&places) {
            let filter = filter.as_ref().unwrap();
            assert!(filter.may_hold(PageNo(u64::from(*vlf) * 10)));
            assert!(!filter.may_hold(PageNo(u64::from(*vlf) * 10 + 1)));
        }
        assert!(read_filters(&disk, STORE, &[(33, 31)]).unwrap()[0].is_none(), "of another use of the slot");
        let mut byte = [0];
        disk.read(FileId::Control, entry_offset(255) + 30, &mut byte).unwrap();
        disk.write(FileId::Control, entry_offset(255) + 30, &[byte[0] ^ 1]).unwrap();
        assert!(read(&disk, STORE, 600).unwrap().is_none());
        assert!(read(&disk, STORE, 601).unwrap().is_none(), "there is no place for the last one");
    }

    #[test]
    fn entries_of_slots_that_were_removed_do_not_come_back_with_them() {
        let disk = disk(70);
        let mut directory = Directory::new(STORE, vec![None; 70]);
        for slot in [1, 40, 69] {
            let ended = Pending { after: Lsn::new(1, 8, 1), slot, entry: entry(slot as u32), filter: None };
            directory.vlf_ended(ended);
        }
        put(&disk, &directory.take_writes(Lsn::new(1, 8, 1)));
        assert!(read(&disk, STORE, 70).unwrap().unwrap()[69].is_some());
        directory.truncate(3);
        directory.grow(70);
        put(&disk, &directory.stale_sectors());
        let found = read(&disk, STORE, 70).unwrap().unwrap();
        assert_eq!(found.iter().filter(|entry| entry.is_some()).count(), 1);
        assert_eq!(found[1], Some(entry(1)));
    }

    #[test]
    fn a_filter_names_all_its_pages_and_few_others() {
        let filter = Filter::from_pages((0..2000).map(|page| page * 129), 1, STORE);
        assert!((0..2000).all(|page| filter.may_hold(PageNo(page * 129))));
        let others =
            (0..100_000).filter(|page| page % 129 != 0).filter(|page| filter.may_hold(PageNo(*page)));
        assert!(others.count() < 200);
    }
}
