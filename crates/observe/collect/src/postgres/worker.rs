//! The thread that owns the connection: it answers what is asked, and looks who waits in between.

use super::connection::Connection;
use super::environment;
use super::error::PostgresError;
use super::sampler::{Reading, Sampler};
use super::waits::SAMPLED_EVERY;
use crate::file_names::{FileLookup, LookupResult};
use filestats::Snapshot;
use std::path::PathBuf;
use std::sync::mpsc as answers;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// The longest that a snapshot takes, a new connection included; then it is an error.
pub const SNAPSHOT_LIMIT: Duration = Duration::from_secs(5);

/// Asked of the thread by the handles, of which there are few.
const QUESTIONS_MAX: usize = 8;

/// Beyond the limit that the thread keeps itself: it is not scheduled, then.
const SLACK: Duration = Duration::from_secs(1);

/// A look at who waits is small; a server that takes longer over it hangs.
const LOOK_LIMIT: Duration = Duration::from_secs(2);

/// The answer goes back by this.
type To<T> = answers::SyncSender<Result<T, PostgresError>>;

/// What can be asked.
pub(super) enum Ask {
    Snapshot(To<Reading>),
    Relations(To<Snapshot>),
    LookUp(FileLookup, To<LookupResult>),
    DataDirectory(To<Option<PathBuf>>),
}

/// A handle of the thread, which ends with the last of them.
#[derive(Clone)]
pub(super) struct Worker {
    asks: mpsc::Sender<(Instant, Ask)>,
    place: String,
}

impl Worker {
    /// Starts the thread.
    pub fn start(text: &str, connection: Connection) -> Result<Worker, PostgresError> {
        let place = connection.place.clone();
        let failed =
            |error: std::io::Error| PostgresError::Thread { place: place.clone(), why: error.to_string() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (asks, questions) = mpsc::channel(QUESTIONS_MAX);
        let thread = std::thread::Builder::new().name("postgres-source".into());
        let conversation = Conversation { text: text.to_owned(), connection, sampler: None };
        let started = thread.spawn(move || {
            runtime.block_on(conversation.run(questions));
            // A name that is being looked up is not waited for.
            runtime.shutdown_background();
        });
        started.map_err(failed)?;
        Ok(Worker { asks, place })
    }

    /// A handle that does not keep the thread.
    pub fn downgrade(&self) -> WeakWorker {
        WeakWorker { asks: self.asks.downgrade(), place: self.place.clone() }
    }

    /// Asks and waits, no longer than the limit.
    pub fn ask<T>(&self, ask: impl FnOnce(To<T>) -> Ask) -> Result<T, PostgresError> {
        self.ask_within(SNAPSHOT_LIMIT + SLACK, ask)
    }

    /// The same with less patience: what comes later is not told.
    pub fn ask_within<T>(
        &self,
        patience: Duration,
        ask: impl FnOnce(To<T>) -> Ask,
    ) -> Result<T, PostgresError> {
        let (to, answer) = answers::sync_channel(1);
        let too_slow = || PostgresError::TooSlow { place: self.place.clone(), limit: SNAPSHOT_LIMIT };
        let died = || PostgresError::Thread { place: self.place.clone(), why: "its thread has ended".into() };
        match self.asks.try_send((Instant::now() + SNAPSHOT_LIMIT, ask(to))) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => return Err(too_slow()),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(died()),
        }
        match answer.recv_timeout(patience) {
            Ok(answer) => answer,
            Err(answers::RecvTimeoutError::Timeout) => Err(too_slow()),
            Err(answers::RecvTimeoutError::Disconnected) => Err(died()),
        }
    }
}

/// A handle of the thread, for as long as there is another.
#[derive(Clone)]
pub(super) struct WeakWorker {
    asks: mpsc::WeakSender<(Instant, Ask)>,
    place: String,
}

impl WeakWorker {
    /// The thread, if it is still there.
    pub fn upgrade(&self) -> Option<Worker> {
        self.asks.upgrade().map(|asks| Worker { asks, place: self.place.clone() })
    }
}

/// What the thread has: how to connect, and perhaps a connection.
struct Conversation {
    text: String,
    connection: Connection,
    sampler: Option<Sampler>,
}

impl Conversation {
    async fn run(mut self, mut questions: mpsc::Receiver<(Instant, Ask)>) {
        let mut next_look = Instant::now() + SAMPLED_EVERY;
        loop {
            match timeout_at(next_look, questions.recv()).await {
                Ok(Some((deadline, ask))) => self.answer(deadline, ask).await,
                Ok(None) => return,
                Err(_) => {
                    self.look().await;
                    // Looks that were missed are not made up for.
                    next_look = Instant::now().max(next_look) + SAMPLED_EVERY;
                }
            }
        }
    }

    /// Sends the answer; nobody may wait for it any more.
    async fn answer(&mut self, deadline: Instant, ask: Ask) {
        match ask {
            Ask::Snapshot(to) => drop(to.send(self.bounded(deadline, Sampler::snapshot).await)),
            Ask::Relations(to) => drop(to.send(self.bounded(deadline, Sampler::relations).await)),
            Ask::LookUp(lookup, to) => {
                let asked = async |sampler: &mut Sampler| sampler.look_up(&lookup).await;
                drop(to.send(self.bounded(deadline, asked).await));
            }
            Ask::DataDirectory(to) => drop(to.send(self.bounded(deadline, Sampler::data_directory).await)),
        }
    }

    /// A connection that did not answer in time is given up: nobody knows when it would.
    async fn bounded<T>(
        &mut self,
        deadline: Instant,
        question: impl AsyncFn(&mut Sampler) -> Result<T, PostgresError>,
    ) -> Result<T, PostgresError> {
        match timeout_at(deadline, self.connected(&question)).await {
            Ok(answer) => answer,
            Err(_) => {
                self.sampler = None;
                Err(PostgresError::TooSlow { place: self.connection.place.clone(), limit: SNAPSHOT_LIMIT })
            }
        }
    }

    /// Connects where there is no connection, and once more where it turns out to be broken.
    async fn connected<T>(
        &mut self,
        question: &impl AsyncFn(&mut Sampler) -> Result<T, PostgresError>,
    ) -> Result<T, PostgresError> {
        if let Some(sampler) = self.sampler.as_mut() {
            let answer = question(sampler).await;
            if answer.is_ok() || !sampler.is_over() {
                return answer;
            }
        }
        self.sampler = None;
        // A password may have been changed in its file.
        if let Ok(again) = Connection::parse(&self.text, &environment::of_process)
            && again.place == self.connection.place
        {
            self.connection = again;
        }
        let sampler = self.sampler.insert(Sampler::begin(&self.connection).await?);
        let answer = question(sampler).await;
        if sampler.is_over() {
            self.sampler = None;
        }
        answer
    }

    /// Looks who waits. What goes wrong shows in the next snapshot, which connects anew.
    async fn look(&mut self) {
        if let Some(sampler) = self.sampler.as_mut() {
            let looked = timeout_at(Instant::now() + LOOK_LIMIT, sampler.look()).await;
            if !matches!(looked, Ok(Ok(()))) {
                self.sampler = None;
            }
        }
    }
}
