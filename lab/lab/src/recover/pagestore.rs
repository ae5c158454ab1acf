//! The page store of this program.

use super::stoppable::Stoppable;
use super::victim::{Counted, Recovered, Served, time_recovery, wrong};
use super::work::{BODY_BYTES, Crash, Order, PAGE_BYTES};
use super::{Context, Engine, Strategy, child};
use crate::Error;
use experiments::RecoveryIo;
use filestats::Figure;
use pagestore::{Apply, Durability, Layout, Options, PAGE_HEADER_BYTES, PageNo, Pages, Recovery, Store};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A new store has two internal pages.
const FIRST_PAGE: u64 = 2;
/// The longest virtual log file, and the fewest in the log: serial recovery syncs after each.
const VLF_BYTES_MAX: u64 = 16 << 20;
const VLFS: u64 = 16;
/// How often it polls whether all pages are written.
const POLL_INTERVAL: Duration = Duration::from_micros(500);
/// How often it checks that the store can still write.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

fn page_of(place: u64) -> PageNo {
    PageNo(FIRST_PAGE + place)
}

fn body(page: &[u8]) -> &[u8] {
    &page[PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + BODY_BYTES]
}

pub(super) fn write(dir: &Path, order: &Order) -> Result<Infallible, Error> {
    let work = order.work;
    let failed = Error::pagestore("write", dir);
    let vlf_bytes = (work.log_bytes / VLFS).clamp(256 << 10, VLF_BYTES_MAX) & !4_095;
    // A third of the log stays free: a store that reaches its end would write a checkpoint.
    let vlfs = (work.log_bytes * 3 / 2 / vlf_bytes + 2) as usize;
    let layout = Layout { vlf_bytes, vlfs, ..Layout::default() };
    let room = work.log_bytes * 2 + (1 << 30);
    let store = Store::create(dir, layout, Options { log_limit_bytes: room, ..Options::default() });
    let store = store.map_err(&failed)?;
    child::fill(work.data_pages, |pages| {
        let mut tx = store.write().map_err(&failed)?;
        for place in pages {
            let page = tx.allocate().map_err(&failed)?;
            assert_eq!(page, page_of(place), "pages of a new store follow each other");
        }
        tx.commit(Durability::Delayed).map(drop).map_err(&failed)
    })?;
    store.close().map_err(&failed)?;

    // From here on nothing may be written to the data file: changed pages never fill half of this cache.
    let cache_bytes = (work.pages * PAGE_BYTES * 2 + (64 << 20)) as usize;
    let options =
        Options { cache_bytes, log_limit_bytes: room, checkpoint_bytes: u64::MAX, ..Options::default() };
    let store = Store::open(dir, options).map_err(&failed)?;
    let mut commits = 0;
    loop {
        let mut tx = store.write().map_err(&failed)?;
        for write in Order::writes(commits) {
            let page = tx.page_mut(page_of(order.place(write))).map_err(&failed)?;
            order.fill(write, &mut page[PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + BODY_BYTES]);
        }
        tx.commit(Durability::Full).map_err(&failed)?;
        commits += 1;
        let stats = store.stats();
        if stats.checkpoints > 0 {
            let why = "wrote a checkpoint although it was configured not to".into();
            return Err(Error::Writer { engine: Engine::Pagestore.name(), why });
        }
        child::report_commits(commits, stats.log_write_bytes)?;
    }
}

fn options(strategy: Strategy, run: &Context) -> Options {
    let recovery = match strategy {
        Strategy::Instant | Strategy::Own => Recovery::Instant,
        Strategy::Wide | Strategy::Mapped => Recovery::Wide,
        Strategy::Prefetch => Recovery::Prefetch,
        Strategy::Serial => Recovery::Serial,
    };
    let apply = if strategy == Strategy::Mapped { Apply::Mapped } else { Apply::Direct };
    // The log may grow while pages are still to be written.
    let log_limit_bytes = run.order.work.log_bytes * 3 + (1 << 30);
    Options { recovery, apply, parallel: run.plan.parallel, log_limit_bytes, ..Options::default() }
}

struct Opened<'a> {
    store: Store,
    disk: Arc<Stoppable>,
    pages_left: u64,
    crash: &'a Crash,
    run: &'a Context<'a>,
    dir: &'a Path,
}

impl Served for Opened<'_> {
    fn read(&mut self, place: u64) -> Result<Vec<u8>, Error> {
        let page = self.store.read().and_then(|tx| tx.page(page_of(place)));
        Ok(body(&page.map_err(failed(self.dir))?).to_vec())
    }

    fn write(&mut self, place: u64, body: &[u8]) -> Result<(), Error> {
        self.pages_left = pages_left(&self.store, self.crash, self.run);
        let change = || {
            let mut tx = self.store.write()?;
            let page = tx.page_mut(page_of(place))?;
            page[PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + BODY_BYTES].copy_from_slice(body);
            tx.commit(Durability::Full).map(drop)
        };
        change().map_err(failed(self.dir))
    }

    fn settle(&mut self) -> Result<(), Error> {
        wait_until_written(&self.store, self.run).map_err(failed(self.dir))
    }

    fn counted(&mut self) -> Result<Counted, Error> {
        let counters = self.store.file_statistics().map(|file| file.counters);
        let n_max = Figure::Known(self.disk.in_flight_max());
        Ok(Counted {
            pages: Figure::Known(self.run.order.pages_written(self.crash)),
            pages_left: Figure::Known(self.pages_left),
            io: RecoveryIo { n_max, ..RecoveryIo::from_counters(counters) },
            counted_by: "the page store",
            notes: Vec::new(),
        })
    }

    fn end(self) -> Result<(), Error> {
        self.store.close().map_err(failed(self.dir))
    }
}

fn failed(dir: &Path) -> impl Fn(pagestore::Error) -> Error {
    Error::pagestore("recover", dir)
}

pub(super) fn recover(
    dir: &Path,
    strategy: Strategy,
    crash: &Crash,
    run: &Context,
) -> Result<Recovered, Error> {
    let options = options(strategy, run);
    time_recovery(crash, run, wrong(Engine::Pagestore, strategy), || {
        let files = pagestore::disk::open_directory(dir).map_err(failed(dir))?;
        let disk = Arc::new(Stoppable::new(files, run.stop));
        let store = Store::open_on_with(disk.clone(), options, |progress| run.set_progress(Some(progress)))
            .map_err(failed(dir))?;
        Ok(Opened { store, disk, pages_left: 0, crash, run, dir })
    })
}

/// Pages that recovery has still to write.
fn pages_left(store: &Store, crash: &Crash, run: &Context) -> u64 {
    if store.recovery_pages_left() == 0 {
        return 0;
    }
    // The store may count a page once for each part of the log that has it.
    let [_, data, _] = store.file_statistics();
    let pages = store.recovery_report().pages.min(run.order.pages_written(crash));
    pages.saturating_sub(data.counters.write.bytes / PAGE_BYTES)
}

/// Waits for the checkpoint that ends the recovery: then all pages are written and the log is free.
fn wait_until_written(store: &Store, run: &Context) -> Result<(), pagestore::Error> {
    let mut checked = Instant::now();
    // Without pages to recover no checkpoint follows.
    let pages = store.recovery_report().pages;
    while pages > 0 && store.stats().checkpoints == 0 {
        run.set_progress(store.recovery_progress());
        thread::sleep(POLL_INTERVAL);
        if checked.elapsed() >= CHECK_INTERVAL {
            // A store whose writes failed refuses further transactions with the reason.
            store.write()?;
            checked = Instant::now();
        }
    }
    Ok(())
}
