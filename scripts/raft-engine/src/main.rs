//! Commits of raft-engine: `commits-raft-engine DIR one|many [ROWS]`, a line of JSON as `commits` of the page store
//! prints it. Each row is a batch of one key with 200 bytes, written with a sync; `many`: by 64 threads, each with a
//! region of its own, as its users have it.

use raft_engine::{Config, Engine, LogBatch};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

const THREADS: u64 = 64;
const ROW_BYTES: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, what, rest @ ..] = &arguments[..] else {
        return Err("usage: commits-raft-engine DIR one|many [ROWS]".into());
    };
    let threads = match what.as_str() {
        "one" => 1,
        "many" => THREADS,
        other => return Err(format!("there is no measurement '{other}'").into()),
    };
    let rows: u32 = rest.first().map_or(Ok(15_000), |text| text.parse())?;
    let place = format!("{directory}/raft-engine-{}", std::process::id());
    let engine = Engine::open(Config { dir: place.clone(), ..Config::default() })?;
    let next = AtomicU32::new(0);
    let commit = |region: u64| -> raft_engine::Result<()> {
        loop {
            let row = next.fetch_add(1, Ordering::Relaxed);
            if row >= rows {
                return Ok(());
            }
            let mut batch = LogBatch::default();
            batch.put(region, row.to_be_bytes().to_vec(), vec![row as u8; ROW_BYTES])?;
            engine.write(&mut batch, true)?;
        }
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=threads).map(|region| scope.spawn(move || commit(region))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{{\"what\": \"raft-engine {what}\", \"rows\": {rows}, \"seconds\": {seconds:.6}}}");
    drop(engine);
    std::fs::remove_dir_all(&place)?;
    Ok(())
}
