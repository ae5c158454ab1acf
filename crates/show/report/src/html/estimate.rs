use super::capability::{charts_of_curve, points};
use super::page::{Tile, page, tiles};
use super::sentence::sentence;
use crate::estimate::error_note;
use crate::wording::capability::{and_limit, operating_limit, reached_knee};
use crate::{Estimate, Tone, number};
use charts::escape;
use charts::words::capitalised;
use simulate::Prediction;

/// An estimate of a changed storage as a page.
pub fn estimate(estimate: &Estimate, version: &str) -> String {
    let mut body = format!(
        "<header class=\"card\">\n<div class=\"top\"><span class=\"small\">estimate by simulation</span></div>\n\
         <h1>What {} would give</h1>\n<p class=\"sentence\">{}</p>\n\
         <p class=\"small\">{}.</p>\n</header>\n",
        escape(&estimate.of),
        sentence(&estimate.summary()),
        sentence(&capitalised(&error_note(&estimate.fit))),
    );
    body.push_str(&tiles(&answer(estimate)));
    body.push_str(&headroom_bars(&estimate.predictions));
    for prediction in &estimate.predictions {
        let (now, then) = prediction.headroom;
        let workload = escape(&capitalised(&prediction.after.workload.to_string()));
        body.push_str(&format!(
            "<h2>{workload}, unchanged</h2>\n<p class=\"small\">Headroom for {} IOPS: {now:.2} x now, then {then:.2} x at {} \
             outstanding.{}</p>\n<div class=\"charts\">\n{}</div>\n<h2>{workload}, changed</h2>\n\
             <div class=\"charts\">\n{}</div>\n{}",
            number::rate(prediction.demand_iops),
            prediction.outstanding.1,
            escape(&knee_before(estimate, prediction)),
            charts_of_curve(&prediction.before, None, "simulated"),
            charts_of_curve(&prediction.after, None, "simulated"),
            points(&prediction.after),
        ));
    }
    page(&format!("Estimate for {}", estimate.of), &body, &format!("Headroom {}", escape(version)))
}

/// " Unchanged: knee at 15.4 outstanding, operating limit 13,800 IOPS."
fn knee_before(estimate: &Estimate, prediction: &Prediction) -> String {
    let curve = &prediction.before;
    let Some(knee) = reached_knee(curve) else { return String::new() };
    let limit = and_limit(operating_limit(curve, estimate.cost_model.as_ref()));
    format!(" Unchanged: knee at {} outstanding{limit}.", number::rate(knee.outstanding))
}

/// Headroom before and after the change, as bars on one scale for all workloads.
fn headroom_bars(predictions: &[Prediction]) -> String {
    let all = || predictions.iter().flat_map(|one| [one.headroom.0, one.headroom.1]);
    let most = all().filter(|headroom| headroom.is_finite()).fold(1.0, f64::max);
    let percent = |headroom: f64| (headroom / most * 100.0).clamp(0.0, 100.0);
    let one = percent(1.0);
    let bar = |when: &str, headroom: f64| {
        format!(
            "<span>{when}</span><span class=\"track\"><i style=\"width:{:.1}%\"></i><i class=\"one\" \
             style=\"left:{one:.1}%\"></i></span><b>{}</b>\n",
            percent(headroom),
            number::times(headroom)
        )
    };
    let bars: String = predictions
        .iter()
        .map(|one| {
            let workload = escape(&capitalised(&one.before.workload.to_string()));
            let (now, then) = one.headroom;
            format!("<h3>{workload}</h3>\n{}{}", bar("now", now), bar("then", then))
        })
        .collect();
    if bars.is_empty() {
        return bars;
    }
    format!(
        "<h2>Headroom</h2>\n<section class=\"card bars\">\n{bars}<p class=\"small\">How many times today\u{2019}s demand the \
         storage carries. The vertical line is today\u{2019}s demand.</p>\n</section>\n"
    )
}

/// The headroom of the first workload before and after.
fn answer(estimate: &Estimate) -> Vec<Tile> {
    let Some(first) = estimate.predictions.first() else { return Vec::new() };
    let (now, then) = first.headroom;
    let workload = first.after.workload.to_string();
    let tone = match then.total_cmp(&now) {
        std::cmp::Ordering::Greater => Tone::Good,
        std::cmp::Ordering::Less => Tone::Bad,
        std::cmp::Ordering::Equal => Tone::Neutral,
    };
    vec![
        Tile::new("headroom today", Some(number::times(now)), workload.clone()),
        Tile { tone, ..Tile::new("headroom with the change", Some(number::times(then)), workload) },
    ]
}
