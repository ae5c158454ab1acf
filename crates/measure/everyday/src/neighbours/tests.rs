use super::*;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testbed::LoopDisk;

/// Ended when dropped.
struct Program(Child);

impl Program {
    fn start(command: &mut Command) -> Program {
        Program(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Reads all of a file or device in small I/Os, again and again.
    fn reader(path: &Path) -> Program {
        let script = "while true; do dd if=\"$0\" of=/dev/null bs=4k iflag=direct; done";
        Program::start(Command::new("sh").args(["-c", script]).arg(path).process_group(0))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Programs that a shell started are of its group.
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This process: 1 MiB at a time, past the page cache.
struct Database {
    file: File,
    buffer: Vec<u8>,
}

const LARGE: usize = 1 << 20;

impl Database {
    fn open(path: &Path) -> Database {
        let mut options = File::options();
        let file = options.read(true).custom_flags(libc::O_DIRECT).open(path).unwrap();
        Database { file, buffer: vec![0; LARGE + (1 << 12)] }
    }

    fn read(&mut self, times: u32) {
        let at = self.buffer.as_ptr().align_offset(1 << 12);
        for _ in 0..times {
            self.file.read_exact_at(&mut self.buffer[at..at + LARGE], 0).unwrap();
        }
    }
}

const TRY_FOR: Duration = Duration::from_secs(20);

/// Samples until what is found satisfies.
fn observe(
    neighbours: &mut Neighbours,
    mut each: impl FnMut(),
    is_enough: impl Fn(&[Neighbour]) -> bool,
) -> Vec<Neighbour> {
    let began = Instant::now();
    loop {
        neighbours.sample(&[], Sharing::Never);
        each();
        std::thread::sleep(Duration::from_millis(50));
        let found = neighbours.found(&[]);
        if is_enough(&found) {
            return found;
        }
        assert!(began.elapsed() < TRY_FOR, "{found:?}");
    }
}

/// The neighbour that is the program, or one that it started.
fn done_by<'a>(found: &'a [Neighbour], program: &Program) -> Option<&'a Neighbour> {
    let pid = program.0.id();
    let started = host::children_of(pid);
    found.iter().find(|one| one.pid == pid || started.contains(&one.pid))
}

fn disk() -> Option<LoopDisk> {
    LoopDisk::new(64 << 20)
}

/// Of the device alone: what images lie on has other users too.
fn of_device(disk: &LoopDisk) -> Neighbours {
    let mut neighbours = Neighbours::new(disk.number()).unwrap();
    neighbours.storage.disks.truncate(1);
    neighbours.sample(&[], Sharing::Never);
    neighbours
}

#[test]
fn many_small_reads_beside_few_large_ones_are_a_small_part_of_the_bytes_and_a_large_one_of_the_operations() {
    // So large that it is not read to its end; without contents it takes no space.
    let Some(disk) = LoopDisk::new(16 << 30) else { return };
    let mut neighbours = of_device(&disk);
    let mut database = Database::open(disk.device());
    let mut reader = Command::new("dd");
    reader.arg(format!("if={}", disk.device().display())).args(["of=/dev/null", "bs=4k", "iflag=direct"]);
    let reader = Program::start(&mut reader);
    let is_counted = |found: &[Neighbour]| {
        done_by(found, &reader).is_some_and(|dd| dd.operations.is_none_or(|operations| operations > 2_000))
    };
    let found = observe(&mut neighbours, || database.read(100), is_counted);
    let dd = done_by(&found, &reader).unwrap();
    assert_eq!((dd.pid, dd.command.as_str(), &dd.device), (reader.0.id(), "dd", &None));
    match dd.operations_share {
        None => eprintln!("skipped: BPF programs cannot be loaded here"),
        Some(operations) => assert!(operations > 0.6 && dd.share < operations / 2.0, "{found:?}"),
    }
}

#[test]
fn a_program_below_the_database_is_named_by_its_part_of_the_disk_below() {
    let Some(mut lower) = LoopDisk::new(1 << 30) else { return };
    let Some(upper) = LoopDisk::new_in(lower.format_and_mount(), 64 << 20) else { return };
    let contents = File::options().write(true).open(upper.backing_file()).unwrap();
    contents.write_all_at(&vec![7; 64 << 20], 0).unwrap();
    contents.sync_all().unwrap();
    let mut neighbours = Neighbours::new(upper.number()).unwrap();
    neighbours.storage.disks.truncate(2);
    neighbours.sample(&[], Sharing::Never);
    let mut database = Database::open(upper.device());
    let below = Program::reader(&upper.backing_file());
    let has_part = |found: &[Neighbour]| done_by(found, &below).is_some_and(Neighbour::does_much);
    let found = observe(&mut neighbours, || database.read(4), has_part);
    let name = lower.device().file_name().unwrap().to_str().unwrap();
    assert_eq!(done_by(&found, &below).unwrap().device.as_deref(), Some(name), "{found:?}");
    assert!(found.iter().all(|one| one.pid != std::process::id()), "{found:?}");
}

#[test]
fn a_program_with_files_on_another_device_is_no_neighbour() {
    let (Some(disk), Some(other)) = (disk(), disk()) else { return };
    let mut neighbours = of_device(&disk);
    let mut database = Database::open(disk.device());
    let (here, elsewhere) = (Program::reader(disk.device()), Program::reader(other.device()));
    let found = observe(&mut neighbours, || database.read(4), |found| done_by(found, &here).is_some());
    assert!(done_by(&found, &elsewhere).is_none(), "{found:?}");
}

#[test]
fn what_an_ended_child_did_is_not_counted_again_for_its_parent() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let mut processes = Processes::default();
    processes.sample(&read_processes(Sharing::Never));
    // The child waits for a line after its work, so that it is seen before it ends; then the parent waits for another.
    let script = "(printf '%*s' 4194304 '' > \"$0\"; read line); read line";
    let mut shell = Command::new("bash");
    shell.args(["-c", script]).arg(directory.path().join("file")).stdin(Stdio::piped());
    let mut shell = Program::start(&mut shell);
    let (parent, began) = (shell.0.id(), Instant::now());
    let wait = |what: &str| {
        assert!(began.elapsed() < TRY_FOR, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    };
    let child = loop {
        processes.sample(&read_processes(Sharing::Never));
        let of_shell = |one: &&Process| one.leader.pid == parent && one.key.pid != parent;
        match processes.iter().find(of_shell) {
            Some(child) if child.io().write_bytes >= 4 << 20 => break child.key,
            _ => wait("the child does not write"),
        }
    };
    shell.0.stdin.as_mut().unwrap().write_all(b"one\n").unwrap();
    while ProcessIo::read(parent).unwrap().write_bytes < 4 << 20 {
        wait("the parent has not what its child did");
    }
    processes.sample(&read_processes(Sharing::Never));
    let of_parent = processes.with_pid(parent).unwrap().io();
    assert!(of_parent.write_bytes < 1 << 20, "{of_parent:?}");
    assert!(processes.get(child).io().write_bytes >= 4 << 20);
}

#[test]
fn a_program_on_a_btrfs_is_found_by_the_devices_of_its_file_system() {
    let Some(mut disk) = LoopDisk::new(256 << 20) else { return };
    let Some(mount) = disk.format_and_mount_as("btrfs", &[]).map(Path::to_owned) else { return };
    let file = mount.join("file");
    std::fs::write(&file, vec![7; 32 << 20]).unwrap();
    File::open(&file).unwrap().sync_all().unwrap();
    let mut neighbours = of_device(&disk);
    let reader = Program::reader(&file);
    observe(&mut neighbours, || {}, |found| done_by(found, &reader).is_some());
    drop(reader);
    disk.unmount();
}
