//! An engine that publishes counters, as a source.

use collect::published::Live;
use collect::{Source, SourceError};
use filestats::{Cache, Durable, FileKind, WaitClass};
use published::{Engine, FileToCount, Way, Writer};
use std::os::unix::fs::chown;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

const ENGINE: Engine = Engine {
    name: "tested",
    counts_commits: true,
    counts_writer_time: true,
    counts_log_records: false,
    commits_one_by_one: true,
};

/// A database of two files that this process has open.
fn open(database: &Path, dir: &Path) -> Writer {
    let writer = Writer::private(ENGINE).unwrap();
    writer.share(dir).unwrap();
    let file = |kind, name: &str, way| {
        let path = database.join(name);
        std::fs::write(&path, "content").unwrap();
        let path = path.to_str().unwrap().as_bytes();
        writer.count_file(&FileToCount { kind, path, identity: (0, 0), generation: 1, way }).unwrap();
    };
    file(FileKind::Data, "data", Way::default());
    file(FileKind::Log, "log", Way { bypasses_cache: true, is_durable_at_end: true });
    writer.announce(database);
    writer
}

#[test]
fn a_database_is_watched_with_its_files_its_commits_and_its_writer_s_time() {
    let (database, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let writer = open(database.path(), dir.path());
    writer.slot(1).count_write(4096, 1_000);
    writer.commits().commits.fetch_add(3, Relaxed);
    writer.commits().log_wait_ns.fetch_add(700, Relaxed);
    writer.commits().writer_ns.fetch_add(900, Relaxed);
    let mut live = Live::open_in(database.path(), dir.path().into()).unwrap();
    let snapshot = live.snapshot().unwrap();
    assert_eq!(live.processes(), [std::process::id()]);
    assert!(live.name().starts_with("tested ") && live.commits_one_by_one());
    assert_eq!((live.commits(), live.writer_ns(), live.log_record_bytes()), (Some(3), Some(900), None));
    let [data, log] = &snapshot.samples[..] else { panic!("{snapshot:?}") };
    assert_eq!((data.file.kind, log.file.kind), (FileKind::Data, FileKind::Log));
    assert_eq!((log.counters.write.count, log.counters.write.bytes), (1, 4096));
    assert_eq!((data.meaning.cache, data.meaning.durable), (Cache::Included, Durable::BySync));
    assert_eq!((log.meaning.cache, log.meaning.durable), (Cache::Missed, Durable::ByItself));
    assert_eq!(data.size_bytes.known(), Some(7));
    let [wait] = &snapshot.waits[..] else { panic!("{snapshot:?}") };
    assert_eq!((wait.class, wait.wait_ns.known()), (WaitClass::LogWrite, Some(700)));
}

#[test]
fn while_no_process_has_it_open_a_snapshot_is_empty_and_each_opening_is_an_epoch() {
    let (database, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let writer = open(database.path(), dir.path());
    let mut live = Live::open_in(database.path(), dir.path().into()).unwrap();
    let first = live.snapshot().unwrap();
    drop(writer);
    let closed = live.snapshot().unwrap();
    assert!(closed.samples.is_empty() && closed.complete.is_none() && live.commits().is_none());
    let refused = Live::open_in(database.path(), dir.path().into()).err().unwrap();
    assert!(refused.to_string().contains("no running program publishes counters of it"), "{refused}");
    let _again = open(database.path(), dir.path());
    let second = live.snapshot().unwrap();
    assert_eq!(second.samples.len(), 2);
    assert_ne!(first.samples[0].epoch, second.samples[0].epoch);
}

#[test]
fn a_process_of_another_user_publishes_no_counters_of_this_users_database() {
    let (database, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let writer = open(database.path(), dir.path());
    let found = || Live::open_in(database.path(), dir.path().into());
    assert!(found().is_ok());
    if let Err(error) = chown(writer.path().unwrap(), Some(65534), None) {
        return println!("skipped: a file of another user needs root: {error}");
    }
    let refused: SourceError = found().err().unwrap();
    assert!(refused.to_string().contains("no running program"), "{refused}");
    let missing = Live::open_in(Path::new("/no/where"), dir.path().into()).err().unwrap();
    assert!(missing.to_string().contains("/no/where"), "{missing}");
}
