//! Page allocation: which pages exist, which are free, and which belong to the user.

use super::{Pages, WriteTx};
use crate::engine::cache::Page;
use crate::error::{Error, Result};
use crate::format::codec::{put_u64, u64_at};
use crate::format::page::{self, PAGE_HEADER_BYTES};
use crate::types::PageNo;

/// The meta page, after the page header.
///
/// ```text
/// 32 pages u64 in all     40 free u64 the first free page, 0 for none     48 catalog u64 the root of the tables' names
/// 56 unlisted u64: free pages from this number on are not in the list of free pages; 0: all are
/// ```
/// A compaction empties the list and sets `unlisted` to the first page that can be free. From there on free pages are
/// found by their headers, the lowest first, while the list is empty; a page that is freed there is not put into the
/// list. Programs from before compactions do not know the field. Pages that they do not find are not lost: each
/// compaction begins by emptying the list.
///
/// A free page, marked as such in its header, holds the number of the next one at 32, `FREEPAGE` at 40, and zeros.
/// In a store made before headers had owners only the mark at 40 identifies it.
pub(in crate::engine) const META: PageNo = PageNo(0);
pub(super) const PAGE_COUNT_AT: usize = 32;
const FREE_HEAD_AT: usize = 40;
pub(super) const CATALOG_AT: usize = 48;
const UNLISTED_FROM_AT: usize = 56;
const NEXT_FREE_AT: usize = 32;
const FREE_MARK_AT: usize = 40;
const FREE_MARK: u64 = u64::from_le_bytes(*b"FREEPAGE");

const _: () = assert!(PAGE_HEADER_BYTES == PAGE_COUNT_AT);

/// The catalog is the first page that a new store allocates, and its root stays there.
const CATALOG: PageNo = PageNo(1);

/// Pages that one allocation examines to find an unlisted free page. After that the file is extended, and the next
/// allocation goes on from there.
const UNLISTED_EXAMINED_MAX: u64 = 64;

impl WriteTx<'_> {
    /// Whether this is the content of a free page.
    pub(crate) fn is_free(&self, page: &[u8]) -> Result<bool> {
        let is_marked = || {
            u64_at(page, FREE_MARK_AT) == FREE_MARK && page[FREE_MARK_AT + 8..].iter().all(|byte| *byte == 0)
        };
        match page::owner(page) {
            page::OWNER_FREE => Ok(true),
            page::OWNER_USER if is_marked() => Ok(page::owner(&self.page(META)?) == page::OWNER_USER),
            _ => Ok(false),
        }
    }

    /// Fails if the page does not belong to the user.
    fn check_user_page(&self, page: PageNo, holds: &[u8]) -> Result<()> {
        let what = match page::owner(holds) {
            _ if page == META => "it holds the store's own counts",
            page::OWNER_CATALOG => "it holds the tables' names",
            _ if page == CATALOG => "it holds the tables' names",
            page::OWNER_USER | page::OWNER_FREE => return Ok(()),
            _ => "it is part of a table",
        };
        Err(Error::ReservedPage { page, what })
    }

    /// The bytes of a page that `allocate` returned, to be changed. The first 32 belong to the engine: they read as
    /// zeros, whatever is written there.
    ///
    /// # Errors
    /// When the page does not exist, is free, belongs to the engine (the meta page, or part of a table),
    /// is damaged or cannot be read; when pages must be set aside and there is no space; or after a change that failed
    /// halfway.
    pub fn page_mut(&mut self, page: PageNo) -> Result<&mut [u8]> {
        let before = self.allocated_page(page)?;
        self.check_user_page(page, &before)?;
        self.change(page, before)?;
        self.lent = Some(page);
        Ok(self.content_mut(page))
    }

    /// As `page_mut`, of any page.
    pub(crate) fn any_page_mut(&mut self, page: PageNo) -> Result<&mut [u8]> {
        let before = self.allocated_page(page)?;
        self.change(page, before)
    }

    fn allocated_page(&self, page: PageNo) -> Result<Page> {
        let holds = self.page(page)?;
        if self.is_free(&holds)? { Err(Error::NoSuchPage { page }) } else { Ok(holds) }
    }

    /// Ends the loan of a page to the user: what was written into its header is cleared.
    pub(super) fn clear_lent_header(&mut self) {
        if let Some(page) = self.lent.take()
            && let Some(copy) = self.copies.in_memory.get_mut(&page)
            && has_header(&copy.content)
        {
            copy.content_mut()[..PAGE_HEADER_BYTES].fill(0);
        }
    }

    /// A table number that has not been used for a long time.
    pub(crate) fn table_number(&mut self) -> u32 {
        let tables = &mut self.writing.tables;
        *tables = tables.wrapping_add(1).max(page::TABLES_FROM);
        *tables
    }

    /// Allocates a page of zeros.
    ///
    /// # Errors
    /// When the list of free pages is damaged, and as `page_mut`.
    pub fn allocate(&mut self) -> Result<PageNo> {
        let damaged = |page, why: &str| Err(Error::CorruptPage { page, why: why.into() });
        let meta = self.page(META)?;
        let count = u64_at(&meta, PAGE_COUNT_AT);
        let head = PageNo(u64_at(&meta, FREE_HEAD_AT));
        if head != META {
            if head.0 >= count {
                return damaged(head, "the list of free pages leads to it, and there is none");
            }
            let free = self.page(head)?;
            if !self.is_free(&free)? {
                return damaged(head, "the list of free pages leads to it, and it is not free");
            }
            let next = u64_at(&free, NEXT_FREE_AT);
            self.reserve_pages(&[META, head])?;
            self.change(head, free)?.fill(0);
            put_u64(self.change(META, meta)?, FREE_HEAD_AT, next);
            return Ok(head);
        }
        if u64_at(&meta, UNLISTED_FROM_AT) != 0
            && let Some(page) = self.take_unlisted(count, UNLISTED_EXAMINED_MAX)?
        {
            return Ok(page);
        }
        let meta = self.page(META)?;
        let page = PageNo(count);
        if self.inner.offset_of(page).is_none() {
            return damaged(META, "it counts more pages than a file can hold");
        }
        if count < self.fresh_from {
            // It was cut off, and snapshots may read what it was.
            let before = self.page_ref(page)?.into_page();
            self.reserve_pages(&[META, page])?;
            put_u64(self.change(META, meta)?, PAGE_COUNT_AT, count + 1);
            self.change(page, before)?.fill(0);
            return Ok(page);
        }
        self.reserve_pages(&[META, page])?;
        put_u64(self.change(META, meta)?, PAGE_COUNT_AT, count + 1);
        self.add_fresh(page, self.inner.memory.zeros());
        Ok(page)
    }

    /// Takes the first free page of the next `at_most` from `unlisted_from` on, if it is below `end`. The list must be
    /// empty, or hold none of these pages.
    pub(crate) fn take_unlisted(&mut self, end: u64, at_most: u64) -> Result<Option<PageNo>> {
        let (from, count) = (self.unlisted_from()?, self.page_count()?);
        if from == 0 {
            return Ok(None);
        }
        let stop = end.min(count).min(from.saturating_add(at_most));
        let (mut at, mut found) = (from, None);
        while at < stop && found.is_none() {
            let page = PageNo(at);
            at += 1;
            match self.page(page) {
                Ok(holds) => found = self.is_free(&holds)?.then_some((page, holds)),
                // Whatever it is, another page serves as well.
                Err(Error::CorruptPage { .. } | Error::Io { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let taken = found.as_ref().map(|(page, _)| *page);
        self.reserve_pages(&[META, taken.unwrap_or(META)])?;
        if let Some((page, holds)) = found {
            self.change(page, holds)?.fill(0);
        }
        self.set_unlisted_from(if at < count { at } else { 0 })?;
        Ok(taken)
    }

    /// Free pages from here on are not in the list; 0: all are.
    pub(crate) fn unlisted_from(&self) -> Result<u64> {
        Ok(u64_at(&self.page_ref(META)?, UNLISTED_FROM_AT))
    }

    pub(crate) fn set_unlisted_from(&mut self, from: u64) -> Result<()> {
        let meta = self.page(META)?;
        if u64_at(&meta, UNLISTED_FROM_AT) != from {
            put_u64(self.change(META, meta)?, UNLISTED_FROM_AT, from);
        }
        Ok(())
    }

    /// Whether the list of free pages holds any.
    pub(crate) fn has_listed(&self) -> Result<bool> {
        Ok(u64_at(&self.page_ref(META)?, FREE_HEAD_AT) != 0)
    }

    /// Empties the list of free pages. They stay free, and are found by their headers.
    pub(crate) fn empty_free_list(&mut self) -> Result<()> {
        let meta = self.any_page_mut(META)?;
        put_u64(meta, FREE_HEAD_AT, 0);
        put_u64(meta, UNLISTED_FROM_AT, CATALOG.0 + 1);
        Ok(())
    }

    /// The last page does not exist any more. It must be free or moved, and not in the list.
    pub(crate) fn cut_last_page(&mut self) -> Result<()> {
        let count = self.page_count()? - 1;
        assert!(count > CATALOG.0, "the store's own pages stay");
        let sequence = self.next_sequence();
        let cut = &mut self.writing.cut;
        (cut.end, cut.sequence) = (cut.end.max(self.fresh_from), sequence);
        self.inner.note_page_count(count);
        put_u64(self.any_page_mut(META)?, PAGE_COUNT_AT, count);
        Ok(())
    }

    /// Frees a page that `allocate` returned.
    pub fn free(&mut self, page: PageNo) -> Result<()> {
        let holds = self.allocated_page(page)?;
        self.check_user_page(page, &holds)?;
        drop(holds);
        self.free_any(page)
    }

    /// As `free`, of any page but the meta page.
    pub(crate) fn free_any(&mut self, page: PageNo) -> Result<()> {
        let meta = self.page(META)?;
        if page == META || page.0 >= u64_at(&meta, PAGE_COUNT_AT) {
            return Err(Error::NoSuchPage { page });
        }
        let head = u64_at(&meta, FREE_HEAD_AT);
        let given = self.page(page)?;
        if self.is_free(&given)? {
            return Err(Error::CorruptTree { page, why: "it is given back twice" });
        }
        self.reserve_pages(&[META, page])?;
        let unlisted_from = u64_at(&meta, UNLISTED_FROM_AT);
        let is_listed = unlisted_from == 0 || page.0 < unlisted_from;
        let bytes = self.change(page, given)?;
        bytes.fill(0);
        put_u64(bytes, NEXT_FREE_AT, if is_listed { head } else { 0 });
        put_u64(bytes, FREE_MARK_AT, FREE_MARK);
        page::set_owner(bytes, page::OWNER_FREE);
        if is_listed {
            put_u64(self.change(META, meta)?, FREE_HEAD_AT, page.0);
        }
        Ok(())
    }
}

/// Whether the header of a user's page contains anything.
pub(super) fn has_header(page: &[u8]) -> bool {
    page[..PAGE_HEADER_BYTES].iter().any(|byte| *byte != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Layout, Options, Recovery, Store};
    use crashlab::SimDisk;
    use std::sync::Arc;

    fn options(recovery: Recovery) -> Options {
        Options { background: false, publish: false, recovery, ..Options::default() }
    }

    fn store(disk: &Arc<SimDisk>) -> Store {
        let layout = Layout { vlf_bytes: 256 << 10, vlfs: 3, ..Layout::default() };
        Store::create_on(disk.clone(), layout, options(Recovery::Instant), 1).unwrap()
    }

    fn allocated(store: &Store) -> PageNo {
        let mut tx = store.write().unwrap();
        let page = tx.allocate().unwrap();
        tx.commit(Durability::Full).unwrap();
        page
    }

    #[test]
    fn a_missing_page_is_reported_as_such_whatever_its_number() {
        let disk = Arc::new(SimDisk::new());
        let created = store(&disk);
        allocated(&created);
        drop(created);
        for recovery in [Recovery::Instant, Recovery::Wide] {
            let disk = Arc::new(SimDisk::holding(disk.files()));
            let store = Store::open_on(disk, options(recovery)).unwrap();
            let reader = store.read().unwrap();
            let mut tx = store.write().unwrap();
            let count = tx.page_count().unwrap();
            assert!(reader.page(PageNo(count - 1)).is_ok());
            for number in [count, count + 70, 1 << 52, u64::MAX / 4096, u64::MAX - 1, u64::MAX] {
                let page = PageNo(number);
                let is_missing = |error: Option<Error>| {
                    assert!(
                        matches!(error, Some(Error::NoSuchPage { page: reported }) if reported == page),
                        "{page} of {count}: {error:?}"
                    );
                };
                is_missing(reader.page(page).err());
                is_missing(tx.page(page).err());
                is_missing(tx.page_mut(page).err());
                is_missing(tx.free(page).err());
            }
        }
    }

    #[test]
    fn a_free_page_cannot_be_changed_or_given_back_and_comes_again_as_zeros() {
        let store = store(&Arc::new(SimDisk::new()));
        let page = allocated(&store);
        let mut tx = store.write().unwrap();
        // The mark of a free page followed by other bytes is user data.
        tx.page_mut(page).unwrap()[32..].fill(b'x');
        tx.page_mut(page).unwrap()[FREE_MARK_AT..][..8].copy_from_slice(b"FREEPAGE");
        tx.free(page).unwrap();
        assert!(matches!(tx.page_mut(page), Err(Error::NoSuchPage { page: reported }) if reported == page));
        assert!(matches!(tx.free(page), Err(Error::NoSuchPage { page: reported }) if reported == page));
        assert_eq!(tx.allocate().unwrap(), page);
        assert!(tx.page_mut(page).unwrap().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_damaged_list_of_free_pages_hands_out_no_page_that_is_in_use() {
        let store = store(&Arc::new(SimDisk::new()));
        let used = allocated(&store);
        for (at, number, named) in [
            (FREE_HEAD_AT, used.0, used),
            (FREE_HEAD_AT, 1 << 40, PageNo(1 << 40)),
            (PAGE_COUNT_AT, u64::MAX, META),
        ] {
            let mut tx = store.write().unwrap();
            put_u64(tx.any_page_mut(META).unwrap(), at, number);
            let refused = tx.allocate();
            assert!(
                matches!(refused, Err(Error::CorruptPage { page, .. }) if page == named),
                "{named}: {refused:?}"
            );
        }
    }

    // The format of stores made before page headers had owners.
    #[test]
    fn a_store_whose_pages_have_no_owners_is_used_as_ever() {
        use crate::Tables;
        let disk = Arc::new(SimDisk::new());
        let created = store(&disk);
        let put = |tx: &mut WriteTx<'_>, from: u32| {
            let table = tx.table("t")?;
            (from..from + 300).try_for_each(|key| tx.put(table, &key.to_be_bytes(), &[7; 100]))
        };
        let make = |tx: &mut WriteTx<'_>| tx.create_table("t").and_then(|_| put(tx, 0));
        created.transact(Durability::Full, make).unwrap();
        let mut tx = created.write().unwrap();
        let freed = tx.allocate().unwrap();
        tx.free(freed).unwrap();
        for page in (0..tx.page_count().unwrap()).map(PageNo) {
            let before = tx.page(page).unwrap();
            let bytes = tx.change(page, before).unwrap();
            if page::owner(bytes) == page::OWNER_FREE {
                put_u64(bytes, FREE_MARK_AT, FREE_MARK);
            }
            page::set_owner(bytes, page::OWNER_USER);
        }
        tx.commit(Durability::Full).unwrap();
        drop(created);
        let store = Store::open_on(disk, options(Recovery::Instant)).unwrap();
        let mut tx = store.write().unwrap();
        assert!(matches!(tx.page_mut(freed), Err(Error::NoSuchPage { .. })));
        for page in [META, CATALOG] {
            assert!(matches!(tx.page_mut(page), Err(Error::ReservedPage { .. })));
        }
        assert_eq!(tx.allocate().unwrap(), freed);
        put(&mut tx, 300).unwrap();
        let old = tx.table("t").unwrap();
        assert_eq!(tx.range(old, b"", None).unwrap().count(), 600);
        tx.drop_table("t").unwrap();
        let new = tx.create_table("new").unwrap();
        assert!(matches!(tx.put(old, b"x", b"y"), Err(Error::StaleTable { .. })));
        tx.put(new, b"x", b"y").unwrap();
        tx.commit(Durability::Full).unwrap();
        // None of its pages says whether it can be moved.
        while !store.compact(8).unwrap().is_done {}
        let reader = store.read().unwrap();
        assert_eq!(reader.get(new, b"x").unwrap(), Some(b"y".to_vec()));
    }
}
