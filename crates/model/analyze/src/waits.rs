//! Waits beside stalls: where sessions wait longer than the files took, the waits are not the disk; where nobody waits,
//! a slow file hurts nobody.

use crate::analyzer::SourceCase;
use crate::finding::Span;
use crate::limits::{WAITS_NS, WAITS_SHARE};
use crate::timeline::{Sum, Timeline};
use crate::{Direction, Finding, FindingKind, Settings};
use filestats::waits::{Agreement, reconcile};
use filestats::{
    Delta, Figure, FileIdentity, FileInterval, FileKind, Interval, Meaning, Reason, TimeSeries, WaitClass,
    WaitDelta, WaitInterval, WaitSeries,
};
use findings::{Weight, words};
use std::collections::BTreeMap;

/// What one class of waits came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Waited {
    pub wait_ns: u64,
    pub stall_ns: u64,
    /// Of the time waited: where the waits are not the disk.
    pub not_disk_ns: u64,
    pub not_disk: Vec<Span>,
    /// Time of which something can be said, and that in which nobody waits.
    pub judged_ns: u64,
    pub nobody_ns: u64,
}

/// Waits and stalls over stretches of a minute or more: both are read at slightly different times.
pub(crate) fn reconciled(
    course: &TimeSeries,
    timeline: &Timeline,
    waits: &[WaitSeries],
    settings: &Settings,
) -> BTreeMap<WaitClass, Waited> {
    let mut classes: BTreeMap<WaitClass, Waited> = BTreeMap::new();
    if waits.is_empty() {
        return classes;
    }
    let mut next_step = vec![0; waits.len()];
    let mut first = 1;
    while first < course.ticks.len() {
        let mut last = first;
        let mut elapsed = course.elapsed_ns(first, settings.rules);
        while elapsed.known().is_some_and(|ns| ns < WAITS_NS) && last + 1 < course.ticks.len() {
            last += 1;
            elapsed = elapsed.zip(course.elapsed_ns(last, settings.rules), u64::saturating_add);
        }
        let rows: Vec<WaitInterval> =
            waits.iter().zip(&mut next_step).map(|(wait, next)| sum(wait, next, last, elapsed)).collect();
        if let Figure::Known(elapsed_ns) = elapsed {
            let files: Vec<FileInterval> =
                Sum::ALL.iter().map(|sum| together(timeline, *sum, first, last, elapsed_ns)).collect();
            let span = Span {
                from_unix_ns: course.span_unix_ns(first).0,
                until_unix_ns: course.span_unix_ns(last).1,
            };
            for one in reconcile(&rows, &files) {
                let waited = classes.entry(one.class).or_default();
                let wait_ns = one.wait_ns.known().unwrap_or(0);
                if one.agreement == Agreement::CannotSay {
                    continue;
                }
                waited.judged_ns += elapsed_ns;
                waited.wait_ns = waited.wait_ns.saturating_add(wait_ns);
                waited.stall_ns = waited.stall_ns.saturating_add(one.stall_ns.known().unwrap_or(0));
                match one.agreement {
                    Agreement::NotTheDisk => {
                        waited.not_disk_ns = waited.not_disk_ns.saturating_add(wait_ns);
                        match waited.not_disk.last_mut() {
                            Some(last) if last.until_unix_ns == span.from_unix_ns => {
                                last.until_unix_ns = span.until_unix_ns;
                            }
                            _ => waited.not_disk.push(span),
                        }
                    }
                    Agreement::NobodyWaits => waited.nobody_ns += elapsed_ns,
                    Agreement::Agrees | Agreement::CannotSay => {}
                }
            }
        }
        first = last + 1;
    }
    classes
}

/// One event's waits up to a tick.
fn sum(wait: &WaitSeries, next: &mut usize, last: usize, elapsed: Figure<u64>) -> WaitInterval {
    let zero = |elapsed_ns| WaitDelta { elapsed_ns, count: Figure::Known(0), wait_ns: Figure::Known(0) };
    let mut interval = elapsed.map(zero);
    while let Some((_, delta)) = wait.steps.get(*next).filter(|(at, _)| *at <= last) {
        interval = interval.zip(*delta, |mut sum, delta| {
            sum.count = sum.count.zip(delta.count, u64::saturating_add);
            sum.wait_ns = sum.wait_ns.zip(delta.wait_ns, u64::saturating_add);
            sum
        });
        *next += 1;
    }
    WaitInterval { instance: wait.instance.clone(), event: wait.event.clone(), class: wait.class, interval }
}

/// All files of a kind as one.
fn together(timeline: &Timeline, sum: Sum, first: usize, last: usize, elapsed_ns: u64) -> FileInterval {
    let unknown = timeline.cells(sum)[first..=last].iter().find_map(|cell| cell.unknown);
    let delta = Delta { elapsed_ns, counters: timeline.over(sum, first..=last), latencies: None };
    FileInterval {
        file: FileIdentity {
            instance: String::new(),
            database: None,
            database_id: None,
            file_id: String::new(),
            kind: sum.kind(),
            path: String::new(),
            drive: None,
            handle: None,
            object: None,
        },
        meaning: Meaning::REQUESTS,
        ended_unix_ns: 0,
        interval: unknown.map_or(Interval::Known(delta), |reason: Reason| Interval::Unknown(reason)),
    }
}

/// Most of what was waited for a class is not the disk's.
pub(crate) fn not_the_disk(case: &SourceCase) -> Vec<Finding> {
    let told = case.waited.iter().filter(|(_, waited)| {
        waited.not_disk_ns > 0 && waited.not_disk_ns as f64 >= WAITS_SHARE * waited.wait_ns as f64
    });
    told.map(|(class, waited)| {
        let text = format!(
            "the waits are not the disk: sessions waited {} for {class}, its files took {} all in all",
            words::length(waited.wait_ns as f64),
            words::length(waited.stall_ns as f64),
        );
        Finding::new(FindingKind::NotTheDisk, Weight::Warning, text)
            .fact("time waited", waited.wait_ns as f64, "ns")
            .fact("time the files took", waited.stall_ns as f64, "ns")
            .fact("of it where the waits are not the disk", waited.not_disk_ns as f64, "ns")
            .when(waited.not_disk.clone())
            .stall(waited.not_disk_ns)
            .next("what lies between the session and the file: CPU, locks on pages and on the log, network, a replica, a limit")
    })
    .collect()
}

/// The class of those who would wait for that.
pub(crate) fn who_waits(kind: FileKind, direction: Direction) -> &'static [WaitClass] {
    match (kind, direction) {
        (FileKind::Data, Direction::Read) => &[WaitClass::DataRead],
        (FileKind::Data, Direction::Write) => &[WaitClass::DataWrite],
        (FileKind::Data, Direction::Sync) => &[WaitClass::DataSync],
        (FileKind::Log | FileKind::Journal, Direction::Write | Direction::Sync) => {
            &[WaitClass::LogWrite, WaitClass::LogSync]
        }
        (FileKind::Temp, _) => &[WaitClass::Temp],
        _ => &[],
    }
}

/// Whether the source tells waits of that kind and nearly nobody has any.
pub(crate) fn nobody_waits(
    waited: &BTreeMap<WaitClass, Waited>,
    kind: FileKind,
    direction: Direction,
) -> bool {
    let told: Vec<&Waited> =
        who_waits(kind, direction).iter().filter_map(|class| waited.get(class)).collect();
    let judged = crate::case::sum(told.iter().map(|waited| waited.judged_ns));
    let nobody = crate::case::sum(told.iter().map(|waited| waited.nobody_ns));
    judged > 0 && nobody == judged
}
