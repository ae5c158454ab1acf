//! Work for requests, done by few threads.
//!
//! ```text
//! ask ─ a kept result? ─ equal work that waits or runs? join it ─ queue full? Busy ─> queue ─> thread ─> all that wait for it
//! ```
//!
//! Requests come faster than threads can answer them, and a client may leave at any time. So the queue has a bound, of one
//! client too; work that no client waits for any more is dropped before it begins, and gives up while it runs: it asks
//! [`Wanted`]. Equal requests share one piece of work, and its result for a while.

use crate::kept::{Kept, Weight};
use page::Wanted;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The longest time for which a piece of work runs; one that reads a month of the history takes 50 ms.
pub const RUN_MAX: Duration = Duration::from_secs(5);
/// The longest time for which a client waits for its work: it gets a reason before [`PATIENCE`](crate::PATIENCE) closes its
/// connection.
pub const WAIT_MAX: Duration = Duration::from_secs(6);
/// Pieces of work that wait, in each queue: at 50 ms each, the last one begins after about a second.
pub const WAITING_MAX: usize = 24;
/// Pieces of work of one address that wait: a browser has six connections, and all clients of a proxy have one address.
pub const WAITING_OF_CLIENT_MAX: usize = 16;

/// A queue and its threads.
#[derive(Clone)]
pub(crate) struct Work<V>(Arc<Shared<V>>);

struct Shared<V> {
    threads_max: usize,
    table: Mutex<Table<V>>,
}

struct Table<V> {
    threads: usize,
    waiting: VecDeque<Arc<Job<V>>>,
    running: Vec<Arc<Job<V>>>,
    kept: Kept<V>,
}

/// Makes a result, as long as it is wanted.
type Make<V> = Box<dyn Fn(&Wanted) -> V + Send + Sync>;

struct Job<V> {
    key: String,
    client: IpAddr,
    kept_for: Duration,
    make: Make<V>,
    /// Its receivers are the clients that wait.
    result: watch::Sender<Option<V>>,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoResult {
    /// Too much waits already.
    Busy,
    /// It took longer than [`WAIT_MAX`].
    Late,
    /// Its thread panicked.
    Fault,
}

/// The beginning of an answer.
enum Begun<V> {
    Kept(V),
    Waits(watch::Receiver<Option<V>>),
}

impl<V: Clone + Weight + Send + Sync + 'static> Work<V> {
    /// A queue with at most `threads_max` threads, which keeps results of at most `kept_bytes_max` bytes.
    pub fn new(threads_max: usize, kept_bytes_max: usize) -> Work<V> {
        let table = Table {
            threads: 0,
            waiting: VecDeque::new(),
            running: Vec::new(),
            kept: Kept::new(kept_bytes_max),
        };
        Work(Arc::new(Shared { threads_max, table: Mutex::new(table) }))
    }

    /// The result of a piece of work; those of one key are equal. It is given up when this future and those of all others that wait
    /// for it are dropped.
    pub async fn ask(
        &self,
        key: String,
        client: IpAddr,
        kept_for: Duration,
        make: impl Fn(&Wanted) -> V + Send + Sync + 'static,
    ) -> Result<V, NoResult> {
        let mut result = match self.begin(key, client, kept_for, Box::new(make))? {
            Begun::Kept(result) => return Ok(result),
            Begun::Waits(result) => result,
        };
        let made = tokio::time::timeout(WAIT_MAX, result.wait_for(Option::is_some)).await;
        let made = made.map_err(|_| NoResult::Late)?;
        made.ok().and_then(|made| made.clone()).ok_or(NoResult::Fault)
    }

    fn begin(
        &self,
        key: String,
        client: IpAddr,
        kept_for: Duration,
        make: Make<V>,
    ) -> Result<Begun<V>, NoResult> {
        let mut table = self.0.lock();
        if let Some(result) = table.kept.get(&key, Instant::now()) {
            return Ok(Begun::Kept(result));
        }
        if let Some(job) = table.waiting.iter().chain(&table.running).find(|job| job.key == key) {
            return Ok(Begun::Waits(job.result.subscribe()));
        }
        table.waiting.retain(|job| !job.result.is_closed());
        let of_client = table.waiting.iter().filter(|job| job.client == client).count();
        if table.waiting.len() >= WAITING_MAX || of_client >= WAITING_OF_CLIENT_MAX {
            return Err(NoResult::Busy);
        }
        let (sender, result) = watch::channel(None);
        table.waiting.push_back(Arc::new(Job { key, client, kept_for, make, result: sender }));
        if table.threads < self.0.threads_max {
            table.threads += 1;
            let shared = self.0.clone();
            tokio::task::spawn_blocking(move || shared.work());
        }
        Ok(Begun::Waits(result))
    }
}

impl<V: Clone + Weight + Send + Sync + 'static> Shared<V> {
    fn lock(&self) -> MutexGuard<'_, Table<V>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until nothing waits.
    fn work(&self) {
        while let Some(job) = self.next() {
            loop {
                let abandoned = Arc::new(AtomicBool::new(false));
                let wanted = wanted(&job, abandoned.clone());
                let made = catch_unwind(AssertUnwindSafe(|| (job.make)(&wanted))).ok();
                if self.end(&job, made, abandoned.load(Relaxed)) {
                    break;
                }
            }
        }
    }

    /// The next piece of work that a client waits for; where there is none, the thread ends.
    fn next(&self) -> Option<Arc<Job<V>>> {
        let mut table = self.lock();
        while let Some(job) = table.waiting.pop_front() {
            if !job.result.is_closed() {
                table.running.push(job.clone());
                return Some(job);
            }
        }
        table.threads -= 1;
        None
    }

    /// Hands a result over. False where it was given up, and a client has requested it since.
    fn end(&self, job: &Arc<Job<V>>, made: Option<V>, is_abandoned: bool) -> bool {
        let mut table = self.lock();
        if is_abandoned && !job.result.is_closed() {
            return false;
        }
        table.running.retain(|running| !Arc::ptr_eq(running, job));
        if let Some(made) = made.filter(|_| !is_abandoned) {
            table.kept.insert(&job.key, &made, Instant::now(), job.kept_for);
            job.result.send_replace(Some(made));
        }
        true
    }
}

/// Whether a client waits for a piece of work that begins now, and it runs no longer than it may.
fn wanted<V: Send + Sync + 'static>(job: &Arc<Job<V>>, abandoned: Arc<AtomicBool>) -> Wanted {
    let (job, began) = (job.clone(), Instant::now());
    Arc::new(move || {
        let is_abandoned = job.result.is_closed();
        abandoned.fetch_or(is_abandoned, Relaxed);
        !is_abandoned && began.elapsed() < RUN_MAX
    })
}

#[cfg(test)]
mod tests;
