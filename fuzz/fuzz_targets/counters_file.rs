#![no_main]
//! Counters files as another process may write them: those of the SQLite VFS, and the board of a page store. They are read within their
//! bounds, or refused.

use libfuzzer_sys::fuzz_target;
use pagestore_counters::{Instants, LogState, Opening, Publisher, Reader, VlfState, monotonic_ns};
use published::{CountersFile, FILES_MAX, PATH_BYTES_MAX, published_in};
use rusqlite::{Connection, OpenFlags, ffi};
use sqlite_vfs::{Publish, SqliteFunctions, VFS_NAME};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

/// A copy of a file that this process published, and its content.
struct Copied {
    path: PathBuf,
    /// Another name of it: readers remove the file of a process that has ended.
    spare: PathBuf,
    file: File,
    whole: Vec<u8>,
}

/// The files of an SQLite database and of a page store that this process has open.
struct Published {
    dir: PathBuf,
    store: PathBuf,
    sqlite: Copied,
    board: Copied,
}

static PUBLISHED: LazyLock<Published> = LazyLock::new(|| {
    let [dir, work] = [(); 2].map(|()| tempfile::tempdir().expect("memory").keep());
    Published { sqlite: sqlite(&work, &dir), board: board(&work, &dir), dir, store: work }
});

fn copied(published: &Path, dir: &Path) -> Copied {
    let path = dir.join(published.file_name().expect("a file"));
    fs::copy(published, &path).expect("memory");
    let spare = path.with_extension("spare");
    fs::hard_link(&path, &spare).expect("memory");
    let file = File::options().write(true).open(&path).expect("it was just made");
    Copied { whole: fs::read(&path).expect("it was just made"), path, spare, file }
}

fn sqlite(work: &Path, dir: &Path) -> Copied {
    let (find, register) = (ffi::sqlite3_vfs_find as _, ffi::sqlite3_vfs_register as _);
    // SAFETY: these are the two functions.
    let functions = unsafe { SqliteFunctions::from_addresses(find, register) };
    let publish = Publish::Shared { dir: work.into() };
    // SAFETY: they are those of the SQLite in this program.
    let registry = unsafe { sqlite_vfs::register(functions, publish, false) }.expect("registered once");
    let flags = OpenFlags::default();
    let database = Connection::open_with_flags_and_vfs(work.join("shop.db"), flags, VFS_NAME).expect("new");
    database
        .execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE a(x); INSERT INTO a VALUES (1)")
        .expect("SQL");
    // It stays open: its counters are those of files that are in use.
    std::mem::forget(database);
    copied(&registry.published().expect("memory"), dir)
}

fn board(work: &Path, dir: &Path) -> Copied {
    fs::write(work.join("control"), "").expect("memory");
    let publisher = Publisher::new(Some(work));
    let opening = Opening { store: 7, epoch: 1, page_bytes: 4096, log_sector_bytes: 512, vlf_bytes: 1 << 20 };
    publisher.announce(work, &opening);
    let now = monotonic_ns() - 20_000_000;
    let at = Instants {
        queued_ns: 3,
        called: now,
        appended: now + 1,
        submitted: now + 2,
        written: now + 3,
        durable: now + 4,
    };
    (0..20).for_each(|sequence| publisher.record_commit(sequence, &at));
    publisher.state.answer(|| LogState {
        vlfs_total: 2,
        vlfs: vec![VlfState { vlf: 3, status: 2, parity: 128 }; 2],
        ..LogState::default()
    });
    copied(publisher.board_path().expect("memory"), dir)
}

/// Writes parts of it. Each part of `damage`: its place (3 bytes), its length (1 byte), what is written.
fn overwrite(copied: &Copied, mut damage: &[u8]) -> Vec<(u64, usize)> {
    let mut written = Vec::new();
    while let Some(([a, b, c, length], rest)) = damage.split_first_chunk() {
        let at = u32::from_le_bytes([*a, *b, *c, 0]) as usize % copied.whole.len();
        let length = usize::from(*length).min(rest.len()).min(copied.whole.len() - at);
        copied.file.write_all_at(&rest[..length], at as u64).expect("memory");
        written.push((at as u64, length));
        damage = &rest[length..];
    }
    written
}

fn read_sqlite(path: &Path) {
    let Ok(counters) = CountersFile::open(path) else { return };
    let Ok(files) = counters.files() else { return };
    assert!(files.len() <= FILES_MAX);
    for file in files {
        assert!(file.slot < FILES_MAX && file.path.as_os_str().as_bytes().len() <= PATH_BYTES_MAX);
        let _ = (file.counters.transfers().latency_ns(), file.latencies.read.at_most_ns(99.0));
    }
}

fn read_board(published: &Published) {
    let Ok(reader) = Reader::open_in(&published.store, &published.dir) else { return };
    let _ = (
        reader.owner().open_for(),
        reader.owner().slot_offset(usize::MAX),
        reader.is_open(),
        reader.counts(),
    );
    if let Some(times) = reader.commit_times() {
        assert!(times.slow.len() <= 16);
        let _ = (times.commits(), times.slow.iter().map(|slow| slow.whole_ns()).max());
    }
    if let Some(state) = reader.log_state(Duration::ZERO) {
        assert!(state.vlfs.len() <= 1024);
        let _ = (
            state.age(),
            state.redo.bytes_to(state.next, reader.owner().opening.vlf_bytes),
            format!("{state:?}"),
        );
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((what, damage)) = bytes.split_first() else { return };
    let published = &*PUBLISHED;
    let copied = if what & 1 == 0 { &published.sqlite } else { &published.board };
    let written = overwrite(copied, damage);
    if what & 1 == 0 {
        read_sqlite(&copied.path)
    } else {
        read_board(published)
    }
    if what & 6 == 6 {
        let _ = published_in(&published.dir);
    }
    if !copied.path.exists() {
        fs::hard_link(&copied.spare, &copied.path).expect("memory");
    }
    for (at, length) in written {
        let at_byte = at as usize;
        copied.file.write_all_at(&copied.whole[at_byte..at_byte + length], at).expect("memory");
    }
});
