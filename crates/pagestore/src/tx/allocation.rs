//! Which pages there are, and which of them are free.

use super::{OwnPage, Pages, WriteTx};
use crate::codec::{put_u64, u64_at};
use crate::error::{Error, Result};
use crate::lsn::PageNo;
use crate::page::PAGE_HEADER_BYTES;

/// The store's own page, after the page header.
///
/// ```text
/// 32 pages u64 in all     40 free u64 the first free page, 0 for none     48 catalog u64 the root of the tables' names
/// ```
/// A free page holds the number of the next one at 32, `FREE` at 40, and zeros.
pub(super) const META: PageNo = PageNo(0);
pub(super) const PAGE_COUNT_AT: usize = 32;
const FREE_HEAD_AT: usize = 40;
pub(super) const CATALOG_AT: usize = 48;
const NEXT_FREE_AT: usize = 32;
const FREE_MARK_AT: usize = 40;
const FREE_MARK: u64 = u64::from_le_bytes(*b"FREEPAGE");

const _: () = assert!(PAGE_HEADER_BYTES == PAGE_COUNT_AT);

/// Whether a page was given back, by what it holds.
pub(super) fn is_free(page: &[u8]) -> bool {
    u64_at(page, FREE_MARK_AT) == FREE_MARK && page[FREE_MARK_AT + 8..].iter().all(|byte| *byte == 0)
}

impl WriteTx<'_> {
    /// A new page of zeros.
    ///
    /// # Errors
    /// When what the store knows of its free pages is damaged, and as `page_mut`.
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
            if !is_free(&free) {
                return damaged(head, "the list of free pages leads to it, and it is not free");
            }
            let next = u64_at(&free, NEXT_FREE_AT);
            self.make_room(&[META, head])?;
            self.change(head, free)?.fill(0);
            put_u64(self.change(META, meta)?, FREE_HEAD_AT, next);
            return Ok(head);
        }
        let page = PageNo(count);
        if self.inner.offset_of(page).is_none() {
            return damaged(META, "it counts more pages than a file can hold");
        }
        self.make_room(&[META, page])?;
        put_u64(self.change(META, meta)?, PAGE_COUNT_AT, count + 1);
        self.own.insert(page, OwnPage { content: self.empty_page(), base: None });
        Ok(page)
    }

    /// Gives a page back.
    ///
    /// # Errors
    /// When there is no such page or it is free already, and as `page_mut`.
    pub fn free(&mut self, page: PageNo) -> Result<()> {
        let meta = self.page(META)?;
        if page == META || page.0 >= u64_at(&meta, PAGE_COUNT_AT) {
            return Err(Error::NoSuchPage { page });
        }
        let head = u64_at(&meta, FREE_HEAD_AT);
        let given = self.page(page)?;
        if is_free(&given) {
            return Err(Error::CorruptTree { page, why: "it is given back twice" });
        }
        self.make_room(&[META, page])?;
        let bytes = self.change(page, given)?;
        bytes.fill(0);
        put_u64(bytes, NEXT_FREE_AT, head);
        put_u64(bytes, FREE_MARK_AT, FREE_MARK);
        put_u64(self.change(META, meta)?, FREE_HEAD_AT, page.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimDisk;
    use crate::{Durability, Layout, Options, Recovery, Store};
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
    fn a_page_that_is_not_there_is_told_as_such_whatever_its_number() {
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
                let is_told = |error: Option<Error>| {
                    assert!(
                        matches!(error, Some(Error::NoSuchPage { page: told }) if told == page),
                        "{page} of {count}: {error:?}"
                    );
                };
                is_told(reader.page(page).err());
                is_told(tx.page(page).err());
                is_told(tx.page_mut(page).err());
                is_told(tx.free(page).err());
            }
        }
    }

    #[test]
    fn a_free_page_cannot_be_changed_or_given_back_and_comes_again_as_zeros() {
        let store = store(&Arc::new(SimDisk::new()));
        let page = allocated(&store);
        let mut tx = store.write().unwrap();
        // What looks like the mark of a free page among other bytes is a page's own.
        tx.page_mut(page).unwrap()[32..].fill(b'x');
        tx.page_mut(page).unwrap()[FREE_MARK_AT..][..8].copy_from_slice(b"FREEPAGE");
        tx.free(page).unwrap();
        assert!(matches!(tx.page_mut(page), Err(Error::NoSuchPage { page: told }) if told == page));
        assert!(matches!(tx.free(page), Err(Error::CorruptTree { page: told, .. }) if told == page));
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
            put_u64(tx.page_mut(META).unwrap(), at, number);
            let refused = tx.allocate();
            assert!(
                matches!(refused, Err(Error::CorruptPage { page, .. }) if page == named),
                "{named}: {refused:?}"
            );
        }
    }
}
