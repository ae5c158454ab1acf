use serde::{Deserialize, Serialize};
use workload::Unit;

/// Kinds of finding, one for each rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// No I/O completed.
    NothingMeasured,
    /// I/Os or syncs failed.
    Errors,
    /// Whether the written data could be read again.
    Verification,
    /// The run ended before its time.
    Interrupted,
    /// The program was stopped, or the machine suspended, during the run.
    Stopped,
    /// Other programs removed, replaced or detached the target.
    TargetGone,
    /// Other programs cut the target, or freed blocks of it.
    TargetCut,
    /// Too few I/Os to say anything.
    TooFewIos,
    /// Whether the client's CPU was the limit.
    Cpu,
    /// Others used the machine, or a hypervisor took it away.
    OtherLoad,
    /// Whether the load threads agree.
    Threads,
    /// The target against memory and caches.
    TargetSize,
    /// The target is a small multiple of a cache.
    TargetMultiple,
    /// I/Os that are no whole sectors.
    Sectors,
    /// Whether an open loop's rate was reached.
    ArrivalRate,
    /// Whether the open loop's generator kept its schedule.
    GeneratorLate,
    /// Response time of users beside the latency of the storage.
    Response,
    /// Little's law: outstanding I/Os reached against those requested.
    Outstanding,
    /// Bytes moved against I/Os and their size.
    TransferSize,
    /// The run against a measured knee.
    Knee,
    /// SNIA's steady state, and the drift.
    SteadyState,
    /// The speed fell for good.
    Cliff,
    /// Rows without any I/O.
    Stalls,
    /// Signs of a limit set from outside.
    Capped,
    /// Percentiles that rest on enough I/Os.
    Percentiles,
    /// The two neighbouring percentiles that are farthest apart.
    PercentileJump,
    /// The named ranges of latency.
    Bands,
    /// Writes obtained against requested.
    WriteShare,
    /// Time that syncs took.
    Syncs,
}

impl FindingKind {
    /// Text of a warning of this kind, in a few words.
    pub fn warning(self) -> &'static str {
        match self {
            FindingKind::NothingMeasured => "no I/O completed",
            FindingKind::Errors => "I/Os or syncs failed",
            FindingKind::Verification => "blocks differ from what was written",
            FindingKind::Interrupted => "the run ended early",
            FindingKind::Stopped => "the program was stopped for a time",
            FindingKind::TargetGone => "the target is gone",
            FindingKind::TargetCut => "the target was cut",
            FindingKind::TooFewIos => "too few I/Os",
            FindingKind::Cpu => "the CPU may be the limit",
            FindingKind::OtherLoad => "other load on the machine",
            FindingKind::Threads => "the load threads differ",
            FindingKind::TargetSize => "a cache may have answered, not the storage",
            FindingKind::TargetMultiple => "the target is a multiple of a cache",
            FindingKind::Sectors => "I/Os are not whole sectors",
            FindingKind::ArrivalRate => "the requested rate was not reached",
            FindingKind::GeneratorLate => "the load generator was late",
            FindingKind::Response => "I/Os waited before they were submitted",
            FindingKind::Outstanding => "outstanding I/Os are not as requested",
            FindingKind::TransferSize => "I/Os moved other sizes than requested",
            FindingKind::Knee => "the result differs from the measured capability",
            FindingKind::SteadyState => "the rate or the latency was not steady",
            FindingKind::Cliff => "the speed fell during the run",
            FindingKind::Stalls => "I/O stopped for a time",
            FindingKind::Capped => "a limit may hold the rate",
            FindingKind::Percentiles => "too few I/Os for p99",
            FindingKind::PercentileJump => "the percentiles jump",
            FindingKind::Bands => "most of the latency is poor",
            FindingKind::WriteShare => "the share of writes is not as requested",
            FindingKind::Syncs => "syncs took much of the time",
        }
    }
}

/// How it bears on the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// The figures, or the storage, are not what they seem.
    Warning,
}

/// One number behind a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fact {
    /// Name of the number.
    pub what: String,
    /// The number, always finite.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

/// Finding of one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The rule.
    pub kind: FindingKind,
    /// How it bears on the result.
    pub weight: Weight,
    /// One sentence with its numbers.
    pub text: String,
    /// The numbers.
    pub facts: Vec<Fact>,
    /// The remedy; `None` where nothing needs doing.
    pub remedy: Option<String>,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, weight: Weight, text: impl Into<String>) -> Finding {
        Finding { kind, weight, text: text.into(), facts: Vec::new(), remedy: None }
    }

    /// A number that is not finite is none, and left out.
    pub(crate) fn fact(mut self, what: &str, value: f64, unit: Unit) -> Finding {
        if value.is_finite() {
            self.facts.push(Fact { what: what.into(), value, unit });
        }
        self
    }

    pub(crate) fn facts<const N: usize>(self, facts: [(&str, f64, Unit); N]) -> Finding {
        facts.into_iter().fold(self, |finding, (what, value, unit)| finding.fact(what, value, unit))
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Finding {
        self.remedy = Some(remedy.into());
        self
    }

    /// Whether the figures must not be used as those of the storage under the requested load.
    pub fn invalidates(&self) -> bool {
        let grave = matches!(
            self.kind,
            FindingKind::NothingMeasured
                | FindingKind::TooFewIos
                | FindingKind::Verification
                | FindingKind::Stopped
                | FindingKind::TargetCut
                | FindingKind::GeneratorLate
        );
        grave && self.weight == Weight::Warning
    }
}
