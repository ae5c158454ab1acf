//! The table of files: its order, its columns, and how a line fits into the terminal.

use crate::view::{Sort, View, dim};
use filestats::{Counters, Delta, Interval, Meaning};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use report::text::{align_decimals, band_tone, watched_figures};
use report::{FoldedFiles, Tone, WatchedFile, WatchedInterval, fold_libraries};

/// The columns after the figures of a line.
#[derive(Default)]
pub(crate) struct Ending {
    band: String,
    tone: Tone,
    usual: String,
    sparkline: String,
}

/// A line of the tables: a name with its figures, or without them and why.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) figures: Result<[String; 8], String>,
    pub(crate) ending: Ending,
}

impl Row {
    /// A row without a band.
    pub(crate) fn new(name: String, interval: &Interval) -> Row {
        let figures = match interval {
            Interval::Known(delta) => Ok(watched_figures(delta, Meaning::REQUESTS)),
            Interval::Unknown(reason) => Err(reason.to_string()),
        };
        Row { name, figures, ending: Ending::default() }
    }
}

pub(crate) const TITLES: [&str; 8] = ["reads/s", "ms", "writes/s", "ms", "syncs/s", "ms", "N", "MiB/s"];
/// Before the title of the column by which the files are sorted.
const SORTED: char = '▾';
/// The least widths of the figures.
const FIGURE_COLUMNS: [usize; 8] = [7, 5, 8, 5, 7, 5, 5, 6];
const BAND_COLUMNS: usize = 10;
const USUAL_COLUMNS: usize = 8;
const SPARK_COLUMNS: usize = 12;
const PATH_COLUMNS_MIN: usize = 8;
/// From this width on all columns are shown.
const WIDE_COLUMNS: u16 = 110;

/// The widths of a line. A narrow terminal has no columns for MiB/s, the usual latency and the sparkline.
pub(crate) struct Columns {
    path: usize,
    figures: [usize; 8],
    wide: bool,
}

impl Columns {
    fn shown(&self) -> usize {
        if self.wide { 8 } else { 7 }
    }
}

impl View {
    /// Columns in which all rows stand under each other, after their figures were filled up to common decimal points.
    pub(crate) fn fit(columns: u16, rows: &mut [&mut [Row]]) -> Columns {
        let mut all: Vec<&mut [String; 8]> = rows
            .iter_mut()
            .flat_map(|rows| rows.iter_mut())
            .filter_map(|row| row.figures.as_mut().ok())
            .collect();
        align_decimals(all.iter_mut().map(|figures| &mut **figures));
        let mut figures = FIGURE_COLUMNS;
        for row in &all {
            for (width, figure) in figures.iter_mut().zip(row.iter()) {
                *width = (*width).max(figure.chars().count());
            }
        }
        let wide = columns >= WIDE_COLUMNS;
        let shown = if wide { 8 } else { 7 };
        let taken: usize = figures.iter().take(shown).map(|columns| columns + 1).sum();
        let ending = BAND_COLUMNS + 1 + if wide { USUAL_COLUMNS + SPARK_COLUMNS + 2 } else { 0 };
        let path = usize::from(columns).saturating_sub(taken + ending).max(PATH_COLUMNS_MIN);
        Columns { path, figures, wide }
    }

    /// The files that pass the filter, sorted.
    pub(crate) fn files(&self) -> Vec<&WatchedFile> {
        let all = self.glances.iter().flat_map(|glance| &glance.files);
        let passes = |file: &&WatchedFile| {
            file.is_active() && file.name().to_lowercase().contains(&self.filter.to_lowercase())
        };
        let mut files: Vec<&WatchedFile> = all.filter(passes).collect();
        let count = |file: &WatchedFile, counter: fn(&Counters) -> u64| {
            file.delta().map_or(0, |delta| counter(&delta.counters))
        };
        match self.sort {
            Sort::Stall => files.sort_by_key(|file| std::cmp::Reverse(file.stall_ns())),
            Sort::Latency => {
                let latency = |file: &WatchedFile| file.latency_ns().unwrap_or(-1.0);
                files.sort_by(|a, b| latency(b).total_cmp(&latency(a)));
            }
            Sort::Reads => files.sort_by_key(|file| std::cmp::Reverse(count(file, |all| all.read.count))),
            Sort::Writes => files.sort_by_key(|file| std::cmp::Reverse(count(file, |all| all.write.count))),
            Sort::Name => files.sort_by(|a, b| a.row.file.path.cmp(&b.row.file.path)),
        }
        files
    }

    /// The rows of the files that fit below each other, after the total of all of them.
    pub(crate) fn file_rows(&mut self, shown: usize) -> Vec<Row> {
        let files = self.files();
        let several = files.len() > 1;
        let total = WatchedInterval::total(files.iter().copied()).filter(|_| several);
        let folded = fold_libraries(files);
        let shown = shown.saturating_sub(usize::from(total.is_some()));
        let scrolled = self.scrolled.min(folded.len().saturating_sub(shown));
        let mut rows: Vec<Row> = total.into_iter().map(total_row).collect();
        rows.extend(folded.iter().skip(scrolled).take(shown).map(|file| self.file_row(file)));
        self.scrolled = scrolled;
        rows
    }

    fn file_row(&self, folded: &FoldedFiles<'_>) -> Row {
        let file = folded.file;
        let identity = &file.row.file;
        let (instance, path) = (&identity.instance, &identity.path);
        let band = file.band(&self.profile);
        let figures = match &file.row.interval {
            Interval::Unknown(reason) => Err(reason.to_string()),
            Interval::Known(delta) => Ok(watched_figures(delta, file.row.meaning)),
        };
        let ending = Ending {
            band: band.map_or("", |band| band.name).into(),
            tone: band.map_or(Tone::Neutral, |band| band_tone(&band)),
            usual: self.latencies.usual_ns(instance, path).map_or(String::new(), workload::format_ns),
            sparkline: self.latencies.sparkline(instance, path, SPARK_COLUMNS),
        };
        Row { name: folded.name(), figures, ending }
    }

    pub(crate) fn draw_files(&self, frame: &mut Frame<'_>, area: Rect, rows: &[Row], columns: &Columns) {
        let mut lines = vec![self.titles("file", "syncs/s", columns, true)];
        lines.extend(rows.iter().map(|row| self.line(row, columns)));
        frame.render_widget(Paragraph::new(lines), area);
    }

    /// The titles; the one by which the files are sorted is marked.
    pub(crate) fn titles(&self, name: &str, syncs: &str, columns: &Columns, of_files: bool) -> Line<'static> {
        let sorted = Style::default().remove_modifier(Modifier::DIM).add_modifier(Modifier::BOLD);
        let title = |text: &str, is_sorted: bool| {
            let text = if is_sorted { format!("{SORTED}{text}") } else { text.to_owned() };
            (text, if is_sorted { sorted } else { Style::default() })
        };
        let is = |sort: Sort| of_files && self.sort == sort;
        let (text, style) = title(name, is(Sort::Name));
        let mut spans = vec![Span::styled(format!("{text:<width$}", width = columns.path), style)];
        for (at, width) in columns.figures.iter().enumerate().take(columns.shown()) {
            let text = if at == 4 { syncs } else { TITLES[at] };
            let is_sorted = match at {
                0 => is(Sort::Reads),
                2 => is(Sort::Writes),
                6 => is(Sort::Stall),
                _ => false,
            };
            let (text, style) = title(text, is_sorted);
            spans.push(Span::styled(format!("{text:>width$}", width = width + 1), style));
        }
        if of_files {
            let (band, style) = title("band", is(Sort::Latency));
            spans.push(Span::styled(format!(" {band:<BAND_COLUMNS$}"), style));
            if columns.wide {
                spans.push(Span::raw(format!(" {:>USUAL_COLUMNS$} over time", "usual")));
            }
        }
        Line::from(spans).style(dim())
    }

    /// A line of figures. The name is cut to fit.
    pub(crate) fn line(&self, row: &Row, columns: &Columns) -> Line<'static> {
        let mut text = fitted(&row.name, columns.path);
        let figures = match &row.figures {
            Err(reason) => {
                return Line::from(vec![Span::raw(text), Span::styled(format!(" ? {reason}"), dim())]);
            }
            Ok(figures) => figures,
        };
        for (figure, width) in figures.iter().zip(columns.figures).take(columns.shown()) {
            text.push_str(&format!(" {figure:>width$}"));
        }
        let ending = &row.ending;
        let mut spans = vec![
            Span::raw(text),
            Span::styled(format!(" {:<BAND_COLUMNS$}", ending.band), self.ink(ending.tone)),
        ];
        if columns.wide {
            spans.push(Span::raw(format!(" {:>USUAL_COLUMNS$} {}", ending.usual, ending.sparkline)));
        }
        Line::from(spans)
    }
}

fn total_row(delta: Delta) -> Row {
    Row::new("all files".into(), &Interval::Known(delta))
}

/// A path cut to a number of columns. Its end is kept, which distinguishes files.
fn fitted(path: &str, columns: usize) -> String {
    let length = path.chars().count();
    if length <= columns {
        return format!("{path:<columns$}");
    }
    format!("…{}", path.chars().skip(length + 1 - columns).collect::<String>())
}
