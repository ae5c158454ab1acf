use super::sketch;
use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use super::wrap::{clean, clip, wrap};
use crate::number;
use crate::wording::capability::{
    conditions_line, demands, device_line, error_line, knee_line, sharing_line, target_line,
};
use capability::{Capability, CostModel, Curve};

/// Points of each curve; more are measured than a reader needs.
const POINTS_MAX: usize = 10;

/// A capability: the target, its curves with their knees, the cost model, the conditions.
pub fn capability(capability: &Capability, style: &Style) -> String {
    let mut lines = target(capability, style);
    for curve in &capability.curves {
        lines.push(String::new());
        lines.extend(one_curve(curve, style));
    }
    lines.push(String::new());
    match &capability.cost_model {
        Some(model) => lines.extend(cost_model(model, style)),
        None => {
            let why =
                "No cost model: too little was measured to fit one (it needs saturated reads and writes)";
            lines.push(clip(why, style.columns()));
        }
    }
    lines.push(String::new());
    lines.extend(conditions(capability, style));
    lines.join("\n") + "\n"
}

fn target(capability: &Capability, style: &Style) -> Vec<String> {
    let facts = &capability.target;
    let mut lines = vec![
        style.heading(&clip(&format!("Capability of {}", clean(&facts.path)), style.columns())),
        clip(&clean(&target_line(capability)), style.columns()),
    ];
    for device in &facts.devices {
        lines.extend(
            wrap(&device_line(device), style.columns() - 2, 2).iter().map(|line| format!("  {line}")),
        );
    }
    for cap in &facts.caps {
        let text = format!("  throttled: device {} to {cap} by {}", cap.device, cap.origin);
        lines.push(clip(&clean(&text), style.columns()));
    }
    lines
}

fn one_curve(curve: &Curve, style: &Style) -> Vec<String> {
    let mut lines = vec![style.heading(&curve.workload.to_string())];
    let mut table = Table::new(&[
        ("N", Align::Right),
        ("IOPS", Align::Right),
        ("±", Align::Right),
        ("MiB/s", Align::Right),
        ("mean", Align::Right),
        ("p99", Align::Right),
        ("longest", Align::Right),
        ("", Align::Left),
    ]);
    for point in sketch::interesting(curve, POINTS_MAX) {
        let mut notes = Vec::new();
        if !point.steady {
            notes.push("not steady".to_owned());
        }
        if point.failed > 0 {
            notes.push(format!("{} failed", number::count(point.failed)));
        }
        table.push(vec![
            point.outstanding.to_string().into(),
            Cell::inked(number::rate(point.iops), Ink::Bold),
            Cell::inked(number::rate(point.iops_half_width), Ink::Dim),
            number::rate(point.mib_per_s).into(),
            number::time(point.latency_ns).into(),
            point.latency_ns_p99.map_or(number::NONE.into(), |p99| number::time(p99 as f64)).into(),
            number::time(point.latency_ns_max as f64).into(),
            Cell::inked(notes.join(", "), Ink::Dim),
        ]);
    }
    lines.extend(table.lines(style));
    let shown = sketch::interesting(curve, POINTS_MAX).len();
    if shown < curve.points.len() {
        lines.push(style.paint(Ink::Dim, &format!("  {shown} of {} points", curve.points.len())));
    }
    lines.extend(wrap(&knee_line(curve), style.columns() - 2, 3).iter().map(|line| format!("  {line}")));
    lines
}

fn cost_model(model: &CostModel, style: &Style) -> Vec<String> {
    let mut table = Table::new(&[
        ("when it is full", Align::Left),
        ("each I/O", Align::Right),
        ("each MiB", Align::Right),
        ("8 KiB", Align::Right),
    ]);
    for (name, demand) in demands(model) {
        table.push(vec![
            name.into(),
            number::time(demand.fixed_ns).into(),
            number::time(demand.per_byte_ns * 1_048_576.0).into(),
            number::time(demand.at_bytes(8192.0)).into(),
        ]);
    }
    let mut lines = vec![style.heading("What an I/O takes of the storage's time")];
    lines.extend(table.lines(style));
    for text in [sharing_line(model), error_line(model)] {
        lines.extend(wrap(&text, style.columns() - 2, 2).iter().map(|line| format!("  {line}")));
    }
    lines
}

fn conditions(capability: &Capability, style: &Style) -> Vec<String> {
    let mut lines = wrap(&conditions_line(capability), style.columns(), 3);
    for remark in &capability.conditions.remarks {
        let remark = wrap(&format!("remark: {remark}"), style.columns() - 2, 2);
        lines.extend(remark.iter().map(|line| format!("  {line}")));
    }
    lines
}
