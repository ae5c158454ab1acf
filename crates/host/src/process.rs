//! Running processes: a pid alone may belong to another process later.

use crate::boot_id;
use crate::kernel_file::read_kernel_file;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One process, distinct from every later one with its pid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The boot it runs in.
    pub boot_id: String,
    /// The pid namespace in which `pid` is valid.
    pub pid_namespace: u64,
}

impl ProcessIdentity {
    /// This process; `None` without a readable /proc.
    pub fn own() -> Option<ProcessIdentity> {
        let pid = std::process::id();
        Some(ProcessIdentity {
            pid,
            start_ticks: start_ticks(pid)?,
            boot_id: boot_id().ok()?,
            pid_namespace: own_pid_namespace()?,
        })
    }

    /// Whether the process still runs; `None` if that cannot be seen from this pid namespace.
    pub fn is_alive(&self) -> Option<bool> {
        if boot_id().ok()? != self.boot_id {
            return Some(false);
        }
        (own_pid_namespace()? == self.pid_namespace).then(|| start_ticks(self.pid) == Some(self.start_ticks))
    }

    /// The user that it runs as; `None` once it ended, or if that cannot be seen from this pid namespace.
    pub fn user(&self) -> Option<u32> {
        let user = user_of(self.pid)?;
        // Checked afterwards: the pid may have passed to another process.
        (self.is_alive() == Some(true)).then_some(user)
    }

    /// The name of its program; `None` once it ended.
    pub fn command(&self) -> Option<String> {
        command_name(self.pid)
    }
}

fn own_pid_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|namespace| namespace.ino())
}

/// Figures of a process or thread in /proc/PID/stat (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    state: u8,
    /// Pid of its parent.
    pub parent: u32,
    /// Processor time that its threads have used, in clock ticks.
    pub cpu_ticks: u64,
    /// The part of it that they spent in the kernel.
    pub kernel_ticks: u64,
    /// Processor time of its children that have ended, in clock ticks.
    pub ended_children_ticks: u64,
    /// -20 to 19; above 0 it gives way to the other processes of its [`crate::SchedulingGroup`].
    pub nice: i8,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// It is a thread of the kernel.
    pub is_of_kernel: bool,
}

/// PF_KTHREAD of linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl ProcessStat {
    /// The process that has this pid now.
    pub fn read(pid: u32) -> Option<ProcessStat> {
        ProcessStat::parse(&read_kernel_file(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `4711 (name) S 4710 ...`: the name may hold any bytes, so that fields count from the last ")".
    fn parse(stat: &[u8]) -> Option<ProcessStat> {
        let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let mut fields = std::str::from_utf8(stat.get(after..)?).ok()?.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(4)?.parse().ok()?;
        let user: u64 = fields.nth(4)?.parse().ok()?;
        let kernel: u64 = fields.next()?.parse().ok()?;
        let (children_user, children_kernel): (u64, u64) =
            (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let nice = fields.nth(1)?.parse().ok()?;
        let start_ticks = fields.nth(2)?.parse().ok()?;
        Some(ProcessStat {
            state,
            parent,
            cpu_ticks: user.saturating_add(kernel),
            kernel_ticks: kernel,
            ended_children_ticks: children_user.saturating_add(children_kernel),
            nice,
            start_ticks,
            is_of_kernel: flags & KERNEL_THREAD != 0,
        })
    }

    /// Whether it still executes: a zombie, which only waits for its parent, does not.
    pub fn is_running(self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether a signal stopped it.
    pub fn is_stopped(self) -> bool {
        self.state == b'T'
    }
}

/// Bytes that a process had storage read and write for it, since it started (proc_pid_io(5)). Writes to the page cache count
/// when it issues them, not when the kernel writes them. Bytes of an ended child are added to its parent's when that waits for
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Read from storage.
    pub read_bytes: u64,
    /// Written, or to be written, to storage.
    pub write_bytes: u64,
}

impl ProcessIo {
    /// `None` where there is no such process, or it is another user's and this process is not root.
    pub fn read(pid: u32) -> Option<ProcessIo> {
        ProcessIo::parse(&read_kernel_file(format!("/proc/{pid}/io")).ok()?)
    }

    fn parse(text: &[u8]) -> Option<ProcessIo> {
        let text = std::str::from_utf8(text).ok()?;
        let count = |name: &str| -> Option<u64> {
            text.lines().find_map(|line| line.strip_prefix(name))?.strip_prefix(": ")?.parse().ok()
        };
        let cancelled = count("cancelled_write_bytes").unwrap_or(0);
        let write_bytes = count("write_bytes")?.saturating_sub(cancelled);
        Some(ProcessIo { read_bytes: count("read_bytes")?, write_bytes })
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: ProcessIo) -> ProcessIo {
        ProcessIo {
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            write_bytes: self.write_bytes.saturating_add(other.write_bytes),
        }
    }

    /// The difference to `other`, 0 where it is less.
    #[must_use]
    pub fn minus(self, other: ProcessIo) -> ProcessIo {
        ProcessIo {
            read_bytes: self.read_bytes.saturating_sub(other.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(other.write_bytes),
        }
    }

    /// Bytes read and written.
    pub fn bytes(self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }
}

/// When the process that has this pid now started, in clock ticks since boot; `None` where none runs.
pub fn start_ticks(pid: u32) -> Option<u64> {
    ProcessStat::read(pid).filter(|stat| stat.is_running()).map(|stat| stat.start_ticks)
}

/// The pids of all processes.
///
/// # Errors
/// If /proc is not readable.
pub fn pids() -> io::Result<Vec<u32>> {
    numbers_in(Path::new("/proc"))
}

/// The processes that a process started.
pub fn children_of(pid: u32) -> Vec<u32> {
    let is_child = |child: &u32| ProcessStat::read(*child).is_some_and(|stat| stat.parent == pid);
    pids().unwrap_or_default().into_iter().filter(is_child).collect()
}

/// The threads of a process.
///
/// # Errors
/// If there is no such process.
pub fn threads_of(pid: u32) -> io::Result<Vec<ProcessStat>> {
    let tasks = format!("/proc/{pid}/task");
    let threads = numbers_in(Path::new(&tasks))?.into_iter();
    Ok(threads
        .filter_map(|thread| ProcessStat::parse(&read_kernel_file(format!("{tasks}/{thread}/stat")).ok()?))
        .collect())
}

/// How often the threads that a process has now gave up their processor to wait for something, since they started; `None` where
/// there is no such process. Reads a file for each thread.
pub fn waits_of(pid: u32) -> Option<u64> {
    let tasks = format!("/proc/{pid}/task");
    let threads = numbers_in(Path::new(&tasks)).ok()?.into_iter();
    let waits =
        threads.filter_map(|thread| waits(&read_kernel_file(format!("{tasks}/{thread}/status")).ok()?));
    Some(waits.fold(0, u64::saturating_add))
}

/// `voluntary_ctxt_switches:\t150`
fn waits(status: &[u8]) -> Option<u64> {
    let mut lines = status.split(|byte| *byte == b'\n');
    let count = lines.find_map(|line| line.strip_prefix(b"voluntary_ctxt_switches:"))?;
    std::str::from_utf8(count).ok()?.trim().parse().ok()
}

/// The name of the program that a process runs, at most 15 bytes; `None` where there is no such process.
pub fn command_name(pid: u32) -> Option<String> {
    let name = read_kernel_file(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// The program that a process runs, " (deleted)" behind it once it is replaced; `None` where there is no such process, or it
/// is another user's and this process is not root. The file itself is not looked at: its file system may not answer.
pub fn program_of(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The user that a process runs as (its effective one); `None` where there is no such process.
pub fn user_of(pid: u32) -> Option<u32> {
    effective_user(&read_kernel_file(format!("/proc/{pid}/status")).ok()?)
}

/// `Uid:` and the real, effective, saved and file system's user (proc_pid_status(5)). A line break in the program's name,
/// in an earlier line, is escaped.
fn effective_user(status: &[u8]) -> Option<u32> {
    let status = String::from_utf8_lossy(status);
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace().nth(1)?.parse().ok()
}

pub(crate) fn numbers_in(directory: &Path) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(directory)?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_of_all_threads_of_a_process_count() {
        let before = waits_of(std::process::id()).unwrap();
        let sleeper = std::thread::spawn(|| {
            (0..20).for_each(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
            waits_of(std::process::id()).unwrap()
        });
        assert!(sleeper.join().unwrap() >= before + 20);
        assert_eq!(waits_of(u32::MAX), None);
        let status = b"Name:\tvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(waits(status), Some(150));
        assert_eq!(waits(b"voluntary_ctxt_switches:\tmany\n"), None);
    }

    use proptest::prelude::*;
    use std::process::Command;

    #[test]
    fn a_command_with_parentheses_or_odd_bytes_does_not_shift_the_fields() {
        let rest = b" 4710 7 7 0 -1 4194560 1 0 0 0 40 2 300 5 20 -7 1 0 4711 1 1";
        for name in [&b"(a) b) c"[..], b"caf\xe9 )", b"(", b""] {
            let stat =
                |state: &[u8]| ProcessStat::parse(&[b"7 (", name, b") ", state, rest].concat()).unwrap();
            assert_eq!((stat(b"S").parent, stat(b"S").start_ticks), (4710, 4711));
            assert!(stat(b"S").is_running() && !stat(b"Z").is_running() && !stat(b"X").is_running());
            assert!(stat(b"T").is_stopped());
            assert_eq!((stat(b"S").cpu_ticks, stat(b"S").kernel_ticks), (42, 2));
            assert_eq!((stat(b"S").ended_children_ticks, stat(b"S").nice), (305, -7));
        }
        assert_eq!(ProcessStat::parse(b"7 (a) S 1"), None);
    }

    #[test]
    fn the_io_of_a_process_is_what_storage_did_for_it() {
        let text = b"rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\nread_bytes: 4096\nwrite_bytes: 12288\ncancelled_write_bytes: 8192\n";
        assert_eq!(ProcessIo::parse(text).unwrap(), ProcessIo { read_bytes: 4096, write_bytes: 4096 });
        assert_eq!(ProcessIo::parse(b"read_bytes: x\n"), None);
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let before = ProcessIo::read(std::process::id()).unwrap();
        io::Write::write_all(&mut file, &[7; 1 << 20]).unwrap();
        let after = ProcessIo::read(std::process::id()).unwrap();
        assert!(after.write_bytes >= before.write_bytes + (1 << 20), "{before:?} {after:?}");
    }

    #[test]
    fn this_process_is_alive_and_its_predecessor_is_not() {
        let own = ProcessIdentity::own().unwrap();
        assert_eq!(own.is_alive(), Some(true));
        let earlier = ProcessIdentity { start_ticks: own.start_ticks - 1, ..own.clone() };
        assert_eq!(earlier.is_alive(), Some(false));
        let last_boot = ProcessIdentity { boot_id: "an earlier boot".into(), ..own.clone() };
        assert_eq!(last_boot.is_alive(), Some(false));
        let elsewhere = ProcessIdentity { pid_namespace: 1, ..own };
        assert_eq!(elsewhere.is_alive(), None);
    }

    #[test]
    fn the_user_of_a_process_is_its_effective_one() {
        let status = b"Name:\tcaf\xe9\nPid:\t7\nUid:\t1000\t0\t33\t34\nGid:\t5\t6\t7\t8\n";
        assert_eq!(effective_user(status), Some(0));
        assert_eq!(
            (effective_user(b"Uid:\tx y"), effective_user(b"Uid:\t1"), effective_user(b"")),
            (None, None, None)
        );
        let (own, files) = (ProcessIdentity::own().unwrap(), fs::metadata("/proc/self").unwrap());
        assert_eq!(own.user(), Some(files.uid()));
        assert_eq!(ProcessIdentity { start_ticks: own.start_ticks - 1, ..own }.user(), None);
        assert_eq!(user_of(u32::MAX), None);
    }

    #[test]
    fn a_child_is_found_until_it_is_killed() {
        let own = std::process::id();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(children_of(own).contains(&child.id()));
        assert!(start_ticks(child.id()) >= start_ticks(own));
        assert!(!threads_of(child.id()).unwrap().is_empty());
        child.kill().unwrap();
        while start_ticks(child.id()).is_some() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!children_of(own).contains(&child.id()));
        assert!(threads_of(child.id()).is_err() && command_name(u32::MAX).is_none());
    }

    proptest! {
        #[test]
        fn any_stat_is_parsed_or_refused(stat in any::<Vec<u8>>()) {
            let _ = ProcessStat::parse(&stat);
        }
    }
}
