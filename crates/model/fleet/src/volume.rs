use crate::Trend;
use serde::Serialize;
use std::collections::BTreeMap;
use verdict::VerdictKind;

/// A host: the labels of its series that are not the families'.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Host {
    /// `instance`, `job`, and what was added.
    pub labels: BTreeMap<String, String>,
}

/// Factor by which today's demand can grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headroom {
    /// The figure to plan with.
    pub plan: f64,
    /// The low end of its range.
    pub low: Option<f64>,
    /// The high end.
    pub high: Option<f64>,
    /// Where it comes from.
    pub origin: HeadroomOrigin,
}

/// Where a headroom comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HeadroomOrigin {
    /// The agent's planning figure, as `headroom check` says it.
    Agent,
    /// 1 / utilisation, where the agent gives no figure.
    Utilisation,
}

/// A latency, and what the curves expect, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Measured.
    pub latency_s: Option<f64>,
    /// Expected.
    pub expected_s: Option<f64>,
}

/// A database on a volume of a host. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// The host.
    pub host: Host,
    /// Where the volume is mounted.
    pub mount: String,
    /// The database, as in incidents of the agent.
    pub database: String,
    /// The verdict; `None` where the server has none, or one that this version does not know.
    pub verdict: Option<VerdictKind>,
    /// Whether latencies, confidence, the range of headroom, outstanding I/Os and `contradicted` were queried: of a large
    /// fleet, only of the worst.
    pub has_details: bool,
    /// 1 low, 2 medium, 3 high.
    pub confidence: Option<u8>,
    /// Headroom.
    pub headroom: Option<Headroom>,
    /// Share of the storage in use.
    pub utilisation: Option<f64>,
    /// The resource that runs out first.
    pub binding: Option<String>,
    /// Mean I/Os that the database waits for.
    pub outstanding: Option<f64>,
    /// Reads from the storage.
    pub read: Latency,
    /// A commit's write and sync.
    pub commit: Latency,
    /// When the volume was measured.
    pub measured_unix_s: Option<f64>,
    /// Where that comes from: `measured`, `gentle`, `borrowed`, `declared`; `None` of agents that do not say it.
    pub known_from: Option<String>,
    /// Observed figure over the known one, where they contradict each other for a day.
    pub contradicted: Option<f64>,
    /// When it was judged.
    pub judged_unix_s: f64,
    /// Since when the verdict is the same.
    pub since_unix_s: Option<f64>,
    /// Whether an incident is open.
    pub incident_open: bool,
    /// How its utilisation grows; `None` where too little is kept.
    pub trend: Option<Trend>,
}

/// A database on a volume that was judged lately, and is not any more: a host that is gone, a source that
/// fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Stale {
    /// The host.
    pub host: Host,
    /// Where the volume is mounted.
    pub mount: String,
    /// The database.
    pub database: String,
    /// When it was judged last.
    pub judged_unix_s: f64,
}

/// A database judged on a volume of which nothing was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct NeverMeasured {
    /// The host.
    pub host: Host,
    /// Where the volume is mounted.
    pub mount: String,
    /// The database.
    pub database: String,
    /// The verdict, mostly `cannot say`.
    pub verdict: Option<VerdictKind>,
    /// Whether an incident is open.
    pub incident_open: bool,
}

/// A source that gives nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SilentSource {
    /// The host.
    pub host: Host,
    /// Its name.
    pub source: String,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// The time of all queries, seconds since 1970.
    pub at_unix_s: f64,
    /// The worst first.
    pub volumes: Vec<Volume>,
    /// Not judged any more.
    pub stale: Vec<Stale>,
    /// Judged without a capability.
    pub never_measured: Vec<NeverMeasured>,
    /// Sources that give nothing.
    pub silent_sources: Vec<SilentSource>,
    /// Hosts whose agent runs and judges nothing.
    pub without_database: Vec<Host>,
    /// Hosts with an agent.
    pub hosts: usize,
    /// Some of the servers below the queried one gave nothing.
    pub incomplete: bool,
    /// The server's warnings about that.
    pub warnings: Vec<String>,
    /// Number of queries sent.
    pub queries: usize,
    /// Whether daily percentiles are kept, by which a trend is known.
    pub has_trends: bool,
}

impl Host {
    /// Its name: the label `instance`.
    pub fn instance(&self) -> &str {
        self.labels.get("instance").map_or("", String::as_str)
    }

    /// The labels beside `instance` and `job`.
    pub fn added(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(|(name, _)| !matches!(*name, "instance" | "job"))
    }
}

impl Latency {
    /// Observed latency over the expected latency.
    pub fn times(&self) -> Option<f64> {
        Some(self.latency_s? / self.expected_s.filter(|expected| *expected > 0.0)?)
    }
}

impl Volume {
    /// Whether somebody has to act.
    pub fn needs_action(&self) -> bool {
        self.verdict.is_some_and(VerdictKind::needs_action)
    }

    /// Whether its verdict says something.
    pub fn is_judged(&self) -> bool {
        self.verdict.is_some_and(|kind| kind != VerdictKind::CannotSay)
    }

    /// The latency furthest above the expected one, and what it is of.
    pub fn worst_latency(&self) -> Option<(&'static str, Latency)> {
        let both = [("read", self.read), ("commit", self.commit)];
        let known = both.into_iter().filter(|(_, latency)| latency.latency_s.is_some());
        let times = |latency: &Latency| latency.times().unwrap_or(0.0);
        known.max_by(|(_, a), (_, b)| times(a).total_cmp(&times(b)))
    }
}

impl NeverMeasured {
    /// Whether somebody has to act on its verdict.
    pub fn needs_action(&self) -> bool {
        self.verdict.is_some_and(VerdictKind::needs_action)
    }
}

/// Of how many nothing can be said, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Volumes on which the verdict is `cannot say`, or none that this version knows.
    pub cannot_say: usize,
    /// Volumes that were never measured, and no verdict says that somebody has to act.
    pub never_measured: usize,
    /// Volumes that are not judged any more.
    pub stale: usize,
    /// Sources that give nothing.
    pub silent_sources: usize,
}

impl Fleet {
    /// Volumes with a verdict that says something.
    pub fn judged(&self) -> usize {
        let never_measured = self.never_measured.iter().filter(|one| one.needs_action()).count();
        self.volumes.iter().filter(|volume| volume.is_judged()).count() + never_measured
    }

    /// Verdicts that need action.
    pub fn needing_action(&self) -> usize {
        let never_measured = self.never_measured.iter().filter(|one| one.needs_action()).count();
        self.volumes.iter().filter(|volume| volume.needs_action()).count() + never_measured
    }

    /// Counts of the entries for which there is no answer.
    pub fn unknown(&self) -> Unknown {
        Unknown {
            cannot_say: self.volumes.iter().filter(|volume| !volume.is_judged()).count(),
            never_measured: self.never_measured.iter().filter(|one| !one.needs_action()).count(),
            stale: self.stale.len(),
            silent_sources: self.silent_sources.len(),
        }
    }

    /// Whether all that there is was queried and judged. Without that nothing says that the fleet is fine. A host without a
    /// database has nothing to judge.
    pub fn is_whole(&self) -> bool {
        !self.incomplete && self.judged() > 0 && self.unknown() == Unknown::default()
    }

    /// Whether an incident may be open that the answer does not have.
    pub fn hides_incidents(&self) -> bool {
        self.incomplete || !self.stale.is_empty() || !self.silent_sources.is_empty()
    }
}
