use super::page::{Tile, page, run_chart, tiles};
use super::runs::{how_to_read, opening, repeat};
use super::sentence::sentence;
use super::table::{Table, folded};
use crate::number;
use crate::wording::members::MemberRow;
use crate::wording::sweep::{STEP_FIGURES, StepFigure, properties};
use capability::{Sweep, SweepComparison, SweepStep};
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
    body.push_str(&tiles(&tiles_of(sweeps, &names)));
    let mut picture = chart(sweeps, compared);
    picture.title = "Throughput and latency".into();
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

/// Where the sweep with the highest rate saturates.
fn tiles_of(sweeps: &[Sweep], names: &[String]) -> Vec<Tile> {
    let knees = sweeps
        .iter()
        .zip(names)
        .filter_map(|(sweep, name)| Some((sweep, name, sweep.saturation.knee.as_ref()?)));
    let Some((sweep, name, knee)) = knees.max_by(|a, b| a.2.iops.total_cmp(&b.2.iops)) else {
        return Vec::new();
    };
    let of = if name.is_empty() { String::new() } else { format!(", {name}") };
    let limit = sweep.operating_limit_iops.map_or(String::new(), |iops| {
        format!("; operating limit by the cost model {} IOPS", number::rate(iops.round()))
    });
    let saturates = if sweep.saturation.full_from_first { "there or below" } else { "outstanding I/Os" };
    vec![
        Tile::new(
            "highest IOPS",
            Some(number::rate(knee.iops)),
            format!("throughput where it saturates{of}"),
        ),
        Tile::new("knee", Some(number::rate(knee.outstanding)), format!("{saturates}{of}{limit}")),
        Tile::new(
            "lowest latency",
            sweep.saturation.latency_ns_floor.map(number::time),
            format!("mean of the fastest step{of}"),
        ),
    ]
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

/// A row for each property, a column for each sweep. One sweep may have a property that another has not.
fn meaning(sweeps: &[Sweep], names: &[String]) -> String {
    let curves: Vec<_> = sweeps.iter().map(properties).collect();
    let mut rows: Vec<&str> = Vec::new();
    for curve in &curves {
        let mut after = 0;
        for property in curve {
            match rows.iter().position(|row| *row == property.name) {
                Some(at) => after = at + 1,
                None => {
                    rows.insert(after, property.name);
                    after += 1;
                }
            }
        }
    }
    let mut table = Table::from_items(rows).text("", |row| (*row).into());
    for (curve, name) in curves.iter().zip(names) {
        let text = |row: &&str| {
            let found = curve.iter().find(|property| property.name == *row);
            found.map_or(String::new(), |property| sentence(&property.text))
        };
        table = table.long(name, text);
    }
    format!("<h2>What the curves say</h2>\n{}", table.html())
}

fn steps(sweep: &Sweep) -> String {
    let mut table = Table::from_items(&sweep.steps);
    for StepFigure { page_title, write, .. } in STEP_FIGURES {
        table = match page_title {
            "IOPS" => table.value(page_title, |step| write(step)),
            _ => table.number(page_title, |step| write(step)),
        };
    }
    let table = table.number("failed", |step| number::count(step.point.failed));
    folded(&format!("{} steps", sweep.steps.len()), &table)
}

/// The share of each member of a layout, step by step.
fn members(sweep: &Sweep) -> String {
    if sweep.steps.iter().all(|step| step.result.members.is_empty()) {
        return String::new();
    }
    let rows = sweep.steps.iter().flat_map(|SweepStep { point, result, .. }| {
        MemberRow::all(result).map(move |member| (point.outstanding, member))
    });
    let table = Table::from_items(rows)
        .number("outstanding", |(outstanding, _)| outstanding.to_string())
        .text("member", |(_, member)| escape(member.path))
        .value("share", |(_, member)| number::share(member.share))
        .number("IOPS", |(_, member)| number::rate(member.iops))
        .number("MiB/s", |(_, member)| number::rate(member.mib_per_s))
        .number("N (Little)", |(_, member)| number::rate(member.outstanding))
        .number("mean", |(_, member)| member.mean())
        .number("failed", |(_, member)| number::count(member.failed));
    folded("Members, step by step", &table)
}

const HOW_TO_READ: &str = "<h2>What the words mean</h2>\n<div class=\"card\">\n\
<p><b>The knee</b> is where the unloaded latency and the highest rate meet. Below it I/Os hardly wait for each other; \
from it on latency begins to pay for throughput.</p>\n\
<p><b>N</b> is the mean number of outstanding I/Os by Little’s law, IOPS × mean latency. <b>Queue</b> is the same of the \
devices below, as the kernel counts it all the time; what waits before the device, as under a limit of a cgroup, is not yet \
in it. <b>Sampled</b> is what a monitor sees that samples the queue now and then; <b>off by</b> is how wrong the mean of the \
samples was, <b>worst sample</b> how wrong a single one.</p>\n\
<p><b>Levels</b> are loads over which throughput stays. Where there are two, the upper one is volatile: do not plan with \
it. A disk is called <b>degraded</b> from a mean of 15 ms on, <b>critical</b> from 20 ms.</p>\n</div>\n";
