//! The waits of sessions beside the stall of the files, summed by class over a stretch.

use crate::Settings;
use crate::case::Direction;
use crate::finding::Span;
use crate::group_totals::{FileGroup, GroupTotals};
use crate::limits::WAITS_NS;
use filestats::waits::{Agreement, reconcile};
use filestats::{
    Delta, Figure, FileIdentity, FileInterval, FileKind, Interval, Meaning, TimeSeries, WaitClass, WaitDelta,
    WaitInterval, WaitSeries,
};
use std::collections::BTreeMap;

/// The waits of one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WaitTotals {
    pub wait_ns: u64,
    pub stall_ns: u64,
    /// Of the time waited: where the waits are not the disk.
    pub not_disk_ns: u64,
    pub not_disk: Vec<Span>,
    /// Time that could be judged, and the part of it without waiting sessions.
    pub judged_ns: u64,
    pub nobody_ns: u64,
}

/// Compares waits with stalls over stretches of a minute or more: both are read at slightly different times.
pub(crate) fn reconciled(
    series: &TimeSeries,
    totals: &GroupTotals,
    waits: &[WaitSeries],
    settings: &Settings,
) -> BTreeMap<WaitClass, WaitTotals> {
    let mut classes: BTreeMap<WaitClass, WaitTotals> = BTreeMap::new();
    if waits.is_empty() {
        return classes;
    }
    let mut next_step = vec![0; waits.len()];
    let mut first = 1;
    while first < series.ticks.len() {
        let mut last = first;
        let mut elapsed = series.elapsed_ns(first, settings.rules);
        while elapsed.known().is_some_and(|ns| ns < WAITS_NS) && last + 1 < series.ticks.len() {
            last += 1;
            elapsed = elapsed.zip(series.elapsed_ns(last, settings.rules), u64::saturating_add);
        }
        let rows: Vec<WaitInterval> =
            waits.iter().zip(&mut next_step).map(|(wait, next)| sum(wait, next, last, elapsed)).collect();
        if let Figure::Known(elapsed_ns) = elapsed {
            let files: Vec<FileInterval> =
                FileGroup::ALL.iter().map(|sum| together(totals, *sum, first, last, elapsed_ns)).collect();
            let span = Span::of_ticks(series, first, last);
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
fn together(
    totals: &GroupTotals,
    sum: FileGroup,
    first: usize,
    last: usize,
    elapsed_ns: u64,
) -> FileInterval {
    let unknown = totals.cells(sum)[first..=last].iter().find_map(|cell| cell.unknown);
    let delta = Delta { elapsed_ns, counters: totals.over(sum, first..=last), latencies: None };
    FileInterval {
        file: FileIdentity { kind: sum.kind(), ..FileIdentity::default() }.into(),
        meaning: Meaning::REQUESTS,
        ended_unix_ns: 0,
        interval: unknown.map_or(Interval::Known(delta), Interval::Unknown),
    }
}

/// The classes of waits for an operation on such a file.
fn wait_classes(kind: FileKind, direction: Direction) -> &'static [WaitClass] {
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

/// Whether the source reports waits of that kind and no session has any.
pub(crate) fn nobody_waits(
    waited: &BTreeMap<WaitClass, WaitTotals>,
    kind: FileKind,
    direction: Direction,
) -> bool {
    let totals: Vec<&WaitTotals> =
        wait_classes(kind, direction).iter().filter_map(|class| waited.get(class)).collect();
    let judged = crate::case::sum(totals.iter().map(|waited| waited.judged_ns));
    let nobody = crate::case::sum(totals.iter().map(|waited| waited.nobody_ns));
    judged > 0 && nobody == judged
}
