//! The three figures a reader looks at first.

use crate::{Check, number};
use capability::KneeReason;
use verdict::{Figures, VerdictKind};

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
    if check.capability.is_none() {
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
    let title = "utilisation";
    match (check.verdict.utilisation, check.verdict.binding) {
        (Some(value), Some(binding)) if value.is_finite() => Headline {
            title,
            value: Some(number::share(value)),
            note: format!("of the storage is asked for, bound by {binding}"),
            share: Some(value),
        },
        _ => Headline { title, value: None, note: missing(check, figures), share: None },
    }
}

fn headroom(check: &Check, figures: &Figures) -> Headline {
    let title = "headroom";
    match check.verdict.headroom.filter(|headroom| headroom.is_finite()) {
        Some(value)
            if matches!(check.verdict.verdict, VerdictKind::StorageDegraded | VerdictKind::Throttled) =>
        {
            Headline {
                title,
                value: Some(number::times(value)),
                note: "by its measurement, which does not hold now".into(),
                share: None,
            }
        }
        Some(value) if value >= 1.0 => Headline {
            title,
            value: Some(number::times(value)),
            note: "today's demand is what it could carry".into(),
            share: None,
        },
        Some(value) => Headline {
            title,
            value: Some(number::times(value)),
            note: "no room left: more is asked for than it gives".into(),
            share: None,
        },
        None => Headline { title, value: None, note: missing(check, figures), share: None },
    }
}

fn outstanding(check: &Check, figures: &Figures) -> Headline {
    let title = "outstanding I/Os";
    let place = check.verdict.place.as_ref().map(|place| place.outstanding);
    let known = figures.database.as_ref().map(|_| figures.outstanding);
    let Some(value) = place.or(known).filter(|value| value.is_finite()) else {
        return Headline { title, value: None, note: missing(check, figures), share: None };
    };
    let knee = check.curve().and_then(|curve| Some((curve, curve.knee.as_ref()?)));
    let note = match knee {
        Some((curve, knee)) if knee.reason == KneeReason::NotReached => {
            format!("the knee lies beyond {} ({})", number::rate(knee.outstanding), curve.workload)
        }
        Some((curve, knee)) => {
            format!("knee at {} ({})", number::rate(knee.outstanding), curve.workload)
        }
        None => "no knee is known to compare with".into(),
    };
    Headline { title, value: Some(number::rate(value)), note, share: None }
}
