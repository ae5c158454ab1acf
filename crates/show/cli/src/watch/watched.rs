//! A watched source and the devices below its files.

use super::device_load::{capability_below, load};
use capability::Capability;
use collect::diskstats::Disk;
use collect::{FileNames, Source};
use filestats::{FileIdentity, FileInterval, Rules, Snapshot, intervals};
use history::History;
use report::{WatchedDevice, WatchedInterval};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use terminal::{Failure, SourceName};

/// A source that is sampled repeatedly, and the devices below its files.
pub struct Watched {
    name: String,
    source: Box<dyn Source>,
    /// Selected files by path or part of a path; all where it is empty.
    files: Vec<String>,
    then: Option<Snapshot>,
    /// By number.
    disks: BTreeMap<String, Below>,
    /// The device of each directory; `None` where its file system has no single device.
    devices: BTreeMap<String, Option<String>>,
    history: Option<Rc<History>>,
}

/// A device below the files.
struct Below {
    disk: Disk,
    then: Option<Snapshot>,
    /// Its capability, where the history knows it.
    capability: Option<Capability>,
}

impl Watched {
    /// Opens a source and takes the first snapshot.
    pub fn open(
        name: &SourceName,
        files: &[String],
        names: &FileNames,
        history: Option<Rc<History>>,
    ) -> Result<Watched, Failure> {
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
            history,
        };
        watched.sample_disks(&then, &[]);
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
        let files: Vec<FileInterval> = glance.files.iter().map(|file| file.row.clone()).collect();
        glance.devices.retain(|device| self.shows(&device.row.file));
        glance.devices.extend(self.sample_disks(&now, &files));
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

    /// Samples the devices below the files, new ones included. `files` are the intervals that end with the snapshot.
    fn sample_disks(&mut self, snapshot: &Snapshot, files: &[FileInterval]) -> Vec<WatchedDevice> {
        for sample in &snapshot.samples {
            if !self.shows(&sample.file) {
                continue;
            }
            let path = Path::new(&sample.file.path);
            let Some(dir) = path.parent().filter(|_| path.is_absolute()) else { continue };
            self.add_disk_below(dir);
        }
        // A server without counters by file reports its directory.
        if self.files.is_empty()
            && let Some(dir) = self.source.directory().map(Path::to_owned)
        {
            self.add_disk_below(&dir);
        }
        let mut rows = Vec::new();
        for (number, below) in &mut self.disks {
            // A removed device has no row; its files show the failure.
            let now = below.disk.snapshot().ok();
            if let (Some(then), Some(now)) = (&below.then, &now) {
                let on_it = |file: &&FileInterval| {
                    let dir = Path::new(&file.file.path).parent().map(|dir| dir.display().to_string());
                    dir.and_then(|dir| self.devices.get(&dir)?.as_ref()) == Some(number)
                };
                rows.extend(intervals(then, now, Rules::default()).into_iter().map(|row| {
                    let capability = below.capability.as_ref();
                    let files = || files.iter().filter(on_it).cloned().collect();
                    let load = capability.map(|capability| load(capability, &row, files()));
                    WatchedDevice { row, load }
                }));
            }
            below.then = now;
        }
        rows
    }

    fn add_disk_below(&mut self, dir: &Path) {
        let number = self.devices.entry(dir.display().to_string()).or_insert_with(|| device_of(dir));
        if let Some(number) = number.clone()
            && !self.disks.contains_key(&number)
            && let Ok(disk) = Disk::open(&number)
        {
            let history = self.history.as_ref();
            let capability = history.and_then(|history| capability_below(history, dir));
            self.disks.insert(number, Below { disk, then: None, capability });
        }
    }
}

/// "MAJOR:MINOR" of the device of a directory's file system; `None` where it has no single device (memory, a network,
/// several disks).
fn device_of(dir: &Path) -> Option<String> {
    let number = std::fs::metadata(dir).ok()?.dev();
    (libc::major(number) != 0).then(|| host::DeviceNumber::from_dev(number).to_string())
}
