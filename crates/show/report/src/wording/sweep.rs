//! What sweeps are called and what their curves say, the same words in every format.

use crate::{number, wording};
use capability::{
    CRITICAL_NS, Crossing, DEGRADED_NS, Knee, KneeReason, RatioIs, Saturation, Sweep, SweepComparison,
    SweepStep,
};

/// Something a curve says.
pub(crate) struct Found {
    /// What of it: "knee".
    pub(crate) what: &'static str,
    pub(crate) text: String,
}

/// What tells sweeps from each other: their layouts, else their targets; nothing of one that stands alone.
pub(crate) fn names(sweeps: &[Sweep]) -> Vec<String> {
    let layouts: Vec<String> = sweeps
        .iter()
        .map(|sweep| sweep.layout().map_or(String::new(), |layout| layout.to_string()))
        .collect();
    let mut different = layouts.clone();
    different.sort();
    different.dedup();
    match sweeps {
        [_] => vec![String::new()],
        _ if different.len() == sweeps.len() && layouts.iter().all(|layout| !layout.is_empty()) => layouts,
        _ => sweeps.iter().map(|sweep| sweep.target.clone()).collect(),
    }
}

/// The knee, where there is one.
pub(crate) fn reached(sweep: &Sweep) -> Option<&Knee> {
    sweep.saturation.knee.as_ref().filter(|knee| knee.reason != KneeReason::NotReached)
}

/// "3.00 x", and how that is to be read.
pub(crate) fn knee_times(compared: &SweepComparison) -> String {
    let ratio = compared.knee_ratio;
    match compared.knee_ratio_is {
        RatioIs::Measured => format!("{ratio:.2} x"),
        RatioIs::AtLeast => format!("at least {ratio:.2} x"),
        RatioIs::AtMost => format!("at most {ratio:.2} x"),
        RatioIs::Unknown => "? x".into(),
    }
}

/// How the second compares with the first: "k x the throughput, saturates at k x the outstanding".
pub(crate) fn comparison(first: &Sweep, second: &Sweep, compared: &SweepComparison) -> String {
    let name =
        |sweep: &Sweep| sweep.layout().map_or_else(|| sweep.target.clone(), |layout| layout.to_string());
    let (low, high) = compared.knee_ratio_interval;
    let knee = match compared.knee_ratio_is {
        RatioIs::Measured => {
            format!("saturates at {:.2} x the outstanding ({low:.2} to {high:.2})", compared.knee_ratio)
        }
        RatioIs::Unknown => "both were saturated from the first step on: begin with less outstanding".into(),
        RatioIs::AtLeast | RatioIs::AtMost => {
            let saturated = if compared.knee_ratio_is == RatioIs::AtLeast { first } else { second };
            format!(
                "saturates at {} the outstanding: {} was saturated from the first step on, begin with less",
                knee_times(compared),
                name(saturated)
            )
        }
    };
    format!(
        "{} against {}: {:.2} x the throughput, {knee}",
        name(second),
        name(first),
        compared.throughput_ratio
    )
}

/// What a curve says: each thing that is looked for, also where it was not found.
pub(crate) fn found(sweep: &Sweep) -> Vec<Found> {
    let Sweep { saturation, steps, .. } = sweep;
    let mut all = vec![
        Found { what: "knee", text: knee(sweep) },
        Found { what: "throughput", text: most(sweep) },
        Found { what: "floor", text: floor(saturation) },
        Found { what: "linear", text: linear(saturation) },
        Found { what: "levels", text: levels(saturation) },
        Found { what: "degraded", text: crossing(saturation.degraded.as_ref(), DEGRADED_NS, steps) },
        Found { what: "critical", text: crossing(saturation.critical.as_ref(), CRITICAL_NS, steps) },
        Found { what: "queue", text: looks(steps) },
    ];
    all.extend(members(steps).map(|text| Found { what: "members", text }));
    all
}

fn knee(sweep: &Sweep) -> String {
    match &sweep.saturation.knee {
        None => "not known: too few steps".into(),
        Some(knee) if knee.reason == KneeReason::NotReached => format!(
            "not reached up to {} outstanding: {}",
            sweep.steps.last().map_or(0, |step| step.point.outstanding),
            knee.why
        ),
        Some(knee) if sweep.saturation.full_from_first => format!(
            "at {} outstanding or below: the first step was saturated already, begin with less; {}: {}",
            number::rate(knee.outstanding),
            wording::knee_reason(knee.reason),
            knee.why
        ),
        Some(knee) => format!(
            "{} outstanding ({} to {}); {}: {}",
            number::rate(knee.outstanding),
            number::rate(knee.low),
            number::rate(knee.high),
            wording::knee_reason(knee.reason),
            knee.why
        ),
    }
}

fn most(sweep: &Sweep) -> String {
    let Some(knee) = &sweep.saturation.knee else { return "not known: too few steps".into() };
    let (low, high) = knee.iops_interval;
    let at_least = if knee.reason == KneeReason::NotReached { "at least " } else { "" };
    format!("{at_least}{} IOPS ({} to {})", number::rate(knee.iops), number::rate(low), number::rate(high))
}

fn floor(saturation: &Saturation) -> String {
    match saturation.latency_ns_floor {
        None => "not known: too few steps".into(),
        Some(ns) if saturation.full_from_first => {
            format!("{} or below: the first step was saturated already", number::time(ns))
        }
        Some(ns) => format!("{}, what an I/O takes where nothing is in its way", number::time(ns)),
    }
}

fn linear(saturation: &Saturation) -> String {
    match &saturation.linear {
        Some(linear) => format!(
            "from {} to {} outstanding latency grows in step with load: {} for each more",
            linear.outstanding_from,
            linear.outstanding_to,
            number::time(linear.ns_per_outstanding)
        ),
        None => "nowhere does latency grow in a straight line over four steps".into(),
    }
}

fn levels(saturation: &Saturation) -> String {
    match saturation.levels.as_slice() {
        [] => "none: nowhere does throughput stay over three steps".into(),
        [one] => format!(
            "one, {} IOPS from {} to {} outstanding",
            number::rate(one.iops),
            one.outstanding_from,
            one.outstanding_to
        ),
        [first, .., last] => {
            let (low, high) = (number::rate(first.iops), number::rate(last.iops));
            let (from, to) = (first.outstanding_from, last.outstanding_from);
            let spread = number::share(last.spread);
            if last.iops > first.iops {
                format!(
                    "two: {low} IOPS from {from} outstanding, {high} from {to} (spread {spread}), which is not to be \
                     planned with"
                )
            } else {
                format!("{low} IOPS from {from} outstanding, falling to {high} from {to} (spread {spread})")
            }
        }
    }
}

fn crossing(crossing: Option<&Crossing>, bound_ns: f64, steps: &[SweepStep]) -> String {
    let bound = number::time(bound_ns);
    let Some(crossing) = crossing else { return format!("never: the mean stays below {bound}") };
    let first = steps.first().map_or(0.0, |step| f64::from(step.point.outstanding));
    let at = if crossing.outstanding > first { "from" } else { "already at" };
    format!(
        "over {bound} {at} {} outstanding, {} IOPS",
        number::rate(crossing.outstanding),
        number::rate(crossing.iops)
    )
}

/// How wrong it was to look at the queue now and then.
fn looks(steps: &[SweepStep]) -> String {
    let seen = || steps.iter().filter_map(|step| Some((step, step.queue.as_ref()?)));
    if seen().next().is_none() {
        return "not known: the kernel counts none of this target's devices".into();
    }
    let worst = seen().filter_map(|(step, queue)| Some((queue.error_max()?, step, queue)));
    let Some((error, step, queue)) = worst.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())) else {
        return "nobody looked: steps were shorter than --sample".into();
    };
    let least = queue.samples.iter().min().copied().unwrap_or_default();
    let most = queue.samples.iter().max().copied().unwrap_or_default();
    let saw = if least == most { most.to_string() } else { format!("{least} to {most}") };
    format!(
        "one look at it was off by {} at {} outstanding: the mean over time was {}, looks saw {saw}",
        percent(error),
        step.point.outstanding,
        number::rate(queue.weighted),
    )
}

/// Which member did the work, at the highest throughput.
fn members(steps: &[SweepStep]) -> Option<String> {
    let best = steps.iter().max_by(|a, b| a.point.iops.total_cmp(&b.point.iops))?;
    let members = &best.result.members;
    let all: u64 = members.iter().map(|member| member.total().count).sum();
    if members.is_empty() || all == 0 {
        return None;
    }
    let shares: Vec<String> = members
        .iter()
        .map(|member| format!("{} {}", member.path, number::share(member.total().count as f64 / all as f64)))
        .collect();
    Some(format!("who did the work: {}", shares.join(", ")))
}

/// "+20 %".
pub(crate) fn percent(share: f64) -> String {
    match (share * 100.0).round() {
        0.0 => "0 %".into(),
        percent => format!("{percent:+.0} %"),
    }
}

/// Half an interval of a throughput.
pub(crate) fn half_width(iops: f64) -> String {
    if iops < 1.0 { "< 1".into() } else { number::rate(iops) }
}
