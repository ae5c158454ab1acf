//! The table of files: its order, its columns, and how a line fits into the terminal.

use crate::view::{Sort, View, dim};
use filestats::{Counters, Interval};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use report::text::{band_tone, watched_figures};
use report::{Tone, WatchedFile};

/// The columns after the figures of a line.
#[derive(Default)]
pub(crate) struct Ending {
    band: String,
    tone: Tone,
    usual: String,
    sparkline: String,
}

impl Ending {
    fn titles() -> Ending {
        Ending { band: "band".into(), usual: "usual".into(), sparkline: "course".into(), tone: Tone::Neutral }
    }
}

pub(crate) const TITLES: [&str; 8] = ["reads/s", "ms", "writes/s", "ms", "syncs/s", "ms", "N", "MiB/s"];
const FIGURE_COLUMNS: [usize; 8] = [7, 5, 8, 5, 7, 5, 5, 6];
const BAND_COLUMNS: usize = 10;
const USUAL_COLUMNS: usize = 8;
const SPARK_COLUMNS: usize = 12;
const PATH_COLUMNS_MIN: usize = 8;
/// From this width on all columns are shown.
pub(crate) const WIDE_COLUMNS: u16 = 110;

impl View {
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

    pub(crate) fn draw_files(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let shown = usize::from(area.height.saturating_sub(1));
        let count = self.files().len();
        self.scrolled = self.scrolled.min(count.saturating_sub(shown));
        let wide = area.width >= WIDE_COLUMNS;
        let mut lines =
            vec![self.line(area.width, "file", &TITLES.map(String::from), wide, &Ending::titles())];
        for file in self.files().into_iter().skip(self.scrolled).take(shown) {
            lines.push(self.file_line(file, area.width, wide));
        }
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn file_line(&self, file: &WatchedFile, columns: u16, wide: bool) -> Line<'static> {
        let identity = &file.row.file;
        let (instance, path) = (&identity.instance, &identity.path);
        let delta = match &file.row.interval {
            Interval::Unknown(reason) => {
                let path = fitted(&file.name(), path_columns(columns, wide));
                return Line::from(vec![Span::raw(path), Span::styled(format!(" ? {reason}"), dim())]);
            }
            Interval::Known(delta) => delta,
        };
        let band = file.band(&self.profile);
        let ending = Ending {
            band: band.map_or("", |band| band.name).into(),
            tone: band.map_or(Tone::Neutral, |band| band_tone(&band)),
            usual: self.latencies.usual_ns(instance, path).map_or(String::new(), workload::format_ns),
            sparkline: self.latencies.sparkline(instance, path, SPARK_COLUMNS),
        };
        self.line(columns, &file.name(), &watched_figures(delta, file.row.meaning), wide, &ending)
    }

    /// A line of figures. The name is cut to fit; a narrow terminal has no columns for MiB/s, the usual latency and the
    /// sparkline.
    pub(crate) fn line(
        &self,
        columns: u16,
        name: &str,
        figures: &[String; 8],
        wide: bool,
        ending: &Ending,
    ) -> Line<'static> {
        let mut text = fitted(name, path_columns(columns, wide));
        for (figure, columns) in figures.iter().zip(FIGURE_COLUMNS).take(if wide { 8 } else { 7 }) {
            text.push_str(&format!(" {figure:>columns$}"));
        }
        let mut spans = vec![
            Span::raw(text),
            Span::styled(format!(" {:<BAND_COLUMNS$}", ending.band), self.ink(ending.tone)),
        ];
        if wide {
            spans.push(Span::raw(format!(" {:>USUAL_COLUMNS$} {}", ending.usual, ending.sparkline)));
        }
        let line = Line::from(spans);
        if name == "file" || name == "device" { line.style(dim()) } else { line }
    }
}

fn path_columns(columns: u16, wide: bool) -> usize {
    let figures: usize =
        FIGURE_COLUMNS.iter().take(if wide { 8 } else { 7 }).map(|columns| columns + 1).sum();
    let ending = BAND_COLUMNS + 1 + if wide { USUAL_COLUMNS + SPARK_COLUMNS + 2 } else { 0 };
    usize::from(columns).saturating_sub(figures + ending).max(PATH_COLUMNS_MIN)
}

/// A path cut to a number of columns. Its end is kept, which distinguishes files.
fn fitted(path: &str, columns: usize) -> String {
    let length = path.chars().count();
    if length <= columns {
        return format!("{path:<columns$}");
    }
    format!("…{}", path.chars().skip(length + 1 - columns).collect::<String>())
}
