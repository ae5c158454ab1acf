//! A figure of every run over two factors of a matrix.

use crate::cells::{Cells, Scale, rate_forms};
use crate::chart::{Chart, Panel, grouped, truncate};
use crate::drawing::{Drawing, Size};
use crate::factor::{Factor, Level, Measure};
use crate::legend::Mark;
use crate::number;
use crate::palette::Ink;
use crate::run::{self, NamedRun};
use crate::runs::load_curve::median;
use crate::words::listed;

/// Panels of a chart.
const PANELS_MAX: usize = 8;
/// More columns than this need the width of a page.
const COLUMNS_HALF: usize = 8;

/// A figure of every run over two factors of a matrix: a panel for each combination of the others, all with
/// one scale of colours. Cells without a run are hatched; repeats show their median.
pub(crate) fn heat_map(runs: &[NamedRun], x: Factor, y: Factor, value: Measure) -> Chart {
    let title = format!("{} over {} and {}", value.heading(), x.title(), y.title());
    let mut chart = Chart::new(&title, run::settings(runs));
    if runs.is_empty() {
        chart.notes.push("There is no run.".into());
        return chart;
    }
    let (columns, rows) = (run::levels(x, runs), run::levels(y, runs));
    let mut facets = facets(runs, x, y);
    let left_out = truncate(&mut facets, PANELS_MAX);
    if left_out > 0 {
        chart.notes.push(format!("{left_out} more combinations of the other settings are not drawn."));
    }
    let grids: Vec<Vec<Option<f64>>> =
        facets.iter().map(|facet| grid(&facet.runs, &columns, &rows, (x, y), value)).collect();
    let known = || grids.iter().flatten().filter_map(|value| *value);
    let scale = Scale::over(known(), if value.is_time() { Ink::HeatTime } else { Ink::HeatRate });
    let unit = Unit::new(value, known());
    if facets.iter().any(|facet| facet.runs.len() > distinct(&facet.runs, x, y)) {
        chart.notes.push("Repeats of a cell: their median.".into());
    }
    if [x, y].contains(&Factor::Outstanding) {
        chart.notes.push("Outstanding I/Os are those of all threads together.".into());
    }
    chart.notes.push(format!(
        "Colour: {}{}.",
        scale.description(),
        if value.is_time() { "; stronger is slower" } else { "; stronger is more" }
    ));
    let is_hatched = grids.iter().flatten().any(Option::is_none);
    let base = if columns.len() <= COLUMNS_HALF && facets.len() > 1 { Size::HALF } else { Size::WIDE };
    for (facet, values) in facets.into_iter().zip(grids) {
        let ticks = |levels: &[Level]| levels.iter().map(|level| level.tick.clone()).collect::<Vec<_>>();
        let cells = Cells {
            x_title: x.title().into(),
            y_title: y.title().into(),
            value_title: unit.title(value),
            columns: ticks(&columns),
            rows: ticks(&rows),
            values,
            scale,
        };
        let title = if facet.name.is_empty() { value.heading() } else { facet.name };
        let description = format!("{} over {} and {}", value.title(), x.title(), y.title());
        let mut panel = panel(title, description, base, cells, unit);
        panel.note = unit.title(value);
        if is_hatched {
            panel.legend = vec![(Mark::Hatched, Ink::Axis, missing(value).into())];
        }
        chart.panels.push(panel);
    }
    chart
}

fn panel(title: String, description: String, base: Size, cells: Cells, unit: Unit) -> Panel {
    let height = (cells.rows.len() as u32).saturating_mul(34).saturating_add(76).clamp(220, 470);
    Panel::new(title, Size { height, ..base }, move |size| {
        Drawing::new(size, &description, |canvas| {
            let key = |at: f64| if at == 0.0 { "0".into() } else { unit.write(at).pop().unwrap_or_default() };
            cells.draw(canvas, size, key, |at| unit.write(at));
        })
    })
}

/// Why a cell has no figure.
fn missing(value: Measure) -> &'static str {
    match value {
        Measure::P99Latency => "not run, or no p99 is known",
        Measure::MeanLatency => "not run, or no latency is known",
        _ => "not run, or no I/O completed",
    }
}

/// One unit for all cells, so that they need none of their own.
#[derive(Clone, Copy)]
enum Unit {
    Plain,
    Time { ns: f64, name: &'static str },
}

impl Unit {
    fn new(value: Measure, values: impl Iterator<Item = f64>) -> Unit {
        if !value.is_time() {
            return Unit::Plain;
        }
        let all: Vec<f64> = values.collect();
        match median(&all).unwrap_or(1e6) {
            usual if usual < 1e6 => Unit::Time { ns: 1e3, name: "us" },
            usual if usual < 1e9 => Unit::Time { ns: 1e6, name: "ms" },
            _ => Unit::Time { ns: 1e9, name: "s" },
        }
    }

    fn title(self, value: Measure) -> String {
        match self {
            Unit::Plain => value.title().into(),
            Unit::Time { name, .. } => format!("{}, {name}", value.title()),
        }
    }

    /// In ever shorter forms.
    fn write(self, value: f64) -> Vec<String> {
        match self {
            Unit::Plain => rate_forms(value),
            Unit::Time { ns, .. } => {
                vec![number::rate(value / ns), rate_forms(value / ns).pop().unwrap_or_default()]
            }
        }
    }
}

/// All runs of one combination of the factors that the axes do not show.
struct Facet<'a> {
    name: String,
    runs: Vec<&'a NamedRun<'a>>,
}

fn facets<'a>(runs: &'a [NamedRun<'a>], x: Factor, y: Factor) -> Vec<Facet<'a>> {
    let others: Vec<Factor> = Factor::ALL.into_iter().filter(|factor| *factor != x && *factor != y).collect();
    let key = |run: &NamedRun| {
        let mut key = vec![run.group.clone()];
        key.extend(others.iter().map(|factor| factor.level(&run.result).name));
        key.push(run::factor_rest(&run.result));
        key
    };
    let groups = grouped(runs.iter().map(|run| (key(run), run)));
    let keys: Vec<&Vec<String>> = groups.iter().map(|(key, _)| key).collect();
    let name = |key: &[String]| {
        let differs = |at: &usize| keys.iter().any(|other| other[*at] != key[*at]);
        listed((0..key.len()).filter(differs).map(|at| key[at].as_str()))
    };
    let facet =
        |(key, runs): &(Vec<String>, Vec<&'a NamedRun<'a>>)| Facet { name: name(key), runs: runs.clone() };
    let mut facets: Vec<Facet> = groups.iter().map(facet).collect();
    let several = keys.iter().any(|key| key[0] != keys[0][0]);
    if !several {
        facets.sort_by_cached_key(|facet| {
            others.iter().map(|factor| factor.level(&facet.runs[0].result)).collect::<Vec<_>>()
        });
    }
    facets
}

fn distinct(runs: &[&NamedRun], x: Factor, y: Factor) -> usize {
    let mut cells: Vec<_> = runs.iter().map(|run| (x.level(&run.result), y.level(&run.result))).collect();
    cells.sort_unstable();
    cells.dedup();
    cells.len()
}

fn grid(
    runs: &[&NamedRun],
    columns: &[Level],
    rows: &[Level],
    (x, y): (Factor, Factor),
    value: Measure,
) -> Vec<Option<f64>> {
    let mut cells: Vec<Vec<f64>> = vec![Vec::new(); columns.len() * rows.len()];
    for run in runs {
        let column = columns.binary_search(&x.level(&run.result));
        let row = rows.binary_search(&y.level(&run.result));
        if let (Ok(column), Ok(row), Some(value)) = (column, row, value.value(&run.result)) {
            cells[row * columns.len() + column].push(value);
        }
    }
    cells.iter().map(|values| median(values)).collect()
}
