use crate::RecordedSource;
use crate::learning::Learning;
use crate::notify::Supervisor;
use crate::presence::{Presence, PresenceChange};
use crate::queue_memory::QueueMemory;
use crate::sampler::{Late, Message, Sampler};
use collect::SourceError;
use filestats::{Figure, FileKind, Snapshot};
use history::{GapId, History, Retention};
use host::unix_ns;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// How a recorder works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Between two snapshots of a source.
    pub every: Duration,
    /// How long to record; without end where it is `None`.
    pub duration: Option<Duration>,
    /// Retention of old captures.
    pub retention: Retention,
    /// Free space of the history's file system that is not used, bytes.
    pub reserve_bytes: u64,
    /// A source that returns neither figures nor an error for this time hangs, and has a gap.
    pub silence: Duration,
}

/// An event for the log, or for a caller that follows the recording.
#[derive(Debug)]
pub enum Event<'a> {
    /// The first snapshot of a source was kept, or the first after a failure.
    Recording {
        /// Its name.
        source: &'a str,
        /// Files in it.
        files: usize,
        /// How long the source had failed.
        after: Option<Duration>,
    },
    /// A source fails for a new reason.
    Failed {
        /// Its name.
        source: &'a str,
        /// Why.
        error: &'a SourceError,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// A new note of a source.
    Note {
        /// Its name.
        source: &'a str,
        /// The note.
        note: &'a str,
    },
    /// A block device of a source went, or is back.
    Device {
        /// The source's name.
        source: &'a str,
        /// The device that went or is back.
        change: &'a PresenceChange,
    },
    /// Snapshots came faster than they could be saved.
    Late {
        /// The source's name.
        source: &'a str,
        /// Dropped snapshots.
        snapshots: usize,
        /// For how long: from the first of them to the last.
        lasted: Duration,
    },
    /// The history cannot be written, for a new reason.
    NotKept {
        /// Why.
        why: String,
    },
    /// The history can be written again.
    KeptAgain {
        /// How long it could not be written.
        after: Duration,
    },
    /// Old captures were removed.
    Thinned {
        /// Number of removed captures.
        captures: usize,
    },
}

/// Records sources in a history.
pub struct Recorder {
    /// The sources.
    pub sources: Vec<RecordedSource>,
    /// The history.
    pub history: History,
    /// How it works.
    pub settings: Settings,
}

/// The state of a source while it is recorded.
struct State {
    name: String,
    /// Since when and why it fails.
    failing: Option<(Instant, String, Option<GapId>)>,
    began: bool,
    /// The name of the source in its captures.
    known_as: Option<String>,
    notes: Vec<String>,
    /// Its block devices.
    devices: Presence,
    /// The time of its last message.
    last_message: Instant,
}

/// The most messages in the queue; `queue_memory.rs` bounds the memory of the snapshots among them.
const WAITING_MAX: usize = 64;
/// How often `stop` is checked.
const NAP: Duration = Duration::from_millis(200);
/// The time between two runs of the retention, once one has nothing more to remove.
const THIN_EVERY: Duration = Duration::from_secs(3600);
/// The time between two batches of one run.
const THIN_NEXT: Duration = Duration::from_secs(5);

impl Recorder {
    /// Records until `stop` is set or the time is over. `log` receives each event.
    pub fn run(self, stop: &Arc<AtomicBool>, log: &mut dyn FnMut(Event<'_>)) {
        let supervisor = Supervisor::from_environment();
        let began = Instant::now();
        let (to, messages) = sync_channel(WAITING_MAX);
        let memory = Arc::new(QueueMemory::default());
        let mut states = Vec::new();
        for (at, recorded) in self.sources.into_iter().enumerate() {
            let name = recorded.name.clone();
            let (known_as, notes) = (None, Vec::new());
            let devices = Presence::default();
            states.push(State {
                name,
                failing: None,
                began: false,
                known_as,
                notes,
                devices,
                last_message: began,
            });
            let (to, stop, every) = (to.clone(), stop.clone(), self.settings.every);
            let memory = memory.clone();
            // Detached: at the end one may still hang in a server that does not answer.
            let sampler = Sampler { source: at, began, every, to, memory, stop };
            std::thread::spawn(move || sampler.run(recorded));
        }
        drop(to);
        let (history, settings) = (self.history, self.settings);
        supervisor.ready();
        let learning = Learning::default();
        let mut writer = Writer { history, settings, states, supervisor, not_kept: None, memory, learning };
        writer.run(&messages, began, stop, log);
        if let Err(error) = writer.learning.save(&mut writer.history) {
            not_kept(&mut writer.not_kept, error.to_string(), log);
        }
        writer.supervisor.stopping();
    }
}

/// Saves the messages of all sources: the only writer.
struct Writer {
    history: History,
    settings: Settings,
    states: Vec<State>,
    supervisor: Supervisor,
    /// The memory of the snapshots that wait to be saved.
    memory: Arc<QueueMemory>,
    /// Since when and why the history cannot be written.
    not_kept: Option<(Instant, String)>,
    /// Observed figures of the storages.
    learning: Learning,
}

impl Writer {
    fn run(
        &mut self,
        messages: &Receiver<Message>,
        began: Instant,
        stop: &AtomicBool,
        log: &mut dyn FnMut(Event<'_>),
    ) {
        let mut alive = began;
        let mut thin_at = began + THIN_NEXT;
        let end = self.settings.duration.and_then(|longest| began.checked_add(longest));
        while !stop.load(Relaxed) && end.is_none_or(|end| Instant::now() < end) {
            let message = messages.recv_timeout(NAP);
            let listened = Instant::now();
            match message {
                Ok(Message::Snapshot { source, snapshot, bytes }) => {
                    self.keep(source, &snapshot, log);
                    drop(snapshot);
                    self.memory.release(bytes);
                }
                Ok(Message::Failed { source, error, retry_in }) => self.failed(source, &error, retry_in, log),
                Ok(Message::Late { source, late }) => self.late(source, &late, log),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if Instant::now() >= thin_at {
                let more = self.thin(log);
                thin_at = Instant::now() + if more { THIN_NEXT } else { THIN_EVERY };
            }
            self.did_not_listen(listened.elapsed());
            self.notice_silence(log);
            if self.supervisor.watchdog().is_some_and(|often| alive.elapsed() >= often) {
                alive = Instant::now();
                self.supervisor.alive();
                self.supervisor.status(&self.status());
            }
        }
    }

    /// Excludes the time that a slow disk took from the silence of the sources.
    fn did_not_listen(&mut self, took: Duration) {
        if took > NAP {
            let now = Instant::now();
            self.states
                .iter_mut()
                .for_each(|state| state.last_message = (state.last_message + took).min(now));
        }
    }

    /// Begins a gap for each source that hangs.
    fn notice_silence(&mut self, log: &mut dyn FnMut(Event<'_>)) {
        let silence = self.settings.silence;
        for source in 0..self.states.len() {
            let state = &self.states[source];
            if state.failing.is_none() && state.last_message.elapsed() > silence {
                self.failed(source, &SourceError::NoAnswer(silence), self.settings.every, log);
            }
        }
    }

    /// Saves a snapshot and ends the gap before it.
    fn keep(&mut self, source: usize, snapshot: &Snapshot, log: &mut dyn FnMut(Event<'_>)) {
        self.states[source].last_message = Instant::now();
        let state = &mut self.states[source];
        if state.known_as.as_ref() != Some(&snapshot.source) {
            match self.history.recorded_as(&state.name, &snapshot.source) {
                Ok(()) => state.known_as = Some(snapshot.source.clone()),
                Err(error) => not_kept(&mut self.not_kept, error.to_string(), log),
            }
        }
        let after = state.failing.take().map(|(since, _, gap)| (since.elapsed(), gap));
        if let Some((_, Some(gap))) = after
            && let Err(error) = self.history.end_gap(gap, snapshot.taken_unix_ns)
        {
            not_kept(&mut self.not_kept, error.to_string(), log);
        }
        if !state.began || after.is_some() {
            let files = snapshot.samples.len();
            log(Event::Recording { source: &state.name, files, after: after.map(|(after, _)| after) });
            state.began = true;
        }
        for note in &snapshot.notes {
            let words = without_figures(note);
            if !state.notes.contains(&words) {
                log(Event::Note { source: &state.name, note });
                state.notes.push(words);
            }
        }
        for change in state.devices.update(devices_of(snapshot), Instant::now()) {
            log(Event::Device { source: &state.name, change: &change });
        }
        // Saving may wait for another writer or for a slow disk.
        self.supervisor.alive();
        let saved = match free_bytes(&self.history) {
            Some(free) if free < self.settings.reserve_bytes => {
                Err(format!("only {} MiB are free on its file system", free >> 20))
            }
            _ => self.save(snapshot).map_err(|error| error.to_string()),
        };
        match saved {
            Ok(()) => {
                if let Some((since, _)) = self.not_kept.take() {
                    log(Event::KeptAgain { after: since.elapsed() });
                }
            }
            Err(why) => not_kept(&mut self.not_kept, why, log),
        }
    }

    /// Saves a snapshot, and learns from the time that it ends.
    fn save(&mut self, snapshot: &Snapshot) -> Result<(), history::Error> {
        self.history.save_snapshot(snapshot, None)?;
        self.learning.observe(&mut self.history, snapshot)
    }

    /// Keeps a gap for the snapshots that were dropped.
    fn late(&mut self, source: usize, late: &Late, log: &mut dyn FnMut(Event<'_>)) {
        let state = &mut self.states[source];
        state.last_message = Instant::now();
        let (from, until) = (late.first_unix_ns, late.last_unix_ns);
        let lasted = Duration::from_nanos(until.saturating_sub(from));
        let event = Event::Late { source: &state.name, snapshots: late.snapshots, lasted };
        let why = format!("the history's disk is slow: {} snapshots were dropped", late.snapshots);
        let gap = self.history.begin_gap(&state.name, from, &why);
        if let Err(error) = gap.and_then(|gap| self.history.end_gap(gap, until)) {
            not_kept(&mut self.not_kept, error.to_string(), log);
        }
        log(event);
    }

    fn failed(
        &mut self,
        source: usize,
        error: &SourceError,
        retry_in: Duration,
        log: &mut dyn FnMut(Event<'_>),
    ) {
        let state = &mut self.states[source];
        state.last_message = Instant::now();
        let why = error.to_string();
        match &mut state.failing {
            Some((_, last, _)) if *last == why => return,
            Some((_, last, _)) => last.clone_from(&why),
            None => {
                let gap = self.history.begin_gap(&state.name, unix_ns(), &why);
                if let Err(error) = &gap {
                    not_kept(&mut self.not_kept, error.to_string(), log);
                }
                state.failing = Some((Instant::now(), why, gap.ok()));
            }
        }
        log(Event::Failed { source: &state.name, error, retry_in });
    }

    /// Removes some old captures. Returns whether there may be more.
    fn thin(&mut self, log: &mut dyn FnMut(Event<'_>)) -> bool {
        self.supervisor.alive();
        match self.history.apply_retention(&self.settings.retention, unix_ns()) {
            Ok(thinned) => {
                if thinned.captures > 0 {
                    log(Event::Thinned { captures: thinned.captures });
                }
                thinned.more
            }
            Err(error) => {
                not_kept(&mut self.not_kept, error.to_string(), log);
                false
            }
        }
    }

    fn status(&self) -> String {
        let failing = self.states.iter().filter(|state| state.failing.is_some()).count();
        let kept = if self.not_kept.is_some() { ", nothing can be kept" } else { "" };
        format!("{} sources, {failing} of them failing{kept}", self.states.len())
    }
}

/// The block devices of a snapshot that are there. A loop device that was detached is listed still, without a size.
fn devices_of(snapshot: &Snapshot) -> BTreeSet<String> {
    let devices = snapshot.samples.iter().filter(|sample| sample.file.kind == FileKind::Device);
    let there = devices.filter(|sample| sample.size_bytes != Figure::Known(0));
    there.map(|sample| sample.file.path.clone()).collect()
}

/// A note without its numbers, so that a changed count does not make it new.
fn without_figures(note: &str) -> String {
    note.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Reports a failure once for each new reason.
fn not_kept(state: &mut Option<(Instant, String)>, why: String, log: &mut dyn FnMut(Event<'_>)) {
    let since = match state {
        Some((_, last)) if *last == why => return,
        Some((since, _)) => *since,
        None => Instant::now(),
    };
    log(Event::NotKept { why: why.clone() });
    *state = Some((since, why));
}

/// Free space of the history's file system for users other than root; `None` where it is unknown.
fn free_bytes(history: &History) -> Option<u64> {
    let found = rustix::fs::statvfs(history.path()).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// A span of time as text: "3 min 20 s".
fn span_text(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

impl Event<'_> {
    /// Its priority by syslog(3): 3 error, 4 warning, 6 information.
    pub fn priority(&self) -> u8 {
        match self {
            Event::NotKept { .. } => 3,
            Event::Failed { .. }
            | Event::Late { .. }
            | Event::Note { .. }
            | Event::Device { change: PresenceChange::Lost { .. }, .. } => 4,
            Event::Recording { .. }
            | Event::KeptAgain { .. }
            | Event::Thinned { .. }
            | Event::Device { change: PresenceChange::Back { .. }, .. } => 6,
        }
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Recording { source, files, after: None } => {
                write!(f, "{source}: recording, {files} files")
            }
            Event::Recording { source, files, after: Some(after) } => {
                write!(f, "{source}: recording again after {}, {files} files", span_text(*after))
            }
            Event::Failed { source, error, retry_in } => {
                write!(f, "{source}: {error}; next try in {}", span_text(*retry_in))
            }
            Event::Note { source, note } => write!(f, "{source}: {note}"),
            Event::Device { source, change } => match change {
                PresenceChange::Lost { device } => write!(f, "{source}: the device {device} is gone"),
                PresenceChange::Back { device, after } => {
                    write!(f, "{source}: the device {device} is there again, after {}", span_text(*after))
                }
            },
            Event::Late { source, snapshots, lasted } => {
                let many = match snapshots {
                    1 => "a snapshot was".to_owned(),
                    many => format!("{many} snapshots were"),
                };
                write!(
                    f,
                    "{source}: the history's disk is slow: {many} dropped within {}, the interval over them is \
                     longer",
                    span_text(*lasted)
                )
            }
            Event::NotKept { why } => {
                write!(
                    f,
                    "nothing is added to the history: {why}; what it holds is safe, and each tick tries again"
                )
            }
            Event::KeptAgain { after } => {
                write!(
                    f,
                    "the history takes snapshots again: the interval since then is {} long",
                    span_text(*after)
                )
            }
            Event::Thinned { captures } => write!(f, "thinned {captures} old captures"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next notification that the service manager receives.
    fn next_notification(listener: &std::os::unix::net::UnixDatagram) -> Option<String> {
        let mut words = [0; 64];
        let bytes = listener.recv(&mut words).ok()?;
        Some(String::from_utf8_lossy(&words[..bytes]).into_owned())
    }

    #[test]
    fn a_sign_of_life_comes_before_each_work_that_may_take_long() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("notify");
        let listener = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let settings = Settings {
            every: Duration::from_secs(15),
            duration: None,
            retention: Retention::default(),
            reserve_bytes: 0,
            silence: Duration::from_secs(60),
        };
        let state = State {
            name: "one".into(),
            failing: None,
            began: false,
            known_as: None,
            notes: Vec::new(),
            devices: Presence::default(),
            last_message: Instant::now(),
        };
        let mut writer = Writer {
            history: History::open(&dir.path().join("history.db")).unwrap(),
            settings,
            states: vec![state],
            supervisor: Supervisor::at(socket.to_str().unwrap()),
            memory: Arc::default(),
            not_kept: None,
            learning: Learning::default(),
        };
        writer.thin(&mut |_| ());
        assert_eq!(next_notification(&listener).as_deref(), Some("WATCHDOG=1"), "before thinning");
        let snapshot = Snapshot {
            source: "one".into(),
            taken_unix_ns: 1,
            clock_ns: 1,
            complete: None,
            samples: Vec::new(),
            waits: Vec::new(),
            notes: Vec::new(),
        };
        writer.keep(0, &snapshot, &mut |_| ());
        assert_eq!(next_notification(&listener).as_deref(), Some("WATCHDOG=1"), "before saving");
        assert_eq!(next_notification(&listener), None);
    }
}
