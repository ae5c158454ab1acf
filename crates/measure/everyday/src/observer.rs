use crate::Error;
use crate::kernel::{Kernel, KernelCounters};
use crate::log_watch::LogWatch;
use crate::neighbours::Neighbours;
use collect::Source;
use collect::diskstats::Disk;
use filestats::{FileIdentity, FileKind, Rules, Snapshot, intervals};
use history::History;
use host::{ProcessStat, ProcessorTimes};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};
use storage::{StorageError, Target};
use verdict::{Moment, Observation, ProcessorUse};

/// Samples a database's files and the device below them at the same times.
pub struct Observer<'a> {
    source: Box<dyn Source + 'a>,
    device: Option<Disk>,
    volumes: Volumes,
    neighbours: Option<Neighbours>,
    clients: BTreeSet<u32>,
    kernel: Kernel,
    log: LogWatch,
    /// Of the last sample.
    last_of_kernel: Option<OfKernel>,
    /// Kept in memory until the end: writing them may be I/O on the storage that is observed.
    samples: Vec<Sample>,
    moments: Vec<Moment>,
}

/// The files and the device at one time.
struct Sample {
    files: Snapshot,
    device: Option<Snapshot>,
    processors: Option<Processors>,
    commits: Option<u64>,
    label: Option<&'static str>,
}

/// What the kernel counted at the time of a sample.
struct OfKernel {
    counters: KernelCounters,
    /// The log, where the database does not time it.
    log: Option<Snapshot>,
}

/// Processor time at one instant: of the host, of each process of the database, and of each that is connected to it.
struct Processors {
    host: ProcessorTimes,
    own: ProcessStats,
    clients: ProcessStats,
}

type ProcessStats = HashMap<u32, ProcessStat>;

/// Samples after which the clients are looked for again: of a server with many sessions that takes a few milliseconds.
const CLIENTS_SAMPLES: usize = 10;

impl Processors {
    fn read(own: &[u32], clients: &BTreeSet<u32>) -> Option<Processors> {
        let read = |pid: &u32| Some((*pid, ProcessStat::read(*pid)?));
        let (own, clients) = (own.iter().filter_map(read), clients.iter().filter_map(read));
        Some(Processors {
            host: ProcessorTimes::read().ok()?,
            own: own.collect(),
            clients: clients.collect(),
        })
    }

    /// `None` where the database's processes are not known.
    fn since(&self, earlier: &Processors) -> Option<ProcessorUse> {
        let share = |now, then| self.host.share_since(&earlier.host, ticks_since(now, then));
        let own = share(&self.own, &earlier.own).filter(|_| !self.own.is_empty())?;
        let clients = share(&self.clients, &earlier.clients)?;
        let busy = self.host.busy_since(&earlier.host)?;
        Some(ProcessorUse { own, clients, others: (busy - own - clients).max(0.0) })
    }
}

/// Processor time of the processes that were known then. Others may have worked for long before.
fn ticks_since(now: &ProcessStats, then: &ProcessStats) -> u64 {
    let used = now.iter().filter_map(|(pid, now)| {
        let then = then.get(pid).filter(|then| then.start_ticks == now.start_ticks)?;
        Some(now.cpu_ticks.saturating_sub(then.cpu_ticks))
    });
    used.sum()
}

/// Which files lie on the observed device.
struct Volumes {
    device: Option<String>,
    /// Whether the file system at a mount point lies on another device; filled at the first question.
    others: HashMap<String, bool>,
}

impl Volumes {
    /// Whether the file is known to lie on another device.
    fn is_other(&mut self, file: &FileIdentity) -> bool {
        let (Some(device), Some(drive)) = (&self.device, &file.drive) else { return false };
        if let Some(other) = self.others.get(drive) {
            return *other;
        }
        let target = Target::open(Path::new(drive)).ok();
        let number = target.as_ref().and_then(|target| target.facts().device_number());
        let other = number.is_some_and(|number| number != device);
        self.others.insert(drive.clone(), other);
        other
    }
}

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two calls of `is_done` and `progress`.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl<'a> Observer<'a> {
    /// An observer of a source and, where its number is known, of a device.
    pub fn new(source: Box<dyn Source + 'a>, device_number: Option<&str>) -> Observer<'a> {
        // A device without statistics in the kernel is left out; the verdict reports that as a doubt.
        let device = device_number.and_then(|number| Disk::open(number).ok());
        let volumes = Volumes { device: device_number.map(str::to_owned), others: HashMap::new() };
        let neighbours = device_number.and_then(Neighbours::new);
        let (kernel, log) = (Kernel::new(device_number), LogWatch::default());
        Observer {
            source,
            device,
            volumes,
            neighbours,
            clients: BTreeSet::new(),
            kernel,
            log,
            last_of_kernel: None,
            samples: Vec::new(),
            moments: Vec::new(),
        }
    }

    /// Takes a sample and adds the moment since the last one.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn sample(&mut self, label: Option<&'static str>) -> Result<(), Error> {
        let mut files = self.source.snapshot()?;
        if self.samples.is_empty() {
            self.log = LogWatch::begin(&files, self.source.processes());
            if self.log.is_watching() {
                // Both begin at the same time.
                files = self.source.snapshot()?;
            }
        }
        let log = self.log.snapshot();
        let of_kernel = OfKernel { counters: self.kernel.read(self.source.processes()), log };
        let device = self.device.as_mut().and_then(|device| device.snapshot().ok());
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.sample(self.source.processes());
        }
        if self.samples.len().is_multiple_of(CLIENTS_SAMPLES) {
            self.clients = host::local_clients(self.source.processes());
            // It asks the server for its counters.
            self.clients.remove(&std::process::id());
        }
        let commits = self.source.commits();
        let processors = Processors::read(self.source.processes(), &self.clients);
        if let Some((last, last_of_kernel)) = self.samples.last().zip(self.last_of_kernel.as_ref()) {
            let devices = last.device.as_ref().zip(device.as_ref());
            let both = last.processors.as_ref().zip(processors.as_ref());
            let all = intervals(&last.files, &files, Rules::default());
            let all = self.log.replace(all, last_of_kernel.log.as_ref().zip(of_kernel.log.as_ref()));
            let (elsewhere, here) = all.into_iter().partition(|file| self.volumes.is_other(&file.file));
            self.moments.push(Moment {
                ended_unix_ns: files.taken_unix_ns,
                files: here,
                elsewhere,
                device: devices
                    .and_then(|(last, now)| intervals(last, now, Rules::default()).into_iter().next()),
                processors: both.and_then(|(last, now)| now.since(last)),
                // The counter begins again when the server restarts.
                commits: last.commits.zip(commits).and_then(|(last, now)| now.checked_sub(last)),
                pressure: of_kernel.counters.pressure_since(&last_of_kernel.counters),
                caps: of_kernel.counters.caps_since(&last_of_kernel.counters),
            });
        }
        self.last_of_kernel = Some(of_kernel);
        self.samples.push(Sample { files, device, processors, commits, label });
        Ok(())
    }

    /// Takes a sample every second until `is_done`, and one at the end. `progress` is called in between; both get the
    /// time since the beginning.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn watch(
        &mut self,
        mut is_done: impl FnMut(Duration) -> bool,
        mut progress: impl FnMut(Duration),
    ) -> Result<(), Error> {
        let began = Instant::now();
        let mut due = INTERVAL;
        loop {
            let elapsed = began.elapsed();
            progress(elapsed);
            let done = is_done(elapsed);
            if done || elapsed >= due {
                self.sample(None)?;
                due = INTERVAL * (elapsed.as_secs_f64() / INTERVAL.as_secs_f64()) as u32 + INTERVAL;
            }
            if done {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Saves all samples in the history.
    ///
    /// # Errors
    /// The history cannot be written.
    pub fn save(&self, history: &mut History) -> Result<(), history::Error> {
        for sample in &self.samples {
            history.save_snapshot(&sample.files, sample.label)?;
            if let Some(device) = &sample.device {
                history.save_snapshot(device, sample.label)?;
            }
        }
        Ok(())
    }

    /// The moments observed so far, which it gives away, with the limits that are in force now on the processes that did
    /// the I/O to `path`.
    ///
    /// # Errors
    /// The target at `path` cannot be opened.
    pub fn observation(&mut self, path: &Path) -> Result<Observation, StorageError> {
        let target = Target::open(path)?;
        let mut caps = match self.source.processes() {
            [] => target.facts().caps.clone(),
            pids => pids.iter().flat_map(|pid| host::caps_for(&target.facts().devices, *pid)).collect(),
        };
        caps.sort_by(|a, b| (&a.origin, a.per_second).cmp(&(&b.origin, b.per_second)));
        caps.dedup();
        let last = self.samples.last();
        Ok(Observation {
            moments: std::mem::take(&mut self.moments),
            caps,
            reporting_delay_ns: u64::try_from(self.source.reporting_delay().as_nanos()).unwrap_or(u64::MAX),
            notes: last.map(|sample| sample.files.notes.clone()).unwrap_or_default(),
            data_bytes: last.and_then(|sample| data_bytes(&sample.files, &mut self.volumes)),
            log_timing: self.log.timing(),
            commits_one_by_one: self.source.commits_one_by_one(),
            neighbours: self
                .neighbours
                .as_mut()
                .map_or_else(Vec::new, |it| it.found(self.source.processes())),
        })
    }
}

/// Bytes of the data files on the device, where all are known.
fn data_bytes(files: &Snapshot, volumes: &mut Volumes) -> Option<u64> {
    let data = files.samples.iter().filter(|sample| sample.file.kind == FileKind::Data);
    data.filter(|sample| !volumes.is_other(&sample.file)).map(|sample| sample.size_bytes.known()).sum()
}
