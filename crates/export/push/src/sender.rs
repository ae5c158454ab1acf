//! The thread that pushes to one server.

use crate::http::{Outcome, post};
use crate::queue::Queue;
use crate::{Destination, QUEUE_BYTES_MAX};
use metrics::{Dropped, Stamp, Totals};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

/// After the first failure; twice as long after each next one.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// A server that was away all night is found within so long.
const RETRY_LONGEST: Duration = Duration::from_secs(300);
/// The longest that a server may ask us to stay away.
const STAY_AWAY_LONGEST: Duration = Duration::from_secs(3600);

/// A change of state, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The first request was taken.
    Pushing,
    /// It cannot be sent, for a reason that is new.
    Failing {
        /// Why.
        why: String,
        /// When the next try is.
        retry_in: Duration,
    },
    /// The server does not want what it is sent, for a reason that is new.
    Refused {
        /// In its words.
        why: String,
    },
    /// Requests are taken again.
    Again {
        /// After so long.
        after: Duration,
        /// Requests that it will never see.
        dropped: u64,
    },
    /// The end came before everything was sent.
    NotSent {
        /// Requests that it will never see.
        requests: usize,
        /// Why not.
        why: String,
    },
}

/// Pushes to one server, in a thread of its own.
#[derive(Debug)]
pub struct Pushing {
    sender: Arc<Sender>,
    thread: JoinHandle<()>,
}

/// Sends what waits, and the totals as they are now, to all of them at once; what cannot be sent until `within` is over
/// is told.
pub fn finish(pushing: Vec<Pushing>, within: Duration) {
    for each in &pushing {
        *locked(&each.sender.end) = Some(Instant::now() + within);
        each.sender.ended.notify_one();
    }
    for each in pushing {
        // A fault of ours in it was told by the panic itself.
        let _ = each.thread.join();
    }
}

/// What is wrong, since when, and what it cost.
#[derive(Debug)]
struct Trouble {
    since: Instant,
    why: String,
    dropped: u64,
}

#[derive(Debug)]
struct Sender {
    to: Destination,
    totals: Arc<Mutex<Totals>>,
    queue: Mutex<Queue>,
    /// What is being sent, as long as no answer says that it arrived.
    under_way: Mutex<Option<Vec<u8>>>,
    added: Notify,
    state: Mutex<State>,
    /// When all of it ends.
    end: Mutex<Option<Instant>>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    pushed: bool,
    trouble: Option<Trouble>,
}

/// Pushes the totals to a server every so often, in a thread of its own, until [`finish`]. `host` tells this
/// host's series from others'; `say` is told each change of state.
///
/// # Errors
/// Where no thread can be had.
pub fn start(
    to: Destination,
    totals: Arc<Mutex<Totals>>,
    every: Duration,
    host: String,
    say: impl Fn(&Said) + Send + Sync + 'static,
) -> io::Result<Pushing> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for reason in [Dropped::NoRoom, Dropped::Refused] {
        locked(&totals).push_dropped(&to.to_string(), reason, 0);
    }
    let stamp = Stamp { since_unix_ns: unix_ns(), at_unix_ns: 0, host };
    let sender = Arc::new(Sender {
        to,
        totals,
        queue: Mutex::default(),
        under_way: Mutex::default(),
        added: Notify::new(),
        state: Mutex::default(),
        end: Mutex::default(),
        ended: Notify::new(),
    });
    let (held, say) = (sender.clone(), Arc::new(say));
    let thread = std::thread::Builder::new().name("push".into()).spawn(move || {
        runtime.block_on(async {
            let (filling, of_ticks) = (sender.clone(), stamp.clone());
            let filling = tokio::spawn(async move { filling.fill(of_ticks, every).await });
            let (sending, told) = (sender.clone(), say.clone());
            let sending = tokio::spawn(async move { sending.send(&*told).await });
            sender.ended.notified().await;
            for task in [filling, sending] {
                task.abort();
                // Over, or ended by us: no word of it is lost.
                let _ = task.await;
            }
            sender.send_the_rest(stamp, &*say).await;
        });
        // A name that is still being looked up is waited for by nobody.
        runtime.shutdown_background();
    })?;
    Ok(Pushing { sender: held, thread })
}

impl Sender {
    /// A request each tick, whether the last one has gone or not.
    async fn fill(&self, mut stamp: Stamp, every: Duration) {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.add(&mut stamp);
        }
    }

    /// The totals as they are now.
    fn add(&self, stamp: &mut Stamp) {
        stamp.at_unix_ns = unix_ns();
        // Encoded from a copy: whoever counts does not wait for the encoding.
        let totals = locked(&self.totals).clone();
        let dropped = locked(&self.queue).add(self.to.protocol.encode(&totals, stamp));
        self.dropped(Dropped::NoRoom, dropped);
        self.added.notify_one();
    }

    /// At the end: one try for each, the oldest first, while there is time.
    async fn send_the_rest(&self, mut stamp: Stamp, say: &impl Fn(&Said)) {
        let interrupted = locked(&self.under_way).take();
        if let Some(body) = interrupted {
            // It may have arrived: the same totals of the same instant twice are the same totals.
            locked(&self.queue).put_back(body);
        }
        self.add(&mut stamp);
        let end = locked(&self.end).unwrap_or_else(Instant::now);
        let all = async {
            loop {
                let body = locked(&self.queue).take()?;
                *locked(&self.under_way) = Some(body.clone());
                let outcome = post(&self.to, body).await;
                match outcome {
                    Outcome::Taken => drop(locked(&self.under_way).take()),
                    Outcome::Refused(why) | Outcome::Failed { why, .. } => return Some(why),
                }
            }
        };
        let why = match tokio::time::timeout_at(end.into(), all).await {
            Ok(None) => return self.works(say),
            Ok(Some(why)) => why,
            Err(_) => "the time for it is over".into(),
        };
        let requests = locked(&self.queue).len() + usize::from(locked(&self.under_way).is_some());
        say(&Said::NotSent { requests, why });
    }

    async fn send(&self, say: &impl Fn(&Said)) {
        let mut failures = 0;
        loop {
            let Some(body) = locked(&self.queue).take() else {
                self.added.notified().await;
                continue;
            };
            *locked(&self.under_way) = Some(body.clone());
            let outcome = post(&self.to, body.clone()).await;
            locked(&self.under_way).take();
            match outcome {
                Outcome::Taken => {
                    failures = 0;
                    self.works(say);
                }
                Outcome::Refused(why) => {
                    failures = 0;
                    self.troubled(&why, say, || Said::Refused { why: why.clone() });
                    self.dropped(Dropped::Refused, 1);
                }
                Outcome::Failed { why, not_before } => {
                    let retry_in = retry_in(failures, not_before);
                    failures += 1;
                    self.troubled(&why, say, || Said::Failing { why: why.clone(), retry_in });
                    if !locked(&self.queue).put_back(body) {
                        self.dropped(Dropped::NoRoom, 1);
                    }
                    tokio::time::sleep(retry_in).await;
                }
            }
        }
    }

    fn works(&self, say: &impl Fn(&Said)) {
        let mut state = locked(&self.state);
        match state.trouble.take() {
            Some(trouble) => {
                say(&Said::Again { after: trouble.since.elapsed(), dropped: trouble.dropped });
            }
            None if !state.pushed => say(&Said::Pushing),
            None => {}
        }
        state.pushed = true;
    }

    /// Remembers what is wrong, and says it where it is another thing than before.
    fn troubled(&self, why: &str, say: &impl Fn(&Said), said: impl Fn() -> Said) {
        let mut state = locked(&self.state);
        match &mut state.trouble {
            // Ports, sizes and times that a server names in its answer are no other reason.
            Some(trouble) if without_figures(&trouble.why) == without_figures(why) => return,
            Some(trouble) => trouble.why = why.into(),
            None => state.trouble = Some(Trouble { since: Instant::now(), why: why.into(), dropped: 0 }),
        }
        say(&said());
    }

    fn dropped(&self, reason: Dropped, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(trouble) = &mut locked(&self.state).trouble {
            trouble.dropped += count;
        }
        locked(&self.totals).push_dropped(&self.to.to_string(), reason, count);
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

fn unix_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}

impl Said {
    /// Whether it is bad news.
    pub fn is_trouble(&self) -> bool {
        matches!(self, Said::Failing { .. } | Said::Refused { .. } | Said::NotSent { .. })
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Pushing => f.write_str("pushing"),
            Said::Failing { why, retry_in } => write!(
                f,
                "{why}; next try in {} s, {} MiB wait before the oldest are dropped",
                retry_in.as_secs(),
                QUEUE_BYTES_MAX >> 20
            ),
            Said::Refused { why } => {
                write!(
                    f,
                    "{why}; what it refuses is dropped, not sent again: mind the URL and the credential"
                )
            }
            Said::NotSent { requests, why } => {
                write!(
                    f,
                    "{why}; at the end {requests} requests that waited were not sent: what was counted since then is lost to it"
                )
            }
            Said::Again { after, dropped } => {
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
