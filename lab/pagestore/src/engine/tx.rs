//! Transactions: any number of readers at a time, each with its own snapshot; one writer.

mod allocation;
pub(crate) mod buffers;
mod changes;
mod copies;
mod encoded_ahead;
mod records;
mod write_queue;
mod writer_lock;

use crate::engine::background::Load;
use crate::engine::cache::{Installed, Page, View};
use crate::engine::inner::{CutPages, Inner, Writing};
use crate::engine::read::PageRef;
use crate::engine::tree::finger::Finger;
use crate::error::{Error, Result};
use crate::format::codec::{put_u64, u64_at};
use crate::format::page::{self, PAGE_HEADER_BYTES};
use crate::log::journal::WriteTimes;
use crate::log::record::Record;
use crate::options::Durability;
use crate::sync::{lock, thread_number, yield_in_schedule};
use crate::types::{Lsn, PageNo};
use pagestore_counters::{Instants, monotonic_ns};
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

pub(super) use allocation::META;
use allocation::{CATALOG_AT, PAGE_COUNT_AT, has_header};
use buffers::{Buffers, Changed, take_logged};
use copies::Copies;
use encoded_ahead::EncodedAhead;
use records::Records;

/// Of a commit of at least this many pages, earlier ones are installed while later ones are appended, and threads write its log
/// meanwhile. The log of fewer is less than a whole write, and not worth threads. Few in unit tests, so that small commits do it too.
pub(crate) const MANY_PAGES: usize = if cfg!(test) { 3 } else { 512 };

/// A source of pages: a snapshot, or a transaction with its own changes.
pub trait Pages {
    /// The bytes of a page. The first 32 belong to the engine, and are zeros in a user's page.
    ///
    /// # Errors
    /// When the page does not exist, is damaged or cannot be read, or the snapshot is too old.
    fn page(&self, page: PageNo) -> Result<Page>;

    /// As `page`, for a short time.
    #[doc(hidden)]
    fn page_ref(&self, page: PageNo) -> Result<PageRef<'_>>;

    /// Whether the page was cut off the data file, although its content may still be there.
    #[doc(hidden)]
    fn is_cut(&self, page: PageNo) -> Result<bool>;

    /// The root of the table whose handle names this number and this root.
    #[doc(hidden)]
    fn root_of(&self, number: u32, root: PageNo) -> PageNo;

    /// The entries of the table with this root, if this transaction has changed their number.
    #[doc(hidden)]
    fn changed_entries(&self, _root: PageNo) -> Option<u64> {
        None
    }

    /// Pages of the data file, free ones included.
    ///
    /// # Errors
    /// As `page`.
    fn page_count(&self) -> Result<u64> {
        Ok(u64_at(&self.page_ref(META)?, PAGE_COUNT_AT))
    }

    /// The root of the catalog, the tree of table names.
    #[doc(hidden)]
    fn catalog(&self) -> Result<PageNo> {
        Ok(PageNo(u64_at(&self.page_ref(META)?, CATALOG_AT)))
    }

    /// The low half of the store's identity.
    #[doc(hidden)]
    fn store(&self) -> u64;
}

/// Turns the error of reading a page into `NoSuchPage` if the page does not exist.
fn absent(pages: &impl Pages, page: PageNo, error: Error) -> Error {
    let is_beyond = || page != META && pages.page_count().is_ok_and(|count| page.0 >= count);
    match error {
        Error::CorruptPage { .. } | Error::SnapshotTooOld if is_beyond() => Error::NoSuchPage { page },
        other => other,
    }
}

/// A snapshot: what was committed when it began.
///
/// Versions that later commits replace are kept for it, in memory as long as there is space. What a transaction
/// larger than the cache changes is read from the files, until a checkpoint has overwritten it. After that, or when
/// memory was short, reads fail with [`Error::SnapshotTooOld`].
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
        if self.is_cut(page)? {
            return Err(Error::NoSuchPage { page });
        }
        self.page_ref(page).map(PageRef::into_page)
    }

    fn is_cut(&self, page: PageNo) -> Result<bool> {
        self.inner.is_cut(page, || self.page_count())
    }

    fn root_of(&self, number: u32, root: PageNo) -> PageNo {
        self.inner.roots.find(number, root, self.sequence)
    }

    fn page_ref(&self, page: PageNo) -> Result<PageRef<'_>> {
        self.inner.page_ref(page, View::At(self.sequence)).map_err(|error| absent(self, page, error))
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

/// The writing transaction. Dropped without a commit, it is rolled back.
///
/// A change that fails before it has changed anything can be tried again or left out. After one that fails halfway,
/// the transaction refuses everything but being dropped, including its commit ([`Error::TransactionBroken`]).
pub struct WriteTx<'a> {
    inner: &'a Inner,
    writing: MutexGuard<'a, Writing>,
    tx: u64,
    copies: Copies<'a>,
    /// The changed pages that may be in memory.
    memory_pages: usize,
    /// It has changed more pages than may be in memory with their earlier versions.
    is_large: bool,
    /// The leaf of the last insertion.
    pub(crate) finger: Finger,
    /// The page that the user was last lent for changes; what is written into its header is discarded.
    lent: Option<PageNo>,
    /// The numbers of entries of the tables that it changes, by root.
    pub(super) entries: FxHashMap<PageNo, u64>,
    /// Pages of a large transaction that were logged before its commit: the record, and its length.
    logged: FxHashMap<PageNo, (Lsn, usize)>,
    /// Pages from this number on did not exist before, as far as any snapshot knows.
    fresh_from: u64,
    /// Changes of pages that are encoded before the commit.
    ahead: EncodedAhead,
    /// How long it waited for the previous writer, in nanoseconds.
    queued_ns: u64,
    /// Since when it has the turn to write, in nanoseconds of the monotonic clock.
    turn_since: u64,
    /// How often a page was handed out for changes.
    changes: u64,
    /// Why a change failed halfway.
    broken: Option<String>,
    /// Roots of tables that a compaction moves: number, from, to.
    pub(super) moved_roots: Vec<(u32, PageNo, PageNo)>,
}

/// A commit's position in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Commits are numbered in order, from 1.
    pub sequence: u64,
    /// The commit record. The commit is durable when the log is durable up to here.
    pub lsn: Lsn,
}

/// A commit that was appended and installed.
struct InstalledCommit {
    committed: Committed,
    /// When its records were appended, in nanoseconds of the monotonic clock.
    appended: u64,
    pages: usize,
    load: Load,
}

impl Pages for WriteTx<'_> {
    fn page(&self, page: PageNo) -> Result<Page> {
        if self.is_cut(page)? {
            return Err(Error::NoSuchPage { page });
        }
        self.page_ref(page).map(PageRef::into_page)
    }

    fn is_cut(&self, page: PageNo) -> Result<bool> {
        self.inner.is_cut(page, || self.page_count())
    }

    fn root_of(&self, number: u32, root: PageNo) -> PageNo {
        self.inner.roots.find(number, root, u64::MAX)
    }

    fn page_ref(&self, page: PageNo) -> Result<PageRef<'_>> {
        self.check()?;
        if let Some(copy) = self.copies.get(page) {
            if self.lent == Some(page) && has_header(&copy.content) {
                let mut content = copy.content.clone();
                content.make_mut()[..PAGE_HEADER_BYTES].fill(0);
                return Ok(content.into());
            }
            return Ok((&copy.content).into());
        }
        match self.copies.read_aside(page)? {
            Some(content) => Ok(content.into()),
            None => self.inner.page_ref(page, View::Newest).map_err(|error| absent(self, page, error)),
        }
    }

    fn changed_entries(&self, root: PageNo) -> Option<u64> {
        self.entries.get(&root).copied()
    }

    fn store(&self) -> u64 {
        self.inner.geometry.store
    }
}

impl<'a> WriteTx<'a> {
    pub(crate) fn begin(inner: &'a Inner) -> Result<Self> {
        inner.journal.check()?;
        let (mut writing, queued_ns) = inner.begin_writing()?;
        inner.writer_thread.store(thread_number(), Ordering::Relaxed);
        let tx = writing.next_tx;
        writing.next_tx += 1;
        inner.last_tx.store(tx, Ordering::Release);
        let kept = std::mem::take(&mut writing.buffers.copies);
        let memory = Arc::clone(&inner.memory);
        let copies = Copies::new(inner.disk.as_ref(), memory, kept, inner.options.background);
        let mut begun = Self {
            inner,
            writing,
            tx,
            copies,
            memory_pages: inner.copies_max(),
            is_large: false,
            finger: Finger::default(),
            lent: None,
            entries: FxHashMap::default(),
            logged: FxHashMap::default(),
            fresh_from: 0,
            ahead: EncodedAhead::new(inner.options.cache_bytes, inner.options.background),
            queued_ns,
            turn_since: monotonic_ns(),
            changes: 0,
            broken: None,
            moved_roots: Vec::new(),
        };
        if inner.last_sequence.load(Ordering::Acquire) > 0 {
            let count = u64_at(&begun.page_ref(META)?, PAGE_COUNT_AT);
            inner.note_page_count_at_first(count);
            begun.fresh_from = count.max(begun.writing.cut.end);
        }
        Ok(begun)
    }

    /// The pages that were cut off and may still be read.
    pub(crate) fn cut_pages(&mut self) -> &mut CutPages {
        &mut self.writing.cut
    }

    /// The number of pages, in the content of the meta page.
    pub(crate) fn page_count_of(meta: &[u8]) -> u64 {
        u64_at(meta, PAGE_COUNT_AT)
    }

    /// The number that its commit will have.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.writing.sequence + 1
    }

    /// The changes of the first commit of a store.
    pub(crate) fn format_meta(&mut self) -> Result<PageNo> {
        self.add_fresh(META, self.inner.memory.zeros());
        let meta = self.any_page_mut(META)?;
        page::set_owner(meta, page::OWNER_META);
        put_u64(meta, PAGE_COUNT_AT, 1);
        let catalog = self.allocate()?;
        put_u64(self.any_page_mut(META)?, CATALOG_AT, catalog.0);
        Ok(catalog)
    }

    /// Bytes of a page, including its header.
    pub(crate) fn page_bytes(&self) -> usize {
        self.inner.geometry.page_bytes
    }

    /// Fails if an earlier change failed halfway.
    fn check(&self) -> Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(cause) => Err(Error::TransactionBroken { cause: cause.clone() }),
        }
    }

    /// Does a change of several pages. If it fails after the first of them was changed, the transaction is broken.
    pub(crate) fn change_several<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = self.changes;
        let done = change(self);
        if let Err(error) = &done
            && self.changes > before
        {
            self.break_off(error);
        }
        done
    }

    /// From now on the transaction refuses everything but being dropped.
    pub(super) fn break_off(&mut self, cause: &Error) {
        self.broken = Some(cause.to_string());
    }

    /// Commits; returns when the commit is acknowledged according to `durability`. `None` if nothing was changed.
    ///
    /// # Errors
    /// When a change failed halfway or the log is full (nothing is committed, the store stays usable), or
    /// an I/O fails (the store becomes read-only, and whether the commit is durable is known only after opening it
    /// again).
    pub fn commit(mut self, durability: Durability) -> Result<Option<Committed>> {
        self.check()?;
        self.clear_lent_header();
        let called = monotonic_ns();
        self.store_entries()?;
        self.log_ahead()?;
        let Some(InstalledCommit { committed, appended, pages, load }) = self.install()? else {
            return Ok(None);
        };
        let (inner, queued_ns) = (self.inner, self.queued_ns);
        inner.counters.record_turn(appended.saturating_sub(self.turn_since));
        drop(self);
        match durability {
            Durability::Full => {
                if let Some(WriteTimes { submitted, written, durable, .. }) =
                    inner.journal.wait(committed.lsn)?
                {
                    let instants = Instants { queued_ns, called, appended, submitted, written, durable };
                    inner.counters.record_commit(committed.sequence, &instants);
                }
                inner.drop_replaced(pages);
            }
            Durability::Delayed => {
                inner.journal.acknowledge_delayed(committed.sequence);
                if inner.journal.waiting_bytes() >= inner.options.delayed_bytes {
                    inner.journal.flush()?;
                }
            }
        }
        inner.after_commit(&load);
        Ok(Some(committed))
    }

    /// The first commit, which creates the store.
    pub(crate) fn commit_full(mut self) -> Result<()> {
        self.store_entries()?;
        let InstalledCommit { committed, .. } = self.install()?.expect("a new store's pages are changes");
        let inner = self.inner;
        drop(self);
        inner.journal.wait(committed.lsn).map(|_| ())
    }

    /// Rolls the transaction back, as dropping it does, and makes every earlier delayed commit durable, as SQL
    /// Server does.
    ///
    /// # Errors
    /// When that write fails; the store is then read-only. The transaction is rolled back in any case.
    pub fn rollback(self) -> Result<()> {
        let inner = self.inner;
        drop(self);
        inner.journal.flush()
    }

    /// Appends the commit and installs the new versions of its pages.
    fn install(&mut self) -> Result<Option<InstalledCommit>> {
        if self.copies.is_empty() {
            return Ok(None);
        }
        self.ahead.finish();
        let requested = if self.is_large { 64 } else { self.log_bytes() };
        self.inner.ensure_log_space(requested)?;
        let Writing { sequence: newest, buffers, .. } = &mut *self.writing;
        let Buffers { changed, records, .. } = buffers;
        changed.clear();
        if !self.is_large {
            let copies = self.copies.in_memory.drain();
            changed.extend(copies.map(|(page, copy)| Changed { page, copy: Some(copy), image: false }));
        }
        changed.sort_unstable_by_key(|changed| changed.page);
        let gate = self.inner.enter_gate(&self.ahead, changed, requested).inspect_err(|_| changed.clear())?;
        let sequence = *newest + 1;
        let journal = &self.inner.journal;
        let mut records = Records::begin(journal, self.tx, records);
        let (ahead, fresh_from) = (&self.ahead, self.fresh_from);
        let installed = if changed.len() >= MANY_PAGES {
            let mut append =
                || self.inner.append_and_install(sequence, changed, &mut records, ahead, fresh_from);
            if self.inner.options.background { journal.write_behind(append)? } else { append()? }
        } else {
            changed.iter().try_for_each(|changed| changed.log(&mut records, ahead))?;
            0
        };
        let (logged, commit) = records.commit(sequence)?;
        let appended = monotonic_ns();
        // Another thread's write may make it durable before its pages are installed.
        yield_in_schedule();
        *newest = sequence;
        self.inner.last_sequence.store(sequence, Ordering::Release);
        self.inner.journal.counters.log.commits.fetch_add(1, Ordering::Relaxed);

        let visible = self.inner.journal.visible();
        let pages_of_commit = changed.len() + self.logged.len();
        let mut pages = lock(&self.inner.pages);
        for (page, (lsn, record_bytes)) in self.logged.drain() {
            let fresh = page.0 >= self.fresh_from;
            let content = self.copies.in_memory.remove(&page).map(|copy| copy.content);
            let done = Installed { page, content, base: None, lsn, image: true, record_bytes, fresh };
            pages.install(sequence, visible, done);
        }
        for page in take_logged(&mut changed[installed..], &logged[installed..], fresh_from) {
            pages.install(sequence, visible, page);
        }
        changed.clear();
        pages.restore_limit();
        pages.drop_old_versions_after_commit(visible, pages_of_commit);
        pages.evict(visible, self.inner.journal.durable());
        let dirty_pages = pages.dirty_pages();
        drop(pages);
        let slots = self.inner.journal.end_transaction(Some(sequence));
        drop(gate);
        let load = self.inner.load_of(commit, slots, dirty_pages);
        let committed = Committed { sequence, lsn: commit };
        Ok(Some(InstalledCommit { committed, appended, pages: pages_of_commit, load }))
    }
}

impl Inner {
    /// Takes the gate, with enough space in the log for a commit of these pages; so many bytes were requested already.
    fn enter_gate(
        &self,
        ahead: &EncodedAhead,
        changed: &mut [Changed],
        mut requested: u64,
    ) -> Result<MutexGuard<'_, ()>> {
        // Each round but the last drops what was encoded of a page.
        loop {
            let gate = lock(&self.gate);
            if self.mark_images(ahead, changed) {
                return Ok(gate);
            }
            // A checkpoint has begun to write pages whose changes were encoded.
            let needed = self.log_bytes(ahead, changed.iter().filter_map(|changed| changed.copy.as_ref()));
            if needed <= requested {
                return Ok(gate);
            }
            drop(gate);
            requested = needed;
            self.ensure_log_space(requested)?;
        }
    }

    /// Appends the pages of commit `sequence` to the log, and installs them as they are appended. Returns how many are installed.
    /// No transaction reads them before the commit is visible. If a page cannot be appended, the store becomes read-only: the
    /// commit never becomes visible, and the earlier versions of its pages stay readable.
    fn append_and_install(
        &self,
        sequence: u64,
        changed: &mut [Changed],
        records: &mut Records<'_>,
        ahead: &EncodedAhead,
        fresh_from: u64,
    ) -> Result<usize> {
        let mut installed = 0;
        for index in 0..changed.len() {
            changed[index].log(records, ahead)?;
            let appended = &records.appended()[installed..];
            if !appended.is_empty() {
                let mut pages = lock(&self.pages);
                let visible = self.journal.visible();
                for page in take_logged(&mut changed[installed..], appended, fresh_from) {
                    pages.install(sequence, visible, page);
                }
                installed += appended.len();
            }
        }
        Ok(installed)
    }
}

impl Drop for WriteTx<'_> {
    fn drop(&mut self) {
        // Before the next writer begins.
        self.ahead.discard();
        // Before the next writer stores its own number: a thread that finds its number there must be the writer.
        self.inner.writer_thread.store(0, Ordering::Relaxed);
        let copies = std::mem::take(&mut self.copies.in_memory);
        self.writing.buffers.keep_copies(copies);
        if self.is_large {
            lock(&self.inner.pages).restore_limit();
        }
        if !self.logged.is_empty() {
            // If this record cannot be appended, the first record of the next transaction ends this one as well.
            let mut encoded = Vec::new();
            Record::Abort.encode(self.tx, &mut encoded);
            let length = encoded.len();
            let _ = self.inner.journal.append(&encoded, &[length], None, &mut Vec::new());
            self.inner.journal.end_transaction(None);
        }
    }
}
