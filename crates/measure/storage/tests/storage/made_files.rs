//! Lasting files: what is taken for Headroom's own, and what never is.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use storage::{Access, FillProgress, FoundFile, MadeFile, StorageError, Target};
use workload::Caching;

const MIB: u64 = 1 << 20;

fn dir() -> tempfile::TempDir {
    // Not in /tmp, which may be memory without attributes.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn go_on(_: FillProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn make(path: &Path) -> MadeFile {
    MadeFile::create(path, 4 * MIB).unwrap().fill(&mut go_on).unwrap()
}

fn find(path: &Path) -> FoundFile {
    MadeFile::find(path, None).unwrap()
}

fn made() -> (tempfile::TempDir, PathBuf) {
    let dir = dir();
    let path = dir.path().join("scratch.dat");
    drop(make(&path));
    (dir, path)
}

#[test]
fn a_file_made_here_is_whole_marked_and_ours_later() {
    let (_dir, path) = made();
    assert_eq!(fs::metadata(&path).unwrap().len(), 4 * MIB);
    assert!(matches!(find(&path), FoundFile::Ours(file) if file.bytes() == 4 * MIB && file.in_file()));
    // It can be read at once: nothing of it is unwritten.
    let target = Target::open(&path).unwrap();
    assert_eq!(target.open_for(Access::ReadOnly, Caching::Buffered).unwrap().bytes, 4 * MIB);
    let moved = path.with_file_name("moved.dat");
    fs::rename(&path, &moved).unwrap();
    assert!(matches!(find(&moved), FoundFile::Changed), "a change like any other");
    assert!(matches!(find(&path), FoundFile::Nothing));
}

#[test]
fn after_load_it_is_still_ours_and_after_anybody_elses_writing_it_is_not() {
    let (_dir, path) = made();
    let write = |byte| fs::File::options().write(true).open(&path).unwrap().write_all_at(&[byte], 7).unwrap();
    let FoundFile::Ours(mut file) = find(&path) else { panic!("it is ours") };
    file.begin_load().unwrap();
    let FoundFile::Ours(mut second) = find(&path) else { panic!("it is ours") };
    assert!(matches!(second.begin_load(), Err(StorageError::WorkspaceInUse { .. })), "one at a time");
    write(1);
    file.end_load().unwrap();
    assert!(matches!(find(&path), FoundFile::Ours(_)));
    write(2);
    assert!(matches!(find(&path), FoundFile::Changed));
}

/// Runs a program on the file.
fn run(program: &str, arguments: &[&str], path: &Path) {
    let status = std::process::Command::new(program).args(arguments).arg(path).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

/// The time of the last write is what any program may set; a mark that depended on it alone let the data be overwritten.
#[test]
fn a_lasting_file_with_data_of_another_program_is_not_ours_once_its_time_is_set_back() {
    let (dir, path) = made();
    let original = dir.path().join("original");
    run("cp", &["--preserve=all", path.to_str().unwrap()], &original);
    let with_data = dir.path().join("with-data");
    fs::write(&with_data, vec![7; 4 << 20]).unwrap();
    run("touch", &["-r", path.to_str().unwrap()], &with_data);
    let copied = with_data.to_str().unwrap();
    type Write<'a> = &'a dyn Fn();
    let in_the_middle = || {
        fs::File::options().write(true).open(&path).unwrap().write_all_at(b"data", 2 << 20).unwrap();
    };
    let by_a_mapping = || {
        let file = fs::File::options().read(true).write(true).open(&path).unwrap();
        let (rights, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping, which is written within its bounds and nothing else uses.
        unsafe {
            let file = std::os::fd::AsRawFd::as_raw_fd(&file);
            let mapped = libc::mmap(std::ptr::null_mut(), 4096, rights, shared, file, 0);
            assert_ne!(mapped, libc::MAP_FAILED);
            mapped.cast::<u8>().write(7);
            assert_eq!(libc::munmap(mapped, 4096), 0);
        }
    };
    let by_a_copy = || run("cp", &["--preserve=all", copied], &path);
    let by_a_name_of_its_own = || {
        fs::remove_file(&path).unwrap();
        run("cp", &["--preserve=all", original.to_str().unwrap()], &path);
        in_the_middle();
    };
    let by_nothing_but_rights = || fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let changes: [(&str, Write<'_>); 5] = [
        ("written in the middle", &in_the_middle),
        ("written through a mapping", &by_a_mapping),
        ("copied onto", &by_a_copy),
        ("restored with its attributes", &by_a_name_of_its_own),
        ("other rights", &by_nothing_but_rights),
    ];
    for (name, change) in changes {
        let _ = fs::remove_file(&path);
        drop(make(&path));
        let metadata = fs::metadata(&path).unwrap();
        let recorded = recorded_mark(&path);
        change();
        let times = fs::FileTimes::new().set_modified(metadata.modified().unwrap());
        fs::File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), metadata.modified().unwrap());
        for mark in [None, Some(recorded.as_str())] {
            let found = MadeFile::find(&path, mark).unwrap();
            assert!(matches!(found, FoundFile::Changed | FoundFile::NotOurs), "{name}: {found:?}");
        }
    }
}

#[test]
fn a_mark_of_an_earlier_version_proves_nothing() {
    let (_dir, path) = made();
    let found = fs::metadata(&path).unwrap();
    let written = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
    let mark = format!("version=1 inode={} bytes={} state=whole written={written}", found.ino(), found.len());
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: two strings that end with 0, and as many bytes as are said.
    let result = unsafe {
        let attribute = c"user.headroom".as_ptr();
        libc::setxattr(name.as_ptr(), attribute, mark.as_ptr().cast(), mark.len(), 0)
    };
    assert_eq!(result, 0);
    assert!(matches!(find(&path), FoundFile::Unproven));
}

/// A program that writes all the time while the load ends, and one that has written before the file is marked.
#[test]
fn a_file_that_changes_while_it_is_marked_stays_one_under_load() {
    let (_dir, path) = made();
    let FoundFile::Ours(mut file) = find(&path) else { panic!("it is ours") };
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(file.begin_load(), Err(StorageError::InUse { .. })), "changed since it was found");
    drop(file);
    fs::remove_file(&path).unwrap();
    drop(make(&path));
    let FoundFile::Ours(mut file) = find(&path) else { panic!("it is ours") };
    file.begin_load().unwrap();
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        let result = file.end_load();
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(result, Err(StorageError::InUse { .. })), "{result:?}");
    });
    drop(file);
    assert!(matches!(find(&path), FoundFile::Interrupted));
}

/// The file system or data that may be in it now is unknown: the last write of the killed load was never
/// recorded.
#[test]
fn what_a_killed_load_left_is_not_written_to_again() {
    let (_dir, path) = made();
    let FoundFile::Ours(mut file) = find(&path) else { panic!("it is ours") };
    file.begin_load().unwrap();
    // The end of the process closes the file.
    drop(file);
    assert!(matches!(find(&path), FoundFile::Interrupted), "who has written to it since is unknown");
    fs::File::options().write(true).open(&path).unwrap().write_all_at(b"a file system", 0).unwrap();
    assert!(matches!(find(&path), FoundFile::Interrupted));
}

#[test]
fn what_took_the_name_of_a_checked_file_is_neither_written_to_nor_removed() {
    let (dir, path) = made();
    let precious = dir.path().join("precious");
    fs::write(&precious, vec![7; 4 << 20]).unwrap();
    let FoundFile::Ours(file) = find(&path) else { panic!("it is ours") };
    let moved = dir.path().join("moved");
    fs::rename(&path, &moved).unwrap();
    std::os::unix::fs::symlink(&precious, &path).unwrap();
    let target = Target::open(&path).unwrap();
    let access = Access::ReadWrite { destroy_data: true };
    let region = target.open_made(&file, access, Caching::Buffered).unwrap();
    region.file.write_all_at(b"load", 0).unwrap();
    assert_eq!(fs::read(&moved).unwrap()[..4], *b"load");
    file.remove().unwrap();
    assert_eq!(fs::read_link(&path).unwrap(), precious);
    assert_eq!(fs::read(&precious).unwrap(), vec![7; 4 << 20]);
}

#[test]
fn a_mark_counts_only_on_a_file_that_none_but_its_owner_can_have_marked() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root");
    }
    let (_dir, path) = made();
    for mode in [0o620, 0o602, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert!(matches!(find(&path), FoundFile::NotOurs), "{mode:o}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(find(&path), FoundFile::Changed));
    chown(&path, Some(65_534), None).unwrap();
    assert!(matches!(find(&path), FoundFile::NotOurs), "another user's mark");
}

#[test]
fn what_took_its_name_or_its_mark_or_its_size_is_not_ours() {
    let (dir, path) = made();
    let copy = dir.path().join("copy.dat");
    let status = std::process::Command::new("cp").arg("-a").arg(&path).arg(&copy).status().unwrap();
    assert!(status.success());
    assert!(matches!(find(&copy), FoundFile::NotOurs), "a copy is somebody's, its mark copied or not");
    fs::File::options().write(true).open(&path).unwrap().set_len(3 * MIB).unwrap();
    assert!(matches!(find(&path), FoundFile::Changed));
    fs::remove_file(&path).unwrap();
    fs::write(&path, vec![7; 4 << 20]).unwrap();
    assert!(matches!(find(&path), FoundFile::NotOurs));
    assert!(matches!(MadeFile::create(&path, MIB), Err(StorageError::Exists { .. })));
    assert_eq!(fs::read(&path).unwrap(), vec![7; 4 << 20]);
    assert!(matches!(find(dir.path()), FoundFile::NotOurs));
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("/no/where", &link).unwrap();
    assert!(
        matches!(MadeFile::create(&link, MIB), Err(StorageError::Exists { .. })),
        "not through a symlink"
    );
}

#[test]
fn one_ended_while_it_was_made_leaves_nothing_or_says_so() {
    let dir = dir();
    let path = dir.path().join("scratch.dat");
    let stopped = MadeFile::create(&path, 4 * MIB).unwrap().fill(&mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(StorageError::Interrupted { .. })));
    assert!(matches!(find(&path), FoundFile::Nothing));
    let living = MadeFile::create(&path, 4 * MIB).unwrap();
    assert!(matches!(MadeFile::find(&path, None), Err(StorageError::WorkspaceInUse { .. })));
    let mark = living.mark();
    drop(living);
    // As after kill -9: a marked file that no process has locked.
    fs::write(&path, "").unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    let recorded = format!(
        "version=2 inode={inode} {}",
        mark.split_once(" bytes").map(|(_, rest)| format!("bytes{rest}")).unwrap()
    );
    assert!(matches!(MadeFile::find(&path, Some(&recorded)).unwrap(), FoundFile::Interrupted));
    fs::remove_file(&path).unwrap();
    let huge = MadeFile::create(&path, 1 << 60);
    assert!(matches!(huge, Err(StorageError::NoRoom { .. })));
    assert!(!path.exists());
}

fn recorded_mark(path: &Path) -> String {
    let found = fs::metadata(path).unwrap();
    let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
    let written = ns(found.mtime(), found.mtime_nsec());
    let changed = ns(found.ctime(), found.ctime_nsec());
    format!(
        "version=2 inode={} bytes={} state=whole written={written} changed={changed}",
        found.ino(),
        found.len()
    )
}

#[test]
fn where_a_file_takes_no_attribute_the_recorded_mark_counts() {
    let (_dir, path) = made();
    let FoundFile::Ours(file) = find(&path) else { panic!("it is ours") };
    drop(file);
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: both are strings that end with 0.
    let result = unsafe { libc::removexattr(name.as_ptr(), c"user.headroom".as_ptr()) };
    assert_eq!(result, 0);
    assert!(matches!(find(&path), FoundFile::NotOurs));
    // The history of a file system without attributes has the times of the file as it is.
    let recorded = recorded_mark(&path);
    assert!(
        matches!(MadeFile::find(&path, Some(&recorded)).unwrap(), FoundFile::Ours(file) if !file.in_file())
    );
    assert!(matches!(MadeFile::find(&path, Some("version=2 nonsense")).unwrap(), FoundFile::NotOurs));
    fs::remove_file(&path).unwrap();
    fs::write(&path, vec![0; 4 << 20]).unwrap();
    assert!(!matches!(MadeFile::find(&path, Some(&recorded)).unwrap(), FoundFile::Ours(_)));
}
