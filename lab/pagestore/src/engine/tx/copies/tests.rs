use super::*;
use crate::sync::scheduled::{check, yield_in_schedule};
use crashlab::{Refused, SimDisk, Trouble};
use pagestore_disk::{MemoryScratch, Scratch};
use shuttle::rand::Rng;
use std::collections::BTreeMap;
use std::io;
use std::sync::Condvar;
use std::sync::atomic::AtomicU64;

fn put(copies: &mut Copies<'_>, page: u64, byte: u8) {
    let mut copy = PageCopy::new(Page::from(vec![byte; 4096]), None);
    *copy.used.get_mut() = false;
    copies.insert(PageNo(page), copy);
}

fn byte(copies: &Copies<'_>, page: u64) -> u8 {
    match copies.get(PageNo(page)) {
        Some(copy) => copy.content[100],
        None => copies.read_aside(PageNo(page)).unwrap().unwrap()[100],
    }
}

#[test]
fn what_is_set_aside_is_read_back_and_its_place_is_used_again() {
    let disk = SimDisk::new();
    let mut copies = Copies::new(&disk, PageMemory::new(4096), FxHashMap::default(), false);
    (1..=64).for_each(|page| put(&mut copies, page, page as u8));
    for round in 0..20 {
        copies.set_aside(&[PageNo(1)], 1).unwrap();
        assert!(copies.get(PageNo(1)).is_some(), "it is kept");
        assert!((1..=64).all(|page| byte(&copies, page) == page as u8), "round {round}");
        for page in copies.all_aside() {
            put(&mut copies, page.0, page.0 as u8);
        }
    }
    assert!(copies.crcs.len() <= 8, "{} places", copies.crcs.len());
}

#[test]
fn pages_that_are_used_stay_longer() {
    let disk = SimDisk::new();
    let mut copies = Copies::new(&disk, PageMemory::new(4096), FxHashMap::default(), false);
    (1..=64).for_each(|page| put(&mut copies, page, page as u8));
    for _ in 0..8 {
        (1..=16).for_each(|page| assert_eq!(byte(&copies, page), page as u8));
        copies.set_aside(&[], 1).unwrap();
    }
    assert!(copies.all_aside().len() >= 8);
    assert!(copies.all_aside().iter().all(|page| page.0 > 16), "{:?}", copies.all_aside());
}

#[test]
fn pages_that_could_not_be_set_aside_stay_and_are_set_aside_later() {
    let disk = SimDisk::new();
    let mut copies = Copies::new(&disk, PageMemory::new(4096), FxHashMap::default(), false);
    (1..=64).for_each(|page| put(&mut copies, page, page as u8));
    disk.begin_trouble(Trouble { refused: Refused::Growth, after: 2, times: 1 });
    copies.set_aside(&[], 1).unwrap_err();
    assert_eq!((copies.aside.len(), copies.in_memory.len()), (2, 62));
    while !copies.in_memory.is_empty() {
        copies.set_aside(&[], 1).unwrap();
    }
    assert!((1..=64).all(|page| byte(&copies, page) == page as u8));
}

/// Changes a page that is in memory or set aside, as a transaction does.
fn change(copies: &mut Copies<'_>, page: u64, byte: u8) {
    if copies.get(PageNo(page)).is_none() {
        let content = copies.read_aside(PageNo(page)).unwrap().unwrap();
        copies.insert(PageNo(page), PageCopy::new(content, None));
    }
    copies.in_memory.get_mut(&PageNo(page)).unwrap().content_mut().fill(byte);
}

/// A disk whose scratch file may take long: other threads run meanwhile.
struct SlowDisk {
    disk: SimDisk,
}

struct SlowScratch(Arc<dyn Scratch>);

impl Disk for SlowDisk {
    pagestore_disk::forward_to_disk!(read, write, write_through, sync, len);

    fn scratch(&self) -> io::Result<Arc<dyn Scratch>> {
        Ok(Arc::new(SlowScratch(self.disk.scratch()?)))
    }
}

impl Scratch for SlowScratch {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        yield_in_schedule();
        self.0.read(offset, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        yield_in_schedule();
        self.0.write(offset, bytes)?;
        yield_in_schedule();
        Ok(())
    }
}

#[test]
fn no_page_is_lost_when_it_is_read_changed_or_refused_while_it_is_written() {
    let (refused, queued) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (own_refused, own_queued) = (refused.clone(), queued.clone());
    check(11, 400, move || {
        let disk = SlowDisk { disk: SimDisk::new() };
        let mut copies = Copies::new(&disk, PageMemory::new(4096), FxHashMap::default(), true);
        let mut chance = shuttle::rand::thread_rng();
        let mut expected: BTreeMap<u64, u8> = (1..=48).map(|page| (page, page as u8)).collect();
        expected.iter().for_each(|(page, value)| put(&mut copies, *page, *value));
        for step in 0..60 {
            let page = chance.gen_range(1..=48);
            match chance.gen_range(0..8) {
                0..=2 => {
                    change(&mut copies, page, step);
                    expected.insert(page, step);
                }
                3 | 4 => assert_eq!(byte(&copies, page), expected[&page], "page {page}, step {step}"),
                5 => disk.disk.begin_trouble(Trouble {
                    refused: Refused::Growth,
                    after: chance.gen_range(0..8),
                    times: 1,
                }),
                _ => {
                    if copies.set_aside(&[PageNo(page)], 1).is_err() {
                        own_refused.fetch_add(1, Ordering::Relaxed);
                    }
                    let waiting = copies.queue.as_ref().unwrap().len();
                    assert!(waiting <= copies.queue_pages, "{waiting} wait");
                    own_queued.fetch_add(u64::from(waiting > 0), Ordering::Relaxed);
                    assert_eq!(copies.in_memory.len() + copies.aside.len(), 48);
                }
            }
        }
        // The transaction ends here whatever waits; half of them are read first, as by a commit.
        if chance.gen_bool(0.5) {
            assert!(expected.iter().all(|(page, value)| byte(&copies, *page) == *value));
        }
    });
    assert!(refused.load(Ordering::Relaxed) > 0, "no schedule has met an error");
    assert!(queued.load(Ordering::Relaxed) > 0, "no schedule has pages that wait");
}

/// A scratch file whose writes wait until it is opened.
#[derive(Default)]
struct Gate {
    is_open: std::sync::Mutex<bool>,
    opened: Condvar,
    writes: AtomicU64,
    memory: MemoryScratch,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl Scratch for Gate {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.memory.read(offset, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        self.memory.write(offset, bytes)
    }
}

/// Pages of which eight were set aside: as many as may wait, and none of them is written before the gate opens.
fn with_a_full_queue<'a>(disk: &'a SimDisk, gate: &Arc<Gate>) -> Copies<'a> {
    let mut copies = Copies::new(disk, PageMemory::new(4096), FxHashMap::default(), true);
    (1..=64).for_each(|page| put(&mut copies, page, page as u8));
    copies.queue = Some(WriteQueue::new(gate.clone(), 4096, true));
    copies.queue_pages = 8;
    copies.set_aside(&[], 8).unwrap();
    assert_eq!((copies.queue.as_ref().unwrap().len(), copies.aside.len()), (8, 8));
    copies
}

#[test]
fn a_transaction_that_ends_while_the_queue_is_full_waits_for_one_write_and_leaves_no_thread() {
    let (disk, gate) = (SimDisk::new(), Arc::new(Gate::default()));
    let copies = with_a_full_queue(&disk, &gate);
    let is_ending = copies.queue.as_ref().unwrap().watch_end();
    std::thread::scope(|scope| {
        let ending = scope.spawn(|| drop(copies));
        while !is_ending() && !ending.is_finished() {
            std::thread::yield_now();
        }
        gate.open();
    });
    drop(is_ending);
    assert!(gate.writes.load(Ordering::Relaxed) <= 1, "what waits is not written");
    assert_eq!(Arc::strong_count(&gate), 1, "the thread has ended");
}

#[test]
fn pages_that_wait_are_read_and_changed_and_what_was_changed_is_written_again() {
    let (disk, gate) = (SimDisk::new(), Arc::new(Gate::default()));
    let mut copies = with_a_full_queue(&disk, &gate);
    assert!((1..=64).all(|page| byte(&copies, page) == page as u8));
    for PageNo(page) in copies.all_aside() {
        change(&mut copies, page, 100 + page as u8);
    }
    gate.open();
    while !copies.in_memory.is_empty() {
        copies.set_aside(&[], 1).unwrap();
    }
    let changed = (1..=64).filter(|page| byte(&copies, *page) == 100 + *page as u8).count();
    assert_eq!(changed, 8);
    assert!((1..=64).all(|page| [page as u8, 100 + page as u8].contains(&byte(&copies, page))));
}

#[test]
fn a_thread_that_panics_is_an_error_and_its_pages_are_in_memory() {
    struct Panics;
    impl Scratch for Panics {
        fn read(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
            unreachable!("nothing was written");
        }

        fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
            panic!("told to panic");
        }
    }
    let disk = SimDisk::new();
    let mut copies = Copies::new(&disk, PageMemory::new(4096), FxHashMap::default(), true);
    (1..=64).for_each(|page| put(&mut copies, page, page as u8));
    copies.queue = Some(WriteQueue::new(Arc::new(Panics), 4096, true));
    let error = copies.set_aside(&[], 4).unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
    assert_eq!((copies.aside.len(), copies.in_memory.len()), (0, 64));
    assert!((1..=64).all(|page| byte(&copies, page) == page as u8));
}
