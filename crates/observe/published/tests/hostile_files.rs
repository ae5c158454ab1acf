//! Counters files that another user plants in the directory that everyone may write: they kill no reader, cost it little,
//! and claim no process of someone else.

use published::{CountersFile, ProcessIdentity, ReadError, published_in};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const OTHER_USER: u32 = 65534;
const SLOT_BYTES: u64 = 5120;
const FILE_BYTES: u64 = 4096 + 1024 * SLOT_BYTES;

/// A process that ends with the test.
struct Sleeper(Child);

impl Sleeper {
    fn start(user: Option<u32>) -> Sleeper {
        let mut command = Command::new("sleep");
        if let Some(user) = user {
            command.uid(user);
        }
        Sleeper(command.arg("600").spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory in shared memory, where a file's holes become memory when they are touched through a mapping.
fn directory() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    tempfile::tempdir_in(if shared.is_dir() { shared.into() } else { std::env::temp_dir() }).unwrap()
}

/// A sparse file that claims the process `claimed`, with all slots used.
fn plant(dir: &Path, pid_in_name: u32, claimed: u32) -> PathBuf {
    let own = ProcessIdentity::own().unwrap();
    let path = dir.join(format!("headroom-{pid_in_name}-0.counters"));
    let file = File::create(&path).unwrap();
    file.set_len(FILE_BYTES).unwrap();
    let put = |at: u64, bytes: &[u8]| file.write_all_at(bytes, at).unwrap();
    put(0, b"HDRMPUB1");
    for (at, number) in [(8, 1), (12, SLOT_BYTES as u32), (16, 1024), (20, 1024), (24, claimed), (28, 1)] {
        put(at, &u32::to_ne_bytes(number));
    }
    put(32, &host::start_ticks(claimed).unwrap().to_ne_bytes());
    put(40, &own.pid_namespace.to_ne_bytes());
    put(72, own.boot_id.as_bytes());
    put(112, b"sqlite");
    path
}

/// Gives a file to another user; `false` where this test may not.
fn give_away(path: &Path) -> bool {
    let given = chown(path, Some(OTHER_USER), Some(OTHER_USER));
    if let Err(error) = &given {
        println!("skipped: a file of another user needs root: {error}");
    }
    given.is_ok()
}

fn live_pids(dir: &Path) -> Vec<u32> {
    published_in(dir).unwrap().live.iter().map(|counters| counters.process.pid).collect()
}

#[test]
fn another_users_file_claims_no_process_of_this_user() {
    let (dir, own) = (directory(), std::process::id());
    let path = plant(dir.path(), own, own);
    assert_eq!(live_pids(dir.path()), [own], "a file of the process's own user");
    if give_away(&path) {
        assert!(matches!(CountersFile::open(&path), Err(ReadError::Foreign { .. })));
        assert!(live_pids(dir.path()).is_empty());
    }
}

#[test]
fn the_process_in_a_files_name_is_the_one_in_its_header() {
    let (dir, own) = (directory(), std::process::id());
    plant(dir.path(), std::os::unix::process::parent_id(), own);
    let odd = plant(dir.path(), own, own);
    fs::rename(odd, dir.path().join(format!("headroom-0{own}-0.counters"))).unwrap();
    assert!(live_pids(dir.path()).is_empty());
}

#[test]
fn sparse_files_of_many_processes_stay_sparse_and_are_read_in_little_memory() {
    let dir = directory();
    let another = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !another {
        println!("skipped: the processes of another user need root; this user's are taken");
    }
    let sleepers: Vec<Sleeper> = (0..80).map(|_| Sleeper::start(another.then_some(OTHER_USER))).collect();
    let paths: Vec<PathBuf> = sleepers
        .iter()
        .map(|sleeper| plant(dir.path(), sleeper.pid(), sleeper.pid()))
        .inspect(|path| assert!(!another || give_away(path)))
        .collect();
    let before = resident_peak_kib();
    let found = published_in(dir.path()).unwrap();
    assert_eq!(found.live.len(), sleepers.len(), "{:?}", found.unreadable);
    for counters in &found.live {
        assert!(counters.files().unwrap().is_empty(), "no slot is published");
    }
    assert!(resident_peak_kib() - before < 32 << 10, "one file at a time");
    assert!(paths.iter().all(|path| fs::metadata(path).unwrap().blocks() <= 8), "the header's page alone");
}

#[test]
fn a_file_that_is_truncated_all_the_time_does_not_end_its_reader() {
    let (dir, own, ended) = (directory(), std::process::id(), AtomicBool::new(false));
    let path = plant(dir.path(), own, own);
    let counters = CountersFile::open(&path).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = File::options().write(true).open(&path).unwrap();
            let header = fs::read(&path).unwrap()[..4096].to_vec();
            while !ended.load(Relaxed) {
                file.set_len(0).unwrap();
                file.set_len(FILE_BYTES).unwrap();
                file.write_all_at(&header, 0).unwrap();
            }
        });
        let until = Instant::now() + Duration::from_millis(500);
        let (mut read, mut refused) = (0, 0);
        while Instant::now() < until {
            match counters.files() {
                Ok(_) => read += 1,
                Err(_) => refused += 1,
            }
            let _ = published_in(dir.path()).unwrap();
        }
        ended.store(true, Relaxed);
        assert!(read + refused > 0);
    });
}

#[test]
fn a_pipe_with_the_name_of_a_counters_file_delays_no_reader() {
    let (dir, own) = (directory(), std::process::id());
    let path = dir.path().join(format!("headroom-{own}-0.counters"));
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(matches!(CountersFile::open(&path), Err(ReadError::Foreign { .. })));
    assert!(live_pids(dir.path()).is_empty());
}

/// The most memory that this process ever had.
fn resident_peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}
