//! The workloads of a seed: how each is drawn, the settings of its store, and how densely it is crashed.

use crate::trouble::{Refused, Trouble};
use crate::workload::{self, Change, End, OnError, Setting, Step, THIN_DIVISOR, WorkloadKind, draw_puts};
use crate::{Chance, Lab};
use pagestore::Durability;

/// The largest number of consecutive crashes.
const GENERATIONS_MAX: u32 = 3;
/// Workloads of snapshots per seed.
const SNAPSHOTS: u64 = 8;
/// Of a workload with errors one in this many operations is crashed.
const ERRORS_CRASHED_ONE_IN: u64 = 4;
/// Openings without a close on a full log: more than the log has space for their records.
const DEATHS: u32 = 70;

impl Lab {
    /// The seed's workloads.
    pub(crate) fn workloads(&self) -> Vec<(WorkloadKind, Vec<Step>)> {
        let mut own = Chance::new(self.seed ^ 0xd1ce);
        let mut all = vec![
            (WorkloadKind::Random, workload::draw(&mut Chance::new(self.seed), self.steps)),
            (WorkloadKind::LogReuse, draw_log_reuse(&mut own)),
        ];
        all.extend((0..SNAPSHOTS).map(|_| (WorkloadKind::Snapshots, draw_snapshots(&mut own))));
        let mut compaction = Chance::new(self.seed ^ 0xc0_4bac);
        all.push((WorkloadKind::Compaction, draw_compactions(&mut compaction)));
        all.push((WorkloadKind::Errors, draw_errors(&mut Chance::new(self.seed ^ 0x7206_b1ed), self.steps)));
        all
    }

    /// The settings of a workload's store, and the generator for what follows.
    pub(crate) fn setting(&self, kind: WorkloadKind) -> (Setting, Chance) {
        let mut chance = Chance::new(self.seed ^ 0x5eed);
        let mut setting = Setting { kind, ..Setting::draw(&mut chance) };
        let (layout, options) = (&mut setting.layout, &mut setting.options);
        match kind {
            WorkloadKind::Random => {}
            WorkloadKind::Snapshots => options.cache_bytes = 96 << 10,
            WorkloadKind::LogReuse => {
                // Only checkpoints of the steps, but still transactions that do not fit in the cache.
                layout.page_bytes = 4096;
                options.cache_bytes = 768 << 10;
                options.checkpoint_bytes = u64::MAX;
                options.log_limit_bytes = 32 * layout.vlf_bytes;
            }
            WorkloadKind::Compaction => {
                // The log grows, so that it can become shorter again.
                layout.vlfs = 2;
                options.log_limit_bytes = 16 * layout.vlf_bytes;
            }
            WorkloadKind::Errors => {
                // Pages are evicted, and the log has to grow and reaches its limit.
                layout.vlfs = 2;
                options.cache_bytes = options.cache_bytes.min(256 << 10);
                let pages = layout.page_bytes as u64 / 4096;
                options.log_limit_bytes = (3 + self.seed % 4) * pages.min(2) * layout.vlf_bytes;
            }
        }
        (setting, chance)
    }

    /// Images per crash.
    pub(crate) fn images(&self, kind: WorkloadKind) -> u64 {
        if kind.is_sampled() { self.images.min(1) } else { self.images }
    }

    /// Runs that go on from a crash.
    pub(crate) fn continued(&self, kind: WorkloadKind) -> u64 {
        if kind.is_sampled() { self.continued.min(1) } else { self.continued }
    }
}

impl WorkloadKind {
    /// The largest number of consecutive crashes.
    pub(crate) fn generations(self) -> u32 {
        if self.is_sampled() { 1 } else { GENERATIONS_MAX }
    }

    /// Whether it gets fewer crashes, because it has more operations.
    fn is_sampled(self) -> bool {
        matches!(self, Self::Errors | Self::Compaction)
    }

    /// Whether an ordinary operation is crashed.
    pub(crate) fn is_crashed(self, chance: &mut Chance) -> bool {
        self != Self::Errors || chance.once_in(ERRORS_CRASHED_ONE_IN)
    }
}

/// Snapshots are held while a transaction that does not fit evicts the pages that they see. Among them are pages that
/// changed between two snapshots and were evicted before they change again.
fn draw_snapshots(chance: &mut Chance) -> Vec<Step> {
    let commit = |changes| Step::committed(changes, Durability::Full);
    let mut steps = vec![commit(draw_puts(chance, 200, 500)), Step::Hold];
    let mut changed = Vec::new();
    for _ in 0..1 + chance.below(2) {
        let count = 1 + chance.below(2);
        let changes = draw_puts(chance, count, 500);
        changed.extend(changes.iter().cloned());
        steps.push(commit(changes));
    }
    // Clean pages are evicted first.
    steps.extend([Step::Checkpoint { during: Vec::new() }, Step::Hold]);
    let count = 60 + chance.below(120);
    changed.extend(draw_puts(chance, count, 500));
    steps.extend([commit(changed), Step::Release]);
    steps
}

/// Reuses the log: virtual log files of rolled back transactions only, overwritten by those of small commits.
pub(crate) fn draw_log_reuse(chance: &mut Chance) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..2 {
        let changes = draw_puts(chance, 240, 700);
        steps.push(Step::Transaction { changes, end: End::RollBack, on_error: OnError::GiveUp });
    }
    steps.push(Step::Checkpoint { during: Vec::new() });
    for _ in 0..100 {
        let changes = draw_puts(chance, 1, 500);
        steps.push(Step::committed(changes, Durability::Full));
    }
    steps
}

/// Tables that become sparse and are compacted, while others commit and snapshots are held.
pub(crate) fn draw_compactions(chance: &mut Chance) -> Vec<Step> {
    let commit = |changes| Step::committed(changes, Durability::Full);
    let mut steps = Vec::new();
    for _ in 0..2 {
        let bytes = 300 + chance.below(300);
        for _ in 0..3 {
            steps.push(commit(draw_puts(chance, 80, bytes)));
        }
        if chance.once_in(2) {
            steps.push(Step::Hold);
        }
        let thinned = (0..4).map(|at| Change::Thin { table: at % 2, remainder: chance.below(5) as u32 });
        steps.push(commit(thinned.collect()));
        match chance.below(4) {
            // Its pages are free, and the root of the new one is the last page or near it.
            0 => {
                let table = chance.below(2) as u8;
                let mut changes = vec![Change::Recreate { table }];
                changes.extend(draw_puts(chance, 10, 200));
                steps.push(commit(changes));
            }
            1 => steps.push(Step::Checkpoint { during: Vec::new() }),
            _ => {}
        }
        let transactions = chance.below(8);
        let during = (0..transactions).map(|_| {
            let count = 1 + chance.below(3);
            let mut changes = workload::draw_changes(chance, count, true);
            if chance.once_in(3) {
                // Many pages become free.
                let table = chance.below(2) as u8;
                changes.push(Change::Recreate { table });
            }
            changes
        });
        steps.push(Step::Compact { during: during.collect() });
        steps.extend([Step::Release, Step::Release]);
        steps.push(Step::Compact { during: Vec::new() });
        if chance.once_in(3) {
            steps.push(Step::Reopen);
        }
        steps.push(commit(draw_puts(chance, 20, 300)));
    }
    steps
}

/// Steps that meet errors, with callers that go on after them, or panic. One in four workloads ends with a full log and a
/// process that ends repeatedly.
pub(crate) fn draw_errors(chance: &mut Chance, steps: usize) -> Vec<Step> {
    let large = !chance.once_in(3);
    // More pages than the cache holds.
    let mut all = vec![Step::committed(draw_puts(chance, 160, 500), Durability::Full)];
    while all.len() < steps {
        let mut step = workload::draw_step(chance, large);
        if let Step::Transaction { changes, end, on_error } = &mut step {
            // Where a page cannot be read, it fails halfway.
            if chance.once_in(4) {
                let remainder = chance.below(THIN_DIVISOR.into()) as u32;
                changes.insert(0, Change::Thin { table: chance.below(2) as u8, remainder });
            }
            *on_error = [OnError::GiveUp, OnError::ContinueAt, OnError::TryAgain][chance.below(3) as usize];
            if chance.once_in(5) {
                *end = End::Panic;
            }
        }
        if chance.once_in(2) && !matches!(step, Step::Hold | Step::Release | Step::Flush) {
            all.push(Step::Trouble(draw_trouble(chance)));
        }
        all.push(step);
    }
    if chance.once_in(4) {
        all.push(Step::committed(draw_puts(chance, 3, 500), Durability::Full));
        let changes = draw_puts(chance, 400, 700);
        all.push(Step::Transaction { changes, end: End::RollBack, on_error: OnError::GiveUp });
        all.push(Step::Die { times: DEATHS });
    }
    all
}

fn draw_trouble(chance: &mut Chance) -> Trouble {
    let (refused, after_max) = if chance.once_in(3) {
        (Refused::Growth, 4)
    } else {
        (Refused::Reads, [2, 10, 40][chance.below(3) as usize])
    };
    let times = if chance.once_in(3) { 1000 } else { 1 + chance.below(2) as u32 };
    Trouble { refused, after: chance.below(after_max) as u32, times }
}

/// Draws the steps after a crash: every second time they begin with a transaction of several blocks.
pub(crate) fn draw_again(chance: &mut Chance, kind: WorkloadKind, steps: usize) -> Vec<Step> {
    let mut all =
        if kind == WorkloadKind::Errors { draw_errors(chance, steps) } else { workload::draw(chance, steps) };
    if chance.once_in(2) {
        all.insert(0, Step::committed(workload::draw_changes(chance, 180, true), Durability::Full));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Survived;
    use crate::run::perform;
    use crate::{Op, SimDisk};
    use pagestore_disk::FileId;

    #[test]
    fn compactions_cut_both_files_and_meet_snapshots_and_commits() {
        let (mut cut, mut whole) = ([0; 3], 0);
        for seed in 0..16 {
            let lab = Lab { seed, ..Lab::default() };
            let steps = draw_compactions(&mut Chance::new(seed));
            let (setting, _) = lab.setting(WorkloadKind::Compaction);
            let run = perform(setting, SimDisk::new(), None, &steps).expect("it holds");
            whole += usize::from(run.begins.len() == steps.len());
            for op in &run.trace {
                if let Op::Truncate { file, .. } = op {
                    cut[*file as usize] += 1;
                }
            }
        }
        assert!(cut[FileId::Data as usize] > 16 && cut[FileId::Log as usize] > 16, "{cut:?}");
        assert_eq!(whole, 16, "every run came to its end");
    }

    #[test]
    fn callers_meet_every_type_of_error_and_most_go_on() {
        let (mut met, mut whole) = (Survived::default(), 0);
        for seed in 0..40 {
            let lab = Lab { seed, ..Lab::default() };
            let steps = draw_errors(&mut Chance::new(seed), lab.steps);
            let (setting, _) = lab.setting(WorkloadKind::Errors);
            let run = perform(setting, SimDisk::new(), None, &steps).expect("it holds");
            whole += usize::from(run.begins.len() == steps.len());
            met.refused += run.survived.refused;
            met.broken += run.survived.broken;
            met.commits += run.survived.commits;
            met.panics += run.survived.panics;
        }
        let Survived { refused, broken, commits, panics } = met;
        assert!([refused, broken, commits, panics].iter().all(|count| *count > 0), "{met:?}");
        assert!(whole > 20, "of 40 runs {whole} came to their end");
    }
}
