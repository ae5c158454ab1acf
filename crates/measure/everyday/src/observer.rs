use crate::Error;
use crate::division::divide_moments;
use crate::log_watch::LogWatch;
use crate::low_priority::LowPriority;
use crate::processors::Processors;
use crate::recent::Sharing;
use crate::volumes::{Scope, Volume, Volumes};
use collect::Source;
use filestats::{FileInterval, Rules, Snapshot, SourceTotals, WaitInterval, intervals, wait_intervals};
use history::History;
use host::TimedSleep;
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};
use storage::Target;
use verdict::{Figures, LogTiming, Moment, Observation, is_log};

/// Samples a database's files and the devices below them at the same times.
pub struct Observer<'a> {
    source: Box<dyn Source + 'a>,
    volumes: Volumes,
    clients: BTreeSet<u32>,
    low_priority: LowPriority,
    log: LogWatch,
    /// The log by the kernel at the last sample, where the database does not time it.
    last_of_log: Option<Snapshot>,
    extent: Extent,
    /// Samples taken.
    taken: usize,
    /// Those that are kept; the last one at least. In memory: writing them may be I/O on the storage that is observed.
    samples: Vec<Sample>,
    /// Waits of sessions at each sample of a window.
    waits: VecDeque<Snapshot>,
    /// Totals of all samples; `None` where they are of no use.
    totals: Option<SourceTotals>,
    /// Time that this program was stopped since the last sample, and before it.
    stopped_ns: u64,
    left_out_ns: u64,
}

/// Extent of the observation that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it, to be judged once and saved.
    Whole,
    /// The newest, to be judged again and again.
    Window(Duration),
}

/// The files and the devices at one time.
struct Sample {
    files: Snapshot,
    /// Of the volumes that were known then.
    devices: Vec<Option<Snapshot>>,
    processors: Option<Processors>,
    commits: Option<u64>,
    writer_ns: Option<u64>,
    log_record_bytes: Option<u64>,
    label: Option<&'static str>,
}

/// Samples after which the clients are looked for again: of a server with many sessions that takes a few milliseconds.
const CLIENTS_SAMPLES: usize = 10;

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two calls of `is_done` and `progress`.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl<'a> Observer<'a> {
    /// An observer of a source whose files lie on the target's volume, and perhaps on others. It keeps all that it observes.
    pub fn new(source: Box<dyn Source + 'a>, target: Target, scope: Scope) -> Observer<'a> {
        Observer {
            source,
            volumes: Volumes::new(target, scope),
            clients: BTreeSet::new(),
            low_priority: LowPriority::default(),
            log: LogWatch::default(),
            last_of_log: None,
            extent: Extent::Whole,
            taken: 0,
            samples: Vec::new(),
            waits: VecDeque::new(),
            totals: None,
            stopped_ns: 0,
            left_out_ns: 0,
        }
    }

    /// Sets another extent.
    #[must_use]
    pub fn with_extent(self, extent: Extent) -> Observer<'a> {
        Observer { extent, ..self }
    }

    /// Adds its samples to these totals: those of another observer of the same source before.
    #[must_use]
    pub fn with_totals(self, totals: SourceTotals) -> Observer<'a> {
        Observer { totals: Some(totals), ..self }
    }

    /// Totals of [`Observer::with_totals`] and of its own samples.
    pub fn totals(&self) -> SourceTotals {
        self.totals.clone().unwrap_or_default()
    }

    /// This program was stopped for that long since the last sample: the moment that the next one ends is left out. A load of its own
    /// stood still meanwhile, and where the whole machine was stopped, so did the database.
    pub fn note_stop(&mut self, stopped_ns: u64) {
        self.stopped_ns = self.stopped_ns.saturating_add(stopped_ns);
    }

    /// Nanoseconds that this program was stopped while it observed.
    pub fn stopped_ns(&self) -> u64 {
        self.left_out_ns.saturating_add(self.stopped_ns)
    }

    /// The source.
    pub fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Forgets what was observed: after a gap the next moment begins with the next sample.
    pub fn forget(&mut self) {
        self.samples.clear();
        self.waits.clear();
        self.last_of_log = None;
        self.volumes.forget();
    }

    /// Waits of sessions over the window, or between the first and the last sample.
    pub fn waits(&self) -> Vec<WaitInterval> {
        let ends = match (self.extent, &self.samples[..]) {
            (Extent::Whole, [first, .., last]) => Some((&first.files, &last.files)),
            (Extent::Window(_), _) if self.waits.len() > 1 => self.waits.front().zip(self.waits.back()),
            _ => None,
        };
        ends.map_or_else(Vec::new, |(first, last)| wait_intervals(first, last, Rules::default()))
    }

    /// The volumes that are used, as directories or mount points, the given one first.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn find_volumes(&mut self) -> Result<Vec<Target>, Error> {
        let files = self.source.snapshot()?;
        self.volumes.discover(&files, self.source.undivided_mounts());
        Ok(self.volumes.targets().cloned().collect())
    }

    /// Takes a sample and adds the moment since the last one to each volume.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn sample(&mut self, label: Option<&'static str>) -> Result<(), Error> {
        let mut files = self.source.snapshot()?;
        if self.taken == 0 {
            self.log = LogWatch::begin(&files, self.source.processes());
            if self.log.is_watching() {
                // Both begin at the same time.
                files = self.source.snapshot()?;
            }
        }
        let log = self.log.snapshot();
        let failures = [self.source.failures(), self.log.failures()].concat();
        self.volumes.keep_failures(&failures);
        self.volumes.discover(&files, self.source.undivided_mounts());
        let processes = self.source.processes();
        let sharing = match self.extent {
            Extent::Whole => Sharing::Never,
            Extent::Window(_) => Sharing::Always,
        };
        let devices = self.volumes.all.iter_mut().map(|volume| volume.sample(processes, sharing)).collect();
        if self.taken.is_multiple_of(CLIENTS_SAMPLES) {
            self.clients = host::local_clients(self.source.processes());
            // It asks the server for its counters.
            self.clients.remove(&std::process::id());
        }
        let (commits, writer_ns) = (self.source.commits(), self.source.writer_ns());
        let log_record_bytes = self.source.log_record_bytes();
        let last = self.samples.last().and_then(|last| last.processors.as_ref());
        let processes = self.source.processes();
        let processors = Processors::read(processes, &self.clients, &mut self.low_priority, sharing, last);
        let sample = Sample { files, devices, processors, commits, writer_ns, log_record_bytes, label };
        if let Some(last) = self.samples.last() {
            let files = intervals(&last.files, &sample.files, Rules::default());
            let files = self.log.replace(files, self.last_of_log.as_ref().zip(log.as_ref()));
            let placed = place_files(&mut self.volumes, files);
            if let Some(totals) = &mut self.totals {
                add_totals(totals, &self.volumes, &placed, last, &sample);
            }
            if self.stopped_ns == 0 {
                add_moments(&mut self.volumes, placed, last, &sample);
            }
        }
        self.left_out_ns += std::mem::take(&mut self.stopped_ns);
        self.last_of_log = log;
        self.taken += 1;
        if let Extent::Window(window) = self.extent {
            self.keep_newest(&sample.files, window);
        }
        self.samples.push(sample);
        Ok(())
    }

    /// Drops what lies before the window that ends with the sample of these files.
    fn keep_newest(&mut self, files: &Snapshot, window: Duration) {
        self.samples.clear();
        self.volumes.keep_newest(window);
        self.waits.push_back(files.without_files());
        let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        let begin = files.clock_ns.saturating_sub(window_ns);
        while self.waits.front().is_some_and(|first| first.clock_ns < begin) {
            self.waits.pop_front();
        }
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
            let sleep = TimedSleep::begin(POLL_INTERVAL);
            std::thread::sleep(POLL_INTERVAL);
            self.note_stop(sleep.stopped_ns());
        }
    }

    /// Saves all samples in the history.
    ///
    /// # Errors
    /// The history cannot be written.
    pub fn save(&self, history: &mut History) -> Result<(), history::Error> {
        for sample in &self.samples {
            history.save_snapshot(&sample.files, sample.label)?;
            let mut devices = sample.devices.iter().flatten().cloned();
            if let Some(mut all) = devices.next() {
                all.samples.extend(devices.flat_map(|device| device.samples));
                history.save_snapshot(&all, sample.label)?;
            }
        }
        Ok(())
    }

    /// The newest moment of each volume, the given volume first; none before the second sample. Of files that lie on several
    /// volumes and are counted together, each volume gets its part of this moment.
    pub fn newest(&mut self) -> Vec<(&Target, Moment)> {
        let divided = self.volumes.undivided(self.source.undivided_mounts());
        let newest = |volume: &Volume| volume.moments.last().cloned();
        let mut moments: Vec<Option<Moment>> = self.volumes.all.iter().map(newest).collect();
        if divided.len() > 1 && divided.iter().all(|at| moments[*at].is_some()) {
            let mut parts: Vec<Vec<Moment>> =
                divided.iter().map(|at| moments[*at].take().into_iter().collect()).collect();
            divide_moments(&mut parts);
            divided.iter().zip(parts).for_each(|(at, mut part)| moments[*at] = part.pop());
        }
        self.volumes.targets().zip(moments).filter_map(|(target, moment)| Some((target, moment?))).collect()
    }

    /// Observations so far of each volume that the database ever used, the given volume first. One that is idle now is among
    /// them, so that its incident can end.
    pub fn observations(&mut self) -> Vec<(Target, Observation)> {
        let mut moments: Vec<Vec<Moment>> =
            self.volumes.all.iter().map(|volume| volume.moments.clone()).collect();
        let mut divided = self.volumes.undivided(self.source.undivided_mounts());
        moments.resize_with(self.volumes.all.len(), Vec::new);
        if divided.len() > 1 {
            let mut parts: Vec<Vec<Moment>> =
                divided.iter().map(|at| std::mem::take(&mut moments[*at])).collect();
            divide_moments(&mut parts);
            divided.iter().zip(parts).for_each(|(at, part)| moments[*at] = part);
        }
        let files = self.samples.last().map(|sample| &sample.files);
        let mut found = Vec::new();
        for (at, moments) in moments.into_iter().enumerate() {
            let (target, observation) = self.volumes.all[at].observation(&*self.source, moments);
            let was_used = &mut self.volumes.all[at].was_used;
            *was_used |= observation.is_used();
            if at > 0 && !*was_used {
                continue;
            }
            let notes = files.map(|files| files.notes.clone()).unwrap_or_default();
            let data_bytes = files.and_then(|files| self.volumes.data_bytes(files, at));
            let has_log = observation.moments.iter().flat_map(|moment| &moment.files).any(is_log);
            let log_timing = if has_log { self.log.timing() } else { LogTiming::default() };
            found.push((at, target, Observation { notes, data_bytes, log_timing, ..observation }));
        }
        divided.retain(|at| found.iter().any(|(used, ..)| used == at));
        let is_divided = |at: usize| divided.len() > 1 && divided.contains(&at);
        let waited =
            |observation: &Observation| Figures::from_moments(&observation.moments, None).outstanding;
        let waited_on_all: f64 = found.iter().map(|(.., observation)| waited(observation)).sum();
        let found = found.into_iter().map(|(at, target, observation)| {
            let outstanding_elsewhere = (waited_on_all - waited(&observation)).max(0.0);
            (target, Observation { divided: is_divided(at), outstanding_elsewhere, ..observation })
        });
        found.collect()
    }
}

/// Files by the volume that they lie on.
struct Placed {
    /// Of each volume.
    files: Vec<Vec<FileInterval>>,
    /// The volumes that a log lies on; `None` is one that is not observed.
    logs: BTreeSet<Option<usize>>,
}

fn place_files(volumes: &mut Volumes, files: Vec<FileInterval>) -> Placed {
    let mut placed = Placed { files: Vec::new(), logs: BTreeSet::new() };
    for file in files {
        let place = volumes.volume_of(&file.file);
        placed.files.resize_with(volumes.all.len(), Vec::new);
        if is_log(&file) {
            placed.logs.insert(place);
        }
        if let Some(at) = place {
            placed.files[at].push(file);
        }
    }
    placed.files.resize_with(volumes.all.len(), Vec::new);
    placed
}

fn add_totals(totals: &mut SourceTotals, volumes: &Volumes, placed: &Placed, last: &Sample, now: &Sample) {
    let began_unix_ns = last.files.taken_unix_ns;
    for (target, files) in volumes.targets().zip(&placed.files) {
        totals.add_files(&target.place(), files, began_unix_ns);
    }
    totals.add_waits(&wait_intervals(&last.files, &now.files, Rules::default()), began_unix_ns);
}

/// The moment between two samples, for each volume with the files on it.
fn add_moments(volumes: &mut Volumes, placed: Placed, last: &Sample, now: &Sample) {
    // The counters begin again when the server restarts.
    let grown = |counter: fn(&Sample) -> Option<u64>| {
        counter(last).zip(counter(now)).and_then(|(last, now)| now.checked_sub(last))
    };
    let commits = grown(|sample| sample.commits);
    let writer_ns = grown(|sample| sample.writer_ns);
    let log_record_bytes = grown(|sample| sample.log_record_bytes);
    let Placed { files: placed, logs } = placed;
    let device = |at: usize| {
        let [last, now] = [last, now].map(|sample| sample.devices.get(at).and_then(Option::as_ref));
        last.zip(now).and_then(|(last, now)| intervals(last, now, Rules::default()).into_iter().next())
    };
    let devices: Vec<Option<FileInterval>> = (0..volumes.all.len()).map(device).collect();
    let counted = devices.iter().flatten().filter_map(|device| device.interval.known());
    let ios = counted.map(|delta| delta.counters.read.count.saturating_add(delta.counters.write.count));
    let processors = last.processors.as_ref().zip(now.processors.as_ref());
    let processors = processors.and_then(|(last, now)| now.since(last, ios.sum()));
    for (((at, volume), device), files) in volumes.all.iter_mut().enumerate().zip(devices).zip(placed) {
        volume.moments.push(Moment {
            ended_unix_ns: now.files.taken_unix_ns,
            files: files.into(),
            log_elsewhere: logs.iter().any(|place| *place != Some(at)),
            device,
            processors,
            commits,
            writer_ns,
            log_record_bytes,
            pressure: volume.pressure,
            caps: std::mem::take(&mut volume.caps_used),
        });
    }
}
