//! Finds the end of the log with the help of its directory: nothing is read of full virtual log files, and all of
//! the last one. The directory is only a hint: if it does not lead to a valid end within a virtual log file, the
//! headers and index ends of the log are read instead (`indexed`), which also detects damage.

use super::indexed::Collected;
use crate::error::{Error, Result};
use crate::format::control::Control;
use crate::log::block::VlfHeader;
use crate::log::directory::{self, Entry, FILTER_BYTES, VlfEnd};
use crate::log::index;
use crate::log::scan::{FIRST_UNIT, LogFile, Reading, ScanCursor};
use crate::types::{Lsn, Position};
use pagestore_disk::Disk;

/// The newest filters, which are read while the last virtual log file is: as many bytes as that may have. The
/// others are read when a page is looked up.
const FILTERS_READ_AHEAD: usize = (8 << 20) / FILTER_BYTES;

/// A virtual log file before the last one, as the directory describes it.
struct ClosedVlf {
    vlf: u32,
    slot: usize,
    ended: VlfEnd,
}

/// The log from the redo LSN to its end.
pub(super) struct LogTail<'a> {
    pub log: LogFile<'a>,
    pub cursor: ScanCursor,
    pub collected: Collected,
}

/// Reads the log from the redo LSN on by means of `entries`; `None` if they are not sufficient.
pub(super) fn read<'a>(
    disk: &'a dyn Disk,
    control: &Control,
    reading: Reading,
    entries: &[Option<Entry>],
) -> Result<Option<LogTail<'a>>> {
    let Some((closed, slot)) = closed_vlfs(control, entries) else { return Ok(None) };
    if reading.parallel <= 1 {
        return read_last_vlf(disk, control, reading, entries, (&closed, slot));
    }
    // A page that is not in the last virtual log file is searched for in all filters.
    let ahead: Vec<_> = closed
        .iter()
        .rev()
        .take(FILTERS_READ_AHEAD)
        .map(|closed_vlf| (closed_vlf.vlf, closed_vlf.slot))
        .collect();
    let (found, filters) = std::thread::scope(|scope| {
        let read_filters = || directory::read_filters(disk, control.geometry.store, &ahead);
        // If no thread can be started, they are read when a page is looked up.
        let filters = std::thread::Builder::new().spawn_scoped(scope, read_filters);
        let found = read_last_vlf(disk, control, reading, entries, (&closed, slot));
        let filters = filters.map(|filters| filters.join().expect("a reader of filters does not panic"));
        (found, filters.ok().and_then(Result::ok))
    });
    let mut found = found?;
    // Filters that cannot be read are not needed for correctness.
    if let (Some(found), Some(filters)) = (&mut found, filters) {
        found.collected.filters = ahead.iter().map(|(vlf, _)| *vlf).zip(filters).collect();
    }
    Ok(found)
}

/// Reads the virtual log file in the slot after those that are closed.
fn read_last_vlf<'a>(
    disk: &'a dyn Disk,
    control: &Control,
    reading: Reading,
    entries: &[Option<Entry>],
    (closed, slot): (&[ClosedVlf], usize),
) -> Result<Option<LogTail<'a>>> {
    let geometry = control.geometry;
    // Read the header of the last one, and of the slots that may have been taken after it: they show whether the
    // directory is outdated.
    let headers: Vec<_> = entries.iter().map(|entry| entry.as_ref().map(header)).collect();
    let vlf = control.redo.lsn.vlf() + closed.len() as u32;
    let mut chain: Vec<_> = closed.iter().map(|closed_vlf| (closed_vlf.vlf, closed_vlf.slot)).collect();
    chain.push((vlf, slot));
    let mut heads = LogFile::next_taken(&headers, &chain);
    heads.push(slot);
    let log = LogFile::with_headers(disk, geometry, headers, &heads, reading)?;
    let Some(vlf_header) = log.headers()[slot] else { return Ok(None) };
    let before = closed.last().map(|closed_vlf| closed_vlf.ended);
    let continues =
        before.is_none_or(|before| vlf_header.previous == before.crc && vlf_header.epoch >= before.epoch);
    let newest = heads.iter().filter_map(|slot| log.headers()[*slot]).map(|header| header.vlf).max();
    if vlf_header.vlf != vlf || !continues || newest != Some(vlf) {
        return Ok(None);
    }

    let mut collected = Collected::begin(control, true);
    let mut cursor = ScanCursor::begin(control.redo_slot as usize, control.redo);
    for closed_vlf in closed {
        collected.skip_vlf(closed_vlf.slot, closed_vlf.ended);
        cursor.epoch = closed_vlf.ended.epoch;
        cursor.last = Lsn::new(closed_vlf.vlf, index::end_unit(&geometry), 1);
    }
    if let Some(before) = before {
        cursor.position = Position { lsn: Lsn::new(vlf, FIRST_UNIT, 1), previous: before.crc };
        (cursor.slot, cursor.chain) = (slot, chain);
    }
    let scanned = log.scan_until(&mut cursor, u32::MAX, control.known(), reading, |header, used| {
        collected.add_block(header, used)
    });
    match scanned {
        Err(Error::CorruptLog { .. }) => return Ok(None),
        other => other?,
    };
    let within = cursor.slot == slot && cursor.position.lsn.unit() <= index::end_unit(&geometry);
    Ok(within.then_some(LogTail { log, cursor, collected }))
}

fn header(entry: &Entry) -> VlfHeader {
    VlfHeader { vlf: entry.vlf, parity: entry.parity, epoch: 0, previous: 0, created: Lsn::ZERO }
}

/// The closed virtual log files from the redo LSN on, and the slot of the one after them.
fn closed_vlfs(control: &Control, entries: &[Option<Entry>]) -> Option<(Vec<ClosedVlf>, usize)> {
    let (known, redo) = (control.known(), control.redo.lsn);
    let (mut closed, mut vlf, mut slot) = (Vec::<ClosedVlf>::new(), redo.vlf(), control.redo_slot as usize);
    while let Some(ended) = entries.get(slot)?.filter(|entry| entry.vlf == vlf).and_then(|entry| entry.ended)
    {
        let end = Lsn::new(vlf, index::end_unit(&control.geometry), 1);
        let covers = ended.end.from <= Lsn::new(vlf, FIRST_UNIT, 1).max(redo);
        let not_cut_off = ended.epoch >= known.epoch || end <= known.durable;
        let in_order = closed.last().is_none_or(|before| ended.epoch >= before.ended.epoch);
        if !covers || !not_cut_off || !in_order {
            return None;
        }
        closed.push(ClosedVlf { vlf, slot, ended });
        (vlf, slot) = (vlf + 1, ended.next_slot as usize);
    }
    // If a slot was taken and nothing else is known of it, either it holds the last virtual log file or the
    // directory is outdated.
    let taken = |entry: &Entry| entry.ended.map(|ended| (entry.vlf + 1, ended.next_slot as usize));
    // Slots from before may have been removed since.
    let newer = entries.iter().flatten().filter_map(taken).filter(|(taken, _)| *taken > redo.vlf());
    let unknown = { newer }.find(|(taken, next)| {
        *next != slot && entries.get(*next).is_none_or(|known| known.is_none_or(|known| known.vlf < *taken))
    });
    unknown.is_none().then_some((closed, slot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::control::COPIES_BYTES;
    use crate::log::directory::Directory;
    use crate::types::PageNo;
    use crate::{Durability, Layout, Options, Pages, Recovery, RecoveryReport, Store};
    use crashlab::SimDisk;
    use pagestore_disk::FileId;
    use std::sync::Arc;

    const PAGES: u64 = 40;

    fn options() -> Options {
        let quiet = Options { background: false, checkpoint_bytes: u64::MAX, ..Options::default() };
        Options { publish: false, ..quiet }
    }

    /// A crashed store whose commits changed all pages in turn, and the first user byte of each page.
    fn crashed(commits: u64) -> (Arc<SimDisk>, Vec<u8>) {
        let disk = Arc::new(SimDisk::new());
        let layout = Layout { vlf_bytes: 128 << 10, vlfs: 8 + commits as usize / 8, ..Layout::default() };
        let store = Store::create_on(disk.clone(), layout, options(), 1).unwrap();
        let mut tx = store.write().unwrap();
        for _ in 0..PAGES {
            tx.allocate().unwrap();
        }
        tx.commit(Durability::Full).unwrap();
        let mut expected = vec![0; PAGES as usize];
        for commit in 0..commits {
            // The first ten pages are changed only at first, so that their images are the oldest.
            let page = if commit < PAGES { commit } else { 10 + commit % (PAGES - 10) };
            let mut tx = store.write().unwrap();
            tx.any_page_mut(PageNo(1 + page)).unwrap()[40..].fill(commit as u8);
            tx.commit(Durability::Full).unwrap();
            expected[page as usize] = commit as u8;
        }
        (disk, expected)
    }

    fn open(disk: &Arc<SimDisk>, expected: &[u8]) -> RecoveryReport {
        open_by(Recovery::Instant, disk, expected)
    }

    fn open_by(recovery: Recovery, disk: &Arc<SimDisk>, expected: &[u8]) -> RecoveryReport {
        let store = Store::open_on(disk.clone(), Options { recovery, ..options() }).unwrap();
        let reader = store.read().unwrap();
        let found: Vec<u8> = (0..PAGES).map(|page| reader.page(PageNo(1 + page)).unwrap()[100]).collect();
        assert_eq!(found, expected);
        store.recovery_report()
    }

    #[test]
    fn a_long_log_takes_as_many_reads_to_open_as_a_short_one() {
        let reports = [300, 3000].map(|commits| {
            let (disk, expected) = crashed(commits);
            open(&disk, &expected)
        });
        assert!(
            reports[1].vlfs_indexed > 8 * reports[0].vlfs_indexed && reports[0].vlfs_indexed > 2,
            "{reports:?}"
        );
        assert!(reports[1].log_reads <= reports[0].log_reads + 1, "{reports:?}");
    }

    /// The range of the directory in the control file.
    fn directory_bytes(disk: &SimDisk) -> std::ops::Range<u64> {
        COPIES_BYTES..disk.len(FileId::Control).unwrap()
    }

    #[test]
    fn an_unreadable_directory_is_reported_and_the_log_itself_is_read() {
        let (disk, expected) = crashed(1000);
        let files = disk.files();
        let with_directory = open(&disk, &expected);
        for recovery in [Recovery::Serial, Recovery::Prefetch, Recovery::Wide, Recovery::Instant] {
            let disk = SimDisk::holding(files.clone());
            let bad = directory_bytes(&disk);
            let disk = Arc::new(disk.with_unreadable(FileId::Control, bad));
            let found = open_by(recovery, &disk, &expected);
            let why = found.directory_unreadable.expect("it could not be read");
            assert!(why.contains("control") && why.contains("error 5"), "{why}");
            assert!(found.log_reads > with_directory.log_reads, "{recovery:?}");
            // Its parts that were written since then are there; the rest is unchanged.
            let again = open(&Arc::new(SimDisk::holding(disk.files())), &expected);
            assert_eq!(again.directory_unreadable, None);
        }
        assert_eq!(with_directory.directory_unreadable, None);
    }

    #[test]
    fn filters_that_cannot_be_read_are_done_without() {
        let (disk, expected) = crashed(1000);
        let disk = SimDisk::holding(disk.files());
        let control = Control::read(&disk).unwrap().unwrap();
        let slots = LogFile::slots_in(&disk, &control.geometry).unwrap();
        let entries = directory::read(&disk, control.geometry.store, slots).unwrap().unwrap();
        let first = directory_bytes(&disk).start + 256 * 128;
        for parallel in [1, 4] {
            let disk = SimDisk::holding(disk.files()).with_unreadable(FileId::Control, first..u64::MAX);
            assert!(directory::read_filters(&disk, 1, &[(entries[1].unwrap().vlf, 1)]).is_err());
            let disk = Arc::new(disk);
            let options = Options { parallel, ..options() };
            let store = Store::open_on(disk, options).unwrap();
            let reader = store.read().unwrap();
            let found: Vec<u8> = (0..PAGES).map(|page| reader.page(PageNo(1 + page)).unwrap()[100]).collect();
            assert_eq!(found, expected);
            assert!(store.recovery_report().vlfs_indexed > 8);
        }
    }

    #[test]
    fn filters_that_are_read_ahead_equal_those_that_are_read_on_demand() {
        let (disk, _) = crashed(1000);
        let control = Control::read(disk.as_ref()).unwrap().unwrap();
        let slots = LogFile::slots_in(disk.as_ref(), &control.geometry).unwrap();
        let entries = directory::read(disk.as_ref(), control.geometry.store, slots).unwrap().unwrap();
        let [none, all] = [1, 4].map(|parallel| {
            let reading = Reading { read_bytes: 64 << 10, parallel };
            read(disk.as_ref(), &control, reading, &entries).unwrap().unwrap().collected.filters
        });
        let (closed, _) = closed_vlfs(&control, &entries).unwrap();
        assert!(none.is_empty() && all.len() == closed.len() && closed.len() > 8);
        let (vlf, other) = (closed[3].vlf, all[&closed[3].vlf].as_ref().unwrap());
        let later = directory::read_filters(disk.as_ref(), control.geometry.store, &[(vlf, closed[3].slot)]);
        let later = later.unwrap().pop().unwrap().unwrap();
        let names =
            |filter: &directory::Filter| (0..PAGES + 2).filter(|page| filter.may_hold(PageNo(*page))).count();
        assert_eq!(names(other), names(&later));
        assert!(names(other) < PAGES as usize, "{}", names(other));
    }

    #[test]
    fn without_the_directory_or_with_a_wrong_one_the_same_is_found_by_reading_more() {
        let (disk, expected) = crashed(1000);
        let with_directory = open(&disk, &expected);
        let length = disk.len(FileId::Control).unwrap();
        let mut directory = vec![0; (length - COPIES_BYTES) as usize];
        disk.read(FileId::Control, COPIES_BYTES, &mut directory).unwrap();
        let control = Control::read(disk.as_ref()).unwrap().unwrap();
        let slots = LogFile::slots_in(disk.as_ref(), &control.geometry).unwrap();
        let entries = directory::read(disk.as_ref(), control.geometry.store, slots).unwrap().unwrap();

        disk.write(FileId::Control, COPIES_BYTES, &vec![0; directory.len()]).unwrap();
        let without_directory = open(&disk, &expected);
        assert!(
            without_directory.log_reads > with_directory.log_reads + with_directory.vlfs_indexed,
            "{with_directory:?} {without_directory:?}"
        );

        // Entries with a wrong checksum of the index.
        let wrong = |mut entry: Entry| {
            if let Some(ended) = &mut entry.ended {
                ended.end.crc ^= 1;
            }
            entry
        };
        let wrong = entries.into_iter().map(|entry| entry.map(wrong)).collect();
        for write in Directory::rebuilt(control.geometry.store, wrong).stale_sectors() {
            disk.write(FileId::Control, write.offset, write.buffer.bytes()).unwrap();
        }
        assert_eq!(open(&disk, &expected).vlfs_indexed, with_directory.vlfs_indexed);
    }
}
