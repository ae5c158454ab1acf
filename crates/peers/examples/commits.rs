//! What commits cost with engines of others: `commits DIR redb|lmdb|rocksdb one|many|bulk [ROWS]`, a line of JSON as
//! `commits` of the page store prints it. `scripts/bench pagestore` runs it beside that. Ends with 4 where the engine is not
//! on this machine.

use experiments::Durability::Full;
use peers::{Engine, Error, Peer, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

const THREADS: usize = 64;
const ROW_BYTES: usize = 200;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: commits DIR redb|lmdb|rocksdb one|many|bulk [ROWS]";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, engine, what, rest @ ..] = &arguments[..] else { return Err(usage.into()) };
    let engine = Engine::ALL.into_iter().find(|known| known.name() == engine).ok_or(usage)?;
    let rows: u32 = rest.first().map_or(Ok(15_000), |text| text.parse())?;
    let place = Path::new(directory).join(format!("commits-{}-{}", engine.name(), std::process::id()));
    std::fs::create_dir(&place)?;
    let peer = match engine.open(&place) {
        Err(error @ Error::NotInstalled { .. }) => {
            eprintln!("{error} ({})", error.remedy().unwrap_or_default());
            std::fs::remove_dir_all(&place)?;
            std::process::exit(4);
        }
        opened => opened?,
    };
    // The first commit makes what is made once.
    peer.commit(Full, &mut |batch| batch.put(b"first", b""))?;
    let begun = Instant::now();
    match what.as_str() {
        "one" => (0..rows).try_for_each(|row| put(peer.as_ref(), row..row + 1)),
        "many" => many(peer.as_ref(), rows),
        "bulk" => put(peer.as_ref(), 0..rows),
        _ => return Err(usage.into()),
    }?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{{\"what\": \"{} {what}\", \"rows\": {rows}, \"seconds\": {seconds:.6}}}", engine.name());
    drop(peer);
    std::fs::remove_dir_all(&place)?;
    Ok(())
}

/// In one transaction.
fn put(peer: &dyn Peer, rows: std::ops::Range<u32>) -> Result<()> {
    peer.commit(Full, &mut |batch| {
        rows.clone().try_for_each(|row| batch.put(&row.to_be_bytes(), &[row as u8; ROW_BYTES]))
    })
}

/// Each row its own transaction, by threads that take the next one.
fn many(peer: &dyn Peer, rows: u32) -> Result<()> {
    let next = AtomicU32::new(0);
    let commit = || {
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                row if row < rows => put(peer, row..row + 1)?,
                _ => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(commit)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })
}
