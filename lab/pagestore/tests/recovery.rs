//! The reports about a recovery, while it runs and at its end, compared with the I/O that its disk counted.

use crashlab::{Files, SimDisk};
use pagestore::disk::{Disk, FileId};
use pagestore::inspect::Inspection;
use pagestore::{
    Durability, Error, Layout, Options, PageNo, Pages, Recovery, RecoveryEnd, RecoveryPhase,
    RecoveryProgress, Store,
};
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const PAGE_BYTES: u64 = 4096;
const VLF_BYTES: u64 = 128 << 10;
/// Pages that changed, no two of them neighbours, so that each is a write of its own.
const PAGES: u64 = 60;
/// Pages that changed twice.
const AGAIN: u64 = 10;
/// Bytes of a slot's header and the sector after it.
const HEAD_BYTES: usize = 8192;
/// Longer than any step takes.
const LONG: Duration = Duration::from_secs(20);

const AT_OPENING: [Recovery; 3] = [Recovery::Serial, Recovery::Prefetch, Recovery::Wide];

fn options(recovery: Recovery, background: bool) -> Options {
    Options { recovery, background, checkpoint_bytes: u64::MAX, publish: false, ..Options::default() }
}

/// Changes every second page, 10 in each commit. The store was closed before, and none of the changes are in the
/// data file.
fn change(store: &Store, first: PageNo) {
    for from in (0..PAGES).step_by(10).chain([0]) {
        let mut tx = store.write().unwrap();
        for page in from..from + 10 {
            tx.page_mut(PageNo(first.0 + 2 * page)).unwrap()[100..].fill(from as u8 + 1);
        }
        tx.commit(Durability::Full).unwrap();
    }
}

/// The files of a store that crashed.
fn crashed() -> Files {
    let disk = Arc::new(SimDisk::new());
    let layout = Layout { vlf_bytes: VLF_BYTES, vlfs: 12, ..Layout::default() };
    let quiet = options(Recovery::Wide, false);
    let store = Store::create_on(disk.clone(), layout, quiet, 1).unwrap();
    let mut tx = store.write().unwrap();
    let pages: Vec<_> = (0..2 * PAGES).map(|_| tx.allocate().unwrap()).collect();
    tx.commit(Durability::Full).unwrap();
    store.close().unwrap();
    change(&Store::open_on(disk.clone(), quiet).unwrap(), pages[0]);
    disk.files()
}

/// Where a disk blocks until it is released.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Before this write to the data file, from 0.
    Write(u64),
    /// Before this read of the log, headers excluded.
    Read(u64),
}

/// The I/O on a file: count and bytes.
#[derive(Clone, Copy, Default)]
struct FileIo {
    reads: (u64, u64),
    writes: (u64, u64),
    syncs: u64,
}

#[derive(Default)]
struct State {
    io: [FileIo; 3],
    /// Reads of the log, headers excluded.
    log_reads: (u64, u64),
    held: bool,
    release: bool,
}

/// A simulated disk that counts its I/O and blocks at one point.
struct BlockedDisk {
    disk: SimDisk,
    hold: Hold,
    state: Mutex<State>,
    changed: Condvar,
}

impl BlockedDisk {
    fn new(files: &Files, hold: Hold) -> Arc<Self> {
        let disk = SimDisk::holding(files.clone());
        Arc::new(Self { disk, hold, state: Mutex::default(), changed: Condvar::new() })
    }

    fn pass(&self, here: impl Fn(&State) -> Hold) {
        let mut state = self.state.lock().unwrap();
        if here(&state) == self.hold {
            state.held = true;
            self.changed.notify_all();
            let waits = |state: &mut State| !state.release;
            assert!(!self.changed.wait_timeout_while(state, LONG, waits).unwrap().1.timed_out());
        }
    }

    fn wait_until_held(&self) {
        let waits = |state: &mut State| !state.held;
        let waited = self.changed.wait_timeout_while(self.state.lock().unwrap(), LONG, waits);
        assert!(!waited.unwrap().1.timed_out(), "it never comes there");
    }

    fn is_held(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.held && !state.release
    }

    fn release(&self) {
        self.state.lock().unwrap().release = true;
        self.changed.notify_all();
    }

    fn io(&self) -> [FileIo; 3] {
        self.state.lock().unwrap().io
    }

    fn count(&self, file: FileId, count: impl FnOnce(&mut FileIo)) {
        count(&mut self.state.lock().unwrap().io[file as usize]);
    }
}

impl Disk for BlockedDisk {
    pagestore_disk::forward_to_disk!(write_through, len);

    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let of_records = file == FileId::Log && buffer.len() != HEAD_BYTES;
        if of_records {
            self.pass(|state| Hold::Read(state.log_reads.0));
        }
        self.disk.read(file, offset, buffer)?;
        let mut state = self.state.lock().unwrap();
        let bytes = buffer.len() as u64;
        let add = |to: &mut (u64, u64)| *to = (to.0 + 1, to.1 + bytes);
        add(&mut state.io[file as usize].reads);
        if of_records {
            add(&mut state.log_reads);
        }
        Ok(())
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if file == FileId::Data {
            self.pass(|state| Hold::Write(state.io[file as usize].writes.0));
        }
        self.disk.write(file, offset, bytes)?;
        self.count(file, |io| io.writes = (io.writes.0 + 1, io.writes.1 + bytes.len() as u64));
        Ok(())
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.disk.sync(file)?;
        self.count(file, |io| io.syncs += 1);
        Ok(())
    }
}

/// Opens the store, and releases the disk after a progress report while it is blocked: that report, and the last
/// one.
fn open(disk: &Arc<BlockedDisk>, options: Options) -> (Store, Option<RecoveryProgress>, RecoveryProgress) {
    let (mut held, mut last) = (None, None);
    let caller = std::thread::current().id();
    let store = Store::open_on_with(disk.clone(), options, |progress| {
        assert_eq!(std::thread::current().id(), caller);
        if disk.is_held() {
            held = Some(progress);
            disk.release();
        }
        last = Some(progress);
    });
    (store.unwrap(), held, last.expect("something is reported"))
}

/// Page writes of a strategy.
fn writes(recovery: Recovery) -> u64 {
    let each_change = matches!(recovery, Recovery::Serial | Recovery::Prefetch);
    if each_change { PAGES + AGAIN } else { PAGES }
}

fn written(recovery: Recovery, done: u64, elapsed: Duration) -> RecoveryProgress {
    let pages = writes(recovery);
    RecoveryProgress {
        phase: RecoveryPhase::WritingPages,
        pages,
        pages_left: pages - done,
        bytes: done * PAGE_BYTES,
        bytes_total: pages * PAGE_BYTES,
        elapsed,
    }
}

/// The expected end of a recovery according to the disk's counts.
fn expected_end(disk: &BlockedDisk, pages: u64, took: Duration, data_reads: bool) -> RecoveryEnd {
    let [control, data, log] = disk.io();
    let of_data = if data_reads { data.reads } else { (0, 0) };
    RecoveryEnd {
        took,
        pages,
        reads: control.reads.0 + log.reads.0 + of_data.0,
        read_bytes: control.reads.1 + log.reads.1 + of_data.1,
        writes: data.writes.0,
        write_bytes: data.writes.1,
        syncs: data.syncs,
    }
}

#[test]
fn opening_reports_the_pages_written_and_the_totals_at_the_end() {
    let files = crashed();
    for recovery in AT_OPENING {
        let begun = Instant::now();
        let disk = BlockedDisk::new(&files, Hold::Write(25));
        let (store, held, last) = open(&disk, options(recovery, false));
        let opened = begun.elapsed();
        let held = held.expect("progress is reported while it is blocked");
        assert_eq!(held, written(recovery, 25, held.elapsed), "{recovery:?}");
        assert!(held.elapsed <= opened && held.time_left().is_some(), "{recovery:?}: {held:?}");
        assert_eq!(last, written(recovery, writes(recovery), last.elapsed), "{recovery:?}");
        assert_eq!(last.time_left(), Some(Duration::ZERO));
        assert_eq!(store.recovery_progress(), None, "{recovery:?}");

        let report = store.recovery_report();
        let end = report.end.expect("all is redone");
        assert_eq!(report.pages, PAGES, "{recovery:?}");
        assert_eq!(end, expected_end(&disk, writes(recovery), end.took, true), "{recovery:?}");
        assert_eq!(end.write_bytes, writes(recovery) * PAGE_BYTES, "{recovery:?}");
        let in_place =
            expected_end(&disk, 0, end.took, true).reads - expected_end(&disk, 0, end.took, false).reads;
        assert_eq!(in_place, writes(recovery) - PAGES, "{recovery:?}: only what changed twice is read");
        assert!(report.analysis <= end.took && end.took <= report.opened && report.opened <= opened);
    }
}

#[test]
fn opening_reports_how_much_log_is_read() {
    let files = crashed();
    let info = Inspection::open_on(Arc::new(SimDisk::holding(files.clone()))).unwrap().info().unwrap();
    let vlfs = info.vlfs.iter().filter(|vlf| vlf.status == 2).count() as u64;
    let log_bytes = vlfs * VLF_BYTES - u64::from(info.redo.unit()) * 512;
    assert!(vlfs > 2);
    for recovery in AT_OPENING {
        let disk = BlockedDisk::new(&files, Hold::Read(2));
        let bytes = || disk.state.lock().unwrap().log_reads.1;
        let mut held = Vec::new();
        let store = Store::open_on_with(disk.clone(), options(recovery, false), |progress| {
            if disk.is_held() {
                held.push((progress, bytes()));
                disk.release();
            }
        });
        drop(store.unwrap());
        let [(progress, read)] = held[..] else { panic!("it is reported once") };
        assert_eq!(progress.phase, RecoveryPhase::ReadingLog, "{recovery:?}");
        assert_eq!((progress.bytes, progress.bytes_total), (read, log_bytes), "{recovery:?}");
        assert_eq!((progress.pages, progress.pages_left), (0, 0), "what there is is not known yet");
        let serial = recovery == Recovery::Serial;
        assert_eq!(read > 64 << 10, !serial, "{recovery:?} reads {read} bytes in two reads");
    }
}

#[test]
fn an_inspection_reports_its_progress_at_each_virtual_log_file() {
    let inspection = || Inspection::open_on(Arc::new(SimDisk::holding(crashed()))).unwrap();
    let info = inspection().info().unwrap();
    let vlfs = info.vlfs.iter().filter(|vlf| vlf.status == 2).count() as u64;
    let before = u64::from(info.redo.unit()) * 512;
    let mut reports = Vec::new();
    let same = inspection()
        .with_progress(|progress| reports.push((progress.bytes, progress.bytes_total)))
        .info()
        .unwrap();
    assert_eq!(same, info);
    // The first block of a virtual log file comes after its header.
    let at = |vlf: u64| if vlf == 0 { 0 } else { vlf * VLF_BYTES + 4096 - before };
    let expected: Vec<_> = (0..vlfs).map(|vlf| (at(vlf), vlfs * VLF_BYTES - before)).collect();
    assert_eq!(reports, expected);
}

#[test]
fn instant_recovery_reports_its_progress_while_the_store_is_open_and_its_totals_at_the_end() {
    let files = crashed();
    let begun = Instant::now();
    let disk = BlockedDisk::new(&files, Hold::Write(25));
    let mut reports = None;
    let store = Store::open_on_with(disk.clone(), options(Recovery::Instant, true), |progress| {
        reports = Some(progress);
    })
    .unwrap();
    let reports = reports.expect("it is reported when it is open");
    assert!(reports.phase == RecoveryPhase::WritingPages && reports.pages_left > 0, "{reports:?}");

    disk.wait_until_held();
    let held = store.recovery_progress().expect("it goes on");
    assert_eq!(held, written(Recovery::Instant, 25, held.elapsed));
    assert_eq!(store.recovery_report().end, None);
    disk.release();
    while store.recovery_progress().is_some() {
        assert!(begun.elapsed() < LONG, "it never ends");
        std::thread::yield_now();
    }
    let report = store.recovery_report();
    let end = report.end.expect("all is redone");
    assert_eq!(end, expected_end(&disk, PAGES, end.took, false));
    assert_eq!((end.writes, end.write_bytes), (PAGES, PAGES * PAGE_BYTES));
    assert!(report.opened < end.took && end.took <= begun.elapsed());
}

#[test]
fn a_store_with_nothing_to_redo_reports_that_at_once() {
    let layout = Layout { vlf_bytes: VLF_BYTES, ..Layout::default() };
    for recovery in AT_OPENING.into_iter().chain([Recovery::Instant]) {
        let disk = Arc::new(SimDisk::new());
        let store = Store::create_on(disk.clone(), layout, options(recovery, true), 1).unwrap();
        assert_eq!(store.recovery_report().end, Some(RecoveryEnd::default()), "there was no store before");
        store.close().unwrap();
        let mut reports = Vec::new();
        let store =
            Store::open_on_with(disk, options(recovery, true), |progress| reports.push(progress)).unwrap();
        let last = reports.pop().expect("it is reported when it is open");
        assert_eq!((last.phase, last.pages, last.pages_left), (RecoveryPhase::WritingPages, 0, 0));
        assert_eq!((last.pages_per_s(), last.time_left()), (0.0, None));
        let end = store.recovery_report().end.expect("there was nothing to do");
        assert_eq!((end.pages, end.writes), (0, 0), "{recovery:?}");
        assert_eq!(store.recovery_progress(), None);
    }
}

#[test]
fn on_a_real_file_system_every_strategy_reports_its_totals_and_a_directory_without_a_store_is_refused() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let none = Store::open_with(place.path(), Options::default(), |_| ());
    let path = place.path().display().to_string();
    assert!(matches!(none.err(), Some(Error::NotAStore { path: found, .. }) if found == path));

    for recovery in AT_OPENING.into_iter().chain([Recovery::Instant]) {
        let directory = place.path().join(format!("{recovery:?}"));
        let layout = Layout { vlf_bytes: 256 << 10, ..Layout::default() };
        let quiet = Options { checkpoint_bytes: u64::MAX, ..Options::default() };
        let store = Store::create(&directory, layout, quiet).unwrap();
        let mut tx = store.write().unwrap();
        let pages: Vec<_> = (0..2 * PAGES).map(|_| tx.allocate().unwrap()).collect();
        tx.commit(Durability::Full).unwrap();
        store.close().unwrap();
        let store = Store::open(&directory, quiet).unwrap();
        change(&store, pages[0]);
        drop(store);

        let begun = Instant::now();
        let mut last = None;
        let store =
            Store::open_with(&directory, Options { recovery, ..quiet }, |progress| last = Some(progress))
                .unwrap();
        let last = last.expect("it is reported when it is open");
        assert_eq!(last.phase, RecoveryPhase::WritingPages);
        // Instant recovery counts a page once for each index until the indices have been read.
        let most = if recovery == Recovery::Instant { PAGES + AGAIN } else { writes(recovery) };
        assert!((writes(recovery)..=most).contains(&last.pages), "{recovery:?}: {last:?}");
        let end = loop {
            if let Some(end) = store.recovery_report().end {
                break end;
            }
            assert!(begun.elapsed() < LONG && recovery == Recovery::Instant, "it never ends");
            std::thread::yield_now();
        };
        assert!(end.took <= begun.elapsed() && end.took >= store.recovery_report().analysis);
        let expected = writes(recovery);
        assert_eq!((end.pages, end.write_bytes), (expected, expected * PAGE_BYTES), "{recovery:?}");
        assert!(end.reads > 0 && end.read_bytes >= PAGES * PAGE_BYTES && end.syncs > 0, "{end:?}");
        assert!(end.pages_per_s() > 0.0 && end.read_bytes > 0 && end.write_bytes > 0);
        for page in (0..PAGES).filter(|page| *page >= AGAIN) {
            let found = store.read().unwrap().page(PageNo(pages[0].0 + 2 * page)).unwrap();
            assert_eq!(u64::from(found[200]), page / 10 * 10 + 1, "{recovery:?}");
        }
    }
}
