use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use super::wrap::{clip, wrap};
use crate::watched::{FoldedFiles, WatchedDevice, WatchedFile, WatchedInterval, fold_libraries};
use crate::{Tone, number};
use filestats::{Band, Counters, Counts, Delta, Figure, Interval, Meaning, Ops, Profile, Reason, Time};

/// Files that are shown.
const FILES_MAX: usize = 20;
const BELOW_MAX: usize = 8;
/// After a time that is shorter than that of the storage.
pub const SHORT_MARK: char = '*';

/// One interval of a source on a screen: the devices, then the busiest files.
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
    lines.extend(devices(interval, style));
    lines.extend(files(interval, profile, style));
    lines.extend(below(interval, profile, style));
    lines.extend(super::waits::waits(&interval.waits, &interval.reconciled, style));
    lines.join("\n") + "\n"
}

fn files(interval: &WatchedInterval, profile: &Profile, style: &Style) -> Vec<String> {
    let mut files: Vec<&WatchedFile> = interval.files.iter().filter(|file| file.is_active()).collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.stall_ns()));
    let idle = interval.files.len() - files.len();
    let legend = legend(&files, style);
    let total = WatchedInterval::total(files.iter().copied()).filter(|_| files.len() > 1);
    let mut folded = fold_libraries(files);
    let more = folded.len().saturating_sub(FILES_MAX);
    folded.truncate(FILES_MAX);
    let mut rows: Vec<Row> = folded.iter().map(|file| Row::from_file(file, profile)).collect();
    let all = total.map(|delta| Row::new("all files".into(), watched_figures(&delta, Meaning::REQUESTS)));
    rows.splice(0..0, all);
    let mut lines = if rows.is_empty() { Vec::new() } else { table("file", "syncs/s", rows).lines(style) };
    let mut rest = Vec::new();
    if more > 0 {
        rest.push(format!("{more} more files"));
    }
    if idle > 0 {
        rest.push(format!("{idle} without I/O"));
    }
    lines.extend(legend);
    if interval.files.is_empty() && interval.devices.is_empty() {
        rest.push("no files yet".into());
    }
    if !rest.is_empty() {
        lines.push(style.paint(Ink::Dim, &format!("  {}", rest.join(", "))));
    }
    lines
}

/// A row of a file or device.
struct Row {
    name: String,
    /// The figures, or why there are none.
    figures: Result<[String; 8], Reason>,
    band: Option<Band>,
}

impl Row {
    fn new(name: String, figures: [String; 8]) -> Row {
        Row { name, figures: Ok(figures), band: None }
    }

    fn from_file(folded: &FoldedFiles<'_>, profile: &Profile) -> Row {
        let row = &folded.file.row;
        let figures = match &row.interval {
            Interval::Unknown(reason) => Err(*reason),
            Interval::Known(delta) => Ok(watched_figures(delta, row.meaning)),
        };
        Row { name: folded.name(), figures, band: folded.file.band(profile) }
    }
}

/// A table whose figures stand under each other at their decimal points.
fn table(first: &'static str, syncs: &'static str, mut rows: Vec<Row>) -> Table {
    align_decimals(rows.iter_mut().filter_map(|row| row.figures.as_mut().ok()));
    let figures = ["reads/s", "ms", "writes/s", "ms", syncs, "ms", "N", "MiB/s"];
    let mut titles = vec![(first, Align::Left)];
    titles.extend(figures.map(|title| (title, Align::Right)));
    titles.push(("", Align::Left));
    let mut table = Table::new(&titles).flexible(0);
    for row in rows {
        let mut cells = vec![Cell::from(row.name)];
        match row.figures {
            Err(reason) => cells.push(Cell::inked(format!("unknown: {reason}"), Ink::Dim)),
            Ok(figures) => {
                let tone = row.band.map_or(Tone::Neutral, |band| band_tone(&band));
                cells.extend(figures.map(Cell::from));
                cells.push(Cell::inked(row.band.map_or("", |band| band.name), Ink::Tone(tone)));
            }
        }
        table.push(cells);
    }
    table
}

/// Fills each column of figures at the right, so that its decimal points stand under each other.
pub fn align_decimals<'a>(rows: impl Iterator<Item = &'a mut [String; 8]>) {
    let mut rows: Vec<&mut [String; 8]> = rows.collect();
    for column in 0..8 {
        let fraction = |text: &str| text.find('.').map_or(0, |point| text[point..].chars().count());
        let most = rows.iter().map(|row| fraction(&row[column])).max().unwrap_or(0);
        for row in &mut rows {
            let missing = most - fraction(&row[column]);
            row[column].extend(std::iter::repeat_n(' ', missing));
        }
    }
}

/// "09:14:03", in UTC.
pub fn time_of_day(unix_ns: u64) -> String {
    number::time_of_day(unix_ns, false)
}

/// The meaning of marks and unusual units, where there are any.
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

/// The part of the I/O that reached the storage.
fn below(interval: &WatchedInterval, profile: &Profile, style: &Style) -> Vec<String> {
    let mut files: Vec<&WatchedFile> = interval.below.iter().filter(|file| file.is_active()).collect();
    if files.is_empty() {
        return Vec::new();
    }
    files.sort_by_key(|file| std::cmp::Reverse(file.stall_ns()));
    files.truncate(BELOW_MAX);
    let rows =
        files.iter().map(|&file| Row::from_file(&FoldedFiles { file, others: 0, process: None }, profile));
    table("below the page cache", "syncs/s", rows.collect()).lines(style)
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
        Figure::Unknown { unknown: Reason::BelowResolution } => number::BELOW_MILLISECOND.into(),
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
    let shown: Vec<&WatchedDevice> = interval.devices_shown().collect();
    if shown.is_empty() {
        let is_idle = !interval.devices.is_empty();
        return is_idle.then(|| style.paint(Ink::Dim, "  no device did I/O")).into_iter().collect();
    }
    let row = |device: &&WatchedDevice| Row {
        name: device.row.file.path.clone(),
        figures: match &device.row.interval {
            Interval::Known(delta) => Ok(watched_figures(delta, Meaning::REQUESTS)),
            Interval::Unknown(reason) => Err(*reason),
        },
        band: None,
    };
    let mut lines = table("device", "flushes/s", shown.iter().map(row).collect()).lines(style);
    let several = shown.len() > 1;
    for device in shown {
        let name =
            if several { format!("{}: ", super::wrap::clean(&device.row.file.path)) } else { String::new() };
        let load = device_load(device).map(|load| clip(&format!("  {name}{load}"), style.columns()));
        lines.extend(load.map(|line| style.paint(Ink::Bold, &line)));
    }
    lines
}

/// "U 42 %, headroom 2.38 x, expected: reads 280 us, writes 850 us"; `None` where the capability is not known.
pub fn device_load(device: &WatchedDevice) -> Option<String> {
    let load = device.load?;
    let or_dash = |figure: Option<f64>, write: fn(f64) -> String| figure.map_or(number::NONE.into(), write);
    let expected = [("reads", load.read_expected_ns), ("writes", load.write_expected_ns)];
    let expected: Vec<String> =
        expected.iter().filter_map(|(what, ns)| Some(format!("{what} {}", number::time((*ns)?)))).collect();
    let expected =
        if expected.is_empty() { String::new() } else { format!(", expected: {}", expected.join(", ")) };
    Some(format!(
        "U {}, headroom {}{expected}",
        or_dash(load.utilisation, number::share),
        or_dash(load.headroom, number::times)
    ))
}
