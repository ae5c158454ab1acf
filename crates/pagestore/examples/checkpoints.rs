//! What a checkpoint costs those who commit: `checkpoints DIR [SECONDS [TARGET_MS]]`, a line of JSON for each of
//!
//! ```text
//! none      no checkpoint at all: what a commit costs
//! paced     checkpoints that begin and go as the target for recovery asks
//! at-once   checkpoints as fast as they can be written, one every second
//! ```
//! One thread commits changes of single rows all over a table of 25,000 pages, each with full durability. Then the
//! store is left as a crash would leave it, and recovered: the time is to be within the target.

use pagestore::{Durability, Layout, Options, Recovery, Store, Table};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROWS: u32 = 400_000;
const ROW_BYTES: usize = 200;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Checkpoints {
    None,
    Paced,
    AtOnce,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, rest @ ..] = &arguments[..] else {
        return Err("usage: checkpoints DIR [SECONDS [TARGET_MS]]".into());
    };
    let seconds = rest.first().map_or(Ok(6), |text| text.parse())?;
    let target = rest.get(1).map_or(Ok(2000), |text| text.parse()).map(Duration::from_millis)?;
    for (name, how) in
        [("none", Checkpoints::None), ("paced", Checkpoints::Paced), ("at-once", Checkpoints::AtOnce)]
    {
        let place = Path::new(directory).join(format!("checkpoints-{}", std::process::id()));
        let measured = measure(&place, how, Duration::from_secs(seconds), target);
        std::fs::remove_dir_all(&place)?;
        println!("{{\"checkpoints\": \"{name}\", {}}}", measured?);
    }
    Ok(())
}

fn measure(place: &Path, how: Checkpoints, lasting: Duration, target: Duration) -> pagestore::Result<String> {
    let checkpoint_bytes = if how == Checkpoints::Paced { 4 << 30 } else { u64::MAX };
    let options =
        Options { cache_bytes: 1 << 30, checkpoint_bytes, redo_target: target, ..Options::default() };
    let layout = Layout { vlfs: 16, ..Layout::default() };
    let store = Store::create(place, layout, options)?;
    let table = fill(&store)?;
    store.checkpoint()?;
    let before = store.stats();
    let ended = AtomicBool::new(false);
    let mut latencies = std::thread::scope(|scope| {
        if how == Checkpoints::AtOnce {
            scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_secs(1));
                    store.checkpoint().expect("the disk works");
                }
            });
        }
        let latencies = commits(&store, table, lasting);
        ended.store(true, Ordering::Release);
        latencies
    })?;
    latencies.sort_unstable();
    let at = |share: f64| {
        latencies[((latencies.len() as f64 * share) as usize).min(latencies.len() - 1)].as_micros()
    };
    let after = store.stats();
    let (checkpoints, written) =
        (after.checkpoints - before.checkpoints, after.page_write_bytes - before.page_write_bytes);
    let mut text = format!(
        "\"commits\": {}, \"p50_us\": {}, \"p99_us\": {}, \"p999_us\": {}, \"max_us\": {}, \
         \"ended\": {checkpoints}, \"written_mib\": {}, \"dirty_pages\": {}",
        latencies.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
        written >> 20,
        after.dirty_pages
    );
    drop(store);
    let store = Store::open(place, Options { recovery: Recovery::Wide, ..options })?;
    text.push_str(&format!(
        ", \"redo_ms\": {}, \"target_ms\": {}",
        store.recovery_report().opened.as_millis(),
        target.as_millis()
    ));
    Ok(text)
}

fn fill(store: &Store) -> pagestore::Result<Table> {
    let mut tx = store.write()?;
    let table = tx.create_table("rows")?;
    tx.commit(Durability::Full)?;
    for start in (0..ROWS).step_by(20_000) {
        let mut tx = store.write()?;
        for row in start..start + 20_000 {
            tx.put(table, &row.to_be_bytes(), &[row as u8; ROW_BYTES])?;
        }
        tx.commit(Durability::Delayed)?;
    }
    Ok(table)
}

fn commits(store: &Store, table: Table, lasting: Duration) -> pagestore::Result<Vec<Duration>> {
    let begun = Instant::now();
    let mut latencies = Vec::new();
    let mut row = 1_u32;
    while begun.elapsed() < lasting {
        row = row.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let asked = Instant::now();
        let mut tx = store.write()?;
        tx.put(table, &(row % ROWS).to_be_bytes(), &[row as u8; ROW_BYTES])?;
        tx.commit(Durability::Full)?;
        latencies.push(asked.elapsed());
    }
    Ok(latencies)
}
