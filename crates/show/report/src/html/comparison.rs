use super::page::{Banner, TILES_MAX, Tile, page, panel, run_chart, tiles};
use super::runs::{how_to_read, repeat, results};
use super::sentence::sentence;
use super::table::{Table, tag};
use crate::{Tone, number, wording};
use charts::words::capitalised;
use charts::{Difference, NamedRun, RunChart, difference, escape};

/// Two groups of runs and their difference.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The heading: "slower", "no difference that matters".
    pub title: &'a str,
    /// Its colour.
    pub tone: Tone,
    /// The answer in a sentence.
    pub summary: &'a str,
    /// Names of A and B: "before", "after".
    pub names: [&'a str; 2],
    /// Further sentences.
    pub sentences: &'a [String],
    /// The figures, side by side.
    pub rows: &'a [ComparisonRow],
    /// The runs of both groups: [`NamedRun::group`] distinguishes them.
    pub runs: &'a [NamedRun<'a>],
    /// The command that repeats the comparison; empty where it is not known.
    pub command: &'a str,
    /// Version of Headroom.
    pub version: &'a str,
}

/// One figure of both groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonRow {
    /// The workload and its figure: "random read 8 KiB, p99".
    pub what: String,
    /// The figure of A with its unit.
    pub a: String,
    /// The figure of B.
    pub b: String,
    /// B against A as a share of A: 0.1 is 10 % more. `None`: not known.
    pub change: Option<f64>,
    /// The interval of the change, at the confidence that the sentences name.
    pub interval: Option<(f64, f64)>,
    /// Whether the change is for the better; `None`: it cannot be distinguished from no change.
    pub better: Option<bool>,
    /// In words: "slower, beyond noise", "cannot tell".
    pub words: String,
    /// Whether the answer rests on it.
    pub headline: bool,
}

/// Comparisons of one or several workloads as a page.
pub fn comparisons(all: &[compare::Comparison], runs: &[NamedRun], command: &str, version: &str) -> String {
    let words = |compared: &compare::Comparison| format!("{}: {}", compared.what, compared.summary);
    let summary = match all {
        [only] => only.summary.clone(),
        several => several.iter().map(words).collect::<Vec<String>>().join(" "),
    };
    let mut sentences: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for compared in all {
        let differs = |mismatch: &compare::Mismatch| {
            format!("A and B differ in {}: {} against {}.", mismatch.what, mismatch.a, mismatch.b)
        };
        sentences.extend(compared.mismatches.iter().map(differs));
        sentences.extend(compared.doubts.iter().map(|doubt| capitalised(doubt)));
        let several = all.len() > 1;
        rows.extend(
            compared.rows.iter().map(|row| ComparisonRow::new(row, several.then_some(&compared.what))),
        );
    }
    let names = all.first().map_or(["A", "B"], |first| [first.a.as_str(), first.b.as_str()]);
    let verdict = compare::Verdict::overall(all);
    comparison(&Comparison {
        title: wording::comparison::verdict(verdict),
        tone: match verdict {
            compare::Verdict::Faster => Tone::Good,
            compare::Verdict::Slower => Tone::Bad,
            compare::Verdict::Mixed => Tone::Warning,
            compare::Verdict::NoDifference | compare::Verdict::CannotTell => Tone::Neutral,
        },
        summary: &summary,
        names,
        sentences: &sentences,
        rows: &rows,
        runs,
        command,
        version,
    })
}

impl ComparisonRow {
    fn new(row: &compare::Row, workload: Option<&String>) -> ComparisonRow {
        let figure = |value: Option<f64>| {
            value.map_or(number::NONE.into(), |value| wording::comparison::value(row.unit, value))
        };
        let about = workload.into_iter().chain(&row.subject);
        let interval =
            row.difference.and_then(|by| Some((by.percent_low? / 100.0, by.percent_high? / 100.0)));
        ComparisonRow {
            what: about.cloned().chain([row.figure.clone()]).collect::<Vec<String>>().join(", "),
            a: figure(row.a),
            b: figure(row.b),
            change: row.percent.map(|percent| percent / 100.0),
            interval,
            better: match row.verdict {
                compare::Verdict::Faster => Some(true),
                compare::Verdict::Slower => Some(false),
                _ => None,
            },
            words: row
                .not_compared
                .clone()
                .unwrap_or_else(|| wording::comparison::verdict(row.verdict).to_owned()),
            headline: row.headline,
        }
    }
}

/// A comparison as a page: the answer, the differences with their intervals, the runs over each other.
pub fn comparison(compared: &Comparison) -> String {
    let [a, b] = compared.names;
    let subject = format!("{b} against {a}");
    let notes: String =
        compared.sentences.iter().map(|each| format!("<li>{}</li>\n", sentence(each))).collect();
    let banner = Banner {
        tone: compared.tone,
        subject: escape(&subject),
        beside: String::new(),
        title: &escape(compared.title),
        sentence: sentence(compared.summary),
        more: if notes.is_empty() { notes } else { format!("<ul class=\"plain\">\n{notes}</ul>") },
    };
    let mut body = banner.html();
    body.push_str(&tiles(&answer(compared)));
    body.push_str("<h2>Differences</h2>\n");
    let differences: Vec<Difference> = compared.rows.iter().filter_map(drawn).collect();
    if !differences.is_empty() {
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
    page(&format!("{}: {subject}", compared.title), &body, &format!("Headroom {}", escape(compared.version)))
}

/// The figures that the answer rests on.
fn answer(compared: &Comparison) -> Vec<Tile> {
    let rows = compared.rows.iter().filter(|row| row.headline).take(TILES_MAX);
    let tile = |row: &ComparisonRow| {
        let interval = row.interval.map_or(String::new(), |(low, high)| {
            format!(" ({} to {})", number::change(low), number::change(high))
        });
        let note = format!("{} against {}{interval}: {}", row.b, row.a, row.words);
        Tile { tone: tone(row), ..Tile::new(row.what.clone(), row.change.map(number::change), note) }
    };
    rows.map(tile).collect()
}

fn tone(row: &ComparisonRow) -> Tone {
    match row.better {
        Some(true) => Tone::Good,
        Some(false) => Tone::Bad,
        None => Tone::Neutral,
    }
}

fn drawn(row: &ComparisonRow) -> Option<Difference> {
    let change = row.change.filter(|change| change.is_finite())?;
    let interval = row.interval.filter(|(low, high)| low.is_finite() && high.is_finite());
    Some(Difference { name: row.what.clone(), change, interval, is_better: row.better })
}

fn rows(rows: &[ComparisonRow]) -> String {
    Table::from_items(rows)
        .long("figure", |row| sentence(&row.what))
        .number("A", |row| sentence(&row.a))
        .number("B", |row| sentence(&row.b))
        .value("change", |row| row.change.map_or(number::NONE.into(), number::change))
        .number("interval", |row| {
            let words = |(low, high)| format!("{} to {}", number::change(low), number::change(high));
            row.interval.map_or(number::NONE.into(), words)
        })
        .long("in words", |row| tag(&row.words, tone(row)))
        .html()
}
