//! Files that no store has written, but with matching checksums: they are refused or opened; nothing panics, hangs
//! or allocates without bounds.

use crashlab::{Chance, Files, SimDisk};
use pagestore::inspect::{Filter, Inspection};
use pagestore::{Durability, Error, Layout, Options, PageNo, Pages, Recovery, Store, Tables};
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};
use std::time::Duration;

const VLF_BYTES: u64 = 128 << 10;
const COPY_BYTES: usize = 4096;
/// Bytes of an entry of the log's directory.
const ENTRY_BYTES: usize = 128;
const BLOCK_HEADER_BYTES: usize = 64;
const STRATEGIES: [Recovery; 4] = [Recovery::Instant, Recovery::Wide, Recovery::Prefetch, Recovery::Serial];
/// Longer than any case takes.
const LONG: Duration = Duration::from_secs(30);

fn options() -> Options {
    let quiet = Options { background: false, publish: false, parallel: 2, ..Options::default() };
    Options { cache_bytes: 256 << 10, checkpoint_bytes: u64::MAX, log_limit_bytes: 4 << 20, ..quiet }
}

/// The files of a store that crashed in its fourth virtual log file or a later one; recovery begins at least two
/// before that.
fn crashed(log_sector_bytes: usize) -> Files {
    let disk = Arc::new(SimDisk::new());
    let layout = Layout { vlf_bytes: VLF_BYTES, vlfs: 3, log_sector_bytes, ..Layout::default() };
    let store = Store::create_on(disk.clone(), layout, options(), 1).unwrap();
    let mut tx = store.write().unwrap();
    let table = tx.create_table("t").unwrap();
    tx.commit(Durability::Full).unwrap();
    let mut number = 0_u32;
    let mut until = |vlf: u32| {
        while store.log_holders().next.vlf() < vlf {
            number += 1;
            let put =
                |tx: &mut pagestore::WriteTx<'_>| tx.put(table, &(number % 300).to_be_bytes(), &[7; 400]);
            store.transact(Durability::Full, put).unwrap();
        }
    };
    until(2);
    store.checkpoint().unwrap();
    until(4);
    disk.files()
}

/// A device that ignores flushes may keep pages and lose the log and the control file that were written before them.
#[test]
fn a_page_that_is_newer_than_the_log_is_reported() {
    let disk = Arc::new(SimDisk::new());
    let layout = Layout { vlf_bytes: VLF_BYTES, vlfs: 3, ..Layout::default() };
    let store = Store::create_on(disk.clone(), layout, options(), 1).unwrap();
    let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
    let put = |value: u8| {
        store.transact(Durability::Full, |tx| tx.put(table, b"key", &[value; 400])).unwrap();
        store.checkpoint().unwrap();
        disk.files()
    };
    let ([control, _, log], [_, newer, _]) = (put(1), put(2));
    for recovery in STRATEGIES {
        let disk = SimDisk::holding([control.clone(), newer.clone(), log.clone()]);
        let found = Store::open_on(Arc::new(disk), Options { recovery, ..options() }).and_then(|store| {
            let reader = store.read()?;
            reader.get(reader.table("t")?, b"key")
        });
        match found {
            Err(Error::CorruptPage { why, .. }) => assert!(why.contains("acknowledged is lost"), "{why}"),
            other => panic!("{recovery:?}: {other:?}"),
        }
    }
}

/// A recovery that writes its pages logs that: pages of the lost log are not taken for pages of what it logged.
#[test]
fn a_page_that_is_newer_than_the_log_is_reported_wherever_the_opening_has_logged() {
    for lost in 1..=6 {
        let disk = Arc::new(SimDisk::new());
        let layout = Layout { vlf_bytes: VLF_BYTES, vlfs: 3, ..Layout::default() };
        let store = Store::create_on(disk.clone(), layout, options(), 1).unwrap();
        let [redone, damaged] =
            ["t", "u"].map(|name| store.transact(Durability::Full, |tx| tx.create_table(name)).unwrap());
        let put = |table, value: u8| {
            store.transact(Durability::Full, |tx| tx.put(table, b"key", &[value; 400])).unwrap();
        };
        put(damaged, 1);
        store.checkpoint().unwrap();
        put(redone, 1);
        let [control, _, log] = disk.files();
        (0..lost).for_each(|value| put(damaged, value));
        store.checkpoint().unwrap();
        let [_, newer, _] = disk.files();
        for recovery in STRATEGIES {
            let disk = SimDisk::holding([control.clone(), newer.clone(), log.clone()]);
            let found = Store::open_on(Arc::new(disk), Options { recovery, ..options() }).and_then(|store| {
                let reader = store.read()?;
                reader.get(reader.table("u")?, b"key")
            });
            assert!(matches!(found, Err(Error::CorruptPage { .. })), "{recovery:?}, {lost}: {found:?}");
        }
    }
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn get(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Another value for a field: an extreme one, one near the extremes, one near the present value, or any.
fn another(value: u32, chance: &mut Chance) -> u32 {
    match chance.below(8) {
        0 => 0,
        1 => u32::MAX,
        2 => u32::MAX - 1,
        3 => 1 << chance.below(32),
        4 => chance.below(16) as u32,
        5 => value.wrapping_add(1),
        6 => value.wrapping_sub(1),
        _ => chance.draw() as u32,
    }
}

/// Forges a field of `sum`, whose checksum is stored at `crc`.
fn forge(bytes: &mut [u8], crc: usize, sum: std::ops::Range<usize>, field: usize, chance: &mut Chance) {
    let value = another(get(bytes, field), chance);
    put(bytes, field, value);
    let sum = crc32c::crc32c(&bytes[sum]);
    put(bytes, crc, sum);
}

fn damage(files: &mut Files, chance: &mut Chance) {
    let [control, data, log] = files;
    match chance.below(5) {
        0 => {
            let own = chance.below(2) as usize * COPY_BYTES;
            let field = own + 12 + 4 * chance.below(22) as usize;
            forge(control, own + 8, own + 12..own + 512, field, chance);
            if chance.once_in(2) {
                let other = COPY_BYTES - own;
                control[other..other + 512].fill(0);
            }
        }
        1 => {
            let own = 2 * COPY_BYTES + chance.below(5) as usize * ENTRY_BYTES;
            if own + ENTRY_BYTES <= control.len() {
                let field = own + 4 + 4 * chance.below(26) as usize;
                forge(control, own, own + 4..own + ENTRY_BYTES, field, chance);
            }
        }
        2 => {
            let blocks: Vec<_> =
                (0..log.len()).step_by(512).filter(|at| log[*at..].starts_with(b"HLB1")).collect();
            let own = blocks[chance.below(blocks.len() as u64) as usize];
            let end = (own + get(log, own + 16) as usize).min(log.len());
            let most = if chance.once_in(2) { BLOCK_HEADER_BYTES + 100 } else { end - own };
            let field = own + 8 + chance.below((most.min(end - own) - 12) as u64) as usize;
            forge(log, own + 4, own + 8..end, field, chance);
        }
        3 => {
            let slot = chance.below((log.len() as u64 - 8192) / VLF_BYTES) as usize;
            let own = 8192 + slot * VLF_BYTES as usize;
            forge(log, own + 4, own + 8..own + 4096, own + 8 + 4 * chance.below(8) as usize, chance);
        }
        _ => {
            let file = [control, data, log].into_iter().nth(chance.below(3) as usize).unwrap();
            let length = chance.below(file.len() as u64 + 1) as usize;
            file.truncate(length);
        }
    }
}

/// Does everything that reads the files, and writes to the opened store.
fn exercise(files: &Files, recovery: Recovery) {
    if let Ok(inspection) = Inspection::open_on(Arc::new(SimDisk::holding(files.clone()))) {
        let _ = (
            inspection.info(),
            inspection.why(),
            inspection.anatomy(None),
            inspection.records(Filter::default(), |_| ControlFlow::Continue(())),
        );
    }
    let disk = Arc::new(SimDisk::holding(files.clone()));
    let Ok(store) = Store::open_on(disk, Options { recovery, ..options() }) else { return };
    if let Ok(reader) = store.read() {
        for page in 0..40 {
            let _ = reader.page(PageNo(page));
        }
    }
    let _ = store.checkpoint();
    let _ = store.close();
}

#[test]
fn forged_contents_with_matching_checksums_are_refused_or_read_and_nothing_hangs_or_panics() {
    let images = [512, 4096].map(crashed);
    for seed in 0..800 {
        let mut chance = Chance::new(seed);
        let mut files = images[chance.below(2) as usize].clone();
        for _ in 0..1 + chance.below(3) {
            if files[0].len() >= 2 * COPY_BYTES && files[2].len() > 8192 + 2 * VLF_BYTES as usize {
                damage(&mut files, &mut chance);
            }
        }
        let recovery = STRATEGIES[chance.below(4) as usize];
        let (done, ended) = mpsc::channel();
        let user = std::thread::spawn(move || {
            exercise(&files, recovery);
            let _ = done.send(());
        });
        let waited = ended.recv_timeout(LONG);
        assert!(waited != Err(mpsc::RecvTimeoutError::Timeout), "seed {seed} by {recovery:?} takes for ever");
        assert!(user.join().is_ok(), "seed {seed} by {recovery:?}");
    }
}
