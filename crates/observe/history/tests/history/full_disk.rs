//! A disk without room for SQLite's WAL index: a history on it is read, and no program ends by a signal. The blocks of 1 KiB are the
//! hard case, because SQLite allocates one of the four in each page that it maps.

use crate::life::{Event, S, snapshots};
use history::{CaptureFilter, History, IntervalFilter};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testbed::LoopDisk;

/// The history that the child reads.
const PATH: &str = "HEADROOM_TEST_FULL_DISK";
const CAPTURES: usize = 4;
/// Free blocks up to which a disk is tried. With 12, all of the WAL index fitted before it was allocated as a whole.
const FREE_BLOCKS_MAX: usize = 12;
const BLOCK_BYTES: usize = 1024;

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[test]
#[ignore = "the program that the tests of this module run on a full disk"]
fn the_reader() {
    let Some(path) = std::env::var_os(PATH).map(PathBuf::from) else { return };
    let history = History::open_kept(&path).unwrap();
    assert_eq!(history.entries(99).unwrap().len(), CAPTURES);
    assert!(history.incidents(99).unwrap().is_empty());
    let captures = history.captures(&CaptureFilter::default()).unwrap();
    let (filter, rules) = (IntervalFilter::default(), Default::default());
    let intervals = history.intervals_between(captures[1].id, captures[0].id, &filter, rules).unwrap();
    assert_eq!(intervals.len(), 3);
    drop(history);
    // Adding works, or says what to do.
    let added = History::open(&path).and_then(|mut history| {
        history.check_writable()?;
        history.record_test_file(Path::new("/data/headroom.test"), 4096, None)
    });
    if let Err(error) = added {
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("free some space")), "{error}");
    }
}

fn read(path: &Path) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["full_disk::the_reader", "--exact", "--ignored", "--test-threads=1"]);
    child.env(PATH, path).output().unwrap()
}

/// Writes to a file of its own until nothing fits.
fn fill(dir: &Path) {
    let mut filler = File::create(dir.join("filler")).unwrap();
    while filler.write_all(&[7; BLOCK_BYTES]).is_ok() {}
    // Blocks that the kernel reserved and did not need are free now.
    let _ = filler.sync_all();
    while filler.write_all(&[7; BLOCK_BYTES]).is_ok() {}
    let _ = filler.sync_all();
}

/// A history with a WAL, as a kill leaves it.
fn history_with_wal(dir: &Path) -> PathBuf {
    let made = dir.join("made.db");
    drop(History::open(&made).unwrap());
    let mut history = History::open(&made).unwrap();
    for snapshot in snapshots(&vec![(15 * S, true, vec![Event::Work(7); 3]); CAPTURES]) {
        history.save_snapshot(&snapshot, None).unwrap();
    }
    let copy = dir.join("history.db");
    for suffix in ["", "-wal"] {
        fs::copy(beside(&made, suffix), beside(&copy, suffix)).unwrap();
    }
    copy
}

#[test]
fn a_history_on_a_full_disk_is_read_and_ends_no_program_by_a_signal() {
    let Some(mut disk) = LoopDisk::new_in_memory(8 << 20) else { return };
    let arguments = ["-F", "-b", "1024", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=0"];
    let Some(dir) = disk.format_and_mount_as("ext4", &arguments).map(Path::to_path_buf) else { return };
    let template = tempfile::tempdir().unwrap();
    let made = history_with_wal(template.path());
    let path = dir.join("history.db");
    for has_wal in [true, false] {
        fs::copy(&made, &path).unwrap();
        let kept_wal = dir.join("kept-wal");
        fs::copy(beside(&made, "-wal"), &kept_wal).unwrap();
        let link_wal = || {
            let _ = fs::remove_file(beside(&path, "-wal"));
            fs::hard_link(&kept_wal, beside(&path, "-wal")).unwrap();
        };
        link_wal();
        if !has_wal {
            // The last connection copies the WAL into the file and removes it.
            drop(History::open(&path).unwrap());
        }
        let blocks: Vec<PathBuf> =
            (0..FREE_BLOCKS_MAX).map(|number| dir.join(format!("block-{number}"))).collect();
        for block in &blocks {
            fs::write(block, [7; BLOCK_BYTES]).unwrap();
        }
        fill(&dir);
        for free in 0..=FREE_BLOCKS_MAX {
            if let Some(at) = free.checked_sub(1) {
                fs::remove_file(&blocks[at]).unwrap();
            }
            let output = read(&path);
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{free} free, WAL {has_wal}: {:?}: {said}", output.status);
            assert!(said.contains("1 passed"), "{said}");
            let _ = fs::remove_file(beside(&path, "-shm"));
            if has_wal {
                link_wal();
            }
        }
        fs::remove_file(dir.join("filler")).unwrap();
        let history = History::open(&path).unwrap();
        assert_eq!(history.captures(&CaptureFilter::default()).unwrap().len(), CAPTURES, "nothing is lost");
        drop(history);
        let connection = rusqlite::Connection::open(&path).unwrap();
        let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        drop(connection);
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(beside(&path, suffix));
        }
    }
}

#[test]
fn a_history_on_a_disk_that_takes_no_further_file_is_read() {
    let Some(mut disk) = LoopDisk::new_in_memory(8 << 20) else { return };
    let arguments = ["-F", "-N", "16", "-m", "0", "-O", "^has_journal"];
    let Some(dir) = disk.format_and_mount_as("ext4", &arguments).map(Path::to_path_buf) else { return };
    let template = tempfile::tempdir().unwrap();
    let made = history_with_wal(template.path());
    let path = dir.join("history.db");
    for has_wal in [true, false] {
        fs::copy(&made, &path).unwrap();
        fs::copy(beside(&made, "-wal"), beside(&path, "-wal")).unwrap();
        if !has_wal {
            drop(History::open(&path).unwrap());
        }
        let files: Vec<PathBuf> = (0..)
            .map(|number| dir.join(format!("file-{number}")))
            .take_while(|file| File::create(file).is_ok())
            .collect();
        let output = read(&path);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "WAL {has_wal}: {:?}: {said}",
            output.status
        );
        for file in files {
            fs::remove_file(file).unwrap();
        }
        assert_eq!(
            History::open(&path).unwrap().captures(&CaptureFilter::default()).unwrap().len(),
            CAPTURES
        );
    }
}
