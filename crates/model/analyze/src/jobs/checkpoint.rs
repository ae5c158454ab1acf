//! Data files that are written and synced at a regular distance.

use crate::case::sum;
use crate::finding::Span;
use crate::group_totals::{Cell, FileGroup};
use crate::limits::{CHECKPOINTS_BYTES, CHECKPOINTS_MIN, CHECKPOINTS_VARY};
use crate::source_case::SourceCase;
use crate::{Finding, FindingKind};
use findings::{Weight, words};
use statistics::{mean, squared_deviations};
use workload::Unit;

/// Syncs of data files with quiet between them, at a regular distance.
pub(crate) fn checkpoints(case: &SourceCase) -> Vec<Finding> {
    find(case).into_iter().collect()
}

fn find(case: &SourceCase) -> Option<Finding> {
    let cells = case.totals.cells(FileGroup::Data);
    let syncs = |cell: &Cell| {
        let sync = cell.known.sync.known().filter(|_| cell.any);
        sync.is_some_and(|sync| sync.count > 0)
    };
    // The first and last tick of each row of intervals with syncs.
    let mut bursts: Vec<(usize, usize)> = Vec::new();
    for at in (1..cells.len()).filter(|at| syncs(&cells[*at])) {
        match bursts.last_mut() {
            Some((_, last)) if *last + 1 == at => *last = at,
            _ => bursts.push((at, at)),
        }
    }
    if bursts.len() < CHECKPOINTS_MIN {
        return None;
    }
    let began = |burst: &(usize, usize)| case.series.span_unix_ns(burst.0).0;
    let distances: Vec<f64> =
        bursts.windows(2).map(|pair| began(&pair[1]).saturating_sub(began(&pair[0])) as f64).collect();
    let mean = mean(&distances);
    let deviation = (squared_deviations(&distances) / distances.len() as f64).sqrt();
    let all = case.totals.over(FileGroup::Data, 1..=cells.len() - 1);
    let varies = deviation / mean;
    // All bursts at one instant have no distance: NaN.
    if varies.is_nan() || varies > CHECKPOINTS_VARY || all.write.bytes < CHECKPOINTS_BYTES {
        return None;
    }
    let bytes_of = |(from, to): &(usize, usize)| case.totals.over(FileGroup::Data, *from..=*to).write.bytes;
    let in_bursts = sum(bursts.iter().map(bytes_of));
    let syncs = all.sync.known().map_or(0, |sync| sync.count);
    let share = in_bursts as f64 / all.write.bytes.max(1) as f64;
    let text = format!(
        "looks like checkpoints: data files were synced {} times with quiet between, every {} (within {}), {} written to \
         them for each, {} of it in those intervals",
        words::rate(bursts.len() as f64),
        words::length(mean),
        words::share(varies),
        words::bytes(all.write.bytes / bursts.len() as u64),
        words::share(share),
    );
    let spans = bursts.iter().map(|(from, to)| Span::of_ticks(case.series, *from, *to));
    let next = "where latency rises with them: smaller and spread checkpoints; where they come too often: a larger log";
    Some(
        Finding::new(FindingKind::Checkpoint, Weight::Note, text)
            .fact("checkpoints", bursts.len() as f64, Unit::Times)
            .fact("distance", mean, Unit::Ns)
            .fact("distance varies by", varies, Unit::Share)
            .fact("bytes written", all.write.bytes as f64, Unit::Bytes)
            .fact("share of them in these intervals", share, Unit::Share)
            .fact("syncs", syncs as f64, Unit::Ios)
            .when(spans.collect())
            .next(next),
    )
}
