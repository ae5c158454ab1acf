//! The example engine in C, compiled with `published.h`, and read as Headroom reads it.

use filestats::FileKind;
use published::{CountersFile, published_in};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const COMMITS: u64 = 40;

/// `None`, after saying so, without a compiler.
fn compiled(place: &Path) -> Option<std::path::PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let engine = place.join("engine");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&engine);
    cc.arg("-I").arg(here.join("include")).arg(here.join("examples/engine.c")).arg("-lpthread");
    match cc.status() {
        Err(error) => {
            println!("skipped: no C compiler: {error}");
            None
        }
        Ok(status) => {
            assert!(status.success());
            Some(engine)
        }
    }
}

#[test]
fn an_engine_in_c_is_read_with_its_files_its_commits_and_its_writer_s_time() {
    let place = tempfile::tempdir().unwrap();
    let Some(engine) = compiled(place.path()) else { return };
    let (database, dir) = (place.path().join("database"), place.path().join("counters"));
    std::fs::create_dir(&database).unwrap();
    std::fs::create_dir(&dir).unwrap();
    let mut command = Command::new(engine);
    command.arg(&database).arg(COMMITS.to_string()).env("HEADROOM_COUNTERS_DIR", &dir);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "ready");

    let found = published_in(&dir).unwrap();
    let [counters] = &found.live[..] else { panic!("{found:?}") };
    assert_eq!((counters.process.pid, counters.engine.as_str()), (child.id(), "example"));
    assert_eq!(counters.database.as_ref().unwrap().path, database.canonicalize().unwrap());
    let reading = counters.read().unwrap();
    let file = |kind: FileKind| reading.files.iter().find(|file| file.kind == kind).unwrap();
    let (data, log) = (file(FileKind::Data), file(FileKind::Log));
    assert_eq!(log.path, database.join("log"));
    assert_eq!((log.counters.write.count, log.counters.write.bytes), (COMMITS, 64 * COMMITS));
    assert_eq!(log.counters.sync.known().unwrap().count, COMMITS);
    assert_eq!((data.counters.write.count, data.counters.read.count), (COMMITS, 1));
    assert_eq!(data.details.reads_empty, 1);
    let commits = reading.commits;
    assert_eq!((commits.commits, commits.log_records), (Some(COMMITS), Some(COMMITS)));
    assert_eq!(commits.log_record_bytes, Some(64 * COMMITS));
    // A commit waits for the write and the sync of the log, within the writer's turn.
    let synced = log.counters.sync.known().unwrap().stall_ns.known().unwrap();
    let (waited, turns) = (commits.log_wait_ns.unwrap(), commits.writer_ns.unwrap());
    assert!(0 < synced && synced <= waited && waited <= turns, "{synced} {waited} {turns}");
    let places = log.latencies.write.filled().map(|(_, count)| count).sum::<u64>();
    assert_eq!(places, COMMITS, "the histogram is the count");

    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "it removes its file");
    assert!(CountersFile::open(counters.path()).is_err());
}
