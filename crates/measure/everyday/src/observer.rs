use crate::failure::Failure;
use crate::interrupt;
use collect::Source;
use collect::diskstats::Disk;
use filestats::{FileIdentity, FileKind, Rules, Snapshot, intervals};
use history::History;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};
use storage::Target;
use verdict::Moment;

/// A database's files and the device below them, looked at together once in a while.
pub struct Observer<'a> {
    source: Box<dyn Source + 'a>,
    device: Option<Disk>,
    volumes: Volumes,
    /// Kept in memory while it goes on: writing them would be I/O on the storage that is watched, perhaps.
    looks: Vec<Look>,
    /// What was seen so far.
    pub moments: Vec<Moment>,
}

/// One look at the files and the device.
struct Look {
    files: Snapshot,
    device: Option<Snapshot>,
    label: Option<&'static str>,
}

/// Which files lie on the device that is observed.
struct Volumes {
    device: Option<String>,
    /// Whether a mount point's file system lies on another device, once looked up.
    others: HashMap<String, bool>,
}

impl Volumes {
    /// Surely on another; where a file lies is not always known.
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

/// How often a snapshot is taken.
const EVERY: Duration = Duration::from_secs(1);

impl<'a> Observer<'a> {
    /// Observes a source and, where its number is known, the device.
    pub fn new(source: Box<dyn Source + 'a>, device_number: Option<&str>) -> Observer<'a> {
        // A device the kernel keeps no statistics of is left out; the verdict says so as a doubt.
        let device = device_number.and_then(|number| Disk::open(number).ok());
        let volumes = Volumes { device: device_number.map(str::to_owned), others: HashMap::new() };
        Observer { source, device, volumes, looks: Vec::new(), moments: Vec::new() }
    }

    /// Takes a snapshot and adds the moment since the last one.
    pub fn look(&mut self, label: Option<&'static str>) -> Result<(), Failure> {
        let files = self.source.snapshot()?;
        let device = self.device.as_mut().and_then(|device| device.snapshot().ok());
        if let Some(then) = self.looks.last() {
            let devices = then.device.as_ref().zip(device.as_ref());
            let all = intervals(&then.files, &files, Rules::default());
            let (elsewhere, here) = all.into_iter().partition(|file| self.volumes.is_other(&file.file));
            self.moments.push(Moment {
                ended_unix_ns: files.taken_unix_ns,
                files: here,
                elsewhere,
                device: devices
                    .and_then(|(then, now)| intervals(then, now, Rules::default()).into_iter().next()),
            });
        }
        self.looks.push(Look { files, device, label });
        Ok(())
    }

    /// Keeps all that was seen in the history.
    pub fn keep(&self, history: &mut History) -> Result<(), Failure> {
        for look in &self.looks {
            history.save_snapshot(&look.files, look.label)?;
            if let Some(device) = &look.device {
                history.save_snapshot(device, look.label)?;
            }
        }
        Ok(())
    }

    /// Processes whose I/O was watched.
    pub fn processes(&self) -> &[u32] {
        self.source.processes()
    }

    /// How late the source may tell what was done.
    pub fn told_late(&self) -> Duration {
        self.source.told_late()
    }

    /// What a person must know to read the figures, as of the last look.
    pub fn notes(&self) -> Vec<String> {
        self.looks.last().map(|look| look.files.notes.clone()).unwrap_or_default()
    }

    /// Bytes of the data files on the device at the last look, where all are known.
    pub fn data_bytes(&mut self) -> Option<u64> {
        let samples = &self.looks.last()?.files.samples;
        let volumes = &mut self.volumes;
        let data = samples.iter().filter(|sample| sample.file.kind == FileKind::Data);
        let data = data.filter(|sample| !volumes.is_other(&sample.file));
        data.map(|sample| sample.size_bytes.known()).sum()
    }

    /// Looks every second until `done`, or Ctrl-C; `tick` is called in between for progress.
    pub fn watch(
        &mut self,
        mut done: impl FnMut(Duration) -> bool,
        mut tick: impl FnMut(Duration),
    ) -> Result<(), Failure> {
        let began = Instant::now();
        let mut looks = 1;
        loop {
            let elapsed = began.elapsed();
            tick(elapsed);
            let end = done(elapsed) || interrupt::asked();
            if end || elapsed >= EVERY * looks {
                self.look(None)?;
                looks = (elapsed.as_secs_f64() / EVERY.as_secs_f64()) as u32 + 1;
            }
            if end {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
