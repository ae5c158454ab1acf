//! Stored stretches that the tests and the browser look at: an hour of a shop, and a week of it.

use analyze::{Analyzer, Gap, Settings};
use filestats::*;
use report::{AnalysisReport, ChartSubject, HistoryChart, html};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// 2026-11-02, 01:00 UTC.
const BEGIN: u64 = (1_793_577_600 + 3600) * S;
/// Intervals of 15 s.
pub const HOUR: usize = 240;
const DAY: usize = 24 * HOUR;
const WEEK: usize = 7 * DAY;

fn course(intervals: usize) -> TimeSeries {
    let tick = |at: u64| Tick { taken_unix_ns: BEGIN + at * 15 * S, clock_ns: at * 15 * S, complete: None };
    TimeSeries { source: "process:812".into(), ticks: (0..=intervals as u64).map(tick).collect() }
}

fn file(
    path: &str,
    kind: FileKind,
    intervals: usize,
    added: impl Fn(usize) -> Option<Figure<Counters>>,
) -> FileSeries {
    FileSeries {
        file: FileIdentity {
            instance: "pid 812 (postgres)".into(),
            database: Some("shop".into()),
            database_id: None,
            file_id: path.into(),
            kind,
            path: path.into(),
            drive: Some("/var/lib/postgresql".into()),
            handle: None,
            object: None,
        }
        .into(),
        meaning: Meaning::REQUESTS,
        size_bytes: Figure::Known(640 << 20),
        steps: (1..=intervals).filter_map(|at| added(at).map(|added| Step { at, added })).collect(),
        known_ns: (intervals as u64 - 1) * 15 * S,
        unknown_ns: 15 * S,
    }
}

fn ops(count: u64, bytes: u64, ns: u64) -> Ops {
    Ops::timed(count, count * bytes, count * ns)
}

const DATA: &str = "/var/lib/postgresql/18/main/base/16384/16397";
const WAL: &str = "/var/lib/postgresql/18/main/pg_wal/000000010000000000000001";

/// An hour of a shop whose reads are slow for a while, and a restart; a log that keeps its level.
pub fn files() -> [FileSeries; 2] {
    let data = |at| match at {
        100 => Figure::unknown(Reason::Restart),
        120..=167 => Figure::Known(Counters { read: ops(2_400, 8192, 34 * MS), ..Counters::ZERO }),
        at => Figure::Known(Counters { read: ops(300 + at as u64, 8192, 2 * MS), ..Counters::ZERO }),
    };
    let log = |at| match at {
        100 => Figure::unknown(Reason::Restart),
        _ => Figure::Known(Counters {
            write: ops(150, 8192, MS / 10),
            sync: Figure::Known(ops(150, 0, 3 * MS)),
            ..Counters::ZERO
        }),
    };
    [
        file(DATA, FileKind::Data, HOUR, |at| Some(data(at))),
        file(WAL, FileKind::Log, HOUR, |at| Some(log(at))),
    ]
}

/// A week of it: busy by day, a backup each night, an afternoon on which everything is slow, four hours without the
/// recorder, sorts on some days.
fn week() -> Vec<FileSeries> {
    // Any noise that is the same each time.
    let noise = |at: usize, salt: u64| ((at as u64 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 1000;
    let by_day = |at: usize| match (at + HOUR) % DAY / HOUR {
        8..=18 => 10,
        6 | 7 | 19..=21 => 4,
        _ => 1,
    };
    let slow = |at: usize| if (3 * DAY + 13 * HOUR..3 * DAY + 15 * HOUR).contains(&at) { 25 } else { 1 };
    let away = |at: usize| (5 * DAY + 2 * HOUR..5 * DAY + 6 * HOUR).contains(&at);
    let restart = |at: usize| at == 2 * DAY + 17;
    let known = move |at: usize, counters: Counters| match (away(at), restart(at)) {
        (true, _) => Some(Figure::unknown(Reason::GapTooLong)),
        (_, true) => Some(Figure::unknown(Reason::Restart)),
        _ => Some(Figure::Known(counters)),
    };
    let data = |salt: u64| {
        move |at: usize| {
            let reads = by_day(at) * (40 + noise(at, salt) / 20);
            let backup = if (at + HOUR) % DAY < HOUR / 2 { 4_000 } else { 0 };
            let each_ns = (MS / 2 + noise(at, salt + 1) * 900 + by_day(at) * 60_000) * slow(at);
            let write = ops(reads / 4, 8192, each_ns * 2);
            known(at, Counters { read: ops(reads + backup, 8192, each_ns), write, ..Counters::ZERO })
        }
    };
    let log = |at: usize| {
        let commits = by_day(at) * (20 + noise(at, 7) / 40);
        let sync = Figure::Known(ops(commits, 0, (MS + noise(at, 8) * 1_500) * slow(at).min(4)));
        known(at, Counters { write: ops(commits, 4096, 90_000 + noise(at, 9) * 40), sync, ..Counters::ZERO })
    };
    let sorts = |at: usize| {
        let there = at / DAY % 3 == 1 && at % DAY < 4 * HOUR;
        there.then(|| known(at, Counters { write: ops(90, 65_536, 4 * MS), ..Counters::ZERO })).flatten()
    };
    vec![
        file(DATA, FileKind::Data, WEEK, data(11)),
        file("/var/lib/postgresql/18/main/base/16384/16400", FileKind::Data, WEEK, data(23)),
        file(WAL, FileKind::Log, WEEK, log),
        file("/var/lib/postgresql/18/main/base/pgsql_tmp/pgsql_tmp812.0", FileKind::Temp, WEEK, sorts),
    ]
}

fn settings(intervals: usize) -> Settings {
    Settings {
        from_unix_ns: BEGIN,
        until_unix_ns: BEGIN + intervals as u64 * 15 * S,
        service_level: ServiceLevel::OLTP,
        profile: Profile::default(),
        rules: Rules::default(),
    }
}

/// Findings in `intervals` intervals of files.
pub fn analysed(intervals: usize, files: &[FileSeries]) -> AnalysisReport {
    let (course, settings) = (course(intervals), settings(intervals));
    let mut analyzer = Analyzer::new(&course, None, &settings);
    files.iter().for_each(|file| analyzer.add_file(file, None));
    AnalysisReport {
        from_unix_ns: settings.from_unix_ns,
        until_unix_ns: settings.until_unix_ns,
        service_level: settings.service_level,
        profile: settings.profile,
        sources: vec![analyzer.finish()],
        gaps: vec![Gap {
            source: "mysql://monitor@shop/".into(),
            from_unix_ns: BEGIN + 60 * S,
            until_unix_ns: Some(BEGIN + 90 * S),
            reason: "cannot connect: connection refused".into(),
        }],
        version: "0.1.0".into(),
    }
}

/// The charts that `headroom history analyze` draws.
pub fn charts(analysed: &AnalysisReport, intervals: usize, files: &[FileSeries]) -> Vec<HistoryChart> {
    let (course, settings) = (course(intervals), settings(intervals));
    let mut analyzer = Analyzer::new(&course, None, &settings);
    files.iter().for_each(|file| analyzer.add_file(file, None));
    let of_kind = |(kind, steps): (FileKind, Vec<Step>)| {
        HistoryChart::new(0, ChartSubject::Kind(kind), &course, kind, &steps)
    };
    let mut charts: Vec<HistoryChart> = analyzer.kinds().map(of_kind).collect();
    for (source, of) in html::files_worth_a_chart(&analysed.sources, 16) {
        let path = match of {
            ChartSubject::Finding(number) => analysed.sources[source].findings[number].path.as_deref(),
            ChartSubject::Busy(number) => Some(analysed.sources[source].busiest[number].file.path.as_str()),
            ChartSubject::Kind(_) => None,
        };
        let file = files.iter().find(|file| Some(file.file.path.as_str()) == path);
        charts.extend(file.map(|file| HistoryChart::new(source, of, &course, file.file.kind, &file.steps)));
    }
    charts
}

/// Page names and pages.
pub fn pages() -> Vec<(&'static str, String)> {
    let page = |intervals: usize, files: &[FileSeries], command: &str| {
        let analysed = analysed(intervals, files);
        html::analysis(&analysed, &charts(&analysed, intervals, files), command)
    };
    vec![
        ("analysis.html", page(HOUR, &files(), "headroom history analyze --from -1h --html analysis.html")),
        (
            "analysis-good.html",
            page(HOUR, &files()[1..], "headroom history analyze --source process:812 --html good.html"),
        ),
        ("analysis-week.html", page(WEEK, &week(), "headroom history analyze --html week.html")),
    ]
}
