//! The thread of one source.

use crate::RecordedSource;
use crate::backoff::Backoff;
use crate::queue_memory::{self, QueueMemory};
use collect::{Source, SourceError};
use filestats::Snapshot;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

/// A report of a source's thread.
pub enum Message {
    /// The counters of a tick.
    Snapshot { source: usize, snapshot: Box<Snapshot>, bytes: usize },
    /// The source failed, and is tried again after `retry_in`.
    Failed { source: usize, error: SourceError, retry_in: Duration },
    /// The queue was full, so snapshots were dropped.
    Late { source: usize, late: Late },
}

/// Snapshots that were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Number of dropped snapshots.
    pub snapshots: usize,
    /// When the first of them was taken, nanoseconds since 1970.
    pub first_unix_ns: u64,
    /// When the last was.
    pub last_unix_ns: u64,
}

/// How often `stop` is checked.
const NAP: Duration = Duration::from_millis(100);

/// Samples one source at the ticks `began + n x every`, in a thread of its own.
pub struct Sampler {
    /// The number of the source.
    pub source: usize,
    pub began: Instant,
    pub every: Duration,
    pub to: SyncSender<Message>,
    pub memory: Arc<QueueMemory>,
    pub stop: Arc<AtomicBool>,
}

impl Sampler {
    /// Samples until `stop` is set or the recorder has ended.
    pub fn run(self, mut recorded: RecordedSource) {
        let mut backoff = Backoff::new(self.every);
        let mut late: Option<Late> = None;
        let mut opened: Option<Box<dyn Source + Send>> = None;
        let mut due = self.began;
        while self.wait_until(due) {
            if let Some(dropped) = late
                && self.to.try_send(Message::Late { source: self.source, late: dropped }).is_ok()
            {
                late = None;
            }
            let message = match snapshot(&mut recorded, &mut opened) {
                Ok(snapshot) => {
                    backoff.succeeded();
                    due = next_tick(self.began, self.every, Instant::now());
                    let bytes = queue_memory::bytes_of(&snapshot);
                    Message::Snapshot { source: self.source, snapshot: Box::new(snapshot), bytes }
                }
                Err(error) => {
                    let retry_in = backoff.failed();
                    let earliest = (Instant::now() + retry_in).checked_sub(self.every).unwrap_or(self.began);
                    due = next_tick(self.began, self.every, earliest);
                    Message::Failed { source: self.source, error, retry_in }
                }
            };
            match self.send(message) {
                Ok(None) => {}
                // Counters are cumulative, so the next snapshot includes the dropped ones.
                Ok(Some(at)) => {
                    let late = late.get_or_insert(Late { snapshots: 0, first_unix_ns: at, last_unix_ns: at });
                    (late.snapshots, late.last_unix_ns) = (late.snapshots + 1, at);
                }
                Err(RecorderEnded) => return,
            }
        }
    }

    /// Waits for a tick. Returns false where `stop` was set.
    fn wait_until(&self, due: Instant) -> bool {
        while let Some(left) = due.checked_duration_since(Instant::now()) {
            if self.stop.load(Relaxed) {
                return false;
            }
            std::thread::sleep(left.min(NAP));
        }
        !self.stop.load(Relaxed)
    }

    /// Queues a message. Returns the time of a snapshot that was dropped because the queue is full.
    fn send(&self, message: Message) -> Result<Option<u64>, RecorderEnded> {
        if let Message::Snapshot { ref snapshot, bytes, .. } = message
            && !self.memory.reserve(bytes)
        {
            return Ok(Some(snapshot.taken_unix_ns));
        }
        match self.to.try_send(message) {
            Ok(()) => Ok(None),
            Err(TrySendError::Full(Message::Snapshot { snapshot, bytes, .. })) => {
                self.memory.release(bytes);
                Ok(Some(snapshot.taken_unix_ns))
            }
            // A failure that lasts is reported at the next try.
            Err(TrySendError::Full(_)) => Ok(None),
            Err(TrySendError::Disconnected(_)) => Err(RecorderEnded),
        }
    }
}

/// No thread reads the queue any more.
struct RecorderEnded;

/// A snapshot of the source, which is opened where it is not open. A panic in one source stops neither the others nor,
/// permanently, this one.
fn snapshot(
    recorded: &mut RecordedSource,
    opened: &mut Option<Box<dyn Source + Send>>,
) -> Result<Snapshot, SourceError> {
    let snapshot = catch_unwind(AssertUnwindSafe(|| match opened {
        Some(source) => source.snapshot(),
        None => (recorded.open)().and_then(|source| opened.insert(source).snapshot()),
    }));
    snapshot.unwrap_or_else(|_| {
        *opened = None;
        Err(SourceError::Fault)
    })
}

/// The first tick after `now`: a missed tick is not made up for.
fn next_tick(began: Instant, every: Duration, now: Instant) -> Instant {
    let passed = now.saturating_duration_since(began).as_nanos() / every.as_nanos().max(1);
    let ticks = u32::try_from(passed + 1).unwrap_or(u32::MAX);
    began.checked_add(every.saturating_mul(ticks)).unwrap_or(now + DAY)
}

/// A tick beyond the range of the clock is computed again after this time.
const DAY: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_do_not_drift_and_missed_ones_are_not_made_up_for() {
        let (began, every) = (Instant::now(), Duration::from_secs(15));
        let at = |seconds: f64| {
            let tick = next_tick(began, every, began + Duration::from_secs_f64(seconds));
            (tick - began).as_secs()
        };
        assert_eq!([at(0.0), at(0.3), at(14.9), at(15.1), at(100.0)], [15, 15, 15, 30, 105]);
    }
}
