//! The panels above and below the files: devices and waits.

use crate::files::{Columns, Row as FigureRow};
use crate::view::{View, bold, cut, dim};
use filestats::waits::Agreement;
use filestats::{Figure, WaitInterval};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};
use report::{WatchedDevice, WatchedInterval};

const WAITS_MAX: usize = 6;
/// The most classes of waits that are listed as not caused by the disk.
const CLASSES_MAX: usize = 3;

impl View {
    pub(crate) fn device_rows(&self) -> Vec<FigureRow> {
        let row =
            |device: &&WatchedDevice| FigureRow::new(device.row.file.path.clone(), &device.row.interval);
        self.devices().iter().map(row).collect()
    }

    /// A line for each device of which is known what it can give.
    pub(crate) fn device_loads(&self, columns: usize) -> Vec<Line<'static>> {
        let devices = self.devices();
        let several = devices.len() > 1;
        let line = |device: &&WatchedDevice| {
            let load = report::text::device_load(device)?;
            let name = if several { format!("{}: ", device.row.file.path) } else { String::new() };
            Some(Line::from(cut(&format!("{name}{load}"), columns)).style(bold()))
        };
        devices.iter().filter_map(line).collect()
    }

    pub(crate) fn draw_devices(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        rows: &[FigureRow],
        columns: &Columns,
    ) {
        let mut lines = vec![self.titles("device", "flush/s", columns, false)];
        lines.extend(rows.iter().map(|row| self.line(row, columns)));
        lines.extend(self.device_loads(usize::from(area.width)));
        frame.render_widget(Paragraph::new(lines), area);
    }

    /// The devices, each once although several sources have files on it.
    pub(crate) fn devices(&self) -> Vec<&WatchedDevice> {
        let mut devices: Vec<&WatchedDevice> = Vec::new();
        for device in self.glances.iter().flat_map(WatchedInterval::devices_shown) {
            if !devices.iter().any(|known| known.row.file.path == device.row.file.path) {
                devices.push(device);
            }
        }
        devices
    }

    /// The longest waits, longest first.
    pub(crate) fn waits(&self) -> Vec<WaitInterval> {
        let all = self.glances.iter().flat_map(|glance| &glance.waits);
        let mut waits: Vec<WaitInterval> = all.filter(|wait| wait_ns(wait) > 0).cloned().collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait_ns(wait)));
        waits.truncate(WAITS_MAX);
        waits
    }

    /// The classes of waits that the I/O of the files does not explain, in one line each, or two where one is too short.
    pub(crate) fn waits_beyond_the_disk(&self, columns: usize) -> Vec<Line<'static>> {
        let all = self.glances.iter().flat_map(|glance| &glance.reconciled);
        let classes = all.filter(|one| one.agreement == Agreement::NotTheDisk);
        let lines = |sentence: String| match sentence.split_once(": ") {
            Some((what, why)) if sentence.chars().count() > columns => {
                vec![Line::from(format!("{what}:")), Line::from(format!("  {why}"))]
            }
            _ => vec![Line::from(sentence)],
        };
        classes.take(CLASSES_MAX).flat_map(|one| lines(report::text::reconciliation(one))).collect()
    }

    pub(crate) fn draw_waits(&self, frame: &mut Frame<'_>, area: Rect, waits: &[WaitInterval]) {
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
