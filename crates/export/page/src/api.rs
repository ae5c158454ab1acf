use crate::about::{About, measure_command};
use crate::answer::{Answer, Refused};
use crate::devices::Devices;
use crate::live::{Live, VolumeNow};
use crate::query::Query;
use crate::series::Remembered;
use crate::{Details, Moments, capabilities, curve, incident_list, series, state, verdicts};
use history::History;
use host::privileges::{Privilege, with};
use incidents::Subject;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use timeline::{POINTS_MAX, Span};

/// Answers the page's requests.
#[derive(Debug)]
pub struct Api {
    live: Arc<Live>,
    about: Mutex<About>,
    path: PathBuf,
    history: Mutex<Option<History>>,
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

/// The default stretch of a chart.
const SERIES_NS: i128 = 900_000_000_000;
/// The default stretch of verdicts: a day.
const VERDICTS_NS: i128 = 86_400_000_000_000;
/// Points of a chart, where no number is given.
const POINTS: i128 = 900;
/// How long a request waits for what is reduced only when someone looks.
const DETAILS_WITHIN: Duration = Duration::from_secs(3);
/// The longest stretch of a chart: ten years.
const SPAN_MAX_NS: u64 = 10 * 365 * 86_400_000_000_000;
/// Streams share a state for this long: twenty databases make a new one four times a second, and each stream would have its own.
const SHARED: Duration = Duration::from_secs(1);
const NAP: Duration = Duration::from_millis(50);
const NAMED: &str = "/api/v1/state names the volumes";

impl Api {
    /// For an agent whose history is at `path`; `ended_unix_ns` is the last time of one that nothing is added to.
    pub fn new(live: Arc<Live>, about: About, path: PathBuf, ended_unix_ns: Option<u64>) -> Api {
        Api {
            live,
            about: Mutex::new(about),
            path,
            history: Mutex::new(None),
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

    /// Answers a path below `/api/v1/`. It may read the history and wait: not for a thread that others wait for.
    pub fn answer(&self, path: &str, query: &str) -> Answer {
        let query = Query(query);
        let result = match path {
            "state" => return Answer { status: 200, body: self.state().to_string() },
            "curve" => self.curve(&query),
            "series" => self.series(&query),
            "verdicts" => self.verdicts(&query),
            "files" => self.details(&query).map(|details| details.files_json(query.text("path").as_deref())),
            "waits" => self.details(&query).map(|details| details.waits_json()),
            "devices" => self.devices(&query),
            "incidents" => self.with_history(incident_list::list),
            "capabilities" => self.with_history(|history| capabilities::capabilities(history, self.now_ns())),
            _ => match path.strip_prefix("incidents/") {
                Some(id) => self.with_history(|history| incident_list::one(history, id)),
                None => Err(Refused::not_found(
                    "there is no such thing",
                    "state, series, verdicts, curve, files, waits, devices, incidents, capabilities and stream exist",
                )),
            },
        };
        result.into()
    }

    /// All databases and volumes in one look, with the time of now.
    pub fn state(&self) -> String {
        self.with_time(&self.render(Duration::ZERO).text)
    }

    /// The same, up to a second old, and its version; streams share it.
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
        let open = self.with_history(|history| {
            Ok(history.map(History::open_incidents).transpose()?.map_or(0, |open| open.len()))
        });
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

    /// The seconds of a volume that a stream sends, where `after_unix_ns` is the newest that it has sent, 0 at its beginning. `None`
    /// where there is no such volume. Who reads them looks at the volume.
    pub fn moments(&self, id: &str, after_unix_ns: u64) -> Option<Moments> {
        self.live.look_at(id);
        let known = self.live.known();
        let (_, volume) = known.find(id)?;
        Some(Moments::after(after_unix_ns, &volume.ring, self.now_ns()))
    }

    fn now_ns(&self) -> u64 {
        self.ended_unix_ns.unwrap_or_else(host::unix_ns)
    }

    fn curve(&self, query: &Query<'_>) -> Result<Value, Refused> {
        self.with_volume(query, |subject, volume| {
            let capability = volume.judged.as_ref().and_then(|judged| judged.capability.as_ref());
            let capability = capability.ok_or_else(|| {
                let error = format!("it was never measured what {} can give", subject.mount);
                Refused::not_found(error, measure_command(&subject.mount))
            })?;
            Ok(curve::curve(volume, capability, self.now_ns()))
        })
    }

    fn series(&self, query: &Query<'_>) -> Result<Value, Refused> {
        let span = self.span(query, SERIES_NS)?;
        let points = usize::try_from(query.number("points", POINTS)?)
            .ok()
            .filter(|points| (1..=POINTS_MAX).contains(points));
        let points =
            points.ok_or_else(|| Refused::wrong("points is out of range", format!("1 to {POINTS_MAX}")))?;
        let now_ns = self.now_ns();
        let (subject, remembered) = self.with_volume(query, |subject, volume| {
            let remembered = Remembered {
                instants: volume.ring.samples().map(|(_, instant)| instant.clone()).collect(),
                gaps: volume.ring.gaps(now_ns),
                marks: volume.marks.iter().cloned().collect(),
                begin_ns: volume.ring.begin_ns().unwrap_or(now_ns),
            };
            Ok((subject.clone(), remembered))
        })?;
        self.with_history(|history| series::series(&subject, &remembered, history, (span, points)))
    }

    fn verdicts(&self, query: &Query<'_>) -> Result<Value, Refused> {
        let span = self.span(query, VERDICTS_NS)?;
        let now_ns = self.now_ns();
        let (subject, watched, gaps) = self.with_volume(query, |subject, volume| {
            let begin = volume.ring.begin_ns();
            let watched =
                begin.map(|from_ns| Span { from_ns, to_ns: now_ns }).filter(|_| self.ended_unix_ns.is_none());
            Ok((subject.clone(), watched, volume.ring.gaps(now_ns)))
        })?;
        self.with_history(|history| verdicts::verdicts(&subject, watched.as_slice(), &gaps, history, span))
    }

    /// The files, waits and users of a volume. They are reduced with the next judgement, which comes before its time when someone
    /// waits for them.
    fn details(&self, query: &Query<'_>) -> Result<Arc<Details>, Refused> {
        let id = self.with_volume(query, |_, volume| Ok(volume.id.clone()))?;
        let began = Instant::now();
        loop {
            let details = self.live.look_at(&id);
            let is_judged = self.with_volume(query, |_, volume| Ok(volume.ring.failing().is_none()))?;
            if details.is_some()
                || !is_judged
                || self.ended_unix_ns.is_some()
                || began.elapsed() > DETAILS_WITHIN
            {
                return Ok(details.unwrap_or_default());
            }
            std::thread::sleep(NAP);
        }
    }

    fn devices(&self, query: &Query<'_>) -> Result<Value, Refused> {
        let details = self.details(query)?;
        let facts = self.with_volume(query, |_, volume| Ok(volume.facts.clone()))?;
        let began = Instant::now();
        let devices = loop {
            let mut devices = lock(&self.devices);
            devices.read();
            if devices.is_known() || self.ended_unix_ns.is_some() || began.elapsed() > DETAILS_WITHIN {
                break facts.map(|facts| devices.json(&facts)).unwrap_or_default();
            }
            drop(devices);
            std::thread::sleep(NAP);
        };
        Ok(json!({ "devices": devices, "users": details.users_json() }))
    }

    /// `from` and `to`, by default the newest stretch of a length. Negative ones are before now.
    fn span(&self, query: &Query<'_>, length: i128) -> Result<Span, Refused> {
        let now = i128::from(self.now_ns());
        let absolute = |value: i128| if value <= 0 { now + value } else { value };
        let to = absolute(query.number("to", 0)?);
        let from = query.number("from", i128::MIN)?;
        let from = if from == i128::MIN { to - length } else { absolute(from) };
        let in_range = |ns: i128| {
            u64::try_from(ns).map_err(|_| Refused::wrong("a time is out of range", "nanoseconds since 1970"))
        };
        let span = Span { from_ns: in_range(from)?, to_ns: in_range(to)? };
        if span.len_ns() == 0 || span.len_ns() > SPAN_MAX_NS {
            return Err(Refused::wrong(
                "from is not before to, or more than ten years",
                "from=-900000000000",
            ));
        }
        Ok(span)
    }

    /// The history, which is opened with the first request that needs it.
    fn with_history<T>(
        &self,
        read: impl FnOnce(Option<&History>) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let mut history = lock(&self.history);
        if history.is_none() {
            *history = Some(with(Privilege::Files, || History::open_kept(&self.path))?);
        }
        read(history.as_ref())
    }

    /// What a volume is asked for, while nothing changes.
    fn with_volume<T>(
        &self,
        query: &Query<'_>,
        read: impl FnOnce(&Subject, &VolumeNow) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let id = query.text("volume").ok_or_else(|| Refused::wrong("which volume is not said", NAMED))?;
        let known = self.live.known();
        match known.find(&id) {
            Some((subject, volume)) => read(subject, volume),
            None => Err(Refused::not_found(format!("there is no volume {id}"), NAMED)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
