//! The thread that pushes to one server.

use crate::http::{Outcome, push};
use crate::queue::Queue;
use crate::{Destination, QUEUE_BYTES_MAX};
use host::privileges::give_up_in_thread;
use host::unix_ns;
use metrics::{AgentState, Dropped, Identity, SentSeries, Stamp};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

/// The wait after the first failure; it doubles with each further one.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// The longest wait: a server that was down all night is noticed within this time.
const RETRY_LONGEST: Duration = Duration::from_secs(300);
/// The longest Retry-After that is obeyed.
const STAY_AWAY_LONGEST: Duration = Duration::from_secs(3600);
const NS_PER_MS: u64 = 1_000_000;

/// A change of state, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// The server accepted the first request.
    Pushing,
    /// Sending fails for a new reason.
    Failing {
        /// Why.
        why: String,
        /// The time until the next try.
        retry_in: Duration,
    },
    /// The server rejects requests for a new reason.
    Refused {
        /// The server's reason.
        why: String,
    },
    /// The server accepts requests again.
    Again {
        /// The time since the first failure.
        after: Duration,
        /// Requests that were lost.
        dropped: u64,
    },
    /// Requests were lost at the end.
    NotSent {
        /// Requests that were lost.
        requests: usize,
        /// Why not.
        why: String,
    },
}

/// Pushes to one server, in a thread of its own.
#[derive(Debug)]
pub struct Pushing {
    ending: Arc<Ending>,
    thread: JoinHandle<()>,
}

/// How a sender is ended.
#[derive(Debug, Default)]
struct Ending {
    /// Until when it may send.
    deadline: Mutex<Option<Instant>>,
    requested: Notify,
}

/// Sends the queued requests, the current figures and the end of all series to all servers in parallel, and reports requests
/// that could not be sent within the time `within`.
pub fn finish(pushing: Vec<Pushing>, within: Duration) {
    for each in &pushing {
        *locked(&each.ending.deadline) = Some(Instant::now() + within);
        each.ending.requested.notify_one();
    }
    for each in pushing {
        // A panic of the thread has printed its own message.
        let _ = each.thread.join();
    }
}

/// A failure: its reason, its beginning, and the lost requests.
#[derive(Debug)]
struct Trouble {
    since: Instant,
    why: String,
    dropped: u64,
}

struct Sender {
    to: Destination,
    figures: Arc<Mutex<AgentState>>,
    /// The series of the last request that was queued.
    sent: Mutex<SentSeries>,
    queue: Mutex<Queue>,
    /// The request in flight, until a response acknowledges it.
    in_flight: Mutex<Option<Vec<u8>>>,
    added: Notify,
    state: Mutex<State>,
    ending: Arc<Ending>,
}

#[derive(Debug, Default)]
struct State {
    pushed: bool,
    trouble: Option<Trouble>,
}

/// Pushes figures to a server at an interval, in a thread of its own, until [`finish`]. `identity` labels the series of this
/// host; `report` receives each change of state.
///
/// # Errors
/// Where the system refuses a thread.
pub fn start(
    to: Destination,
    figures: Arc<Mutex<AgentState>>,
    every: Duration,
    identity: Identity,
    report: impl Fn(&StateChange) + Send + Sync + 'static,
) -> io::Result<Pushing> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for reason in [Dropped::QueueFull, Dropped::Refused] {
        locked(&figures).push_dropped(&to.to_string(), reason, 0);
    }
    let stamp = Stamp { at_unix_ns: 0, identity };
    let ending = Arc::new(Ending::default());
    let sender = Arc::new(Sender {
        to,
        figures,
        sent: Mutex::default(),
        queue: Mutex::default(),
        in_flight: Mutex::default(),
        added: Notify::new(),
        state: Mutex::default(),
        ending: ending.clone(),
    });
    let report = Arc::new(report);
    let thread = std::thread::Builder::new().name("push".into()).spawn(move || {
        // It reads the answers of servers. Refused by a filter of system calls, it pushes as before.
        let _ = give_up_in_thread(&[]);
        runtime.block_on(async {
            let (filling, tick_stamp) = (sender.clone(), stamp.clone());
            let filling = tokio::spawn(async move { filling.fill(tick_stamp, every).await });
            let (sending, reported) = (sender.clone(), report.clone());
            let sending = tokio::spawn(async move { sending.send(&*reported).await });
            sender.ending.requested.notified().await;
            for task in [filling, sending] {
                task.abort();
                // The time is over, or the sender was ended: the request in flight is put back.
                let _ = task.await;
            }
            sender.send_remaining(stamp, &*report).await;
        });
        // The runtime does not wait for a name that is still being resolved.
        runtime.shutdown_background();
    })?;
    Ok(Pushing { ending, thread })
}

impl Sender {
    /// Queues a request at each tick, also while the last one is being sent.
    async fn fill(&self, mut stamp: Stamp, every: Duration) {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.add(&mut stamp);
        }
    }

    /// A request with the current figures.
    fn add(&self, stamp: &mut Stamp) {
        stamp.at_unix_ns = unix_ns();
        // Encoded from a copy, so that counting does not wait for the encoding.
        let figures = locked(&self.figures).clone();
        let body = self.to.protocol.encode(&figures, stamp, &mut locked(&self.sent));
        self.enqueue(body);
    }

    fn enqueue(&self, body: Vec<u8>) {
        let dropped = locked(&self.queue).add(body);
        self.dropped(Dropped::QueueFull, dropped);
        self.added.notify_one();
    }

    /// At the end: one try for each request, oldest first, until the deadline.
    async fn send_remaining(&self, mut stamp: Stamp, report: &impl Fn(&StateChange)) {
        let interrupted = locked(&self.in_flight).take();
        if let Some(body) = interrupted {
            // The request in flight may have arrived. Sending the same totals of the same instant again is harmless.
            locked(&self.queue).put_back(body);
        }
        self.add(&mut stamp);
        // Later than the last sample: a series has one at a time.
        stamp.at_unix_ns += NS_PER_MS;
        if let Some(ended) = self.to.protocol.encode_end(&stamp, &mut locked(&self.sent)) {
            self.enqueue(ended);
        }
        let end = locked(&self.ending.deadline).unwrap_or_else(Instant::now);
        let all = async {
            loop {
                let body = locked(&self.queue).take()?;
                *locked(&self.in_flight) = Some(body.clone());
                let outcome = push(&self.to, body).await;
                match outcome {
                    Outcome::Taken => drop(locked(&self.in_flight).take()),
                    Outcome::Refused(why) | Outcome::Failed { why, .. } => return Some(why),
                }
            }
        };
        let why = match tokio::time::timeout_at(end.into(), all).await {
            Ok(None) => return self.works(report),
            Ok(Some(why)) => why,
            Err(_) => "the time for it is over".into(),
        };
        let requests = locked(&self.queue).len() + usize::from(locked(&self.in_flight).is_some());
        report(&StateChange::NotSent { requests, why });
    }

    async fn send(&self, report: &impl Fn(&StateChange)) {
        let mut failures = 0;
        loop {
            let Some(body) = locked(&self.queue).take() else {
                self.added.notified().await;
                continue;
            };
            *locked(&self.in_flight) = Some(body.clone());
            let outcome = push(&self.to, body.clone()).await;
            locked(&self.in_flight).take();
            match outcome {
                Outcome::Taken => {
                    failures = 0;
                    self.works(report);
                }
                Outcome::Refused(why) => {
                    failures = 0;
                    self.note_failure(&why, report, || StateChange::Refused { why: why.clone() });
                    self.dropped(Dropped::Refused, 1);
                }
                Outcome::Failed { why, not_before } => {
                    let retry_in = retry_in(failures, not_before);
                    failures += 1;
                    self.note_failure(&why, report, || StateChange::Failing { why: why.clone(), retry_in });
                    if !locked(&self.queue).put_back(body) {
                        self.dropped(Dropped::QueueFull, 1);
                    }
                    tokio::time::sleep(retry_in).await;
                }
            }
        }
    }

    fn works(&self, report: &impl Fn(&StateChange)) {
        let mut state = locked(&self.state);
        match state.trouble.take() {
            Some(trouble) => {
                report(&StateChange::Again { after: trouble.since.elapsed(), dropped: trouble.dropped });
            }
            None if !state.pushed => report(&StateChange::Pushing),
            None => {}
        }
        state.pushed = true;
    }

    /// Keeps the failure, and reports it where its reason is new.
    fn note_failure(&self, why: &str, report: &impl Fn(&StateChange), change: impl Fn() -> StateChange) {
        let mut state = locked(&self.state);
        match &mut state.trouble {
            // Numbers in a server's message (ports, sizes, times) do not make the reason new.
            Some(trouble) if without_figures(&trouble.why) == without_figures(why) => return,
            Some(trouble) => trouble.why = why.into(),
            None => state.trouble = Some(Trouble { since: Instant::now(), why: why.into(), dropped: 0 }),
        }
        report(&change());
    }

    fn dropped(&self, reason: Dropped, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(trouble) = &mut locked(&self.state).trouble {
            trouble.dropped += count;
        }
        locked(&self.figures).push_dropped(&self.to.to_string(), reason, count);
    }
}

fn without_figures(why: &str) -> String {
    why.chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn retry_in(failures: u32, not_before: Option<Duration>) -> Duration {
    let backoff = RETRY_FIRST.saturating_mul(1 << failures.min(16)).min(RETRY_LONGEST);
    backoff.max(not_before.unwrap_or_default().min(STAY_AWAY_LONGEST))
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StateChange {
    /// Whether the event is a failure.
    pub fn is_trouble(&self) -> bool {
        matches!(
            self,
            StateChange::Failing { .. } | StateChange::Refused { .. } | StateChange::NotSent { .. }
        )
    }
}

impl fmt::Display for StateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateChange::Pushing => f.write_str("pushing"),
            StateChange::Failing { why, retry_in } => write!(
                f,
                "{why}; next try in {} s, {} MiB wait before the oldest are dropped",
                retry_in.as_secs(),
                QUEUE_BYTES_MAX >> 20
            ),
            StateChange::Refused { why } => {
                write!(
                    f,
                    "{why}; what it refuses is dropped, not sent again: mind the URL and the credential"
                )
            }
            StateChange::NotSent { requests, why } => {
                write!(
                    f,
                    "{why}; at the end {requests} requests that waited were not sent: what was counted since then is lost to it"
                )
            }
            StateChange::Again { after, dropped } => {
                write!(f, "pushing again after {} s, {dropped} requests were dropped", after.as_secs())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_grow_rarer_up_to_a_limit_and_the_server_may_ask_for_rarer_ones() {
        let seconds =
            |failures, asked: Option<u64>| retry_in(failures, asked.map(Duration::from_secs)).as_secs();
        assert_eq!([0, 1, 2, 8, 9, 99].map(|failures| seconds(failures, None)), [1, 2, 4, 256, 300, 300]);
        assert_eq!(seconds(0, Some(120)), 120);
        assert_eq!(seconds(9, Some(1)), 300);
        assert_eq!(seconds(0, Some(u64::MAX)), 3600);
    }
}
