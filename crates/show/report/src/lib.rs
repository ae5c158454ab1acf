//! What people and programs read: a verdict, a capability, a run or intervals of files as terminal text,
//! JSON and HTML with charts.
//!
//! ```text
//! Check { verdict, observation, capability, … } ──┬─> text::check       one screen of a terminal
//!                                                 ├─> json::check       stable keys, docs/json.md
//!                                                 └─> html::check       one page, charts inside
//! Capability ─> text::capability, json::capability, html::capability
//! RunResult + Findings ─> text::run, json::run     PhaseResults ─> text::phases, json::phases
//! Snapshots + FileInterval ─> text::intervals
//! two Snapshots ─> Glance ─> text::watch, json::watch, csv::watch
//! RunResults ─> chart::RunChart ─> html::runs, html::matrix, html::comparison, chart::svg_file, chart::png_file
//! TracedIo ─> text::TraceLines, json::traced_io, csv::traced_io     Traced ─> text::trace, json::trace, html::trace
//! Analysed ─> text::analysis, json::analysis, csv::analysis, html::analysis
//! Simulation, Estimate ─> text::simulation, json::simulation, text::estimate, json::estimate, html::estimate
//! Sweeps ─> text::sweeps, json::sweeps, html::sweeps
//! matrix::Summary ─> text::matrix, json::matrix, csv::matrix
//! RecoverStudy ─> text::recoveries, json::recoveries, html::recoveries
//! CommitStudy ─> text::commits, json::commits, html::commits     Footprint ─> text::footprint, json::footprint
//! ```
//!
//! Every format is a view of the same value and takes its words from the same places: `number` writes
//! figures, `headline` the three large ones, `files` puts the worst file first. An unknown figure is shown
//! with its reason. Every name that comes from outside is made harmless for the format it goes into.
//!
//! This crate does no I/O, reads no clock and knows no terminal: the caller says whether there are colours.

mod analysed;
mod asked;
pub mod chart;
pub mod csv;
mod estimate;
mod files;
mod glance;
mod headline;
pub mod html;
pub mod json;
mod number;
mod swept;
pub mod text;
mod traced;
mod wording;

pub use analysed::{Analysed, Charted, StretchChart};
pub use estimate::{Estimate, Simulation, simulated_note};
pub use glance::{FileGlance, Glance};
pub use traced::{OpTotals, Traced, TracedFile};

use capability::{Capability, Curve};
use filestats::{Profile, ServiceLevel};
use serde::{Deserialize, Serialize};
use verdict::{Observation, Verdict};

/// A stretch of the observation that has a name of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// What ran ("everyday", "index rebuild").
    pub name: String,
    /// When it began, nanoseconds since 1970.
    pub from_unix_ns: u64,
    /// When it ended, nanoseconds since 1970.
    pub to_unix_ns: u64,
}

/// A verdict with everything it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The answer.
    pub verdict: Verdict,
    /// What was seen of the database and the device.
    pub observation: Observation,
    /// What the storage can give; `None` where it was never measured.
    pub capability: Option<Capability>,
    /// The scale of latency bands.
    pub profile: Profile,
    /// What the database's users are promised.
    pub service_level: ServiceLevel,
    /// Where the demand comes from ("sqlite:/data/sales.db").
    pub source: String,
    /// The directory, file or device the verdict is about.
    pub target: String,
    /// Named stretches of the observation.
    pub phases: Vec<Phase>,
    /// How far each remedy would carry, estimated; `None` where the demand is not too much or nothing can be foretold.
    pub advice: Option<simulate::Advice>,
    /// Version of Headroom that judged.
    pub version: String,
}

impl Check {
    /// The curve the demand is placed on; without a place, the first one with a knee.
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
    /// Worth a look.
    Warning,
    /// Bad news.
    Bad,
    /// Neither.
    #[default]
    Neutral,
}

impl Tone {
    pub(crate) fn of(kind: verdict::VerdictKind) -> Tone {
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
    pub(crate) fn of_rank(rank: usize, bands: usize) -> Tone {
        match rank * 3 / bands.max(1) {
            0 => Tone::Good,
            1 => Tone::Warning,
            _ => Tone::Bad,
        }
    }
}
