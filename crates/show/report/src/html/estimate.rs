use super::capability::{charts_of_curve, points};
use super::page::{Tile, page, tiles};
use crate::estimate::error_note;
use crate::{Estimate, Tone, number};
use charts::escape;

/// An estimate of a changed storage as a page.
pub fn estimate(estimate: &Estimate, version: &str) -> String {
    let changes = estimate.changes.as_deref().unwrap_or("nothing is changed");
    let mut body = format!(
        "<header class=\"card\">\n<div class=\"top\"><span class=\"small\">estimate by simulation</span></div>\n\
         <h1>What {} would give</h1>\n<p class=\"sentence\">If {}: {}.</p>\n</header>\n",
        escape(&estimate.of),
        escape(changes),
        escape(&error_note(&estimate.fit)),
    );
    body.push_str(&tiles(&answer(estimate)));
    for prediction in &estimate.predictions {
        let (now, then) = prediction.headroom;
        body.push_str(&format!(
            "<h2>{}</h2>\n<p class=\"small\">Headroom for {} IOPS: {now:.2} x now, then {then:.2} x at {} \
             outstanding.</p>\n<h2>Unchanged</h2>\n<div class=\"charts\">\n{}</div>\n<h2>Changed</h2>\n\
             <div class=\"charts\">\n{}</div>\n{}",
            escape(&prediction.after.workload.to_string()),
            number::rate(prediction.demand_iops),
            prediction.outstanding.1,
            charts_of_curve(&prediction.before, None, "simulated"),
            charts_of_curve(&prediction.after, None, "simulated"),
            points(&prediction.after),
        ));
    }
    page(&format!("Estimate for {}", estimate.of), &body, &format!("Headroom {}", escape(version)))
}

/// The headroom of the first workload before and after, and how far the model is off.
fn answer(estimate: &Estimate) -> Vec<Tile> {
    let Some(first) = estimate.predictions.first() else { return Vec::new() };
    let (now, then) = first.headroom;
    let workload = first.after.workload.to_string();
    let tone = match then.total_cmp(&now) {
        std::cmp::Ordering::Greater => Tone::Good,
        std::cmp::Ordering::Less => Tone::Bad,
        std::cmp::Ordering::Equal => Tone::Neutral,
    };
    let error = estimate.fit.error.map(number::share);
    vec![
        Tile::new("headroom today", Some(number::times(now)), workload.clone()),
        Tile { tone, ..Tile::new("headroom with the change", Some(number::times(then)), workload) },
        Tile::new("error of the model", error, "on measured points that its fit did not see"),
    ]
}
