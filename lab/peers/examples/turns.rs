//! The cost of commits with several engines, interleaved:
//! `turns DIR floor|pagestore|pagestore-asleep|sqlite|redb|lmdb|rocksdb one|many|bulk ROWS`.
//! Each line of its input is a number of rows, which it commits; its answer is a line of JSON. `scripts/bench pagestore`
//! interleaves the engines in turns of a fraction of a second, so that other load on the machine affects all of them alike.
//! ROWS is the sum of all turns, for which the floor prepares space. Exit code 4: the engine is not installed.
//!
//! ```text
//! one     one thread, each row its own commit, full durability
//! many    64 threads, the same
//! bulk    all rows of the turn in one transaction
//! ```
//! `pagestore-asleep` never polls (`Options::keep_awake`), `pagestore` does if that pays.
//! The floor is the least cost of a commit: a write of 4 KiB through to the medium, over zeros.

use pagestore::{KeepAwake, Layout, Options, Store, Table};
use peers::Peer;
use rusqlite::{Connection, params};
use std::fs::{File, OpenOptions};
use std::io::BufRead;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

const USAGE: &str =
    "usage: turns DIR floor|pagestore|pagestore-asleep|sqlite|redb|lmdb|rocksdb one|many|bulk ROWS";
const THREADS: usize = 64;
const ROW_BYTES: usize = 200;

type Done<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// An engine that commits.
trait Engine: Sync {
    /// Puts rows in one transaction and commits it, durably.
    fn put(&self, rows: Range<u32>) -> Done;

    /// Log writes so far, if it counts them itself.
    fn log_writes(&self) -> Option<u64> {
        None
    }
}

fn main() -> Done {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, name, how, rows] = &arguments[..] else { return Err(USAGE.into()) };
    let place = Path::new(directory).join(format!("{name}-{how}-{}", std::process::id()));
    std::fs::create_dir(&place)?;
    let engine = match open(name, &place, rows.parse()?) {
        Err(error) if error.downcast_ref().is_some_and(is_missing) => {
            eprintln!("{error}");
            std::fs::remove_dir_all(&place)?;
            std::process::exit(4);
        }
        opened => opened?,
    };
    let mut next = 0;
    for line in std::io::stdin().lock().lines() {
        let rows = next..next + line?.trim().parse::<u32>()?;
        next = rows.end;
        let written = engine.log_writes();
        let begun = Instant::now();
        match how.as_str() {
            "one" => rows.clone().try_for_each(|row| engine.put(row..row + 1))?,
            "many" => many(engine.as_ref(), rows.clone())?,
            "bulk" => engine.put(rows.clone())?,
            _ => return Err(USAGE.into()),
        }
        let seconds = begun.elapsed().as_secs_f64();
        let log_writes = engine.log_writes().zip(written).map(|(after, before)| after - before);
        let log_writes = log_writes.map_or("null".to_owned(), |writes| writes.to_string());
        println!("{{\"rows\": {}, \"seconds\": {seconds:.6}, \"log_writes\": {log_writes}}}", rows.len());
    }
    drop(engine);
    std::fs::remove_dir_all(&place)?;
    Ok(())
}

fn is_missing(error: &peers::Error) -> bool {
    matches!(error, peers::Error::NotInstalled { .. })
}

fn open(name: &str, place: &Path, rows: u32) -> Done<Box<dyn Engine>> {
    Ok(match name {
        "floor" => Box::new(Floor::prepare(place, rows)?),
        "pagestore" => Box::new(Ours::create(place, KeepAwake::Auto)?),
        "pagestore-asleep" => Box::new(Ours::create(place, KeepAwake::Never)?),
        "sqlite" => Box::new(Sqlite::create(place)?),
        _ => {
            let known = peers::Engine::ALL.into_iter().find(|engine| engine.name() == name);
            let peer = known.ok_or(USAGE)?.open(place)?;
            // The first commit creates what later ones reuse.
            peer.commit(experiments::Durability::Full, &mut |batch| batch.put(b"first", b""))?;
            Box::new(Other(peer))
        }
    })
}

/// Each row its own transaction, by threads that take the next one.
fn many(engine: &dyn Engine, rows: Range<u32>) -> Done {
    let next = AtomicU32::new(rows.start);
    let commit = || {
        loop {
            match next.fetch_add(1, Relaxed) {
                row if row < rows.end => engine.put(row..row + 1)?,
                _ => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(commit)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics")
}

struct Floor {
    file: File,
    memory: Vec<u8>,
    next: AtomicU32,
}

impl Floor {
    const BLOCK: usize = 4096;
    const ZEROS: usize = 1 << 20;

    fn prepare(place: &Path, rows: u32) -> Done<Floor> {
        let path = place.join("floor");
        let opening =
            |flags| OpenOptions::new().create(true).append(false).write(true).custom_flags(flags).open(&path);
        // Without the page cache, whose pages every measured write would have to evict.
        let file = opening(libc::O_DIRECT)?;
        let mut floor = Floor { file, memory: vec![0; Self::ZEROS + Self::BLOCK], next: AtomicU32::new(0) };
        for at in (0..u64::from(rows) * Self::BLOCK as u64).step_by(Self::ZEROS) {
            floor.file.write_all_at(floor.aligned(Self::ZEROS), at)?;
        }
        floor.file.sync_all()?;
        floor.file = opening(libc::O_DIRECT | libc::O_DSYNC)?;
        floor.memory.fill(7);
        Ok(floor)
    }

    fn aligned(&self, bytes: usize) -> &[u8] {
        &self.memory[self.memory.as_ptr().align_offset(Self::BLOCK)..][..bytes]
    }
}

impl Engine for Floor {
    fn put(&self, rows: Range<u32>) -> Done {
        for _ in rows {
            let at = u64::from(self.next.fetch_add(1, Relaxed)) * Self::BLOCK as u64;
            self.file.write_all_at(self.aligned(Self::BLOCK), at)?;
        }
        Ok(())
    }
}

struct Ours {
    store: Store,
    table: Table,
}

impl Ours {
    fn create(place: &Path, keep_awake: KeepAwake) -> Done<Ours> {
        // The log for all turns is allocated, as the floor's space is.
        let layout = Layout { vlf_bytes: 64 << 20, ..Layout::default() };
        let options = Options { keep_awake, ..Options::default() };
        let store = Store::create(&place.join("store"), layout, options)?;
        let mut tx = store.write()?;
        let table = tx.create_table("rows")?;
        tx.commit(pagestore::Durability::Full)?;
        Ok(Ours { store, table })
    }
}

impl Engine for Ours {
    fn put(&self, rows: Range<u32>) -> Done {
        let mut tx = self.store.write()?;
        for row in rows {
            tx.put(self.table, &row.to_be_bytes(), &[row as u8; ROW_BYTES])?;
        }
        tx.commit(pagestore::Durability::Full)?;
        Ok(())
    }

    fn log_writes(&self) -> Option<u64> {
        Some(self.store.stats().log_writes)
    }
}

/// WAL, `synchronous=FULL`, through its C library, one prepared statement.
struct Sqlite(Mutex<Connection>);

impl Sqlite {
    fn create(place: &Path) -> Done<Sqlite> {
        let db = Connection::open(place.join("rows.db"))?;
        let mode: String = db.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))?;
        assert_eq!(mode, "wal", "SQLite writes a log ahead");
        let table =
            "PRAGMA synchronous=FULL; CREATE TABLE rows(key INTEGER PRIMARY KEY, value BLOB NOT NULL)";
        db.execute_batch(table)?;
        Ok(Sqlite(Mutex::new(db)))
    }
}

impl Engine for Sqlite {
    fn put(&self, rows: Range<u32>) -> Done {
        let db = locked(&self.0);
        let mut insert = db.prepare_cached("INSERT INTO rows VALUES (?, ?)")?;
        let alone = rows.len() == 1;
        if !alone {
            db.execute_batch("BEGIN")?;
        }
        for row in rows {
            insert.execute(params![row, &[row as u8; ROW_BYTES][..]])?;
        }
        if !alone {
            db.execute_batch("COMMIT")?;
        }
        Ok(())
    }
}

struct Other(Box<dyn Peer>);

impl Engine for Other {
    fn put(&self, rows: Range<u32>) -> Done {
        self.0.commit(experiments::Durability::Full, &mut |batch| {
            rows.clone().try_for_each(|row| batch.put(&row.to_be_bytes(), &[row as u8; ROW_BYTES]))
        })?;
        Ok(())
    }
}
