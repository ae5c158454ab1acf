//! Output for people and programs: verdicts, capabilities, runs and intervals as text, JSON, CSV and HTML.
//!
//! ```text
//! Check ──────────────── text, json, html::check            one screen; stable keys (docs/reference/json.md); one page
//! Capability ─────────── text, json, html::capability       KnownStorage ─── text, json::known_storage
//! RunResult + Findings ─ text, json::run                    PhaseResults ─ text, json::phases
//! NamedRuns ──────────── html::runs, html::matrix, html::comparison
//! Snapshots ──────────── text::intervals                    WatchedInterval ─ text, json, csv::watch
//! TraceSummary ───────── text, json, html::trace            AnalysisReport ── text, json, csv, html::analysis
//! NumberedIncident ───── text, json::incidents              Fleet ─ text, json, html::fleet
//! Sweeps ─────────────── text, json, html::sweeps           matrix::Summary ─ text, json, csv::matrix
//! Simulation, Estimate ── text, json, html::estimate        text::parts, html::parts ── for reports of other crates
//! ```
//!
//! A page draws its charts with the crate `charts`. Every format is a view of the same value and takes its words from the
//! same places: `charts::number` writes figures, `wording` sentences, `headline` the three large figures; `files` sorts
//! the worst file first. An unknown figure has its reason. Names from outside are escaped for each format.
//!
//! The crate does no I/O, reads no clock and knows no terminal: the caller decides whether there are colours.

mod analysis_report;
pub mod csv;
mod estimate;
mod files;
mod first_answer;
mod headline;
pub mod html;
mod incident;
pub mod json;
mod known_storage;
pub mod text;
mod trace_summary;
mod volumes;
mod watched;
mod wording;

pub use analysis_report::{AnalysisReport, ChartSubject, HistoryChart};
pub use estimate::{Estimate, Simulation, simulated_note};
pub use first_answer::FirstAnswer;
pub use incident::NumberedIncident;
pub use known_storage::KnownStorage;
pub use trace_summary::{OpTotals, TraceFile, TraceSummary};
pub use watched::{DeviceLoad, FoldedFiles, WatchedDevice, WatchedFile, WatchedInterval, fold_libraries};

pub use charts::number;

use capability::{Capability, Curve};
use filestats::{Profile, ServiceLevel};
use serde::{Deserialize, Serialize};
use verdict::{Figures, Observation, Verdict};

/// A named part of the observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phase {
    /// Its name: "everyday", "index rebuild".
    pub name: String,
    /// When it began, nanoseconds since 1970.
    pub from_unix_ns: u64,
    /// When it ended, nanoseconds since 1970.
    pub to_unix_ns: u64,
}

/// A verdict with everything it is based on.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The answer.
    pub verdict: Verdict,
    /// The observation of the database and the device.
    pub observation: Observation,
    /// The capability of the storage; `None` where it was never measured.
    pub capability: Option<Capability>,
    /// The scale of latency bands.
    pub profile: Profile,
    /// The service level of the database's users.
    pub service_level: ServiceLevel,
    /// Where the demand comes from ("sqlite:/data/sales.db").
    pub source: String,
    /// The directory, file or device the verdict is about.
    pub target: String,
    /// Named parts of the observation.
    pub phases: Vec<Phase>,
    /// How far each remedy would carry, estimated; `None` where the demand is not too much or there is no estimate.
    pub advice: Option<simulate::Advice>,
    /// Version of Headroom that judged.
    pub version: String,
    /// The first answer, where the storage was measured in the meantime; `None` elsewhere.
    pub first_answer: Option<FirstAnswer>,
    /// The database's other volumes, each judged alone, without others of its own.
    pub others: Vec<Check>,
    /// The verdict on this volume alone; `None` where there are no others, and it is the answer.
    pub alone: Option<Verdict>,
    /// The volume whose headroom the answer's is, where it is another than this.
    pub headroom_on: Option<String>,
}

impl Check {
    /// All volumes of the database, the one that binds first.
    pub fn volumes(&self) -> impl Iterator<Item = &Check> {
        std::iter::once(self).chain(&self.others)
    }

    /// The verdict on this volume alone.
    pub fn own_verdict(&self) -> &Verdict {
        self.alone.as_ref().unwrap_or(&self.verdict)
    }

    /// Where the volume is and what lies on it: "/wal (log)".
    pub fn place(&self) -> String {
        match self.roles() {
            roles if roles.is_empty() => self.target.clone(),
            roles => format!("{} ({roles})", self.target),
        }
    }

    /// Uses of the files on it: "data, temp".
    pub(crate) fn roles(&self) -> String {
        let roles: Vec<String> = self.observation.roles().iter().map(ToString::to_string).collect();
        roles.join(", ")
    }

    /// Mean number of sessions that wait for it.
    pub fn outstanding(&self) -> f64 {
        Figures::from_moments(&self.observation.moments, self.capability.as_ref()).outstanding
    }

    /// The curve that the demand is placed on; without a place, the first one with a knee.
    pub(crate) fn curve(&self) -> Option<&Curve> {
        let capability = self.capability.as_ref()?;
        let placed = self.verdict.place.as_ref().and_then(|place| capability.curve(&place.curve));
        placed.or_else(|| capability.curves.iter().find(|curve| curve.knee.is_some()))
    }
}

/// How good or bad the news is, for colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Fine.
    Good,
    /// Worth attention.
    Warning,
    /// Bad news.
    Bad,
    /// Neither.
    #[default]
    Neutral,
}

impl Tone {
    pub(crate) fn from_verdict(kind: verdict::VerdictKind) -> Tone {
        use verdict::VerdictKind;
        match kind {
            VerdictKind::Healthy | VerdictKind::NobodyWaits => Tone::Good,
            VerdictKind::Burst | VerdictKind::Serialized | VerdictKind::NotStorage => Tone::Warning,
            VerdictKind::DemandExceedsCapability | VerdictKind::StorageDegraded | VerdictKind::Throttled => {
                Tone::Bad
            }
            VerdictKind::CannotSay => Tone::Neutral,
        }
    }

    /// The tone of a band: the upper third of the scale is good, the lower third bad.
    pub(crate) fn from_rank(rank: usize, bands: usize) -> Tone {
        match rank * 3 / bands.max(1) {
            0 => Tone::Good,
            1 => Tone::Warning,
            _ => Tone::Bad,
        }
    }
}
