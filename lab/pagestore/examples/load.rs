//! A load for `scripts/bench headroom`: as many transactions as wanted, and how many there were every second.
//!
//! ```text
//! load DIR fill ROWS                        makes a store with ROWS items of 500 bytes
//! load DIR KIND ROWS SESSIONS PER_SECOND    runs until it is killed; PER_SECOND 0: as many as possible
//! ```
//!
//! | kind | a transaction |
//! |---|---|
//! | `points`, `ranges`, `scans` | reads 1, 200 or 3,000 items from a random one on |
//! | `updates` | changes a random item |
//! | `commits`, `batches`, `load` | inserts 1 or 10 events of 100 bytes, or 200 of 400 |
//! | `mix` | a read of one item, or each tenth time a change |

use pagestore::{Durability, Layout, Options, Result, Store, Table, Tables};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stream::random::{Random, below, exponential, seeded};

const ITEM_BYTES: usize = 500;
/// Items of one transaction while the store is filled.
const ITEMS_AT_ONCE: u32 = 10_000;
/// Every so many items one is read before the load begins, so that the inner pages of the tree are in memory: fewer items than
/// one of these has below it.
const WARM_UP_STRIDE: usize = 500;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [directory, "fill", rows] => fill(Path::new(directory), rows.parse()?)?,
        [directory, kind, rows, sessions, per_second] => {
            let (rows, sessions) = (rows.parse()?, sessions.parse()?);
            let kind = Transaction::from_name(kind).ok_or("there is no such kind")?;
            run(Path::new(directory), Work { kind, rows, sessions, per_second: per_second.parse()? })?;
        }
        _ => return Err("usage: load DIR fill ROWS | load DIR KIND ROWS SESSIONS PER_SECOND".into()),
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Transaction {
    Read { items: u32 },
    Update,
    Insert { events: u32, bytes: usize },
    Mix,
}

impl Transaction {
    fn from_name(name: &str) -> Option<Transaction> {
        Some(match name {
            "points" => Transaction::Read { items: 1 },
            "ranges" => Transaction::Read { items: 200 },
            "scans" => Transaction::Read { items: 3_000 },
            "updates" => Transaction::Update,
            "commits" => Transaction::Insert { events: 1, bytes: 100 },
            "batches" => Transaction::Insert { events: 10, bytes: 100 },
            "load" => Transaction::Insert { events: 200, bytes: 400 },
            "mix" => Transaction::Mix,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy)]
struct Work {
    kind: Transaction,
    rows: u32,
    sessions: u32,
    /// Transactions of all sessions together; 0: as many as possible.
    per_second: f64,
}

fn fill(directory: &Path, rows: u32) -> Result<()> {
    let store = Store::create(directory, Layout::default(), Options::default())?;
    let mut tx = store.write()?;
    let items = tx.create_table("items")?;
    tx.create_table("events")?;
    tx.commit(Durability::Full)?;
    for first in (0..rows).step_by(ITEMS_AT_ONCE as usize) {
        store.transact(Durability::Delayed, |tx| {
            (first..rows.min(first + ITEMS_AT_ONCE))
                .try_for_each(|id| tx.put(items, &id.to_be_bytes(), &[b'x'; ITEM_BYTES]))
        })?;
    }
    store.close()
}

struct Session<'a> {
    store: &'a Store,
    items: Table,
    events: Table,
    event_no: &'a AtomicU64,
    work: Work,
    random: Random,
}

impl Session<'_> {
    fn transact(&mut self) -> Result<()> {
        let id = below(&mut self.random, u64::from(self.work.rows)) as u32;
        match self.work.kind {
            Transaction::Read { items } => self.read(id, items),
            Transaction::Mix if below(&mut self.random, 10) > 0 => self.read(id, 1),
            Transaction::Update | Transaction::Mix => {
                let mut row = [b'x'; ITEM_BYTES];
                row[..4].copy_from_slice(&(below(&mut self.random, u64::MAX) as u32).to_be_bytes());
                self.store.transact(Durability::Full, |tx| tx.put(self.items, &id.to_be_bytes(), &row))
            }
            Transaction::Insert { events, bytes } => {
                let row = vec![b'x'; bytes];
                self.store.transact(Durability::Full, |tx| {
                    (0..events).try_for_each(|_| {
                        let key = self.event_no.fetch_add(1, Relaxed).to_be_bytes();
                        tx.put(self.events, &key, &row)
                    })
                })
            }
        }
    }

    fn read(&self, id: u32, items: u32) -> Result<()> {
        let end = (id + items).to_be_bytes();
        let snapshot = self.store.read()?;
        snapshot.range(self.items, &id.to_be_bytes(), Some(&end))?.try_for_each(|item| item.map(drop))
    }
}

fn run(directory: &Path, work: Work) -> Result<()> {
    let store = Store::open(directory, Options::default())?;
    let tables = store.read()?;
    let (items, events) = (tables.table("items")?, tables.table("events")?);
    for id in (0..work.rows).step_by(WARM_UP_STRIDE) {
        tables.get(items, &id.to_be_bytes())?;
    }
    drop(tables);
    // Keys that rise from one run to the next.
    let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let (event_no, done) = (AtomicU64::new(now_ns), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for no in 0..work.sessions {
            let (store, event_no, done) = (&store, &event_no, &done);
            scope.spawn(move || {
                let random = seeded(now_ns + u64::from(no));
                let mut session = Session { store, items, events, event_no, work, random };
                let mut due = Instant::now();
                loop {
                    if work.per_second > 0.0 {
                        let pause_s =
                            exponential(&mut session.random) * f64::from(work.sessions) / work.per_second;
                        due += Duration::from_secs_f64(pause_s);
                        std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    }
                    if let Err(error) = session.transact() {
                        eprintln!("error: {error}");
                        std::process::exit(1);
                    }
                    done.fetch_add(1, Relaxed);
                }
            });
        }
        let (mut last, mut last_done) = (Instant::now(), 0);
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let (now, all) = (Instant::now(), done.load(Relaxed));
            println!("tps: {:.2}", (all - last_done) as f64 / (now - last).as_secs_f64());
            (last, last_done) = (now, all);
        }
    })
}
