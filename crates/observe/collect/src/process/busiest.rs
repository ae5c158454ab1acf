//! The samples of a source that names only its busiest rows, for programs that watch all the time: a server has thousands of
//! files, and most of them do little. The other rows are summed by layer, purpose of the file and drive.
//!
//! The counters of a sample only grow, and the intervals of all samples add up to those of all rows, also when a row gets a name or
//! loses it. With the counts of a row in the last snapshot before that:
//!
//! ```text
//! counters of a named row   its counts - its counts before it was named
//! counters of a group       the group's counters before + for each of its rows: its counts - its counts before
//! ```

use super::layer::COLUMNS;
use super::losses::Missing;
use super::rows::{Group, Row, Rows};
use super::tables::{CompactCounts, Counts};
use filestats::{FileIdentity, Sample};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A row that has a name keeps it until another one is busier by this factor.
const KEEPS_NAME: f64 = 1.5;

/// Of a row.
type RowCounts = [CompactCounts; COLUMNS];
/// Of a sum of many rows, whose buckets are filled in a wide range.
type Sums = [Counts; COLUMNS];

pub(super) struct Busiest {
    /// Rows that are named.
    named_max: usize,
    /// How often all was forgotten: counters of before and after are not to be compared.
    resets: u64,
    /// By the id of the row.
    members: FxHashMap<u64, Place>,
    groups: Vec<GroupSum>,
}

/// Where a row is counted.
enum Place {
    /// In a sample of its own, without the counts that it had before.
    Named { base: Box<RowCounts>, began: u64 },
    /// In the group with this index.
    Summed(usize),
}

/// Rows that are one sample.
struct GroupSum {
    group: Group,
    /// That of its samples.
    identity: Arc<FileIdentity>,
    /// Counts that are added to those of its rows.
    base: Box<Sums>,
    /// Its counters in the last snapshot.
    published: Box<Sums>,
}

impl Busiest {
    pub fn new(named_max: usize) -> Busiest {
        Busiest { named_max, resets: 0, members: FxHashMap::default(), groups: Vec::new() }
    }

    /// Chooses the rows that are named from now on, of those with these indexes. `before` has the rows as the last snapshot
    /// showed them.
    pub fn choose(&mut self, before: Option<&Rows>, now: &Rows, indexes: &[usize]) {
        let members = std::mem::take(&mut self.members);
        let groups = std::mem::take(&mut self.groups);
        self.resets += u64::from(before.is_none() && !members.is_empty());
        let before_of = |row: &Row| before.and_then(|before| before.by_id(row.id));
        // Rows that are named come first where nothing is done.
        let activity = |row: &Row| {
            let ns = before_of(row).map_or(row.ns(), Row::new_ns) as f64;
            let is_named = matches!(members.get(&row.id), Some(Place::Named { .. }));
            (if is_named { ns * KEEPS_NAME } else { ns }, is_named)
        };
        let rows = || indexes.iter().filter_map(|index| now.get(*index));
        let mut busiest: Vec<((f64, bool), u64)> = rows().map(|row| (activity(row), row.id)).collect();
        busiest.sort_unstable_by(|((ns, is_named), id), ((other_ns, other_is_named), other_id)| {
            other_ns.total_cmp(ns).then(other_is_named.cmp(is_named)).then(id.cmp(other_id))
        });
        let named: FxHashSet<u64> = busiest.iter().take(self.named_max).map(|(_, id)| *id).collect();
        let published_before = |group: &Group| {
            let known = groups.iter().find(|sum| sum.group == *group).filter(|_| before.is_some());
            known.map_or([Counts::ZERO; COLUMNS], |sum| *sum.published)
        };
        for row in rows() {
            let last = before_of(row);
            let place = match (named.contains(&row.id), members.get(&row.id)) {
                (true, Some(Place::Named { base, began })) if *began == row.began && before.is_some() => {
                    Place::Named { base: base.clone(), began: row.began }
                }
                (true, _) => {
                    let base = counts_before(row, last).map_or_else(RowCounts::default, Row::all_counts);
                    Place::Named { base: Box::new(base), began: row.began }
                }
                (false, _) => {
                    let index = self.join(row, published_before);
                    if let Some(before) = counts_before(row, last) {
                        each_counted(&mut self.groups[index].base, before, CompactCounts::subtract_from);
                    }
                    Place::Summed(index)
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
                self.members.insert(row.id, Place::Summed(index));
            }
        }
    }

    /// The index of a row's group. A new one begins with what `published` returns.
    fn join(&mut self, row: &Row, published: impl Fn(&Group) -> Sums) -> usize {
        let group = row.group();
        let known = self.groups.iter().position(|sum| sum.group == group);
        known.unwrap_or_else(|| {
            let published = Box::new(published(&group));
            let identity = group.identity().into();
            self.groups.push(GroupSum { group, identity, base: published.clone(), published });
            self.groups.len() - 1
        })
    }

    /// A sample of each named row and of each group.
    pub fn samples(&mut self, now: &Rows, indexes: &[usize], run: &str, missing: &Missing) -> Vec<Sample> {
        let mut samples = Vec::with_capacity(self.named_max + self.groups.len());
        let mut sizes: Vec<(Option<u64>, bool)> = vec![(Some(0), false); self.groups.len()];
        self.groups.iter_mut().for_each(|sum| *sum.published = *sum.base);
        for row in indexes.iter().filter_map(|index| now.get(*index)) {
            match self.members.get(&row.id) {
                Some(Place::Named { base, .. }) => {
                    samples.push(row.sample_of(row.counts_since(base), run, missing));
                }
                Some(Place::Summed(index)) => {
                    each_counted(&mut self.groups[*index].published, row, CompactCounts::add_to);
                    let (bytes, lost) = &mut sizes[*index];
                    *bytes = bytes.zip(row.size_bytes).map(|(sum, more)| sum.saturating_add(more));
                    *lost |= row.is_lost(missing);
                }
                None => {}
            }
        }
        for (sum, (bytes, lost)) in self.groups.iter().zip(sizes) {
            let counts = sum.published.each_ref().map(CompactCounts::from);
            samples.push(sum.group.sample(sum.identity.clone(), counts, bytes, run, lost));
        }
        if self.resets > 0 {
            samples.iter_mut().for_each(|sample| sample.epoch.reset.push_str(&format!(".{}", self.resets)));
        }
        samples
    }
}

/// The row that has the counts of a row in the last snapshot; `None` where it had none. A row that began again lost counters
/// since: then its present counts, so that the interval is left out.
fn counts_before<'a>(now: &'a Row, before: Option<&'a Row>) -> Option<&'a Row> {
    before.map(|before| if before.began == now.began { before } else { now })
}

/// Calls `change` for each column that the row has.
fn each_counted(sums: &mut Sums, row: &Row, change: fn(&CompactCounts, &mut Counts)) {
    for (sum, counts) in sums.iter_mut().zip(&row.counts) {
        counts.iter().for_each(|counts| change(counts, sum));
    }
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

    fn snapshot(busiest: &mut Busiest, rows: &Rows, second: u64) -> Snapshot {
        let indexes: Vec<usize> = (0..rows.iter().count()).collect();
        let samples = busiest.samples(rows, &indexes, RUN, &Missing::default());
        let complete = Some(Epoch::for_run(RUN));
        Snapshot { clock_ns: second * 1_000_000_000, complete, samples, ..Snapshot::default() }
    }

    /// Reads of each sample, by its path.
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
        Rows::from_files(counted.iter().enumerate().map(|(at, count)| (format!("/{at}"), 0, counts(*count))))
    }

    fn choose(busiest: &mut Busiest, before: Option<&Rows>, now: &Rows) {
        let indexes: Vec<usize> = (0..now.iter().count()).collect();
        busiest.choose(before, now, &indexes);
    }

    #[test]
    fn the_busiest_files_are_named_and_the_others_are_one_sum() {
        let mut busiest = Busiest::new(2);
        let mut first = rows(&[5, 900, 7, 800, 1]);
        choose(&mut busiest, None, &first);
        let begin = snapshot(&mut busiest, &first, 1);
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
        let busy = snapshot(&mut busiest, &first, 2);
        let expected = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(reads(&begin, &busy), expected(&[("(other data files on /)", 84), ("/1", 5), ("/3", 0)]));
        // It is named at the next choice, from then on; one that is not named any more has its last I/Os in the sum.
        let now = rows(&[6, 910, 100, 803, 2]);
        choose(&mut busiest, Some(&first), &now);
        let named = snapshot(&mut busiest, &now, 3);
        assert_eq!(paths(&named), ["(other data files on /)", "/1", "/2"]);
        assert_eq!(reads(&busy, &named), expected(&[("(other data files on /)", 4), ("/1", 5), ("/2", 10)]));
    }

    #[test]
    fn where_nothing_is_done_the_names_stay() {
        for busy in 0..5 {
            let mut counted = [5; 5];
            counted[busy] = 900;
            let mut busiest = Busiest::new(1);
            let first = rows(&counted);
            choose(&mut busiest, None, &first);
            let begin = snapshot(&mut busiest, &first, 1);
            let idle = rows(&counted);
            choose(&mut busiest, Some(&first), &idle);
            let reads = reads(&begin, &snapshot(&mut busiest, &idle, 2));
            assert!(reads.contains_key(&format!("/{busy}")), "{reads:?}");
        }
    }

    #[test]
    fn a_file_that_began_again_takes_nothing_into_the_sum() {
        let mut busiest = Busiest::new(0);
        let first = rows(&[10, 20]);
        choose(&mut busiest, None, &first);
        let begin = snapshot(&mut busiest, &first, 1);
        let again = [("/0".to_owned(), 1, counts(3)), ("/1".to_owned(), 0, counts(25))];
        let now = Rows::from_files(again);
        choose(&mut busiest, Some(&first), &now);
        let reads = reads(&begin, &snapshot(&mut busiest, &now, 2));
        assert_eq!(reads.into_values().collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn after_rows_were_lost_nothing_is_subtracted() {
        let mut busiest = Busiest::new(1);
        let first = rows(&[10, 20]);
        choose(&mut busiest, None, &first);
        let begin = snapshot(&mut busiest, &first, 1);
        choose(&mut busiest, None, &first);
        assert!(reads(&begin, &snapshot(&mut busiest, &first, 2)).is_empty());
    }

    proptest! {
        #[test]
        fn the_samples_add_up_to_all_rows(
            steps in prop::collection::vec((any::<bool>(), prop::collection::vec(0_u64..9, 12), 1_usize..12), 2..12),
            named_max in 0_usize..6,
        ) {
            let mut busiest = Busiest::new(named_max);
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
                        busiest.add_new(&rows, &indexes);
                        rows
                    }
                    earlier => {
                        let rows = rows(&totals[..there]);
                        choose(&mut busiest, earlier.as_ref(), &rows);
                        rows
                    }
                };
                let now = snapshot(&mut busiest, &rows, second as u64);
                if let Some(last) = &last {
                    let did: u64 = reads(last, &now).into_values().sum();
                    prop_assert_eq!(did, more[..there].iter().sum::<u64>());
                }
                (before, last) = (Some(rows), Some(now));
            }
        }
    }
}
