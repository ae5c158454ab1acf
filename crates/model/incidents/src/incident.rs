use crate::recurrence::Recurrence;
use crate::{Clocks, Subject};
use serde::{Deserialize, Serialize};
use verdict::{Cause, Confidence, Evidence, VerdictKind};

/// Trouble of one database on one volume, from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// The affected database and volume.
    #[serde(flatten)]
    pub subject: Subject,
    /// Further databases on the volume, or on another mount of its device, that it affects or affected.
    #[serde(default)]
    pub also: Vec<String>,
    /// Further mounts of the volume's device that it affects or affected.
    #[serde(default)]
    pub also_mounts: Vec<String>,
    /// The kind that held for the longest time.
    pub verdict: VerdictKind,
    /// When the bad verdict began, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// When it last held; `None` while the incident is open.
    pub ended_unix_ns: Option<u64>,
    /// Why it was closed; `None` while it is open.
    #[serde(default)]
    pub ending: Option<Ending>,
    /// When it was opened: the bad verdict had held for long enough.
    pub opened_unix_ns: u64,
    /// When the bad verdict last held.
    pub last_bad_unix_ns: u64,
    /// Highest utilisation.
    pub utilisation_max: Option<f64>,
    /// Mean utilisation while the bad verdict held.
    pub utilisation_mean: Option<f64>,
    /// Judgements in the mean.
    pub(crate) utilisation_count: u64,
    /// Each kind that held, in the order in which they began. At most one for each kind of problem.
    pub held: Vec<Held>,
    /// Earlier occurrences of a burst that comes again.
    #[serde(default)]
    pub recurrence: Recurrence,
}

/// One kind of verdict within an incident.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The kind.
    pub verdict: VerdictKind,
    /// How long it held.
    pub held_ns: u64,
    /// Its worst moment.
    pub worst: Detail,
}

/// Why an incident was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The bad verdict did not hold any more.
    Recovered,
    /// Nothing was known of the database for an hour.
    NothingKnown,
    /// The database is watched no longer.
    NotWatched,
}

/// The figures of a judgement; what is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Readings {
    /// Share of the storage in use, 1 = all.
    pub utilisation: Option<f64>,
    /// Mean I/Os that the database waits for.
    pub outstanding: Option<f64>,
    /// Mean latency of what sessions wait for longest: reads or commits, nanoseconds.
    pub latency_ns: Option<f64>,
    /// Latency that the curves predict there, nanoseconds.
    pub expected_ns: Option<f64>,
    /// The database's reads from storage and its writes, a second.
    pub iops: Option<f64>,
    /// Bytes of these reads, a second.
    pub read_bytes_per_second: Option<f64>,
    /// Bytes of these writes, a second.
    pub written_bytes_per_second: Option<f64>,
}

impl Readings {
    /// How bad it is: times the expected latency, or the utilisation, the larger of both.
    pub fn severity(&self) -> f64 {
        let times = self.latency_ns.zip(self.expected_ns).map(|(latency, expected)| latency / expected);
        times.into_iter().chain(self.utilisation).filter(|value| value.is_finite()).fold(0.0, f64::max)
    }
}

/// State known at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// When, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// In one sentence.
    pub summary: String,
    /// Cause beside the database and the storage as it was measured.
    pub cause: Option<Cause>,
    /// How far to trust it.
    pub confidence: Confidence,
    /// The figures.
    pub readings: Readings,
    /// The numbers that prove it.
    pub evidence: Vec<Evidence>,
    /// The next step.
    pub next_step: String,
    /// The files with the longest I/O time, the first the longest.
    pub files: Vec<BusyFile>,
    /// The programs that did most of the device's I/O beside the database.
    pub processes: Vec<BusyProcess>,
    /// The longest waits of sessions.
    pub waits: Vec<LongWait>,
}

/// A file that was much used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusyFile {
    /// Its path.
    pub path: String,
    /// Reads and writes a second.
    pub operations_per_s: f64,
    /// Bytes a second, read and written.
    pub bytes_per_s: f64,
    /// Mean I/Os outstanding; `None` where the source does not time them.
    pub outstanding: Option<f64>,
}

/// A program that used the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusyProcess {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub command: String,
    /// Where its part is that of a disk on which the volume's device lies: the disk, "sda".
    #[serde(default)]
    pub device: Option<String>,
    /// Its part of the device's I/O, 0 to 1.
    pub share: f64,
}

/// Waits of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LongWait {
    /// The engine's name for it.
    pub event: String,
    /// Mean sessions that waited.
    pub sessions: f64,
}

impl Incident {
    /// Whether it is of this database on this mount, or stands for it.
    pub fn affects(&self, subject: &Subject) -> bool {
        let is_one_of =
            |own: &str, more: &[String], wanted: &str| own == wanted || more.iter().any(|one| one == wanted);
        is_one_of(&self.subject.mount, &self.also_mounts, &subject.mount)
            && is_one_of(&self.subject.database, &self.also, &subject.database)
    }

    /// The further databases and mounts, for people.
    pub fn also_affected(&self) -> Vec<String> {
        let mounts = self.also_mounts.iter().map(|mount| format!("{mount} (the same device)"));
        self.also.iter().cloned().chain(mounts).collect()
    }

    /// Begins one that is not opened yet, at its first bad judgement.
    pub(crate) fn begin(subject: &Subject, started: u64, at: Clocks) -> Incident {
        Incident {
            subject: subject.clone(),
            also: Vec::new(),
            also_mounts: Vec::new(),
            verdict: VerdictKind::CannotSay,
            started_unix_ns: started,
            ended_unix_ns: None,
            ending: None,
            opened_unix_ns: at.unix_ns,
            last_bad_unix_ns: at.unix_ns,
            utilisation_max: None,
            utilisation_mean: None,
            utilisation_count: 0,
            held: Vec::new(),
            recurrence: Recurrence::default(),
        }
    }

    /// Adds a bad judgement that stands for `held_ns`. Returns whether the kind of the incident is another now.
    pub(crate) fn add(&mut self, kind: VerdictKind, held_ns: u64, detail: &Detail) -> bool {
        if let Some(utilisation) = detail.readings.utilisation {
            self.utilisation_count += 1;
            let mean = self.utilisation_mean.unwrap_or(0.0);
            self.utilisation_mean = Some(mean + (utilisation - mean) / self.utilisation_count as f64);
            self.utilisation_max = Some(self.utilisation_max.unwrap_or(utilisation).max(utilisation));
        }
        match self.held.iter_mut().find(|held| held.verdict == kind) {
            Some(held) => {
                held.held_ns = held.held_ns.saturating_add(held_ns);
                if detail.readings.severity() > held.worst.readings.severity() {
                    held.worst = detail.clone();
                }
            }
            None => self.held.push(Held { verdict: kind, held_ns, worst: detail.clone() }),
        }
        // Of equals the first.
        let longest = self.held.iter().rev().max_by_key(|held| held.held_ns);
        let before = std::mem::replace(&mut self.verdict, longest.map_or(kind, |held| held.verdict));
        before != self.verdict
    }

    /// How long a bad verdict held.
    pub fn held_ns(&self) -> u64 {
        self.held.iter().map(|held| held.held_ns).fold(0, u64::saturating_add)
    }

    /// The worst moment of the kind that held for the longest time.
    pub fn worst(&self) -> Option<&Detail> {
        self.held.iter().find(|held| held.verdict == self.verdict).map(|held| &held.worst)
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.ended_unix_ns.is_none()
    }

    /// Closes it.
    pub(crate) fn end(&mut self, ending: Ending) {
        // A clock that was set back must not end it before it began.
        self.ended_unix_ns = Some(self.last_bad_unix_ns.max(self.started_unix_ns));
        self.ending = Some(ending);
    }
}
