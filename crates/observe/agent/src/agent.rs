use crate::capabilities::Capabilities;
use crate::devices::Devices;
use crate::judgement::SubjectJudgement;
use crate::keeper::Keeper;
use crate::own_process::OwnProcess;
use crate::watcher::{Message, Report, Stop, Watcher, clocks};
use crate::{Event, WatchedSource};
use collect::process::share_counts;
use filestats::ServiceLevel;
use history::{Error, History};
use incidents::{Causes, Clocks, Incident, Judgement, Subject, Tracker};
use metrics::{AgentState, SourceState, SubjectState};
use page::Live;
use record::Supervisor;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use verdict::VerdictKind;

/// How an agent works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Between two judgements.
    pub every: Duration,
    /// Length of the judged window, which ends now.
    pub window: Duration,
    /// How long to work; without end where it is `None`.
    pub duration: Option<Duration>,
    /// The service level that was promised.
    pub service_level: ServiceLevel,
    /// When incidents are opened and closed.
    pub incidents: incidents::Settings,
}

/// Judges databases all the time.
pub struct Agent {
    keeper: Keeper,
    settings: Settings,
    state: Arc<Mutex<AgentState>>,
    /// State that the page shows.
    live: Arc<Live>,
    supervisor: Supervisor,
    capabilities: Arc<Mutex<Capabilities>>,
    /// By the number of its thread.
    watched: BTreeMap<u64, Watched>,
    subjects: BTreeMap<Subject, Followed>,
    causes: Causes,
    devices: Devices,
    own_process: OwnProcess,
    /// Incidents that were open when the agent was ended, until their subject is judged again, and since when they wait for it.
    resumed: Vec<Incident>,
    resumed_at: Clocks,
    next_watcher: u64,
    /// The ticks of all watchers are whole seconds after it.
    began: Instant,
}

/// A source that is watched.
struct Watched {
    identity: String,
    stop: Arc<Stop>,
    last_message: Instant,
    /// Why it gives nothing; `None` while it gives counters or before its first message.
    failing: Option<String>,
    began: bool,
}

/// A database on a volume.
struct Followed {
    tracker: Tracker,
    watcher: u64,
    verdict: Option<VerdictKind>,
    /// Since when the verdict is the same, nanoseconds since 1970.
    since_unix_ns: u64,
    /// The last minute that was kept.
    minute: u64,
}

/// The most messages in the queue: each thread sends one in a few seconds.
const WAITING_MAX: usize = 256;
/// How often `stop` is checked.
const NAP: Duration = Duration::from_millis(200);
/// Between two searches for sources.
const SOURCES_EVERY: Duration = Duration::from_secs(30);
/// The most sources that are watched: a thread and a connection each. Further ones are left out.
const SOURCES_MAX: usize = 200;
/// Between two notes that nothing is known of a source that hangs.
const SILENCE_EVERY: Duration = Duration::from_secs(5);
/// Maximum age of a process's counters in a sample: counters that one watcher read are used by the others of the same tick.
const COUNT_AGE_MAX: Duration = Duration::from_millis(300);
/// Time between two counts that read the names of files and processes. A tenth less than a whole number of seconds, as sources are
/// sampled at whole ones.
const NAMES_EVERY: Duration = Duration::from_millis(9_900);
/// Interval at which the observed figures of volumes are saved.
const SEEN_EVERY: Duration = Duration::from_secs(60);
const MINUTE_NS: u64 = 60_000_000_000;

impl Agent {
    /// An agent that keeps what it finds by `keeper`, and goes on with the incidents that are open there. `capabilities` is the
    /// same history, opened once more to read. Its state is in `state`, and for the page in `live`.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn new(
        keeper: Keeper,
        capabilities: History,
        settings: Settings,
        state: Arc<Mutex<AgentState>>,
        live: Arc<Live>,
    ) -> Result<Agent, Error> {
        Ok(Agent {
            resumed: keeper.open_incidents()?,
            resumed_at: clocks(),
            keeper,
            settings,
            state,
            live,
            supervisor: Supervisor::from_environment(),
            capabilities: Arc::new(Mutex::new(Capabilities::new(capabilities))),
            watched: BTreeMap::new(),
            subjects: BTreeMap::new(),
            causes: Causes::default(),
            devices: Devices::default(),
            own_process: OwnProcess::default(),
            next_watcher: 0,
            began: Instant::now(),
        })
    }

    /// Judges until `stop` is set or the time is over. `sources` lists the databases that are there now; it is called every
    /// 30 s. Returns the judgements that could not be saved, with their history, for the next agent.
    pub fn run(
        mut self,
        sources: &mut dyn FnMut() -> Vec<WatchedSource>,
        stop: &AtomicBool,
        log: &mut dyn FnMut(Event<'_>),
    ) -> Keeper {
        let began = self.began;
        // All watchers sample at the same ticks.
        share_counts(COUNT_AGE_MAX, NAMES_EVERY);
        let (to, messages) = sync_channel(WAITING_MAX);
        let end = self.settings.duration.and_then(|longest| began.checked_add(longest));
        let (mut sources_at, mut alive, mut silence_at) = (began, began, began + SILENCE_EVERY);
        let mut seen_at = began + SEEN_EVERY;
        self.supervisor.ready();
        while !stop.load(Relaxed) && end.is_none_or(|end| Instant::now() < end) {
            if Instant::now() >= sources_at {
                sources_at = Instant::now() + SOURCES_EVERY;
                self.follow_sources(sources(), &to, log);
            }
            self.receive(&messages, log);
            for device in self.devices.sample(&self.state) {
                log(Event::Device { change: &device.change, mounts: &device.mounts });
            }
            self.own_process.sample(&self.state);
            if Instant::now() >= silence_at {
                silence_at = Instant::now() + SILENCE_EVERY;
                self.notice_silence(log);
                self.forget_resumed(log);
            }
            self.keeper.waiting().marks.extend(self.live.take_marks());
            self.keeper.save(log);
            if Instant::now() >= seen_at {
                seen_at = Instant::now() + SEEN_EVERY;
                self.save_seen(log);
            }
            if self.supervisor.watchdog().is_some_and(|often| alive.elapsed() >= often) {
                alive = Instant::now();
                self.supervisor.alive();
            }
        }
        self.finish(log)
    }

    fn receive(&mut self, messages: &Receiver<Message>, log: &mut dyn FnMut(Event<'_>)) {
        let first = messages.recv_timeout(NAP).ok();
        for message in first.into_iter().chain(messages.try_iter().take(WAITING_MAX)) {
            self.hear(message, log);
        }
    }

    /// Begins to watch sources that are new, and ends to watch those that are not there any more.
    fn follow_sources(
        &mut self,
        there: Vec<WatchedSource>,
        to: &SyncSender<Message>,
        log: &mut dyn FnMut(Event<'_>),
    ) {
        let is_there = |identity: &str| there.iter().any(|source| source.identity == identity);
        let gone: Vec<u64> =
            self.watched.iter().filter(|(_, one)| !is_there(&one.identity)).map(|(at, _)| *at).collect();
        let forgotten: Vec<Incident> =
            self.resumed.extract_if(.., |open| !is_there(&open.subject.database)).collect();
        gone.into_iter().for_each(|watcher| self.end_watcher(watcher, log));
        for incident in forgotten {
            let mut tracker = Tracker::new(incident.subject.clone(), self.settings.incidents);
            tracker.resume(Some(incident), None, clocks());
            self.note(tracker.end(), log);
        }
        let names: Vec<&str> = there.iter().map(|source| source.identity.as_str()).collect();
        self.live.keep_only(&names);
        for source in there {
            let known = self.watched.values().any(|one| one.identity == source.identity);
            if !known && self.watched.len() < SOURCES_MAX {
                self.begin_watcher(source, to);
            }
        }
    }

    fn begin_watcher(&mut self, source: WatchedSource, to: &SyncSender<Message>) {
        let number = self.next_watcher;
        self.next_watcher += 1;
        let stop = Arc::new(Stop::default());
        let watched = Watched {
            identity: source.identity.clone(),
            stop: stop.clone(),
            last_message: Instant::now(),
            failing: None,
            began: false,
        };
        self.live.began(&watched.identity);
        let state = SourceState { since_unix_ns: clocks().unix_ns, ..SourceState::default() };
        lock(&self.state).sources.insert(watched.identity.clone(), state);
        self.watched.insert(number, watched);
        let watcher = Watcher {
            number,
            source,
            every: self.settings.every,
            window: self.settings.window,
            service_level: self.settings.service_level,
            capabilities: self.capabilities.clone(),
            live: self.live.clone(),
            to: to.clone(),
            began: self.began,
            stop,
        };
        // Detached: at the end one may still hang in a server that does not answer.
        std::thread::spawn(move || watcher.run());
    }

    fn end_watcher(&mut self, number: u64, log: &mut dyn FnMut(Event<'_>)) {
        let Some(watched) = self.watched.remove(&number) else { return };
        watched.stop.set();
        log(Event::Gone { source: &watched.identity });
        lock(&self.state).sources.remove(&watched.identity);
        self.live.gone(&watched.identity);
        let of_it = self.subjects.iter().filter(|(_, followed)| followed.watcher == number);
        let of_it: Vec<Subject> = of_it.map(|(subject, _)| subject.clone()).collect();
        for subject in of_it {
            let event = self.subjects.remove(&subject).and_then(|mut followed| followed.tracker.end());
            lock(&self.state).subjects.remove(&subject);
            self.keeper.waiting().changes.push((subject, clocks().unix_ns, None));
            self.note(event, log);
        }
    }

    fn hear(&mut self, message: Message, log: &mut dyn FnMut(Event<'_>)) {
        let Message { watcher, at, report } = message;
        // One that was ended may have sent a last message.
        let Some(watched) = self.watched.get_mut(&watcher) else { return };
        watched.last_message = Instant::now();
        match report {
            Report::Judged { volumes, totals, took } => {
                let again = watched.failing.take().is_some();
                if again || !std::mem::replace(&mut watched.began, true) {
                    let mounts = volumes.iter().map(|volume| volume.subject.mount.as_str()).collect();
                    log(Event::Watching { source: &watched.identity, mounts });
                }
                let mut state = lock(&self.state);
                let source = state.sources.entry(watched.identity.clone()).or_default();
                (source.up, source.last_success_unix_ns) = (Some(true), Some(at.unix_ns));
                source.collection_s = Some(took.as_secs_f64());
                source.totals = Arc::new(totals);
                drop(state);
                let judged: BTreeSet<Subject> = volumes.iter().map(|volume| volume.subject.clone()).collect();
                volumes.into_iter().for_each(|volume| self.judged(watcher, at, volume, log));
                // Volumes that the database did not use since its server restarted.
                self.unknown(watcher, at, |subject| !judged.contains(subject), log);
            }
            Report::Nothing { why } => self.nothing(watcher, at, why, log),
        }
    }

    /// The volume of a database was judged.
    fn judged(&mut self, watcher: u64, at: Clocks, volume: SubjectJudgement, log: &mut dyn FnMut(Event<'_>)) {
        let subject = volume.subject.clone();
        if !self.subjects.contains_key(&subject) {
            let followed = self.follow(&subject, watcher, at);
            self.subjects.insert(subject.clone(), followed);
        }
        let Some(followed) = self.subjects.get_mut(&subject) else { return };
        let waiting = self.keeper.waiting();
        if followed.verdict != Some(volume.verdict) {
            followed.verdict = Some(volume.verdict);
            followed.since_unix_ns = at.unix_ns;
            waiting.changes.push((subject.clone(), at.unix_ns, followed.verdict));
        }
        let minute = at.unix_ns / MINUTE_NS;
        let is_new_minute = minute != followed.minute;
        if is_new_minute {
            followed.minute = minute;
            waiting.minutes.push((subject.clone(), minute, volume.readings));
        }
        let SubjectJudgement { standing, fine_for, detail, .. } = volume;
        let judgement = Judgement { at, standing, fine_for, detail };
        let event = followed.tracker.judged(&judgement);
        let open = followed.tracker.open().cloned();
        self.causes.set_device(&subject.mount, volume.device.map(|number| number.to_string()));
        self.devices.follow(&subject.mount, volume.device);
        let mut state = lock(&self.state);
        if let Some(capability) = volume.capability {
            state.capabilities.insert(subject.mount.clone(), capability);
        }
        let judged = SubjectState {
            verdict: volume.verdict,
            confidence: volume.confidence,
            judged_unix_ns: at.unix_ns,
            since_unix_ns: followed.since_unix_ns,
            headroom: volume.headroom,
            binding: volume.binding,
            utilisation: volume.readings.utilisation,
            outstanding: volume.readings.outstanding,
            read: volume.read,
            commit: volume.commit,
            incident_open: open.is_some(),
            contradicted: volume.contradicted,
            caps: volume.caps,
        };
        state.subjects.insert(subject, judged);
        drop(state);
        if event.is_some() {
            self.note(event, log);
        } else if is_new_minute {
            // An agent that is killed loses a minute of an open incident.
            open.into_iter().for_each(|open| self.save_open(open, log));
        }
    }

    /// Begins to follow a subject, with the incident that was open when the agent was ended.
    fn follow(&mut self, subject: &Subject, watcher: u64, at: Clocks) -> Followed {
        let mut tracker = Tracker::new(subject.clone(), self.settings.incidents);
        let open = self.resumed.extract_if(.., |open| open.subject == *subject).next();
        // Without it, a burst that comes again is a new incident.
        let last_burst = self.keeper.history().last_burst(subject).ok().flatten();
        if let Some(open) = &open {
            self.causes.reported(open.clone());
        }
        tracker.resume(open, last_burst, at);
        Followed {
            tracker,
            watcher,
            verdict: None,
            since_unix_ns: at.unix_ns,
            minute: at.unix_ns / MINUTE_NS,
        }
    }

    /// A source gives nothing.
    fn nothing(&mut self, watcher: u64, at: Clocks, why: String, log: &mut dyn FnMut(Event<'_>)) {
        let Some(watched) = self.watched.get_mut(&watcher) else { return };
        self.live.failed(&watched.identity, at.unix_ns, &why);
        if watched.failing.as_ref() != Some(&why) {
            log(Event::Nothing { source: &watched.identity, why: &why });
            watched.failing = Some(why);
        }
        let mut state = lock(&self.state);
        let source: &mut SourceState = state.sources.entry(watched.identity.clone()).or_default();
        (source.up, source.failures) = (Some(false), source.failures + 1);
        drop(state);
        self.unknown(watcher, at, |_| true, log);
    }

    /// Nothing is known of these subjects of a source.
    fn unknown(
        &mut self,
        watcher: u64,
        at: Clocks,
        is_of_them: impl Fn(&Subject) -> bool,
        log: &mut dyn FnMut(Event<'_>),
    ) {
        let mut events = Vec::new();
        let of_them = self.subjects.iter_mut().filter(|(_, one)| one.watcher == watcher);
        for (subject, followed) in of_them.filter(|(subject, _)| is_of_them(subject)) {
            lock(&self.state).subjects.remove(subject);
            if followed.verdict.take().is_some() {
                self.keeper.waiting().changes.push((subject.clone(), at.unix_ns, None));
            }
            events.push(followed.tracker.unknown(at));
        }
        events.into_iter().for_each(|event| self.note(event, log));
    }

    /// A source that hangs sends no message.
    fn notice_silence(&mut self, log: &mut dyn FnMut(Event<'_>)) {
        let longest = self.settings.incidents.gap_after;
        let silent = self.watched.iter().filter(|(_, one)| one.last_message.elapsed() > longest);
        let silent: Vec<(u64, Option<String>)> =
            silent.map(|(number, one)| (*number, one.failing.clone())).collect();
        for (number, failing) in silent {
            let why = failing.unwrap_or_else(|| format!("no answer for {} s", longest.as_secs()));
            self.nothing(number, clocks(), why, log);
        }
    }

    /// Closes incidents of an earlier run whose subject was not judged within an hour of the start: their source does not answer, or
    /// its files lie elsewhere now.
    fn forget_resumed(&mut self, log: &mut dyn FnMut(Event<'_>)) {
        let now = clocks();
        for incident in std::mem::take(&mut self.resumed) {
            let mut tracker = Tracker::new(incident.subject.clone(), self.settings.incidents);
            tracker.resume(Some(incident), None, self.resumed_at);
            let event = tracker.unknown(now);
            self.resumed.extend(tracker.open().cloned());
            self.note(event, log);
        }
    }

    /// Saves and logs the event of an incident.
    fn note(&mut self, event: Option<incidents::Event>, log: &mut dyn FnMut(Event<'_>)) {
        let Some(event) = event.and_then(|event| self.causes.add(event)) else { return };
        let id = self.keeper.save_incident(event.incident().clone(), log);
        log(Event::Incident { id, event: &event });
    }

    fn save_open(&mut self, open: Incident, log: &mut dyn FnMut(Event<'_>)) {
        if let Some(reported) = self.causes.reported(open) {
            self.keeper.save_incident(reported, log);
        }
    }

    /// Saves the observed figures of the volumes.
    fn save_seen(&mut self, log: &mut dyn FnMut(Event<'_>)) {
        let changed = self.capabilities.lock().unwrap_or_else(PoisonError::into_inner).take_changed();
        let waiting = &mut self.keeper.waiting().seen;
        waiting.retain(|(facts, _)| changed.iter().all(|(new, _)| new.path != facts.path));
        waiting.extend(changed);
        self.keeper.save(log);
    }

    /// Open incidents stay open: another agent goes on with them.
    fn finish(mut self, log: &mut dyn FnMut(Event<'_>)) -> Keeper {
        self.supervisor.stopping();
        self.watched.values().for_each(|watched| watched.stop.set());
        let open: Vec<Incident> =
            self.subjects.values().filter_map(|one| one.tracker.open().cloned()).collect();
        open.into_iter().for_each(|open| self.save_open(open, log));
        self.keeper.waiting().marks.extend(self.live.take_marks());
        self.save_seen(log);
        self.keeper
    }
}

fn lock(state: &Mutex<AgentState>) -> MutexGuard<'_, AgentState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
