use crate::in_use::refuse_in_use;
use crate::loop_device::LoopDevice;
use crate::model::Model;
use crate::process::Process;
use crate::server::DISK;
use crate::{LunError, throttle};
use host::Mounts;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use workload::{CapKind, format_bytes};

/// Where LUNs are registered, made and taken away.
#[derive(Clone, Debug)]
pub struct Registry {
    root: PathBuf,
}

/// What a LUN is to be.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Its size, bytes: a multiple of 4096.
    pub bytes: u64,
    /// Where its file is to lie; `None`: beside its record.
    pub directory: Option<PathBuf>,
    /// The file's space is set aside; otherwise it grows as it is written.
    pub allocate: bool,
    /// What the kernel limits.
    pub caps: Vec<LunCap>,
    /// What Headroom serves.
    pub model: Option<Model>,
}

/// A limit of a LUN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LunCap {
    /// What is limited.
    pub kind: CapKind,
    /// Most operations or bytes a second.
    pub per_second: u64,
}

/// The record of a LUN.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lun {
    /// Its number here.
    pub id: u32,
    /// When it was made, nanoseconds since 1970.
    pub made_unix_ns: u64,
    /// The block device, once there is one.
    pub device: Option<PathBuf>,
    /// Its number, "7:3".
    pub number: Option<String>,
    /// The file that holds its content.
    pub file: PathBuf,
    /// The file's device and inode: another file of that name is not ours.
    inode: (u64, u64),
    /// Its size.
    pub bytes: u64,
    /// What the kernel limits.
    pub caps: Vec<LunCap>,
    /// What Headroom serves.
    pub model: Option<Model>,
    /// The process that serves it.
    pub server: Option<Process>,
    /// The process that is making it.
    maker: Option<Process>,
}

/// What there is of a registered LUN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LunState {
    /// All of it.
    Ready,
    /// Another process is just making it.
    Making,
    /// Not all: what is missing.
    Broken(Vec<&'static str>),
}

const RECORD: &str = "lun.json";
/// The record while it is written.
const NEW_RECORD: &str = "lun.json.new";
/// More at once is a mistake.
const LUNS_MAX: u32 = 4096;
/// The serving process mounts its file within a moment.
const SERVED_MAX: Duration = Duration::from_secs(10);
/// After its mount is gone it ends by itself.
const END_MAX: Duration = Duration::from_secs(2);
/// File systems need some for themselves.
const ALIGN_BYTES: u64 = 4096;

impl Registry {
    /// The one of this host.
    pub fn here() -> Registry {
        Registry::at("/var/lib/headroom/luns")
    }

    /// One whose records lie in that directory, which need not be there.
    pub fn at(root: impl Into<PathBuf>) -> Registry {
        Registry { root: root.into() }
    }

    /// Makes a LUN. Where that fails, what was made so far is taken away again. `program`, told `luns serve ROOT ID`,
    /// is to call [`serve`](crate::serve).
    ///
    /// # Errors
    /// [`LunError`].
    pub fn create(&self, asked: &Asked, program: &Path) -> Result<Lun, LunError> {
        check(asked)?;
        let mut lun = self.register(asked)?;
        match self.set_up(&mut lun, asked, program) {
            Ok(()) => Ok(lun),
            Err(error) => {
                // The first failure is the one to tell.
                let _ = self.take_away(&lun);
                Err(error)
            }
        }
    }

    /// What was made, by number, and what there is of it.
    ///
    /// # Errors
    /// [`LunError::Record`] for a record that cannot be read; [`LunError::Io`].
    pub fn list(&self) -> Result<Vec<(Lun, LunState)>, LunError> {
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(LunError::io("read", &self.root))?,
        };
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        let mut luns = Vec::new();
        for id in numbers {
            // A directory without a record: whoever made it was killed at once, or is about to write it.
            match self.record(id) {
                // … or it is removed just now.
                Err(LunError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
                lun => {
                    let lun = lun?;
                    let state = self.state(&lun);
                    luns.push((lun, state));
                }
            }
        }
        Ok(luns)
    }

    /// The LUN with that device.
    ///
    /// # Errors
    /// [`LunError::NotOurs`], and those of [`Registry::list`].
    pub fn of_device(&self, device: &Path) -> Result<Lun, LunError> {
        let found = self.list()?.into_iter().map(|(lun, _)| lun);
        let is_it = |lun: &Lun| lun.device.as_deref() == Some(device);
        let not_ours = || LunError::NotOurs(device.display().to_string());
        // The newest: an older record may name a device that went with the last start of the host.
        found.rev().find(is_it).ok_or_else(not_ours)
    }

    /// Takes a LUN away, with its content: also what a killed run or a restart of the host left of it.
    ///
    /// # Errors
    /// [`LunError::InUse`] where its device is mounted or held, and its record stays; [`LunError::Io`].
    pub fn remove(&self, lun: &Lun) -> Result<(), LunError> {
        need_root()?;
        for device in self.attached(lun) {
            refuse_in_use(&device)?;
        }
        self.take_away(lun)
    }

    /// Reads a record.
    pub(crate) fn record(&self, id: u32) -> Result<Lun, LunError> {
        let path = self.dir(id).join(RECORD);
        let text = fs::read_to_string(&path).map_err(LunError::io("read", &path))?;
        serde_json::from_str(&text).map_err(|error| LunError::Record { path, why: error.to_string() })
    }

    /// Where a served file is mounted.
    pub(crate) fn mount_of(&self, id: u32) -> PathBuf {
        self.dir(id).join("mnt")
    }

    fn dir(&self, id: u32) -> PathBuf {
        self.root.join(id.to_string())
    }

    /// Takes a number and makes the file; on record before it is there.
    fn register(&self, asked: &Asked) -> Result<Lun, LunError> {
        fs::create_dir_all(&self.root).map_err(LunError::io("make", &self.root))?;
        self.clear_empty();
        let mut id = 0;
        while let Err(error) = fs::create_dir(self.dir(id)) {
            if error.kind() != io::ErrorKind::AlreadyExists || id >= LUNS_MAX {
                return Err(LunError::io("make", self.dir(id))(error));
            }
            id += 1;
        }
        let made_unix_ns =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
        let directory = asked.directory.clone().unwrap_or_else(|| self.dir(id));
        let directory = fs::canonicalize(&directory).map_err(LunError::io("use", &directory));
        let mut lun = Lun {
            id,
            made_unix_ns,
            device: None,
            number: None,
            file: PathBuf::new(),
            inode: (0, 0),
            bytes: asked.bytes,
            caps: asked.caps.clone(),
            model: asked.model,
            server: None,
            maker: Process::of(std::process::id()),
        };
        let made = directory.and_then(|directory| {
            lun.file = directory.join(format!("headroom-lun-{id}-{made_unix_ns}.img"));
            self.write(&lun)?;
            make_file(&lun.file, asked)
        });
        match made.and_then(|inode| {
            lun.inode = inode;
            self.write(&lun)
        }) {
            Ok(()) => Ok(lun),
            Err(error) => {
                let _ = self.take_away(&lun);
                Err(error)
            }
        }
    }

    fn set_up(&self, lun: &mut Lun, asked: &Asked, program: &Path) -> Result<(), LunError> {
        if asked.model.is_some() {
            self.start_server(lun, program)?;
        }
        let device = LoopDevice::attach(&self.beneath(lun))?;
        lun.device = Some(device.path().into());
        lun.number = Some(device.number().to_string());
        self.write(lun)?;
        for cap in &asked.caps {
            throttle::set(device.number(), cap.kind, cap.per_second)?;
        }
        lun.maker = None;
        self.write(lun)
    }

    /// What its loop device is attached to.
    fn beneath(&self, lun: &Lun) -> PathBuf {
        if lun.model.is_some() { self.mount_of(lun.id).join(DISK) } else { lun.file.clone() }
    }

    fn start_server(&self, lun: &mut Lun, program: &Path) -> Result<(), LunError> {
        let (mount, log) = (self.mount_of(lun.id), self.dir(lun.id).join("log"));
        fs::create_dir_all(&mount).map_err(LunError::io("make", &mount))?;
        let said = File::create(&log).map_err(LunError::io("make", &log))?;
        let mut command = Command::new(program);
        command.args(["luns", "serve"]).arg(&self.root).arg(lun.id.to_string());
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        // SAFETY: setsid is safe between fork and exec. Its own session: no terminal's hang-up ends it.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(LunError::io("start", program))?;
        lun.server = Process::of(child.id());
        self.write(lun)?;
        let until = Instant::now() + SERVED_MAX;
        while !mount.join(DISK).exists() {
            let ended = child.try_wait().ok().flatten().is_some();
            if ended || Instant::now() > until {
                let said = fs::read_to_string(&log).unwrap_or_default();
                let said =
                    said.trim().lines().next().unwrap_or(if ended { "it said nothing" } else { "no answer" });
                return Err(LunError::Server { file: lun.file.clone(), said: said.into() });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Loop devices on what this record made, whatever it says of them.
    fn attached(&self, lun: &Lun) -> Vec<LoopDevice> {
        let mut devices = LoopDevice::attached_to(&lun.file);
        devices.extend(LoopDevice::attached_to(&self.mount_of(lun.id).join(DISK)));
        devices
    }

    fn state(&self, lun: &Lun) -> LunState {
        if lun.maker.is_some_and(Process::lives) {
            return LunState::Making;
        }
        let mut missing = Vec::new();
        if !is_ours(lun) {
            missing.push("its file is gone");
        }
        if lun.model.is_some() && !lun.server.is_some_and(Process::lives) {
            missing.push("the process that served it has ended");
        }
        let attached = self.attached(lun);
        if !attached.iter().any(|device| Some(device.path()) == lun.device.as_deref()) {
            missing.push("its loop device is gone");
        } else if lun.maker.is_some() {
            missing.push("it was never finished");
        }
        if missing.is_empty() { LunState::Ready } else { LunState::Broken(missing) }
    }

    /// From the top down: limits and device, mount, process, file, record.
    fn take_away(&self, lun: &Lun) -> Result<(), LunError> {
        for device in self.attached(lun) {
            device.detach()?;
        }
        let mount = self.mount_of(lun.id);
        let mounts = Mounts::read().map_err(LunError::io("read", host::MOUNTINFO))?;
        if mounts.is_mount_point(&mount) {
            // Dead or alive: what a killed process served is still mounted, and answers nothing.
            match unmount(&mount, UnmountFlags::empty()) {
                Ok(()) => {}
                Err(_) => unmount(&mount, UnmountFlags::DETACH)
                    .map_err(|errno| LunError::io("unmount", &mount)(errno.into()))?,
            }
        }
        if let Some(server) = lun.server
            && !server.ends_within(END_MAX)
            && !server.kill()
        {
            let error = io::Error::from_raw_os_error(libc::ETIMEDOUT);
            return Err(LunError::io("end the process that serves", &lun.file)(error));
        }
        if is_ours(lun) {
            fs::remove_file(&lun.file).map_err(LunError::io("remove", &lun.file))?;
        }
        let dir = self.dir(lun.id);
        // The record last: as long as it is there, what is left can be found.
        for entry in fs::read_dir(&dir).map_err(LunError::io("read", &dir))?.flatten() {
            if entry.file_name() == "mnt" {
                let _ = fs::remove_dir(entry.path());
            } else if entry.file_name() != RECORD {
                let _ = fs::remove_file(entry.path());
            }
        }
        fs::remove_file(dir.join(RECORD)).map_err(LunError::io("remove", dir.join(RECORD)))?;
        fs::remove_dir(&dir).map_err(LunError::io("remove", &dir))
    }

    /// Directories of makers that were killed before they wrote a record.
    fn clear_empty(&self) {
        const YOUNG: Duration = Duration::from_secs(60);
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let old = entry.metadata().and_then(|metadata| metadata.modified()).ok();
            let old = old.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > YOUNG);
            if old && !entry.path().join(RECORD).exists() {
                let _ = fs::remove_file(entry.path().join(NEW_RECORD));
                // Only an empty one goes.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }

    /// Whole or not at all.
    fn write(&self, lun: &Lun) -> Result<(), LunError> {
        let (path, new) = (self.dir(lun.id).join(RECORD), self.dir(lun.id).join(NEW_RECORD));
        let text = serde_json::to_string_pretty(lun)
            .map_err(|error| LunError::Record { path: path.clone(), why: error.to_string() })?;
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&new, &path)).map_err(LunError::io("write", &path))
    }
}

impl Lun {
    /// "800 reads a second, 20 ms at 16 wide".
    pub fn nature(&self) -> String {
        let cap = |cap: &LunCap| match cap.kind {
            CapKind::ReadIops => format!("{} reads/s", cap.per_second),
            CapKind::WriteIops => format!("{} writes/s", cap.per_second),
            CapKind::ReadBytes => format!("reads {}/s", format_bytes(cap.per_second)),
            CapKind::WriteBytes => format!("writes {}/s", format_bytes(cap.per_second)),
        };
        let mut words: Vec<String> = self.caps.iter().map(cap).collect();
        if let Some(model) = &self.model {
            let width = model.width.map_or("any number at once".into(), |width| format!("{width} wide"));
            words.push(format!("{} at {width}", workload::format_ns(model.latency_ns as f64)));
            if let Some(stalls) = model.stalls {
                words.push(format!(
                    "stalls {} every {}",
                    workload::format_ns(stalls.stall_ns as f64),
                    workload::format_ns(stalls.every_ns as f64)
                ));
            }
            if let Some(bytes) = model.cache_bytes {
                words.push(format!("write cache {}", format_bytes(bytes)));
            }
        }
        if words.is_empty() { "as the file below".into() } else { words.join(", ") }
    }
}

fn need_root() -> Result<(), LunError> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(LunError::NotRoot) }
}

fn check(asked: &Asked) -> Result<(), LunError> {
    if asked.bytes == 0 || !asked.bytes.is_multiple_of(ALIGN_BYTES) {
        let what = format!("a size of {}: give a multiple of 4K above 0", format_bytes(asked.bytes));
        return Err(LunError::Asked(what));
    }
    if let Some(model) = &asked.model {
        model.validate().map_err(LunError::Asked)?;
    }
    if asked.caps.iter().any(|cap| cap.per_second == 0) {
        return Err(LunError::Asked("a limit of 0 a second: leave it out for none".into()));
    }
    need_root()
}

/// Makes the file; its device and inode.
fn make_file(path: &Path, asked: &Asked) -> Result<(u64, u64), LunError> {
    let directory = path.parent().unwrap_or(path);
    if asked.allocate {
        let room = statvfs(directory).map_err(|errno| LunError::io("look at", directory)(errno.into()))?;
        let free_bytes = room.f_bavail.saturating_mul(room.f_frsize);
        if free_bytes < asked.bytes {
            return Err(LunError::NoRoom { directory: directory.into(), bytes: asked.bytes, free_bytes });
        }
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let file = file.map_err(LunError::io("make", path))?;
    let sized = match asked.allocate {
        true => fallocate(&file, FallocateFlags::empty(), 0, asked.bytes).map_err(io::Error::from),
        false => file.set_len(asked.bytes),
    };
    let inode = sized.and_then(|()| file.metadata()).map(|metadata| (metadata.dev(), metadata.ino()));
    inode.map_err(|error| {
        let _ = fs::remove_file(path);
        LunError::io("make", path)(error)
    })
}

/// Whether the file there is the one that was made.
fn is_ours(lun: &Lun) -> bool {
    let found = fs::symlink_metadata(&lun.file);
    // A maker that was killed between the file and its inode left a name that nobody else would choose.
    let unknown = lun.inode == (0, 0);
    found.is_ok_and(|found| found.is_file() && (unknown || (found.dev(), found.ino()) == lun.inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_maker_left_that_was_killed_before_its_record_was_whole_is_cleared() {
        let root = tempfile::tempdir().unwrap();
        let registry = Registry::at(root.path());
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let left = |id: &str, files: &[&str], old: bool| {
            let dir = root.path().join(id);
            fs::create_dir(&dir).unwrap();
            for file in files {
                fs::write(dir.join(file), "{").unwrap();
            }
            if old {
                File::open(&dir).unwrap().set_modified(hour_ago).unwrap();
            }
            dir
        };
        let gone = [left("0", &[], true), left("1", &[NEW_RECORD], true)];
        let kept = [
            left("2", &[NEW_RECORD], false),
            left("3", &[RECORD, NEW_RECORD], true),
            left("4", &["a person's"], true),
        ];
        registry.clear_empty();
        assert!(gone.iter().all(|dir| !dir.exists()));
        assert!(kept.iter().all(|dir| dir.exists()));
        assert!(kept[1].join(NEW_RECORD).exists());
    }
}
