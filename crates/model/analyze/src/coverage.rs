//! How much of a stretch is known at all: gaps, epochs, unknown intervals.

use crate::analyzer::SourceCase;
use crate::finding::{Span, at, stretches};
use crate::limits::{HOLE, KNOWN_SHARE};
use crate::{Finding, FindingKind, Settings};
use filestats::{Reason, TimeSeries};
use findings::{Weight, words};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A time in which a recorded source gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The source; as the recorder was told, where it never gave anything.
    pub source: String,
    /// When it began.
    pub from_unix_ns: u64,
    /// When it ended; `None` while it lasts, or where the recorder ended before.
    pub until_unix_ns: Option<u64>,
    /// What was said at the first try.
    pub reason: String,
}

/// What is known of a stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// What was asked for.
    pub asked_from_unix_ns: u64,
    /// Its end.
    pub asked_until_unix_ns: u64,
    /// The first capture in it; `None` without any.
    pub first_unix_ns: Option<u64>,
    /// The last one.
    pub last_unix_ns: Option<u64>,
    /// Captures.
    pub captures: usize,
    /// The usual time between two; `None` below two captures.
    pub interval_ns: Option<u64>,
    /// Of what was asked for, between the first capture and the last.
    pub captured_share: f64,
    /// Of the time of all files between captures, that which is known; `None` without files.
    pub known_share: Option<f64>,
    /// Files seen.
    pub files: usize,
    /// Of those, files that did anything.
    pub files_used: usize,
    /// Of those, files whose reads, writes or syncs are not (or not all) timed to their completion.
    pub files_untimed: usize,
    /// Of those, files whose size nobody told.
    pub files_unsized: usize,
    /// Intervals in which something of a file is unknown, by reason.
    pub unknown: BTreeMap<Reason, Unknown>,
    /// Recorded gaps of this source.
    pub gaps: Vec<Gap>,
}

/// Intervals that are unknown for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// Intervals.
    pub intervals: usize,
    /// Files' intervals: several files may share one.
    pub file_intervals: usize,
    /// The first of them.
    pub when: Vec<Span>,
}

impl Coverage {
    pub(crate) fn of(course: &TimeSeries, settings: &Settings) -> Coverage {
        let mut lengths: Vec<u64> = (1..course.ticks.len()).map(|at| course.wall_ns(at)).collect();
        lengths.sort_unstable();
        let first = course.ticks.first().map(|tick| tick.taken_unix_ns);
        let last = course.ticks.last().map(|tick| tick.taken_unix_ns);
        let captured = last.unwrap_or(0).saturating_sub(first.unwrap_or(0));
        let asked = settings.until_unix_ns.saturating_sub(settings.from_unix_ns);
        Coverage {
            asked_from_unix_ns: settings.from_unix_ns,
            asked_until_unix_ns: settings.until_unix_ns,
            first_unix_ns: first,
            last_unix_ns: last,
            captures: course.ticks.len(),
            interval_ns: lengths.get(lengths.len() / 2).copied(),
            captured_share: (captured as f64 / asked.max(1) as f64).min(1.0),
            ..Coverage::default()
        }
    }
}

/// Intervals far longer than usual, and recorded gaps with their reasons.
pub(crate) fn holes(case: &SourceCase) -> Vec<Finding> {
    let coverage = case.coverage;
    let Some(usual_ns) = coverage.interval_ns.filter(|usual| *usual > 0) else { return Vec::new() };
    let long = |at: &usize| case.course.wall_ns(*at) >= HOLE * usual_ns;
    let spans: Vec<Span> = (1..case.course.ticks.len())
        .filter(long)
        .map(|at| case.course.span_unix_ns(at))
        .map(|(from_unix_ns, until_unix_ns)| Span { from_unix_ns, until_unix_ns })
        .collect();
    let mut findings = Vec::new();
    if let Some(longest) = spans.iter().max_by_key(|span| span.length_ns()) {
        let all = crate::case::sum(spans.iter().map(Span::length_ns));
        let mut text = format!(
            "nothing was recorded for {} in {}, the longest from {} for {} ({} is usual between captures); each of them is \
             one interval, whose means hide what went on in it",
            words::length(all as f64),
            stretches(spans.len()),
            at(longest.from_unix_ns),
            words::length(longest.length_ns() as f64),
            words::length(usual_ns as f64),
        );
        if let Some(gap) = coverage.gaps.iter().find(|gap| gap.from_unix_ns <= longest.until_unix_ns) {
            text.push_str(&format!("; the recorder says: {}", gap.reason));
        }
        findings.push(
            Finding::new(FindingKind::Hole, Weight::Note, text)
                .fact("time", all as f64, "ns")
                .when(spans)
                .next("the recorder's log, and whether the source was there (headroom doctor)"),
        );
    }
    if coverage.known_share.is_some_and(|known| known < KNOWN_SHARE) {
        let known = coverage.known_share.unwrap_or(0.0);
        let text =
            format!("only {} of the files' time is known; nothing is said of the rest", words::share(known));
        findings.push(
            Finding::new(FindingKind::Hole, Weight::Note, text)
                .fact("known", known, "share")
                .next("the reasons listed with it: restarts, resets, files that come and go"),
        );
    }
    findings
}

/// Counters of ours, in the kernel: they begin with the program that reads them.
fn is_counted_by_us(case: &SourceCase) -> bool {
    case.course.source.starts_with("process:")
}

/// Where counters began anew.
pub(crate) fn ended_epochs(case: &SourceCase) -> Vec<Finding> {
    let ended = case.coverage.unknown.iter().filter(|(reason, _)| {
        // Files come and go all the time; an untimed figure is told where it matters.
        !matches!(reason, Reason::FirstSight | Reason::Gone | Reason::NoOperations | Reason::NotCounted)
    });
    ended
        .map(|(reason, unknown)| {
            let text = format!(
                "{reason}: {} not known because of it, the first of them until {}",
                match unknown.intervals {
                    1 => "1 interval is".to_owned(),
                    many => format!("{many} intervals are"),
                },
                at(unknown.when.first().map_or(0, |span| span.until_unix_ns)),
            );
            let mut finding = Finding::new(FindingKind::Epoch, Weight::Note, text)
                .fact("intervals", unknown.intervals as f64, "intervals")
                .fact("files' intervals", unknown.file_intervals as f64, "intervals")
                .when(unknown.when.clone());
            finding.stretches = unknown.intervals;
            match reason {
                Reason::Restart if is_counted_by_us(case) => finding
                    .next("which of the two it was: the process, or Headroom, with which this source begins to count anew"),
                Reason::Restart => finding.next("why it restarted, if nobody meant it to"),
                Reason::TimingOff => finding.next("headroom doctor, which says how to switch timing on"),
                Reason::Lost => finding.next("fewer sources or files, where events are lost"),
                _ => finding,
            }
        })
        .collect()
}
