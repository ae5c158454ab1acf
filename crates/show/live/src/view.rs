//! The state of the live view, its keys, and the layout of its panels.

use crate::latency_history::LatencyHistory;
use filestats::Profile;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use report::{Tone, WatchedInterval};

/// The order of the files, largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Stall,
    Latency,
    Reads,
    Writes,
    Name,
}

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The view goes on.
    Stay,
    /// The user wants to quit.
    Quit,
}

/// The state of the live view.
pub struct View {
    pub(crate) glances: Vec<WatchedInterval>,
    pub(crate) latencies: LatencyHistory,
    /// The picture is paused.
    pub paused: bool,
    pub(crate) profile: Profile,
    pub(crate) sort: Sort,
    pub(crate) filter: String,
    /// The user is typing the filter.
    typing: bool,
    help: bool,
    pub(crate) scrolled: usize,
    color: bool,
}

/// The keys that the view knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
}

const HELP: [&str; 8] = [
    "s  sort by the next of: stall, latency, reads, writes, name",
    "/  show only files with a text in their path; Enter ends, Esc clears it",
    "p  pause, and go on",
    "up, down, j, k  scroll",
    "usual: the median latency of the intervals before; the bars are the latency over time",
    "N: mean I/Os outstanding (stall / elapsed); *: the time ends before the storage is done",
    "U: share of the measured storage in use; expected: what the measurement gives at this load",
    "q  quit",
];

impl View {
    /// An empty view.
    pub fn new(profile: Profile, color: bool) -> View {
        View {
            glances: Vec::new(),
            latencies: LatencyHistory::default(),
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
        glances.iter().for_each(|glance| self.latencies.add(glance));
        self.glances = glances;
    }

    /// Handles a key.
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

    /// Draws the whole view.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let waits = self.waits();
        let beyond = self.waits_beyond_the_disk(usize::from(frame.area().width));
        let width = frame.area().width;
        let mut devices = self.device_rows();
        let loads = self.device_loads(usize::from(width)).len();
        let notes = self.notes(usize::from(width));
        let rows = |count: usize| if count == 0 { 0 } else { count as u16 + 1 };
        let [head, note, disks, files, wait, beside, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(notes.len() as u16),
            Constraint::Length(rows(devices.len() + loads)),
            Constraint::Min(3),
            Constraint::Length(rows(waits.len())),
            Constraint::Length(beyond.len() as u16),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let mut shown = self.file_rows(usize::from(files.height.saturating_sub(1)));
        let columns = View::fit(width, &mut [&mut devices[..], &mut shown[..]]);
        frame.render_widget(self.heading(usize::from(width)), head);
        frame.render_widget(Paragraph::new(notes).style(self.ink(Tone::Warning)), note);
        if self.help {
            frame.render_widget(Paragraph::new(HELP.map(Line::from).to_vec()), files);
        } else {
            self.draw_files(frame, files, &shown, &columns);
        }
        if !devices.is_empty() {
            self.draw_devices(frame, disks, &devices, &columns);
        }
        self.draw_waits(frame, wait, &waits);
        frame.render_widget(Paragraph::new(beyond).style(self.ink(Tone::Warning)), beside);
        frame.render_widget(self.footing(), foot);
    }

    /// The sources and the length of the interval at the left, when it ended at the right.
    fn heading(&self, columns: usize) -> Paragraph<'static> {
        let sources: Vec<&str> = self.glances.iter().map(|glance| glance.source.as_str()).collect();
        let elapsed = self.glances.iter().find_map(|glance| glance.elapsed_ns);
        let elapsed =
            elapsed.map_or(String::new(), |ns| format!("  last {}", workload::format_ns(ns as f64)));
        let paused = if self.paused { "  paused" } else { "" };
        let ended = self.glances.iter().map(|glance| glance.ended_unix_ns).max().filter(|ended| *ended > 0);
        let clock =
            ended.map_or(String::new(), |ended| format!("  {} UTC", report::text::time_of_day(ended)));
        let left = columns.saturating_sub(clock.chars().count());
        let text = cut(&format!("headroom watch  {}{elapsed}{paused}", sources.join(", ")), left);
        Paragraph::new(format!("{text:<left$}{clock}")).style(bold())
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

    fn notes(&self, columns: usize) -> Vec<Line<'static>> {
        let notes = self.glances.iter().flat_map(|glance| &glance.notes);
        notes.take(3).map(|note| Line::from(cut(&format!("note: {note}"), columns))).collect()
    }

    pub(crate) fn ink(&self, tone: Tone) -> Style {
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
    /// In the order of the key, with their names.
    const ALL: [(Sort, &'static str); 5] = [
        (Sort::Stall, "stall"),
        (Sort::Latency, "latency"),
        (Sort::Reads, "reads"),
        (Sort::Writes, "writes"),
        (Sort::Name, "name"),
    ];

    fn next(self) -> Sort {
        let at = Sort::ALL.iter().position(|(sort, _)| *sort == self).unwrap_or_default();
        Sort::ALL[(at + 1) % Sort::ALL.len()].0
    }

    fn name(self) -> &'static str {
        Sort::ALL.iter().find(|(sort, _)| *sort == self).map_or("", |(_, name)| name)
    }
}

pub(crate) fn bold() -> Style {
    Style::default().add_modifier(Modifier::BOLD)
}

/// A text cut at its end, with an ellipsis.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

pub(crate) fn dim() -> Style {
    Style::default().add_modifier(Modifier::DIM)
}

#[cfg(test)]
mod tests;
