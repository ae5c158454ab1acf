use crate::model::{Model, Timing};
use crate::registry::Lun;
use crate::{LunError, Registry};
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, Session, WriteFlags,
};
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// The one file there is.
pub(crate) const DISK: &str = "disk";
const DISK_INODE: INodeNo = INodeNo(2);
/// The file never changes its size or rights.
const FOREVER: Duration = Duration::from_secs(86_400);
/// The last of a wait is spent awake: a timer comes some microseconds late.
const AWAKE: Duration = Duration::from_micros(50);
/// I/Os that the kernel hands over at once. Its own default is 12, which would be the width of every LUN.
const IN_FLIGHT_MAX: u16 = 8192;
const WRITE_BYTES_MAX: u32 = 1 << 20;
/// Buffers kept for further reads.
const SPARE_MAX: usize = 256;
// include/uapi/linux/prctl.h
const PR_SET_IO_FLUSHER: libc::c_int = 57;
/// Threads that take requests; another answers them in time.
const TAKERS: usize = 2;

/// Serves a LUN's file with the latency and width of its model, until it is unmounted: the serving process's whole
/// life.
///
/// # Errors
/// [`LunError::Io`] where the file cannot be opened or mounted.
pub fn serve(registry: &Registry, id: u32) -> Result<(), LunError> {
    let lun = registry.record(id)?;
    let Some(model) = lun.model else {
        return Err(LunError::Asked(format!("LUN {id} has no latency to be served with")));
    };
    // The page cache holds what was written: the model's times count, not those of the disk below.
    let file = OpenOptions::new().read(true).write(true).open(&lun.file);
    let file = file.map_err(LunError::io("open", &lun.file))?;
    be_a_disk();
    let queue = Arc::new(Queue::new(model));
    let disk = Disk { file, lun, queue: Arc::clone(&queue) };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(format!("headroom-lun-{id}")),
        MountOption::Subtype("headroom".into()),
        MountOption::NoExec,
        MountOption::NoAtime,
    ];
    config.n_threads = Some(TAKERS);
    config.clone_fd = true;
    let mount = registry.mount_of(id);
    let session = Session::new(disk, &mount, &config).map_err(LunError::io("mount", &mount))?;
    // The threads that begin here inherit it.
    be_punctual();
    std::thread::spawn(move || queue.answer_in_time());
    session.run().map_err(LunError::io("serve", &mount))
}

/// Memory that this process needs must never wait for the disk that it serves (prctl(2), `PR_SET_IO_FLUSHER`).
fn be_a_disk() {
    // SAFETY: sets flags of this process, and touches none of its memory.
    unsafe {
        libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
        libc::mlockall(libc::MCL_CURRENT);
    }
}

/// Busy neighbours must not make the disk slower: real-time priority, the lowest. Refused in some containers, where
/// the latencies then stray.
fn be_punctual() {
    // SAFETY: sets the scheduling of this thread and of those it will begin.
    unsafe {
        let priority = libc::sched_param { sched_priority: 1 };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

struct Disk {
    file: File,
    lun: Lun,
    queue: Arc<Queue>,
}

/// An answer that is ready, and when it is to be given.
struct Due {
    at_ns: u64,
    order: u64,
    answer: Answer,
}

enum Answer {
    Read(ReplyData, Vec<u8>),
    Write(ReplyWrite, u32),
    Flush(ReplyEmpty),
}

/// The earliest is the greatest: the heap's first.
impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (other.at_ns, other.order).cmp(&(self.at_ns, self.order))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

struct Queue {
    began: Instant,
    waiting: Mutex<Waiting>,
    more: Condvar,
    spare: Mutex<Vec<Vec<u8>>>,
}

struct Waiting {
    timing: Timing,
    due: BinaryHeap<Due>,
    order: u64,
}

impl Queue {
    fn new(model: Model) -> Queue {
        let waiting = Waiting { timing: Timing::new(model), due: BinaryHeap::new(), order: 0 };
        Queue {
            began: Instant::now(),
            waiting: Mutex::new(waiting),
            more: Condvar::new(),
            spare: Mutex::new(Vec::new()),
        }
    }

    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an answer for its time, by the model's rule for an I/O that came at `came_ns`.
    fn keep(&self, came_ns: u64, answer: Answer, when: impl FnOnce(&mut Timing, u64) -> u64) {
        let mut waiting = self.waiting();
        let at_ns = when(&mut waiting.timing, came_ns);
        waiting.order += 1;
        let order = waiting.order;
        let first = waiting.due.peek().is_none_or(|due| due.at_ns > at_ns);
        waiting.due.push(Due { at_ns, order, answer });
        drop(waiting);
        if first {
            self.more.notify_one();
        }
    }

    /// Gives each answer when it is due.
    fn answer_in_time(&self) {
        let mut waiting = self.waiting();
        loop {
            let Some(first_ns) = waiting.due.peek().map(|due| due.at_ns) else {
                waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = Duration::from_nanos(first_ns.saturating_sub(self.now_ns()));
            if left > AWAKE {
                let woken = self.more.wait_timeout(waiting, left - AWAKE);
                waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let Some(due) = waiting.due.pop() else { continue };
            drop(waiting);
            while self.now_ns() < due.at_ns {
                std::hint::spin_loop();
            }
            self.give(due.answer);
            waiting = self.waiting();
        }
    }

    fn give(&self, answer: Answer) {
        match answer {
            Answer::Read(reply, data) => {
                reply.data(&data);
                let mut spare = self.spare();
                if spare.len() < SPARE_MAX {
                    spare.push(data);
                }
            }
            Answer::Write(reply, bytes) => reply.written(bytes),
            Answer::Flush(reply) => reply.ok(),
        }
    }
}

impl Disk {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_disk = inode == DISK_INODE;
        FileAttr {
            ino: inode,
            size: if is_disk { self.lun.bytes } else { 0 },
            blocks: if is_disk { self.lun.bytes / 512 } else { 0 },
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_disk { FileType::RegularFile } else { FileType::Directory },
            perm: if is_disk { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn read_now(&self, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
        let mut data = self.queue.spare().pop().unwrap_or_default();
        data.resize(bytes as usize, 0);
        let mut filled = 0;
        while filled < data.len() {
            match self.file.read_at(&mut data[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        data.truncate(filled);
        Ok(data)
    }
}

impl Filesystem for Disk {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let refused = |what: &str| io::Error::other(format!("this kernel's FUSE has no {what}"));
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| refused("asynchronous direct I/O"))?;
        config.set_max_background(IN_FLIGHT_MAX).map_err(|_| refused("queue so long"))?;
        config.set_congestion_threshold(IN_FLIGHT_MAX).map_err(|_| refused("queue so long"))?;
        config.set_max_write(WRITE_BYTES_MAX).map_err(|_| refused("writes so large"))?;
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == DISK {
            reply.entry(&FOREVER, &self.attributes(DISK_INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(inode));
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if inode == DISK_INODE {
            let how = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
            reply.opened(FileHandle(0), how);
        } else {
            reply.error(Errno::EISDIR);
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let came_ns = self.queue.now_ns();
        match self.read_now(offset, size) {
            Ok(data) => self.queue.keep(came_ns, Answer::Read(reply, data), Timing::read),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let came_ns = self.queue.now_ns();
        let bytes = data.len() as u32;
        match self.file.write_all_at(data, offset) {
            Ok(()) => self.queue.keep(came_ns, Answer::Write(reply, bytes), |timing, now_ns| {
                timing.write(now_ns, u64::from(bytes))
            }),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let came_ns = self.queue.now_ns();
        self.queue.keep(came_ns, Answer::Flush(reply), |timing, now_ns| timing.flushed(now_ns));
    }
}
