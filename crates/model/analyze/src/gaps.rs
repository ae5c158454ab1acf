//! Times without captures, and counters that started from zero again.

use crate::finding::{Span, at, stretches};
use crate::limits::{GAP, KNOWN_SHARE};
use crate::source_case::SourceCase;
use crate::{Finding, FindingKind};
use filestats::Reason;
use findings::{Weight, words};
use workload::Unit;

/// Intervals far longer than usual, and recorded gaps with their reasons.
pub(crate) fn gaps(case: &SourceCase) -> Vec<Finding> {
    let coverage = &case.coverage;
    let Some(usual_ns) = coverage.interval_ns.filter(|usual| *usual > 0) else { return Vec::new() };
    let long = |at: &usize| case.series.wall_ns(*at) >= GAP * usual_ns;
    let spans: Vec<Span> =
        (1..case.series.ticks.len()).filter(long).map(|at| Span::of_ticks(case.series, at, at)).collect();
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
            Finding::new(FindingKind::Gap, Weight::Note, text)
                .fact("time", all as f64, Unit::Ns)
                .when(spans)
                .next("the recorder's log, and whether the source was there (headroom sources doctor)"),
        );
    }
    if coverage.known_share.is_some_and(|known| known < KNOWN_SHARE) {
        let known = coverage.known_share.unwrap_or(0.0);
        let text =
            format!("only {} of the files' time is known; nothing is said of the rest", words::share(known));
        findings.push(
            Finding::new(FindingKind::Gap, Weight::Note, text)
                .fact("known", known, Unit::Share)
                .next("the reasons listed with it: restarts, resets, files that come and go"),
        );
    }
    findings
}

/// Counters of ours, in the kernel: they begin with the program that reads them.
fn is_counted_by_us(case: &SourceCase) -> bool {
    case.series.source.starts_with("process:")
}

/// Where counters started from zero again.
pub(crate) fn ended_epochs(case: &SourceCase) -> Vec<Finding> {
    let ended = case.coverage.unknown.iter().filter(|(reason, _)| {
        // Files come and go all the time; other rules report untimed figures where they matter.
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
                .fact("intervals", unknown.intervals as f64, Unit::Intervals)
                .fact("files' intervals", unknown.file_intervals as f64, Unit::Intervals)
                .when(unknown.when.clone());
            finding.stretches = unknown.intervals;
            match reason {
                Reason::Restart if is_counted_by_us(case) => {
                    finding.next("check whether the server or Headroom restarted")
                }
                Reason::Restart => finding.next("why it restarted, unless that was intended"),
                Reason::TimingOff => {
                    finding.next("headroom sources doctor, which says how to switch timing on")
                }
                Reason::Lost => finding.next("fewer sources or files, where events are lost"),
                _ => finding,
            }
        })
        .collect()
}
