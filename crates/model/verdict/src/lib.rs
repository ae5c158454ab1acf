//! The answer: demand placed on capability, with the numbers that prove it.
//!
//! ```text
//! Observation  moments (short intervals of the database's files on a volume and of the device below), caps now
//!      │  Figures::from_moments(): rates, N by Little's law, latency of what reached storage, utilisation,
//!      │                 the latency the curve expects at that N and size
//!      v
//! judge()      table.rs, the first of rows/ whose condition holds: cannot say, throttled, nobody waits,
//!      │       saturated, storage degraded, not storage, burst, serialized, healthy
//!      v
//! Verdict      kind, confidence and its doubts, evidence { what, value, unit, source, at }, next step
//!      │  one for each volume of the database
//!      v
//! Answer       the verdict on the volume that binds, the headroom of all
//! ```
//!
//! Pure: the whole judgement runs on numbers from a file, and every rule is tested with plain values.

mod case;
mod confidence;
mod demand;
mod evidence;
mod figures;
mod file_sums;
mod fine;
mod headroom;
mod held_back;
mod observation;
mod pressure;
mod rows;
mod seconds;
mod shared_files;
mod stall;
mod table;
mod thresholds;
mod volumes;

pub use demand::is_log;
pub use figures::{Figures, Place, StorageRates};
pub use file_sums::sum_files;
pub use fine::fine_for;
pub use observation::{FailedIos, LogTiming, Moment, Neighbour, Observation, ProcessorUse};
pub use pressure::{CapUse, Pressure, caps_used};
pub use shared_files::SharedFiles;
pub use table::judge;
pub use volumes::{Answer, JudgedVolume};

use capability::Binding;
use serde::{Deserialize, Serialize};
use std::fmt;
use workload::Unit;

/// The state of a database and its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// Latency agrees with the curve, demand well below the knee.
    Healthy,
    /// Demand at or over the operating limit; latency is what the curve says at that load. People read "saturated".
    DemandExceedsCapability,
    /// Latency far above what this storage gave at the same load when it was measured; or I/Os that fail or do not complete.
    StorageDegraded,
    /// A cap is what adds the time.
    Throttled,
    /// Demand far below the knee, one I/O waited for at a time.
    Serialized,
    /// The average is fine, short intervals are at the operating limit.
    Burst,
    /// The database waits, the layer below it does not.
    NotStorage,
    /// Latency is high, no session waits for it, the service level is kept.
    NobodyWaits,
    /// Too little I/O, a reset, a gap, timing off, nothing to compare with.
    CannotSay,
}

/// Cause that is neither the database nor the storage as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Another program on this host, which is named.
    AnotherProgram,
    /// A cause below the database and of no program on this host: the disk, its path, other hosts.
    Below,
}

/// How far to trust a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Observe again before acting.
    Low,
    /// There is one caveat.
    Medium,
    /// There is no caveat.
    High,
}

/// One number that supports the verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Name of the number.
    pub what: String,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Where it comes from: the database's files, the device, the capability, a cap.
    pub source: String,
    /// Until when it was observed or when it was measured, nanoseconds since 1970.
    pub at: u64,
    /// The value that it is compared with; `None` where nothing is expected of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
}

/// Value that a number is compared with, in the same unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// The number.
    pub value: f64,
    /// Where it comes from: a curve of the capability, its knee, a cap.
    pub source: String,
    /// When it was measured or read, nanoseconds since 1970.
    pub at: u64,
}

impl Evidence {
    /// Observed over expected; `None` where nothing is expected or the quotient says nothing.
    pub fn ratio(&self) -> Option<f64> {
        let ratio = self.value / self.expected.as_ref()?.value;
        ratio.is_finite().then_some(ratio)
    }
}

/// The answer of `headroom check`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The state that was found.
    pub verdict: VerdictKind,
    /// Cause beside the database and the storage as it was measured, if any.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// In one sentence.
    pub summary: String,
    /// How far to trust it.
    pub confidence: Confidence,
    /// Reasons for less confidence.
    pub doubts: Vec<String>,
    /// Share of the storage in use, 1 = all; `None` without a capability or without I/O.
    pub utilisation: Option<f64>,
    /// Factor by which today's demand can grow: the figure to plan with. `None` where the verdict is
    /// [`VerdictKind::CannotSay`].
    pub headroom: Option<f64>,
    /// The low end of its range, for what must not fail.
    #[serde(default)]
    pub headroom_low: Option<f64>,
    /// The high end of its range; `None` where the storage may give any more.
    #[serde(default)]
    pub headroom_high: Option<f64>,
    /// Why it is a range, what limits it where that is not the storage, or what it means where the storage is saturated.
    #[serde(default)]
    pub headroom_reason: Option<String>,
    /// The resource that runs out first.
    pub binding: Option<Binding>,
    /// The numbers.
    pub evidence: Vec<Evidence>,
    /// The next step, in plain words.
    pub next_step: String,
    /// Where the demand lies on which curve, for a chart.
    pub place: Option<Place>,
}

impl VerdictKind {
    /// All of them.
    pub const ALL: [VerdictKind; 9] = [
        VerdictKind::Healthy,
        VerdictKind::DemandExceedsCapability,
        VerdictKind::StorageDegraded,
        VerdictKind::Throttled,
        VerdictKind::Serialized,
        VerdictKind::Burst,
        VerdictKind::NotStorage,
        VerdictKind::NobodyWaits,
        VerdictKind::CannotSay,
    ];

    /// Whether somebody has to act.
    pub fn needs_action(self) -> bool {
        !matches!(self, VerdictKind::Healthy | VerdictKind::NobodyWaits | VerdictKind::CannotSay)
    }
}

impl VerdictKind {
    /// The word for programs, as in JSON: "demand-exceeds-capability".
    pub fn word(self) -> &'static str {
        match self {
            VerdictKind::Healthy => "healthy",
            VerdictKind::DemandExceedsCapability => "demand-exceeds-capability",
            VerdictKind::StorageDegraded => "storage-degraded",
            VerdictKind::Throttled => "throttled",
            VerdictKind::Serialized => "serialized",
            VerdictKind::Burst => "burst",
            VerdictKind::NotStorage => "not-storage",
            VerdictKind::NobodyWaits => "nobody-waits",
            VerdictKind::CannotSay => "cannot-say",
        }
    }
}

/// The word for people.
impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VerdictKind::Healthy => "healthy",
            VerdictKind::DemandExceedsCapability => "saturated",
            VerdictKind::StorageDegraded => "storage degraded",
            VerdictKind::Throttled => "throttled",
            VerdictKind::Serialized => "serialized",
            VerdictKind::Burst => "burst",
            VerdictKind::NotStorage => "not storage",
            VerdictKind::NobodyWaits => "nobody waits",
            VerdictKind::CannotSay => "cannot say",
        })
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_for_programs_is_that_of_json() {
        for kind in VerdictKind::ALL {
            assert_eq!(serde_json::json!(kind), kind.word());
        }
    }
}
