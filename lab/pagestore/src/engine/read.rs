//! Reading a page wherever its version is: in the cache, the data file or the log.

use crate::engine::cache::front::Pinned;
use crate::engine::cache::{Lookup, Page, View};
use crate::engine::inner::Inner;
use crate::error::{Error, Result};
use crate::format::page;
use crate::sync::lock;
use crate::types::{Lsn, PageNo};
use pagestore_disk::FileId;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The bytes of a page, for as long as this exists. Unlike a [`Page`] it shares no count with other readers.
#[doc(hidden)]
pub struct PageRef<'a>(Source<'a>);

enum Source<'a> {
    Pinned(Pinned),
    Owned(Page),
    Borrowed(&'a Page),
}

impl PageRef<'_> {
    /// The bytes, for as long as the caller likes.
    #[inline]
    pub(crate) fn into_page(self) -> Page {
        match self.0 {
            Source::Pinned(pinned) => Page::from(Arc::clone(pinned.as_ref().expect("a version was found"))),
            Source::Owned(page) => page,
            Source::Borrowed(page) => page.clone(),
        }
    }
}

impl<'a> From<&'a Page> for PageRef<'a> {
    fn from(page: &'a Page) -> Self {
        Self(Source::Borrowed(page))
    }
}

impl From<Page> for PageRef<'_> {
    fn from(page: Page) -> Self {
        Self(Source::Owned(page))
    }
}

impl Deref for PageRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Source::Pinned(pinned) => pinned.as_ref().expect("a version was found"),
            Source::Owned(page) => page,
            Source::Borrowed(page) => page,
        }
    }
}

impl Inner {
    /// As `page`, without a lock if the page is in the cache.
    #[inline]
    pub(crate) fn page_ref(&self, page: PageNo, view: View) -> Result<PageRef<'static>> {
        match self.front.find(page, view) {
            Some(pinned) => Ok(PageRef(Source::Pinned(pinned))),
            None => self.page(page, view).map(PageRef::from),
        }
    }

    /// Reads the version of a page in `view` from the cache, the data file or the log.
    pub(crate) fn page(&self, page: PageNo, view: View) -> Result<Page> {
        loop {
            let lookup = lock(&self.pages).lookup(page, view);
            let (read, token) = match lookup {
                Lookup::Cached(content) => return Ok(content),
                Lookup::TooOld => return Err(Error::SnapshotTooOld),
                Lookup::Unresolved(runs) => {
                    let chain = runs.chain(page);
                    let mut pages = lock(&self.pages);
                    match chain {
                        Ok(chain) => pages.insert_resolved(page, chain),
                        // A checkpoint has freed its log meanwhile; the page is in the table now.
                        Err(_) if pages.runs().is_none() => {}
                        Err(error) => return Err(error),
                    }
                    continue;
                }
                Lookup::Stored(token) => (self.read_stored(page), token),
                Lookup::Logged(chain, token) => (self.redo(&chain), token),
            };
            let mut pages = lock(&self.pages);
            match read {
                Ok(content) => {
                    if pages.insert_read(page, &content, token) {
                        pages.evict(self.journal.visible(), self.journal.durable());
                        return Ok(content);
                    }
                }
                // The page changed or its log was freed during the read; look it up again.
                Err(_) if !pages.is_current(page, token) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The page's offset in the data file; `None` if no file can be that long.
    pub(crate) fn offset_of(&self, page: PageNo) -> Option<u64> {
        let page_bytes = self.geometry.page_bytes as u64;
        page.0.checked_mul(page_bytes).filter(|offset| *offset <= i64::MAX as u64 - page_bytes)
    }

    fn read_stored(&self, page: PageNo) -> Result<Page> {
        let mut content = self.memory.allocate();
        let bytes = content.make_mut();
        let missing = || Error::CorruptPage { page, why: "the data file ends before it".into() };
        let offset = self.offset_of(page).ok_or_else(missing)?;
        self.disk.read(FileId::Data, offset, bytes).map_err(|error| {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                missing()
            } else {
                Error::io("read", FileId::Data, error)
            }
        })?;
        let lsn = page::unstamp(bytes, self.geometry.store, page)?;
        self.check_log_of(page, lsn)?;
        self.counters.engine.page_reads.fetch_add(1, Ordering::Relaxed);
        Ok(content)
    }

    /// Fails if a page is as of a place that the log had not reached when it was opened, or has not reached: no page is written
    /// before its log is durable, so that a device has lost log that it had acknowledged. A place that this opening has reached
    /// since may be either.
    fn check_log_of(&self, page: PageNo, lsn: Lsn) -> Result<()> {
        let ((found, opened), end) = (self.opening, self.journal.durable());
        if lsn > end || (found < lsn && lsn <= opened) {
            let why = format!(
                "it is as of {lsn}, and the log ended before that: log that was acknowledged is lost"
            );
            return Err(Error::CorruptPage { page, why });
        }
        Ok(())
    }
}
