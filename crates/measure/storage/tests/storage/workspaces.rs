//! Files that Headroom makes in a target directory, and that they go away again whatever happens.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use storage::{FillProgress, StorageError, TestFile, Workspace};
use testbed::LoopDisk;
use workload::Caching;

const MIB: u64 = 1 << 20;

fn go_on(_: FillProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn made(workspace: &Workspace, bytes: u64) -> Result<TestFile, StorageError> {
    workspace.test_file("test-1", bytes, &mut go_on)
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_workspace_holds_one_process_at_a_time_and_goes_without_a_trace() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let workspace = Workspace::open(directory.path()).unwrap();
    assert_eq!(workspace.path(), directory.path().join("headroom.tmp"));
    let marker = fs::read_to_string(workspace.path().join("HEADROOM")).unwrap();
    assert!(marker.contains(&format!("version=1 pid={} start=", std::process::id())), "{marker}");

    let error = Workspace::open(directory.path()).unwrap_err();
    let dir = directory.path().display();
    let pid = std::process::id();
    assert_eq!(
        error.to_string(),
        format!("cannot measure {dir}: another headroom is measuring it (process {pid})")
    );
    fs::write(workspace.entry("lab.db"), "x").unwrap();
    fs::create_dir_all(workspace.entry("store").join("deep")).unwrap();
    workspace.remove().unwrap();
    assert!(names(directory.path()).is_empty());
    drop(Workspace::open(directory.path()).unwrap());
    assert!(names(directory.path()).is_empty());
}

const HOLD: &str = "HEADROOM_TEST_HOLD";
const AGAIN_AND_AGAIN: &str = "HEADROOM_TEST_AGAIN_AND_AGAIN";

fn start_holder(directory: &Path, again: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "workspaces::hold_a_workspace_until_killed", "--nocapture"])
        .env(HOLD, directory);
    if again {
        command.env(AGAIN_AND_AGAIN, "1");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Not a test of its own: what the next ones start and kill.
#[test]
fn hold_a_workspace_until_killed() {
    let Some(directory) = std::env::var_os(HOLD) else { return };
    while std::env::var_os(AGAIN_AND_AGAIN).is_some() {
        let workspace = Workspace::open(Path::new(&directory)).unwrap();
        made(&workspace, MIB).unwrap().remove().unwrap();
        workspace.remove().unwrap();
    }
    let workspace = Workspace::open(Path::new(&directory)).unwrap();
    let _file = made(&workspace, 2 * MIB).unwrap();
    println!("\nholding");
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn what_a_killed_headroom_left_is_cleaned_by_the_next() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut child = start_holder(directory.path(), false);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"));
    match Workspace::open(directory.path()) {
        Err(StorageError::WorkspaceInUse { pid, .. }) => assert_eq!(pid, Some(child.id())),
        other => panic!("the child holds it: {other:?}"),
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(&directory.path().join("headroom.tmp")), ["HEADROOM", "headroom-test-1"]);

    let workspace = Workspace::open(directory.path()).unwrap();
    assert_eq!(names(workspace.path()), ["HEADROOM"]);
    workspace.remove().unwrap();
    assert!(names(directory.path()).is_empty());
}

#[test]
fn a_headroom_killed_at_any_moment_leaves_nothing_that_stays() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for round in 0..40 {
        let mut child = start_holder(directory.path(), true);
        let path = directory.path().join("headroom.tmp");
        while !path.exists() {
            std::thread::yield_now();
        }
        // Other moments in every round, all within the first few comings and goings.
        let until = Instant::now() + Duration::from_micros(round * 173);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        Workspace::open(directory.path()).unwrap().remove().unwrap();
        assert!(names(directory.path()).is_empty(), "round {round}");
    }
}

#[test]
fn a_user_who_may_not_write_there_is_told_so() {
    if !Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n") {
        eprintln!("skipped: needs root to be somebody else");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let told = as_nobody(|| {
        // Looking is allowed, making is not.
        storage::Target::open(directory.path()).unwrap();
        Workspace::open(directory.path()).unwrap_err()
    });
    let dir = directory.path().display();
    assert_eq!(told.to_string(), format!("cannot make a file in {dir}: this user is not permitted to"));
    assert_eq!(told.remedy().unwrap(), "run as root, or measure a directory that this user may write to");
}

/// Runs `work` in a thread of user 65534: on Linux the user belongs to the thread.
fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: the system call takes numbers and touches no memory; the thread ends after it.
            assert!(unsafe { libc::syscall(libc::SYS_setresuid, -1, 65534, -1) } >= 0);
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn a_headroom_killed_while_it_made_the_workspace_leaves_nothing_in_the_way() {
    for marker in [None, Some(""), Some("Headroom works in th")] {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = directory.path().join("headroom.tmp");
        fs::create_dir(&path).unwrap();
        if let Some(marker) = marker {
            fs::write(path.join("HEADROOM"), marker).unwrap();
        }
        Workspace::open(directory.path()).unwrap().remove().unwrap();
        assert!(names(directory.path()).is_empty());
    }
}

#[test]
fn what_headroom_did_not_make_is_refused_and_untouched() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("headroom.tmp");
    let refused = |expected: &str| match Workspace::open(directory.path()) {
        Err(StorageError::WorkspaceNotOurs { why, .. }) => assert_eq!(why, expected),
        other => panic!("{other:?}"),
    };
    fs::create_dir(&path).unwrap();
    fs::write(path.join("headroom-test-1"), "precious").unwrap();
    refused("it holds files but no HEADROOM marker");
    fs::write(path.join("HEADROOM"), "precious").unwrap();
    refused("its HEADROOM says something else");
    assert_eq!(fs::read_to_string(path.join("HEADROOM")).unwrap(), "precious");
    assert_eq!(fs::read_to_string(path.join("headroom-test-1")).unwrap(), "precious");
    fs::remove_file(path.join("HEADROOM")).unwrap();
    symlink("/etc/hostname", path.join("HEADROOM")).unwrap();
    refused("its HEADROOM is no file");
    fs::remove_dir_all(&path).unwrap();

    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    symlink(fs::canonicalize(elsewhere.path()).unwrap(), &path).unwrap();
    refused("it is no directory");
    assert!(names(elsewhere.path()).is_empty());
    fs::remove_file(&path).unwrap();
    fs::write(&path, "precious").unwrap();
    refused("it is no directory");
}

/// Whether this is root; says so if not.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: needs root");
    }
    is_root
}

const NOBODY: u32 = 65_534;

#[test]
fn a_workspace_that_is_not_the_callers_own_is_refused_and_untouched() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("headroom.tmp");
    let marker = path.join("HEADROOM");
    let text =
        "Headroom works in this directory. When no headroom runs here, the directory may be deleted.\n";
    fs::create_dir(&path).unwrap();
    fs::write(&marker, text).unwrap();
    fs::write(path.join("headroom-store"), "planted").unwrap();
    let refused = |expected: &str| {
        let error = Workspace::open(directory.path()).unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
        assert!(error.remedy().is_some_and(|remedy| remedy.contains(path.to_str().unwrap())));
        assert_eq!(fs::read_to_string(&marker).unwrap(), text);
        assert_eq!(fs::read_to_string(path.join("headroom-store")).unwrap(), "planted");
    };
    chown(&path, Some(NOBODY), None).unwrap();
    refused("headroom.tmp: it belongs to user 65534, and headroom runs as user 0");
    chown(&path, Some(0), None).unwrap();
    for mode in [0o777, 0o1777, 0o730] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        refused("headroom.tmp: other users may write to it");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    chown(&marker, Some(NOBODY), None).unwrap();
    refused("headroom.tmp/HEADROOM: it belongs to user 65534, and headroom runs as user 0");
    chown(&marker, Some(0), None).unwrap();
    fs::set_permissions(&marker, fs::Permissions::from_mode(0o666)).unwrap();
    refused("headroom.tmp/HEADROOM: other users may write to it");
}

#[test]
fn a_path_that_another_user_may_lead_elsewhere_is_not_for_an_experiment_of_root() {
    if !is_root() {
        return;
    }
    let above = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = above.path().join("directory");
    fs::create_dir(&directory).unwrap();
    let link = above.path().join("link");
    symlink(&directory, &link).unwrap();
    let mut workspace = Workspace::open(&link).unwrap();
    workspace.require_private_path().unwrap();
    assert_eq!(workspace.path(), directory.join("headroom.tmp"), "no link is followed later");
    let set = |mode| fs::set_permissions(above.path(), fs::Permissions::from_mode(mode)).unwrap();
    let refused = |workspace: &mut Workspace, at: &Path, expected: &str| {
        let error = workspace.require_private_path().unwrap_err();
        assert!(matches!(&error, StorageError::PathNotPrivate { path, .. } if path == at), "{error:?}");
        assert!(error.to_string().contains(expected) && error.remedy().is_some(), "{error}");
    };
    set(0o777);
    refused(&mut workspace, above.path(), "other users may write to it");
    set(0o1777);
    workspace.require_private_path().unwrap();
    chown(above.path(), Some(NOBODY), None).unwrap();
    refused(&mut workspace, above.path(), "it belongs to user 65534");
    chown(above.path(), Some(0), None).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(fs::canonicalize("/usr").unwrap(), &link).unwrap();
    refused(&mut workspace, &link, "its path led to another directory");
    // Work by descriptors needs no such path.
    made(&workspace, MIB).unwrap();
}

/// A mount that ends with the test.
struct Bound<'a>(&'a Path);

impl Bound<'_> {
    fn new<'a>(from: &Path, at: &'a Path) -> Option<Bound<'a>> {
        let mounted = Command::new("mount").arg("--bind").arg(from).arg(at).status();
        if !mounted.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no bind mounts here");
            return None;
        }
        Some(Bound(at))
    }
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn what_is_mounted_below_a_workspace_is_never_emptied() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(elsewhere.path().join("precious"), "precious").unwrap();
    let workspace = Workspace::open(directory.path()).unwrap();
    let store = workspace.entry("store");
    let (deep, top, file) = (store.join("deep/mnt"), workspace.entry("top"), workspace.entry("file"));
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(&top).unwrap();
    fs::write(&file, "").unwrap();
    fs::write(store.join("log"), "ours").unwrap();
    let mounts = [(elsewhere.path(), &deep), (elsewhere.path(), &top)];
    let mounts: Vec<_> = mounts.into_iter().map_while(|(from, at)| Bound::new(from, at)).collect();
    let of_file = Bound::new(&elsewhere.path().join("precious"), &file);
    if mounts.len() < 2 || of_file.is_none() {
        return;
    }
    let path = workspace.path().to_path_buf();
    let error = workspace.remove().unwrap_err();
    assert_eq!(names(elsewhere.path()), ["precious"]);
    assert_eq!(error.facts(), ["files: headroom-file, headroom-store, headroom-top"]);
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("unmount")), "{error:?}");
    let again = Workspace::open(directory.path()).unwrap();
    assert_eq!(again.foreign_files(), ["headroom-file", "headroom-store", "headroom-top"]);
    drop(again);
    assert_eq!(fs::read_to_string(elsewhere.path().join("precious")).unwrap(), "precious");
    assert_eq!(names(&store), ["deep"], "what is not mounted is removed");
    drop((mounts, of_file));
    Workspace::open(directory.path()).unwrap().remove().unwrap();
    assert!(!path.exists());
}

#[test]
fn others_files_in_the_workspace_are_named_and_kept() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let victim = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(victim.path().join("file"), "precious").unwrap();
    let workspace = Workspace::open(directory.path()).unwrap();
    let path = workspace.path().to_path_buf();
    fs::write(path.join("notes.txt"), "precious").unwrap();
    symlink(fs::canonicalize(victim.path()).unwrap(), path.join("headroom-link")).unwrap();
    fs::write(workspace.entry("ours"), "x").unwrap();
    let error = workspace.remove().unwrap_err();
    assert!(matches!(error, StorageError::WorkspaceKept { .. }));
    assert_eq!(error.facts(), ["files: headroom-link, notes.txt"]);
    assert_eq!(names(&path), ["HEADROOM", "headroom-link", "notes.txt"]);
    let again = Workspace::open(directory.path()).unwrap();
    assert_eq!(again.foreign_files(), ["headroom-link", "notes.txt"]);
    drop(again);
    assert_eq!(names(&path), ["HEADROOM", "headroom-link", "notes.txt"]);
    assert_eq!(names(victim.path()), ["file"]);
}

#[test]
fn of_many_that_open_at_once_one_gets_it_and_none_breaks() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let got: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut got = 0;
                    for _ in 0..50 {
                        match Workspace::open(directory.path()) {
                            Ok(workspace) => {
                                made(&workspace, MIB).map(|_| got += 1).unwrap();
                                workspace.remove().unwrap();
                            }
                            Err(StorageError::WorkspaceInUse { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    got
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(got > 0);
    assert!(names(directory.path()).is_empty());
}

#[test]
fn a_test_file_is_all_there_and_reaches_the_storage() {
    let Some(mut disk) = LoopDisk::new(128 * MIB) else { return };
    let directory = disk.format_and_mount().to_path_buf();
    let workspace = Workspace::open(&directory).unwrap();
    let mut seen = Vec::new();
    let file = workspace
        .test_file("test-1", 20 * MIB - 5, &mut |progress| {
            seen.push(progress.done_bytes);
            assert_eq!(progress.total_bytes, 20 * MIB);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(seen.is_sorted() && seen.last() == Some(&(20 * MIB)));
    let region = file.region(Caching::Direct).unwrap();
    assert_eq!((region.bytes, region.direct, region.align_bytes), (20 * MIB, true, 512));
    let mut block = storage::AlignedBuffer::new(512, region.memory_align_bytes as usize);
    let ios = || host::disk_counters(host::DeviceNumber::parse(disk.number()).unwrap()).unwrap().ios();
    let before = ios();
    for offset in [0, 10 * MIB + 512, 20 * MIB - 512] {
        region.file.read_exact_at(&mut block, offset).unwrap();
        assert!(block.iter().any(|byte| *byte != 0));
        region.file.write_all_at(&block, offset).unwrap();
    }
    assert!(ios() >= before + 6, "each I/O is the device's");
    // Also as a file like any other it has neither holes nor unwritten extents.
    let target = storage::Target::open(file.path()).unwrap();
    target.open_for(storage::Access::ReadOnly, Caching::Direct).unwrap();
    let path = file.path().to_path_buf();
    file.remove().unwrap();
    assert!(!path.exists());
    workspace.remove().unwrap();
}

#[test]
fn a_test_file_that_is_begun_is_used_as_far_as_it_is_written_and_completed_later() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let workspace = Workspace::open(directory.path()).unwrap();
    let bytes = storage::BEGUN_BYTES_MIN + 64 * MIB;
    // Its time is up before it begins.
    let mut file = workspace.begin_test_file("test-1", bytes, Duration::ZERO, &mut go_on).unwrap();
    let begun = file.region(Caching::Buffered).unwrap().bytes;
    assert!((storage::BEGUN_BYTES_MIN..bytes).contains(&begun), "{begun}");
    assert_eq!((file.bytes(), file.path().metadata().unwrap().len()), (bytes, bytes), "its room is its own");
    let mut seen = Vec::new();
    file.complete(&mut |progress| {
        seen.push(progress.done_bytes);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(seen.is_sorted() && seen[0] >= begun && seen.last() == Some(&bytes), "no part is written twice");
    let region = file.region(Caching::Buffered).unwrap();
    assert_eq!(region.bytes, bytes);
    let mut block = vec![0; 4096];
    for offset in [0, begun - 4096, begun, bytes - 4096] {
        region.file.read_exact_at(&mut block, offset).unwrap();
        assert!(block.iter().any(|byte| *byte != 0), "{offset}");
    }
    let path = file.path().to_path_buf();
    drop(file);
    assert!(!path.exists());
}

#[test]
fn in_memory_a_test_file_is_made_through_the_page_cache_and_only_buffered_opens_it() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let workspace = Workspace::open(directory.path()).unwrap();
    let file = made(&workspace, 2 * MIB).unwrap();
    assert!(matches!(file.region(Caching::Direct), Err(StorageError::NoDirectIo { .. })));
    let region = file.region(Caching::Buffered).unwrap();
    assert_eq!((region.bytes, region.direct), (2 * MIB, false));
}

#[test]
fn a_test_file_that_would_fill_the_file_system_is_refused_beforehand() {
    let Some(mut disk) = LoopDisk::new(64 * MIB) else { return };
    let directory = disk.format_and_mount().to_path_buf();
    let workspace = Workspace::open(&directory).unwrap();
    let error = made(&workspace, 60 * MIB).unwrap_err();
    assert!(error.to_string().starts_with("cannot make a test file of 60 MiB in"), "{error}");
    let facts = error.facts();
    assert_eq!(facts[0], "wanted: 60 MiB");
    assert!(facts[1].starts_with("free: ") && facts[2].starts_with("kept free for others: "), "{facts:?}");
    assert!(error.remedy().unwrap().starts_with("a smaller one (up to "));
    made(&workspace, 40 * MIB).unwrap();
}

#[test]
fn a_file_system_that_fills_up_meanwhile_ends_the_test_file_cleanly() {
    let Some(mut disk) = LoopDisk::new(64 * MIB) else { return };
    // Without extents ext4 cannot preallocate: the space is allocated by the writes.
    let directory = disk.format_and_mount_as("ext4", &["-O", "^extents,^64bit"]).unwrap().to_path_buf();
    let workspace = Workspace::open(&directory).unwrap();
    let mut greedy = Some(File::create(directory.join("greedy")).unwrap());
    let error = workspace
        .test_file("test-1", 40 * MIB, &mut |_| {
            if let Some(mut file) = greedy.take() {
                while file.write_all(&[1; 65_536]).is_ok() {}
            }
            ControlFlow::Continue(())
        })
        .unwrap_err();
    assert!(
        matches!(&error, StorageError::Filling { source, .. } if source.raw_os_error() == Some(28)),
        "{error}"
    );
    assert_eq!(error.remedy().unwrap(), "something else filled the file system: a smaller one");
    assert_eq!(names(workspace.path()), ["HEADROOM"]);
}

#[test]
fn storage_that_fails_meanwhile_ends_the_test_file_cleanly() {
    // A disk that promises 128 MiB on a file system of 48 MiB: writes fail once that is full.
    let Some(mut small) = LoopDisk::new(48 * MIB) else { return };
    let Some(mut large) = LoopDisk::new_in(small.format_and_mount(), 128 * MIB) else { return };
    let workspace = Workspace::open(large.format_and_mount()).unwrap();
    let error = made(&workspace, 80 * MIB).map(|_| ()).unwrap_err();
    assert!(matches!(error, StorageError::Filling { .. }), "{error:?}");
    assert!(error.to_string().ends_with("it is removed again"), "{error}");
    assert_eq!(names(workspace.path()), ["HEADROOM"]);
}

#[test]
fn the_caller_may_end_the_making() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let workspace = Workspace::open(directory.path()).unwrap();
    let error = workspace.test_file("test-1", 64 * MIB, &mut |_| ControlFlow::Break(())).unwrap_err();
    assert!(matches!(error, StorageError::Interrupted { .. }));
    assert_eq!(names(workspace.path()), ["HEADROOM"]);
}
