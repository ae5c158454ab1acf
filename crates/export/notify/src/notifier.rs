use crate::alert::{alert, labels, replaced};
use crate::delivery::{post, run};
use crate::{Happened, Notification, Receiver};
use host::privileges::give_up_in_thread;
use host::unix_ns;
use incidents::Subject;
use push::{Endpoint, Outcome};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The most notifications that wait for one receiver; the oldest are dropped beyond that. Incidents hold for a minute at least, so
/// that this is many hours of a host in trouble.
const WAITING_MAX: usize = 1_000;
/// The wait after the first failure; it doubles with each further one.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const RETRY_LONGEST: Duration = Duration::from_secs(300);
/// Between two repetitions of open alerts: a fifth of the time after which Alertmanager takes them for over.
const REPEAT: Duration = Duration::from_secs(60);

/// A change of state of a receiver, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// It fails for a new reason.
    Failing {
        /// Why.
        why: String,
        /// Until the next try.
        retry_in: Duration,
    },
    /// It refuses a notification, which is dropped.
    Refused {
        /// Its reason.
        why: String,
    },
    /// The oldest notification was dropped: too many wait.
    Dropped,
    /// It takes notifications again.
    Again,
}

/// Notifies one receiver, in a thread of its own.
pub struct Notifier {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    added: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Notification>,
    dropped: u64,
    /// Until when waiting notifications may still be sent.
    end: Option<Instant>,
}

impl Notifier {
    /// Starts the thread of a receiver.
    pub fn start(
        receiver: Receiver,
        delivered: impl FnMut(&str, &Notification) + Send + 'static,
        changed: impl FnMut(&str, &StateChange) + Send + 'static,
    ) -> Notifier {
        let shared = Arc::new(Shared::default());
        let sender = Sender {
            name: receiver.to_string(),
            receiver,
            shared: shared.clone(),
            open: BTreeMap::new(),
            repeat_at: Instant::now() + REPEAT,
            failing: None,
            delivered: Box::new(delivered),
            changed: Box::new(changed),
        };
        let thread = std::thread::spawn(move || {
            // It reads the answers of receivers. Refused by a filter of system calls, it sends as before.
            let _ = give_up_in_thread(&[]);
            sender.run();
        });
        Notifier { shared, thread }
    }

    /// Queues a notification, and returns at once.
    pub fn send(&self, notification: Notification) {
        let mut state = lock(&self.shared.state);
        if state.waiting.len() >= WAITING_MAX {
            state.waiting.pop_front();
            state.dropped += 1;
        }
        state.waiting.push_back(notification);
        self.shared.added.notify_all();
    }

    /// Sends the waiting notifications, within that time.
    pub fn finish(self, within: Duration) {
        let end = Instant::now() + within;
        lock(&self.shared.state).end = Some(end);
        self.shared.added.notify_all();
        while !self.thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Reports something of the receiver of that name.
type Report<T> = Box<dyn FnMut(&str, &T) + Send>;

struct Sender {
    name: String,
    receiver: Receiver,
    shared: Arc<Shared>,
    /// The last notification of each open incident to an Alertmanager, with its labels. Keyed by subject and start: an incident
    /// gets its number, which is a label, only when it is saved.
    open: BTreeMap<(Subject, u64), (Value, Notification)>,
    repeat_at: Instant,
    /// The last reason of a failure, and how many there were in a row.
    failing: Option<(String, u32)>,
    delivered: Report<Notification>,
    changed: Report<StateChange>,
}

impl Sender {
    fn run(mut self) {
        while let Some(next) = self.next() {
            if self.report_dropped() {
                (self.changed)(&self.name, &StateChange::Dropped);
            }
            let Some(notification) = next else {
                self.repeat();
                continue;
            };
            match self.deliver(&notification) {
                Outcome::Taken => {
                    self.works();
                    (self.delivered)(&self.name, &notification);
                }
                Outcome::Refused(why) => self.refused(why),
                Outcome::Failed { why, not_before } => {
                    let mut state = lock(&self.shared.state);
                    if state.waiting.len() < WAITING_MAX {
                        state.waiting.push_front(notification);
                    }
                    drop(state);
                    self.failed(why, not_before);
                }
            }
        }
    }

    /// The next notification, `Some(None)` where open alerts are to be repeated, `None` at the end.
    fn next(&self) -> Option<Option<Notification>> {
        let mut state = lock(&self.shared.state);
        loop {
            if state.end.is_some_and(|end| state.waiting.is_empty() || Instant::now() >= end) {
                return None;
            }
            if let Some(next) = state.waiting.pop_front() {
                return Some(Some(next));
            }
            let left = self.repeat_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(None);
            }
            let waited = self.shared.added.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn report_dropped(&self) -> bool {
        std::mem::take(&mut lock(&self.shared.state).dropped) > 0
    }

    fn deliver(&mut self, notification: &Notification) -> Outcome {
        match &self.receiver {
            Receiver::Alertmanager(to) => {
                let to = to.clone();
                self.alert(&to, notification)
            }
            Receiver::Webhook(to) => post(to, &notification.document),
            Receiver::Command(program) => run(program, notification),
        }
    }

    fn alert(&mut self, to: &Endpoint, notification: &Notification) -> Outcome {
        let (now, own) = (unix_ns(), labels(notification));
        let mut alerts = vec![alert(notification, now)];
        let key = (notification.incident.subject.clone(), notification.incident.started_unix_ns);
        let before = self.open.get(&key).filter(|(labels, _)| *labels != own);
        alerts.extend(before.map(|(labels, _)| replaced(labels, notification, now)));
        let outcome = post(to, &Value::Array(alerts));
        if matches!(outcome, Outcome::Taken) {
            match notification.happened {
                Happened::Closed => drop(self.open.remove(&key)),
                Happened::Opened | Happened::Changed => {
                    self.open.insert(key, (own, notification.clone()));
                }
            }
        }
        outcome
    }

    /// Sends open alerts again.
    fn repeat(&mut self) {
        self.repeat_at = Instant::now() + REPEAT;
        let Receiver::Alertmanager(to) = &self.receiver else { return };
        let now = unix_ns();
        let alerts: Vec<Value> = self.open.values().map(|(_, open)| alert(open, now)).collect();
        if alerts.is_empty() {
            return;
        }
        match post(to, &Value::Array(alerts)) {
            Outcome::Taken => self.works(),
            Outcome::Refused(why) => self.refused(why),
            // The next repetition tries again.
            Outcome::Failed { why, .. } => drop(self.note_failure(why)),
        }
    }

    fn works(&mut self) {
        if self.failing.take().is_some() {
            (self.changed)(&self.name, &StateChange::Again);
        }
    }

    fn refused(&mut self, why: String) {
        self.failing = None;
        (self.changed)(&self.name, &StateChange::Refused { why });
    }

    /// Waits before the next try.
    fn failed(&mut self, why: String, not_before: Option<Duration>) {
        let retry_in = self.note_failure(why).max(not_before.unwrap_or_default().min(RETRY_LONGEST));
        let until = Instant::now() + retry_in;
        let mut state = lock(&self.shared.state);
        while state.end.is_none() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            state = self.shared.added.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.end.is_some() {
            // At the end each is tried once more; those that fail then are sent by the next agent.
            state.waiting.clear();
        }
    }

    /// Reports a failure where its reason is new. Returns the wait after it.
    fn note_failure(&mut self, why: String) -> Duration {
        let (last, count) = self.failing.take().unwrap_or_default();
        let retry_in = RETRY_FIRST.saturating_mul(1 << count.min(16)).min(RETRY_LONGEST);
        if last != why {
            (self.changed)(&self.name, &StateChange::Failing { why: why.clone(), retry_in });
        }
        self.failing = Some((why, count.saturating_add(1)));
        retry_in
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for StateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateChange::Failing { why, retry_in } => {
                write!(f, "{why}; next try in {} s", retry_in.as_secs())
            }
            StateChange::Refused { why } => {
                write!(f, "{why}; what it refuses is dropped: check the URL and the credential")
            }
            StateChange::Dropped => {
                write!(f, "more than {WAITING_MAX} notifications wait: the oldest are dropped")
            }
            StateChange::Again => f.write_str("it takes notifications again"),
        }
    }
}
