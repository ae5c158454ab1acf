//! Transactions: any number read at a time, each its own snapshot; one writes.

mod allocation;
mod buffers;
mod records;
mod turn;

use crate::background::Load;
use crate::cache::{Installed, Page, View};
use crate::codec::{put_u64, u64_at};
use crate::delta::ZEROS;
use crate::error::{Error, Result};
use crate::journal::WriteTimes;
use crate::log::record::{RECORD_HEADER_BYTES, Record};
use crate::options::Durability;
use crate::page::{self, PAGE_HEADER_BYTES};
use crate::store::{Inner, Store, Writing, lock};
use crate::sync::{linger, thread_number};
use crate::tree::Finger;
use crate::types::{Lsn, PageNo};
use pagestore_counters::{Instants, monotonic_ns};
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use allocation::{CATALOG_AT, META, PAGE_COUNT_AT, has_header};
pub(crate) use buffers::Buffers;
use buffers::Changed;
use records::Records;

/// What pages are read from: a snapshot, or a transaction with its own changes.
pub trait Pages {
    /// The bytes of a page; the first 32 are the engine's, and zeros in a page of yours.
    ///
    /// # Errors
    /// When there is none, it is damaged, cannot be read, or a snapshot is too old.
    fn page(&self, page: PageNo) -> Result<Page>;

    /// Pages of the data file, free ones included.
    ///
    /// # Errors
    /// As `page`.
    fn page_count(&self) -> Result<u64> {
        Ok(u64_at(&self.page(META)?, PAGE_COUNT_AT))
    }

    /// The root of the tree of the tables' names.
    #[doc(hidden)]
    fn catalog(&self) -> Result<PageNo> {
        Ok(PageNo(u64_at(&self.page(META)?, CATALOG_AT)))
    }

    /// The low half of the store's identity.
    #[doc(hidden)]
    fn store(&self) -> u64;
}

/// The error of a page that could not be read, where it is that there is none.
fn absent(pages: &impl Pages, page: PageNo, error: Error) -> Error {
    let is_beyond = || page != META && pages.page_count().is_ok_and(|count| page.0 >= count);
    match error {
        Error::CorruptPage { .. } | Error::SnapshotTooOld if is_beyond() => Error::NoSuchPage { page },
        other => other,
    }
}

/// A snapshot: what was committed when it began.
///
/// What others commit meanwhile is kept as it was for it, in memory as long as there is room; what a transaction larger than the
/// cache changes is read from the files, until a checkpoint has written over it. Then, or when memory was short, it is told
/// [`Error::SnapshotTooOld`].
pub struct ReadTx<'a> {
    inner: &'a Inner,
    sequence: u64,
}

impl<'a> ReadTx<'a> {
    pub(crate) fn begin(inner: &'a Inner) -> Self {
        let sequence = lock(&inner.pages).begin_snapshot(inner.journal.visible());
        Self { inner, sequence }
    }

    /// The newest commit that it sees.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Pages for ReadTx<'_> {
    fn page(&self, page: PageNo) -> Result<Page> {
        self.inner.page(page, View::At(self.sequence)).map_err(|error| absent(self, page, error))
    }

    fn store(&self) -> u64 {
        self.inner.geometry.store
    }
}

impl Drop for ReadTx<'_> {
    fn drop(&mut self) {
        lock(&self.inner.pages).end_snapshot(self.sequence, self.inner.journal.visible());
    }
}

struct OwnPage {
    content: Page,
    /// `None`: there was none, or it is only in the log.
    base: Option<Page>,
}

/// The transaction that writes. Dropped without a commit, it leaves nothing.
///
/// A change that fails before it has changed anything can be tried again, or done without. Where one fails halfway,
/// everything but dropping the transaction is refused from then on, its commit too ([`Error::TransactionBroken`]).
pub struct WriteTx<'a> {
    inner: &'a Inner,
    writing: Option<MutexGuard<'a, Writing>>,
    tx: u64,
    own: FxHashMap<PageNo, OwnPage>,
    /// The leaf that was put into last.
    pub(crate) finger: Finger,
    /// The page that the user had last to change: what he wrote into its header is nobody's.
    lent: Option<PageNo>,
    /// Pages whose newest image went to the log before the commit, for want of memory.
    spilled: FxHashMap<PageNo, Lsn>,
    /// Pages from this number on did not exist before.
    fresh_from: u64,
    /// How long it waited for its turn.
    queued_ns: u64,
    /// How often a page was handed out to be changed.
    changes: u64,
    /// Why a change failed halfway.
    broken: Option<String>,
}

/// A commit that has its place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Commits are numbered in their order, from 1.
    pub sequence: u64,
    /// Its record; it is durable when the log is, up to here.
    pub lsn: Lsn,
}

/// A commit that was appended and installed.
struct Put {
    committed: Committed,
    /// When it was appended.
    appended: u64,
    load: Load,
}

impl Pages for WriteTx<'_> {
    fn page(&self, page: PageNo) -> Result<Page> {
        self.check()?;
        if let Some(own) = self.own.get(&page) {
            let mut content = Arc::clone(&own.content);
            if self.lent == Some(page) && has_header(&content) {
                Arc::make_mut(&mut content)[..PAGE_HEADER_BYTES].fill(0);
            }
            return Ok(content);
        }
        match self.spilled.get(&page) {
            Some(lsn) => self.inner.redo(&[*lsn]),
            None => self.inner.page(page, View::Newest).map_err(|error| absent(self, page, error)),
        }
    }

    fn store(&self) -> u64 {
        self.inner.geometry.store
    }
}

impl Store {
    /// Does `changes` in a transaction of its own and commits it; where they fail, nothing of them is left.
    ///
    /// # Errors
    /// Those of `changes`, and as [`Store::write`] and [`WriteTx::commit`].
    pub fn transact<T>(
        &self,
        durability: Durability,
        changes: impl FnOnce(&mut WriteTx<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut tx = self.write()?;
        let done = changes(&mut tx)?;
        tx.commit(durability)?;
        Ok(done)
    }
}

impl<'a> WriteTx<'a> {
    pub(crate) fn begin(inner: &'a Inner) -> Result<Self> {
        inner.journal.check()?;
        let (mut writing, queued_ns) = inner.turn()?;
        inner.whose_turn.store(thread_number(), Ordering::Relaxed);
        let tx = writing.next_tx;
        writing.next_tx += 1;
        inner.last_tx.store(tx, Ordering::Release);
        let own = std::mem::take(&mut writing.buffers.own);
        let mut begun = Self {
            inner,
            writing: Some(writing),
            tx,
            own,
            finger: Finger::default(),
            lent: None,
            spilled: FxHashMap::default(),
            fresh_from: 0,
            queued_ns,
            changes: 0,
            broken: None,
        };
        if inner.last_sequence.load(Ordering::Acquire) > 0 {
            begun.fresh_from = u64_at(&begun.page(META)?, PAGE_COUNT_AT);
        }
        Ok(begun)
    }

    /// The first commit of a store.
    pub(crate) fn format(&mut self) -> Result<()> {
        self.own.insert(META, OwnPage { content: self.empty_page(), base: None });
        let meta = self.any_page_mut(META)?;
        page::set_owner(meta, page::STORES);
        put_u64(meta, PAGE_COUNT_AT, 1);
        let catalog = self.allocate()?;
        crate::tree::format(self, catalog, page::CATALOGS)?;
        put_u64(self.any_page_mut(META)?, CATALOG_AT, catalog.0);
        Ok(())
    }

    fn empty_page(&self) -> Page {
        Page::from(&ZEROS[..self.inner.geometry.page_bytes])
    }

    /// Bytes of a page with its header.
    pub(crate) fn page_bytes(&self) -> usize {
        self.inner.geometry.page_bytes
    }

    /// Refuses to go on with what a change has left halfway.
    fn check(&self) -> Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(cause) => Err(Error::TransactionBroken { cause: cause.clone() }),
        }
    }

    /// Does a change of several pages. Where it fails after the first of them, the transaction goes no further.
    pub(crate) fn as_one<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = self.changes;
        let done = change(self);
        if let Err(error) = &done
            && self.changes > before
        {
            self.broken = Some(error.to_string());
        }
        done
    }

    /// As `any_page_mut`, of a page that was looked at: `before` is what it holds.
    pub(crate) fn change(&mut self, page: PageNo, before: Page) -> Result<&mut [u8]> {
        if self.own.contains_key(&page) {
            // The last but the transaction's own, so that it changes in its place.
            drop(before);
        } else {
            self.own_copy(page, before)?;
        }
        Ok(self.own_bytes(page))
    }

    fn own_copy(&mut self, page: PageNo, before: Page) -> Result<()> {
        let content = self.writing().buffers.copy_of(&before);
        let base = (!self.spilled.contains_key(&page)).then_some(before);
        self.make_room(&[page])?;
        self.own.insert(page, OwnPage { content, base });
        Ok(())
    }

    fn writing(&mut self) -> &mut Writing {
        self.writing.as_mut().expect("held until the end")
    }

    fn own_bytes(&mut self, page: PageNo) -> &mut [u8] {
        self.take_back();
        self.changes += 1;
        self.content_mut(page)
    }

    fn content_mut(&mut self, page: PageNo) -> &mut [u8] {
        Arc::make_mut(&mut self.own.get_mut(&page).expect("it was put there").content)
    }

    /// Room for these pages among the changed ones, so that to change all of them fails before the first.
    fn make_room(&mut self, pages: &[PageNo]) -> Result<()> {
        let more = pages.iter().filter(|page| !self.own.contains_key(page)).count();
        if self.own.len() + more > self.inner.own_pages_max() {
            self.take_back();
            self.spill()
        } else {
            Ok(())
        }
    }

    /// Bytes of log that these pages need at most.
    fn log_bytes(&self) -> u64 {
        // A run has a header for at least as many bytes of distance: a page never doubles. And it is in an index.
        (self.own.len() * (2 * self.page_bytes() + RECORD_HEADER_BYTES + 24) + 64) as u64
    }

    /// Puts the changed pages into the log, uncommitted, and forgets them.
    fn spill(&mut self) -> Result<()> {
        self.inner.ensure_log_space(self.log_bytes())?;
        let writing = self.writing.as_mut().expect("held until the end");
        let mut records = Records::begin(&self.inner.journal, self.tx, &mut writing.buffers.records);
        let mut pages: Vec<_> = self.own.iter().collect();
        pages.sort_unstable_by_key(|(page, _)| **page);
        for (page, own) in &pages {
            records.page(**page, None, &own.content)?;
        }
        let logged = records.pause()?;
        // To be read again from the log, it must be there.
        self.inner.journal.flush()?;
        self.spilled.extend(pages.iter().map(|(page, _)| **page).zip(logged.iter().map(|own| own.lsn)));
        self.own.clear();
        Ok(())
    }

    /// Commits; returns when it is acknowledged as `durability` has it. `None` where nothing was changed.
    ///
    /// # Errors
    /// When a change failed halfway or the log is full (nothing is committed, the store goes on) or an I/O fails (the
    /// store is read-only then, and whether the commit is there is known only after opening it again).
    pub fn commit(mut self, durability: Durability) -> Result<Option<Committed>> {
        self.check()?;
        self.take_back();
        let called = monotonic_ns();
        let Some(Put { committed, appended, load }) = self.install()? else { return Ok(None) };
        let (inner, queued_ns) = (self.inner, self.queued_ns);
        drop(self);
        match durability {
            Durability::Full => {
                if let Some(WriteTimes { submitted, written, durable, .. }) =
                    inner.journal.wait(committed.lsn)?
                {
                    let instants = Instants { queued_ns, called, appended, submitted, written, durable };
                    inner.counters.commits.record(committed.sequence, &instants);
                }
            }
            Durability::Delayed => {
                inner.journal.delayed(committed.sequence);
                if inner.journal.waiting_bytes() >= inner.options.delayed_bytes {
                    inner.journal.flush()?;
                }
            }
        }
        inner.after_commit(&load);
        Ok(Some(committed))
    }

    /// The commit that makes a store.
    pub(crate) fn commit_full(mut self) -> Result<()> {
        let Put { committed, .. } = self.install()?.expect("a new store's pages are changes");
        let inner = self.inner;
        drop(self);
        inner.journal.wait(committed.lsn).map(|_| ())
    }

    /// Gives the transaction up, as dropping it does, and makes every delayed commit before it durable, as SQL Server does.
    ///
    /// # Errors
    /// When that write fails; the store is read-only then. Of the transaction nothing is left in any case.
    pub fn rollback(self) -> Result<()> {
        let inner = self.inner;
        drop(self);
        inner.journal.flush()
    }

    /// Appends the commit and makes it the newest version of its pages.
    fn install(&mut self) -> Result<Option<Put>> {
        if self.own.is_empty() && self.spilled.is_empty() {
            return Ok(None);
        }
        self.inner.ensure_log_space(self.log_bytes())?;
        let writing = self.writing.as_mut().expect("held until the end");
        let Writing { sequence: newest, buffers, .. } = &mut **writing;
        let Buffers { changed, records, pages: spare, .. } = buffers;
        changed.clear();
        changed.extend(self.own.drain().map(|(page, own)| Changed { page, own, image: false }));
        changed.sort_unstable_by_key(|changed| changed.page);
        let gate = lock(&self.inner.gate);
        {
            let pages = lock(&self.inner.pages);
            for changed in changed.iter_mut() {
                changed.image = changed.own.base.is_none() || pages.needs_image(changed.page);
            }
        }
        let sequence = *newest + 1;
        let mut records = Records::begin(&self.inner.journal, self.tx, records);
        for Changed { page, own, image } in changed.iter() {
            records.page(*page, own.base.as_deref().filter(|_| !*image), &own.content)?;
        }
        let (logged, commit) = records.commit(sequence)?;
        let appended = monotonic_ns();
        // Another's write may make it durable before its pages are there.
        linger();
        *newest = sequence;
        self.inner.last_sequence.store(sequence, Ordering::Release);
        self.inner.journal.counters.log.commits.fetch_add(1, Ordering::Relaxed);

        let visible = self.inner.journal.visible();
        let installed = changed.len() + self.spilled.len();
        let mut pages = lock(&self.inner.pages);
        for (page, lsn) in self.spilled.drain() {
            if changed.binary_search_by_key(&page, |changed| changed.page).is_err() {
                let fresh = page.0 >= self.fresh_from;
                let record_bytes = self.inner.geometry.page_bytes;
                let done =
                    Installed { page, content: None, base: None, lsn, image: true, record_bytes, fresh };
                pages.install(sequence, visible, done);
            }
        }
        for (Changed { page, own, .. }, logged) in changed.drain(..).zip(logged) {
            let done = Installed {
                page,
                content: Some(own.content),
                base: own.base,
                lsn: logged.lsn,
                image: logged.image,
                record_bytes: logged.bytes,
                fresh: page.0 >= self.fresh_from,
            };
            pages.install(sequence, visible, done);
        }
        pages.forget_beside(visible, installed);
        pages.make_room(visible, self.inner.journal.durable());
        pages.take_forgotten(spare);
        let dirty_pages = pages.dirty_pages();
        drop(pages);
        let slots = self.inner.journal.ended(Some(sequence));
        drop(gate);
        let load = self.inner.load_of(commit, slots, dirty_pages);
        Ok(Some(Put { committed: Committed { sequence, lsn: commit }, appended, load }))
    }
}

impl Drop for WriteTx<'_> {
    fn drop(&mut self) {
        // Before the next one has it: who finds his own number there has the turn.
        self.inner.whose_turn.store(0, Ordering::Relaxed);
        let own = std::mem::take(&mut self.own);
        self.writing().buffers.keep_own(own);
        if !self.spilled.is_empty() {
            // Without this record the transaction ends as well: by the next one's first.
            let mut encoded = Vec::new();
            Record::Abort.encode(self.tx, &mut encoded);
            let length = encoded.len();
            let _ = self.inner.journal.append(&encoded, &[length], None, &mut Vec::new());
            self.inner.journal.ended(None);
        }
    }
}

impl Inner {
    /// How many changed pages a transaction keeps in memory: a quarter of the cache, and what they were before.
    fn own_pages_max(&self) -> usize {
        (self.options.cache_bytes / 4 / self.geometry.page_bytes).max(16)
    }
}
