//! What commits cost: `commits DIR floor|one|many|bulk [ROWS]`, a line of JSON. `scripts/bench pagestore` runs it beside
//! SQLite.
//!
//! ```text
//! floor   one 4 KiB write through to the medium for each row, on space written with zeros: what a commit costs at least
//! one     one thread, each row its own commit, full durability
//! many    64 threads, each row its own commit, full durability
//! bulk    all rows in one transaction
//! ```

use pagestore::{Durability, Layout, Options, Stats, Store, Table};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

const THREADS: usize = 64;
const ROW_BYTES: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, what, rest @ ..] = &arguments[..] else {
        return Err("usage: commits DIR floor|one|many|bulk [ROWS]".into());
    };
    let rows = rest.first().map_or(Ok(15_000), |text| text.parse())?;
    let place = Path::new(directory).join(format!("commits-{}", std::process::id()));
    let measured = match what.as_str() {
        "floor" => floor(&place, rows).map(|seconds| (seconds, None))?,
        "one" => measure(&place, |store, table| one(store, table, rows))?,
        "many" => measure(&place, |store, table| many(store, table, rows))?,
        "bulk" => measure(&place, |store, table| bulk(store, table, rows))?,
        other => return Err(format!("there is no measurement '{other}'").into()),
    };
    let (seconds, stats) = measured;
    print!("{{\"what\": \"{what}\", \"rows\": {rows}, \"seconds\": {seconds:.6}");
    if let Some(stats) = stats {
        print!(", \"log_writes\": {}, \"log_write_bytes\": {}", stats.log_writes, stats.log_write_bytes);
    }
    println!("}}");
    if place.is_dir() {
        std::fs::remove_dir_all(&place)?;
    } else {
        std::fs::remove_file(&place)?;
    }
    Ok(())
}

fn floor(place: &Path, rows: u32) -> io::Result<f64> {
    let zeros = vec![0; 1 << 20];
    let bytes = u64::from(rows) * 4096;
    let file = OpenOptions::new().create_new(true).write(true).open(place)?;
    for at in (0..bytes).step_by(zeros.len()) {
        file.write_all_at(&zeros, at)?;
    }
    file.sync_all()?;
    let file = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT | libc::O_DSYNC).open(place)?;
    let memory = vec![7; 8192];
    let block = &memory[memory.as_ptr().align_offset(4096)..][..4096];
    let begun = Instant::now();
    for row in 0..u64::from(rows) {
        file.write_all_at(block, row * 4096)?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

fn measure(
    place: &Path,
    work: impl FnOnce(&Store, Table) -> pagestore::Result<()>,
) -> pagestore::Result<(f64, Option<Stats>)> {
    let layout = Layout { vlf_bytes: 64 << 20, ..Layout::default() };
    let store = Store::create(place, layout, Options::default())?;
    let mut tx = store.write()?;
    let table = tx.create_table("rows")?;
    tx.commit(Durability::Full)?;
    let before = store.stats();
    let begun = Instant::now();
    work(&store, table)?;
    let seconds = begun.elapsed().as_secs_f64();
    let mut stats = store.stats();
    stats.log_writes -= before.log_writes;
    stats.log_write_bytes -= before.log_write_bytes;
    Ok((seconds, Some(stats)))
}

fn put(tx: &mut pagestore::WriteTx<'_>, table: Table, row: u32) -> pagestore::Result<()> {
    tx.put(table, &row.to_be_bytes(), &[row as u8; ROW_BYTES])
}

fn one(store: &Store, table: Table, rows: u32) -> pagestore::Result<()> {
    for row in 0..rows {
        let mut tx = store.write()?;
        put(&mut tx, table, row)?;
        tx.commit(Durability::Full)?;
    }
    Ok(())
}

fn many(store: &Store, table: Table, rows: u32) -> pagestore::Result<()> {
    let next = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let row = next.fetch_add(1, Ordering::Relaxed);
                        if row >= rows {
                            return Ok(());
                        }
                        let mut tx = store.write()?;
                        put(&mut tx, table, row)?;
                        tx.commit(Durability::Full)?;
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a thread that commits does not panic"))
    })
}

fn bulk(store: &Store, table: Table, rows: u32) -> pagestore::Result<()> {
    let mut tx = store.write()?;
    for row in 0..rows {
        put(&mut tx, table, row)?;
    }
    tx.commit(Durability::Full)?;
    Ok(())
}
