//! Sweeps: for each a table of steps and the properties of its curve, then a comparison of two.

use super::style::{Ink, Style};
use super::table::{Align, Table};
use super::wrap::{clean, wrap};
use crate::number;
use crate::wording::sweep::{CurveProperty, half_width, properties};
use capability::{QueueSeen, Sweep, SweepComparison, SweepStep};
use charts::sweep::comparison_words;

/// The steps and the curve of each sweep, and how the second compares with the first.
pub fn sweeps(sweeps: &[Sweep], compared: Option<&SweepComparison>, style: &Style) -> String {
    let mut sections: Vec<String> = Vec::new();
    for sweep in sweeps {
        let mut lines = vec![style.heading(&clean(&sweep.target))];
        lines.extend(steps(sweep, style));
        sections.push(lines.join("\n"));
        sections.push(meaning(sweep, style).join("\n"));
    }
    if let (Some(compared), [first, second, ..]) = (compared, sweeps) {
        let text = comparison_words(first, second, compared);
        let lines = wrap(&text, style.columns(), 3);
        sections.push(lines.iter().map(|line| style.heading(line)).collect::<Vec<_>>().join("\n"));
    }
    sections.join("\n\n") + "\n"
}

fn steps(sweep: &Sweep, style: &Style) -> Vec<String> {
    let mut table = Table::new(&[
        ("outstanding", Align::Right),
        ("IOPS", Align::Right),
        ("+-", Align::Right),
        ("MiB/s", Align::Right),
        ("mean", Align::Right),
        ("p99", Align::Right),
        ("N", Align::Right),
        ("queue", Align::Right),
        ("looks", Align::Right),
        ("off", Align::Right),
        ("worst", Align::Right),
    ]);
    for SweepStep { point, queue, .. } in &sweep.steps {
        let none = || number::NONE.to_owned();
        let queue = queue.as_ref();
        table.push(vec![
            point.outstanding.to_string().into(),
            number::rate(point.iops).into(),
            half_width(point.iops_half_width).into(),
            number::rate(point.mib_per_s).into(),
            number::time(point.latency_ns).into(),
            point.latency_ns_p99.map_or_else(none, |ns| number::time(ns as f64)).into(),
            number::rate(point.outstanding_measured).into(),
            queue.map_or_else(none, |queue| number::rate(queue.weighted)).into(),
            queue.and_then(QueueSeen::sampled).map_or_else(none, number::rate).into(),
            queue.and_then(QueueSeen::error).map_or_else(none, number::whole_change).into(),
            queue.and_then(QueueSeen::error_max).map_or_else(none, number::whole_change).into(),
        ]);
    }
    let mut lines = table.lines(style);
    let note = "N: by Little's law. queue: of the devices, the kernel's mean over time; looks: the mean of what single \
                looks saw; off, worst: how wrong that mean and the worst look were.";
    lines.extend(
        wrap(note, style.columns() - 2, 3).iter().map(|line| style.paint(Ink::Dim, &format!("  {line}"))),
    );
    lines
}

/// The properties of a curve with their names.
fn meaning(sweep: &Sweep, style: &Style) -> Vec<String> {
    const NAME: usize = 12;
    let lines = |property: CurveProperty| {
        let text = wrap(&property.text, style.columns().saturating_sub(NAME + 2).max(20), 4);
        let lines = text.into_iter().enumerate();
        let name = move |at| if at == 0 { property.name } else { "" };
        lines.map(move |(at, line)| format!("  {:NAME$}{line}", name(at))).collect::<Vec<String>>()
    };
    properties(sweep).into_iter().flat_map(lines).collect()
}
