//! Too little is known, or the capability no longer holds.

use crate::LogTiming;
use crate::case::Case;
use crate::evidence::Grounds;
use crate::rows::seen::too_little;
use crate::thresholds::{COVERAGE_MIN, IOS_FROM_MEMORY_MIN, UNTIMED_SHARE_MAX};
use capability::{OTHER_STORAGE_RATIO, Origin};
use statistics::IOS_MIN;

pub(crate) fn cannot_say(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let grounds = |summary: String, next_step: &str| {
        Some(Grounds { summary, evidence: Vec::new(), next_step: next_step.into() })
    };
    let Some(database) = &figures.database else {
        let reason = case.observation.gaps().last();
        let why = reason.map_or("no file was seen twice".to_owned(), |reason| reason.to_string());
        return grounds(
            format!("no interval of the database's files is known: {why}"),
            "observe again, longer, while the database is in use",
        );
    };
    if figures.coverage < COVERAGE_MIN {
        let reason = case.observation.gaps().last().map(|reason| format!(" ({reason})")).unwrap_or_default();
        return grounds(
            format!("only {:.0} % of the observed time has known figures{reason}", figures.coverage * 100.0),
            "observe again without restarts and pauses",
        );
    }
    let from_memory = database.counters.read.count.saturating_sub(figures.storage_reads.count);
    let at_storage = database.counters.operations().saturating_sub(from_memory);
    if at_storage < IOS_MIN && from_memory < IOS_FROM_MEMORY_MIN {
        let beside = match from_memory {
            0 => String::new(),
            reads => format!(" beside {reads} reads from memory"),
        };
        return grounds(
            format!(
                "only {at_storage} I/Os{beside} in {:.0} s: a verdict needs at least {IOS_MIN}",
                figures.elapsed_s
            ),
            "observe while the database is busy, or longer with --duration",
        );
    }
    let untimed = figures.untimed;
    if untimed.count as f64 > UNTIMED_SHARE_MAX * untimed.total as f64 {
        let share = untimed.count as f64 / untimed.total as f64 * 100.0;
        return grounds(
            format!("the database does not time {share:.0} % of its I/Os, so that latency is unknown"),
            &untimed_advice(case),
        );
    }
    if case.capability.is_none() && case.seen_answer().is_none() {
        let summary = match too_little(case) {
            Some(seen) => format!("this storage was never measured, and {seen}: too little for an answer"),
            None => "this storage was never measured: nothing to compare the demand with".into(),
        };
        return grounds(
            summary,
            "run `headroom measure` on the database's directory at a quiet time, then check again",
        );
    }
    if let Some(used) = figures.utilisation.map(|u| u.value).filter(|used| *used > OTHER_STORAGE_RATIO) {
        if case.capability.is_some_and(|capability| capability.origin == Origin::Declared) {
            return grounds(
                format!("the storage gives {used:.1} x what was declared: the declaration is not true of it"),
                "declare its limits again (`headroom storage declare`), or run `headroom measure` at a quiet time",
            );
        }
        return grounds(
            format!("the storage gives {used:.1} x what it gave when it was measured: that no longer holds"),
            "run `headroom measure` again at a quiet time, then check again",
        );
    }
    None
}

/// Tasks wait for I/O, and the counters that would show it are not kept: the answer would be a guess.
pub(crate) fn unexplained_stall(case: &Case) -> Option<Grounds> {
    let stall = case.untimed_stall()?;
    let next_step = match &case.observation.log_timing {
        LogTiming::Untimed { why } => format!("have the log's writes and syncs timed: {why}"),
        LogTiming::Database | LogTiming::Kernel => timing_advice(&case.observation.notes),
    };
    Some(Grounds {
        summary: format!(
            "{stall}, and no layer below accounts for it: the database does not time all of its I/O, and no device was \
             busy for more than {:.0} %",
            stall.device * 100.0
        ),
        evidence: case.latency(),
        next_step,
    })
}

/// The advice of the source, and why its processes were not watched instead.
fn untimed_advice(case: &Case) -> String {
    let advice = timing_advice(&case.observation.notes);
    match &case.observation.log_timing {
        LogTiming::Untimed { why } => format!("{advice} (its log was not watched from outside: {why})"),
        LogTiming::Database | LogTiming::Kernel => advice,
    }
}

/// The advice of the source itself names the statement that switches timing on.
fn timing_advice(notes: &[String]) -> String {
    match notes {
        [] => "switch I/O timing on in the database and observe again".into(),
        notes => format!("switch I/O timing on in the database and observe again: {}", notes.join("; ")),
    }
}
