use super::sketch;
use super::style::{Ink, Style};
use super::table::{Cell, Table};
use super::wrap::{clean, clip, wrap};
use crate::number;
use crate::wording::capability::{
    conditions_line, demands, device_line, error_line, knee_line, point_notes, sharing_line, target_line,
};
use capability::{Capability, CostModel, Curve};

/// Points of each curve; more are measured than a reader needs.
const POINTS_MAX: usize = 10;

/// A capability: the target, its curves with their knees, the cost model, the conditions.
pub fn capability(capability: &Capability, style: &Style) -> String {
    let mut lines = target(capability, style);
    for curve in &capability.curves {
        lines.push(String::new());
        lines.extend(one_curve(curve, capability.cost_model.as_ref(), style));
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
        lines.extend(style.paragraph(Ink::Plain, &device_line(device), 2, 2));
    }
    for cap in &facts.caps {
        let text = format!("  throttled: device {} to {cap} by {}", cap.device, cap.origin);
        lines.push(clip(&clean(&text), style.columns()));
    }
    lines
}

fn one_curve(curve: &Curve, model: Option<&CostModel>, style: &Style) -> Vec<String> {
    let points = sketch::interesting(curve, POINTS_MAX);
    let shown = points.len();
    let table = Table::from_items(points)
        .right("N", |point| point.outstanding.to_string())
        .right("IOPS", |point| Cell::inked(number::rate(point.iops), Ink::Bold))
        .right("±", |point| Cell::inked(number::rate(point.iops_half_width), Ink::Dim))
        .right("MiB/s", |point| number::rate(point.mib_per_s))
        .right("mean", |point| number::time(point.latency_ns))
        .right("p99", |point| {
            point.latency_ns_p99.map_or(number::NONE.into(), |p99| number::time(p99 as f64))
        })
        .right("longest", |point| number::time(point.latency_ns_max as f64))
        .left("", |point| Cell::inked(point_notes(point), Ink::Dim));
    let mut lines = vec![style.heading(&curve.workload.to_string())];
    lines.extend(table.lines(style));
    if shown < curve.points.len() {
        lines.push(style.paint(Ink::Dim, &format!("  {shown} of {} points", curve.points.len())));
    }
    lines.extend(style.paragraph(Ink::Plain, &knee_line(curve, model), 2, 4));
    lines
}

fn cost_model(model: &CostModel, style: &Style) -> Vec<String> {
    let table = Table::from_items(demands(model))
        .left("when it is full", |(name, _)| *name)
        .right("each I/O", |(_, demand)| number::time(demand.fixed_ns))
        .right("each MiB", |(_, demand)| number::time(demand.per_byte_ns * 1_048_576.0))
        .right("8 KiB", |(_, demand)| number::time(demand.at_bytes(8192.0)));
    let mut lines = vec![style.heading("What an I/O takes of the storage's time")];
    lines.extend(table.lines(style));
    lines.extend(style.paragraph(Ink::Plain, &sharing_line(model), 2, 2));
    lines.extend(style.paragraph(Ink::Plain, &error_line(model), 2, 2));
    lines
}

fn conditions(capability: &Capability, style: &Style) -> Vec<String> {
    let mut lines = wrap(&conditions_line(capability), style.columns(), 3);
    for remark in &capability.conditions.remarks {
        lines.extend(style.paragraph(Ink::Plain, &format!("remark: {remark}"), 2, 2));
    }
    lines
}
