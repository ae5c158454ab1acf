//! Embedded engines of others: redb, LMDB, RocksDB.

use super::child::Teller;
use super::engine::{Files, Recover, Write};
use super::own_io::OwnIo;
use super::victim::{Recovered, wrong};
use super::work::{BATCH, BODY_BYTES, Crash, Look, Order};
use super::{Run, Strategy};
use crate::Error;
use experiments::Durability;
use filestats::{Figure, Reason};
use peers::{Engine, Peer};
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::time::Instant;

pub(super) const REDB: Files = files(
    |dir, order, teller| write(Engine::Redb, dir, order, teller),
    |dir, _, crash, run| recover(super::Engine::Redb, Engine::Redb, dir, crash, run),
    |dir| log_bytes(Engine::Redb, dir),
);

pub(super) const LMDB: Files = files(
    |dir, order, teller| write(Engine::Lmdb, dir, order, teller),
    |dir, _, crash, run| recover(super::Engine::Lmdb, Engine::Lmdb, dir, crash, run),
    |dir| log_bytes(Engine::Lmdb, dir),
);

pub(super) const ROCKSDB: Files = files(
    |dir, order, teller| write(Engine::Rocksdb, dir, order, teller),
    |dir, _, crash, run| recover(super::Engine::Rocksdb, Engine::Rocksdb, dir, crash, run),
    |dir| log_bytes(Engine::Rocksdb, dir),
);

const PAGE_BYTES: u64 = 4_096;

const fn files(write: Write, recover: Recover, log_bytes: fn(&Path) -> u64) -> Files {
    // Copies of what is changed, and files that are merged into new ones, take space beside the data.
    Files {
        write,
        recover,
        strategies: &[Strategy::Own],
        page_bytes: PAGE_BYTES,
        data_times: 3,
        log_bytes: Some(log_bytes),
    }
}

/// Rows that one transaction adds when the data is made.
const FILL: u64 = 4_096;

/// In the order of places.
fn key(place: u64) -> [u8; 8] {
    place.to_be_bytes()
}

fn log_bytes(engine: Engine, dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let logs = files.filter(|entry| engine.is_log(&entry.path()));
    logs.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

fn write(engine: Engine, dir: &Path, order: &Order, teller: &mut Teller) -> Result<Infallible, Error> {
    let peer = engine.open(dir)?;
    fill(peer.as_ref(), order.work.data_pages, teller)?;
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
        // Who has no log, or empties it when it likes, is killed after as many bytes of pages.
        teller.committed(commits, commits * BATCH * PAGE_BYTES)?;
    }
}

fn fill(peer: &dyn Peer, pages: u64, teller: &mut Teller) -> Result<(), Error> {
    let zeros = vec![0; BODY_BYTES];
    let mut done = 0;
    while done < pages {
        let end = (done + FILL).min(pages);
        peer.commit(Durability::Delayed, &mut |rows| {
            (done..end).try_for_each(|place| rows.put(&key(place), &zeros))
        })?;
        done = end;
        teller.made(done, pages)?;
    }
    peer.settle()?;
    Ok(peer.in_place()?)
}

fn recover(
    name: super::Engine,
    engine: Engine,
    dir: &Path,
    crash: &Crash,
    run: &Run,
) -> Result<Recovered, Error> {
    let wrong = wrong(name, Strategy::Own);
    let [first, second] = run.order.first_pages(crash);
    let body = run.order.afterwards();
    let mut own = OwnIo::counted();

    let began = Instant::now();
    let peer = engine.open(dir)?;
    let opened = began.elapsed();
    let read = |look: Look| -> Result<Vec<u8>, Error> { Ok(peer.get(&key(look.place))?.unwrap_or_default()) };
    let found = read(first)?;
    let first_read = began.elapsed();
    peer.commit(Durability::Full, &mut |rows| rows.put(&key(second.place), &body))?;
    let first_write = began.elapsed();
    peer.in_place()?;
    let full = began.elapsed();
    let (io, counted_by, notes) = own.below(dir)?;

    let compared = run.order.compare(crash, &found, read, wrong)?;
    // A log's content goes to its files whenever so much has come together: what is left to be redone is not told.
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
