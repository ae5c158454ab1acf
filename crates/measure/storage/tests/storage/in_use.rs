//! Storage that another process uses, or that is an image under another name, is not written to, whatever was said.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use storage::{Access, FoundFile, MadeFile, Region, StorageError, Target};
use testbed::LoopDisk;
use workload::Caching;

const MIB: u64 = 1 << 20;
const DESTROY: Access = Access::ReadWrite { destroy_data: true };

fn open(path: &Path) -> Result<Region, StorageError> {
    Target::open(path).unwrap().open_for(DESTROY, Caching::Buffered)
}

#[track_caller]
fn refused(path: &Path, expected: &str) {
    match open(path) {
        Err(error) => assert_eq!(error.facts(), [format!("use: {expected}")], "{error}"),
        Ok(_) => panic!("{} is written to", path.display()),
    }
}

fn file(directory: &Path) -> PathBuf {
    let path = directory.join("precious");
    fs::write(&path, vec![7; MIB as usize]).unwrap();
    path
}

fn directory() -> tempfile::TempDir {
    // Not in /tmp, which may be memory.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A process that says "ready" once it holds something, and ends with its standard input.
struct Holder {
    child: Child,
    /// Read to its end by no one: it is open as long as the process writes.
    _output: BufReader<ChildStdout>,
}

impl Holder {
    fn shell(script: &str, path: &Path) -> Holder {
        let script = format!("{script}; echo ready; read -r _");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "holder"]).arg(path);
        Holder::start(command)
    }

    /// A process of this program, which runs the test [`a_process_that_holds`].
    fn this_program(how: &str, path: &Path) -> Holder {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "in_use::a_process_that_holds", "--nocapture"]);
        command.env("HOLD", how).env("HELD", path);
        Holder::start(command)
    }

    fn start(mut command: Command) -> Holder {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        assert!(output.by_ref().lines().any(|line| line.unwrap() == "ready"));
        Holder { child, _output: output }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

#[test]
fn a_process_that_holds() {
    let (Ok(how), Some(path)) = (std::env::var("HOLD"), std::env::var_os("HELD")) else { return };
    let held: Box<dyn std::any::Any> = match how.as_str() {
        "sqlite" => {
            let database = rusqlite::Connection::open(path).unwrap();
            database.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0)).unwrap();
            Box::new(database)
        }
        "mapping" => {
            let file = fs::File::options().read(true).write(true).open(path).unwrap();
            let (rights, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            // SAFETY: a new mapping, which nothing uses.
            let mapped = unsafe {
                let file = std::os::fd::AsRawFd::as_raw_fd(&file);
                libc::mmap(std::ptr::null_mut(), 4096, rights, shared, file, 0)
            };
            assert_ne!(mapped, libc::MAP_FAILED);
            Box::new(())
        }
        _ => panic!("{how}"),
    };
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(held);
}

#[test]
fn a_file_that_another_process_writes_to_is_refused_with_its_name() {
    let directory = directory();
    let path = file(directory.path());
    let holder = Holder::shell("exec 3<>\"$1\"", &path);
    refused(&path, &format!("open for writing in process {} (sh)", holder.pid()));
    let link = directory.path().join("link");
    fs::hard_link(&path, &link).unwrap();
    refused(&link, &format!("open for writing in process {} (sh)", holder.pid()));
    drop(holder);
    let _reader = Holder::shell("exec 3<\"$1\"", &path);
    open(&path).unwrap();
    assert!(open(&path).is_ok(), "one of several regions of this program");
}

#[test]
fn a_file_that_another_process_has_locked_or_mapped_is_refused() {
    let directory = directory();
    let path = file(directory.path());
    let holder = Holder::shell("exec 3<\"$1\"; flock -s 3", &path);
    refused(&path, &format!("locked by process {} (sh)", holder.pid()));
    drop(holder);
    let holder = Holder::this_program("mapping", &path);
    let error = open(&path).unwrap_err();
    let expected = format!("use: mapped by process {} ", holder.pid());
    assert!(error.facts()[0].starts_with(&expected), "{:?}", error.facts());
    drop(holder);
    open(&path).unwrap();
}

#[test]
fn a_database_that_sqlite_has_open_in_another_process_is_not_written_to() {
    let directory = directory();
    let path = directory.path().join("shop.db");
    for journal in ["DELETE", "WAL"] {
        let database = rusqlite::Connection::open(&path).unwrap();
        database.pragma_update(None, "journal_mode", journal).unwrap();
        database.execute_batch("CREATE TABLE IF NOT EXISTS goods (name)").unwrap();
        drop(database);
        let before = fs::read(&path).unwrap();
        let holder = Holder::this_program("sqlite", &path);
        let error = open(&path).unwrap_err();
        let expected = format!("use: open for writing in process {} ", holder.pid());
        assert!(error.facts()[0].starts_with(&expected), "{:?}", error.facts());
        assert!(error.remedy().unwrap().contains("not even --destroy-data"));
        assert_eq!(fs::read(&path).unwrap(), before);
        drop(holder);
    }
    open(&path).unwrap();
}

/// Its descriptor waits in a socket: no process has it, and only the kernel knows.
#[test]
fn a_file_whose_writer_no_process_shows_is_refused() {
    let directory = directory();
    let path = file(directory.path());
    let _sockets = send_to_nobody(&fs::File::options().write(true).open(&path).unwrap());
    refused(&path, "open for writing, or locked, where it cannot be seen from here");
}

fn send_to_nobody(file: &fs::File) -> [std::os::unix::net::UnixStream; 2] {
    use std::os::fd::AsRawFd;
    let (sender, receiver) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut control = [0_u64; 4];
    let mut byte = 1_u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: the message and all that it names live until the call returns; `control` has room for one descriptor.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header).cast::<i32>().write(file.as_raw_fd());
        assert_eq!(libc::sendmsg(sender.as_raw_fd(), &raw const message, 0), 1);
    }
    [sender, receiver]
}

#[test]
fn a_lasting_file_that_another_process_writes_to_is_not_loaded() {
    let directory = directory();
    let path = directory.path().join("scratch.dat");
    let made = MadeFile::create(&path, 4 * MIB).unwrap();
    drop(made.fill(&mut |_| std::ops::ControlFlow::Continue(())).unwrap());
    let found = || match MadeFile::find(&path, None).unwrap() {
        FoundFile::Ours(file) => file,
        other => panic!("{other:?}"),
    };
    let holder = Holder::shell("exec 3<>\"$1\"", &path);
    let error = found().begin_load().unwrap_err();
    assert_eq!(error.facts(), [format!("use: open for writing in process {} (sh)", holder.pid())]);
    drop(holder);
    let mut file = found();
    file.begin_load().unwrap();
    let holder = Holder::shell("exec 3<>\"$1\"", &path);
    assert!(matches!(file.end_load(), Err(StorageError::InUse { .. })), "what it wrote is unknown");
    drop((holder, file));
    assert!(matches!(MadeFile::find(&path, None).unwrap(), FoundFile::Interrupted));
}

#[test]
fn a_device_that_another_process_writes_to_is_refused_by_every_node() {
    let Some(disk) = LoopDisk::new(16 * MIB) else { return };
    let directory = directory();
    let node = directory.path().join("node");
    let number = disk.number().split_once(':').unwrap();
    assert!(Command::new("mknod").arg(&node).args(["b", number.0, number.1]).status().unwrap().success());
    for (held, target) in [(disk.device(), disk.device()), (disk.device(), &node), (&node, disk.device())] {
        let holder = Holder::shell("exec 3<>\"$1\"", held);
        refused(target, &format!("open for writing in process {} (sh)", holder.pid()));
    }
    let holder = Holder::this_program("mapping", disk.device());
    let error = open(disk.device()).unwrap_err();
    let expected = format!("use: mapped by process {} ", holder.pid());
    assert!(error.facts()[0].starts_with(&expected), "{:?}", error.facts());
    drop(holder);
    // The file that the device lies on.
    let holder = Holder::shell("exec 3<>\"$1\"", &disk.backing_file());
    refused(disk.device(), &format!("open for writing in process {} (sh)", holder.pid()));
    drop(holder);
    let _reader = Holder::shell("exec 3<\"$1\"", disk.device());
    open(disk.device()).unwrap();
}

/// Mounts that go with the test.
struct Mounted(PathBuf);

impl Mounted {
    fn new(arguments: &[&str], point: &Path) -> Option<Mounted> {
        let mounted =
            Command::new("mount").args(arguments).arg(point).status().is_ok_and(|status| status.success());
        if !mounted {
            eprintln!("skipped: mount {arguments:?} is refused here");
        }
        mounted.then(|| Mounted(point.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A loop device that goes with the test.
struct Attached(String);

impl Attached {
    fn new(more: &[&str], image: &Path) -> Attached {
        let output =
            Command::new("losetup").args(more).args(["--find", "--show"]).arg(image).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Attached(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    fn name(&self) -> &str {
        self.0.strip_prefix("/dev/").unwrap()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// Two over one image; one over another.
#[test]
fn a_loop_device_is_in_use_through_others_over_the_same_storage() {
    if LoopDisk::new(MIB).is_none() {
        return;
    }
    let directory = directory();
    let image = file(directory.path());
    let (one, other) = (Attached::new(&[], &image), Attached::new(&["--offset", "4096"], &image));
    for (this, that) in [(&one, &other), (&other, &one)] {
        refused(Path::new(&this.0), &format!("{} is attached to the same storage", that.name()));
    }
    drop(other);
    open(Path::new(&one.0)).unwrap();
    assert!(Command::new("mkfs.ext4").args(["-q", &one.0]).status().unwrap().success());
    let point = directory.path().join("mounted");
    fs::create_dir(&point).unwrap();
    let Some(_mounted) = Mounted::new(&[&one.0], &point) else { return };
    let above = Attached::new(&[], Path::new(&one.0));
    refused(Path::new(&above.0), &format!("mounted at {}", point.canonicalize().unwrap().display()));
}

#[test]
fn the_image_of_a_loop_device_is_known_through_overlays_and_bind_mounts() {
    if LoopDisk::new(MIB).is_none() {
        return;
    }
    let directory = directory();
    let at = |name: &str| directory.path().canonicalize().unwrap().join(name);
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(at(name)).unwrap();
    }
    let layers = ["lowerdir", "upperdir", "workdir"].into_iter().zip(["lower", "upper", "work"]);
    let layers: Vec<String> = layers.map(|(key, name)| format!("{key}={}", at(name).display())).collect();
    let (options, merged) = (layers.join(","), at("merged"));
    let Some(_overlay) = Mounted::new(&["-t", "overlay", "overlay", "-o", &options], &merged) else { return };
    let shown = file(&merged);
    let stored = at("upper/precious");
    let bound = at("bound");
    fs::write(&bound, "").unwrap();
    for (read_only, image) in [(false, &shown), (true, &shown), (false, &stored), (true, &stored)] {
        let attached = Attached::new(if read_only { &["--read-only"] } else { &[] }, image);
        let expected = format!("backing {}", attached.name());
        refused(&shown, &expected);
        refused(&stored, &expected);
        for source in [&shown, &stored] {
            let Some(_bind) = Mounted::new(&["--bind", source.to_str().unwrap()], &bound) else { return };
            refused(&bound, &expected);
        }
    }
    let holder = Holder::shell("exec 3<>\"$1\"", &stored);
    refused(&shown, &format!("open for writing in process {} (sh)", holder.pid()));
    drop(holder);
    let holder = Holder::shell("exec 3<>\"$1\"", &shown);
    refused(&stored, &format!("open for writing in process {} (sh)", holder.pid()));
    drop(holder);
    assert_ne!(fs::metadata(&shown).unwrap().dev(), fs::metadata(&stored).unwrap().dev());
    open(&stored).unwrap();
    open(&shown).unwrap();
}
