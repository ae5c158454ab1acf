use crate::about::{About, measure_command};
use crate::answer::{Answer, Refused};
use crate::devices::Devices;
use crate::live::{Live, VolumeNow};
use crate::question::{NAMED, Question, Topic};
use crate::series::Remembered;
use crate::{Details, Moments, capabilities, curve, incident_list, series, state, verdicts};
use history::History;
use host::privileges::{Privilege, with};
use incidents::Subject;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use timeline::{Grid, Span};

/// Answers the page's requests.
#[derive(Debug)]
pub struct Api {
    live: Arc<Live>,
    about: Mutex<About>,
    path: PathBuf,
    /// Open histories that no request reads now.
    histories: Mutex<Vec<History>>,
    devices: Mutex<Devices>,
    /// The last state.
    rendered: Mutex<Option<Rendered>>,
    /// The time of a history that nothing is added to.
    ended_unix_ns: Option<u64>,
}

/// A state as JSON, without the time.
#[derive(Clone, Debug)]
struct Rendered {
    version: u64,
    at: Instant,
    text: Arc<str>,
}

/// Whether an answer is still wanted: its client waits, and it took no longer than it may.
pub type Wanted = Arc<dyn Fn() -> bool + Send + Sync>;

/// How long a request waits for details that are reduced only when a page shows them.
pub const DETAILS_WITHIN: Duration = Duration::from_secs(3);
/// Streams share a state for this long: twenty databases make a new one four times a second, and each stream would have its own.
const SHARED: Duration = Duration::from_secs(1);
/// Histories that stay open between two requests, each with up to 2 MiB of pages: one for charts, one for the state.
const HISTORIES_MAX: usize = 2;

impl Api {
    /// For an agent whose history is at `path`; `ended_unix_ns` is the last time of one that nothing is added to.
    pub fn new(live: Arc<Live>, about: About, path: PathBuf, ended_unix_ns: Option<u64>) -> Api {
        Api {
            live,
            about: Mutex::new(about),
            path,
            histories: Mutex::default(),
            devices: Mutex::default(),
            rendered: Mutex::new(None),
            ended_unix_ns,
        }
    }

    /// The agent works with other settings from now on.
    pub fn change(&self, window_ns: u64, every_ns: u64) {
        let mut about = lock(&self.about);
        (about.window_ns, about.every_ns) = (window_ns, every_ns);
        drop(about);
        self.live.changed();
    }

    /// Whether databases were looked for once.
    pub fn is_ready(&self) -> bool {
        self.live.known().ready
    }

    /// Reads a path below `/api/v1/` and its query.
    ///
    /// # Errors
    /// The answer that refuses it.
    pub fn question(&self, path: &str, query: &str) -> Result<Question, Answer> {
        let question = Question::parse(path, query, self.now_ns());
        let question = question.and_then(|question| match question.volume() {
            Some(volume) => self.with_volume(volume, |_, _| Ok(())).map(|()| question),
            None => Ok(question),
        });
        question.map_err(|refused| Err(refused).into())
    }

    /// Whether the figures of a question are there. Those of files, waits and devices are reduced with the next judgement, which comes
    /// before its time when someone waits for them: this call says that someone does.
    pub fn has_figures_for(&self, question: &Question) -> bool {
        match &question.topic {
            Topic::Files { volume, .. } | Topic::Waits { volume } => self.is_reduced(volume),
            Topic::Devices { volume } => self.is_reduced(volume) && self.are_devices_known(),
            _ => true,
        }
    }

    /// Answers a question. It may read the history: not for a thread that others wait for. A question whose client is gone is
    /// given up, with an answer of status 503.
    pub fn answer(&self, question: &Question, wanted: &Wanted) -> Answer {
        let result = match &question.topic {
            Topic::State => return Answer { status: 200, body: self.state() },
            Topic::Curve { volume } => self.curve(volume),
            Topic::Series { volume, grid } => self.series(volume, grid, wanted),
            Topic::Verdicts { volume, grid } => self.verdicts(volume, grid, wanted),
            Topic::Files { volume, path } => {
                self.details(volume).map(|details| details.files_json(path.as_deref()))
            }
            Topic::Waits { volume } => self.details(volume).map(|details| details.waits_json()),
            Topic::Devices { volume } => self.devices(volume),
            Topic::Incidents => self.with_history(wanted, incident_list::list),
            Topic::Incident { id } => self.with_history(wanted, |history| incident_list::one(history, *id)),
            Topic::Capabilities => {
                self.with_history(wanted, |history| capabilities::capabilities(history, self.now_ns()))
            }
        };
        result.into()
    }

    /// All databases and volumes at once, with the time of now.
    pub fn state(&self) -> String {
        self.with_time(&self.render(Duration::ZERO).text)
    }

    /// The state, up to a second old, and its version; streams share it.
    pub fn shared_state(&self) -> (u64, String) {
        let rendered = self.render(SHARED);
        (rendered.version, self.with_time(&rendered.text))
    }

    fn with_time(&self, state: &str) -> String {
        format!("{{\"now_unix_ns\":{},{}", self.now_ns(), &state[1..])
    }

    /// The newest state, or one that is younger than `age_max`. It has no time in it, so that it changes only when something does.
    fn render(&self, age_max: Duration) -> Rendered {
        let mut rendered = lock(&self.rendered);
        let version = self.live.version();
        let is_kept = |kept: &&Rendered| kept.version == version || kept.at.elapsed() < age_max;
        if let Some(kept) = rendered.as_ref().filter(is_kept) {
            return kept.clone();
        }
        let always: Wanted = Arc::new(|| true);
        let open = self.with_history(&always, |history| Ok(history.open_incidents()?.len()));
        let about = lock(&self.about).clone();
        let known = self.live.known();
        // Through a value: its keys are in the order of the alphabet.
        let text = json!(state::state(&known, &about, open.unwrap_or(0))).to_string().into();
        drop(known);
        rendered.insert(Rendered { version, at: Instant::now(), text }).clone()
    }

    /// Grows when the state is another one.
    pub fn version(&self) -> u64 {
        self.live.version()
    }

    /// The seconds of a volume that a stream sends, where `after_unix_ns` is the newest that it has sent, 0 at its beginning.
    /// `None` where there is no such volume. A client that reads them keeps the volume's details current.
    pub fn moments(&self, id: &str, after_unix_ns: u64) -> Option<Moments> {
        self.live.look_at(id);
        let known = self.live.known();
        let (_, volume) = known.find(id)?;
        Some(Moments::after(after_unix_ns, &volume.ring, self.now_ns()))
    }

    fn now_ns(&self) -> u64 {
        self.ended_unix_ns.unwrap_or_else(host::unix_ns)
    }

    fn curve(&self, volume: &str) -> Result<Value, Refused> {
        self.with_volume(volume, |subject, volume| {
            let capability = volume.judged.as_ref().and_then(|judged| judged.capability.as_ref());
            let capability = capability.ok_or_else(|| {
                let error = format!("it was never measured what {} can give", subject.mount);
                Refused::not_found(error, measure_command(&subject.mount))
            })?;
            Ok(curve::curve(volume, capability, self.now_ns()))
        })
    }

    fn series(&self, volume: &str, grid: &Grid, wanted: &Wanted) -> Result<Value, Refused> {
        let now_ns = self.now_ns();
        let (subject, remembered) = self.with_volume(volume, |subject, volume| {
            let remembered = Remembered {
                instants: volume.ring.samples().map(|(_, instant)| instant.clone()).collect(),
                gaps: volume.ring.gaps(now_ns),
                marks: volume.marks.iter().cloned().collect(),
                begin_ns: volume.ring.begin_ns().unwrap_or(now_ns),
            };
            Ok((subject.clone(), remembered))
        })?;
        self.with_history(wanted, |history| series::series(&subject, &remembered, history, grid))
    }

    fn verdicts(&self, volume: &str, grid: &Grid, wanted: &Wanted) -> Result<Value, Refused> {
        let now_ns = self.now_ns();
        // The last point may end after now.
        let Some(span) = grid.span().within(Span { from_ns: 0, to_ns: now_ns }) else {
            return Ok(json!({ "stretches": [] }));
        };
        let (subject, watched, gaps) = self.with_volume(volume, |subject, volume| {
            let begin = volume.ring.begin_ns();
            let watched =
                begin.map(|from_ns| Span { from_ns, to_ns: now_ns }).filter(|_| self.ended_unix_ns.is_none());
            Ok((subject.clone(), watched, volume.ring.gaps(now_ns)))
        })?;
        self.with_history(wanted, |history| {
            verdicts::verdicts(&subject, watched.as_slice(), &gaps, history, span)
        })
    }

    /// Whether the files, waits and users of a volume were reduced, or will not be.
    fn is_reduced(&self, volume: &str) -> bool {
        let details = self.live.look_at(volume);
        let is_judged = self.with_volume(volume, |_, volume| Ok(volume.ring.failing().is_none()));
        details.is_some() || self.ended_unix_ns.is_some() || !is_judged.unwrap_or(false)
    }

    fn are_devices_known(&self) -> bool {
        let mut devices = lock(&self.devices);
        devices.read();
        devices.is_known() || self.ended_unix_ns.is_some()
    }

    /// The files, waits and users of a volume; none where they were not reduced.
    fn details(&self, volume: &str) -> Result<Arc<Details>, Refused> {
        self.with_volume(volume, |_, volume| Ok(volume.details.clone().unwrap_or_default()))
    }

    fn devices(&self, volume: &str) -> Result<Value, Refused> {
        let details = self.details(volume)?;
        let facts = self.with_volume(volume, |_, volume| Ok(volume.facts.clone()))?;
        let devices = facts.map(|facts| lock(&self.devices).json(&facts)).unwrap_or_default();
        Ok(json!({ "devices": devices, "users": details.users_json() }))
    }

    /// Reads a history; another one is opened where requests read all that are open.
    fn with_history<T>(
        &self,
        wanted: &Wanted,
        read: impl FnOnce(&History) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let kept = lock(&self.histories).pop();
        let history = match kept {
            Some(history) => history,
            None => with(Privilege::Files, || History::open_kept(&self.path))?,
        };
        let is_wanted = wanted.clone();
        let value = history.read_while(move || is_wanted(), read);
        let mut histories = lock(&self.histories);
        if histories.len() < HISTORIES_MAX {
            histories.push(history);
        }
        value
    }

    /// Reads a volume while nothing changes.
    fn with_volume<T>(
        &self,
        id: &str,
        read: impl FnOnce(&Subject, &VolumeNow) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let known = self.live.known();
        match known.find(id) {
            Some((subject, volume)) => read(subject, volume),
            None => Err(Refused::not_found(format!("there is no volume {id}"), NAMED)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
