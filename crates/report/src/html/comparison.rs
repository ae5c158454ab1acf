use super::page::{page, panel, run_chart};
use super::runs::{how_to_read, opening, repeat, results};
use super::table::{Column, Table, tag};
use super::{escape, sentence};
use crate::chart::{Difference, Ink, RunChart, Shown, difference};
use crate::{Tone, number};

/// Two groups of runs and what is to be said of their difference.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The heading: "slower", "no difference beyond noise".
    pub title: &'a str,
    /// The answer in a sentence.
    pub summary: &'a str,
    /// What A and B are: "before", "after".
    pub names: [&'a str; 2],
    /// What more is to be said, a sentence each.
    pub sentences: &'a [String],
    /// The figures, side by side.
    pub rows: &'a [ComparisonRow],
    /// The runs of both groups: [`Shown::group`] tells them apart.
    pub runs: &'a [Shown<'a>],
    /// What to type to get the same again; empty where it is not known.
    pub command: &'a str,
    /// Version of Headroom.
    pub version: &'a str,
}

/// One figure of both groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonRow {
    /// Which figure of what: "random read 8 KiB, p99".
    pub what: String,
    /// As A has it, written with its unit.
    pub a: String,
    /// As B has it.
    pub b: String,
    /// B against A as a share of A: 0.1 is 10 % more. `None`: not known.
    pub change: Option<f64>,
    /// Where the change lies, at the confidence that the sentences name.
    pub interval: Option<(f64, f64)>,
    /// Whether the change is for the better; `None`: it cannot be told from none.
    pub better: Option<bool>,
    /// In words: "slower, beyond noise", "cannot tell".
    pub words: String,
}

/// A comparison as a page: the answer, the differences with their intervals, the runs over each other.
pub fn comparison(compared: &Comparison) -> String {
    let mut body = opening(compared.title, compared.summary, compared.sentences);
    body.push_str("<h2>Differences</h2>\n");
    let differences: Vec<Difference> = compared.rows.iter().filter_map(drawn).collect();
    if !differences.is_empty() {
        let [a, b] = compared.names;
        let note = format!("B ({b}) against A ({a}); whiskers are the intervals");
        let panel = panel(&difference(differences, "Change", &note));
        body.push_str(&format!("<div class=\"charts wide\">\n{panel}</div>\n"));
    }
    body.push_str(&rows(compared.rows));
    let charts: Vec<RunChart> = RunChart::fitting(compared.runs)
        .into_iter()
        .filter(|chart| !matches!(chart, RunChart::HeatMap { .. }))
        .collect();
    charts.iter().for_each(|chart| body.push_str(&run_chart(&chart.draw(compared.runs))));
    if !compared.runs.is_empty() {
        body.push_str(&format!("<h2>Results</h2>\n{}", results(compared.runs)));
    }
    body.push_str(&how_to_read(&charts));
    body.push_str(&repeat(compared.command));
    page(compared.title, &body, &format!("Headroom {}", escape(compared.version)))
}

fn drawn(row: &ComparisonRow) -> Option<Difference> {
    let change = row.change.filter(|change| change.is_finite())?;
    let interval = row.interval.filter(|(low, high)| low.is_finite() && high.is_finite());
    let ink = match row.better {
        Some(true) => Ink::Better,
        Some(false) => Ink::Worse,
        None => Ink::Muted,
    };
    Some(Difference { name: row.what.clone(), change, interval, ink })
}

fn rows(rows: &[ComparisonRow]) -> String {
    let mut table = Table::new(&[
        ("figure", Column::Long),
        ("A", Column::Number),
        ("B", Column::Number),
        ("change", Column::Value),
        ("interval", Column::Number),
        ("in words", Column::Long),
    ]);
    let signed = |share: f64| {
        let sign = if share > 0.0 { "+" } else { "" };
        format!("{sign}{}", number::share(share))
    };
    for row in rows {
        let tone = match row.better {
            Some(true) => Tone::Good,
            Some(false) => Tone::Bad,
            None => Tone::Neutral,
        };
        table.push(&[
            sentence(&row.what),
            sentence(&row.a),
            sentence(&row.b),
            row.change.map_or(number::NONE.into(), signed),
            row.interval
                .map_or(number::NONE.into(), |(low, high)| format!("{} to {}", signed(low), signed(high))),
            tag(&row.words, tone),
        ]);
    }
    table.html()
}
