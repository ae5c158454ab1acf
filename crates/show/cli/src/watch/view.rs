//! The picture of a live view: what is drawn, and what a key changes. Pure: no terminal, no clock.

use super::course::Course;
use filestats::waits::Agreement;
use filestats::{Figure, FileInterval, Interval, Meaning, Profile, WaitInterval};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};
use report::text::{band_tone, watched_figures};
use report::{Tone, WatchedFile, WatchedInterval};

/// What the files are sorted by, the largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Stall,
    Latency,
    Reads,
    Writes,
    Name,
}

/// What a key did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Stay,
    Quit,
}

/// All that is shown.
pub struct View {
    pub glances: Vec<WatchedInterval>,
    pub course: Course,
    pub paused: bool,
    profile: Profile,
    sort: Sort,
    filter: String,
    /// The filter is being written.
    typing: bool,
    help: bool,
    scrolled: usize,
    color: bool,
}

/// A key, as far as the view knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
}

/// What stands behind a line's figures.
#[derive(Default)]
struct Ending {
    band: String,
    tone: Tone,
    usual: String,
    course: String,
}

impl Ending {
    fn titles() -> Ending {
        Ending { band: "band".into(), usual: "usual".into(), course: "course".into(), tone: Tone::Neutral }
    }
}

const TITLES: [&str; 8] = ["reads/s", "ms", "writes/s", "ms", "syncs/s", "ms", "N", "MiB/s"];
const FIGURE_COLUMNS: [usize; 8] = [7, 5, 8, 5, 7, 5, 5, 6];
const BAND_COLUMNS: usize = 10;
const USUAL_COLUMNS: usize = 8;
const SPARK_COLUMNS: usize = 12;
const PATH_COLUMNS_MIN: usize = 8;
/// From so many on there is room for all.
const WIDE_COLUMNS: u16 = 110;
const WAITS_MAX: usize = 6;
/// Classes of waits that are told not to be the disk.
const CLASSES_MAX: usize = 3;
const HELP: [&str; 7] = [
    "s  sort by the next of: stall, latency, reads, writes, name",
    "/  show only files with a text in their path; Enter ends, Esc clears it",
    "p  pause, and go on",
    "up, down, j, k  scroll",
    "usual: the median latency of the intervals before; the line of bars is its course",
    "N: mean I/Os outstanding (stall / elapsed); *: the time ends before the storage is done",
    "q  quit",
];

impl View {
    pub fn new(profile: Profile, color: bool) -> View {
        View {
            glances: Vec::new(),
            course: Course::default(),
            paused: false,
            profile,
            sort: Sort::Stall,
            filter: String::new(),
            typing: false,
            help: false,
            scrolled: 0,
            color,
        }
    }

    /// Shows the next interval.
    pub fn add(&mut self, glances: Vec<WatchedInterval>) {
        glances.iter().for_each(|glance| self.course.add(glance));
        self.glances = glances;
    }

    pub fn press(&mut self, key: Key) -> Answer {
        match (self.typing, key) {
            (true, Key::Char(c)) => self.filter.push(c),
            (true, Key::Backspace) => drop(self.filter.pop()),
            (true, Key::Enter) => self.typing = false,
            (_, Key::Escape) => {
                self.filter.clear();
                (self.typing, self.help) = (false, false);
            }
            (false, Key::Char('q')) => return Answer::Quit,
            (false, Key::Char('/')) => self.typing = true,
            (false, Key::Char('s')) => self.sort = self.sort.next(),
            (false, Key::Char('p')) => self.paused = !self.paused,
            (false, Key::Char('?')) => self.help = !self.help,
            (false, Key::Down | Key::Char('j')) => self.scrolled += 1,
            (false, Key::Up | Key::Char('k')) => self.scrolled = self.scrolled.saturating_sub(1),
            _ => {}
        }
        Answer::Stay
    }

    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let waits = self.waits();
        let elsewhere = self.elsewhere(usize::from(frame.area().width));
        let devices = self.devices().len();
        let notes = self.notes();
        let rows = |count: usize| if count == 0 { 0 } else { count as u16 + 1 };
        let [head, note, files, disks, wait, beside, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(notes.len() as u16),
            Constraint::Min(3),
            Constraint::Length(rows(devices)),
            Constraint::Length(rows(waits.len())),
            Constraint::Length(elsewhere.len() as u16),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(self.heading(), head);
        frame.render_widget(Paragraph::new(notes).style(self.ink(Tone::Warning)), note);
        if self.help {
            frame.render_widget(Paragraph::new(HELP.map(Line::from).to_vec()), files);
        } else {
            self.draw_files(frame, files);
        }
        self.draw_devices(frame, disks);
        self.draw_waits(frame, wait, &waits);
        frame.render_widget(Paragraph::new(elsewhere).style(self.ink(Tone::Warning)), beside);
        frame.render_widget(self.footing(), foot);
    }

    fn heading(&self) -> Paragraph<'static> {
        let sources: Vec<&str> = self.glances.iter().map(|glance| glance.source.as_str()).collect();
        let elapsed = self.glances.iter().find_map(|glance| glance.elapsed_ns);
        let elapsed =
            elapsed.map_or(String::new(), |ns| format!("  last {}", workload::format_ns(ns as f64)));
        let paused = if self.paused { "  paused" } else { "" };
        let text = format!("headroom watch  {}{elapsed}{paused}", sources.join(", "));
        Paragraph::new(text).style(Style::default().add_modifier(Modifier::BOLD))
    }

    fn footing(&self) -> Paragraph<'static> {
        let filter = match (self.typing, self.filter.as_str()) {
            (true, filter) => format!("  files with: {filter}_"),
            (false, "") => String::new(),
            (false, filter) => format!("  files with: {filter}"),
        };
        let text =
            format!("sorted by {}{filter}  s sort  / filter  p pause  ? help  q quit", self.sort.name());
        Paragraph::new(text).style(dim())
    }

    fn notes(&self) -> Vec<Line<'static>> {
        let notes = self.glances.iter().flat_map(|glance| &glance.notes);
        notes.take(3).map(|note| Line::from(format!("note: {note}"))).collect()
    }

    /// The files that pass the filter, in order.
    fn files(&self) -> Vec<&WatchedFile> {
        let all = self.glances.iter().flat_map(|glance| &glance.files);
        let passes = |file: &&WatchedFile| {
            file.is_active() && file.name().to_lowercase().contains(&self.filter.to_lowercase())
        };
        let mut files: Vec<&WatchedFile> = all.filter(passes).collect();
        let count = |file: &WatchedFile, of: fn(&filestats::Counters) -> u64| {
            file.delta().map_or(0, |delta| of(&delta.counters))
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

    fn draw_files(&mut self, frame: &mut Frame<'_>, area: Rect) {
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
            usual: self.course.usual_ns(instance, path).map_or(String::new(), workload::format_ns),
            course: self.course.sparkline(instance, path, SPARK_COLUMNS),
        };
        self.line(columns, &file.name(), &watched_figures(delta, file.row.meaning), wide, &ending)
    }

    /// A line of figures: the name gives way; where there is no room, MiB/s, what is usual and the course are left out.
    fn line(
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
            spans.push(Span::raw(format!(" {:>USUAL_COLUMNS$} {}", ending.usual, ending.course)));
        }
        let line = Line::from(spans);
        if name == "file" || name == "device" { line.style(dim()) } else { line }
    }

    fn draw_devices(&self, frame: &mut Frame<'_>, area: Rect) {
        let wide = area.width >= WIDE_COLUMNS;
        let mut titles = TITLES.map(String::from);
        titles[4] = "flush/s".into();
        let mut lines = vec![self.line(area.width, "device", &titles, wide, &Ending::default())];
        for device in self.devices() {
            lines.push(match &device.interval {
                Interval::Known(delta) => self.line(
                    area.width,
                    &device.file.path,
                    &watched_figures(delta, Meaning::REQUESTS),
                    wide,
                    &Ending::default(),
                ),
                Interval::Unknown(reason) => Line::from(format!("{} ? {reason}", device.file.path)),
            });
        }
        frame.render_widget(Paragraph::new(lines), area);
    }

    /// Each device once, whoever's files lie on it: its figures are everybody's.
    fn devices(&self) -> Vec<&FileInterval> {
        let mut devices: Vec<&FileInterval> = Vec::new();
        for device in self.glances.iter().flat_map(|glance| &glance.devices) {
            if !devices.iter().any(|own| own.file.path == device.file.path) {
                devices.push(device);
            }
        }
        devices
    }

    /// What was waited for, the longest first.
    fn waits(&self) -> Vec<WaitInterval> {
        let all = self.glances.iter().flat_map(|glance| &glance.waits);
        let mut waits: Vec<WaitInterval> = all.filter(|wait| wait_ns(wait) > 0).cloned().collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait_ns(wait)));
        waits.truncate(WAITS_MAX);
        waits
    }

    /// The classes of waits that the files do not account for, a line each, two where it is too long.
    fn elsewhere(&self, columns: usize) -> Vec<Line<'static>> {
        let all = self.glances.iter().flat_map(|glance| &glance.reconciled);
        let elsewhere = all.filter(|one| one.agreement == Agreement::NotTheDisk);
        let lines = |sentence: String| match sentence.split_once(": ") {
            Some((what, why)) if sentence.chars().count() > columns => {
                vec![Line::from(format!("{what}:")), Line::from(format!("  {why}"))]
            }
            _ => vec![Line::from(sentence)],
        };
        elsewhere.take(CLASSES_MAX).flat_map(|one| lines(report::text::reconciliation(one))).collect()
    }

    fn draw_waits(&self, frame: &mut Frame<'_>, area: Rect, waits: &[WaitInterval]) {
        let rows = waits.iter().filter_map(|wait| {
            let delta = wait.interval.as_known()?;
            let count = delta.count.known().map_or("?".into(), workload::format_count);
            let mean = delta.mean_ns().known().map_or("?".into(), workload::format_ns);
            let waited = delta.wait_ns.known().map_or("?".into(), |ns| workload::format_ns(ns as f64));
            let sessions = delta.sessions().known().map_or("?".into(), |sessions| format!("{sessions:.2}"));
            Some(Row::new([wait.event.clone(), wait.class.to_string(), count, mean, waited, sessions]))
        });
        let widths = [
            Constraint::Min(20),
            Constraint::Length(19),
            Constraint::Length(9),
            Constraint::Length(8),
            Constraint::Length(8),
            Constraint::Length(8),
        ];
        let titles = ["wait", "for", "waits", "mean", "all", "sessions"];
        frame.render_widget(Table::new(rows, widths).column_spacing(1).header(header(&titles)), area);
    }

    fn ink(&self, tone: Tone) -> Style {
        match tone {
            _ if !self.color => Style::default(),
            Tone::Good => Style::default().fg(Color::Green),
            Tone::Warning => Style::default().fg(Color::Yellow),
            Tone::Bad => Style::default().fg(Color::Red),
            Tone::Neutral => Style::default(),
        }
    }
}

impl Sort {
    fn next(self) -> Sort {
        match self {
            Sort::Stall => Sort::Latency,
            Sort::Latency => Sort::Reads,
            Sort::Reads => Sort::Writes,
            Sort::Writes => Sort::Name,
            Sort::Name => Sort::Stall,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Sort::Stall => "stall",
            Sort::Latency => "latency",
            Sort::Reads => "reads",
            Sort::Writes => "writes",
            Sort::Name => "name",
        }
    }
}

fn wait_ns(wait: &WaitInterval) -> u64 {
    match wait.interval {
        Figure::Known(delta) => delta.wait_ns.known().unwrap_or(0),
        Figure::Unknown { .. } => 0,
    }
}

fn header(titles: &[&'static str]) -> Row<'static> {
    Row::new(titles.iter().copied()).style(dim())
}

fn dim() -> Style {
    Style::default().add_modifier(Modifier::DIM)
}

fn path_columns(columns: u16, wide: bool) -> usize {
    let figures: usize =
        FIGURE_COLUMNS.iter().take(if wide { 8 } else { 7 }).map(|columns| columns + 1).sum();
    let ending = BAND_COLUMNS + 1 + if wide { USUAL_COLUMNS + SPARK_COLUMNS + 2 } else { 0 };
    usize::from(columns).saturating_sub(figures + ending).max(PATH_COLUMNS_MIN)
}

/// A path in that many columns: its end tells files apart.
fn fitted(path: &str, columns: usize) -> String {
    let length = path.chars().count();
    if length <= columns {
        return format!("{path:<columns$}");
    }
    format!("…{}", path.chars().skip(length + 1 - columns).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::waits::{Reconciled, WaitClass, WaitDelta};
    use filestats::{Counters, Delta, FileIdentity, FileKind, Ops, Reason};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    const MS: u64 = 1_000_000;

    fn file(path: &str, interval: Interval) -> WatchedFile {
        let file = FileIdentity {
            instance: "engine".into(),
            database: None,
            database_id: None,
            file_id: path.into(),
            kind: FileKind::Data,
            path: path.into(),
            drive: None,
            handle: None,
            object: None,
        };
        WatchedFile {
            row: FileInterval { file, meaning: Meaning::REQUESTS, ended_unix_ns: 0, interval },
            size_bytes: Figure::Known(1 << 20),
        }
    }

    fn reads(count: u64, each_ms: u64) -> Interval {
        let read = Ops::timed(count, count * 8192, count * each_ms * MS);
        let counters = Counters { read, ..Counters::ZERO };
        Interval::Known(Delta { elapsed_ns: 1000 * MS, counters, latencies: None })
    }

    fn glance(files: Vec<WatchedFile>) -> WatchedInterval {
        let delta =
            WaitDelta { elapsed_ns: 1000 * MS, count: Figure::Known(4), wait_ns: Figure::Known(800 * MS) };
        WatchedInterval {
            source: "sqlite:/data/shop.db".into(),
            ended_unix_ns: 0,
            elapsed_ns: Some(1000 * MS),
            files,
            below: vec![],
            devices: vec![file("/dev/sda", reads(50, 2)).row],
            waits: vec![WaitInterval {
                instance: "engine".into(),
                event: "DataFileRead".into(),
                class: WaitClass::DataRead,
                interval: Figure::Known(delta),
            }],
            reconciled: vec![Reconciled {
                class: WaitClass::DataRead,
                wait_ns: Figure::Known(800 * MS),
                stall_ns: Figure::Known(3 * MS),
                agreement: Agreement::NotTheDisk,
            }],
            notes: vec!["timing is off".into()],
        }
    }

    fn two_files() -> WatchedInterval {
        let restarted = file("/data/log-file.wal", Interval::Unknown(Reason::Restart));
        glance(vec![file("/data/quiet.db", reads(3, 1)), file("/data/slow.db", reads(100, 30)), restarted])
    }

    fn picture(view: &mut View, columns: u16, rows: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |row| (0..columns).map(|column| buffer[(column, row)].symbol()).collect::<String>();
        (0..rows).map(|row| line(row).trim_end().to_owned()).collect()
    }

    fn view_of(glance: WatchedInterval) -> View {
        let mut view = View::new(Profile::default(), true);
        view.add(vec![glance]);
        view
    }

    #[test]
    fn a_device_below_the_files_of_two_sources_is_shown_once() {
        let mut view = View::new(Profile::default(), true);
        view.add(vec![two_files(), two_files()]);
        let lines = picture(&mut view, 80, 24);
        assert_eq!(lines.iter().filter(|line| line.contains("/dev/sda")).count(), 1, "{lines:#?}");
    }

    #[test]
    fn eighty_columns_hold_the_figures_the_bands_and_the_reasons() {
        let lines = picture(&mut view_of(two_files()), 80, 24);
        let all = lines.join("\n");
        let line = |what: &str| lines.iter().find(|line| line.contains(what)).expect(&all);
        assert!(line("slow.db").contains(" 100") && line("slow.db").contains(" 30 "), "{all}");
        assert!(line("slow.db").ends_with("bad"), "{all}");
        assert!(line("quiet.db").ends_with("very good"), "{all}");
        assert!(line("log-file").contains("? the engine restarted"), "{all}");
        assert!(line("/dev/sda").contains(" 50"), "{all}");
        assert!(
            line("DataFileRead").contains("data read") && line("DataFileRead").ends_with("0.80"),
            "{all}"
        );
        assert!(line("DataFileRead").contains(" 4 ") && line("DataFileRead").contains(" 200 ms"), "{all}");
        assert_eq!(line("not the disk"), "the waits for data read are not the disk:");
        assert_eq!(line("its files took"), "  sessions waited 800 ms, its files took 3.00 ms");
        assert!(all.contains("note: timing is off") && all.contains("q quit"), "{all}");
    }

    #[test]
    fn keys_sort_filter_and_end() {
        let mut view = view_of(two_files());
        let order = |view: &View| -> Vec<String> {
            view.files().iter().map(|file| file.row.file.path.clone()).collect()
        };
        assert_eq!(order(&view)[0], "/data/slow.db");
        for _ in 0..4 {
            view.press(Key::Char('s'));
        }
        assert_eq!(order(&view)[0], "/data/log-file.wal", "by name");
        for c in "/QUIETq".chars() {
            view.press(Key::Char(c));
        }
        view.press(Key::Backspace);
        view.press(Key::Enter);
        assert_eq!(order(&view), ["/data/quiet.db"]);
        view.press(Key::Escape);
        assert_eq!(order(&view).len(), 3);
        assert_eq!(view.press(Key::Char('q')), Answer::Quit);
    }

    #[test]
    fn what_is_usual_is_the_median_of_the_intervals_before() {
        let mut view = View::new(Profile::default(), false);
        for each_ms in [2, 2, 3, 2, 2, 2, 40] {
            view.add(vec![glance(vec![file("/data/shop.db", reads(10, each_ms))])]);
        }
        assert_eq!(view.course.usual_ns("engine", "/data/shop.db"), Some(2e6));
        let lines = picture(&mut view, 132, 20);
        let line = lines.iter().find(|line| line.starts_with("/data/shop.db")).unwrap();
        assert!(line.contains("2.00 ms") && line.ends_with("▁▁▁▁▁▁█"), "{line}");
    }

    #[test]
    fn nothing_is_too_small_or_too_strange_to_be_drawn() {
        for (columns, rows) in [(1, 1), (20, 3), (80, 5), (300, 80)] {
            let mut view = view_of(two_files());
            picture(&mut view, columns, rows);
            view.press(Key::Char('?'));
            view.press(Key::Down);
            picture(&mut view, columns, rows);
        }
    }
}
