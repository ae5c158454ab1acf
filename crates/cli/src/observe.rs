use crate::failure::Failure;
use crate::interrupt;
use collect::Source;
use collect::diskstats::Disk;
use filestats::{Rules, Snapshot, intervals};
use history::History;
use std::time::{Duration, Instant};
use verdict::Moment;

/// A database's files and the device below them, looked at together once in a while.
pub struct Observer<'a> {
    source: Box<dyn Source + 'a>,
    device: Option<Disk>,
    before: Option<(Snapshot, Option<Snapshot>)>,
    /// What was seen so far.
    pub moments: Vec<Moment>,
}

/// How often a snapshot is taken.
const EVERY: Duration = Duration::from_secs(1);

impl<'a> Observer<'a> {
    /// Observes a source and, where its number is known, the device.
    pub fn new(source: Box<dyn Source + 'a>, device_number: Option<&str>) -> Observer<'a> {
        // A device the kernel keeps no statistics of is left out; the verdict says so as a doubt.
        let device = device_number.and_then(|number| Disk::open(number).ok());
        Observer { source, device, before: None, moments: Vec::new() }
    }

    /// Takes a snapshot, keeps it in the history, and adds the moment since the last one.
    pub fn look(&mut self, history: &mut History, label: Option<&str>) -> Result<(), Failure> {
        let now = self.source.snapshot()?;
        let device_now = self.device.as_mut().and_then(|device| device.snapshot().ok());
        history.save_snapshot(&now, label)?;
        if let Some(device) = &device_now {
            history.save_snapshot(device, label)?;
        }
        if let Some((then, device_then)) = &self.before {
            let device = device_then.as_ref().zip(device_now.as_ref());
            let device =
                device.and_then(|(then, now)| intervals(then, now, Rules::default()).into_iter().next());
            self.moments.push(Moment {
                ended_unix_ns: now.taken_unix_ns,
                files: intervals(then, &now, Rules::default()),
                device,
            });
        }
        self.before = Some((now, device_now));
        Ok(())
    }

    /// Looks every second until `done`, or Ctrl-C; `tick` is called in between for progress.
    pub fn watch(
        &mut self,
        history: &mut History,
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
                self.look(history, None)?;
                looks = (elapsed.as_secs_f64() / EVERY.as_secs_f64()) as u32 + 1;
            }
            if end {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
