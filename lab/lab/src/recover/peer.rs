//! Embedded engines of others: redb, LMDB, RocksDB.

use super::process_io::ProcessIo;
use super::victim::{Counted, Recovered, Served, time_recovery, wrong};
use super::work::{BATCH, BODY_BYTES, Crash, Order, PAGE_BYTES};
use super::{Context, Strategy, child};
use crate::Error;
use experiments::Durability;
use filestats::{Figure, Reason};
use peers::{Engine, Peer};
use std::convert::Infallible;
use std::fs;
use std::path::Path;

/// Keys sort as places do.
fn key(place: u64) -> [u8; 8] {
    place.to_be_bytes()
}

pub(super) fn log_bytes(engine: Engine, dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let logs = files.filter(|entry| engine.is_log(&entry.path()));
    logs.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

pub(super) fn write(engine: Engine, dir: &Path, order: &Order) -> Result<Infallible, Error> {
    let peer = engine.open(dir)?;
    let zeros = vec![0; BODY_BYTES];
    child::fill(order.work.data_pages, |mut pages| {
        Ok(peer.commit(Durability::Delayed, &mut |rows| {
            pages.try_for_each(|place| rows.put(&key(place), &zeros))
        })?)
    })?;
    peer.settle()?;
    peer.in_place()?;
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
        child::report_commits(commits, commits * BATCH * PAGE_BYTES)?;
    }
}

struct Opened<'a> {
    peer: Box<dyn Peer>,
    engine: Engine,
    own_io: ProcessIo,
    dir: &'a Path,
}

impl Served for Opened<'_> {
    fn read(&mut self, place: u64) -> Result<Vec<u8>, Error> {
        Ok(self.peer.get(&key(place))?.unwrap_or_default())
    }

    fn write(&mut self, place: u64, body: &[u8]) -> Result<(), Error> {
        Ok(self.peer.commit(Durability::Full, &mut |rows| rows.put(&key(place), body))?)
    }

    fn settle(&mut self) -> Result<(), Error> {
        Ok(self.peer.in_place()?)
    }

    fn counted(&mut self) -> Result<Counted, Error> {
        let pages = match self.engine.has_log() {
            // The engine moves log content to its files at any time, and does not report what is left to redo.
            true => Figure::unknown(Reason::NotCounted),
            false => Figure::Known(0),
        };
        Ok(Counted { pages, pages_left: pages, ..self.own_io.below(self.dir)? })
    }
}

pub(super) fn recover(engine: Engine, dir: &Path, crash: &Crash, run: &Context) -> Result<Recovered, Error> {
    let own_io = ProcessIo::open();
    let wrong = wrong(super::Engine::Embedded(engine), Strategy::Own);
    time_recovery(crash, run, wrong, || Ok(Opened { peer: engine.open(dir)?, engine, own_io, dir }))
}
