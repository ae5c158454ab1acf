use super::page::{chart, legend, page};
use super::table::{Column, Table};
use crate::number;
use crate::wording::capability::{
    conditions_line, demands, device_line, error_line, knee_line, sharing_line, target_line,
};
use capability::{Capability, Curve, KneeReason};
use charts::words::capitalised;
use charts::{Ink, Mark, Size, curve_iops, curve_latency, escape};
use verdict::Place;

/// A capability as a page: every curve, the cost model, the conditions.
pub fn capability(capability: &Capability) -> String {
    let path = &capability.target.path;
    let mut body = format!(
        "<header class=\"card\">\n<div class=\"top\"><span class=\"small\">measured {}</span></div>\n\
         <h1>What {} can give</h1>\n<p class=\"small\">{}</p>\n</header>\n",
        number::instant(capability.measured_unix_ns),
        escape(path),
        escape(&target_line(capability))
    );
    body.push_str(&overview(capability));
    for curve in capability.curves.iter().filter(|curve| curve.points.len() > 1) {
        body.push_str(&format!(
            "<h2>{}</h2>\n<p class=\"small\">{}</p>\n<div class=\"charts\">\n{}</div>\n",
            escape(&capitalised(&curve.workload.to_string())),
            escape(&capitalised(&knee_line(curve))),
            curve_charts(curve, None)
        ));
    }
    body.push_str(&cost_model(capability));
    for curve in &capability.curves {
        let name = escape(&curve.workload.to_string());
        body.push_str(&format!("<h2>Points, {name}</h2>\n{}", points(curve)));
    }
    body.push_str("<h2>Target and conditions</h2>\n");
    body.push_str(&facts(capability));
    body.push_str(HOW_TO_READ);
    let footer = format!("Headroom {}", escape(&capability.conditions.headroom_version));
    page(&format!("Capability of {path}"), &body, &footer)
}

fn overview(capability: &Capability) -> String {
    if capability.curves.is_empty() {
        return "<p>No curves were measured.</p>\n".into();
    }
    let mut table = Table::new(&[
        ("workload", Column::Text),
        ("highest IOPS", Column::Value),
        ("MiB/s", Column::Number),
        ("lowest mean latency", Column::Number),
        ("knee (N)", Column::Number),
        ("95 % interval", Column::Number),
    ]);
    for curve in &capability.curves {
        let mib = curve.points.iter().map(|point| point.mib_per_s).max_by(f64::total_cmp);
        let (knee, interval) = match &curve.knee {
            Some(knee) if knee.reason == KneeReason::NotReached => {
                (format!("beyond {}", number::rate(knee.outstanding)), number::NONE.into())
            }
            Some(knee) => (
                number::rate(knee.outstanding),
                format!("{} to {}", number::rate(knee.low), number::rate(knee.high)),
            ),
            None => (number::NONE.into(), number::NONE.into()),
        };
        table.push(&[
            escape(&curve.workload.to_string()),
            curve.iops_max().map_or(number::NONE.into(), number::rate),
            mib.map_or(number::NONE.into(), number::rate),
            curve.latency_ns_min().map_or(number::NONE.into(), number::time),
            knee,
            interval,
        ]);
    }
    format!("<h2>In short</h2>\n{}", table.html())
}

/// A curve as two charts: throughput and latency.
pub(super) fn curve_charts(curve: &Curve, place: Option<&Place>) -> String {
    charts_of_curve(curve, place, "measured")
}

/// The same for a curve that was measured or simulated.
pub(super) fn charts_of_curve(curve: &Curve, place: Option<&Place>, how: &'static str) -> String {
    let reached = curve.knee.as_ref().is_some_and(|knee| knee.reason != KneeReason::NotReached);
    let entries = |bounds: &'static str| {
        let mut entries = vec![(Mark::Line, Ink::Curve, how)];
        if curve.knee.is_some() {
            entries.push((Mark::Dashed, Ink::Bound, bounds));
        }
        if reached {
            entries.push((Mark::Area, Ink::Knee, "knee, 95 % interval"));
        }
        if place.is_some() {
            entries.push((Mark::Dot, Ink::Demand, "the demand"));
        }
        legend(&entries)
    };
    let name = curve.workload.to_string();
    let expected = place.map_or(String::new(), |place| {
        format!("{}; the curve expects {} (small circle)", name, number::time(place.expected_ns))
    });
    let latency_note = if expected.is_empty() { &name } else { &expected };
    let latency = chart("Latency", latency_note, &entries("bounds: R0 and N / Xmax"), Size::HALF, |size| {
        curve_latency(curve, place, size)
    });
    let iops = chart("Throughput", &name, &entries("bounds: N / R0 and Xmax"), Size::HALF, |size| {
        curve_iops(curve, place, size)
    });
    latency + &iops
}

pub(super) fn points(curve: &Curve) -> String {
    let mut table = Table::new(&[
        ("N", Column::Number),
        ("IOPS", Column::Value),
        ("±", Column::Number),
        ("MiB/s", Column::Number),
        ("mean", Column::Number),
        ("median", Column::Number),
        ("p99", Column::Number),
        ("longest", Column::Number),
        ("CPU an I/O", Column::Number),
        ("", Column::Text),
    ]);
    for point in &curve.points {
        let mut notes = Vec::new();
        if !point.steady {
            notes.push("not steady".to_owned());
        }
        if point.failed > 0 {
            notes.push(format!("{} failed", number::count(point.failed)));
        }
        table.push(&[
            point.outstanding.to_string(),
            number::rate(point.iops),
            number::rate(point.iops_half_width),
            number::rate(point.mib_per_s),
            number::time(point.latency_ns),
            number::time(point.latency_ns_p50 as f64),
            point.latency_ns_p99.map_or(number::NONE.into(), |ns| number::time(ns as f64)),
            number::time(point.latency_ns_max as f64),
            number::time(point.cpu_ns_per_io),
            format!("<span class=\"why\">{}</span>", notes.join(", ")),
        ]);
    }
    table.html()
}

/// What an I/O costs, and the error of the model on what was kept out of the fit.
pub(super) fn cost_model(capability: &Capability) -> String {
    let Some(model) = &capability.cost_model else {
        return "<h2>What an I/O costs</h2>\n<p>Too little was measured to fit a cost model: it needs saturated \
                reads and writes.</p>\n"
            .into();
    };
    let mut costs = Table::new(&[
        ("kind of I/O", Column::Text),
        ("each I/O", Column::Number),
        ("each MiB", Column::Number),
        ("8 KiB I/O", Column::Number),
        ("64 KiB I/O", Column::Number),
    ]);
    for (name, demand) in demands(model) {
        costs.push(&[
            name.into(),
            number::time(demand.fixed_ns),
            number::time(demand.per_byte_ns * 1_048_576.0),
            number::time(demand.at_bytes(8192.0)),
            number::time(demand.at_bytes(65_536.0)),
        ]);
    }
    let mut html = format!(
        "<h2>What an I/O costs</h2>\n<p class=\"small\">How much of the storage’s time an I/O takes when the storage is \
         full: a fixed part, and a part for its bytes. {}; {}.</p>\n{}",
        escape(&capitalised(&sharing_line(model))),
        escape(&error_line(model)),
        costs.html()
    );
    if !model.held_out.is_empty() {
        let mut held_out = Table::new(&[
            ("kept out of the fit", Column::Text),
            ("measured IOPS", Column::Number),
            ("IOPS by the model", Column::Number),
            ("off by", Column::Number),
        ]);
        for held in &model.held_out {
            held_out.push(&[
                escape(&held.workload.to_string()),
                number::rate(held.measured_iops),
                number::rate(held.predicted_iops),
                number::share(held.predicted_iops / held.measured_iops - 1.0),
            ]);
        }
        html.push_str(&held_out.html());
    }
    html
}

/// Target, devices, throttles, conditions and remarks.
pub(super) fn facts(capability: &Capability) -> String {
    let target = &capability.target;
    let mut rows = vec![("Target", target.path.clone()), ("", target_line(capability))];
    rows.extend(target.devices.iter().map(|device| ("Device", device_line(device))));
    rows.extend(
        target.caps.iter().map(|cap| ("Throttle", format!("{cap} on {}, by {}", cap.device, cap.origin))),
    );
    rows.push(("Measured", conditions_line(capability)));
    rows.extend(capability.conditions.remarks.iter().map(|remark| ("Remark", remark.clone())));
    let rows: String =
        rows.iter().map(|(name, text)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(text))).collect();
    format!("<dl class=\"facts card\">\n{rows}</dl>\n")
}

const HOW_TO_READ: &str = "<h2>How to read this</h2>\n<div class=\"card\">\n\
<p><b>N</b> is how many I/Os were kept outstanding. <b>Mean</b>, <b>p99</b> and <b>longest</b> are latencies; there is \
no p99 where too few I/Os were done to know it. <b>±</b> is half of the 95 % confidence interval.</p>\n\
<p><b>The knee</b> is where the two dashed bounds cross: N = R0 × Xmax. R0 is the latency at rest, Xmax the highest \
rate. Below it, I/Os hardly wait for each other. Above it, each further one mostly waits: throughput may still creep \
up, latency grows faster.</p>\n\
<p><b>random 70/30 8 KiB</b> is 70 % reads and 30 % writes of 8 KiB at random places. <b>Write-through</b> writes are on \
the storage before the next one begins, as those of a transaction log.</p>\n\
<p><b>What an I/O costs</b> says how the storage’s time adds up: rate × cost, summed over all I/Os of a second, is the \
share of the storage that is used.</p>\n</div>\n";
