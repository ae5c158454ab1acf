//! The three figures a reader looks at first.

use crate::{Check, number};
use capability::KneeReason;
use filestats::Delta;
use verdict::{Figures, Verdict, VerdictKind};

/// A figure with its explanation.
pub(crate) struct Headline {
    pub(crate) title: &'static str,
    /// `None` where it is not known.
    pub(crate) value: Option<String>,
    pub(crate) note: String,
    /// Share of the whole, for a bar.
    pub(crate) share: Option<f64>,
}

/// Utilisation, headroom and the place against the knee.
pub(crate) fn headlines(check: &Check, figures: &Figures) -> [Headline; 3] {
    [utilisation(check, figures), headroom(check, figures), outstanding(check, figures)]
}

fn missing(check: &Check, figures: &Figures) -> String {
    if check.capability.is_none() && check.verdict.headroom.is_some() {
        "never measured: what was seen is a lower bound".into()
    } else if check.capability.is_none() {
        "this storage was never measured".into()
    } else if figures.database.is_none() {
        match check.observation.gaps().last() {
            Some(reason) => format!("no figures: {reason}"),
            None => "no figures of the database's files".into(),
        }
    } else {
        "nothing reached the storage".into()
    }
}

fn utilisation(check: &Check, figures: &Figures) -> Headline {
    let share = check.verdict.utilisation.filter(|share| share.is_finite());
    let known = share.zip(check.verdict.binding).map(|(share, binding)| {
        (number::share(share), format!("of the storage is used, bound by {binding}"))
    });
    let share = share.filter(|_| known.is_some());
    Headline { share, ..headline("utilisation", known, check, figures) }
}

fn headroom(check: &Check, figures: &Figures) -> Headline {
    let degraded = check.verdict.verdict == VerdictKind::StorageDegraded;
    let verdict = &check.verdict;
    let known = verdict.headroom.filter(|headroom| headroom.is_finite()).map(|headroom| {
        let note = if degraded && check.headroom_on.is_none() {
            "by its measurement, which does not hold now".to_owned()
        } else if headroom < 1.0 && verdict.headroom_reason.is_none() {
            "no room left: the demand is more than it gives".to_owned()
        } else {
            headroom_note(verdict)
        };
        let note = match &check.headroom_on {
            Some(volume) => format!("{note}, on {volume}"),
            None => note,
        };
        (number::times(headroom), note)
    });
    headline("headroom", known, check, figures)
}

/// "7.4 to 60 x: many commits share a log write".
fn headroom_note(verdict: &Verdict) -> String {
    let Some(reason) = &verdict.headroom_reason else {
        return "today's demand".into();
    };
    let range = verdict.headroom_low.zip(verdict.headroom_high);
    match range.filter(|(low, high)| high.is_finite() && *high > low * 1.1) {
        // The meaning of the figure comes first where it is not headroom.
        Some(_) if verdict.verdict == VerdictKind::DemandExceedsCapability => reason.clone(),
        Some((low, high)) => {
            let (low, high) = (number::times(low), number::times(high));
            format!("{} to {high}: {reason}", low.trim_end_matches(" x"))
        }
        None => reason.clone(),
    }
}

fn outstanding(check: &Check, figures: &Figures) -> Headline {
    let place = check.verdict.place.as_ref().map(|place| place.outstanding);
    let known = figures.database.as_ref().map(|_| figures.outstanding);
    let known = place.or(known).filter(|value| value.is_finite()).map(|value| {
        let knee = check.curve().and_then(|curve| Some((curve, curve.knee.as_ref()?)));
        let note = match knee {
            Some((curve, knee)) => {
                let at = match knee.reason {
                    KneeReason::NotReached => "the knee lies beyond",
                    _ => "knee at",
                };
                let of = operating_limit(check, figures).unwrap_or_else(|| format!(" ({})", curve.workload));
                format!("{at} {}{of}", number::rate(knee.outstanding))
            }
            None => "no knee is known to compare with".into(),
        };
        (number::rate(value), note)
    });
    headline("outstanding I/Os", known, check, figures)
}

/// ", operating limit 57,900 IOPS": the rate of I/Os as these are at which the utilisation is 100 %.
fn operating_limit(check: &Check, figures: &Figures) -> Option<String> {
    let is_modelled = check.capability.as_ref().is_some_and(|capability| capability.cost_model.is_some());
    let iops = figures.device_iops().or_else(|| figures.database.as_ref().map(Delta::iops));
    let used = check.verdict.utilisation.filter(|used| *used > 0.0 && is_modelled);
    let limit =
        iops.zip(used).map(|(iops, used)| iops / used).filter(|limit| limit.is_finite() && *limit > 0.0);
    limit.map(|limit| format!(", operating limit {} IOPS", number::rate(limit.round())))
}

/// A figure with its note, or why it is not known.
fn headline(
    title: &'static str,
    known: Option<(String, String)>,
    check: &Check,
    figures: &Figures,
) -> Headline {
    let (value, note) = match known {
        Some((value, note)) => (Some(value), note),
        None => (None, missing(check, figures)),
    };
    Headline { title, value, note, share: None }
}
