use crate::alignment::{self, Alignment};
use crate::{StorageError, Workspace};
use host::{DeviceNumber, MOUNTINFO, Mount, Mounts, caps_for, device_chain};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use workload::{TargetFacts, TargetKind};

/// A directory, a regular file or a block device that load can run on, and its facts.
#[derive(Clone, Debug)]
pub struct Target {
    path: PathBuf,
    facts: TargetFacts,
}

impl Target {
    /// Reads the facts of `path` without changing it. The alignment of a directory is determined on an unnamed file
    /// (`O_TMPFILE`), or in a short-lived workspace where the file system does not support that.
    ///
    /// # Errors
    /// [`StorageError::NotThere`], [`StorageError::NotATarget`], [`StorageError::NotPermitted`].
    pub fn open(path: &Path) -> Result<Target, StorageError> {
        let path = std::path::absolute(path).map_err(|error| StorageError::from_io("open", path, error))?;
        let facts = read_facts(&path, None)?;
        Ok(Target { path, facts })
    }

    /// The path given by the user, made absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The facts read when it was opened or last refreshed.
    pub fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    /// The mount point, else the path: what the volume is called in verdicts and metrics.
    pub fn place(&self) -> String {
        self.facts.mount.clone().unwrap_or_else(|| self.path.display().to_string())
    }

    /// Reads the facts again (free space, caps, devices); the alignment cannot change and is kept.
    ///
    /// # Errors
    /// As [`Target::open`]; the old facts are kept.
    pub fn refresh(&mut self) -> Result<(), StorageError> {
        self.facts = read_facts(&self.path, Some(self.alignment()))?;
        Ok(())
    }

    pub(crate) fn alignment(&self) -> Option<Alignment> {
        let memory_bytes = self.facts.memory_align_bytes;
        self.facts.direct_align_bytes.map(|offset_bytes| Alignment { offset_bytes, memory_bytes })
    }
}

/// Alignment of block devices whose logical block size is unknown.
const BLOCK_BYTES_UNKNOWN: u32 = 4096;

/// `known` is the alignment if it was determined before.
fn read_facts(path: &Path, known: Option<Option<Alignment>>) -> Result<TargetFacts, StorageError> {
    let failed = |error| StorageError::from_io("look at", path, error);
    let real = fs::canonicalize(path).map_err(failed)?;
    let metadata = fs::metadata(&real).map_err(failed)?;
    let kind = kind_of(&metadata).map_err(|found| StorageError::NotATarget { path: path.into(), found })?;

    if kind == TargetKind::BlockDevice {
        let devices = device_chain(DeviceNumber::from_dev(metadata.rdev()));
        let block = devices.first().and_then(|device| device.logical_block_bytes);
        let block = block.unwrap_or(BLOCK_BYTES_UNKNOWN);
        return Ok(TargetFacts {
            path: path.display().to_string(),
            kind,
            filesystem: None,
            mount: None,
            free_bytes: match devices.first() {
                Some(device) => device.size_bytes,
                None => size_by_end(path)?,
            },
            caps: caps_for(&devices, std::process::id()),
            devices,
            direct_align_bytes: Some(block),
            memory_align_bytes: block,
        });
    }

    let mounts =
        Mounts::read().map_err(|error| StorageError::from_io("read", Path::new(MOUNTINFO), error))?;
    let mount = mounts.mount_of(&real);
    let filesystem = mount.map(|mount| mount.filesystem.clone());
    let devices = mount.and_then(Mount::block_device).map(device_chain).unwrap_or_default();
    let space = rustix::fs::statvfs(&real).map_err(|error| failed(error.into()))?;
    let alignment = match (known, kind) {
        (Some(known), _) => known,
        (None, TargetKind::File) => {
            let file = File::open(&real).map_err(|error| StorageError::from_io("read", path, error))?;
            alignment::for_file(&file, filesystem.as_deref())
        }
        (None, _) => directory_alignment(&real, filesystem.as_deref()),
    };
    Ok(TargetFacts {
        path: path.display().to_string(),
        kind,
        mount: mount.map(|mount| mount.point.display().to_string()),
        free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
        caps: caps_for(&devices, std::process::id()),
        devices,
        direct_align_bytes: alignment.map(|alignment| alignment.offset_bytes),
        memory_align_bytes: alignment.map_or(1, |alignment| alignment.memory_bytes),
        filesystem,
    })
}

/// Size of a device that sysfs does not show.
fn size_by_end(path: &Path) -> Result<u64, StorageError> {
    let end = File::open(path).and_then(|mut device| device.seek(SeekFrom::End(0)));
    end.map_err(|error| StorageError::from_io("open", path, error))
}

fn kind_of(metadata: &fs::Metadata) -> Result<TargetKind, &'static str> {
    match metadata.file_type() {
        found if found.is_dir() => Ok(TargetKind::Directory),
        found if found.is_file() => Ok(TargetKind::File),
        found if found.is_block_device() => Ok(TargetKind::BlockDevice),
        found if found.is_char_device() => Err("character device"),
        found if found.is_fifo() => Err("pipe"),
        found if found.is_socket() => Err("socket"),
        _ => Err("thing of another kind"),
    }
}

/// `None` also where no file can be made: making the test file then reports why.
fn directory_alignment(directory: &Path, filesystem: Option<&str>) -> Option<Alignment> {
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(file) => alignment::for_new_file(&File::from(file), filesystem).ok()?,
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::NOENT) => {
            let workspace = Workspace::open(directory).ok()?;
            let file = workspace.create("probe").ok()?;
            alignment::for_new_file(&file, filesystem).ok()?
        }
        Err(_) => None,
    }
}
