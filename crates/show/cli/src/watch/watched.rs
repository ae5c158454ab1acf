//! A watched source and the devices below its files.

use collect::diskstats::Disk;
use collect::{FileNames, Source};
use filestats::{FileIdentity, FileInterval, Rules, Snapshot, intervals};
use report::WatchedInterval;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use terminal::{Failure, SourceName};

/// A source that is sampled repeatedly, and the devices below its files.
pub struct Watched {
    name: String,
    source: Box<dyn Source>,
    /// Selected files by path or part of a path; all where it is empty.
    files: Vec<String>,
    then: Option<Snapshot>,
    /// By number, with its last snapshot.
    disks: BTreeMap<String, (Disk, Option<Snapshot>)>,
    /// The device of each directory; `None` where its file system has no single device.
    devices: BTreeMap<String, Option<String>>,
}

impl Watched {
    /// Opens a source and takes the first snapshot.
    pub fn open(name: &SourceName, files: &[String], names: &FileNames) -> Result<Watched, Failure> {
        // The kernel can only select existing files. A file that does not exist yet, and the files of a directory, are
        // selected by name.
        let is_one = |file: &Path| file.is_absolute() && file.exists() && !file.is_dir();
        let all_are = files.iter().all(|file| is_one(Path::new(file)));
        let chosen = if all_are { files.iter().map(PathBuf::from).collect() } else { Vec::new() };
        let mut source = name.open(&chosen, names)?;
        let then = source.snapshot()?;
        let mut watched = Watched {
            name: name.to_string(),
            source,
            files: files.to_vec(),
            then: None,
            disks: BTreeMap::new(),
            devices: BTreeMap::new(),
        };
        watched.sample_disks(&then);
        watched.then = Some(then);
        Ok(watched)
    }

    /// The interval since the last sample. A source that cannot be read is reported in a note and tried again.
    pub fn sample(&mut self) -> WatchedInterval {
        let now = match self.source.snapshot() {
            Ok(now) => now,
            Err(error) => return self.empty_interval(&error.to_string()),
        };
        let mut glance = match &self.then {
            Some(then) => WatchedInterval::between(then, &now),
            None => WatchedInterval::between(&now, &now),
        };
        glance.source.clone_from(&self.name);
        glance.files.retain(|file| self.shows(&file.row.file));
        glance.below.retain(|file| self.shows(&file.row.file));
        glance.devices = self.sample_disks(&now);
        self.then = Some(now);
        glance
    }

    fn empty_interval(&self, why: &str) -> WatchedInterval {
        WatchedInterval {
            source: self.name.clone(),
            ended_unix_ns: host::unix_ns(),
            elapsed_ns: None,
            files: Vec::new(),
            below: Vec::new(),
            devices: Vec::new(),
            waits: Vec::new(),
            reconciled: Vec::new(),
            notes: vec![why.into()],
        }
    }

    /// Whether a file is selected: by its whole path, by its directory, or by a part of its path or of its object's name.
    fn shows(&self, file: &FileIdentity) -> bool {
        let path = file.path.strip_suffix(" (deleted)").unwrap_or(&file.path);
        let object = file.object.as_deref().unwrap_or_default();
        let chosen = |file: &String| match file.strip_suffix('/').unwrap_or(file) {
            whole if whole.starts_with('/') => {
                // A mount point includes its file system's own I/O: "/data (file system's journal and metadata)".
                let rest = path.strip_prefix(whole);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest.starts_with(" ("))
            }
            part => path.contains(part) || object.contains(part),
        };
        self.files.is_empty() || self.files.iter().any(chosen)
    }

    /// Samples the devices below the files, new ones included.
    fn sample_disks(&mut self, snapshot: &Snapshot) -> Vec<FileInterval> {
        for sample in &snapshot.samples {
            if !self.shows(&sample.file) {
                continue;
            }
            let path = Path::new(&sample.file.path);
            let Some(dir) = path.parent().filter(|_| path.is_absolute()) else { continue };
            let dir = dir.display().to_string();
            self.add_disk_below(dir);
        }
        // A server without counters by file reports its directory.
        if self.files.is_empty()
            && let Some(dir) = self.source.directory().map(|dir| dir.display().to_string())
        {
            self.add_disk_below(dir);
        }
        let mut rows = Vec::new();
        for (disk, then) in self.disks.values_mut() {
            // A removed device has no row; its files show the failure.
            let now = disk.snapshot().ok();
            if let (Some(then), Some(now)) = (&then, &now) {
                rows.extend(intervals(then, now, Rules::default()));
            }
            *then = now;
        }
        rows
    }

    fn add_disk_below(&mut self, dir: String) {
        let number = self.devices.entry(dir).or_insert_with_key(|dir| device_of(Path::new(dir)));
        if let Some(number) = number.clone()
            && !self.disks.contains_key(&number)
            && let Ok(disk) = Disk::open(&number)
        {
            self.disks.insert(number, (disk, None));
        }
    }
}

/// "MAJOR:MINOR" of the device of a directory's file system; `None` where it has no single device (memory, a network,
/// several disks).
fn device_of(dir: &Path) -> Option<String> {
    let number = std::fs::metadata(dir).ok()?.dev();
    (libc::major(number) != 0).then(|| host::DeviceNumber::from_dev(number).to_string())
}
