use crate::{Check, number, wording};
use capability::{Capability, Effort};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use verdict::{Confidence, Verdict, VerdictKind};

/// The verdict of a preliminary measurement, before the rest was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstAnswer {
    /// Seconds from the beginning of the command until it was printed.
    pub after_s: f64,
    /// The verdict.
    pub verdict: VerdictKind,
    /// How far to trust it.
    pub confidence: Confidence,
    /// Share of the storage in use, 1 = all; `None` where not known.
    pub utilisation: Option<f64>,
    /// The multiple of today's demand that can be carried; `None` where not known.
    pub headroom: Option<f64>,
    /// The low end of its range.
    pub headroom_low: Option<f64>,
    /// The high end of its range.
    pub headroom_high: Option<f64>,
}

impl FirstAnswer {
    /// The answer of that verdict, printed this long after the command began.
    pub fn new(verdict: &Verdict, after: Duration) -> FirstAnswer {
        FirstAnswer {
            after_s: after.as_secs_f64(),
            verdict: verdict.verdict,
            confidence: verdict.confidence,
            utilisation: verdict.utilisation,
            headroom: verdict.headroom,
            headroom_low: verdict.headroom_low,
            headroom_high: verdict.headroom_high,
        }
    }
}

/// "preliminary after 43 s: healthy, headroom 145 x (97 to 218 x)".
impl fmt::Display for FirstAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {:.0} s: {}", Effort::Preliminary, self.after_s, self.verdict)?;
        let Some(headroom) = self.headroom else { return Ok(()) };
        write!(f, ", headroom {}", wording::headroom(Some(self.verdict), headroom))?;
        match self.headroom_low.zip(self.headroom_high) {
            Some((low, high)) => {
                let (low, high) = (number::times(low), number::times(high));
                write!(f, " ({} to {high})", low.trim_end_matches(" x"))
            }
            None => Ok(()),
        }
    }
}

impl Check {
    /// Whether the answer rests on a preliminary measurement ([`Effort::Preliminary`]).
    pub fn is_preliminary(&self) -> bool {
        self.capability.as_ref().is_some_and(Capability::is_preliminary)
    }

    /// The verdict for a title: "healthy (preliminary)".
    pub(crate) fn verdict_title(&self) -> String {
        let verdict = self.verdict.verdict;
        if self.is_preliminary() {
            format!("{verdict} ({})", Effort::Preliminary)
        } else {
            verdict.to_string()
        }
    }
}
