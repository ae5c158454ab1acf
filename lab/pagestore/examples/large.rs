//! One transaction of many rows with random keys of 24 bytes and values of 150, with caches that hold all of its pages and
//! a part of them.
//!
//! ```text
//! large DIR ROWS [PART...]     prints for each cache ("all", "1", "1/2", "1/4", "1/16") the seconds of the puts and of the commit
//! ```

use pagestore::{Durability, Layout, Options, Result, Store, Tables};
use std::path::Path;
use std::time::Instant;
use stream::random::{RngCore, seeded};

/// A random tree's pages are two thirds full; with key and value come a cell's header and a slot.
const ROW_BYTES: u64 = (24 + 150 + 10) * 3 / 2;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, rows, parts @ ..] = &words[..] else {
        return Err("usage: large DIR ROWS [PART...]".into());
    };
    let rows = rows.parse()?;
    let all_bytes = rows * ROW_BYTES;
    println!("{rows} rows, about {} MiB of pages", all_bytes >> 20);
    let mut first = None;
    for (part, cache_bytes) in [
        ("all", all_bytes * 5),
        ("1", all_bytes),
        ("1/2", all_bytes / 2),
        ("1/4", all_bytes / 4),
        ("1/16", all_bytes / 16),
    ] {
        if !parts.is_empty() && !parts.iter().any(|chosen| chosen == part) {
            continue;
        }
        let place = Path::new(directory).join("large");
        let seconds = load(&place, rows, cache_bytes as usize)?;
        std::fs::remove_dir_all(&place)?;
        let whole = seconds.0 + seconds.1;
        let times = whole / *first.get_or_insert(whole);
        let (cache_mib, puts, commit) = (cache_bytes >> 20, seconds.0, seconds.1);
        println!(
            "cache {part:4} {cache_mib:5} MiB: puts {puts:6.2} s, commit {commit:5.2} s, {times:.2} x the first"
        );
    }
    Ok(())
}

fn load(place: &Path, rows: u64, cache_bytes: usize) -> Result<(f64, f64)> {
    let options = Options { cache_bytes, log_limit_bytes: 16 << 30, publish: false, ..Options::default() };
    let store = Store::create(place, Layout::default(), options)?;
    let table = store.transact(Durability::Full, |tx| tx.create_table("rows"))?;
    let mut random = seeded(3);
    let begun = Instant::now();
    let mut tx = store.write()?;
    let (mut key, mut value) = ([0; 24], [0; 150]);
    for _ in 0..rows {
        random.fill_bytes(&mut key);
        random.fill_bytes(&mut value);
        tx.put(table, &key, &value)?;
    }
    let puts = begun.elapsed().as_secs_f64();
    tx.commit(Durability::Full)?;
    let commit = begun.elapsed().as_secs_f64() - puts;
    assert_eq!(store.read()?.len(table)?, rows, "random keys of 24 bytes are all different");
    Ok((puts, commit))
}
