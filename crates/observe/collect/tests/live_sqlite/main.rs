//! Programs that run SQLite, observed from another process.

mod program;

use collect::sqlite::{InProcess, Live, SqliteError};
use collect::{Source, SourceError};
use filestats::{Delta, FileKind, Interval, Reason, Rules, Snapshot, intervals};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const DATABASE: &str = "HEADROOM_TEST_DATABASE";
const COUNTERS: &str = "HEADROOM_TEST_COUNTERS";
const PAGE: u64 = 4096;
const FRAME: u64 = PAGE + 24;

#[test]
fn the_intervals_of_a_live_process_are_its_io() {
    let place = Place::new();
    let mut program = place.program();
    program.runs("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0");
    program.runs("CREATE TABLE a(id INTEGER PRIMARY KEY, x)");
    let mut live = place.watch().unwrap();
    let quiet = live.snapshot().unwrap();

    // Twenty commits of one page each.
    for _ in 0..20 {
        program.runs("INSERT INTO a(x) VALUES (1)");
    }
    let after_commits = live.snapshot().unwrap();
    let log = delta(&quiet, &after_commits, FileKind::Log);
    assert_eq!((log.counters.write.count, log.counters.write.bytes), (2 * 20, 20 * FRAME));
    assert_eq!(log.counters.sync.known().unwrap().count, 20);
    assert!(log.counters.write.stall_ns.known().unwrap() > 0);
    assert_eq!(log.latencies.as_ref().unwrap().write.count(), 2 * 20);
    assert_eq!(delta(&quiet, &after_commits, FileKind::Data).counters.write.count, 0);

    // A checkpoint moves the pages of table and schema into the data file.
    program.runs("PRAGMA wal_checkpoint");
    let after_checkpoint = live.snapshot().unwrap();
    let data = delta(&after_commits, &after_checkpoint, FileKind::Data);
    assert_eq!((data.counters.write.count, data.counters.write.bytes), (2, 2 * PAGE));
    let log = delta(&after_commits, &after_checkpoint, FileKind::Log);
    assert_eq!((log.counters.write.count, log.counters.read.count), (0, 2));

    let sample = after_checkpoint.samples.iter().find(|sample| sample.file.kind == FileKind::Log).unwrap();
    assert_eq!(sample.file.database.as_deref(), Some("shop"));
    let pid = program.child.id();
    let command = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    assert_eq!(sample.file.instance, format!("sqlite pid {pid} ({})", command.trim_end()));
    assert_eq!(sample.size_bytes.known(), Some(std::fs::metadata(&sample.file.path).unwrap().len()));
    assert!(Path::new(&sample.file.path).starts_with(sample.file.drive.as_deref().unwrap()));
}

#[test]
fn processes_come_and_go_between_snapshots() {
    let place = Place::new();
    let mut first = place.program();
    first.runs("CREATE TABLE a(x)");
    let mut live = place.watch().unwrap();
    let one = live.snapshot().unwrap();
    let mut second = place.program();
    second.runs("INSERT INTO a VALUES (1)");
    let two = live.snapshot().unwrap();
    let first_id = first.child.id();
    first.end();
    let three = live.snapshot().unwrap();
    let instances = |snapshot: &Snapshot| {
        let data = snapshot.samples.iter().filter(|sample| sample.file.kind == FileKind::Data);
        data.map(|sample| sample.file.instance.clone()).collect::<Vec<_>>()
    };
    assert_eq!([&one, &two, &three].map(|snapshot| instances(snapshot).len()), [1, 2, 1]);
    let gone = intervals(&two, &three, Rules::default());
    let gone: Vec<_> = gone.iter().filter(|row| row.interval == Interval::Unknown(Reason::Gone)).collect();
    assert!(!gone.is_empty());
    assert!(gone.iter().all(|row| row.file.instance.contains(&format!("pid {first_id} "))));
    second.end();
    assert!(live.snapshot().unwrap().samples.is_empty());
}

#[test]
fn a_killed_program_leaves_a_file_that_is_ignored_and_removed() {
    let place = Place::new();
    let mut program = place.program();
    program.runs("CREATE TABLE a(x)");
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    let left = || std::fs::read_dir(place.dir.path().join("counters")).unwrap().count();
    assert_eq!(left(), 1);
    assert!(matches!(place.watch().unwrap_err().downcast_ref(), Some(SqliteError::NotPublished { .. })));
    assert_eq!(left(), 0);
}

#[test]
fn a_replaced_database_is_another_file() {
    let place = Place::new();
    let mut program = place.program();
    program.runs("CREATE TABLE a(x)");
    let mut live = place.watch().unwrap();
    let before = live.snapshot().unwrap();
    let path = place.database();
    std::fs::copy(&path, path.with_extension("copy")).unwrap();
    std::fs::rename(path.with_extension("copy"), &path).unwrap();
    program.runs(&format!("ATTACH '{}' AS again; SELECT count(*) FROM again.a", path.display()));
    let after = live.snapshot().unwrap();
    let rows = intervals(&before, &after, Rules::default());
    let data = rows.iter().find(|row| row.file.kind == FileKind::Data).unwrap();
    assert_eq!(data.interval, Interval::Unknown(Reason::IdentityChanged));
}

#[test]
fn a_database_that_is_detached_within_an_interval_has_exactly_its_io_until_then() {
    let place = Place::new();
    let mut program = place.program();
    let path = place.dir.path().join("archive.db");
    let attach = format!("ATTACH '{}' AS archive", path.display());
    program.runs(&format!("{attach}; CREATE TABLE archive.a(x)"));
    let mut live = Live::open_in(&path, place.counters()).unwrap();
    let mut look = || live.snapshot().unwrap();
    let attached = look();
    program.runs("INSERT INTO archive.a VALUES (1)");
    program.runs("DETACH archive");
    let detached = look();
    program.runs("CREATE TABLE b(x)");
    let idle = look();
    program.runs(&format!("{attach}; INSERT INTO archive.a VALUES (2); DETACH archive"));
    let again = look();
    // The row's page, and the first page with the change counter: neither lost when the file is closed nor counted twice. The
    // counters belong to the process, whose run goes on.
    let writes =
        |earlier: &Snapshot, later: &Snapshot| delta(earlier, later, FileKind::Data).counters.write.count;
    assert_eq!(writes(&attached, &detached), 2);
    assert_eq!(writes(&detached, &idle), 0);
    assert_eq!(writes(&idle, &again), 2);
    assert_eq!(writes(&attached, &again), 4);
}

#[test]
fn errors_say_what_to_do() {
    let place = Place::new();
    let missing = Live::open_in(Path::new("/nowhere/shop.db"), place.counters()).unwrap_err();
    assert!(matches!(missing.downcast_ref(), Some(SqliteError::DatabaseNotFound { .. })), "{missing}");
    std::fs::write(place.database(), "").unwrap();
    let nobody = place.watch().unwrap_err().remedy().unwrap();
    assert!(nobody.contains("headroom sources sqlite-extension"), "{nobody}");
    let no_dir = Live::open_in(&place.database(), "/nowhere/at/all".into()).unwrap_err().remedy().unwrap();
    assert!(no_dir.contains("HEADROOM_COUNTERS_DIR"), "{no_dir}");
    // Links are not followed.
    std::os::unix::fs::symlink("/etc/passwd", place.counters().join("headroom-1-0.counters")).unwrap();
    let unreadable = place.watch().unwrap_err();
    assert!(
        matches!(unreadable.downcast_ref(), Some(SqliteError::CountersUnreadable { count: 1, .. })),
        "{unreadable}"
    );
}

#[test]
fn a_program_can_watch_itself() {
    let place = Place::new();
    let registry = shim();
    let path = place.database();
    let flags = rusqlite::OpenFlags::default();
    let database = rusqlite::Connection::open_with_flags_and_vfs(&path, flags, sqlite_vfs::VFS_NAME).unwrap();
    let mut source = InProcess::new(registry);
    database.execute_batch("CREATE TABLE a(x)").unwrap();
    let before = source.snapshot().unwrap();
    database.execute_batch("INSERT INTO a VALUES (1)").unwrap();
    let after = source.snapshot().unwrap();
    let data = delta(&before, &after, FileKind::Data);
    // The row's page, and the first page with the change counter.
    assert_eq!((data.counters.write.count, data.counters.write.bytes), (2, 2 * PAGE));
}

#[test]
#[ignore = "the program that the other tests watch: they run it as a child"]
fn the_program() {
    let argument = |name| PathBuf::from(std::env::var_os(name).expect("the other tests say what to run"));
    program::run(&argument(DATABASE), argument(COUNTERS)).unwrap();
}

fn shim() -> &'static sqlite_vfs::Registry {
    use rusqlite::ffi::{sqlite3_vfs_find, sqlite3_vfs_register};
    use sqlite_vfs::{Publish, SqliteFunctions, register};
    let (find, register_vfs) = (sqlite3_vfs_find as _, sqlite3_vfs_register as _);
    // SAFETY: these are the addresses of the two functions.
    let functions = unsafe { SqliteFunctions::from_addresses(find, register_vfs) };
    // SAFETY: they are those of the SQLite in this program.
    unsafe { register(functions, Publish::Private, false) }.unwrap()
}

fn delta(earlier: &Snapshot, later: &Snapshot, kind: FileKind) -> Delta {
    let rows = intervals(earlier, later, Rules::default());
    let row = rows.iter().find(|row| row.file.kind == kind).unwrap();
    row.interval.known().unwrap_or_else(|| panic!("{row:?}")).clone()
}

/// A database, and a directory of counters of this test.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("counters")).unwrap();
        Place { dir }
    }

    fn counters(&self) -> PathBuf {
        self.dir.path().join("counters")
    }

    fn database(&self) -> PathBuf {
        self.dir.path().join("shop.db")
    }

    fn watch(&self) -> Result<Live, SourceError> {
        Live::open_in(&self.database(), self.counters())
    }

    fn program(&self) -> Program {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["the_program", "--exact", "--ignored", "--nocapture"]);
        command.env(DATABASE, self.database()).env(COUNTERS, self.counters());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut program = Program { child, answers };
        program.waits_until_done();
        program
    }
}

struct Program {
    child: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn runs(&mut self, sql: &str) {
        writeln!(self.child.stdin.as_ref().unwrap(), "{sql}").unwrap();
        self.waits_until_done();
    }

    fn waits_until_done(&mut self) {
        let mut answers = self.answers.by_ref().map(|line| line.unwrap());
        assert!(answers.any(|line| line == "done"), "the program ended early");
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
