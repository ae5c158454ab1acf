//! Commits in batches: time and log writes against rows a commit.

use crate::axis::Axis;
use crate::chart::{Chart, Key, Mark, Panel, grouped};
use crate::drawing::{Drawing, Size};
use crate::number;
use crate::palette::{Ink, SERIES_INKS};
use crate::plot::{Margins, Plot, Stroke, Values};
use experiments::{CommitResult, CommitStudy};
use std::rc::Rc;

/// One engine's line: its name and, by rows a commit, a figure.
struct Line {
    name: String,
    points: Values,
}

/// Time and log writes against rows a commit, a line for each engine; both axes logarithmic.
pub fn commits(study: &CommitStudy) -> Chart {
    let seconds = lines(study, |result| Some(result.seconds * 1e9));
    let writes = lines(study, |result| result.log.writes.known().map(|writes| writes as f64));
    let mut notes = vec!["Both axes are logarithmic.".to_owned()];
    let engines_with = |shows: fn(&CommitResult) -> bool| -> String {
        let all = |name: &str| study.results.iter().filter(|result| result.name() == name).all(shows);
        let names: Vec<&str> =
            writes.iter().map(|line| line.name.as_str()).filter(|name| all(name)).collect();
        names.join(", ")
    };
    let uncounted = engines_with(|result| result.log.writes.known().is_none());
    if !uncounted.is_empty() {
        notes.push(format!("The log writes of {uncounted} were not counted."));
    }
    let without = engines_with(|result| result.log.writes.known() == Some(0));
    if !without.is_empty() {
        notes.push(format!("No log was written by {without}."));
    }
    let panels = if study.results.is_empty() {
        Vec::new()
    } else {
        let title = format!("Time of {} rows", number::count(study.rows));
        vec![
            panel(&title, "time, log scale", seconds, |values| Axis::latencies(values.into_iter())),
            panel("Writes to the log", "log writes, log scale", writes, |values| {
                Axis::decades(values.into_iter())
            }),
        ]
    };
    let settings =
        vec![("rows".to_owned(), study.rows.to_string()), ("directory".to_owned(), study.dir.clone())];
    Chart { title: "Commits in batches".into(), notes, panels, settings }
}

fn lines(study: &CommitStudy, figure: impl Fn(&CommitResult) -> Option<f64>) -> Vec<Line> {
    // A logarithmic axis has no 0.
    let point = |result: &CommitResult| (result.batch as f64, figure(result).filter(|value| *value > 0.0));
    let lines = grouped(study.results.iter().map(|result| (result.name(), point(result))));
    let mut lines: Vec<Line> = lines.into_iter().map(|(name, points)| Line { name, points }).collect();
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    lines
}

/// Lines whose colour repeats one before are dashed.
fn stroke(at: usize) -> Mark {
    if at < SERIES_INKS { Mark::Line } else { Mark::Dashed }
}

fn panel(title: &str, y_title: &'static str, lines: Vec<Line>, axis: fn(Vec<f64>) -> Axis) -> Panel {
    let key = |(at, line): (usize, &Line)| -> Key { (stroke(at), Ink::series(at), line.name.clone()) };
    let legend = lines.iter().enumerate().map(key).collect();
    let lines = Rc::new(lines);
    let title = title.to_owned();
    let description = format!("{title} against rows a commit");
    let draw = move |size: Size| {
        Drawing::new(size, &description, |canvas| {
            let points = || lines.iter().flat_map(|line| &line.points);
            let x = Axis::decades(points().map(|(x, _)| *x));
            let y = axis(points().filter_map(|(_, y)| *y).collect());
            let mut plot = Plot::new(canvas, size, &Margins::CURVE, x, y);
            plot.axes("rows a commit, log scale", y_title);
            for (at, line) in lines.iter().enumerate() {
                if stroke(at) == Mark::Dashed {
                    plot.thin(&line.points, Ink::series(at), Stroke::Dashed);
                    plot.marks(&line.points, Ink::series(at), 2.6);
                } else {
                    plot.series(&line.points, Ink::series(at), true);
                }
            }
            if points().all(|(_, y)| y.is_none()) {
                plot.nothing("not counted");
            }
        })
    };
    Panel { legend, ..Panel::new(title, Size::HALF, draw) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiments::{Durability, IoFigures};
    use filestats::Figure;

    #[test]
    fn lines_of_more_engines_than_colours_differ() {
        let io = IoFigures {
            writes: Figure::Known(2),
            write_bytes: Figure::Known(8_192),
            syncs: Figure::Known(1),
            wait_ns: Figure::Known(9),
        };
        let result = |engine: usize| CommitResult {
            engine: format!("engine {engine}"),
            durability: Durability::Full,
            batch: 1,
            rows: 1,
            commits: 1,
            seconds: 1.0,
            log: io,
            data: io,
            waits_for_data: false,
        };
        let results: Vec<CommitResult> = (0..SERIES_INKS + 3).map(result).collect();
        let study = CommitStudy { dir: "/data".into(), rows: 1, results, notes: vec![] };
        let legend = &commits(&study).panels[0].legend;
        assert_eq!(legend.len(), SERIES_INKS + 3);
        for (at, (mark, ink, name)) in legend.iter().enumerate() {
            let alike = legend[..at].iter().find(|(other, shade, _)| (other, shade) == (mark, ink));
            assert!(alike.is_none(), "{name} looks like {}", alike.unwrap().2);
        }
    }
}
