//! The thread that owns the connection: it answers requests, and samples the waits of sessions in between.

use super::connection::Connection;
use super::error::{PostgresError, SNAPSHOT_LIMIT};
use super::sampler::{Reading, Sampler};
use super::waits::SAMPLED_EVERY;
use crate::environment;
use crate::file_names::{FileLookup, LookupResult};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Requests that wait for the thread; there are few handles.
const REQUESTS_MAX: usize = 8;

/// Time that a handle waits beyond the thread's own limit: the thread may be scheduled late.
const SLACK: Duration = Duration::from_secs(1);

/// The longest that a snapshot of another source waits for the names of files.
const LOOKUP_LIMIT: Duration = Duration::from_secs(1);
/// A sample of waits is small: a server that takes longer for it hangs.
const SAMPLE_LIMIT: Duration = Duration::from_secs(2);

/// Threads that resolve names: a name service that hangs keeps its thread beyond the deadline.
const RESOLVERS_MAX: usize = 4;

/// Where the answer goes.
type Reply<T> = SyncSender<Result<T, PostgresError>>;

pub(super) enum Request {
    Snapshot(Reply<Reading>),
    Names(FileLookup, Reply<LookupResult>),
    DataDirectory(Reply<Option<PathBuf>>),
}

/// The handle of the thread, which ends with it.
pub(super) struct Worker {
    requests: mpsc::Sender<(Instant, Request)>,
    place: String,
}

impl Worker {
    /// Starts the thread.
    pub fn start(text: &str, connection: Connection) -> Result<Worker, PostgresError> {
        let place = connection.place.clone();
        let failed =
            |error: std::io::Error| PostgresError::Thread { place: place.clone(), why: error.to_string() };
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().max_blocking_threads(RESOLVERS_MAX);
        let runtime = runtime.build().map_err(failed)?;
        let (requests, received) = mpsc::channel(REQUESTS_MAX);
        let thread = std::thread::Builder::new().name("postgres-source".into());
        let state = WorkerThread { text: text.to_owned(), connection, sampler: None };
        let started = thread.spawn(move || {
            runtime.block_on(state.run(received));
            // Does not wait for a name that is being resolved.
            runtime.shutdown_background();
        });
        started.map_err(failed)?;
        Ok(Worker { requests, place })
    }

    /// Looks up the names of files, if the thread still runs: it does not keep it running.
    pub fn lookup(&self) -> impl Fn(FileLookup) -> Option<LookupResult> + Send + use<> {
        let (requests, place) = (self.requests.downgrade(), self.place.clone());
        move |lookup| {
            let worker = Worker { requests: requests.upgrade()?, place: place.clone() };
            worker.request_within(LOOKUP_LIMIT, |reply| Request::Names(lookup, reply)).ok()
        }
    }

    /// Sends a request and waits for the answer, up to the limit.
    pub fn request<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, PostgresError> {
        self.request_within(SNAPSHOT_LIMIT + SLACK, request)
    }

    /// Sends a request with another limit on the wait. A later answer is dropped.
    fn request_within<T>(
        &self,
        limit: Duration,
        request: impl FnOnce(Reply<T>) -> Request,
    ) -> Result<T, PostgresError> {
        let (reply, answer) = sync_channel(1);
        let too_slow = || PostgresError::TooSlow { place: self.place.clone() };
        let died = || PostgresError::Thread { place: self.place.clone(), why: "its thread has ended".into() };
        match self.requests.try_send((Instant::now() + SNAPSHOT_LIMIT, request(reply))) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => return Err(too_slow()),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(died()),
        }
        match answer.recv_timeout(limit) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(too_slow()),
            Err(RecvTimeoutError::Disconnected) => Err(died()),
        }
    }
}

/// The thread's state: how to connect, and perhaps a connection.
struct WorkerThread {
    text: String,
    connection: Connection,
    sampler: Option<Sampler>,
}

impl WorkerThread {
    async fn run(mut self, mut requests: mpsc::Receiver<(Instant, Request)>) {
        let mut next_sample = Instant::now() + SAMPLED_EVERY;
        loop {
            match timeout_at(next_sample, requests.recv()).await {
                Ok(Some((deadline, request))) => self.answer(deadline, request).await,
                Ok(None) => return,
                Err(_) => {
                    self.sample_waits().await;
                    // Missed samples are not made up for.
                    next_sample = Instant::now().max(next_sample) + SAMPLED_EVERY;
                }
            }
        }
    }

    /// Sends the answer. The handle may have stopped waiting for it.
    async fn answer(&mut self, deadline: Instant, request: Request) {
        match request {
            Request::Snapshot(reply) => drop(reply.send(self.bounded(deadline, Sampler::snapshot).await)),
            Request::Names(lookup, reply) => {
                let look_up = async |sampler: &mut Sampler| sampler.look_up(&lookup).await;
                drop(reply.send(self.bounded(deadline, look_up).await));
            }
            Request::DataDirectory(reply) => {
                let directory = async |sampler: &mut Sampler| Ok(sampler.data_directory());
                drop(reply.send(self.bounded(deadline, directory).await));
            }
        }
    }

    /// Closes a connection that does not answer in time.
    async fn bounded<T>(
        &mut self,
        deadline: Instant,
        question: impl AsyncFn(&mut Sampler) -> Result<T, PostgresError>,
    ) -> Result<T, PostgresError> {
        match timeout_at(deadline, self.connected(&question)).await {
            Ok(answer) => answer,
            Err(_) => {
                self.sampler = None;
                Err(PostgresError::TooSlow { place: self.connection.place.clone() })
            }
        }
    }

    /// Connects if there is no connection, and again if it turns out to be broken.
    async fn connected<T>(
        &mut self,
        question: &impl AsyncFn(&mut Sampler) -> Result<T, PostgresError>,
    ) -> Result<T, PostgresError> {
        if let Some(sampler) = self.sampler.as_mut() {
            let answer = question(sampler).await;
            if answer.is_ok() || !sampler.is_closed() {
                return answer;
            }
        }
        self.sampler = None;
        // The password may have changed in its file.
        if let Ok(again) = Connection::parse(&self.text, &environment::of_process)
            && again.place == self.connection.place
        {
            self.connection = again;
        }
        let sampler = self.sampler.insert(Sampler::connect(&self.connection).await?);
        let answer = question(sampler).await;
        if sampler.is_closed() {
            self.sampler = None;
        }
        answer
    }

    /// Samples who waits. A failure shows in the next snapshot, which connects again.
    async fn sample_waits(&mut self) {
        if let Some(sampler) = self.sampler.as_mut() {
            let sampled = timeout_at(Instant::now() + SAMPLE_LIMIT, sampler.sample_waits()).await;
            if !matches!(sampled, Ok(Ok(()))) {
                self.sampler = None;
            }
        }
    }
}
