//! The cost of checkpoints for commits: `checkpoints DIR [SECONDS [ROUNDS]]` prints a line of JSON for each of
//!
//! ```text
//! none      no checkpoint at all: the plain cost of a commit
//! 2000      checkpoints paced by a target for recovery of 2 s, the default
//! 500       the same with 0.5 s: many in succession
//! at-once   checkpoints at full speed, one every second
//! ```
//! One thread commits changes of single rows all over a table of 25,000 pages, each with full durability. After
//! every fourth it writes 4 KiB through to another file: the *floor*, which shows the share of the device, the file
//! system and other load. The four alternate, ROUNDS times. Then each store is left as after a crash, and
//! recovered: the longest recovery should be within the target.

use pagestore::{Durability, Layout, Options, Recovery, Store, Table};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROWS: u32 = 400_000;
const ROW_BYTES: usize = 200;
/// Commits per write of the floor.
const COMMITS_PER_FLOOR: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Checkpoints {
    None,
    Paced(Duration),
    AtOnce,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, rest @ ..] = &arguments[..] else {
        return Err("usage: checkpoints DIR [SECONDS [ROUNDS]]".into());
    };
    let seconds = rest.first().map_or(Ok(6), |text| text.parse())?;
    let rounds = rest.get(1).map_or(Ok(1), |text| text.parse())?;
    let mut variants = [
        ("none", Checkpoints::None, Measured::default()),
        ("2000", Checkpoints::Paced(Duration::from_millis(2000)), Measured::default()),
        ("500", Checkpoints::Paced(Duration::from_millis(500)), Measured::default()),
        ("at-once", Checkpoints::AtOnce, Measured::default()),
    ];
    let place = Path::new(directory).join(format!("checkpoints-{}", std::process::id()));
    for _ in 0..rounds {
        for (_, how, measured) in &mut variants {
            let done = measure(&place, *how, Duration::from_secs(seconds), measured);
            std::fs::remove_dir_all(&place)?;
            done?;
        }
    }
    for (name, _, measured) in &mut variants {
        println!("{{\"checkpoints\": \"{name}\", {}}}", measured.text());
    }
    Ok(())
}

/// The measurements of one variant, over all rounds.
#[derive(Default)]
struct Measured {
    commits: Vec<Duration>,
    floors: Vec<Duration>,
    ended: u64,
    written_bytes: u64,
    log_bytes: u64,
    redo: Duration,
}

impl Measured {
    fn text(&mut self) -> String {
        let whole: Duration = self.commits.iter().sum();
        let (commits, rate) = (self.commits.len(), self.commits.len() as f64 / whole.as_secs_f64());
        let figures = |latencies: &mut Vec<Duration>| {
            latencies.sort_unstable();
            let at = |share: f64| {
                latencies[((latencies.len() as f64 * share) as usize).min(latencies.len() - 1)].as_micros()
            };
            format!(
                "{{\"p50_us\": {}, \"p99_us\": {}, \"p999_us\": {}, \"max_us\": {}}}",
                at(0.5),
                at(0.99),
                at(0.999),
                at(1.0)
            )
        };
        format!(
            "\"commits_a_second\": {rate:.0}, \"commit\": {}, \"floor\": {}, \"log_bytes_a_commit\": {}, \
             \"ended\": {}, \"written_mib\": {}, \"redo_ms_max\": {}",
            figures(&mut self.commits),
            figures(&mut self.floors),
            self.log_bytes / commits as u64,
            self.ended,
            self.written_bytes >> 20,
            self.redo.as_millis()
        )
    }
}

fn measure(
    place: &Path,
    how: Checkpoints,
    lasting: Duration,
    measured: &mut Measured,
) -> pagestore::Result<()> {
    let (checkpoint_bytes, redo_target) = match how {
        Checkpoints::Paced(target) => (4 << 30, target),
        _ => (u64::MAX, Options::default().redo_target),
    };
    let options = Options { cache_bytes: 1 << 30, checkpoint_bytes, redo_target, ..Options::default() };
    // Large enough for the whole run: filling new log space with zeros is not to be measured.
    let layout = Layout { vlfs: 100, ..Layout::default() };
    let store = Store::create(place, layout, options)?;
    let table = fill(&store)?;
    store.checkpoint()?;
    let mut floor = Floor::prepare(&place.join("floor")).expect("a file of our own can be written");
    let before = store.stats();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if how == Checkpoints::AtOnce {
            scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_secs(1));
                    store.checkpoint().expect("the disk works");
                }
            });
        }
        let done = commits(&store, table, lasting, &mut floor, measured);
        ended.store(true, Ordering::Release);
        done
    })?;
    let after = store.stats();
    measured.ended += after.checkpoints - before.checkpoints;
    measured.written_bytes += after.page_write_bytes - before.page_write_bytes;
    measured.log_bytes += after.log_write_bytes - before.log_write_bytes;
    drop(store);
    let store = Store::open(place, Options { recovery: Recovery::Wide, ..options })?;
    measured.redo = measured.redo.max(store.recovery_report().opened);
    Ok(())
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

fn commits(
    store: &Store,
    table: Table,
    lasting: Duration,
    floor: &mut Floor,
    measured: &mut Measured,
) -> pagestore::Result<()> {
    let begun = Instant::now();
    let mut row = 1_u32;
    while begun.elapsed() < lasting {
        for _ in 0..COMMITS_PER_FLOOR {
            row = row.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let begun = Instant::now();
            let mut tx = store.write()?;
            tx.put(table, &(row % ROWS).to_be_bytes(), &[(row >> 7) as u8; ROW_BYTES])?;
            tx.commit(Durability::Full)?;
            measured.commits.push(begun.elapsed());
        }
        measured.floors.push(floor.write().expect("a file of our own can be written"));
    }
    Ok(())
}

/// A file of zeros that is written through, 4 KiB at a time.
struct Floor {
    file: File,
    memory: Vec<u8>,
    next: u64,
}

impl Floor {
    const BYTES: u64 = 16 << 20;

    fn prepare(place: &Path) -> io::Result<Self> {
        let memory = vec![0; (1 << 20) + 4096];
        let file =
            OpenOptions::new().create_new(true).write(true).custom_flags(libc::O_DIRECT).open(place)?;
        let mut floor = Self { file, memory, next: 0 };
        for at in (0..Self::BYTES).step_by(1 << 20) {
            floor.file.write_all_at(floor.aligned(1 << 20), at)?;
        }
        floor.file.sync_all()?;
        let through = libc::O_DIRECT | libc::O_DSYNC;
        floor.file = OpenOptions::new().write(true).custom_flags(through).open(place)?;
        Ok(floor)
    }

    fn aligned(&self, bytes: usize) -> &[u8] {
        &self.memory[self.memory.as_ptr().align_offset(4096)..][..bytes]
    }

    fn write(&mut self) -> io::Result<Duration> {
        let begun = Instant::now();
        self.file.write_all_at(self.aligned(4096), self.next)?;
        self.next = (self.next + 4096) % Self::BYTES;
        Ok(begun.elapsed())
    }
}
