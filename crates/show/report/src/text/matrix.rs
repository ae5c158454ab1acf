use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use super::wrap::{clean, wrap};
use crate::number;
use matrix::{Estimate, Forecast, Matrix, Method, Row, Summary};
use workload::format_bytes;

/// Reasons for skipping that are printed.
const REASONS_MAX: usize = 12;

/// The results of a matrix: a row for each point.
pub fn matrix(summary: &Summary, style: &Style) -> String {
    let mut lines = opening(summary, style);
    lines.push(String::new());
    lines.extend(table(summary, style));
    lines.extend(notes(summary, style));
    lines.join("\n") + "\n"
}

/// The number of runs that a matrix will make, and the time they will take.
pub fn forecast(matrix: &Matrix, forecast: &Forecast) -> String {
    let each = number::duration(matrix.runs.length().total().as_secs_f64());
    let time = number::duration(forecast.time.as_secs_f64());
    let mut text = format!("{} of {each} each, about {time} in all", runs(forecast.runs));
    if matrix.runs.budget.is_some() && forecast.left_out > 0 {
        let rest = forecast.runs - forecast.coarse;
        text.push_str(&format!(
            ": {} spread over all axes, then {} where curves bend or repeats disagree; the budget leaves no \
             time for {}",
            runs(forecast.coarse),
            runs(rest),
            runs(forecast.left_out)
        ));
    }
    if let Some(percent) = matrix.runs.prune_percent {
        text.push_str(&format!(
            "; fewer where outstanding x 4 gains less than {percent} % IOPS, beyond which points are skipped"
        ));
    }
    text
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".into() } else { format!("{} runs", number::count(count as u64)) }
}

fn opening(summary: &Summary, style: &Style) -> Vec<String> {
    let matrix = &summary.matrix;
    let mut title = format!("matrix {}", summary.id);
    if !matrix.name.is_empty() {
        title.push_str(&format!(" \"{}\"", clean(&matrix.name)));
    }
    let done = summary.rows.iter().map(|row| row.runs.len()).sum();
    title.push_str(&format!(": {}", runs(done)));
    let mut lines = vec![style.heading(&title)];
    lines.extend(wrap(&matrix.targets.join(", "), style.columns(), 3));
    if let Some(left) = &summary.left {
        let time = number::duration(left.time.as_secs_f64());
        let text = format!("{} still to come, about {time}", runs(left.runs));
        lines.push(style.paint(Ink::Tone(crate::Tone::Warning), &text));
    }
    lines
}

fn table(summary: &Summary, style: &Style) -> Vec<String> {
    let several = summary.matrix.targets.len() > 1;
    let mut titles = vec![("pattern", Align::Left)];
    let right =
        ["writes", "block", "threads", "outst.", "runs", "IOPS", "MiB/s", "mean", "p99", "IOPS, 95 %"];
    titles.extend(right.map(|title| (title, Align::Right)));
    if several {
        titles.insert(0, ("target", Align::Left));
    }
    let table = Table::new(&titles);
    let mut table = if several { table.flexible(0) } else { table };
    for row in &summary.rows {
        let mut cells: Vec<Cell> = Vec::new();
        if several {
            cells.push(row.target_path.as_str().into());
        }
        cells.extend(axes(row));
        cells.extend(figures(row));
        table.push(cells);
    }
    table.lines(style)
}

fn axes(row: &Row) -> [Cell; 5] {
    [
        row.point.pattern.to_string().into(),
        format!("{} %", row.point.write_percent).into(),
        format_bytes(u64::from(row.point.block_bytes)).into(),
        row.point.threads.to_string().into(),
        row.point.outstanding.to_string().into(),
    ]
}

fn figures(row: &Row) -> Vec<Cell> {
    let Some(iops) = &row.iops else {
        let why = match &row.skipped {
            Some(_) => "skipped, see below",
            None => "still to come",
        };
        return vec![Cell::inked(why, Ink::Dim)];
    };
    let time = |ns: Option<f64>| ns.map_or(number::NONE.into(), number::time);
    let mib_per_s = row.mib_per_s.map_or(number::NONE.into(), |estimate| number::rate(estimate.value));
    let p99 = time(row.latency_ns_p99.map(|ns| ns as f64));
    vec![
        row.runs.len().to_string().into(),
        number::rate(iops.value).into(),
        mib_per_s.into(),
        time(row.latency_ns).into(),
        p99.into(),
        interval(iops).into(),
    ]
}

fn interval(estimate: &Estimate) -> String {
    estimate
        .interval
        .map_or(number::NONE.into(), |it| format!("{} - {}", number::rate(it.low), number::rate(it.high)))
}

fn notes(summary: &Summary, style: &Style) -> Vec<String> {
    let methods: Vec<Method> =
        summary.rows.iter().filter_map(|row| Some(row.iops?.interval?.method)).collect();
    let mut notes = Vec::new();
    if methods.contains(&Method::MeanT) {
        notes.push("2 to 5 runs: mean, and Student's t about it, which supposes a normal distribution");
    }
    if methods.contains(&Method::MedianOrder) {
        notes.push("6 runs and more: median, and the runs that hold it by the binomial distribution");
    }
    let failed: u64 = summary.rows.iter().map(|row| row.failed).sum();
    let mut lines: Vec<String> =
        notes.into_iter().map(|note| style.paint(Ink::Dim, &format!("  {note}"))).collect();
    lines.extend(skipped(summary, style));
    if failed > 0 {
        let text = format!("  {} I/Os failed", number::count(failed));
        lines.push(style.paint(Ink::Tone(crate::Tone::Bad), &text));
    }
    lines
}

/// Why points or repeats were skipped, each reason once.
fn skipped(summary: &Summary, style: &Style) -> Vec<String> {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for reason in summary.rows.iter().filter_map(|row| row.skipped.as_deref()) {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, points)) => *points += 1,
            None => reasons.push((reason, 1)),
        }
    }
    let more = reasons.len().saturating_sub(REASONS_MAX);
    let line = |(reason, points): &(&str, usize)| {
        let of = if *points == 1 { "1 point".into() } else { format!("{points} points") };
        wrap(&format!("skipped, runs of {of}: {reason}"), style.columns() - 2, 2)
    };
    let mut lines: Vec<String> =
        reasons.iter().take(REASONS_MAX).flat_map(line).map(|text| format!("  {text}")).collect();
    if more > 0 {
        lines.push(format!("  and {more} reasons more, see --csv or --json"));
    }
    lines
}
