//! The thread of one source.

use crate::WatchedSource;
use crate::capabilities::Capabilities;
use crate::judgement::{Question, SubjectJudgement};
use capability::Capability;
use collect::FileNames;
use everyday::{Extent, JudgedVolume, Observer, Scope, judge_volumes};
use filestats::{Interval, Reason, ServiceLevel, SourceTotals};
use host::TimedSleep;
use incidents::{Clocks, Subject};
use page::{Details, Judged, Live};
use std::collections::HashSet;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use storage::Target;

/// A report of a source's thread.
pub struct Message {
    /// Identifies the thread.
    pub watcher: u64,
    /// When, on both clocks.
    pub at: Clocks,
    pub report: Report,
}

/// The result of a tick.
pub enum Report {
    /// Each volume was judged. `totals` are the counts since the source has been watched, `took` the longest time that a sample
    /// of the counters took.
    Judged { volumes: Vec<SubjectJudgement>, totals: SourceTotals, took: Duration },
    /// The source gives nothing.
    Nothing { why: String },
}

/// Between two samples: a moment of a verdict.
const MOMENT: Duration = Duration::from_secs(1);
/// A longer time between two samples is a gap: an average over it says nothing of its moments.
const MOMENT_MAX: Duration = Duration::from_secs(5);
/// After this many failures in a row the source is opened again.
const FAILURES_MAX: u32 = 3;
/// Wait before a source that cannot be opened is tried again: twice as long each time.
const RETRY_FIRST: Duration = Duration::from_secs(5);
/// The longest such wait: a server that was started again is watched within this time.
const RETRY_LONGEST: Duration = Duration::from_secs(30);

/// Files that a snapshot names, with their layers: no more than a moment keeps, beside the sums of others.
const FILES_NAMED: usize = 24;

/// Watches one source until `stop` is set.
pub struct Watcher {
    pub number: u64,
    pub source: WatchedSource,
    pub every: Duration,
    pub window: Duration,
    pub service_level: ServiceLevel,
    pub capabilities: Arc<Mutex<Capabilities>>,
    /// State that the page shows.
    pub live: Arc<Live>,
    pub to: SyncSender<Message>,
    /// The first tick of all watchers: they sample together, so that shared counters are read once.
    pub began: Instant,
    pub stop: Arc<Stop>,
}

/// Ends a watcher.
#[derive(Default)]
pub struct Stop {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    pub fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until that time; returns whether it was set.
    fn wait_until(&self, due: Instant) -> bool {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let left = due.saturating_duration_since(Instant::now());
        *self
            .changed
            .wait_timeout_while(is_set, left, |is_set| !*is_set)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }
}

/// Why the observer is given up.
enum Over {
    /// `stop` was set, or the agent has ended.
    Stopped,
    /// It is opened again.
    OpenAgain,
}

/// The clocks of this host.
pub fn clocks() -> Clocks {
    Clocks { unix_ns: host::unix_ns(), monotonic_ns: host::monotonic_ns() }
}

impl Watcher {
    /// Watches, and opens the source again after a failure.
    pub fn run(self) {
        let mut retry = RETRY_FIRST;
        let mut totals = SourceTotals::default();
        loop {
            // A panic in one source stops neither the others nor, permanently, this one.
            let watched = catch_unwind(AssertUnwindSafe(|| self.watch_once(&mut retry, &mut totals)));
            match watched {
                Ok(Over::Stopped) => return,
                Ok(Over::OpenAgain) => {}
                Err(_) => {
                    let why = "a fault of Headroom: the backtrace is on stderr".to_owned();
                    if self.send(Report::Nothing { why }).is_err() {
                        return;
                    }
                }
            }
            if self.stop.wait_until(Instant::now() + retry) {
                return;
            }
            retry = (retry * 2).min(RETRY_LONGEST);
        }
    }

    fn watch_once(&self, retry: &mut Duration, totals: &mut SourceTotals) -> Over {
        let mut observer = match self.open() {
            Ok(observer) => observer,
            Err(why) => {
                return match self.send(Report::Nothing { why }) {
                    Ok(()) => Over::OpenAgain,
                    Err(AgentEnded) => Over::Stopped,
                };
            }
        };
        *retry = RETRY_FIRST;
        // After a panic they begin at zero again: totals that fell a little would count twice.
        observer = observer.with_totals(std::mem::take(totals));
        let over = self.watch(&mut observer);
        *totals = observer.totals();
        over
    }

    fn open(&self) -> Result<Observer<'static>, String> {
        let with_remedy = |error: &dyn ToString, remedy: Option<String>| match remedy {
            Some(remedy) => format!("{}; {remedy}", error.to_string()),
            None => error.to_string(),
        };
        let opened = self.source.argument.open(&[], &FileNames::default());
        let mut source = opened.map_err(|error| with_remedy(&error, error.remedy().map(Into::into)))?;
        source.name_busiest(FILES_NAMED);
        let dir = source.directory().ok_or("it does not say on which storage of this host its files lie")?;
        let target = Target::open(dir).map_err(|error| error.to_string())?;
        Ok(Observer::new(source, target, Scope::All).with_extent(Extent::Window(self.window)))
    }

    /// Samples every second, and judges every few.
    fn watch(&self, observer: &mut Observer<'static>) -> Over {
        let (mut failures, mut longest) = (0_u32, Duration::ZERO);
        let mut last: Option<Clocks> = None;
        let mut not_fine = HashSet::new();
        let mut due = self.began;
        let mut judge_at = Instant::now() + self.every;
        loop {
            let now = clocks();
            let gap_ns = MOMENT_MAX.as_nanos() as u64;
            if last.is_some_and(|last| now.since(&last).is_none_or(|ns| ns > gap_ns)) {
                observer.forget();
            }
            let began = Instant::now();
            match observer.sample(None) {
                Ok(()) => {
                    (failures, last) = (0, Some(now));
                    self.keep_newest(observer);
                }
                Err(error) => {
                    observer.forget();
                    failures += 1;
                    let sent = self.send(Report::Nothing { why: error.to_string() });
                    match sent {
                        Err(AgentEnded) => return Over::Stopped,
                        Ok(()) if failures >= FAILURES_MAX => return Over::OpenAgain,
                        Ok(()) => {}
                    }
                }
            }
            longest = longest.max(began.elapsed());
            let is_due = Instant::now() >= judge_at;
            if failures == 0 && (is_due || self.live.is_waited_for(&self.source.identity)) {
                judge_at = if is_due { next_tick(judge_at, self.every) } else { judge_at };
                if let Some(over) = self.judge(observer, std::mem::take(&mut longest), &mut not_fine) {
                    return over;
                }
            }
            due = next_tick(due, MOMENT);
            let sleep = TimedSleep::begin(due.saturating_duration_since(Instant::now()));
            if self.stop.wait_until(due) {
                return Over::Stopped;
            }
            observer.note_stop(sleep.stopped_ns());
        }
    }

    /// The known capability of a volume.
    fn capability(&self, target: &Target) -> Option<Arc<Capability>> {
        self.lock_capabilities().capability(target)
    }

    fn lock_capabilities(&self) -> MutexGuard<'_, Capabilities> {
        self.capabilities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subject(&self, target: &Target) -> Subject {
        Subject { mount: target.place(), database: self.source.identity.clone() }
    }

    /// Keeps the newest moment of each volume for the page.
    fn keep_newest(&self, observer: &mut Observer<'static>) {
        for (target, moment) in observer.newest() {
            let capability = self.capability(target);
            self.live.sampled(&self.subject(target), target.facts(), &moment, capability.as_deref());
        }
    }

    /// `not_fine` are the volumes that were not fine at the last judgement.
    fn judge(
        &self,
        observer: &mut Observer<'static>,
        took: Duration,
        not_fine: &mut HashSet<Subject>,
    ) -> Option<Over> {
        let known = |target: &Target| Ok::<_, Infallible>(self.lock_capabilities().find(target));
        let Ok(volumes) = judge_volumes(observer, &self.service_level, known);
        let mut learning = self.lock_capabilities();
        volumes.iter().for_each(|volume| learning.learn(&volume.target, &volume.observation));
        drop(learning);
        let restarted = volumes.iter().any(has_restarted);
        let waits = observer.waits();
        let question = Question {
            database: &self.source.identity,
            window: self.window,
            service_level: &self.service_level,
            waits: &waits,
        };
        let is_looked_at = self.live.is_looked_at(&self.source.identity);
        let mut judged = |volume: JudgedVolume| {
            let details = is_looked_at.then(|| Details::new(&volume.observation, &waits));
            let (target, verdict) = (volume.target.clone(), volume.verdict.clone());
            let (caps, at_unix_ns) = (volume.observation.caps.clone(), volume.observation.ended_unix_ns());
            let judgement = SubjectJudgement::new(volume, &question, not_fine);
            let judged = Judged {
                at_unix_ns,
                verdict,
                readings: judgement.readings,
                capability: judgement.capability.clone(),
                caps,
                service_level_ns: self.service_level.read_ns,
            };
            self.live.judged(&judgement.subject, target.facts(), judged, details);
            judgement
        };
        let volumes: Vec<SubjectJudgement> = volumes.into_iter().map(&mut judged).collect();
        match self.send(Report::Judged { volumes, totals: observer.totals(), took }) {
            Err(AgentEnded) => Some(Over::Stopped),
            // It has other processes now, whose log and neighbours are to be watched.
            Ok(()) => restarted.then_some(Over::OpenAgain),
        }
    }

    /// Queues a report. One that does not fit is dropped: the next one says more.
    fn send(&self, report: Report) -> Result<(), AgentEnded> {
        match self.to.try_send(Message { watcher: self.number, at: clocks(), report }) {
            Ok(()) | Err(TrySendError::Full(_)) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(AgentEnded),
        }
    }
}

/// No thread reads the queue any more.
struct AgentEnded;

/// Whether the server restarted in a moment of the window: nothing of that moment is known.
fn has_restarted(volume: &JudgedVolume) -> bool {
    volume.observation.moments.iter().filter(|moment| moment.database().is_none()).any(|moment| {
        moment.files.iter().any(|file| matches!(file.interval, Interval::Unknown(Reason::Restart)))
    })
}

/// The next tick that is not over; missed ones are not made up for.
fn next_tick(last: Instant, every: Duration) -> Instant {
    let passed = last.elapsed().as_nanos() / every.as_nanos().max(1);
    last + every.saturating_mul(u32::try_from(passed + 1).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_ticks_are_not_made_up_for() {
        let every = Duration::from_secs(5);
        let last = Instant::now().checked_sub(Duration::from_secs(12)).unwrap();
        assert_eq!(next_tick(last, every) - last, Duration::from_secs(15));
    }
}
