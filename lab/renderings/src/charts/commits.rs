//! Commits in batches: time and log writes against rows a commit.

use charts::parts::{Axis, Margins, Plot, SERIES_INKS, Stroke, Values, grouped};
use charts::{Chart, Drawing, Ink, Key, Mark, Panel, Size, number};
use experiments::{CommitResult, CommitStudy};
use std::rc::Rc;

/// One engine's line: by rows a commit, a figure.
struct Line {
    name: String,
    ink: Ink,
    mark: Mark,
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
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    let styles = styles(&names);
    let line = |((name, mut points), (ink, mark)): ((String, Values), (Ink, Mark))| {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Line { name, ink, mark, points }
    };
    lines.into_iter().zip(styles).map(line).collect()
}

/// One hue an engine. Its variants, "sqlite-wal" and "sqlite-rollback" or "redb" and "redb, delayed", are dashed and dotted.
fn styles(names: &[&str]) -> Vec<(Ink, Mark)> {
    const MARKS: [Mark; 3] = [Mark::Line, Mark::Dashed, Mark::Dotted];
    let mut engines: Vec<&str> = Vec::new();
    let mut taken: Vec<(Ink, Mark)> = Vec::new();
    for name in names {
        let engine = name.split(['-', ',']).next().unwrap_or(name);
        let hue = engines.iter().position(|known| *known == engine).unwrap_or_else(|| {
            engines.push(engine);
            engines.len() - 1
        });
        // An engine of more variants than marks borrows the next hue.
        let hues = (hue..hue + SERIES_INKS).map(Ink::series);
        let mut all = hues.flat_map(|ink| MARKS.map(|mark| (ink, mark)));
        taken.push(all.find(|style| !taken.contains(style)).unwrap_or((Ink::series(hue), Mark::Line)));
    }
    taken
}

fn panel(title: &str, y_title: &'static str, lines: Vec<Line>, axis: fn(Vec<f64>) -> Axis) -> Panel {
    let legend: Vec<Key> = lines.iter().map(|line| (line.mark, line.ink, line.name.clone())).collect();
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
            for Line { ink, mark, points, .. } in lines.iter() {
                let stroke = if *mark == Mark::Dotted { Stroke::Dotted } else { Stroke::Dashed };
                match mark {
                    Mark::Line => plot.series(points, *ink, true),
                    _ => {
                        plot.thin(points, *ink, stroke);
                        plot.marks(points, *ink, 2.6);
                    }
                }
            }
            if points().all(|(_, y)| y.is_none()) {
                plot.nothing("not counted");
            }
        })
    };
    // All engines meet in the largest batch: names at the ends of the lines would not tell them apart.
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

    #[test]
    fn variants_of_an_engine_share_its_hue() {
        let names = ["pagestore", "pagestore-asleep", "sqlite-wal", "sqlite-wal, delayed", "redb"];
        let expected = [
            (Ink::Series(0), Mark::Line),
            (Ink::Series(0), Mark::Dashed),
            (Ink::Series(1), Mark::Line),
            (Ink::Series(1), Mark::Dashed),
            (Ink::Series(2), Mark::Line),
        ];
        assert_eq!(styles(&names), expected);
    }
}
