use crate::failure::Failure;
use crate::interrupt;
use collect::Source;
use collect::diskstats::Disk;
use filestats::{FileKind, Rules, Snapshot, intervals};
use history::History;
use std::time::{Duration, Instant};
use verdict::Moment;

/// A database's files and the device below them, looked at together once in a while.
pub struct Observer<'a> {
    source: Box<dyn Source + 'a>,
    device: Option<Disk>,
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

/// How often a snapshot is taken.
const EVERY: Duration = Duration::from_secs(1);

impl<'a> Observer<'a> {
    /// Observes a source and, where its number is known, the device.
    pub fn new(source: Box<dyn Source + 'a>, device_number: Option<&str>) -> Observer<'a> {
        // A device the kernel keeps no statistics of is left out; the verdict says so as a doubt.
        let device = device_number.and_then(|number| Disk::open(number).ok());
        Observer { source, device, looks: Vec::new(), moments: Vec::new() }
    }

    /// Takes a snapshot and adds the moment since the last one.
    pub fn look(&mut self, label: Option<&'static str>) -> Result<(), Failure> {
        let files = self.source.snapshot()?;
        let device = self.device.as_mut().and_then(|device| device.snapshot().ok());
        if let Some(then) = self.looks.last() {
            let devices = then.device.as_ref().zip(device.as_ref());
            self.moments.push(Moment {
                ended_unix_ns: files.taken_unix_ns,
                files: intervals(&then.files, &files, Rules::default()),
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

    /// Bytes of the data files at the last look, where all are known.
    pub fn data_bytes(&self) -> Option<u64> {
        let samples = &self.looks.last()?.files.samples;
        let data = samples.iter().filter(|sample| sample.file.kind == FileKind::Data);
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
