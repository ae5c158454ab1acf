use super::page::{page, run_chart};
use super::runs::{how_to_read, opening, repeat};
use super::sentence::sentence;
use super::table::{Column, Table, folded};
use crate::number;
use crate::wording::sweep::{half_width, properties};
use capability::{QueueSeen, Sweep, SweepComparison, SweepStep};
use charts::escape;
use charts::sweep::{chart, comparison_words, names};

/// Sweeps as a page: the answer, the charts, the properties of the curves, and every step.
pub fn sweeps(sweeps: &[Sweep], compared: Option<&SweepComparison>, command: &str, version: &str) -> String {
    let names = names(sweeps);
    let title = match sweeps {
        [one] => format!("Sweep of {}", one.target),
        _ => format!("Sweep of {}", names.join(" and ")),
    };
    let answer = match (compared, sweeps) {
        (Some(compared), [first, second, ..]) => comparison_words(first, second, compared),
        _ => sweeps
            .iter()
            .map(|one| format!("knee: {}", properties(one)[0].text))
            .collect::<Vec<_>>()
            .join("; "),
    };
    let mut body = opening(&title, &answer, &[what_ran(sweeps)]);
    let mut picture = chart(sweeps, compared);
    picture.title = "The picture".into();
    body.push_str(&run_chart(&picture));
    body.push_str(&meaning(sweeps, &names));
    for (sweep, name) in sweeps.iter().zip(&names) {
        body.push_str(&heading("Steps", name));
        body.push_str(&steps(sweep));
        body.push_str(&members(sweep));
    }
    body.push_str(HOW_TO_READ);
    body.push_str(&how_to_read(&[]));
    body.push_str(&repeat(command));
    page(&title, &body, &format!("Headroom {}", escape(version)))
}

fn heading(what: &str, name: &str) -> String {
    let of = if name.is_empty() { String::new() } else { format!(" of {}", escape(name)) };
    format!("<h2>{what}{of}</h2>\n")
}

/// The load, on what, how long.
fn what_ran(sweeps: &[Sweep]) -> String {
    let steps = || sweeps.iter().flat_map(|sweep| &sweep.steps);
    let Some(first) = steps().next() else { return "Nothing was measured.".into() };
    let result = &first.result;
    let mut on: Vec<&str> = result.members.iter().map(|member| member.path.as_str()).collect();
    if on.is_empty() {
        on = vec![&result.target];
    }
    let seconds: f64 = steps().map(|step| step.result.elapsed_s()).sum();
    format!(
        "{} on {}, from {}: {} steps, {} of load.",
        result.workload.shape,
        on.join(", "),
        number::instant(result.started_unix_ns),
        steps().count(),
        number::duration(seconds)
    )
}

/// A row for each property, a column for each sweep.
fn meaning(sweeps: &[Sweep], names: &[String]) -> String {
    let columns: Vec<(&str, Column)> = std::iter::once(("", Column::Text))
        .chain(names.iter().map(|name| (name.as_str(), Column::Long)))
        .collect();
    let mut table = Table::new(&columns);
    let curves: Vec<_> = sweeps.iter().map(properties).collect();
    let rows = curves.iter().map(Vec::len).max().unwrap_or(0);
    for row in 0..rows {
        let name = curves.iter().find_map(|curve| curve.get(row)).map_or("", |property| property.name);
        let texts = curves
            .iter()
            .map(|curve| curve.get(row).map_or(String::new(), |property| sentence(&property.text)));
        table.push(&std::iter::once(name.to_owned()).chain(texts).collect::<Vec<String>>());
    }
    format!("<h2>What the curves say</h2>\n{}", table.html())
}

fn steps(sweep: &Sweep) -> String {
    let mut table = Table::new(&[
        ("outstanding", Column::Number),
        ("IOPS", Column::Value),
        ("±", Column::Number),
        ("MiB/s", Column::Number),
        ("mean", Column::Number),
        ("p99", Column::Number),
        ("N (Little)", Column::Number),
        ("queue", Column::Number),
        ("looks", Column::Number),
        ("off by", Column::Number),
        ("worst look", Column::Number),
        ("failed", Column::Number),
    ]);
    for SweepStep { point, queue, .. } in &sweep.steps {
        let none = || number::NONE.to_owned();
        let queue = queue.as_ref();
        table.push(&[
            point.outstanding.to_string(),
            number::rate(point.iops),
            half_width(point.iops_half_width),
            number::rate(point.mib_per_s),
            number::time(point.latency_ns),
            point.latency_ns_p99.map_or_else(none, |ns| number::time(ns as f64)),
            number::rate(point.outstanding_measured),
            queue.map_or_else(none, |queue| number::rate(queue.weighted)),
            queue.and_then(QueueSeen::sampled).map_or_else(none, number::rate),
            queue.and_then(QueueSeen::error).map_or_else(none, number::whole_change),
            queue.and_then(QueueSeen::error_max).map_or_else(none, number::whole_change),
            number::count(point.failed),
        ]);
    }
    folded(&format!("{} steps", sweep.steps.len()), &table, sweep.steps.len())
}

/// The share of each member of a layout, step by step.
fn members(sweep: &Sweep) -> String {
    if sweep.steps.iter().all(|step| step.result.members.is_empty()) {
        return String::new();
    }
    let mut table = Table::new(&[
        ("outstanding", Column::Number),
        ("member", Column::Text),
        ("share", Column::Value),
        ("IOPS", Column::Number),
        ("MiB/s", Column::Number),
        ("N (Little)", Column::Number),
        ("mean", Column::Number),
        ("failed", Column::Number),
    ]);
    let mut rows = 0;
    for SweepStep { point, result, .. } in &sweep.steps {
        let seconds = result.elapsed_s().max(1e-9);
        let all: u64 = result.members.iter().map(|member| member.total().count).sum();
        for member in &result.members {
            let total = member.total();
            rows += 1;
            table.push(&[
                point.outstanding.to_string(),
                escape(&member.path),
                number::share(total.count as f64 / all.max(1) as f64),
                number::rate(total.count as f64 / seconds),
                number::rate(total.bytes as f64 / 1_048_576.0 / seconds),
                number::rate(total.stall_ns as f64 / 1e9 / seconds),
                total.mean_ns().map_or(number::NONE.into(), number::time),
                number::count(member.failed),
            ]);
        }
    }
    folded("Members, step by step", &table, rows)
}

const HOW_TO_READ: &str = "<h2>What the words mean</h2>\n<div class=\"card\">\n\
<p><b>The knee</b> is where a curve saturates: N = Xmax × R0, the most it gives times what an I/O takes with nothing in \
its way. Below it more outstanding I/Os bring more throughput, above it they only wait.</p>\n\
<p><b>N</b> is the mean number of outstanding I/Os by Little’s law, IOPS × mean latency. <b>Queue</b> is the same of the \
devices below, as the kernel counts it all the time; what waits before the device, as under a limit of a cgroup, is not yet \
in it. <b>Looks</b> are what a monitor saw that looked at the queue now and then; <b>off by</b> is how wrong their mean \
was, <b>worst look</b> how wrong a single one.</p>\n\
<p><b>Levels</b> are loads over which throughput stays. Where there are two, the upper one is volatile: do not plan with \
it. A disk is called <b>degraded</b> from a mean of 15 ms on, <b>critical</b> from 20 ms.</p>\n</div>\n";
