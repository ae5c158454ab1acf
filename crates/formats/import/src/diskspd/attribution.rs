//! Attribution of figures of all targets together to their results.

use super::{Percentiles, SpanTold};
use crate::Note;
use crate::summary::Summary;
use workload::{Direction, RunResult};

/// Gives results the latencies that were reported of a whole target, or of all targets.
pub(super) fn attribute(results: &mut [RunResult], told: &SpanTold, name: &str, notes: &mut Vec<Note>) {
    if let [only] = results {
        take_totals(only, told);
    }
    percentiles(results, told, name, notes);
}

/// The figures of all rows together, where they are of one target.
fn take_totals(result: &mut RunResult, told: &SpanTold) {
    for (direction, total) in [(&mut result.read, &told.totals.read), (&mut result.write, &told.totals.write)]
    {
        let Some(total) = total else { continue };
        if !told.has_all_rows {
            (direction.count, direction.bytes) = (total.count, total.bytes);
        }
        let did_ios = direction.count > 0;
        let known = |ns: Option<f64>| ns.filter(|ns| did_ios && ns.is_finite() && *ns > 0.0);
        let Summary { mean_ns, deviation_ns, .. } = *total;
        (direction.mean_ns, direction.deviation_ns) = (known(mean_ns), known(deviation_ns));
    }
    if !told.has_all_rows {
        result.threads.clear();
    }
}

/// Percentiles of all targets together belong to a result only where a single one has such I/Os.
fn percentiles(results: &mut [RunResult], told: &SpanTold, name: &str, notes: &mut Vec<Note>) {
    let mut unassigned = false;
    type Side = (fn(&mut RunResult) -> &mut Direction, fn(&Percentiles) -> &Vec<(f64, u64)>);
    let sides: [Side; 2] =
        [(|result| &mut result.read, |all| &all.read), (|result| &mut result.write, |all| &all.write)];
    let paths: Vec<String> = results.iter().map(|result| result.target.clone()).collect();
    // Of a target with a name of its own.
    let own = |index: usize| {
        let alone = paths.iter().filter(|path| **path == paths[index]).count() == 1;
        let found = told.by_path.iter().find(|(path, _)| alone && *path == paths[index]);
        found.map(|(_, percentiles)| percentiles)
    };
    for (direction, part) in sides {
        let counts: Vec<u64> = results.iter_mut().map(|result| direction(result).count).collect();
        let sharing = counts.iter().filter(|count| **count > 0).count();
        for (index, result) in results.iter_mut().enumerate().filter(|(index, _)| counts[*index] > 0) {
            if let Some(percentiles) = own(index) {
                direction(result).percentiles = part(percentiles).clone();
            } else if sharing == 1 {
                direction(result).percentiles = part(&told.percentiles).clone();
            } else {
                unassigned |= !part(&told.percentiles).is_empty();
            }
        }
    }
    let active = results.iter().filter(|result| result.ios() > 0).count();
    for (index, result) in results.iter_mut().enumerate() {
        // Where all I/Os are of one direction, its percentiles are those of all.
        if result.read.count == 0 || result.write.count == 0 {
            continue;
        }
        let of_all = (active == 1).then_some(&told.percentiles);
        result.total_percentiles = own(index).or(of_all).map(|all| all.total.clone()).unwrap_or_default();
    }
    if unassigned {
        notes.push(Note::new(format!(
            "{name}: the percentiles are of several targets together; they belong to none and were left out"
        )));
    }
}
