use crate::process::Process;
use crate::{DiskModel, LunError};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use workload::{CapKind, format_bytes, format_ns};

/// A limit of a LUN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LunCap {
    /// Operations or bytes that the limit counts.
    pub kind: CapKind,
    /// Most operations or bytes per second.
    pub per_second: u64,
}

/// The record of a LUN, kept as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lun {
    /// Its number in the registry.
    pub id: u32,
    /// When it was made, nanoseconds since 1970.
    pub made_unix_ns: u64,
    /// The block device, once it is attached.
    pub device: Option<PathBuf>,
    /// The device's number, "7:3".
    pub number: Option<String>,
    /// The file that holds its content.
    pub file: PathBuf,
    /// The file's device and inode: another file of that name is not ours. (0, 0) until the file is made.
    pub(crate) inode: (u64, u64),
    /// Its size.
    pub bytes: u64,
    /// Limits kept by the kernel.
    pub caps: Vec<LunCap>,
    /// The disk that Headroom models on it.
    pub model: Option<DiskModel>,
    /// The process that serves the model.
    pub server: Option<Process>,
    /// The process that creates the LUN, until it is complete.
    pub(crate) maker: Option<Process>,
}

impl Lun {
    /// "800 reads/s, 20 ms at 16 wide".
    pub fn nature(&self) -> String {
        let cap = |cap: &LunCap| match cap.kind {
            CapKind::ReadIops => format!("{} reads/s", cap.per_second),
            CapKind::WriteIops => format!("{} writes/s", cap.per_second),
            CapKind::ReadBytes => format!("reads {}/s", format_bytes(cap.per_second)),
            CapKind::WriteBytes => format!("writes {}/s", format_bytes(cap.per_second)),
        };
        let mut parts: Vec<String> = self.caps.iter().map(cap).collect();
        let time = |ns: u64| format_ns(ns as f64);
        if let Some(model) = &self.model {
            let width = model.width.map_or("any number at once".into(), |width| format!("{width} wide"));
            parts.push(format!("{} at {width}", time(model.latency_ns)));
            if let Some(stalls) = model.stalls {
                parts.push(format!("stalls {} every {}", time(stalls.stall_ns), time(stalls.every_ns)));
            }
            if let Some(bytes) = model.cache_bytes {
                parts.push(format!("write cache {}", format_bytes(bytes)));
            }
        }
        if parts.is_empty() { "as the file below".into() } else { parts.join(", ") }
    }

    /// Whether the file of that name is the one that was made.
    pub(crate) fn owns_file(&self) -> bool {
        // A maker that was killed between making the file and recording its inode left a name that no other program chooses.
        let is_unrecorded = self.inode == (0, 0);
        fs::symlink_metadata(&self.file)
            .is_ok_and(|found| found.is_file() && (is_unrecorded || (found.dev(), found.ino()) == self.inode))
    }
}

/// The directory of one LUN.
pub(crate) struct LunDirectory(PathBuf);

impl LunDirectory {
    pub const RECORD: &str = "lun.json";
    /// The record while it is written.
    pub const NEW_RECORD: &str = "lun.json.new";
    /// The one file that a serving process mounts.
    pub const DISK: &str = "disk";

    /// The kernel reports mounts and backing files by their real path, so that symbolic links in `root` are resolved.
    pub fn new(root: &Path, id: u32) -> LunDirectory {
        let root = fs::canonicalize(root).unwrap_or_else(|_| root.into());
        LunDirectory(root.join(id.to_string()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn record(&self) -> PathBuf {
        self.0.join(Self::RECORD)
    }

    pub fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// Where a served file is mounted.
    pub fn mount_point(&self) -> PathBuf {
        self.0.join("mnt")
    }

    /// The served file.
    pub fn disk(&self) -> PathBuf {
        self.mount_point().join(Self::DISK)
    }

    pub fn read(&self) -> Result<Lun, LunError> {
        let path = self.record();
        let text = fs::read_to_string(&path).map_err(LunError::io("read", &path))?;
        serde_json::from_str(&text).map_err(|error| LunError::Record { path, why: error.to_string() })
    }

    /// Atomically: the record is the old or the new one after a crash.
    pub fn write(&self, lun: &Lun) -> Result<(), LunError> {
        let (path, new) = (self.record(), self.0.join(Self::NEW_RECORD));
        let text = serde_json::to_string_pretty(lun)
            .map_err(|error| LunError::Record { path: path.clone(), why: error.to_string() })?;
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&new, &path)).map_err(LunError::io("write", &path))
    }

    /// Removes the directory, the record last: as long as it is there, what remains of the LUN can be found.
    pub fn remove(&self) -> Result<(), LunError> {
        for entry in fs::read_dir(&self.0).map_err(LunError::io("read", &self.0))?.flatten() {
            if entry.path() == self.mount_point() {
                let _ = fs::remove_dir(entry.path());
            } else if entry.file_name() != Self::RECORD {
                let _ = fs::remove_file(entry.path());
            }
        }
        fs::remove_file(self.record()).map_err(LunError::io("remove", self.record()))?;
        fs::remove_dir(&self.0).map_err(LunError::io("remove", &self.0))
    }
}
