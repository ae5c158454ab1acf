//! Damaged and foreign counters files are read or refused: a reader never panics, and never
//! returns more files than the table has.

use filestats::FileKind;
use proptest::prelude::*;
use published::{CountersFile, Engine, FILES_MAX, FileToCount, ReadError, Way, Writer, published_in};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const SLOTS_AT: usize = 4096;
const SLOT_BYTES: usize = 5120;
const ENGINE: Engine = Engine {
    name: "tested",
    counts_commits: true,
    counts_writer_time: true,
    counts_log_records: false,
    commits_one_by_one: false,
};

/// A directory with the file that this process publishes, of a database with three files.
struct Open {
    dir: tempfile::TempDir,
    writer: Writer,
}

impl Open {
    fn new() -> Open {
        let dir = tempfile::tempdir().unwrap();
        let writer = Writer::private(ENGINE).unwrap();
        writer.share(dir.path()).unwrap();
        for (kind, name) in [(FileKind::Data, "data"), (FileKind::Log, "log"), (FileKind::Other, "control")] {
            let path = dir.path().join(name);
            let path = path.to_str().unwrap().as_bytes();
            let slot = writer.count_file(&FileToCount {
                kind,
                path,
                identity: (7, 8),
                generation: 1,
                way: Way::default(),
            });
            slot.unwrap().count_read(100, 5);
        }
        writer.announce(dir.path());
        Open { dir, writer }
    }
}

fn published() -> &'static (Open, PathBuf) {
    static PUBLISHED: OnceLock<(Open, PathBuf)> = OnceLock::new();
    PUBLISHED.get_or_init(|| {
        let open = Open::new();
        let path = open.writer.path().unwrap();
        (open, path)
    })
}

/// The name that the file of this process has.
fn own_name() -> String {
    format!("headroom-{}-0.counters", std::process::id())
}

fn read_all(path: &Path) -> Result<usize, ReadError> {
    let counters = CountersFile::open(path)?;
    let _ = (counters.process.is_alive(), counters.process.command());
    counters.files().map(|files| files.len())
}

#[test]
fn a_good_file_is_read_and_only_its_owner_may() {
    let (open, path) = published();
    let dir = &open.dir;
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    let found = published_in(dir.path()).unwrap();
    assert_eq!(found.live.len(), 1);
    assert_eq!(found.live[0].process.pid, std::process::id());
    let names: Vec<_> =
        found.live[0].files().unwrap().iter().map(|file| file.path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["data", "log", "control"]);
    let (counters, reading) = (&found.live[0], found.live[0].read().unwrap());
    assert_eq!((counters.engine.as_str(), counters.commits_one_by_one), ("tested", false));
    assert_eq!(counters.database.as_ref().unwrap().path, dir.path().canonicalize().unwrap());
    assert_eq!(reading.files[0].counters.read.bytes, 100);
    assert_eq!(
        (reading.commits.commits, reading.commits.log_records),
        (Some(0), None),
        "not kept is unknown"
    );
}

#[test]
fn files_of_other_kinds_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(own_name());
    assert!(matches!(read_all(&path), Err(ReadError::Io { .. })));
    let good = fs::read(&published().1).unwrap();
    for bytes in [&good[..0], &good[..7], &good[..4096], &good[..good.len() - 1], &vec![0; good.len()]] {
        fs::write(&path, bytes).unwrap();
        assert!(matches!(read_all(&path), Err(ReadError::Foreign { .. })), "{} bytes", bytes.len());
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(read_all(&path).is_err());
}

#[test]
fn a_file_that_is_truncated_while_it_is_open_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(own_name());
    fs::copy(&published().1, &path).unwrap();
    let counters = CountersFile::open(&path).unwrap();
    assert_eq!(counters.files().unwrap().len(), 3);
    fs::File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
    assert!(matches!(counters.files(), Err(ReadError::Foreign { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_anywhere_is_read_or_refused(
        damage in prop::collection::vec(
            (prop_oneof![0_usize..1300, SLOTS_AT..SLOTS_AT + 3 * SLOT_BYTES], any::<u8>()), 1..40),
        length in prop_oneof![Just(usize::MAX), 0_usize..20_000],
    ) {
        let mut bytes = fs::read(&published().1).unwrap();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        bytes.truncate(length);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(own_name());
        fs::write(&path, &bytes).unwrap();
        if let Ok(files) = read_all(&path) {
            prop_assert!(files <= FILES_MAX);
        }
        let _ = published_in(dir.path());
    }
}

#[test]
fn each_open_database_of_a_process_has_a_file_that_goes_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let shared = || {
        let writer = Writer::private(ENGINE).unwrap();
        writer.share(dir.path()).unwrap();
        writer
    };
    let (first, second) = (shared(), shared());
    let found = || published_in(dir.path()).unwrap().live.len();
    assert_eq!(found(), 2);
    let closed = CountersFile::open(&first.path().unwrap()).unwrap();
    drop(first);
    assert_eq!(found(), 1);
    assert!(closed.read().is_err());
    let third = shared();
    assert_eq!(third.path().unwrap(), closed.path(), "the name is free again");
    assert!(closed.read().is_err(), "another opening is not taken for it");
    second.withdraw();
    assert_eq!(found(), 1);
}
