use crate::LunError;
use crate::answers::{Answer, Answers};
use crate::model::ModelledDisk;
use crate::record::LunDirectory;
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, Session, WriteFlags,
};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::configure_io_flusher_behavior;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

const DISK_INODE: INodeNo = INodeNo(2);
/// The kernel may cache attributes: the file never changes its size or rights.
const ATTRIBUTES_VALID: Duration = Duration::from_secs(86_400);
/// I/Os that the kernel has in flight at once. Its own default is 12, which would be the width of every LUN.
const IN_FLIGHT_MAX: u16 = 8192;
const WRITE_BYTES_MAX: u32 = 1 << 20;
/// Threads that receive requests; another one answers them.
const RECEIVERS: usize = 2;

/// Serves a LUN's file with the latency and width of its model until it is unmounted. Runs in a process of its own.
///
/// # Errors
/// [`LunError::Io`] if the file cannot be opened or mounted.
pub fn serve(root: &Path, id: u32) -> Result<(), LunError> {
    let directory = LunDirectory::new(root, id);
    let lun = directory.read()?;
    let Some(model) = lun.model else {
        return Err(LunError::Invalid(format!("LUN {id} has no latency to be served with")));
    };
    // The page cache holds what was written: the model's times count, not those of the disk below.
    let file = OpenOptions::new().read(true).write(true).open(&lun.file);
    let file = file.map_err(LunError::io("open", &lun.file))?;
    avoid_waiting_for_own_disk();
    let answers = Arc::new(Answers::new(model));
    let disk = Disk { file, bytes: lun.bytes, answers: Arc::clone(&answers) };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(format!("headroom-lun-{id}")),
        MountOption::Subtype("headroom".into()),
        MountOption::NoExec,
        MountOption::NoAtime,
    ];
    config.n_threads = Some(RECEIVERS);
    config.clone_fd = true;
    let mount = directory.mount_point();
    let session = Session::new(disk, &mount, &config).map_err(LunError::io("mount", &mount))?;
    // Before the threads start, which inherit it.
    request_real_time();
    std::thread::spawn(move || answers.give_in_time());
    session.run().map_err(LunError::io("serve", &mount))
}

/// Memory that this process needs must never wait for the disk that it serves (prctl(2), `PR_SET_IO_FLUSHER`).
fn avoid_waiting_for_own_disk() {
    let _ = configure_io_flusher_behavior(true);
    let _ = mlockall(MlockAllFlags::CURRENT);
}

/// The lowest real-time priority: other processes must not make the disk slower. Some containers refuse it; latencies then
/// vary.
fn request_real_time() {
    // The kernel's `struct sched_param`. Not by the C library: musl's function only says that it is not supported.
    let priority: libc::c_int = 1;
    // SAFETY: sets the scheduling of this thread and of those it will start; the kernel reads the priority during the call.
    unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

/// A file system with one file.
struct Disk {
    file: File,
    bytes: u64,
    answers: Arc<Answers>,
}

impl Disk {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_disk = inode == DISK_INODE;
        FileAttr {
            ino: inode,
            size: if is_disk { self.bytes } else { 0 },
            blocks: if is_disk { self.bytes / 512 } else { 0 },
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

    fn read_file(&self, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
        let mut data = self.answers.buffer();
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

/// The parameters of each function are those of FUSE.
impl Filesystem for Disk {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let unsupported = |what: &str| io::Error::other(format!("this kernel's FUSE has no {what}"));
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_| unsupported("asynchronous direct I/O"))?;
        config.set_max_background(IN_FLIGHT_MAX).map_err(|_| unsupported("queue so long"))?;
        config.set_congestion_threshold(IN_FLIGHT_MAX).map_err(|_| unsupported("queue so long"))?;
        config.set_max_write(WRITE_BYTES_MAX).map_err(|_| unsupported("writes so large"))?;
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == LunDirectory::DISK {
            reply.entry(&ATTRIBUTES_VALID, &self.attributes(DISK_INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&ATTRIBUTES_VALID, &self.attributes(inode));
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
        let arrived_ns = self.answers.now_ns();
        match self.read_file(offset, size) {
            Ok(data) => self.answers.keep(arrived_ns, Answer::Read(reply, data), ModelledDisk::read),
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
        let arrived_ns = self.answers.now_ns();
        let bytes = data.len() as u32;
        match self.file.write_all_at(data, offset) {
            Ok(()) => self.answers.keep(arrived_ns, Answer::Write(reply, bytes), |disk, now_ns| {
                disk.write(now_ns, u64::from(bytes))
            }),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let arrived_ns = self.answers.now_ns();
        self.answers.keep(arrived_ns, Answer::Flush(reply), |disk, now_ns| disk.flushed(now_ns));
    }
}
