//! A cap adds the time.

use crate::Expected;
use crate::case::Case;
use crate::evidence::{DEVICE, Grounds, cap_unit};
use crate::thresholds::RATIO_AGREES;

pub(crate) fn throttled(case: &Case) -> Option<Grounds> {
    let (cap, rate, by_cap) = case.cap_reached()?;
    let wait = case.noticed_wait().filter(|wait| wait.ratio >= RATIO_AGREES)?;
    let (what, source) = if by_cap {
        ("rate at the cap", cap.origin.as_str())
    } else {
        ("rate at the device, and the cap", DEVICE)
    };
    let limit = Expected { value: cap.per_second as f64, source: cap.origin.clone(), at: case.ended() };
    let mut evidence = vec![case.observed(what, rate, cap_unit(cap), source).beside(limit)];
    evidence.extend(case.latency());
    Some(Grounds {
        summary: format!(
            "a cap of {cap} ({}) holds the storage back: {} take {:.1} x what they took without",
            cap.origin, wait.what, wait.times
        ),
        evidence,
        next_step: format!(
            "raise or lift the cap on device {} ({}), or bring the demand below it",
            cap.device, cap.origin
        ),
    })
}
