//! Conclusions from the curve of a sweep.

use super::capability::knee_reason;
use capability::{CRITICAL_NS, Crossing, DEGRADED_NS, KneeReason, QueueSeen, Saturation, Sweep, SweepStep};
use charts::number;

/// One property of a curve.
pub(crate) struct CurveProperty {
    /// "knee".
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

/// All properties of a curve, also those that were not found.
pub(crate) fn properties(sweep: &Sweep) -> Vec<CurveProperty> {
    let Sweep { saturation, steps, .. } = sweep;
    let limit = sweep.operating_limit_iops.map(|iops| CurveProperty {
        name: "operating limit",
        text: format!("{} IOPS by the cost model of its measurement", number::rate(iops.round())),
    });
    let mut all = vec![CurveProperty { name: "knee", text: knee(sweep) }];
    all.extend(limit);
    all.extend([
        CurveProperty { name: "throughput", text: most(sweep) },
        CurveProperty { name: "unloaded latency", text: floor(saturation) },
        CurveProperty { name: "linear", text: linear(saturation) },
        CurveProperty { name: "levels", text: levels(saturation) },
        CurveProperty { name: "degraded", text: crossing(saturation.degraded.as_ref(), DEGRADED_NS, steps) },
        CurveProperty { name: "critical", text: crossing(saturation.critical.as_ref(), CRITICAL_NS, steps) },
        CurveProperty { name: "queue", text: queue_samples(steps) },
    ]);
    all.extend(members(steps).map(|text| CurveProperty { name: "members", text }));
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
            knee_reason(knee.reason),
            knee.why
        ),
        Some(knee) => format!(
            "{} outstanding ({} to {}); {}: {}",
            number::rate(knee.outstanding),
            number::rate(knee.low),
            number::rate(knee.high),
            knee_reason(knee.reason),
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
        Some(ns) => format!("{}, the mean of the fastest step", number::time(ns)),
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

/// How far samples of the queue were off.
fn queue_samples(steps: &[SweepStep]) -> String {
    let sampled = || steps.iter().filter_map(|step| Some((step, step.queue.as_ref()?)));
    if sampled().next().is_none() {
        return "not known: the kernel counts none of this target's devices".into();
    }
    let worst = sampled().filter_map(|(step, queue)| Some((queue.error_max()?, step, queue)));
    let Some((error, step, queue)) = worst.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())) else {
        return "not sampled: steps were shorter than --sample".into();
    };
    let least = queue.samples.iter().min().copied().unwrap_or_default();
    let most = queue.samples.iter().max().copied().unwrap_or_default();
    let saw = if least == most { most.to_string() } else { format!("{least} to {most}") };
    format!(
        "one sample of it was off by {} at {} outstanding: the mean over time was {}, samples saw {saw}",
        number::whole_change(error),
        step.point.outstanding,
        number::rate(queue.weighted),
    )
}

/// The members that did the work, at the highest throughput.
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
    Some(format!("share of I/Os: {}", shares.join(", ")))
}

/// A figure of a step: its titles in text and on a page, and how it is written.
pub(crate) struct StepFigure {
    pub(crate) title: &'static str,
    pub(crate) page_title: &'static str,
    pub(crate) write: fn(&SweepStep) -> String,
}

/// The figures of a step, in the order of the columns.
pub(crate) const STEP_FIGURES: [StepFigure; 11] = [
    figure("outstanding", "outstanding", |step| step.point.outstanding.to_string()),
    figure("IOPS", "IOPS", |step| number::rate(step.point.iops)),
    figure("+-", "±", |step| half_width(step.point.iops_half_width)),
    figure("MiB/s", "MiB/s", |step| number::rate(step.point.mib_per_s)),
    figure("mean", "mean", |step| number::time(step.point.latency_ns)),
    figure("p99", "p99", |step| or_dash(step.point.latency_ns_p99, |ns| number::time(ns as f64))),
    figure("N", "N (Little)", |step| number::rate(step.point.outstanding_measured)),
    figure("queue", "queue", |step| or_dash(step.queue.as_ref(), |queue| number::rate(queue.weighted))),
    figure("sampled", "sampled", |step| {
        or_dash(step.queue.as_ref().and_then(QueueSeen::sampled), number::rate)
    }),
    figure("off", "off by", |step| {
        or_dash(step.queue.as_ref().and_then(QueueSeen::error), number::whole_change)
    }),
    figure("worst", "worst sample", |step| {
        or_dash(step.queue.as_ref().and_then(QueueSeen::error_max), number::whole_change)
    }),
];

const fn figure(
    title: &'static str,
    page_title: &'static str,
    write: fn(&SweepStep) -> String,
) -> StepFigure {
    StepFigure { title, page_title, write }
}

fn or_dash<T>(figure: Option<T>, write: impl Fn(T) -> String) -> String {
    figure.map_or(number::NONE.into(), write)
}

/// Half an interval of a throughput.
fn half_width(iops: f64) -> String {
    if iops < 1.0 { "< 1".into() } else { number::rate(iops) }
}
