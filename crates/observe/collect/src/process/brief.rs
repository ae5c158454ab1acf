//! The samples of a source that names only its busiest rows, for programs that watch all the time: a server has thousands of
//! files, and most of them do little. The other rows are summed by layer, purpose of the file and drive.
//!
//! Counters of a sample only grow, and the intervals of all samples add up to those of all rows, also where a row is named from
//! now on or no more. `then` are the counts of a row in the last snapshot:
//!
//! ```text
//! counters of a named row   its counts - then, when it was named
//! counters of a group       what it had in the last snapshot + for each of its rows: its counts - then
//! ```

use super::samples::{COLUMNS, Group, Missing, Row, Rows};
use super::tables::Counts;
use filestats::Sample;
use rustc_hash::{FxHashMap, FxHashSet};

/// A row that has a name keeps it until another one is busier by this factor.
const KEEPS_NAME: f64 = 1.5;

type Columns = [Counts; COLUMNS];

pub(super) struct Brief {
    /// Rows that are named.
    named_max: usize,
    /// How often all was forgotten: counters of before and after are not to be compared.
    forgotten: u64,
    /// By the id of the row.
    members: FxHashMap<u64, Place>,
    groups: Vec<Sum>,
}

/// Where a row is shown.
enum Place {
    /// It is a sample, without the counts that it had before.
    Named { base: Box<Columns>, began: u64 },
    /// In the group with this index.
    In(usize),
}

/// A group of rows.
struct Sum {
    group: Group,
    /// What it has beside the counts of its rows.
    beside: Box<Columns>,
    /// What the last snapshot showed.
    shown: Box<Columns>,
}

impl Brief {
    pub fn new(named_max: usize) -> Brief {
        Brief { named_max, forgotten: 0, members: FxHashMap::default(), groups: Vec::new() }
    }

    /// Chooses the rows that are named from now on, of those with these indexes. `before` has the rows as the last snapshot
    /// showed them.
    pub fn choose(&mut self, before: Option<&Rows>, now: &Rows, indexes: &[usize]) {
        let members = std::mem::take(&mut self.members);
        let groups = std::mem::take(&mut self.groups);
        self.forgotten += u64::from(before.is_none() && !members.is_empty());
        let before_of = |row: &Row| before.and_then(|before| before.by_id(row.id));
        let activity = |row: &Row| {
            let ns = before_of(row).map_or(row.ns(), Row::new_ns) as f64;
            let is_named = matches!(members.get(&row.id), Some(Place::Named { .. }));
            if is_named { ns * KEEPS_NAME } else { ns }
        };
        let rows = || indexes.iter().filter_map(|index| now.get(*index));
        let mut busiest: Vec<(f64, u64)> = rows().map(|row| (activity(row), row.id)).collect();
        busiest.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        let named: FxHashSet<u64> = busiest.iter().take(self.named_max).map(|(_, id)| *id).collect();
        let shown_before = |group: &Group| {
            let known = groups.iter().find(|sum| sum.group == *group).filter(|_| before.is_some());
            known.map_or([Counts::ZERO; COLUMNS], |sum| *sum.shown)
        };
        for row in rows() {
            let then = then(row, before_of(row));
            let place = match (named.contains(&row.id), members.get(&row.id)) {
                (true, Some(Place::Named { base, began })) if *began == row.began && before.is_some() => {
                    Place::Named { base: base.clone(), began: row.began }
                }
                (true, _) => Place::Named { base: Box::new(then), began: row.began },
                (false, _) => {
                    let index = self.join(row, shown_before);
                    each(&mut self.groups[index].beside, &then, |sum, counts| *sum = sum.since(counts));
                    Place::In(index)
                }
            };
            self.members.insert(row.id, place);
        }
    }

    /// Takes in rows that came since: they began at zero.
    pub fn add_new(&mut self, now: &Rows, indexes: &[usize]) {
        for row in indexes.iter().filter_map(|index| now.get(*index)) {
            if !self.members.contains_key(&row.id) {
                let index = self.join(row, |_| [Counts::ZERO; COLUMNS]);
                self.members.insert(row.id, Place::In(index));
            }
        }
    }

    /// The index of a row's group. A group that is new has what `shown` says.
    fn join(&mut self, row: &Row, shown: impl Fn(&Group) -> Columns) -> usize {
        let group = row.group();
        let known = self.groups.iter().position(|sum| sum.group == group);
        known.unwrap_or_else(|| {
            let shown = Box::new(shown(&group));
            self.groups.push(Sum { group, beside: shown.clone(), shown });
            self.groups.len() - 1
        })
    }

    /// A sample of each named row and of each group.
    pub fn samples(&mut self, now: &Rows, indexes: &[usize], run: &str, missing: &Missing) -> Vec<Sample> {
        let mut samples = Vec::with_capacity(self.named_max + self.groups.len());
        let mut sizes: Vec<(Option<u64>, bool)> = vec![(Some(0), false); self.groups.len()];
        self.groups.iter_mut().for_each(|sum| *sum.shown = *sum.beside);
        for row in indexes.iter().filter_map(|index| now.get(*index)) {
            match self.members.get(&row.id) {
                Some(Place::Named { base, .. }) => {
                    let mut counts = row.all_counts();
                    each(&mut counts, base, |counts, base| *counts = counts.since(base));
                    samples.push(row.sample_of(counts.each_ref(), run, missing));
                }
                Some(Place::In(index)) => {
                    let shown = &mut self.groups[*index].shown;
                    for (sum, counts) in shown.iter_mut().zip(&row.counts) {
                        counts.iter().for_each(|counts| counts.add_to(sum));
                    }
                    let (bytes, lost) = &mut sizes[*index];
                    *bytes = bytes.zip(row.size_bytes).map(|(sum, more)| sum.saturating_add(more));
                    *lost |= row.is_lost(missing);
                }
                None => {}
            }
        }
        for (sum, (bytes, lost)) in self.groups.iter().zip(sizes) {
            samples.push(sum.group.sample(sum.shown.each_ref(), bytes, run, lost));
        }
        if self.forgotten > 0 {
            samples
                .iter_mut()
                .for_each(|sample| sample.epoch.reset.push_str(&format!(".{}", self.forgotten)));
        }
        samples
    }
}

/// The counts of a row in the last snapshot. Of a row that began again meanwhile, nothing is known of the time between: its
/// counts of now.
fn then(now: &Row, before: Option<&Row>) -> Columns {
    match before {
        None => [Counts::ZERO; COLUMNS],
        Some(before) if before.began == now.began => before.all_counts(),
        Some(_) => now.all_counts(),
    }
}

fn each(columns: &mut Columns, others: &Columns, change: impl Fn(&mut Counts, &Counts)) {
    columns.iter_mut().zip(others).for_each(|(counts, others)| change(counts, others));
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::{Epoch, Figure, Rules, Snapshot, intervals};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const RUN: &str = "boot";

    fn counts(count: u64) -> Counts {
        let mut counts = Counts { count, bytes: 4096 * count, ns: 100_000 * count, ..Counts::ZERO };
        counts.histogram[9] = count;
        counts
    }

    fn snapshot(brief: &mut Brief, rows: &Rows, second: u64) -> Snapshot {
        let indexes: Vec<usize> = (0..rows.iter().count()).collect();
        let samples = brief.samples(rows, &indexes, RUN, &Missing::default());
        let complete = Some(Epoch::for_run(RUN));
        Snapshot { clock_ns: second * 1_000_000_000, complete, samples, ..Snapshot::default() }
    }

    /// What each sample did, by its path.
    fn reads(earlier: &Snapshot, later: &Snapshot) -> BTreeMap<String, u64> {
        let all = intervals(earlier, later, Rules::default());
        let of_one = |file: filestats::FileInterval| {
            let delta = file.interval.known()?;
            let (read, slow) = (delta.counters.read, delta.latencies.as_ref().unwrap().read.count());
            assert_eq!((read.count, read.stall_ns), (slow, Figure::Known(100_000 * slow)), "{file:?}");
            Some((file.file.path.clone(), slow))
        };
        all.into_iter().filter_map(of_one).collect()
    }

    fn rows(counted: &[u64]) -> Rows {
        Rows::of_files(counted.iter().enumerate().map(|(at, count)| (format!("/{at}"), 0, counts(*count))))
    }

    fn choose(brief: &mut Brief, before: Option<&Rows>, now: &Rows) {
        let indexes: Vec<usize> = (0..now.iter().count()).collect();
        brief.choose(before, now, &indexes);
    }

    #[test]
    fn the_busiest_files_are_named_and_the_others_are_one_sum() {
        let mut brief = Brief::new(2);
        let mut first = rows(&[5, 900, 7, 800, 1]);
        choose(&mut brief, None, &first);
        let begin = snapshot(&mut brief, &first, 1);
        let paths = |of: &Snapshot| {
            let mut paths: Vec<String> = of.samples.iter().map(|one| one.file.path.clone()).collect();
            paths.sort();
            paths
        };
        assert_eq!(paths(&begin), ["(other data files on /)", "/1", "/3"]);
        let sizes: Vec<Figure<u64>> = begin.samples.iter().map(|sample| sample.size_bytes).collect();
        assert_eq!(sizes, [Figure::Known(1), Figure::Known(1), Figure::Known(3)]);
        // In between, another file becomes busy.
        first.recount([5, 905, 90, 800, 2].map(counts));
        let busy = snapshot(&mut brief, &first, 2);
        let told = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(reads(&begin, &busy), told(&[("(other data files on /)", 84), ("/1", 5), ("/3", 0)]));
        // It is named at the next choice, from then on; one that is not named any more has its last I/Os in the sum.
        let now = rows(&[6, 910, 100, 803, 2]);
        choose(&mut brief, Some(&first), &now);
        let named = snapshot(&mut brief, &now, 3);
        assert_eq!(paths(&named), ["(other data files on /)", "/1", "/2"]);
        assert_eq!(reads(&busy, &named), told(&[("(other data files on /)", 4), ("/1", 5), ("/2", 10)]));
    }

    #[test]
    fn a_file_that_began_again_takes_nothing_into_the_sum() {
        let mut brief = Brief::new(0);
        let first = rows(&[10, 20]);
        choose(&mut brief, None, &first);
        let begin = snapshot(&mut brief, &first, 1);
        let again = [("/0".to_owned(), 1, counts(3)), ("/1".to_owned(), 0, counts(25))];
        let now = Rows::of_files(again);
        choose(&mut brief, Some(&first), &now);
        let reads = reads(&begin, &snapshot(&mut brief, &now, 2));
        assert_eq!(reads.into_values().collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn after_rows_were_lost_nothing_is_subtracted() {
        let mut brief = Brief::new(1);
        let first = rows(&[10, 20]);
        choose(&mut brief, None, &first);
        let begin = snapshot(&mut brief, &first, 1);
        choose(&mut brief, None, &first);
        assert!(reads(&begin, &snapshot(&mut brief, &first, 2)).is_empty());
    }

    proptest! {
        #[test]
        fn the_samples_add_up_to_all_rows(
            steps in prop::collection::vec((any::<bool>(), prop::collection::vec(0_u64..9, 12), 1_usize..12), 2..12),
            named_max in 0_usize..6,
        ) {
            let mut brief = Brief::new(named_max);
            let mut totals = [0_u64; 12];
            let mut before: Option<Rows> = None;
            let mut last: Option<Snapshot> = None;
            let mut there = 3;
            for (second, (names, more, files)) in steps.into_iter().enumerate() {
                totals.iter_mut().zip(&more).take(there.max(files)).for_each(|(sum, more)| *sum += more);
                there = there.max(files);
                let rows = match before.take() {
                    Some(mut rows) if !names => {
                        let known = rows.iter().count();
                        rows.recount(totals[..known].iter().map(|count| counts(*count)));
                        (known..there).for_each(|at| rows.push_file(format!("/{at}"), 0, counts(totals[at])));
                        let indexes: Vec<usize> = (0..there).collect();
                        brief.add_new(&rows, &indexes);
                        rows
                    }
                    earlier => {
                        let rows = rows(&totals[..there]);
                        choose(&mut brief, earlier.as_ref(), &rows);
                        rows
                    }
                };
                let now = snapshot(&mut brief, &rows, second as u64);
                if let Some(last) = &last {
                    let did: u64 = reads(last, &now).into_values().sum();
                    prop_assert_eq!(did, more[..there].iter().sum::<u64>());
                }
                (before, last) = (Some(rows), Some(now));
            }
        }
    }
}
