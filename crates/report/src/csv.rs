//! Tables for spreadsheets: comma separated, a heading, one row a point. A figure that is not known is empty.

use matrix::{Estimate, Method, Summary};
use workload::Pattern;

/// The heading of [`matrix`]: tells that a file is one of ours.
pub const MATRIX_HEADING: &str = "matrix,target,pattern,write_percent,block_bytes,outstanding,threads,runs,\
    iops,iops_low,iops_high,interval,mib_per_s,latency_ns,latency_ns_p99,failed,skipped";

/// What a matrix gave.
pub fn matrix(summary: &Summary) -> String {
    let mut text = format!("{MATRIX_HEADING}\n");
    for row in &summary.rows {
        let pattern = match row.point.pattern {
            Pattern::Random => "random",
            Pattern::Sequential => "sequential",
        };
        let interval = row.iops.and_then(|estimate| estimate.interval);
        let method = interval.map_or("", |interval| match interval.method {
            Method::MeanT => "mean-t",
            Method::MedianOrder => "median-order",
        });
        let fields = [
            summary.id.to_string(),
            field(&row.target_path),
            pattern.into(),
            row.point.write_percent.to_string(),
            row.point.block_bytes.to_string(),
            row.point.outstanding.to_string(),
            row.point.threads.to_string(),
            row.runs.len().to_string(),
            value(&row.iops),
            interval.map_or(String::new(), |interval| decimal(interval.low)),
            interval.map_or(String::new(), |interval| decimal(interval.high)),
            method.into(),
            value(&row.mib_per_s),
            row.latency_ns.map_or(String::new(), decimal),
            row.latency_ns_p99.map_or(String::new(), |ns| ns.to_string()),
            row.failed.to_string(),
            field(row.skipped.as_deref().unwrap_or_default()),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

fn value(estimate: &Option<Estimate>) -> String {
    estimate.map_or(String::new(), |estimate| decimal(estimate.value))
}

fn decimal(value: f64) -> String {
    format!("{value:.3}")
}

/// RFC 4180. A leading sign that a spreadsheet would take for a formula is made text.
fn field(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.into() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
