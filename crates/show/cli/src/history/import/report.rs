//! Imported results, as a table and as JSON.

use super::{Item, results};
use workload::{LatencyFigures, PhaseResult, RunResult, format_ns};

const HEADS: [&str; 9] = ["run", "target", "workload", "outstanding", "IOPS", "MiB/s", "mean", "p99", "tool"];

/// A row for each result, the notes, and how many were imported.
pub fn table(items: &[Item], dry_run: bool) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    for item in items {
        for (index, result) in results(&item.document).enumerate() {
            let run = item.runs.get(index).map_or("-".to_owned(), ToString::to_string);
            let run = if item.known { format!("{run} (known)") } else { run };
            rows.push(row(run, result));
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            // Numbers stand under each other by their ends.
            let is_number = (3..8).contains(&column);
            line.push_str(&if is_number { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push('\n');
    for item in items {
        item.document.notes.iter().for_each(|note| text.push_str(&format!("note: {}: {note}\n", item.file)));
    }
    text.push_str(&summary(items, dry_run));
    text
}

fn row(run: String, result: &RunResult) -> [String; 9] {
    let ns = |ns: Option<f64>| ns.map_or("not known".to_owned(), format_ns);
    [
        run,
        result.target.clone(),
        result.shape_words(),
        if result.settings_unreported {
            "not known".to_owned()
        } else {
            format!("{} x {}", result.workload.threads, result.workload.outstanding)
        },
        format!("{:.0}", result.iops()),
        format!("{:.1}", result.mib_per_s()),
        ns(result.mean_latency_ns()),
        p99(result),
        result.tool.clone().unwrap_or_default(),
    ]
}

/// Of reads and writes together. Where the tool reported it of each alone, both: that of all lies between them.
fn p99(result: &RunResult) -> String {
    let of = |latency: LatencyFigures| latency.percentile_ns(99.0).map(|ns| format_ns(ns as f64));
    match (of(result.total_latency()), of(result.read_latency()), of(result.write_latency())) {
        (Some(both), ..) => both,
        (None, Some(read), Some(write)) => format!("{read} reads, {write} writes"),
        _ => "not known".into(),
    }
}

fn summary(items: &[Item], dry_run: bool) -> String {
    let count = |known: bool| -> usize {
        items.iter().filter(|item| item.known == known).map(|item| results(&item.document).count()).sum()
    };
    let runs = |n: usize| if n == 1 { "1 run".to_owned() } else { format!("{n} runs") };
    let (new, known) = (count(false), count(true));
    match (dry_run, known) {
        (true, _) => format!("{} would be imported: nothing was kept (--dry-run)\n", runs(new)),
        (false, 0) => format!("{} imported\n", runs(new)),
        (false, _) => {
            format!(
                "{} imported; {} known from before (--again keeps them once more)\n",
                runs(new),
                runs(known)
            )
        }
    }
}

/// The results in the shape of `headroom run`, and what was read of each document.
pub fn json(items: &[Item]) -> serde_json::Value {
    let phases = items.iter().flat_map(|item| &item.document.phases);
    let phases: Vec<PhaseResult> = phases
        .map(|phase| PhaseResult { name: phase.name.clone(), results: phase.results.clone() })
        .collect();
    let documents: Vec<serde_json::Value> = items
        .iter()
        .map(|item| {
            serde_json::json!({
                "file": item.file,
                "line": item.document.line,
                "format": item.format.to_string(),
                "tool": item.document.tool,
                "phases": item.document.phases.len(),
                "runs": item.runs,
                "known": item.known,
                "notes": item.document.notes,
            })
        })
        .collect();
    serde_json::json!({"phases": phases, "imported": documents})
}
