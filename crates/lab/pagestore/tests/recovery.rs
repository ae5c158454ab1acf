//! What is told of a recovery, while it runs and at its end, held against what its disk was asked for.

use pagestore::disk::{Disk, FileId};
use pagestore::inspect::Inspection;
use pagestore::sim::{Files, SimDisk};
use pagestore::{
    Durability, Error, Layout, Options, PageNo, Pages, Recovery, RecoveryEnd, RecoveryPhase,
    RecoveryProgress, Store,
};
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const PAGE_BYTES: u64 = 4096;
const VLF_BYTES: u64 = 128 << 10;
/// Pages that changed, no two of them neighbours: each is a write of its own.
const PAGES: u64 = 60;
/// … and of those, the ones that changed twice.
const AGAIN: u64 = 10;
/// Of a virtual log file's head.
const HEAD_BYTES: usize = 8192;
/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

const AT_OPENING: [Recovery; 3] = [Recovery::Serial, Recovery::Prefetch, Recovery::Wide];

fn options(recovery: Recovery, background: bool) -> Options {
    Options { recovery, background, checkpoint_bytes: u64::MAX, publish: false, ..Options::default() }
}

/// Changes every second page, 10 in a commit, in a store that was closed with all of them; nothing of it is in the
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

/// Where a disk waits until it is let go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Before this write to the data file, from 0.
    Write(u64),
    /// Before this read of the log, its heads not counted.
    Read(u64),
}

/// What a file was asked for, in number and bytes.
#[derive(Clone, Copy, Default)]
struct Asked {
    reads: (u64, u64),
    writes: (u64, u64),
    syncs: u64,
}

#[derive(Default)]
struct State {
    asked: [Asked; 3],
    /// Of the log, without the heads.
    log_reads: (u64, u64),
    held: bool,
    let_go: bool,
}

/// A simulated disk that counts, and waits at one place.
struct Held {
    disk: SimDisk,
    hold: Hold,
    state: Mutex<State>,
    changed: Condvar,
}

impl Held {
    fn new(files: &Files, hold: Hold) -> Arc<Self> {
        let disk = SimDisk::holding(files.clone());
        Arc::new(Self { disk, hold, state: Mutex::default(), changed: Condvar::new() })
    }

    fn pass(&self, here: impl Fn(&State) -> Hold) {
        let mut state = self.state.lock().unwrap();
        if here(&state) == self.hold {
            state.held = true;
            self.changed.notify_all();
            let waits = |state: &mut State| !state.let_go;
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
        state.held && !state.let_go
    }

    fn let_go(&self) {
        self.state.lock().unwrap().let_go = true;
        self.changed.notify_all();
    }

    fn asked(&self) -> [Asked; 3] {
        self.state.lock().unwrap().asked
    }

    fn count(&self, file: FileId, count: impl FnOnce(&mut Asked)) {
        count(&mut self.state.lock().unwrap().asked[file as usize]);
    }
}

impl Disk for Held {
    pagestore::from_disk_beneath!(write_through, len);

    fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let of_records = file == FileId::Log && buffer.len() != HEAD_BYTES;
        if of_records {
            self.pass(|state| Hold::Read(state.log_reads.0));
        }
        self.disk.read(file, offset, buffer)?;
        let mut state = self.state.lock().unwrap();
        let bytes = buffer.len() as u64;
        let add = |to: &mut (u64, u64)| *to = (to.0 + 1, to.1 + bytes);
        add(&mut state.asked[file as usize].reads);
        if of_records {
            add(&mut state.log_reads);
        }
        Ok(())
    }

    fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if file == FileId::Data {
            self.pass(|state| Hold::Write(state.asked[file as usize].writes.0));
        }
        self.disk.write(file, offset, bytes)?;
        self.count(file, |asked| asked.writes = (asked.writes.0 + 1, asked.writes.1 + bytes.len() as u64));
        Ok(())
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.disk.sync(file)?;
        self.count(file, |asked| asked.syncs += 1);
        Ok(())
    }
}

/// Opens, and lets the disk go on when it has been told where it is held: that, and the last that was told.
fn open(disk: &Arc<Held>, options: Options) -> (Store, Option<RecoveryProgress>, RecoveryProgress) {
    let (mut held, mut last) = (None, None);
    let caller = std::thread::current().id();
    let store = Store::open_on_with(disk.clone(), options, |progress| {
        assert_eq!(std::thread::current().id(), caller);
        if disk.is_held() {
            held = Some(progress);
            disk.let_go();
        }
        last = Some(progress);
    });
    (store.unwrap(), held, last.expect("something is told"))
}

/// Page writes that a cursor takes.
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

/// What the disk was asked for, as the end of a recovery has it.
fn asked(disk: &Held, pages: u64, took: Duration, data_reads: bool) -> RecoveryEnd {
    let [control, data, log] = disk.asked();
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
fn who_opens_is_told_how_many_pages_are_written_and_at_the_end_what_it_took() {
    let files = crashed();
    for recovery in AT_OPENING {
        let begun = Instant::now();
        let disk = Held::new(&files, Hold::Write(25));
        let (store, held, last) = open(&disk, options(recovery, false));
        let opened = begun.elapsed();
        let held = held.expect("it is told where it is held");
        assert_eq!(held, written(recovery, 25, held.elapsed), "{recovery:?}");
        assert!(held.elapsed <= opened && held.time_left().is_some(), "{recovery:?}: {held:?}");
        assert_eq!(last, written(recovery, writes(recovery), last.elapsed), "{recovery:?}");
        assert_eq!(last.time_left(), Some(Duration::ZERO));
        assert_eq!(store.recovery_progress(), None, "{recovery:?}");

        let report = store.recovery_report();
        let end = report.end.expect("all is redone");
        assert_eq!(report.pages, PAGES, "{recovery:?}");
        assert_eq!(end, asked(&disk, writes(recovery), end.took, true), "{recovery:?}");
        assert_eq!(end.write_bytes, writes(recovery) * PAGE_BYTES, "{recovery:?}");
        let in_place = asked(&disk, 0, end.took, true).reads - asked(&disk, 0, end.took, false).reads;
        assert_eq!(in_place, writes(recovery) - PAGES, "{recovery:?}: only what changed twice is read");
        assert!(report.analysis <= end.took && end.took <= report.opened && report.opened <= opened);
    }
}

#[test]
fn who_opens_is_told_how_much_log_is_read() {
    let files = crashed();
    let info = Inspection::open_on(Arc::new(SimDisk::holding(files.clone()))).unwrap().info().unwrap();
    let vlfs = info.vlfs.iter().filter(|vlf| vlf.status == 2).count() as u64;
    let log_bytes = vlfs * VLF_BYTES - u64::from(info.redo.unit()) * 512;
    assert!(vlfs > 2);
    for recovery in AT_OPENING {
        let disk = Held::new(&files, Hold::Read(2));
        let bytes = || disk.state.lock().unwrap().log_reads.1;
        let mut held = Vec::new();
        let store = Store::open_on_with(disk.clone(), options(recovery, false), |progress| {
            if disk.is_held() {
                held.push((progress, bytes()));
                disk.let_go();
            }
        });
        drop(store.unwrap());
        let [(progress, read)] = held[..] else { panic!("it is told once") };
        assert_eq!(progress.phase, RecoveryPhase::ReadingLog, "{recovery:?}");
        assert_eq!((progress.bytes, progress.bytes_total), (read, log_bytes), "{recovery:?}");
        assert_eq!((progress.pages, progress.pages_left), (0, 0), "what there is is not known yet");
        let serial = recovery == Recovery::Serial;
        assert_eq!(read > 64 << 10, !serial, "{recovery:?} reads {read} bytes in two reads");
    }
}

#[test]
fn who_looks_into_a_log_is_told_at_each_virtual_log_file_how_far_it_is() {
    let look = || Inspection::open_on(Arc::new(SimDisk::holding(crashed()))).unwrap();
    let info = look().info().unwrap();
    let vlfs = info.vlfs.iter().filter(|vlf| vlf.status == 2).count() as u64;
    let before = u64::from(info.redo.unit()) * 512;
    let mut told = Vec::new();
    let same =
        look().with_progress(|progress| told.push((progress.bytes, progress.bytes_total))).info().unwrap();
    assert_eq!(same, info);
    // The first block of a virtual log file comes after its header.
    let at = |vlf: u64| if vlf == 0 { 0 } else { vlf * VLF_BYTES + 4096 - before };
    let expected: Vec<_> = (0..vlfs).map(|vlf| (at(vlf), vlfs * VLF_BYTES - before)).collect();
    assert_eq!(told, expected);
}

#[test]
fn instant_recovery_tells_how_far_it_is_while_the_store_serves_and_at_the_end_what_it_took() {
    let files = crashed();
    let begun = Instant::now();
    let disk = Held::new(&files, Hold::Write(25));
    let mut told = None;
    let store =
        Store::open_on_with(disk.clone(), options(Recovery::Instant, true), |progress| told = Some(progress))
            .unwrap();
    let told = told.expect("it is told when it is open");
    assert!(told.phase == RecoveryPhase::WritingPages && told.pages_left > 0, "{told:?}");

    disk.wait_until_held();
    let held = store.recovery_progress().expect("it goes on");
    assert_eq!(held, written(Recovery::Instant, 25, held.elapsed));
    assert_eq!(store.recovery_report().end, None);
    disk.let_go();
    while store.recovery_progress().is_some() {
        assert!(begun.elapsed() < LONG, "it never ends");
        std::thread::yield_now();
    }
    let report = store.recovery_report();
    let end = report.end.expect("all is redone");
    assert_eq!(end, asked(&disk, PAGES, end.took, false));
    assert_eq!((end.writes, end.write_bytes), (PAGES, PAGES * PAGE_BYTES));
    assert!(report.opened < end.took && end.took <= begun.elapsed());
}

#[test]
fn where_nothing_is_to_be_redone_that_is_told_at_once() {
    let layout = Layout { vlf_bytes: VLF_BYTES, ..Layout::default() };
    for recovery in AT_OPENING.into_iter().chain([Recovery::Instant]) {
        let disk = Arc::new(SimDisk::new());
        let store = Store::create_on(disk.clone(), layout, options(recovery, true), 1).unwrap();
        assert_eq!(store.recovery_report().end, Some(RecoveryEnd::default()), "there was no store before");
        store.close().unwrap();
        let mut told = Vec::new();
        let store =
            Store::open_on_with(disk, options(recovery, true), |progress| told.push(progress)).unwrap();
        let last = told.pop().expect("that it is open is told");
        assert_eq!((last.phase, last.pages, last.pages_left), (RecoveryPhase::WritingPages, 0, 0));
        assert_eq!((last.pages_per_s(), last.time_left()), (0.0, None));
        let end = store.recovery_report().end.expect("there was nothing to do");
        assert_eq!((end.pages, end.writes), (0, 0), "{recovery:?}");
        assert_eq!(store.recovery_progress(), None);
    }
}

#[test]
fn on_a_real_file_system_the_end_is_told_of_every_way_and_what_is_no_store_is_refused() {
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
        let last = last.expect("that it is open is told");
        assert_eq!(last.phase, RecoveryPhase::WritingPages);
        // Instant recovery counts a page in each index until they have been read.
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
        assert!(end.pages_per_s() > 0.0 && end.read_mb_per_s() > 0.0 && end.write_mb_per_s() > 0.0);
        for page in (0..PAGES).filter(|page| *page >= AGAIN) {
            let found = store.read().unwrap().page(PageNo(pages[0].0 + 2 * page)).unwrap();
            assert_eq!(u64::from(found[200]), page / 10 * 10 + 1, "{recovery:?}");
        }
    }
}
