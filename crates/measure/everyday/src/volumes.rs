use crate::kernel::{Kernel, KernelCounters};
use crate::moment_files::reduce_files;
use crate::neighbours::Neighbours;
use crate::recent::{Recent, SAMPLED_TOGETHER, Sharing};
use collect::diskstats::Disk;
use collect::{IoFailures, Source};
use filestats::{FileIdentity, FileKind, Snapshot};
use host::DeviceNumber;
use std::collections::{BTreeSet, HashMap};
use std::mem::discriminant;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use storage::Target;
use verdict::{CapUse, FailedIos, Moment, Observation, Pressure};
use workload::{Cap, DeviceTrouble};

/// Volumes that are observed, of those that hold a source's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The given one.
    One,
    /// All of them, the given one first.
    All,
}

/// One volume: a block device, or a file system that has none, wherever it is mounted.
pub(crate) struct Volume {
    target: Target,
    id: String,
    device: Option<Disk>,
    neighbours: Option<Neighbours>,
    kernel: Kernel,
    /// At the last sample.
    last_of_kernel: Option<Arc<KernelCounters>>,
    sharing: Sharing,
    /// When the facts of the target were last read.
    refreshed: Option<Instant>,
    /// Between the last two samples.
    pub pressure: Pressure,
    /// Counts of limits between the last two samples.
    pub caps_used: Vec<CapUse>,
    pub moments: Vec<Moment>,
    /// Troubles that its devices reported, the last of each.
    troubles: Vec<DeviceTrouble>,
    /// I/Os that failed on its files.
    failures: Vec<FailedIos>,
    /// Whether the database ever used it.
    pub was_used: bool,
}

/// The observed volumes, and which files lie on which.
pub(crate) struct Volumes {
    scope: Scope,
    /// The first is the one of files whose place is not known.
    pub all: Vec<Volume>,
    /// The volume at a mount point, `None` for one that is not observed or is memory; filled at the first question.
    places: HashMap<String, Option<usize>>,
}

/// Where files are taken to lie whose place on this host is not known.
const FIRST: usize = 0;
/// Files on further volumes are left out: the processes of the host are gone through for each volume.
const VOLUMES_MAX: usize = 16;
/// How old the facts of a volume may be, where readings are shared. A tenth less than a whole number of seconds, as volumes are judged
/// at whole ones.
const REFRESHED_EVERY: Duration = Duration::from_millis(14_900);

impl Volume {
    fn new(target: Target) -> Volume {
        let number = target.facts().device_number();
        Volume {
            id: id(&target),
            // A device without statistics in the kernel is left out; the verdict reports that as a doubt.
            device: number.and_then(|number| Disk::open(number).ok()),
            neighbours: number.and_then(Neighbours::new),
            kernel: Kernel::new(number),
            last_of_kernel: None,
            sharing: Sharing::Never,
            refreshed: None,
            pressure: Pressure::default(),
            caps_used: Vec::new(),
            moments: Vec::new(),
            troubles: Vec::new(),
            failures: Vec::new(),
            was_used: false,
            target,
        }
    }

    /// Returns the device's counters so far; also adds the I/O of each process.
    pub fn sample(&mut self, database: &[u32], sharing: Sharing) -> Option<Snapshot> {
        self.sharing = sharing;
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.sample(database, sharing);
        }
        let now = self.kernel.read(database, sharing.age(SAMPLED_TOGETHER));
        if let Some(last) = &self.last_of_kernel {
            (self.pressure, self.caps_used) = (now.pressure_since(last), now.caps_since(last));
        }
        self.last_of_kernel = Some(now);
        for trouble in host::device_troubles(&self.target.facts().devices) {
            let is_same = |known: &DeviceTrouble| {
                known.device() == trouble.device() && discriminant(known) == discriminant(&trouble)
            };
            self.troubles.retain(|known| !is_same(known));
            self.troubles.push(trouble);
        }
        static DEVICES: Recent<String, Option<Snapshot>> = Recent::new();
        let device = self.device.as_mut()?;
        let read = || device.snapshot().ok();
        Arc::unwrap_or_clone(DEVICES.get(self.id.clone(), sharing.age(SAMPLED_TOGETHER), read))
    }

    /// The moments as what was observed, with the limits that are in force now on the database's processes.
    pub fn observation(&mut self, source: &dyn Source, moments: Vec<Moment>) -> (Target, Observation) {
        let refreshed_every = self.sharing.age(REFRESHED_EVERY);
        if self.refreshed.is_none_or(|last| last.elapsed() >= refreshed_every) {
            // One that is no longer mounted keeps its facts.
            let _ = self.target.refresh();
            self.refreshed = Some(Instant::now());
        }
        let facts = self.target.facts();
        let own = [std::process::id()];
        let processes = if source.processes().is_empty() { &own[..] } else { source.processes() };
        let caps = processes.iter().flat_map(|pid| host::caps_for(&facts.devices, *pid));
        let mut caps: Vec<Cap> = caps.collect();
        caps.sort_by(|a, b| (&a.origin, a.per_second).cmp(&(&b.origin, b.per_second)));
        caps.dedup();
        let neighbours = self.neighbours.as_mut().map_or_else(Vec::new, |it| it.found(source.processes()));
        let observation = Observation {
            moments,
            caps,
            reporting_delay_ns: u64::try_from(source.reporting_delay().as_nanos()).unwrap_or(u64::MAX),
            commits_one_by_one: source.commits_one_by_one(),
            neighbours,
            troubles: std::mem::take(&mut self.troubles),
            failures: std::mem::take(&mut self.failures),
            ..Observation::default()
        };
        (self.target.clone(), observation)
    }
}

/// Identifier of a volume: a device at two mount points is one volume. A file system without a device (overlay, tmpfs,
/// NFS) has a number of its own.
fn id(target: &Target) -> String {
    if let Some(number) = target.facts().device_number() {
        return number.to_owned();
    }
    let device = std::fs::metadata(target.path()).map(|metadata| metadata.dev());
    device.map_or_else(|_| String::new(), |dev| DeviceNumber::from_dev(dev).to_string())
}

impl Volumes {
    pub fn new(target: Target, scope: Scope) -> Volumes {
        Volumes { scope, all: vec![Volume::new(target)], places: HashMap::new() }
    }

    /// The volume that a file lies on; `None` for one that is not observed.
    pub fn volume_of(&mut self, file: &FileIdentity) -> Option<usize> {
        file.drive.as_ref().map_or(Some(FIRST), |drive| self.volume_at(drive))
    }

    /// The observed volumes whose files the source does not count apart, the first and those at `mounts`.
    pub fn undivided(&mut self, mounts: &[String]) -> Vec<usize> {
        let others: BTreeSet<usize> = mounts.iter().filter_map(|mount| self.volume_at(mount)).collect();
        std::iter::once(FIRST).chain(others.into_iter().filter(|at| *at != FIRST)).collect()
    }

    fn volume_at(&mut self, drive: &str) -> Option<usize> {
        if let Some(known) = self.places.get(drive) {
            return *known;
        }
        let found = self.find(drive);
        self.places.insert(drive.to_owned(), found);
        found
    }

    fn find(&mut self, drive: &str) -> Option<usize> {
        // A drive of another host.
        let Ok(target) = Target::open(Path::new(drive)) else { return Some(FIRST) };
        let found = id(&target);
        let known = self.all.iter().position(|volume| volume.id == found);
        let in_memory = matches!(target.facts().filesystem.as_deref(), Some("tmpfs" | "ramfs"));
        if known.is_some() || in_memory || self.scope == Scope::One || self.all.len() == VOLUMES_MAX {
            return known;
        }
        self.all.push(Volume::new(target));
        Some(self.all.len() - 1)
    }

    /// Finds the volumes of files that did any I/O since their counters began, and those at `mounts`.
    pub fn discover(&mut self, files: &Snapshot, mounts: &[String]) {
        self.undivided(mounts);
        for sample in files.samples.iter().filter(|sample| sample.counters.operations() > 0) {
            self.volume_of(&sample.file);
        }
    }

    /// Drops moments that lie before the window that ends now, and what the neighbours did before it.
    pub fn keep_newest(&mut self, window: Duration) {
        let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        for volume in &mut self.all {
            let end = volume.moments.last().map_or(0, |moment| moment.ended_unix_ns);
            let begin = end.saturating_sub(window_ns);
            volume.moments.retain(|moment| moment.ended_unix_ns > begin);
            if let Some(newest) = volume.moments.last_mut() {
                reduce_files(newest);
            }
            if let Some(neighbours) = &mut volume.neighbours {
                neighbours.keep_newest(window);
            }
        }
    }

    /// Forgets all moments, and what was counted before the next sample.
    pub fn forget(&mut self) {
        for volume in &mut self.all {
            volume.moments.clear();
            volume.last_of_kernel = None;
            volume.pressure = Pressure::default();
            volume.caps_used.clear();
        }
    }

    /// The directories or mount points of the volumes.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.all.iter().map(|volume| &volume.target)
    }

    /// Keeps the failures of the observed volumes' files, all since the source was opened.
    pub fn keep_failures(&mut self, failures: &[IoFailures]) {
        self.all.iter_mut().for_each(|volume| volume.failures.clear());
        for IoFailures { process, path, drive, count } in failures {
            let place = drive.as_ref().map_or(Some(FIRST), |drive| self.volume_at(drive));
            if let Some(at) = place {
                let failed = FailedIos { process: process.clone(), path: path.clone(), count: *count };
                self.all[at].failures.push(failed);
            }
        }
    }

    /// Bytes of the data files on a volume, where all are known.
    pub fn data_bytes(&mut self, files: &Snapshot, volume: usize) -> Option<u64> {
        let data = files.samples.iter().filter(|sample| sample.file.kind == FileKind::Data);
        let here = data.filter(|sample| self.volume_of(&sample.file) == Some(volume));
        here.map(|sample| sample.size_bytes.known()).sum()
    }
}
