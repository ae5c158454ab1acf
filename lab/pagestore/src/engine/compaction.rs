//! Compaction: makes the files of an open store shorter, in steps between which others read and write.
//!
//! ```text
//! repack   sparse neighbours are written into fewer pages            a transaction a step     tree::repack
//! move     the last page ──▶ the first free one, its parent with it  a transaction a step     tx::allocation
//! cut      snapshots from before have ended, then a checkpoint, then the data file is truncated
//! log      virtual log files that are not needed are removed from the end of the log          log_space
//! ```
//! Repacking and moving are transactions as any other: a crash leaves them done or not. A page that was moved is not
//! changed or freed; it is past the end, as the meta page of the same commit says, and snapshots from before read it
//! there until they end. So the file is truncated only when
//!
//! * no snapshot is left that began before the last page was cut off,
//! * a checkpoint has ended since: the copies are in the data file, and recovery begins after the commits that made
//!   them, so that no loss of log brings back a state that needs the old places,
//! * no checkpoint runs, which could be writing pages there.
//!
//! Pages that were added meanwhile are dirty and only in the log, or below the new end.

pub(crate) mod state;

use crate::engine::inner::Inner;
use crate::engine::log_size::SLOTS_MIN;
use crate::engine::store::Store;
use crate::engine::tree::repack::{Holder, table_of};
use crate::engine::tx::{META, Pages, WriteTx};
use crate::error::{Error, Result};
use crate::format::page;
use crate::log::segments::SPARE_SLOTS;
use crate::options::Durability;
use crate::sync::lock;
use crate::types::PageNo;
use pagestore_disk::FileId;
use state::{Phase, RepackAt};
use std::sync::atomic::Ordering;
use std::time::Duration;

use state::CompactionState;
pub use state::{Compaction, CompactionHolder};

/// Pages that a step examines for each that it may change.
const EXAMINED_FOR_ONE: usize = 16;
/// Moving begins again if others have freed pages meanwhile, but not more often than this.
const PASSES_MAX: u32 = 3;
/// Pages that are forgotten under one hold of the page table's lock, and the pause before the next.
const FORGOTTEN_AT_ONCE: u64 = 256;
const LOCK_PAUSE: Duration = Duration::from_micros(20);

impl Store {
    /// Does a step of a compaction, which changes up to `pages_max` pages (within what the cache allows), and returns what
    /// has been done since it began. Call it until `is_done`, from any thread; others read and write meanwhile. A step is
    /// one transaction, a checkpoint, or a part of the log; while it is a transaction, others that write wait.
    ///
    /// Pages of tables are moved, and handles of the tables stay valid in this opening. Pages of the user's own stay where
    /// they are: the data file ends after the last one. While a snapshot holds pages at their old places (`held_by`), the
    /// steps do nothing; call it again when the snapshot has ended.
    ///
    /// # Errors
    /// When a page cannot be read or the log is full: the step has changed nothing, and may be repeated. When an I/O fails
    /// that writes; the store is read-only then. When this thread has a writing transaction.
    pub fn compact(&self, pages_max: usize) -> Result<Compaction> {
        self.inner.compact(pages_max)
    }
}

impl Inner {
    fn compact(&self, pages_max: usize) -> Result<Compaction> {
        self.journal.check()?;
        let mut state = lock(&self.compacting);
        // A step is never a large transaction.
        let pages_max = pages_max.clamp(2, (self.copies_max() / 4).max(2));
        state.totals.held_by = None;
        match &state.phase {
            Phase::Begin => {
                *state = CompactionState::default();
                state.phase = Phase::Repack(RepackAt { level: 1, ..RepackAt::default() });
            }
            Phase::Repack(at) => {
                let at = at.clone();
                self.repack(&mut state, at, pages_max)?;
            }
            Phase::Move { pass, is_begun } => {
                let (pass, is_begun) = (*pass, *is_begun);
                self.move_pages(&mut state, pass, is_begun, pages_max)?;
            }
            Phase::Cut => self.cut(&mut state)?,
            Phase::Log => {
                state.totals.log_bytes_given_back += self.shorten_log_at_once()?;
                state.phase = Phase::Begin;
                state.totals.is_done = true;
            }
        }
        Ok(state.totals)
    }

    /// Repacks the next window whose nodes are sparse.
    fn repack(&self, state: &mut CompactionState, mut at: RepackAt, pages_max: usize) -> Result<()> {
        let mut tx = WriteTx::begin(self)?;
        let (mut examined, mut repacked, mut freed) = (0, 0, 0);
        let mut is_end = false;
        while !is_end && freed == 0 && examined < EXAMINED_FOR_ONE * pages_max {
            let Some(table) = tx.table_or_catalog(at.name.as_deref())? else {
                is_end = !next_table(&tx, &mut at)?;
                continue;
            };
            let done = tx.repack(table, at.level, &at.from, pages_max)?;
            examined += done.read + 1;
            (repacked, freed) = (done.written, done.freed);
            match done.next {
                Some(next) => at.from = next,
                None if done.read > 0 => {
                    at.level += 1;
                    at.from.clear();
                }
                None => {
                    freed += tx.collapse_root(table)?;
                    is_end = !next_table(&tx, &mut at)?;
                }
            }
        }
        if freed > 0 {
            tx.commit(Durability::Delayed)?;
        }
        state.totals.pages_repacked += repacked as u64;
        state.totals.pages_freed += freed as u64;
        state.phase = if is_end { Phase::Move { pass: 0, is_begun: false } } else { Phase::Repack(at) };
        Ok(())
    }

    /// Moves pages from the end of the data file to free places.
    fn move_pages(
        &self,
        state: &mut CompactionState,
        pass: u32,
        is_begun: bool,
        pages_max: usize,
    ) -> Result<()> {
        let mut tx = WriteTx::begin(self)?;
        let mut names = std::mem::take(&mut state.names);
        let before = tx.page_count()?;
        if !is_begun {
            tx.empty_free_list()?;
        }
        let mut budget = Budget { examined: EXAMINED_FOR_ONE * pages_max, moved: pages_max };
        let end = loop {
            if budget.examined == 0 || budget.moved == 0 {
                break None;
            }
            match self.move_last(&mut tx, &mut names, &mut budget)? {
                Last::Cut => {}
                Last::Stays(holder) => break Some(holder),
            }
        };
        if let Some(holder) = end {
            if holder.is_none() || tx.unlisted_from()? >= tx.page_count()? {
                tx.set_unlisted_from(0)?;
            }
            state.totals.held_by = holder.map(CompactionHolder::Page);
        }
        let again = end == Some(None) && pass + 1 < PASSES_MAX && tx.has_listed()?;
        let moved = (pages_max - budget.moved) as u64;
        let is_changed = tx.page_count()? < before || moved > 0 || !is_begun || end.is_some();
        if is_changed {
            self.commit_moves(tx)?;
        }
        state.names = names;
        state.totals.pages_moved += moved;
        state.phase = match end {
            None => Phase::Move { pass, is_begun: true },
            Some(_) if again => Phase::Move { pass: pass + 1, is_begun: false },
            Some(_) => Phase::Cut,
        };
        Ok(())
    }

    /// Commits moved pages. Snapshots that see the commit find the roots that it has moved.
    fn commit_moves(&self, tx: WriteTx<'_>) -> Result<()> {
        let since = tx.next_sequence();
        for (number, from, to) in &tx.moved_roots {
            self.roots.add(*number, *from, *to, since);
        }
        let committed = tx.commit(Durability::Delayed);
        if committed.is_err() && self.last_sequence.load(Ordering::Acquire) < since {
            self.roots.forget_from(since);
        }
        committed.map(drop)
    }

    /// Makes the last page unnecessary, and cuts it off.
    fn move_last(&self, tx: &mut WriteTx<'_>, names: &mut Names, budget: &mut Budget) -> Result<Last> {
        let last = PageNo(tx.page_count()? - 1);
        let from = tx.unlisted_from()?;
        if from == 0 || from > last.0 {
            // Every free page is in the list, or past the end.
            return Ok(Last::Stays(None));
        }
        budget.examined = budget.examined.saturating_sub(1);
        let holds = tx.page(last)?;
        if tx.is_free(&holds)? {
            tx.cut_last_page()?;
            return Ok(Last::Cut);
        }
        let Some((number, holder)) = holder_of(tx, names, last, &holds)? else {
            return Ok(Last::Stays(Some(last)));
        };
        let Some(to) = tx.take_unlisted(last.0, budget.examined.max(1) as u64)? else {
            let examined = tx.unlisted_from()?;
            if examined == 0 || examined >= last.0 {
                return Ok(Last::Stays(None));
            }
            budget.examined = 0;
            return Ok(Last::Cut);
        };
        budget.examined = budget.examined.saturating_sub((to.0 - from) as usize);
        budget.moved -= 1;
        tx.move_page(last, to, &holder)?;
        if matches!(holder, Holder::Name(_)) {
            tx.moved_roots.push((number, last, to));
        }
        tx.cut_last_page()?;
        Ok(Last::Cut)
    }

    /// Shortens the log as far as possible now; returns the bytes by which it became shorter. The log goes on in a slot
    /// near its beginning first, since the one that is being written stays.
    fn shorten_log_at_once(&self) -> Result<u64> {
        {
            let _no_transaction = WriteTx::begin(self)?;
            for _ in 0..self.log_slots() {
                let switched = self.journal.with_writer(|writer| {
                    writer.slot() + 1 > SLOTS_MIN
                        && writer.vlfs.available() > SPARE_SLOTS
                        && writer.switch_vlf().is_ok()
                });
                if !switched {
                    break;
                }
                self.journal.flush()?;
            }
        }
        self.checkpoint()?;
        self.shorten_log(SLOTS_MIN)
    }

    /// Truncates the data file, unless a snapshot still reads what is past its end.
    fn cut(&self, state: &mut CompactionState) -> Result<()> {
        let Some(cut) = self.release_cut_pages()? else {
            state.totals.held_by = Some(CompactionHolder::Snapshot);
            return Ok(());
        };
        for first in cut.pages.clone().step_by(FORGOTTEN_AT_ONCE as usize) {
            let part = first..(first + FORGOTTEN_AT_ONCE).min(cut.pages.end);
            lock(&self.pages).forget_cut(part, cut.sequence);
            std::thread::sleep(if self.options.background { LOCK_PAUSE } else { Duration::ZERO });
        }
        self.checkpoint()?;
        state.totals.data_bytes_given_back += self.truncate_data()?;
        state.phase = Phase::Log;
        Ok(())
    }

    /// From now on pages past the end are new ones; `None` if a snapshot still reads what they were.
    fn release_cut_pages(&self) -> Result<Option<Released>> {
        let mut tx = WriteTx::begin(self)?;
        self.journal.flush()?;
        let cut = *tx.cut_pages();
        if lock(&self.pages).has_snapshot_before(cut.sequence) {
            return Ok(None);
        }
        let released = Released { pages: tx.page_count()?..cut.end, sequence: cut.sequence };
        *tx.cut_pages() = Default::default();
        Ok(Some(released))
    }

    /// Cuts the data file to the number of pages; returns the bytes by which it became shorter.
    fn truncate_data(&self) -> Result<u64> {
        // The pages of commits from here on are written by the next checkpoint.
        let _no_checkpoint = lock(&self.checkpointing);
        let meta = {
            // So that no commit has installed only some of its pages.
            let _gate = lock(&self.gate);
            self.journal.check()?;
            self.page(META, crate::engine::cache::View::Newest)?
        };
        let length = WriteTx::page_count_of(&meta) * self.geometry.page_bytes as u64;
        let before = self.disk.len(FileId::Data).map_err(Error::during("measure", FileId::Data))?;
        if before > length {
            if self.disk.truncate(FileId::Data, u64::MAX).is_err() {
                return Ok(0);
            }
            self.truncate(FileId::Data, length)?;
        }
        self.note_truncated();
        Ok(before.saturating_sub(length))
    }
}

/// Pages past the end that nothing needs, cut off by this commit or earlier ones.
struct Released {
    pages: std::ops::Range<u64>,
    sequence: u64,
}

/// Pages that a step may still examine and move.
struct Budget {
    examined: usize,
    moved: usize,
}

/// Outcome for the last page.
#[derive(PartialEq, Eq)]
enum Last {
    Cut,
    /// It stays the last one: it cannot be moved, or (`None`) no free page is before it.
    Stays(Option<PageNo>),
}

/// The names of tables by their numbers.
type Names = std::collections::BTreeMap<u32, String>;

/// Goes on to the next table; returns false after the last.
fn next_table(tx: &WriteTx<'_>, at: &mut RepackAt) -> Result<bool> {
    let name = tx.name_after(at.name.as_deref())?;
    let is_any = name.is_some();
    *at = RepackAt { name, level: 1, from: Vec::new() };
    Ok(is_any)
}

/// Finds the reference to this page, if it is part of a table, and the table's number.
fn holder_of(
    tx: &WriteTx<'_>,
    names: &mut Names,
    page: PageNo,
    holds: &[u8],
) -> Result<Option<(u32, Holder)>> {
    let Some(number) = table_of(holds) else { return Ok(None) };
    if number == page::OWNER_CATALOG {
        let catalog = tx.table_or_catalog(None)?.expect("the catalog is always there");
        return Ok(tx.holder_of(None, catalog, page)?.map(|holder| (number, holder)));
    }
    for _ in 0..2 {
        if let Some(name) = names.get(&number)
            && let Some(table) = tx.table_or_catalog(Some(name))?.filter(|table| table.number() == number)
        {
            return Ok(tx.holder_of(Some(name), table, page)?.map(|holder| (number, holder)));
        }
        names.clear();
        let mut name = None;
        while let Some(next) = tx.name_after(name.as_deref())? {
            if let Some(table) = tx.table_or_catalog(Some(&next))? {
                names.insert(table.number(), next.clone());
            }
            name = Some(next);
        }
    }
    Ok(None)
}
