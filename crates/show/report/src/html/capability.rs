use super::page::{Tile, chart, legend, page, tiles};
use super::sentence::sentence;
use super::table::Table;
use crate::number;
use crate::wording::capability::{
    conditions_line, demands, device_line, error_line, knee_line, operating_limit, point_notes, reached_knee,
    sharing_line, target_line,
};
use capability::{Capability, Curve, Knee, KneeReason, Point};
use charts::words::capitalised;
use charts::{Ink, Mark, Size, curve_iops, curve_latency, escape};
use verdict::Place;

/// A capability as a page: every curve, the cost model, the conditions.
pub fn capability(capability: &Capability) -> String {
    let path = &capability.target.path;
    let mut body = format!(
        "<header class=\"card\">\n<div class=\"top\"><span class=\"small\">measured {}</span></div>\n\
         <h1>What {} can give</h1>\n<p class=\"sentence\">{}</p>\n<p class=\"small\">{}</p>\n</header>\n",
        number::instant(capability.measured_unix_ns),
        escape(path),
        sentence(&Answer::new(capability).sentence()),
        escape(&target_line(capability))
    );
    body.push_str(&tiles(&Answer::new(capability).tiles()));
    body.push_str(&overview(capability));
    for curve in capability.curves.iter().filter(|curve| curve.points.len() > 1) {
        body.push_str(&format!(
            "<h2>{}</h2>\n<p class=\"small\">{}</p>\n<div class=\"charts\">\n{}</div>\n",
            escape(&capitalised(&curve.workload.to_string())),
            escape(&capitalised(&knee_line(curve, capability.cost_model.as_ref()))),
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

/// The answer of the page: the highest rate of reads, their unloaded latency, and a commit.
struct Answer<'a> {
    reads: Option<(&'a Curve, &'a Knee)>,
    commits: Option<(&'a Curve, &'a Point)>,
    operating_limit: Option<f64>,
}

impl Answer<'_> {
    fn new(capability: &Capability) -> Answer<'_> {
        let curves = || capability.curves.iter();
        let mut reads = curves().filter(|curve| curve.workload.write_percent == 0);
        let reads = reads.find_map(|curve| Some((curve, curve.knee.as_ref()?)));
        let mut commits = curves().filter(|curve| curve.workload.durability == workload::Durability::Synced);
        Answer {
            reads,
            commits: commits.find_map(|curve| Some((curve, curve.points.first()?))),
            operating_limit: reads
                .and_then(|(curve, _)| operating_limit(curve, capability.cost_model.as_ref())),
        }
    }

    fn sentence(&self) -> String {
        let reads = self.reads.map(|(curve, knee)| {
            let at_most = if knee.reason == KneeReason::NotReached { "at least" } else { "at most" };
            format!(
                "{at_most} {} IOPS of {}, {} each without load",
                number::rate(knee.iops),
                curve.workload,
                number::time(knee.latency_ns_floor)
            )
        });
        let commit = self
            .commits
            .map(|(_, point)| format!("a commit (append and sync) takes {}", number::time(point.latency_ns)));
        let parts: Vec<String> = reads.into_iter().chain(commit).collect();
        if parts.is_empty() {
            return "Neither reads nor commits were measured.".into();
        }
        format!("{}.", capitalised(&parts.join("; ")))
    }

    fn tiles(&self) -> Vec<Tile> {
        let mut all = Vec::new();
        if let Some((curve, knee)) = self.reads {
            let workload = curve.workload.to_string();
            let limit = self.operating_limit.map_or(String::new(), |iops| {
                format!("; operating limit by the cost model {} IOPS", number::rate(iops.round()))
            });
            let rate = Some(format!("{} IOPS", number::rate(knee.iops)));
            all.push(Tile::new("highest rate", rate, format!("{workload}{limit}")));
            let knee_at = format!("{workload}; knee at {} outstanding", number::rate(knee.outstanding));
            let note = if knee.reason == KneeReason::NotReached { workload } else { knee_at };
            all.push(Tile::new("unloaded latency", Some(number::time(knee.latency_ns_floor)), note));
        }
        if let Some((curve, point)) = self.commits {
            all.push(Tile::new("commit", Some(number::time(point.latency_ns)), curve.workload.to_string()));
        }
        all
    }
}

fn overview(capability: &Capability) -> String {
    if capability.curves.is_empty() {
        return "<p>No curves were measured.</p>\n".into();
    }
    let knee = |curve: &Curve| match &curve.knee {
        Some(knee) if knee.reason == KneeReason::NotReached => {
            format!("beyond {}", number::rate(knee.outstanding))
        }
        Some(knee) => number::rate(knee.outstanding),
        None => number::NONE.into(),
    };
    let interval = |curve: &Curve| match reached_knee(curve) {
        Some(knee) => format!("{} to {}", number::rate(knee.low), number::rate(knee.high)),
        None => number::NONE.into(),
    };
    let table = Table::from_items(&capability.curves)
        .text("workload", |curve| escape(&curve.workload.to_string()))
        .value("highest rate (IOPS)", |curve| curve.highest_rate().map_or(number::NONE.into(), number::rate))
        .number("operating limit (IOPS)", |curve| {
            let limit = operating_limit(curve, capability.cost_model.as_ref());
            limit.map_or(number::NONE.into(), |iops| number::rate(iops.round()))
        })
        .number("MiB/s", |curve| {
            let mib_per_s = curve.points.iter().map(|point| point.mib_per_s).max_by(f64::total_cmp);
            mib_per_s.map_or(number::NONE.into(), number::rate)
        })
        .number("lowest mean latency", |curve| {
            curve.latency_ns_min().map_or(number::NONE.into(), number::time)
        })
        .number("knee (N)", |curve| knee(curve))
        .number("95 % interval", |curve| interval(curve));
    format!("<h2>In short</h2>\n{}", table.html())
}

/// A curve as two charts: throughput and latency.
pub(super) fn curve_charts(curve: &Curve, place: Option<&Place>) -> String {
    charts_of_curve(curve, place, "measured")
}

/// A curve, measured or simulated, as two charts: throughput and latency.
pub(super) fn charts_of_curve(curve: &Curve, place: Option<&Place>, how: &'static str) -> String {
    let entries = |bounds: &'static str| {
        let mut entries = vec![(Mark::Line, Ink::Curve, how)];
        if curve.knee.is_some() {
            entries.push((Mark::Dashed, Ink::Bound, bounds));
        }
        if reached_knee(curve).is_some() {
            entries.push((Mark::Area, Ink::Knee, "knee, 95 % interval"));
        }
        if place.is_some() {
            entries.push((Mark::Ring, Ink::Demand, "the demand"));
        }
        legend(&entries)
    };
    let name = curve.workload.to_string();
    let expected = place.map_or(String::new(), |place| {
        format!("{}; the curve expects {} (small circle)", name, number::time(place.expected_ns))
    });
    let latency_note = if expected.is_empty() { &name } else { &expected };
    let latency = chart(
        "Latency",
        latency_note,
        &entries("bounds: unloaded latency, highest rate"),
        Size::HALF,
        |size| curve_latency(curve, place, size),
    );
    let iops =
        chart("Throughput", &name, &entries("bounds: unloaded latency, highest rate"), Size::HALF, |size| {
            curve_iops(curve, place, size)
        });
    latency + &iops
}

pub(super) fn points(curve: &Curve) -> String {
    Table::from_items(&curve.points)
        .number("N", |point| point.outstanding.to_string())
        .value("IOPS", |point| number::rate(point.iops))
        .number("±", |point| number::rate(point.iops_half_width))
        .number("MiB/s", |point| number::rate(point.mib_per_s))
        .number("mean", |point| number::time(point.latency_ns))
        .number("median", |point| number::time(point.latency_ns_p50 as f64))
        .number("p99", |point| point.latency_ns_p99.map_or(number::NONE.into(), |ns| number::time(ns as f64)))
        .number("longest", |point| number::time(point.latency_ns_max as f64))
        .number("CPU an I/O", |point| number::time(point.cpu_ns_per_io))
        .text("", |point| format!("<span class=\"why\">{}</span>", point_notes(point)))
        .html()
}

/// The cost of an I/O, and the error of the model on the points kept out of the fit.
pub(super) fn cost_model(capability: &Capability) -> String {
    let Some(model) = &capability.cost_model else {
        return "<h2>What an I/O costs</h2>\n<p>Too little was measured to fit a cost model: it needs saturated \
                reads and writes.</p>\n"
            .into();
    };
    let costs = Table::from_items(demands(model))
        .text("kind of I/O", |(name, _)| (*name).into())
        .number("each I/O", |(_, demand)| number::time(demand.fixed_ns))
        .number("each MiB", |(_, demand)| number::time(demand.per_byte_ns * 1_048_576.0))
        .number("8 KiB I/O", |(_, demand)| number::time(demand.at_bytes(8192.0)))
        .number("64 KiB I/O", |(_, demand)| number::time(demand.at_bytes(65_536.0)));
    let mut html = format!(
        "<h2>What an I/O costs</h2>\n<p class=\"small\">How much of the storage’s time an I/O takes when the storage is \
         full: a fixed part, and a part for its bytes. {}; {}.</p>\n{}",
        escape(&capitalised(&sharing_line(model))),
        escape(&error_line(model)),
        costs.html()
    );
    if !model.held_out.is_empty() {
        let held_out = Table::from_items(&model.held_out)
            .text("kept out of the fit", |held| escape(&held.workload.to_string()))
            .number("measured IOPS", |held| number::rate(held.measured_iops))
            .number("IOPS by the model", |held| number::rate(held.predicted_iops))
            .number("off by", |held| number::share(held.predicted_iops / held.measured_iops - 1.0));
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
<p><b>The highest rate</b> (Xmax) is the mean of the plateau of a curve. <b>The knee</b> is where the two dashed bounds, the \
unloaded latency and the highest rate, meet. Below it I/Os hardly wait for each other. Above it the rate still grows, and latency \
grows faster.</p>\n\
<p><b>The operating limit</b> is the highest rate by the cost model, which is fitted to all curves at once: what utilisation \
calls 100 %.</p>\n\
<p><b>random 70/30 8 KiB</b> is 70 % reads and 30 % writes of 8 KiB at random places. <b>Write-through</b> writes are on \
the storage before the next one begins, as those of a transaction log.</p>\n\
<p><b>What an I/O costs</b> says how the storage’s time adds up: rate × cost, summed over all I/Os of a second, is the \
share of the storage that is used.</p>\n</div>\n";
