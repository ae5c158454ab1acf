//! The page store of this program.

use super::child::Reporter;
use super::files::Files;
use super::stoppable::Stoppable;
use super::victim::{Recovered, wrong};
use super::work::{BODY_BYTES, Crash, Order};
use super::{Context, Engine, Strategy};
use crate::Error;
use experiments::RecoveryIo;
use filestats::Figure;
use pagestore::{Apply, Durability, Layout, Options, PAGE_HEADER_BYTES, PageNo, Pages, Recovery, Store};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const PAGE_BYTES: u64 = 4_096;

pub(super) const FILES: Files = Files {
    write,
    recover,
    strategies: &Strategy::ALL,
    page_bytes: PAGE_BYTES,
    data_times: 1,
    log_bytes: None,
};

/// A new store has two internal pages.
const FIRST_PAGE: u64 = 2;
/// Pages that one transaction adds when the data file is created.
const FILL: u64 = 4_096;
/// The longest virtual log file, and the fewest in the log: serial recovery syncs after each.
const VLF_BYTES_MAX: u64 = 16 << 20;
const VLFS: u64 = 16;
/// How often it polls whether all pages are written.
const POLL_INTERVAL: Duration = Duration::from_micros(500);
/// How often it checks that the store can still write.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

fn failed(doing: &'static str, dir: &Path) -> impl Fn(pagestore::Error) -> Error {
    move |source| Error::Pagestore { doing, path: dir.into(), source }
}

fn page_of(place: u64) -> PageNo {
    PageNo(FIRST_PAGE + place)
}

fn body(page: &[u8]) -> &[u8] {
    &page[PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + BODY_BYTES]
}

fn write(dir: &Path, order: &Order, reporter: &mut Reporter) -> Result<Infallible, Error> {
    let work = order.work;
    let failed = failed("write", dir);
    let vlf_bytes = (work.log_bytes / VLFS).clamp(256 << 10, VLF_BYTES_MAX) & !4_095;
    // A third of the log stays free: a store that reaches its end would write a checkpoint.
    let vlfs = (work.log_bytes * 3 / 2 / vlf_bytes + 2) as usize;
    let layout = Layout { vlf_bytes, vlfs, ..Layout::default() };
    let room = work.log_bytes * 2 + (1 << 30);
    let store = Store::create(dir, layout, Options { log_limit_bytes: room, ..Options::default() });
    let store = store.map_err(&failed)?;
    let mut done = 0;
    while done < work.data_pages {
        let mut tx = store.write().map_err(&failed)?;
        let end = (done + FILL).min(work.data_pages);
        for place in done..end {
            let page = tx.allocate().map_err(&failed)?;
            assert_eq!(page, page_of(place), "pages of a new store follow each other");
        }
        tx.commit(Durability::Delayed).map_err(&failed)?;
        done = end;
        reporter.made(done, work.data_pages)?;
    }
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
            let why = "wrote a checkpoint although it was told not to".into();
            return Err(Error::Writer { engine: Engine::Pagestore.name(), why });
        }
        reporter.committed(commits, stats.log_write_bytes)?;
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

fn recover(dir: &Path, strategy: Strategy, crash: &Crash, run: &Context) -> Result<Recovered, Error> {
    let failed = failed("recover", dir);
    let options = options(strategy, run);
    let [first, second] = run.order.first_pages(crash);

    let began = Instant::now();
    let files = pagestore::disk::open_directory(dir).map_err(&failed)?;
    let disk = Arc::new(Stoppable::new(files, run.stop));
    let store = Store::open_on_with(disk.clone(), options, |progress| run.set_progress(Some(progress)))
        .map_err(&failed)?;
    let opened = began.elapsed();
    let page = store.read().and_then(|tx| tx.page(page_of(first.place))).map_err(&failed)?;
    let first_read = began.elapsed();
    let pages_left = pages_left(&store, crash, run);
    let mut tx = store.write().map_err(&failed)?;
    let changed = tx.page_mut(page_of(second.place)).map_err(&failed)?;
    changed[PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + BODY_BYTES]
        .copy_from_slice(&run.order.page_after_recovery());
    tx.commit(Durability::Full).map_err(&failed)?;
    let first_write = began.elapsed();
    wait_until_written(&store, run).map_err(&failed)?;
    let full = began.elapsed();
    let counters = store.file_statistics().map(|file| file.counters);
    let io = RecoveryIo { n_max: Figure::Known(disk.in_flight_max()), ..RecoveryIo::from_counters(counters) };

    let snapshot = store.read().map_err(&failed)?;
    let compared = run.order.compare(
        crash,
        body(&page),
        |probe| Ok(body(&snapshot.page(page_of(probe.place)).map_err(&failed)?).to_vec()),
        wrong(Engine::Pagestore, strategy),
    )?;
    drop(snapshot);
    store.close().map_err(&failed)?;
    Ok(Recovered {
        opened,
        first_read,
        first_write,
        full,
        pages: Figure::Known(run.order.pages_written(crash)),
        pages_left: Figure::Known(pages_left),
        compared,
        io,
        counted_by: "the page store".into(),
        notes: Vec::new(),
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
