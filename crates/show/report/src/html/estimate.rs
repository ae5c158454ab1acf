use super::capability::{charts_of_curve, points};
use super::page::page;
use crate::estimate::error_note;
use crate::{Estimate, number};
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
    for prediction in &estimate.predictions {
        let (now, then) = prediction.headroom;
        body.push_str(&format!(
            "<h2>{}</h2>\n<p class=\"small\">Headroom for {} IOPS: {now:.2} x now, then {then:.2} x at {} \
             outstanding.</p>\n<h2>As it is</h2>\n<div class=\"charts\">\n{}</div>\n<h2>If changed</h2>\n\
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
