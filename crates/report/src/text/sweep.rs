//! Sweeps: a table of steps for each, what the curve says, and two side by side.

use super::table::{Align, Table};
use super::{Style, clean, wrap};
use crate::{number, wording};
use capability::{Crossing, KneeReason, QueueSeen, Saturation, Sweep, SweepComparison, SweepStep};

/// Each sweep's steps and meaning, and how the second compares with the first.
pub fn sweeps(sweeps: &[Sweep], compared: Option<&SweepComparison>, style: &Style) -> String {
    let mut sections: Vec<String> = Vec::new();
    for sweep in sweeps {
        let mut lines = vec![style.heading(&clean(&sweep.target))];
        lines.extend(steps(sweep, style));
        sections.push(lines.join("\n"));
        let told = meaning(&sweep.saturation, &sweep.steps);
        sections
            .push(told.iter().flat_map(|line| wrap(line, style.columns(), 2)).collect::<Vec<_>>().join("\n"));
    }
    if let (Some(compared), [first, second, ..]) = (compared, sweeps) {
        let text = comparison(first, second, compared);
        sections.push(
            wrap(&text, style.columns(), 2)
                .iter()
                .map(|line| style.heading(line))
                .collect::<Vec<_>>()
                .join("\n"),
        );
    }
    sections.join("\n\n") + "\n"
}

/// The same in sentences, for a page.
pub fn sweep_sentences(sweeps: &[Sweep], compared: Option<&SweepComparison>) -> Vec<String> {
    let mut sentences = Vec::new();
    if let (Some(compared), [first, second, ..]) = (compared, sweeps) {
        sentences.push(comparison(first, second, compared));
    }
    for sweep in sweeps {
        let told = meaning(&sweep.saturation, &sweep.steps);
        sentences.extend(told.into_iter().map(|line| format!("{}: {line}", sweep.target)));
    }
    sentences
}

fn steps(sweep: &Sweep, style: &Style) -> Vec<String> {
    let mut table = Table::new(&[
        ("outstanding", Align::Right),
        ("IOPS", Align::Right),
        ("+-", Align::Right),
        ("MiB/s", Align::Right),
        ("mean", Align::Right),
        ("p99", Align::Right),
        ("N (Little)", Align::Right),
        ("queue", Align::Right),
        ("looked at", Align::Right),
        ("off by", Align::Right),
    ]);
    for SweepStep { point, queue, .. } in &sweep.steps {
        let none = || number::NONE.to_owned();
        let queue = queue.as_ref();
        table.push(vec![
            point.outstanding.to_string().into(),
            number::rate(point.iops).into(),
            number::rate(point.iops_half_width).into(),
            number::rate(point.mib_per_s).into(),
            number::time(point.latency_ns).into(),
            point.latency_ns_p99.map_or_else(none, |ns| number::time(ns as f64)).into(),
            number::rate(point.outstanding_measured).into(),
            queue.map_or_else(none, |queue| number::rate(queue.weighted)).into(),
            queue.and_then(QueueSeen::sampled).map_or_else(none, number::rate).into(),
            queue.and_then(QueueSeen::error_max).map_or_else(none, percent).into(),
        ]);
    }
    table.lines(style)
}

fn percent(share: f64) -> String {
    format!("{:+.0} %", share * 100.0)
}

/// What a curve says, a sentence each.
fn meaning(saturation: &Saturation, steps: &[SweepStep]) -> Vec<String> {
    let mut told = Vec::new();
    match &saturation.knee {
        Some(knee) if knee.reason == KneeReason::NotReached => told.push(format!(
            "no knee up to {} outstanding: {}",
            steps.last().map_or(0, |step| step.point.outstanding),
            knee.why
        )),
        Some(knee) => told.push(format!(
            "knee at {} outstanding ({} to {}), {} IOPS ({} to {}): {}; {}",
            number::rate(knee.outstanding),
            number::rate(knee.low),
            number::rate(knee.high),
            number::rate(knee.iops),
            number::rate(knee.iops_interval.0),
            number::rate(knee.iops_interval.1),
            wording::knee_reason(knee.reason),
            knee.why
        )),
        None => told.push("no knee: too few steps".into()),
    }
    if let Some(floor) = saturation.latency_ns_floor {
        told.push(format!("an I/O takes {} where nothing is in its way", number::time(floor)));
    }
    if let Some(linear) = &saturation.linear {
        told.push(format!(
            "latency grows in step with load from {} to {} outstanding: {} for each more",
            linear.outstanding_from,
            linear.outstanding_to,
            number::time(linear.ns_per_outstanding)
        ));
    }
    if let [first, .., upper] = saturation.levels.as_slice() {
        told.push(format!(
            "two levels: {} IOPS from {} outstanding, {} IOPS from {} (spread {}), not to be planned with",
            number::rate(first.iops),
            first.outstanding_from,
            number::rate(upper.iops),
            upper.outstanding_from,
            number::share(upper.spread)
        ));
    }
    let first = steps.first().map_or(0.0, |step| f64::from(step.point.outstanding));
    let crossing = |crossing: &Option<Crossing>, name: &str, told: &mut Vec<String>| {
        if let Some(Crossing { latency_ns, outstanding, iops }) = crossing {
            let at = if *outstanding > first { "at" } else { "already at" };
            told.push(format!(
                "{name} ({}) {at} {} outstanding, {} IOPS",
                number::time(*latency_ns),
                number::rate(*outstanding),
                number::rate(*iops)
            ));
        }
    };
    crossing(&saturation.degraded, "degraded", &mut told);
    crossing(&saturation.critical, "critical", &mut told);
    told.extend(members(steps));
    let worst = steps.iter().filter_map(|step| Some((step.queue.as_ref()?.error_max()?, step)));
    if let Some((error, step)) = worst.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())) {
        let queue = step.queue.clone().unwrap_or_default();
        let least = queue.samples.iter().min().copied().unwrap_or_default();
        let most = queue.samples.iter().max().copied().unwrap_or_default();
        let saw = if least == most { most.to_string() } else { format!("{least} to {most}") };
        told.push(format!(
            "one look at the queue was off by {} at {} outstanding: the mean over time was {}, looks saw {saw}",
            percent(error),
            step.point.outstanding,
            number::rate(queue.weighted),
        ));
    }
    told
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

fn comparison(first: &Sweep, second: &Sweep, compared: &SweepComparison) -> String {
    let name = |sweep: &Sweep| {
        let layout = sweep.steps.first().and_then(|step| step.result.layout);
        layout.map_or_else(|| sweep.target.clone(), |layout| layout.to_string())
    };
    let (low, high) = compared.knee_ratio_interval;
    format!(
        "{} against {}: {:.2} x the throughput, saturates at {:.2} x the outstanding ({low:.2} to {high:.2})",
        name(second),
        name(first),
        compared.throughput_ratio,
        compared.knee_ratio
    )
}
