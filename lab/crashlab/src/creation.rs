//! Crashes the creation of a store at each operation on a name, and what follows: a store that is opened or created again there.
//! A store whose commit was acknowledged is there, and what an interrupted creation leaves is in the way of no other.

use crate::names::{NamedMedium, SimNames};
use crate::path::show;
use crate::workload::{self, contents};
use crate::{Chance, Op};
use pagestore::internals::{create_in, open_in};
use pagestore::{Error, Layout, Options, Store};
use std::path::Path;

/// The directory, of which none of the levels is there at first.
const DIRECTORY: &str = "/volume/stores/shop";

/// Of the operations that are not on names one in this many is crashed.
const CRASHED_ONE_IN: u64 = 16;
/// Of the crashes of a first creation one in this many is followed by crashes of what comes next: of kills, which leave names
/// that are not durable, and of power failures.
const CONTINUED_ONE_IN: [u64; 2] = [2, 8];
/// Power failures when a commit was acknowledged, and all names must be durable.
const AT_ACKNOWLEDGEMENT: usize = 4;

/// A process that creates the store, or opens it.
struct Attempt {
    trace: Vec<Op>,
    /// The operations before a commit was acknowledged.
    acknowledged: usize,
}

/// The totals of the crashes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CreationTotals {
    pub crash_points: u64,
    pub kills: u64,
}

/// Crashes a creation, as drawn by `chance`.
pub(crate) fn judge_creation(options: Options, chance: &mut Chance) -> Result<CreationTotals, String> {
    let mut totals = CreationTotals::default();
    let before = NamedMedium::default();
    let first = attempt(&before, false, options)?;
    for (at, left, is_killed) in crashes(&before, &first, chance) {
        let crashed = |what: String| {
            let how = if is_killed { "the process is killed" } else { "power failure" };
            format!("creation of a store, {how} at operation {at} ({}): {what}", show(first.trace.get(at)))
        };
        let was_acknowledged = at >= first.acknowledged;
        let next = attempt(&left, was_acknowledged, options).map_err(crashed)?;
        totals.crash_points += 1;
        totals.kills += u64::from(is_killed);
        if !chance.once_in(CONTINUED_ONE_IN[usize::from(!is_killed)]) {
            continue;
        }
        for (again, left, _) in crashes(&left, &next, chance) {
            let was_acknowledged = was_acknowledged || again >= next.acknowledged;
            let what = attempt(&left, was_acknowledged, options).map_err(|what| {
                crashed(format!(
                    "then a crash at operation {again} ({}): {what}",
                    show(next.trace.get(again))
                ))
            });
            what?;
            totals.crash_points += 1;
        }
    }
    Ok(totals)
}

/// The crashes of an attempt: the operation, what is left, and whether only the process ended.
fn crashes(before: &NamedMedium, attempt: &Attempt, chance: &mut Chance) -> Vec<(usize, NamedMedium, bool)> {
    let mut medium = before.clone();
    let mut crashes = Vec::new();
    for at in 0..=attempt.trace.len() {
        let in_flight = attempt.trace.get(at);
        // A name matters until the next operation on a name, and until the acknowledgement.
        let is_at_name = [at.checked_sub(1), Some(at)]
            .into_iter()
            .flatten()
            .any(|at| matches!(attempt.trace.get(at), Some(Op::Name(_))));
        if at == attempt.acknowledged {
            let left = |_| (at, medium.crash(in_flight, chance), false);
            crashes.extend((0..AT_ACKNOWLEDGEMENT).map(left));
        } else if is_at_name || in_flight.is_none() || chance.once_in(CRASHED_ONE_IN) {
            let is_killed = chance.once_in(2);
            let left =
                if is_killed { medium.killed(in_flight, chance) } else { medium.crash(in_flight, chance) };
            crashes.push((at, left, is_killed));
        }
        if let Some(op) = in_flight {
            medium.apply(op);
        }
    }
    crashes
}

/// Opens the store, or creates it where there is none, which must be possible unless a commit was acknowledged before. Then its
/// tables are made, if they are not there.
fn attempt(medium: &NamedMedium, was_acknowledged: bool, options: Options) -> Result<Attempt, String> {
    let layout = Layout { vlf_bytes: 128 << 10, vlfs: 2, ..Layout::default() };
    let names = SimNames::caching(medium);
    let directory = Path::new(DIRECTORY);
    let store = match open_in(&names, directory, names.disk.clone(), options) {
        Err(Error::NotAStore { .. }) if !was_acknowledged => {
            create_in(&names, directory, names.disk.clone(), layout, options)
                .map_err(|error| format!("it cannot be created again: {error}"))?
        }
        opened => opened.map_err(|error| format!("it cannot be opened: {error}"))?,
    };
    let prepared = prepare(&store, was_acknowledged)?;
    if !prepared {
        return Err("its commit was acknowledged and is not there".into());
    }
    let acknowledged = names.disk.ops();
    drop(store);
    Ok(Attempt { trace: names.disk.take_trace(), acknowledged })
}

/// Makes the tables; `false` if they should be there and are not.
fn prepare(store: &Store, must_be_there: bool) -> Result<bool, String> {
    let failed = |error: Error| format!("it cannot be used: {error}");
    let are_there = contents(&store.read().map_err(failed)?).map_err(failed)?.is_some();
    if !are_there && !must_be_there {
        workload::prepare(store).map_err(failed)?;
    }
    Ok(are_there || !must_be_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_there_once_a_commit_was_acknowledged_and_can_be_created_until_then() {
        let options = Options { background: false, ..Options::default() };
        let mut all = CreationTotals::default();
        for seed in 0..12 {
            let totals =
                judge_creation(options, &mut Chance::new(seed)).unwrap_or_else(|what| panic!("{what}"));
            all.crash_points += totals.crash_points;
            all.kills += totals.kills;
        }
        assert!(all.crash_points > 1000 && all.kills > 100, "{all:?}");
    }
}
