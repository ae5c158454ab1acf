//! Commits of raft-engine, interleaved like those of `turns` in the crate `peers`: `commits-raft-engine DIR one|many`. Each line of
//! its input is a number of rows, its answer a line of JSON. Each row is a batch of one key with 200 bytes, written with a
//! sync; `many`: by 64 threads, each with a region of its own, as its users do.

use raft_engine::{Config, Engine, LogBatch};
use std::io::BufRead;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

const THREADS: u64 = 64;
const ROW_BYTES: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let threads = match &arguments[..] {
        [_, what] if what == "one" => 1,
        [_, what] if what == "many" => THREADS,
        _ => return Err("usage: commits-raft-engine DIR one|many".into()),
    };
    let place = format!("{}/raft-engine-{threads}-{}", arguments[0], std::process::id());
    let engine = Engine::open(Config { dir: place.clone(), ..Config::default() })?;
    let next = AtomicU32::new(0);
    let mut end = 0;
    for line in std::io::stdin().lock().lines() {
        let rows: u32 = line?.trim().parse()?;
        end += rows;
        next.store(end - rows, Ordering::Relaxed);
        let commit = |region: u64| -> raft_engine::Result<()> {
            loop {
                let row = next.fetch_add(1, Ordering::Relaxed);
                if row >= end {
                    return Ok(());
                }
                let mut batch = LogBatch::default();
                batch.put(region, row.to_be_bytes().to_vec(), vec![row as u8; ROW_BYTES])?;
                engine.write(&mut batch, true)?;
            }
        };
        let begun = Instant::now();
        if threads == 1 {
            commit(1)?;
        } else {
            std::thread::scope(|scope| {
                let commit = &commit;
                let threads: Vec<_> =
                    (1..=threads).map(|region| scope.spawn(move || commit(region))).collect();
                threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
            })?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        println!("{{\"rows\": {rows}, \"seconds\": {seconds:.6}, \"log_writes\": null}}");
    }
    drop(engine);
    std::fs::remove_dir_all(&place)?;
    Ok(())
}
