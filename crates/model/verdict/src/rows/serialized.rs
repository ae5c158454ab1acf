//! One I/O waited for at a time, on storage that could serve many.

use crate::Evidence;
use crate::case::Case;
use crate::evidence::{DATABASE, Grounds};
use crate::figures::{Figures, IOS_TO_COMPARE};
use crate::thresholds::{
    LOG_BUSY, OVERLAPPING_OUTSTANDING, READS_OF_DATABASE_MAX, SERIAL_COMMITS_MIN, SERIAL_MOMENT,
    SERIAL_OUTSTANDING, SERIAL_SHARE_MIN, UTILISATION_FULL, UTILISATION_LOW,
};
use workload::{Unit, format_ns};

const ONE_AT_A_TIME: &str = "the storage is nearly idle, yet the database always waits for one I/O";

pub(crate) fn serialized(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let used = figures.utilisation.map(|used| used.value);
    let used = used.or_else(|| case.seen_room().map(|seen| seen.used_at_most().unwrap_or(1.0)));
    let low = used.is_none_or(|used| used < UTILISATION_LOW);
    // Many sessions that wait now and then may have a mean of 1 as well, but not second for second.
    let alike = case.outstanding.iter().filter(|n| SERIAL_MOMENT.contains(n)).count();
    let share = alike as f64 / case.outstanding.len().max(1) as f64;
    let by_commits = figures.commit_share() > figures.outstanding / 2.0;
    let least = if by_commits { SERIAL_COMMITS_MIN } else { SERIAL_OUTSTANDING.start };
    let one = least..SERIAL_OUTSTANDING.end;
    let several_at_once = !by_commits && reads_overlap(figures);
    if !low || !one.contains(&figures.outstanding) || share < SERIAL_SHARE_MIN || several_at_once {
        return None;
    }
    let n = figures.outstanding;
    let mut evidence = vec![case.observed("I/Os outstanding on average", n, Unit::Ios, DATABASE)];
    evidence.extend(figures.utilisation.map(|u| case.utilisation_fact(u.value)));
    evidence.extend(case.highest_rate());
    let (summary, next_step) =
        if by_commits { serialized_commits(case, &mut evidence)? } else { serialized_reads(case) };
    evidence.extend(case.latency());
    Some(Grounds { summary, evidence, next_step })
}

/// Whether the device had several of the database's reads at once: it is busy as long as a read takes for each, if it has one at a
/// time, and for a shorter time if they overlap. Random arrivals with a mean of N are busy for (1 - e^-N) / N of that.
fn reads_overlap(figures: &Figures) -> bool {
    let Some(device) = &figures.device else { return false };
    let counters = &device.counters;
    let (Some(reads), Some(all)) = (counters.read.stall_ns.known(), counters.transfers().stall_ns.known())
    else {
        return false;
    };
    // A device that splits the reads has several for one; another program's reads say nothing of the database's.
    let are_its_own =
        counters.read.count as f64 <= figures.storage_reads.count as f64 * READS_OF_DATABASE_MAX;
    let are_most = reads as f64 >= all as f64 / 2.0;
    let mean = device.outstanding_while_busy().known().unwrap_or(0.0);
    are_its_own && are_most && mean >= OVERLAPPING_OUTSTANDING
}

/// The log is written and synced sequentially all of the time, while the storage could do more: other sessions than one wait
/// for it too, or the log alone asks for much of the storage.
pub(crate) fn busy_log(case: &Case) -> Option<Grounds> {
    let figures = &case.figures;
    let (busy, used) = (figures.commit_share(), figures.utilisation?.value);
    let is_single = used < UTILISATION_LOW && figures.outstanding < SERIAL_OUTSTANDING.end;
    let is_timed = !figures.commits_by_device && figures.commits.count >= IOS_TO_COMPARE;
    if !is_timed || is_single || used >= UTILISATION_FULL || !LOG_BUSY.contains(&busy) {
        return None;
    }
    let source = case.commits_source();
    let mut evidence = vec![
        case.observed("time in which the log was written or synced", busy, Unit::Share, source),
        case.utilisation_fact(used),
    ];
    evidence.extend(case.latency());
    let per_second = figures.commits.count as f64 / figures.elapsed_s;
    Some(Grounds {
        summary: format!(
            "the log is written and synced sequentially {:.0} % of the time, {per_second:.0} times a second, while \
             {:.0} % of the storage is in use",
            busy * 100.0,
            used * 100.0
        ),
        evidence,
        next_step: "batch several changes into one transaction, so that there is less to write and sync; or give the log \
                    storage that answers sooner"
            .into(),
    })
}

/// Summary and advice where commits are waited for.
fn serialized_commits(case: &Case, evidence: &mut Vec<Evidence>) -> Option<(String, String)> {
    let figures = &case.figures;
    let commit_ns = figures.commit_ns()?;
    let per_second = figures.commits.count as f64 / figures.elapsed_s;
    let (many, one) = if figures.commits_through { ("log writes", "write") } else { ("syncs", "sync") };
    evidence.extend([
        case.observed(many, per_second, Unit::PerSecond, DATABASE),
        case.observed("time waited for each", commit_ns, Unit::Ns, case.commits_source()),
    ]);
    let advice = match case.batching() {
        Some((batch, gain, log_ns)) => {
            evidence.extend([
                case.measured(
                    &format!("commit of 60 KiB, {}", case.origin()),
                    log_ns,
                    Unit::Ns,
                    &case.capability_source(),
                ),
                case.measured("gain by batching, estimated", gain, Unit::Times, &case.capability_source()),
            ]);
            format!(
                "batch: {batch} commits in one transaction fit into one commit of 60 KiB, which takes {} \
                 here: about {gain:.0} x the rows in the same time",
                format_ns(log_ns)
            )
        }
        None => format!("batch several changes into one transaction: one {one} then serves them all"),
    };
    let summary =
        format!("{ONE_AT_A_TIME}: {per_second:.0} {many} a second, {} waited for each", format_ns(commit_ns));
    Some((summary, advice))
}

/// Summary and advice where reads are waited for.
fn serialized_reads(case: &Case) -> (String, String) {
    let wide = case.widest().map_or(String::new(), |(n, times)| {
        format!(": with {n} in flight this storage gives {times:.0} x the I/Os")
    });
    let advice = format!("ask for several pages at once (prefetch, read-ahead, more sessions){wide}");
    (format!("{ONE_AT_A_TIME}, a read at a time"), advice)
}
