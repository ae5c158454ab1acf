//! A cap adds the time.

use crate::case::Case;
use crate::evidence::{DEVICE, Grounds, cap_unit};
use crate::thresholds::RATIO_AGREES;

pub(crate) fn throttled(case: &Case) -> Option<Grounds> {
    let (cap, rate) = case.cap_reached()?;
    let wait = case.noticed_wait().filter(|wait| wait.ratio >= RATIO_AGREES)?;
    let mut evidence = vec![
        case.observed("cap in force", cap.per_second as f64, cap_unit(cap), &cap.origin),
        case.observed("rate at the device", rate, cap_unit(cap), DEVICE),
    ];
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
