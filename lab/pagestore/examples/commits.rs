//! The cost of commits: `commits DIR floor|one|pair|many|bulk [ROWS] [THREADS] [never|always]` prints a line of
//! JSON. `scripts/bench pagestore` alternates it with other engines. The last argument is the option `keep_awake`
//! (default: `auto`).
//!
//! ```text
//! floor   one 4 KiB write through to the medium for each row, on space filled with zeros: the least that a commit costs
//! one     one thread, each row its own commit, full durability
//! pair    floor and one, alternating after every 100 rows, so that other load on the machine affects both alike
//! many    64 threads, or THREADS, each row its own commit, full durability
//! bulk    all rows in one transaction
//! ```

use pagestore::{Durability, KeepAwake, Layout, Options, Stats, Store, Table};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

const THREADS: usize = 64;
const ROW_BYTES: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (rest, keep_awake) = match &arguments[..] {
        [rest @ .., last] if last == "never" => (rest, KeepAwake::Never),
        [rest @ .., last] if last == "always" => (rest, KeepAwake::Always),
        all => (all, KeepAwake::Auto),
    };
    let [directory, what, rest @ ..] = rest else {
        return Err("usage: commits DIR floor|one|pair|many|bulk [ROWS] [THREADS] [never|always]".into());
    };
    let rows = rest.first().map_or(Ok(15_000), |text| text.parse())?;
    let threads = rest.get(1).map_or(Ok(THREADS), |text| text.parse())?;
    let options = Options { keep_awake, ..Options::default() };
    let place = Path::new(directory).join(format!("commits-{}", std::process::id()));
    if what == "pair" {
        return pair(&place, rows, options);
    }
    let measured = match what.as_str() {
        "floor" => floor(&place, rows).map(|seconds| (seconds, None))?,
        "one" => measure(&place, options, |store, table| one(store, table, 0..rows))?,
        "many" => measure(&place, options, |store, table| many(store, table, rows, threads))?,
        "bulk" => measure(&place, options, |store, table| bulk(store, table, rows))?,
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

/// A file of zeros that is written through.
struct Floor {
    file: File,
    memory: Vec<u8>,
    next: u64,
}

impl Floor {
    fn prepare(place: &Path, rows: u32) -> io::Result<Self> {
        let memory = vec![0; (1 << 20) + 4096];
        let bytes = u64::from(rows) * 4096;
        // Without the page cache, whose pages would have to be invalidated at every measured write.
        let file =
            OpenOptions::new().create_new(true).write(true).custom_flags(libc::O_DIRECT).open(place)?;
        let mut floor = Self { file, memory, next: 0 };
        for at in (0..bytes).step_by(1 << 20) {
            floor.file.write_all_at(floor.aligned(1 << 20), at)?;
        }
        floor.file.sync_all()?;
        let through = libc::O_DIRECT | libc::O_DSYNC;
        floor.file = OpenOptions::new().write(true).custom_flags(through).open(place)?;
        floor.memory.fill(7);
        Ok(floor)
    }

    fn aligned(&self, bytes: usize) -> &[u8] {
        &self.memory[self.memory.as_ptr().align_offset(4096)..][..bytes]
    }

    fn write(&mut self, rows: u32) -> io::Result<f64> {
        let begun = Instant::now();
        for _ in 0..rows {
            self.file.write_all_at(self.aligned(4096), self.next)?;
            self.next += 4096;
        }
        Ok(begun.elapsed().as_secs_f64())
    }
}

fn floor(place: &Path, rows: u32) -> io::Result<f64> {
    Floor::prepare(place, rows)?.write(rows)
}

fn pair(place: &Path, rows: u32, options: Options) -> Result<(), Box<dyn std::error::Error>> {
    const ALTERNATION_ROWS: u32 = 100;
    let raw = place.with_extension("floor");
    let mut floor = Floor::prepare(&raw, rows.next_multiple_of(ALTERNATION_ROWS))?;
    let (mut floors, mut ones) = (Vec::new(), Vec::new());
    measure(place, options, |store, table| {
        for first in (0..rows).step_by(ALTERNATION_ROWS as usize) {
            floors.push(floor.write(ALTERNATION_ROWS).expect("a file of our own can be written"));
            let begun = Instant::now();
            one(store, table, first..first + ALTERNATION_ROWS)?;
            ones.push(begun.elapsed().as_secs_f64());
        }
        Ok(())
    })?;
    std::fs::remove_file(&raw)?;
    std::fs::remove_dir_all(place)?;
    let median = |seconds: &mut Vec<f64>| {
        seconds.sort_unstable_by(f64::total_cmp);
        seconds[seconds.len() / 2] / f64::from(ALTERNATION_ROWS) * 1e6
    };
    let (floor_us, one_us) = (median(&mut floors), median(&mut ones));
    println!(
        "{{\"what\": \"pair\", \"rows\": {rows}, \"floor_us\": {floor_us:.2}, \"one_us\": {one_us:.2}, \"of_floor\": {:.3}}}",
        floor_us / one_us
    );
    Ok(())
}

fn measure(
    place: &Path,
    options: Options,
    work: impl FnOnce(&Store, Table) -> pagestore::Result<()>,
) -> pagestore::Result<(f64, Option<Stats>)> {
    let layout = Layout { vlf_bytes: 64 << 20, ..Layout::default() };
    let store = Store::create(place, layout, options)?;
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

fn one(store: &Store, table: Table, rows: std::ops::Range<u32>) -> pagestore::Result<()> {
    for row in rows {
        let mut tx = store.write()?;
        put(&mut tx, table, row)?;
        tx.commit(Durability::Full)?;
    }
    Ok(())
}

fn many(store: &Store, table: Table, rows: u32, threads: usize) -> pagestore::Result<()> {
    let next = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
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
