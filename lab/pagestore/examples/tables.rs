//! The operations on a table of rows with random keys of 24 bytes and values of 150, all pages in the cache.
//!
//! ```text
//! tables DIR ROWS [ROUNDS]     prints each operation's rate, the median of ROUNDS (default 3), and what removals log
//! ```

use pagestore::{Durability, Layout, Options, Result, Store, Table, Tables, WriteTx};
use std::ops::Bound;
use std::path::Path;
use std::time::Instant;
use stream::random::{RngCore, seeded};

type Key = [u8; 24];

const NAMES: [&str; 7] =
    ["random reads", "the same, 2 threads", "range reads of 10", "removals", "retain", "extract_if", "pop"];

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (directory, rows, rounds) = match &words[..] {
        [directory, rows] => (directory, rows.parse()?, 3),
        [directory, rows, rounds] => (directory, rows.parse()?, rounds.parse()?),
        _ => return Err("usage: tables DIR ROWS [ROUNDS]".into()),
    };
    let place = Path::new(directory).join("tables");
    let mut rates = vec![Vec::new(); NAMES.len()];
    for _ in 0..rounds {
        let options =
            Options { cache_bytes: 4 << 30, log_limit_bytes: 16 << 30, publish: false, ..Options::default() };
        let store = Store::create(&place, Layout::default(), options)?;
        let measured = measure(&store, rows)?;
        rates.iter_mut().zip(measured).for_each(|(all, rate)| all.push(rate));
        drop(store);
        std::fs::remove_dir_all(&place)?;
    }
    for (name, mut rates) in NAMES.into_iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        println!("{name:20} {:9.0} /s", rates[rates.len() / 2]);
    }
    Ok(())
}

fn measure(store: &Store, rows: u64) -> Result<[f64; NAMES.len()]> {
    let table = store.transact(Durability::Full, |tx| tx.create_table("rows"))?;
    let keys: Vec<Key> = {
        let mut random = seeded(3);
        let key = |_| {
            let mut key = [0; 24];
            random.fill_bytes(&mut key);
            key
        };
        (0..rows).map(key).collect()
    };
    store.transact(Durability::Full, |tx| {
        keys.iter().try_for_each(|key| tx.put(table, key, &[key[0]; 150]))
    })?;
    store.checkpoint()?;
    let (one, two) = (read(store, table, &keys, 1)?, read(store, table, &keys, 2)?);
    let ranges = scan(store, table, &keys)?;
    let every_other = || {
        let mut seen = 0_u64;
        move |_: &[u8], _: &[u8]| {
            seen += 1;
            seen.is_multiple_of(2)
        }
    };
    let removals = change(store, "removals", |tx| {
        let keys = &keys[..keys.len() / 2];
        keys.iter().try_fold(0, |all, key| Ok(all + u64::from(tx.delete(table, key)?)))
    })?;
    let retain = change(store, "retain", |tx| tx.retain(table, every_other()))?;
    let extract_if = change(store, "extract_if", |tx| {
        let bounds = (Bound::Included(&[0x55][..]), Bound::Excluded(&[0xaa][..]));
        let mut extracted = tx.extract_if(table, bounds, every_other())?;
        let mut removed = 0;
        while extracted.next_entry()?.is_some() {
            removed += 1;
        }
        Ok(removed)
    })?;
    let pop = change(store, "pop", |tx| {
        let mut removed = 0;
        while removed < rows / 10 && tx.pop_first(table)?.is_some() && tx.pop_last(table)?.is_some() {
            removed += 2;
        }
        Ok(removed)
    })?;
    Ok([one, two, ranges, removals, retain, extract_if, pop])
}

/// Reads every key once in each thread.
fn read(store: &Store, table: Table, keys: &[Key], threads: usize) -> Result<f64> {
    let begun = Instant::now();
    let one = || -> Result<()> {
        let reader = store.read()?;
        for key in keys {
            let value = reader.get_ref(table, key)?.expect("it was put there");
            assert_eq!(value[0], key[0]);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        all.into_iter().try_for_each(|one| one.join().expect("no thread panics"))
    })?;
    Ok((keys.len() * threads) as f64 / begun.elapsed().as_secs_f64())
}

fn scan(store: &Store, table: Table, keys: &[Key]) -> Result<f64> {
    let reader = store.read()?;
    let begun = Instant::now();
    for key in keys {
        let mut range = reader.range(table, key, None)?;
        for _ in 0..10 {
            let Some((found, value)) = range.next_entry()? else { break };
            assert_eq!(value[0], found[0]);
        }
    }
    Ok(keys.len() as f64 / begun.elapsed().as_secs_f64())
}

/// Removals a second of one transaction, its commit included.
fn change(store: &Store, name: &str, removing: impl FnOnce(&mut WriteTx<'_>) -> Result<u64>) -> Result<f64> {
    let (begun, before) = (Instant::now(), store.stats());
    let mut tx = store.write()?;
    let removed = removing(&mut tx)?;
    tx.commit(Durability::Full)?;
    let rate = removed as f64 / begun.elapsed().as_secs_f64();
    let logged = store.stats().log_write_bytes - before.log_write_bytes;
    println!("{name:20} {removed:9} removed, {:.1} MiB of log", logged as f64 / f64::from(1 << 20));
    Ok(rate)
}
