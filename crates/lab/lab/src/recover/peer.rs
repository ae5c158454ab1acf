//! Embedded engines of others: redb, LMDB, RocksDB.

use super::child::Reporter;
use super::files::{Files, Recover, Write};
use super::process_io::ProcessIo;
use super::victim::{Recovered, wrong};
use super::work::{BATCH, BODY_BYTES, Crash, Order, Probe};
use super::{Context, Strategy};
use crate::Error;
use experiments::Durability;
use filestats::{Figure, Reason};
use peers::{Engine, Peer};
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::time::Instant;

pub(super) const REDB: Files = files(
    |dir, order, reporter| write(Engine::Redb, dir, order, reporter),
    |dir, _, crash, run| recover(super::Engine::Redb, Engine::Redb, dir, crash, run),
    |dir| log_bytes(Engine::Redb, dir),
);

pub(super) const LMDB: Files = files(
    |dir, order, reporter| write(Engine::Lmdb, dir, order, reporter),
    |dir, _, crash, run| recover(super::Engine::Lmdb, Engine::Lmdb, dir, crash, run),
    |dir| log_bytes(Engine::Lmdb, dir),
);

pub(super) const ROCKSDB: Files = files(
    |dir, order, reporter| write(Engine::Rocksdb, dir, order, reporter),
    |dir, _, crash, run| recover(super::Engine::Rocksdb, Engine::Rocksdb, dir, crash, run),
    |dir| log_bytes(Engine::Rocksdb, dir),
);

const PAGE_BYTES: u64 = 4_096;

const fn files(write: Write, recover: Recover, log_bytes: fn(&Path) -> u64) -> Files {
    // Copies of changed pages, and files that are merged into new ones, take space beside the data.
    Files {
        write,
        recover,
        strategies: &[Strategy::Own],
        page_bytes: PAGE_BYTES,
        data_times: 3,
        log_bytes: Some(log_bytes),
    }
}

/// Rows that one transaction adds when the data is created.
const FILL: u64 = 4_096;

/// Keys sort as places do.
fn key(place: u64) -> [u8; 8] {
    place.to_be_bytes()
}

fn log_bytes(engine: Engine, dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let logs = files.filter(|entry| engine.is_log(&entry.path()));
    logs.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

fn write(engine: Engine, dir: &Path, order: &Order, reporter: &mut Reporter) -> Result<Infallible, Error> {
    let peer = engine.open(dir)?;
    fill(peer.as_ref(), order.work.data_pages, reporter)?;
    let mut body = vec![0; BODY_BYTES];
    let mut commits = 0;
    loop {
        peer.commit(Durability::Full, &mut |rows| {
            Order::writes(commits).try_for_each(|write| {
                order.fill(write, &mut body);
                rows.put(&key(order.place(write)), &body)
            })
        })?;
        commits += 1;
        // An engine without a log, or one that empties it at any time, is killed after that many bytes of pages.
        reporter.committed(commits, commits * BATCH * PAGE_BYTES)?;
    }
}

fn fill(peer: &dyn Peer, pages: u64, reporter: &mut Reporter) -> Result<(), Error> {
    let zeros = vec![0; BODY_BYTES];
    let mut done = 0;
    while done < pages {
        let end = (done + FILL).min(pages);
        peer.commit(Durability::Delayed, &mut |rows| {
            (done..end).try_for_each(|place| rows.put(&key(place), &zeros))
        })?;
        done = end;
        reporter.made(done, pages)?;
    }
    peer.settle()?;
    Ok(peer.in_place()?)
}

fn recover(
    name: super::Engine,
    engine: Engine,
    dir: &Path,
    crash: &Crash,
    run: &Context,
) -> Result<Recovered, Error> {
    let wrong = wrong(name, Strategy::Own);
    let [first, second] = run.order.first_pages(crash);
    let body = run.order.page_after_recovery();
    let mut own_io = ProcessIo::open();

    let began = Instant::now();
    let peer = engine.open(dir)?;
    let opened = began.elapsed();
    let read =
        |probe: Probe| -> Result<Vec<u8>, Error> { Ok(peer.get(&key(probe.place))?.unwrap_or_default()) };
    let found = read(first)?;
    let first_read = began.elapsed();
    peer.commit(Durability::Full, &mut |rows| rows.put(&key(second.place), &body))?;
    let first_write = began.elapsed();
    peer.in_place()?;
    let full = began.elapsed();
    let (io, counted_by, notes) = own_io.below(dir)?;

    let compared = run.order.compare(crash, &found, read, wrong)?;
    // The engine moves log content to its files at any time, and does not report what is left to redo.
    let pages = match engine.has_log() {
        true => Figure::unknown(Reason::NotCounted),
        false => Figure::Known(0),
    };
    Ok(Recovered {
        opened,
        first_read,
        first_write,
        full,
        pages,
        pages_left: pages,
        compared,
        io,
        counted_by,
        notes,
    })
}
