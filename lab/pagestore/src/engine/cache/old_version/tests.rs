//! A page table compared with a model that keeps all versions and the contents of the files.

use super::*;
use crate::engine::cache::{Captured, Installed, PageTable, View};
use crate::types::PageNo;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::collections::BTreeMap;

const PAGES: u8 = 6;
const PAGE_BYTES: usize = 8;

fn content_of(sequence: u64) -> Page {
    Page::from(sequence.to_le_bytes().to_vec())
}

/// A step of the model.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// The changed pages, as bits; `whole`: logged as images although deltas would do.
    Commit {
        pages: u8,
        whole: bool,
    },
    /// Spills pages of an open transaction. Any commit completes it; pages in both are in memory again.
    Spill {
        pages: u8,
    },
    /// Makes what was appended durable.
    Flush,
    /// From here on nothing becomes durable.
    Fail,
    Begin,
    End {
        which: u8,
    },
    Checkpoint,
    /// Evicts with the current `visible`, or with the one before the last flush.
    Evict {
        late: bool,
    },
    LookUp {
        which: u8,
        page: u8,
    },
    /// Does a pending read and inserts its result.
    Read {
        which: u8,
    },
}

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (1..1_u8 << PAGES, any::<bool>()).prop_map(|(pages, whole)| Action::Commit { pages, whole }),
        3 => (1..1_u8 << PAGES).prop_map(|pages| Action::Spill { pages }),
        6 => Just(Action::Flush),
        1 => Just(Action::Fail),
        4 => Just(Action::Begin),
        2 => any::<u8>().prop_map(|which| Action::End { which }),
        24 => Just(Action::Checkpoint),
        4 => any::<bool>().prop_map(|late| Action::Evict { late }),
        12 => (any::<u8>(), 0..PAGES).prop_map(|(which, page)| Action::LookUp { which, page }),
        8 => any::<u8>().prop_map(|which| Action::Read { which }),
    ]
}

/// The state of a checkpoint.
enum Checkpoint {
    None,
    Capturing {
        redo: Lsn,
        from: PageNo,
        captured: Vec<Captured>,
    },
    Writing {
        redo: Lsn,
        written: usize,
        captured: Vec<Captured>,
    },
    Marking {
        redo: Lsn,
        captured: Vec<Captured>,
    },
    /// Nothing could be made durable.
    Refused,
}

struct Snapshot {
    sequence: u64,
    /// Checkpoints that had begun to write when the snapshot began.
    written_by: u32,
}

/// A pending read of a page from one of the files.
struct Reading {
    page: PageNo,
    view: View,
    chain: Option<Vec<Lsn>>,
    token: Token,
}

/// Counts of situations that occurred.
#[derive(Default)]
struct Coverage {
    stored: Cell<u32>,
    logged: Cell<u32>,
    lost: Cell<u32>,
    stale: Cell<u32>,
    after_failure: Cell<u32>,
}

fn count(cell: &Cell<u32>) {
    cell.set(cell.get() + 1);
}

/// The table, all versions that ever existed, and the contents of the files.
struct Model<'a> {
    table: PageTable,
    /// The commits that changed each page.
    versions: BTreeMap<PageNo, Vec<u64>>,
    sequence: u64,
    appended: u32,
    log: BTreeMap<Lsn, u64>,
    data: BTreeMap<PageNo, u64>,
    spilled: BTreeMap<PageNo, Lsn>,
    visible: u64,
    visible_before: u64,
    durable: Lsn,
    failed: bool,
    snapshots: Vec<Snapshot>,
    readings: Vec<Reading>,
    checkpoint: Checkpoint,
    written_by: u32,
    coverage: &'a Coverage,
}

impl<'a> Model<'a> {
    /// A model with half of the pages in the data file.
    fn new(cache_pages: usize, coverage: &'a Coverage) -> Self {
        let there = || (0..u64::from(PAGES) / 2).map(PageNo);
        Self {
            table: PageTable::new(PAGE_BYTES, cache_pages * PAGE_BYTES),
            versions: there().map(|page| (page, vec![0])).collect(),
            sequence: 0,
            appended: 0,
            log: BTreeMap::new(),
            data: there().map(|page| (page, 0)).collect(),
            spilled: BTreeMap::new(),
            visible: 0,
            visible_before: 0,
            durable: Lsn::ZERO,
            failed: false,
            snapshots: Vec::new(),
            readings: Vec::new(),
            checkpoint: Checkpoint::None,
            written_by: 0,
            coverage,
        }
    }

    fn next_lsn(&self) -> Lsn {
        Lsn::new(1, self.appended + 1, 1)
    }

    fn append(&mut self, sequence: u64) -> Lsn {
        let lsn = self.next_lsn();
        self.appended += 1;
        self.log.insert(lsn, sequence);
        lsn
    }

    /// Returns false if nothing becomes durable any more.
    fn flush(&mut self) -> bool {
        if !self.failed {
            self.durable = Lsn::new(1, self.appended, 1);
            self.visible_before = std::mem::replace(&mut self.visible, self.sequence);
        }
        !self.failed
    }

    fn pages_in(pages: u8) -> impl Iterator<Item = PageNo> {
        (0..PAGES).filter(move |page| pages >> page & 1 == 1).map(|page| PageNo(page.into()))
    }

    fn spill(&mut self, pages: u8) {
        if self.failed {
            return;
        }
        for page in Self::pages_in(pages) {
            let lsn = self.append(self.sequence + 1);
            self.spilled.insert(page, lsn);
        }
        self.flush();
    }

    fn commit(&mut self, pages: u8, whole: bool) {
        if self.failed {
            return;
        }
        let sequence = self.sequence + 1;
        let mut spilled = std::mem::take(&mut self.spilled);
        let mut installed = Vec::new();
        for page in Self::pages_in(pages) {
            let was_spilled = spilled.remove(&page).is_some();
            let before = self.versions.get(&page).and_then(|all| all.last());
            let base = before.filter(|_| !was_spilled).map(|version| content_of(*version));
            let image = base.is_none() || whole || self.table.needs_image(page);
            let (content, fresh) = (Some(content_of(sequence)), before.is_none());
            let lsn = self.append(sequence);
            installed.push(Installed { page, content, base, lsn, image, record_bytes: 1, fresh });
        }
        for (page, lsn) in spilled {
            let fresh = !self.versions.contains_key(&page);
            let record_bytes = PAGE_BYTES;
            installed.push(Installed {
                page,
                content: None,
                base: None,
                lsn,
                image: true,
                record_bytes,
                fresh,
            });
        }
        self.sequence = sequence;
        let count = installed.len();
        for done in installed {
            self.versions.entry(done.page).or_default().push(sequence);
            self.table.install(sequence, self.visible, done);
        }
        self.table.drop_old_versions_after_commit(self.visible, count);
        self.table.evict(self.visible, self.durable);
    }

    /// The content of a page according to the log.
    fn redo(&self, chain: &[Lsn]) -> Option<u64> {
        self.log.get(&chain[0])?;
        self.log.get(chain.last()?).copied()
    }

    fn step_checkpoint(&mut self) {
        self.checkpoint = match std::mem::replace(&mut self.checkpoint, Checkpoint::Refused) {
            Checkpoint::None if self.failed => Checkpoint::Refused,
            Checkpoint::None => {
                let redo = self.spilled.values().min().copied().unwrap_or(self.next_lsn());
                self.table.begin_capture(redo);
                Checkpoint::Capturing { redo, from: PageNo(0), captured: Vec::new() }
            }
            Checkpoint::Capturing { redo, from, mut captured } => {
                match self.table.capture(from, 1, &mut captured) {
                    Some(from) => Checkpoint::Capturing { redo, from, captured },
                    None if !self.flush() => Checkpoint::Refused,
                    None => {
                        self.table.invalidate_reads();
                        self.written_by += 1;
                        Checkpoint::Writing { redo, written: 0, captured }
                    }
                }
            }
            Checkpoint::Writing { redo, written, captured } if written < captured.len() => {
                let Captured { page, chain, content } = &captured[written];
                let content =
                    content.as_ref().map(|version| u64::from_le_bytes(version[..].try_into().unwrap()));
                let content = content.or_else(|| self.redo(chain)).expect("its log is there");
                self.data.insert(*page, content);
                Checkpoint::Writing { redo, written: written + 1, captured }
            }
            Checkpoint::Writing { redo, captured, .. } => {
                self.table.invalidate_reads();
                Checkpoint::Marking { redo, captured }
            }
            Checkpoint::Marking { redo, mut captured } => match captured.pop() {
                Some(version) => {
                    self.table.mark_written([(version.page, version.chain[0])], self.visible);
                    Checkpoint::Marking { redo, captured }
                }
                None => {
                    self.table.log_freed();
                    self.log = self.log.split_off(&redo);
                    Checkpoint::None
                }
            },
            Checkpoint::Refused => Checkpoint::Refused,
        };
    }

    fn expected(&self, page: PageNo, view: View) -> Option<u64> {
        let versions = self.versions.get(&page)?;
        match view {
            View::Newest => versions.last().copied(),
            View::At(sequence) => versions.iter().rfind(|version| **version <= sequence).copied(),
        }
    }

    fn look_up(&mut self, page: PageNo, view: View) {
        let Some(expected) = self.expected(page, view) else { return };
        let (token, chain) = match self.table.lookup(page, view) {
            Lookup::Cached(content) => return assert_eq!(*content, *content_of(expected)),
            Lookup::TooOld => return self.assert_may_be_lost(page, view),
            Lookup::Logged(chain, token) => (token, Some(chain)),
            Lookup::Stored(token) => (token, None),
            Lookup::Unresolved(_) => unreachable!("nothing was recovered"),
        };
        if token.changes.is_none() {
            count(if chain.is_some() { &self.coverage.logged } else { &self.coverage.stored });
            if self.failed {
                count(&self.coverage.after_failure);
            }
        }
        self.readings.push(Reading { page, view, chain, token });
    }

    /// The versions that new snapshots read are never lost; older ones only if they were overwritten or memory was
    /// short.
    fn assert_may_be_lost(&self, page: PageNo, view: View) {
        count(&self.coverage.lost);
        let View::At(sequence) = view else { panic!("the newest is always there") };
        assert!(sequence < self.visible, "{sequence} is what readers begin at");
        let began = self.snapshots.iter().rfind(|version| version.sequence == sequence).expect("it is held");
        let memory = self.table.given_up_before > sequence;
        assert!(memory || self.written_by > began.written_by, "nothing was written over");
        let is_written_over = match &self.checkpoint {
            Checkpoint::Writing { captured, .. } => captured.iter().any(|version| version.page == page),
            _ => false,
        };
        let is_stored = self.data.get(&page).copied() == self.expected(page, view);
        assert!(memory || is_written_over || !is_stored, "it is in the data file");
    }

    fn read(&mut self, reading: Reading) {
        let Reading { page, view, chain, token } = reading;
        let found = match &chain {
            Some(chain) => self.redo(chain),
            None => self.data.get(&page).copied(),
        };
        if !self.table.is_current(page, token) {
            count(&self.coverage.stale);
            return self.look_up(page, view);
        }
        assert_eq!(found, self.expected(page, view), "page {page} at {view:?} from {chain:?}");
        assert!(self.table.insert_read(page, &content_of(found.unwrap()), token));
        self.table.evict(self.visible, self.durable);
    }

    fn begin(&mut self) -> View {
        let sequence = self.table.begin_snapshot(self.visible);
        self.snapshots.push(Snapshot { sequence, written_by: self.written_by });
        View::At(sequence)
    }

    /// An open snapshot, a new one, or the newest version.
    fn view(&mut self, which: u8) -> View {
        match which as usize % (self.snapshots.len() + 2) {
            0 => self.begin(),
            1 => View::Newest,
            held => View::At(self.snapshots[held - 2].sequence),
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Commit { pages, whole } => self.commit(pages, whole),
            Action::Spill { pages } => self.spill(pages),
            Action::Flush => drop(self.flush()),
            Action::Fail => self.failed = true,
            Action::Begin => drop(self.begin()),
            Action::End { which } => {
                if !self.snapshots.is_empty() {
                    let ended = self.snapshots.remove(which as usize % self.snapshots.len()).sequence;
                    self.readings.retain(|version| version.view != View::At(ended));
                    self.table.end_snapshot(ended, self.visible);
                }
            }
            Action::Checkpoint => self.step_checkpoint(),
            Action::Evict { late } => {
                let visible = if late { self.visible_before } else { self.visible };
                self.table.evict(visible, self.durable);
            }
            Action::LookUp { which, page } => {
                let view = self.view(which);
                self.look_up(PageNo(page.into()), view);
            }
            Action::Read { which } => {
                if !self.readings.is_empty() {
                    let reading = self.readings.swap_remove(which as usize % self.readings.len());
                    self.read(reading);
                }
            }
        }
    }

    fn assert_counted(&self) {
        let entries = || self.table.entries.values();
        let all = || entries().flat_map(|entry| entry.old.iter().map(|(_, old)| old));
        let in_memory = all().filter(|old| matches!(old, OldVersion::Content(_))).count();
        let newest = entries().filter(|entry| entry.newest.is_some()).count();
        assert_eq!(self.table.cached_bytes, (in_memory + newest) * PAGE_BYTES);
        assert_eq!(self.table.old_cached, in_memory);
        assert!(self.table.retained.len() >= all().count());
    }
}

#[test]
fn a_version_is_read_correctly_or_is_lost_to_a_checkpoint_or_a_lack_of_memory() {
    let coverage = Coverage::default();
    let strategy =
        (prop_oneof![Just(2_usize), Just(8), Just(1 << 20)], proptest::collection::vec(actions(), 0..200));
    let mut runner = TestRunner::deterministic();
    let outcome = runner.run(&strategy, |(cache_pages, actions)| {
        let mut model = Model::new(cache_pages, &coverage);
        for action in actions {
            model.act(action);
            model.assert_counted();
        }
        // Every version that is visible at the end can be read.
        let view = model.begin();
        for page in (0..PAGES).map(|page| PageNo(page.into())) {
            model.look_up(page, view);
        }
        while let Some(reading) = model.readings.pop() {
            model.read(reading);
        }
        Ok(())
    });
    outcome.unwrap();
    let Coverage { stored, logged, lost, stale, after_failure } = &coverage;
    for (coverage, what) in [
        (stored, "an old version in the data file"),
        (logged, "an old version in the log"),
        (lost, "an old version is lost"),
        (stale, "what was read is of no use"),
        (after_failure, "an old version after a failure"),
    ] {
        assert!(coverage.get() > 20, "too seldom met: {what}, {} times", coverage.get());
    }
}
