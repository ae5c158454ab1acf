use crate::in_use::{in_use, refuse_in_use, users};
use crate::process::Process;
use crate::record::{Lun, LunDirectory};
use crate::{LunError, LunSpec};
use host::{MOUNTINFO, Mounts, PathError};
use loop_devices::{LoopDevice, LoopError, throttle};
use rustix::mount::{UnmountFlags, unmount};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The LUNs of this host: creates, lists and removes them.
#[derive(Clone, Debug)]
pub struct Registry {
    root: PathBuf,
}

/// How complete a registered LUN is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LunState {
    /// It can be used.
    Ready,
    /// Another process is creating it.
    Making,
    /// Parts are missing, in words.
    Broken(Vec<&'static str>),
}

/// More at once is a mistake.
const LUNS_MAX: u32 = 4096;
/// The serving process mounts its file within milliseconds.
const SERVED_MAX: Duration = Duration::from_secs(10);
const SERVED_CHECK_EVERY: Duration = Duration::from_millis(2);
/// After its mount is gone the serving process ends by itself.
const END_MAX: Duration = Duration::from_secs(2);
/// A directory without a record that is younger may belong to a process that is about to write one.
const RECORD_DELAY_MAX: Duration = Duration::from_secs(60);

impl Registry {
    /// The registry of this host.
    pub fn host() -> Registry {
        Registry::at("/var/lib/headroom/luns")
    }

    /// A registry in that directory, which need not exist.
    pub fn at(root: impl Into<PathBuf>) -> Registry {
        Registry { root: root.into() }
    }

    /// Creates a LUN. If that fails, the parts made so far are removed. `program`, run as `program lab luns serve ROOT ID`, must
    /// call [`serve`](crate::serve).
    ///
    /// # Errors
    /// [`LunError`].
    pub fn create(&self, spec: &LunSpec, program: &Path) -> Result<Lun, LunError> {
        spec.validate()?;
        need_root()?;
        let mut lun = self.register(spec)?;
        let completed = self.complete(&mut lun, spec, program);
        self.or_dismantle(lun, completed)
    }

    /// All LUNs by number, with their states.
    ///
    /// # Errors
    /// [`LunError::Record`] for a record that cannot be parsed; [`LunError::Io`].
    pub fn list(&self) -> Result<Vec<(Lun, LunState)>, LunError> {
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(LunError::io("read", &self.root))?,
        };
        let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut ids: Vec<u32> = ids.collect();
        ids.sort_unstable();
        let mut luns = Vec::new();
        for id in ids {
            match self.directory(id).read() {
                // Its maker was killed or has not written it yet, or the LUN is just removed.
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
    pub fn find_by_device(&self, device: &Path) -> Result<Lun, LunError> {
        // The newest: an older record may name a device that was lost when the host restarted.
        let newest_first = self.list()?.into_iter().map(|(lun, _)| lun).rev();
        let mut found = newest_first.filter(|lun| lun.device.as_deref() == Some(device));
        found.next().ok_or_else(|| LunError::NotOurs(device.display().to_string()))
    }

    /// Removes a LUN with its content, also one that a killed run or a restart of the host left incomplete. A file that was
    /// renamed stays, and its device is detached.
    ///
    /// # Errors
    /// [`LunError::InUse`] if its device is mounted or held, and nothing is removed; [`LunError::Io`].
    pub fn remove(&self, lun: &Lun) -> Result<(), LunError> {
        need_root()?;
        self.clear_unrecorded();
        for device in self.attached(lun) {
            refuse_in_use(&device)?;
        }
        self.dismantle(lun)
    }

    fn directory(&self, id: u32) -> LunDirectory {
        LunDirectory::new(&self.root, id)
    }

    /// Takes a number and creates the file; the record is written before the file exists.
    fn register(&self, spec: &LunSpec) -> Result<Lun, LunError> {
        fs::create_dir_all(&self.root).map_err(LunError::io("make", &self.root))?;
        self.clear_unrecorded();
        let mut id = 0;
        while let Err(error) = fs::create_dir(self.directory(id).path()) {
            if error.kind() != io::ErrorKind::AlreadyExists || id >= LUNS_MAX {
                return Err(LunError::io("make", self.directory(id).path())(error));
            }
            id += 1;
        }
        let mut lun = Lun {
            id,
            made_unix_ns: host::unix_ns(),
            device: None,
            number: None,
            file: PathBuf::new(),
            inode: (0, 0),
            bytes: spec.bytes,
            caps: spec.caps.clone(),
            model: spec.model,
            server: None,
            maker: Process::find(std::process::id()),
        };
        let registered = self.register_file(&mut lun, spec);
        self.or_dismantle(lun, registered)
    }

    fn register_file(&self, lun: &mut Lun, spec: &LunSpec) -> Result<(), LunError> {
        let own = self.directory(lun.id);
        let directory = spec.directory.as_deref().unwrap_or(own.path());
        // A user who may rename files there would have another file attached as this disk.
        host::check_directory(directory).map_err(|error| {
            let error = match error {
                PathError::Io(error) => error,
                PathError::Refused(why) => io::Error::new(io::ErrorKind::PermissionDenied, why),
            };
            LunError::io("use", directory)(error)
        })?;
        let directory = fs::canonicalize(directory).map_err(LunError::io("use", directory))?;
        lun.file = directory.join(format!("headroom-lun-{}-{}.img", lun.id, lun.made_unix_ns));
        own.write(lun)?;
        lun.inode = spec.create_file(&lun.file)?;
        own.write(lun)
    }

    fn complete(&self, lun: &mut Lun, spec: &LunSpec, program: &Path) -> Result<(), LunError> {
        let own = self.directory(lun.id);
        let below = match spec.model {
            Some(_) => {
                self.start_server(lun, program)?;
                own.disk()
            }
            None => lun.file.clone(),
        };
        let device = LoopDevice::attach(&below)?;
        lun.device = Some(device.path().into());
        lun.number = Some(device.number().to_string());
        own.write(lun)?;
        for cap in &spec.caps {
            throttle::set(device.number(), cap.kind, cap.per_second)?;
        }
        lun.maker = None;
        own.write(lun)
    }

    /// The LUN, or the error after its parts are removed.
    fn or_dismantle(&self, lun: Lun, made: Result<(), LunError>) -> Result<Lun, LunError> {
        match made {
            Ok(()) => Ok(lun),
            Err(error) => {
                // A second failure would hide the first.
                let _ = self.dismantle(&lun);
                Err(error)
            }
        }
    }

    fn start_server(&self, lun: &mut Lun, program: &Path) -> Result<(), LunError> {
        let own = self.directory(lun.id);
        let (mount, log) = (own.mount_point(), own.log());
        fs::create_dir_all(&mount).map_err(LunError::io("make", &mount))?;
        let output = File::create(&log).map_err(LunError::io("make", &log))?;
        let mut command = Command::new(program);
        command.args(["lab", "luns", "serve"]).arg(&self.root).arg(lun.id.to_string());
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        // SAFETY: setsid is safe between fork and exec. Its own session: no terminal's hang-up ends it.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(LunError::io("start", program))?;
        lun.server = Process::find(child.id());
        own.write(lun)?;
        let deadline = Instant::now() + SERVED_MAX;
        while !own.disk().exists() {
            let has_ended = child.try_wait().ok().flatten().is_some();
            if has_ended || Instant::now() > deadline {
                let text = fs::read_to_string(&log).unwrap_or_default();
                let silent = if has_ended { "it said nothing" } else { "no answer" };
                let message = text.trim().lines().next().unwrap_or(silent).to_owned();
                return Err(LunError::Server { file: lun.file.clone(), message });
            }
            std::thread::sleep(SERVED_CHECK_EVERY);
        }
        Ok(())
    }

    /// Loop devices on the files of this LUN, whether the record names them or not. The device of the record is known also
    /// where its file was renamed.
    fn attached(&self, lun: &Lun) -> Vec<LoopDevice> {
        let disk = self.directory(lun.id).disk();
        LoopDevice::attached(|device| {
            let is_recorded = lun.number.as_ref() == Some(&device.number.to_string());
            device.is_attached_to(&lun.file)
                || device.is_attached_to(&disk)
                || is_recorded && device.is_attached_to_inode(lun.inode)
        })
    }

    fn state(&self, lun: &Lun) -> LunState {
        if lun.maker.is_some_and(Process::is_alive) {
            return LunState::Making;
        }
        let mut missing = Vec::new();
        if !lun.owns_file() {
            missing.push("its file is gone");
        }
        if lun.model.is_some() && !lun.server.is_some_and(Process::is_alive) {
            missing.push("the process that served it has ended");
        }
        if !self.attached(lun).iter().any(|device| Some(device.path()) == lun.device.as_deref()) {
            missing.push("its loop device is gone");
        } else if lun.maker.is_some() {
            missing.push("it was never finished");
        }
        if missing.is_empty() { LunState::Ready } else { LunState::Broken(missing) }
    }

    /// From the top down: limits and device, mount, process, file, record.
    fn dismantle(&self, lun: &Lun) -> Result<(), LunError> {
        for device in self.attached(lun) {
            detach(&device)?;
        }
        let own = self.directory(lun.id);
        unmount_served(&own.mount_point())?;
        if let Some(server) = lun.server
            && !server.ends_within(END_MAX)
            && !server.kill()
        {
            let error = io::Error::from_raw_os_error(libc::ETIMEDOUT);
            return Err(LunError::io("end the process that serves", &lun.file)(error));
        }
        if lun.owns_file() {
            fs::remove_file(&lun.file).map_err(LunError::io("remove", &lun.file))?;
        }
        own.remove()
    }

    /// Removes what makers left that were killed before they wrote a record, or another one over it.
    fn clear_unrecorded(&self) {
        let is_old = |path: &Path| {
            let changed = fs::symlink_metadata(path).and_then(|metadata| metadata.modified()).ok();
            let age = changed.and_then(|changed| changed.elapsed().ok());
            age.is_some_and(|age| age > RECORD_DELAY_MAX)
        };
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let new = entry.path().join(LunDirectory::NEW_RECORD);
            if entry.path().join(LunDirectory::RECORD).exists() {
                if is_old(&new) {
                    let _ = fs::remove_file(new);
                }
            } else if is_old(&entry.path()) {
                let _ = fs::remove_file(new);
                // Removes only an empty directory.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// Detaches a device; the error names the processes that keep it.
fn detach(device: &LoopDevice) -> Result<(), LunError> {
    match device.detach() {
        Err(LoopError::Busy(path)) => Err(match users(device) {
            users if !users.is_empty() => in_use(device, users),
            _ => LunError::io("detach", path)(io::Error::from_raw_os_error(libc::EBUSY)),
        }),
        other => Ok(other?),
    }
}

fn unmount_served(point: &Path) -> Result<(), LunError> {
    let mounts = Mounts::read().map_err(LunError::io("read", MOUNTINFO))?;
    if !mounts.is_mount_point(point) {
        return Ok(());
    }
    // The mount of a killed server stays, and answers nothing.
    let unmounted = unmount(point, UnmountFlags::empty()).or_else(|_| unmount(point, UnmountFlags::DETACH));
    unmounted.map_err(|errno| LunError::io("unmount", point)(errno.into()))
}

fn need_root() -> Result<(), LunError> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(LunError::NotRoot) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_makers_that_were_killed_before_their_record_are_cleared() {
        const RECORD: &str = LunDirectory::RECORD;
        const NEW_RECORD: &str = LunDirectory::NEW_RECORD;
        let root = tempfile::tempdir().unwrap();
        let registry = Registry::at(root.path());
        let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        let make = |id: &str, files: &[&str], is_old: bool| {
            let dir = root.path().join(id);
            fs::create_dir(&dir).unwrap();
            for file in files {
                fs::write(dir.join(file), "{").unwrap();
            }
            if is_old {
                File::open(&dir).unwrap().set_modified(hour_ago).unwrap();
            }
            dir
        };
        let gone = [make("0", &[], true), make("1", &[NEW_RECORD], true)];
        let kept = [
            make("2", &[NEW_RECORD], false),
            make("3", &[RECORD, NEW_RECORD], true),
            make("4", &["a person's"], true),
        ];
        let dir = make("5", &[RECORD, NEW_RECORD], false);
        File::options().write(true).open(dir.join(NEW_RECORD)).unwrap().set_modified(hour_ago).unwrap();
        registry.clear_unrecorded();
        assert!(dir.join(RECORD).exists() && !dir.join(NEW_RECORD).exists(), "its maker wrote it long ago");
        assert!(gone.iter().all(|dir| !dir.exists()));
        assert!(kept.iter().all(|dir| dir.exists()));
        assert!(kept[1].join(NEW_RECORD).exists());
    }
}
