//! The page table: the newest version of each page, older versions that snapshots read, and the log records of each
//! page since it was last written to the data file. It does no I/O: `lookup` says where a version must be read
//! from, and the caller hands the content back with `insert_read`.
//!
//! A page whose chain of records is not empty is *dirty*. The first record of a chain is always a page image, so
//! the content can be rebuilt from the log alone. Hence a dirty page may be evicted without being written, and
//! recovery can open a store before it has redone anything. Readers find the newest versions in memory without this
//! table: `front`. What recovery read from indices (its runs) is not in
//! the table at first: a page without an entry is looked up in the runs before it is read from the data file, and
//! all runs are absorbed before a checkpoint.

mod cut;
mod eviction;
pub(crate) mod front;
mod old_version;
pub(crate) mod page_memory;
mod snapshots;

use crate::recovery::runs::Runs;
use crate::types::{Lsn, PageNo};
use eviction::Clock;
use front::Front;
use old_version::OldVersion;
pub use page_memory::Page;
use page_memory::PageMemory;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// After this many records a chain starts over with an image, which bounds the cost of redoing one page.
const CHAIN_RECORDS_MAX: usize = 32;

/// Which version of a page to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// The version of the last commit. Only the writer, or who holds the gate, may ask for it: during a commit of many pages it may
    /// be of that one.
    Newest,
    /// The version as of the commit with this sequence number.
    At(u64),
}

/// Where a version can be read.
pub(crate) enum Lookup {
    Cached(Page),
    /// In the data file.
    Stored(Token),
    /// In the log: to be redone from these records.
    Logged(Vec<Lsn>, Token),
    /// Dropped to keep the cache within its limit.
    TooOld,
    /// The runs of recovery must be searched for the page first.
    Unresolved(Arc<Runs>),
}

/// Must be presented when content that was read is put into the table. It is refused if the files may have changed
/// since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    checkpoints: u64,
    /// `None`: an older version, which later changes of the page do not affect.
    changes: Option<u64>,
}

/// A page version that a checkpoint writes.
#[derive(Debug)]
pub(crate) struct Captured {
    pub page: PageNo,
    pub chain: Vec<Lsn>,
    pub content: Option<Page>,
}

/// A page as a commit leaves it.
pub(crate) struct Installed {
    pub page: PageNo,
    /// `None`: it is in the log only.
    pub content: Option<Page>,
    /// The version before. `None`: the page is fresh, or the transaction was large;
    /// then the version before is durable, and the record is an image.
    pub base: Option<Page>,
    /// The page's record.
    pub lsn: Lsn,
    pub image: bool,
    pub record_bytes: usize,
    /// The page did not exist before.
    pub fresh: bool,
}

#[derive(Default)]
struct Entry {
    newest: Option<Page>,
    newest_sequence: u64,
    /// Old versions in ascending order of sequence; each was current until the sequence of the next, or of the
    /// newest.
    old: Vec<(u64, OldVersion)>,
    chain: Vec<Lsn>,
    chain_bytes: usize,
    recently_used: bool,
    in_clock: bool,
    changes: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct PageTable {
    entries: FxHashMap<PageNo, Entry>,
    front: Arc<Front>,
    memory: Arc<PageMemory>,
    page_bytes: usize,
    limit_bytes: usize,
    /// The limit while no transaction has taken a part of it.
    full_limit_bytes: usize,
    cached_bytes: usize,
    clock: Clock,
    dirty: BTreeSet<PageNo>,
    /// Old versions in the order in which they were replaced: sequence of the replacing commit, page.
    retained: VecDeque<(u64, PageNo)>,
    /// Old versions whose content is in memory.
    old_cached: usize,
    /// Pages that are only in the data file and changed after the oldest snapshot began: sequence of the last
    /// change, page.
    stored_only: BTreeSet<(u64, PageNo)>,
    snapshots: BTreeMap<u64, u32>,
    /// Snapshots before this have lost pages.
    given_up_before: u64,
    checkpoints: u64,
    changes: u64,
    /// The redo position of the last checkpoint that began: versions with an older first record are being written.
    captured_before: Lsn,
    /// The log before this has been freed.
    freed_before: Lsn,
    /// Pages that recovery found and that were not looked up yet. A page with an entry is not searched there.
    runs: Option<Arc<Runs>>,
}

impl PageTable {
    pub(crate) fn new(page_bytes: usize, limit_bytes: usize) -> Self {
        let front = Arc::new(Front::new(limit_bytes / page_bytes));
        let memory = PageMemory::new(page_bytes);
        Self { front, memory, page_bytes, limit_bytes, full_limit_bytes: limit_bytes, ..Self::default() }
    }

    /// The way to cached pages without the lock of this table.
    pub(crate) fn front(&self) -> &Arc<Front> {
        &self.front
    }

    /// The memory of its pages.
    pub(crate) fn memory(&self) -> &Arc<PageMemory> {
        &self.memory
    }

    /// Pages without an entry are looked up in these runs from now on.
    pub(crate) fn attach_runs(&mut self, runs: Runs) {
        self.runs = (runs.entries() > 0).then(|| Arc::new(runs));
    }

    pub(crate) fn runs(&self) -> Option<Arc<Runs>> {
        self.runs.clone()
    }

    /// Reserves entries for pages that will be absorbed.
    pub(crate) fn reserve_pages(&mut self, pages: usize) {
        self.entries.reserve(pages);
    }

    /// Inserts the chains of pages that have no entry yet.
    pub(crate) fn absorb(&mut self, pages: impl Iterator<Item = (PageNo, Vec<Lsn>)>) {
        for (page, chain) in pages {
            if !self.entries.contains_key(&page) {
                self.insert_recovered_chain(page, chain);
            }
        }
    }

    /// Drops the runs; all their pages are in the table.
    pub(crate) fn detach_runs(&mut self) {
        self.runs = None;
    }

    /// Records what the runs hold of a page, so that it has an entry from now on. Ignored if the runs were dropped
    /// meanwhile: the result may be outdated.
    pub(crate) fn insert_resolved(&mut self, page: PageNo, chain: Option<Vec<Lsn>>) {
        if self.runs.is_none() || self.entries.contains_key(&page) {
            return;
        }
        match chain {
            Some(chain) => self.insert_recovered_chain(page, chain),
            None => {
                self.entries.insert(page, Entry::default());
            }
        }
    }

    fn insert_recovered_chain(&mut self, page: PageNo, chain: Vec<Lsn>) {
        // An index does not hold the records' lengths. Assume an image and changes of a sixteenth of a page each.
        let chain_bytes = self.page_bytes + (chain.len() - 1) * (self.page_bytes / 16);
        self.insert_recovered(page, chain, chain_bytes);
    }

    pub(crate) fn cached_bytes(&self) -> usize {
        self.cached_bytes
    }

    pub(crate) fn dirty_pages(&self) -> usize {
        self.dirty.len() + self.runs.as_ref().map_or(0, |runs| runs.entries())
    }

    /// Of the next `at_most` dirty pages from `from` on, the one with the oldest first record; and the page to
    /// continue from. Pages that are only in recovery's runs are not considered.
    pub(crate) fn oldest_dirty(
        &self,
        from: PageNo,
        at_most: usize,
    ) -> (Option<(PageNo, Lsn)>, Option<PageNo>) {
        let mut dirty = self.dirty.range(from..);
        let firsts = dirty.by_ref().take(at_most).map(|page| (*page, self.entries[page].chain[0]));
        let oldest = firsts.min_by_key(|(_, lsn)| *lsn);
        (oldest, dirty.next().copied())
    }

    pub(crate) fn lookup(&mut self, page: PageNo, view: View) -> Lookup {
        if let Some(runs) = &self.runs
            && !self.entries.contains_key(&page)
        {
            return Lookup::Unresolved(Arc::clone(runs));
        }
        let token = Token {
            checkpoints: self.checkpoints,
            changes: Some(self.entries.get(&page).map_or(0, |e| e.changes)),
        };
        if let View::At(sequence) = view
            && sequence < self.given_up_before
        {
            return Lookup::TooOld;
        }
        let Some(entry) = self.entries.get_mut(&page) else { return Lookup::Stored(token) };
        entry.recently_used = true;
        match view {
            View::At(sequence) if sequence < entry.newest_sequence => {
                match entry.old.iter().rev().find(|(since, _)| *since <= sequence) {
                    Some((_, old)) => old.locate(self.freed_before, self.checkpoints),
                    None => Lookup::TooOld,
                }
            }
            _ => match &entry.newest {
                Some(version) => Lookup::Cached(version.clone()),
                None if entry.chain.is_empty() => Lookup::Stored(token),
                None => Lookup::Logged(entry.chain.clone(), token),
            },
        }
    }

    /// Whether what was read under `token` is still what the files hold.
    pub(crate) fn is_current(&self, page: PageNo, token: Token) -> bool {
        let changes = || self.entries.get(&page).map_or(0, |e| e.changes);
        token.checkpoints == self.checkpoints && token.changes.is_none_or(|seen| seen == changes())
    }

    /// Caches what was read, if it is the newest version. Returns false if the files may have changed: look it up
    /// again.
    pub(crate) fn insert_read(&mut self, page: PageNo, content: &Page, token: Token) -> bool {
        if !self.is_current(page, token) {
            return false;
        }
        if token.changes.is_none() {
            return true;
        }
        let entry = self.entries.entry(page).or_default();
        if entry.newest.is_none() {
            self.front.put(page, entry.newest_sequence, content);
            entry.newest = Some(content.clone());
            self.cached_bytes += self.page_bytes;
        }
        self.enter_clock(page);
        true
    }

    /// Whether the page's next change must be logged as an image. That is the first change after the page was
    /// written, or while it is being written, to the data file, since that write may be torn; and any change of a
    /// page whose log records are unknown because recovery's runs have not been searched for it.
    pub(crate) fn needs_image(&self, page: PageNo) -> bool {
        self.entries.get(&page).is_none_or(|entry| {
            entry.chain.is_empty()
                || entry.chain[0] < self.captured_before
                || entry.chain.len() >= CHAIN_RECORDS_MAX
                || entry.chain_bytes >= 2 * self.page_bytes
        })
    }

    /// Installs the page version of commit `sequence`; `visible` is the newest commit that new snapshots read.
    pub(crate) fn install(&mut self, sequence: u64, visible: u64, done: Installed) {
        let needed = self.oldest_needed(visible);
        let page = done.page;
        self.changes += 1;
        let entry = self.entries.entry(page).or_default();
        entry.changes = self.changes;
        if entry.newest.is_some() {
            self.cached_bytes -= self.page_bytes;
        }
        if needed < sequence && !done.fresh {
            let before = match done.base {
                Some(content) => {
                    self.cached_bytes += self.page_bytes;
                    self.old_cached += 1;
                    OldVersion::Content(content)
                }
                None => {
                    assert!(done.image, "what the page was has its own records");
                    if entry.old.is_empty() {
                        entry.old.reserve_exact(1);
                    }
                    OldVersion::from_chain(std::mem::take(&mut entry.chain))
                }
            };
            entry.old.push((entry.newest_sequence, before));
            self.retained.push_back((sequence, page));
        }
        entry.newest = done.content;
        match &entry.newest {
            Some(version) => {
                self.cached_bytes += self.page_bytes;
                self.front.put(page, sequence, version);
            }
            None => self.front.remove(page),
        }
        entry.newest_sequence = sequence;
        entry.recently_used = true;
        if done.image {
            entry.chain.clear();
            entry.chain_bytes = 0;
        }
        entry.chain.push(done.lsn);
        entry.chain_bytes += done.record_bytes;
        self.dirty.insert(page);
        self.enter_clock(page);
    }

    /// The newest commit of which a page is installed, and how many of its pages are.
    #[cfg(test)]
    pub(crate) fn newest_installed(&self) -> (u64, usize) {
        let newest = self.entries.values().map(|entry| entry.newest_sequence).max().unwrap_or(0);
        (newest, self.entries.values().filter(|entry| entry.newest_sequence == newest).count())
    }

    /// Inserts a page whose content is in the log, as recovery found it.
    pub(crate) fn insert_recovered(&mut self, page: PageNo, chain: Vec<Lsn>, chain_bytes: usize) {
        self.entries.insert(page, Entry { chain, chain_bytes, ..Entry::default() });
        self.dirty.insert(page);
    }

    /// Begins a checkpoint with the redo position `redo`, before which all records of installed commits lie. Pages
    /// that are dirty now are to be written, and the next change of each is logged as an image.
    pub(crate) fn begin_capture(&mut self, redo: Lsn) {
        assert!(self.runs.is_none(), "a checkpoint begins with what recovery found");
        self.captured_before = redo;
    }

    /// Pushes what is to be written of the next `at_most` dirty pages from `from` on; returns the page to continue
    /// from. A page that was changed since the checkpoint began has an image after `redo` and is left out.
    pub(crate) fn capture(
        &mut self,
        from: PageNo,
        at_most: usize,
        into: &mut Vec<Captured>,
    ) -> Option<PageNo> {
        let mut dirty = self.dirty.range(from..);
        for page in dirty.by_ref().take(at_most) {
            let entry = self.entries.get_mut(page).expect("what is dirty has an entry");
            if entry.chain[0] < self.captured_before {
                // Old versions in the data file are valid until the next `invalidate_reads`.
                entry.mark_captured(self.checkpoints + 1);
                let content = entry.newest.clone();
                let chain = entry.chain.clone();
                into.push(Captured { page: *page, chain, content });
            }
        }
        dirty.next().copied()
    }

    /// Invalidates all reads in progress: tokens handed out so far are no longer current. A checkpoint calls it
    /// before it writes its first page, when every captured version is visible, and again before it marks the first
    /// page as written.
    pub(crate) fn invalidate_reads(&mut self) {
        self.checkpoints += 1;
    }

    /// Invalidates reads as well, after the last page is marked as written and before the log is freed that some
    /// were read from.
    pub(crate) fn log_freed(&mut self) {
        self.invalidate_reads();
        self.freed_before = self.captured_before;
    }

    /// The captured versions, by page and first record, are durable in the data file.
    pub(crate) fn mark_written(&mut self, captured: impl IntoIterator<Item = (PageNo, Lsn)>, visible: u64) {
        let needed = self.oldest_needed(visible);
        for (page, first) in captured {
            let Some(entry) = self.entries.get_mut(&page) else { continue };
            entry.mark_written(first, self.captured_before, self.checkpoints);
            if entry.chain.first() != Some(&first) {
                continue;
            }
            entry.chain = Vec::new();
            entry.chain_bytes = 0;
            self.dirty.remove(&page);
            self.drop_if_stored_only(page, needed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn page(byte: u8) -> Page {
        Page::from(vec![byte; 4096])
    }

    pub(super) fn change(number: u64, byte: u8, unit: u32, image: bool) -> Installed {
        let lsn = Lsn::new(1, unit, 1);
        Installed {
            page: PageNo(number),
            content: Some(page(byte)),
            base: (byte > 1).then(|| page(byte - 1)),
            lsn,
            image,
            record_bytes: 100,
            fresh: byte == 1,
        }
    }

    pub(super) fn cached(lookup: Lookup) -> u8 {
        match lookup {
            Lookup::Cached(page) => page[0],
            _ => panic!("not cached"),
        }
    }

    #[test]
    fn a_change_while_a_checkpoint_writes_the_page_is_an_image_and_keeps_it_dirty() {
        let mut table = PageTable::new(4096, 1 << 20);
        assert!(table.needs_image(PageNo(5)));
        table.install(1, 1, change(5, 1, 8, true));
        assert!(!table.needs_image(PageNo(5)));
        table.begin_capture(Lsn::new(1, 9, 1));
        let mut captured = Vec::new();
        assert_eq!(table.capture(PageNo(0), 10, &mut captured), None);
        assert!(table.needs_image(PageNo(5)));
        table.install(2, 2, change(5, 2, 9, true));
        assert!(!table.needs_image(PageNo(5)), "what is being written is what was before");
        table.mark_written([(captured[0].page, captured[0].chain[0])], 2);
        assert_eq!(table.oldest_dirty(PageNo(0), 10), (Some((PageNo(5), Lsn::new(1, 9, 1))), None));
    }

    #[test]
    fn the_oldest_dirty_page_is_found_in_parts() {
        let mut table = PageTable::new(4096, 1 << 20);
        for (page, unit) in [(5, 11), (6, 9), (7, 8), (8, 10)] {
            table.install(1, 1, change(page, 1, unit, true));
        }
        let at = |unit| Lsn::new(1, unit, 1);
        assert_eq!(table.oldest_dirty(PageNo(0), 2), (Some((PageNo(6), at(9))), Some(PageNo(7))));
        assert_eq!(table.oldest_dirty(PageNo(7), 2), (Some((PageNo(7), at(8))), None));
        assert_eq!(table.oldest_dirty(PageNo(9), 2), (None, None));
    }

    #[test]
    fn a_page_that_is_changed_before_the_checkpoint_has_come_to_it_is_left_to_the_log() {
        let mut table = PageTable::new(4096, 1 << 20);
        for page in 5..8 {
            table.install(1, 1, change(page, 1, page as u32, true));
        }
        table.begin_capture(Lsn::new(1, 9, 1));
        let mut captured = Vec::new();
        assert_eq!(table.capture(PageNo(0), 1, &mut captured), Some(PageNo(6)));
        table.install(2, 2, change(6, 2, 9, true));
        assert_eq!(table.capture(PageNo(6), 1, &mut captured), Some(PageNo(7)));
        assert_eq!(table.capture(PageNo(7), 1, &mut captured), None);
        assert_eq!(captured.iter().map(|version| version.page.0).collect::<Vec<_>>(), [5, 7]);
    }
}
