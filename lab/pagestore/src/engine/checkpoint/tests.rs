use crate::error::Error;
use crate::sync::scheduled::{check, unscheduled};
use crate::{Durability, Layout, Options, Recovery, Store, Tables};
use crashlab::{Chance, Fault, Medium, Op, SimDisk};
use pagestore_disk::FileId;
use std::sync::Arc;

/// Commits (full and delayed) and checkpoints on a disk that acknowledges operation `fault` without doing it
/// correctly. Also returns the number of operations before the checkpoint.
fn checkpointed(fault: Option<(usize, Fault)>) -> (usize, Arc<SimDisk>) {
    let disk = SimDisk::new();
    let disk = Arc::new(match fault {
        Some((at, fault)) => disk.with_fault(at, fault),
        None => disk,
    });
    let layout = Layout { vlf_bytes: 128 << 10, vlfs: 2, ..Layout::default() };
    let options = Options { background: false, ..Options::default() };
    let store = Store::create_on(disk.clone(), layout, options, 1).unwrap();
    for durability in [Durability::Full, Durability::Delayed] {
        let mut tx = store.write().unwrap();
        let name = format!("{durability:?}");
        let table = tx.create_table(&name).unwrap();
        tx.put(table, b"key", b"value").unwrap();
        tx.commit(durability).unwrap();
    }
    let before = disk.ops();
    let _ = store.checkpoint();
    (before, disk)
}

// The last log write before a checkpoint's pages has no later block as its witness. If the device lost it, or
// wrote it over the block before, its pages must not be used with a log that ends earlier.
#[test]
fn log_that_is_lost_under_the_pages_of_a_checkpoint_is_damage_and_not_an_earlier_end() {
    let (at, _) = checkpointed(None);
    for fault in [Fault::Lost, Fault::Misdirected] {
        let (_, disk) = checkpointed(Some((at, fault)));
        let trace = disk.take_trace();
        let first_page = (at..trace.len())
            .find(|index| matches!(trace[*index], Op::Write { file: FileId::Data, .. }))
            .expect("a checkpoint writes pages");
        let mut medium = Medium::default();
        trace[..=first_page].iter().for_each(|op| medium.apply(op));
        for seed in 0..20 {
            for recovery in [Recovery::Serial, Recovery::Prefetch, Recovery::Wide, Recovery::Instant] {
                let files = medium.crash(None, &mut Chance::new(seed));
                let options = Options { background: false, recovery, ..Options::default() };
                let opened = Store::open_on(Arc::new(SimDisk::holding(files)), options);
                let error = opened.err();
                assert!(
                    matches!(error, Some(Error::CorruptLog { .. })),
                    "{fault:?}, {recovery:?}, seed {seed}: {error:?}"
                );
            }
        }
    }
}

// A page that is changed before the checkpoint captures it is left out: it has an image in the log, and that
// must be durable before the log before the checkpoint is freed.
#[test]
fn what_is_changed_while_a_checkpoint_lists_its_pages_is_whole_after_a_crash_at_its_end() {
    const ROWS: u32 = 30;
    check(4, 200, || {
        let options = Options { background: false, ..Options::default() };
        let disk = Arc::new(SimDisk::new());
        let value = |number: u64| number.to_be_bytes().repeat(100);
        let written = [0, ROWS / 2, ROWS - 1];
        let write = move |store: &Store, rows: &mut dyn Iterator<Item = u32>, durability: Durability| {
            let mut tx = store.write().expect("the disk works");
            let table = tx.table("t").expect("it is there");
            let number = store.stats().last_sequence + 1;
            for row in rows {
                tx.put(table, &row.to_be_bytes(), &value(number)).expect("it fits");
            }
            tx.commit(durability).expect("the disk works");
        };
        let store = unscheduled(|| {
            let layout = Layout { vlf_bytes: 128 << 10, ..Layout::default() };
            let store = Store::create_on(disk.clone(), layout, options, 1).expect("the disk works");
            let mut tx = store.write().expect("it works");
            tx.create_table("t").expect("it is new");
            tx.commit(Durability::Full).expect("the disk works");
            write(&store, &mut (0..ROWS), Durability::Full);
            Arc::new(store)
        });
        let writer = store.clone();
        let writer = shuttle::thread::spawn(move || {
            for _ in 0..4 {
                write(&writer, &mut written.into_iter(), Durability::Delayed);
            }
        });
        store.checkpoint().expect("the disk works");
        let files = disk.files();
        writer.join().expect("it holds");
        unscheduled(|| {
            let store = Store::open_on(Arc::new(SimDisk::holding(files)), options).expect("it opens");
            let last = store.stats().last_sequence;
            let reader = store.read().expect("it can be read");
            let table = reader.table("t").expect("it is there");
            for row in written {
                let found = reader.get(table, &row.to_be_bytes()).expect("its pages are there");
                assert_eq!(found, Some(value(last)), "row {row} after commit {last}");
            }
        });
    });
}
