//! Courses in a line.

use analyze::*;
use filestats::*;

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000 * MS;
pub const MIN: u64 = 60 * S;
pub const HOUR: u64 = 60 * MIN;
/// 2026-11-02, 00:00 UTC.
pub const BEGIN: u64 = 1_793_577_600 * S;

/// Captures so far apart, from [`BEGIN`] on.
pub fn course(intervals: usize, every_ns: u64) -> TimeSeries {
    course_from(BEGIN, intervals, every_ns)
}

pub fn course_from(begin_unix_ns: u64, intervals: usize, every_ns: u64) -> TimeSeries {
    let tick = |at: usize| Tick {
        taken_unix_ns: begin_unix_ns + at as u64 * every_ns,
        clock_ns: at as u64 * every_ns,
        complete: None,
    };
    TimeSeries { source: "engine:1".into(), ticks: (0..=intervals).map(tick).collect() }
}

/// A data file of 1 GiB that did this in those intervals, and nothing in all others.
pub fn file(
    path: &str,
    course: &TimeSeries,
    added: impl IntoIterator<Item = (usize, Counters)>,
) -> FileSeries {
    let steps: Vec<Step> =
        added.into_iter().map(|(at, added)| Step { at, added: Figure::Known(added) }).collect();
    let last = course.ticks.last().unwrap().clock_ns - course.ticks[0].clock_ns;
    FileSeries {
        file: FileIdentity {
            instance: "engine".into(),
            database: None,
            database_id: None,
            file_id: path.into(),
            kind: FileKind::Data,
            path: path.into(),
            drive: None,
            handle: None,
            object: None,
        }
        .into(),
        meaning: Meaning::REQUESTS,
        size_bytes: Figure::Known(1 << 30),
        steps,
        known_ns: last,
        unknown_ns: 0,
    }
}

pub fn log(mut file: FileSeries) -> FileSeries {
    std::sync::Arc::make_mut(&mut file.file).kind = FileKind::Log;
    file
}

pub fn sized(mut file: FileSeries, size_bytes: Figure<u64>) -> FileSeries {
    file.size_bytes = size_bytes;
    file
}

/// `count` operations of that size, each of that time.
pub fn ops(count: u64, bytes_each: u64, ns_each: u64) -> Ops {
    Ops::timed(count, count * bytes_each, count * ns_each)
}

pub fn reads(count: u64, bytes_each: u64, ns_each: u64) -> Counters {
    Counters { read: ops(count, bytes_each, ns_each), ..Counters::ZERO }
}

pub fn writes(count: u64, bytes_each: u64, ns_each: u64) -> Counters {
    Counters { write: ops(count, bytes_each, ns_each), ..Counters::ZERO }
}

pub fn with_syncs(counters: Counters, count: u64, ns_each: u64) -> Counters {
    Counters { sync: Figure::Known(ops(count, 0, ns_each)), ..counters }
}

pub fn settings(course: &TimeSeries) -> Settings {
    Settings {
        from_unix_ns: course.ticks[0].taken_unix_ns,
        until_unix_ns: course.ticks.last().unwrap().taken_unix_ns,
        service_level: ServiceLevel::OLTP,
        profile: Profile::default(),
        rules: Rules::default(),
    }
}

pub fn analysis(course: &TimeSeries, files: &[FileSeries]) -> Analysis {
    with_waits(course, files, &[])
}

pub fn with_waits(course: &TimeSeries, files: &[FileSeries], waits: &[WaitSeries]) -> Analysis {
    let settings = settings(course);
    let mut analyzer = Analyzer::new(course, None, &settings);
    files.iter().for_each(|file| analyzer.add_file(file, None));
    analyzer.add_waits(waits);
    analyzer.finish()
}

pub fn find(analysis: &Analysis, kind: FindingKind) -> Option<Finding> {
    analysis.findings.iter().find(|finding| finding.kind == kind).cloned()
}

#[track_caller]
pub fn found(analysis: &Analysis, kind: FindingKind) -> Finding {
    find(analysis, kind).unwrap_or_else(|| panic!("no {kind:?} in {:#?}", analysis.findings))
}

#[track_caller]
pub fn fact(finding: &Finding, what: &str) -> f64 {
    let fact = finding.facts.iter().find(|fact| fact.what == what);
    fact.unwrap_or_else(|| panic!("no '{what}' in {finding:#?}")).value
}
