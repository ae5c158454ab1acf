//! Sentences that every format for people writes in the same words.

pub(crate) mod analysis;
pub(crate) mod capability;
pub(crate) mod comparison;
pub(crate) mod evidence;
pub(crate) mod fleet;
pub(crate) mod members;
pub(crate) mod sweep;
pub(crate) mod waits;
pub(crate) mod workload;

use crate::number;
use verdict::VerdictKind;

/// "3.50 x", where no explanation stands beside it: what saturated storage gives beyond today's demand waits longer.
pub(crate) fn headroom(verdict: Option<VerdictKind>, times: f64) -> String {
    let slower = verdict == Some(VerdictKind::DemandExceedsCapability) && times >= 1.0;
    format!("{}{}", number::times(times), if slower { ", slower" } else { "" })
}
