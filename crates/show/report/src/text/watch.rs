use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use super::wrap::wrap;
use crate::watched::{WatchedFile, WatchedInterval};
use crate::{Tone, number};
use filestats::{Band, Counters, Counts, Delta, Figure, Interval, Meaning, Ops, Profile, Reason, Time};

/// Files that are shown.
const FILES_MAX: usize = 20;
const BELOW_MAX: usize = 8;
/// After a time that is shorter than that of the storage.
pub const SHORT_MARK: char = '*';

/// One interval of a source on a screen: the busiest files first.
pub fn watch(interval: &WatchedInterval, profile: &Profile, style: &Style) -> String {
    let elapsed = interval.elapsed_ns.map_or(number::NONE.into(), |ns| number::duration(ns as f64 / 1e9));
    let heading = format!(
        "{} {elapsed} until {}",
        super::wrap::source_heading(&interval.source),
        number::instant(interval.ended_unix_ns)
    );
    let mut lines = vec![style.heading(&super::wrap::clean(&heading))];
    for note in &interval.notes {
        lines.extend(wrap(&format!("note: {note}"), style.columns(), 4));
    }
    let mut files: Vec<&WatchedFile> = interval.files.iter().filter(|file| file.is_active()).collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.stall_ns()));
    let idle = interval.files.len() - files.len();
    let more = files.len().saturating_sub(FILES_MAX);
    files.truncate(FILES_MAX);
    let mut table = figure_table("file", "syncs/s").flexible(0);
    for file in &files {
        table.push(file_cells(file, profile));
    }
    if !files.is_empty() {
        lines.extend(table.lines(style));
    }
    let mut rest = Vec::new();
    if more > 0 {
        rest.push(format!("{more} more files"));
    }
    if idle > 0 {
        rest.push(format!("{idle} without I/O"));
    }
    lines.extend(legend(&files, style));
    if interval.files.is_empty() {
        rest.push("no files yet".into());
    }
    if !rest.is_empty() {
        lines.push(style.paint(Ink::Dim, &format!("  {}", rest.join(", "))));
    }
    lines.extend(below(interval, profile, style));
    lines.extend(devices(interval, style));
    lines.extend(super::waits::waits(&interval.waits, &interval.reconciled, style));
    lines.join("\n") + "\n"
}

/// What marks and unusual units mean, where there are any.
fn legend(files: &[&WatchedFile], style: &Style) -> Vec<String> {
    let any = |is_so: fn(&Meaning) -> bool| files.iter().any(|file| is_so(&file.row.meaning));
    let mut words = Vec::new();
    if any(|meaning| meaning.write_time == Time::ToSubmission || meaning.read_time == Time::ToSubmission) {
        words.push("* timed to the submission only: the storage took longer");
    }
    if any(|meaning| meaning.read_time == Time::Waiting) {
        words.push("* time waited: the read may have begun before");
    }
    if any(|meaning| meaning.counts == Counts::Blocks) {
        words.push("this server counts blocks: several may have been one request");
    }
    words.into_iter().map(|words| style.paint(Ink::Dim, &format!("  {words}"))).collect()
}

fn figure_table(first: &'static str, syncs: &'static str) -> Table {
    let figures = ["reads/s", "ms", "writes/s", "ms", syncs, "ms", "N", "MiB/s"];
    let mut titles = vec![(first, Align::Left)];
    titles.extend(figures.map(|title| (title, Align::Right)));
    titles.push(("", Align::Left));
    Table::new(&titles)
}

/// The part of the I/O that reached the storage.
fn below(interval: &WatchedInterval, profile: &Profile, style: &Style) -> Vec<String> {
    let mut files: Vec<&WatchedFile> = interval.below.iter().filter(|file| file.is_active()).collect();
    if files.is_empty() {
        return Vec::new();
    }
    files.sort_by_key(|file| std::cmp::Reverse(file.stall_ns()));
    let mut table = figure_table("below the page cache", "syncs/s").flexible(0);
    files.iter().take(BELOW_MAX).for_each(|file| table.push(file_cells(file, profile)));
    table.lines(style)
}

fn file_cells(file: &WatchedFile, profile: &Profile) -> Vec<Cell> {
    let path = file.name();
    match &file.row.interval {
        Interval::Unknown(reason) => {
            vec![path.into(), Cell::inked(format!("unknown: {reason}"), Ink::Dim)]
        }
        Interval::Known(delta) => {
            let mut cells = vec![Cell::from(path)];
            cells.extend(watched_figures(delta, file.row.meaning).map(Cell::from));
            let band = file.band(profile);
            let tone = band.map_or(Tone::Neutral, |band| band_tone(&band));
            cells.push(Cell::inked(band.map_or("", |band| band.name), Ink::Tone(tone)));
            cells
        }
    }
}

/// The first two bands are good, those from the fifth on bad.
pub fn band_tone(band: &Band) -> Tone {
    match band.rank {
        0..=1 => Tone::Good,
        2..=3 => Tone::Warning,
        _ => Tone::Bad,
    }
}

/// The mean ms of operations with that meaning of their time.
pub(super) fn timed(ops: &Ops, time: Time) -> String {
    match ops.latency_ns() {
        Figure::Unknown { unknown: Reason::NoOperations } => number::NONE.into(),
        Figure::Unknown { .. } => "?".into(),
        Figure::Known(ns) if time == Time::ToCompletion => number::millis(ns),
        Figure::Known(ns) => format!("{}{SHORT_MARK}", number::millis(ns)),
    }
}

/// Reads a second and their mean ms, the same of writes and syncs, N and MiB/s, as text; "?" is not counted, and a time
/// that is less than what the storage took has [`SHORT_MARK`].
pub fn watched_figures(delta: &Delta, meaning: Meaning) -> [String; 8] {
    let Counters { read, write, sync, .. } = delta.counters;
    let rate = |ops: &Ops| number::rate(delta.per_second(ops));
    let latency = |ops: &Ops| timed(ops, Time::ToCompletion);
    let sync = sync.known();
    let unknown = || String::from("?");
    [
        rate(&read),
        timed(&read, meaning.read_time),
        rate(&write),
        timed(&write, meaning.write_time),
        sync.as_ref().map_or_else(unknown, rate),
        sync.as_ref().map_or_else(unknown, latency),
        delta.outstanding().known().map_or_else(unknown, number::rate),
        number::rate(delta.mib_per_s()),
    ]
}

fn devices(interval: &WatchedInterval, style: &Style) -> Vec<String> {
    if interval.devices.is_empty() {
        return Vec::new();
    }
    let mut table = figure_table("device", "flushes/s");
    for device in &interval.devices {
        let mut cells = vec![Cell::from(device.file.path.clone())];
        match &device.interval {
            Interval::Known(delta) => {
                cells.extend(watched_figures(delta, Meaning::REQUESTS).map(Cell::from));
                cells.push("".into());
            }
            Interval::Unknown(reason) => cells.push(Cell::inked(format!("unknown: {reason}"), Ink::Dim)),
        }
        table.push(cells);
    }
    table.lines(style)
}
