//! Buffers that a transaction leaves to the next. After a log write the processor's caches are cold, and memory
//! that is not allocated afresh saves the cache misses of the allocator.

use super::encoded_ahead::{Ahead, EncodedAhead};
use super::records::{Encoded, Logged, Records};
use crate::engine::cache::{Installed, Page};
use crate::error::Result;
use crate::format::page;
use crate::types::PageNo;
use rustc_hash::FxHashMap;
use std::sync::atomic::AtomicBool;

/// A hash table with more capacity than this is not kept: iterating over it takes time in proportion to its
/// capacity.
const COPIES_MAX: usize = 64;

/// A page that the writing transaction has changed.
pub(super) struct PageCopy {
    pub(super) content: Page,
    /// `None`: the page did not exist, or the transaction is large and its earlier version is durable.
    pub(super) base: Option<Page>,
    /// It was used since the clock's last visit.
    pub(super) used: AtomicBool,
    /// Its number among the pages that were handed over to be encoded, if it has not changed since.
    pub(super) ahead: Option<Ahead>,
}

impl PageCopy {
    /// A copy that is in use.
    pub(super) fn new(content: Page, base: Option<Page>) -> Self {
        Self { content, base, used: AtomicBool::new(true), ahead: None }
    }

    /// The version that the logged change is based on; `None` if an image is to be logged. A free page is nearly empty, so its
    /// image is shorter than its change.
    pub(super) fn base_of_change(&self) -> Option<&Page> {
        self.base.as_ref().filter(|_| page::owner(&self.content) != page::OWNER_FREE)
    }

    /// The content, for a change. The transaction has the only reference, or makes a copy.
    pub(super) fn content_mut(&mut self) -> &mut [u8] {
        self.ahead = None;
        self.content.make_mut()
    }
}

/// A changed page that is being logged.
pub(super) struct Changed {
    pub page: PageNo,
    /// `None`: it is installed.
    pub copy: Option<PageCopy>,
    pub image: bool,
}

impl Changed {
    /// Logs it; uses the runs that were encoded ahead, if there are any.
    pub(super) fn log(&self, records: &mut Records<'_>, ahead: &EncodedAhead) -> Result<()> {
        let copy = self.copy.as_ref().expect("it is logged before it is installed");
        match copy.ahead.and_then(|encoded| ahead.runs(encoded)) {
            Some(runs) => records.encoded_page(self.page, runs.image, runs.bytes),
            None => {
                let base = copy.base_of_change().filter(|_| !self.image);
                records.page(self.page, base.map(|base| &base[..]), &copy.content)
            }
        }
    }

    fn take(&mut self, logged: &Logged, fresh_from: u64) -> Installed {
        let copy = self.copy.take().expect("it is installed once");
        Installed {
            page: self.page,
            content: Some(copy.content),
            base: copy.base,
            lsn: logged.lsn,
            image: logged.image,
            record_bytes: logged.bytes,
            fresh: self.page.0 >= fresh_from,
        }
    }
}

/// Takes pages for their installation, once they are logged. Those from `fresh_from` on did not exist before.
pub(super) fn take_logged<'a>(
    changed: &'a mut [Changed],
    logged: &'a [Logged],
    fresh_from: u64,
) -> impl Iterator<Item = Installed> + 'a {
    changed.iter_mut().zip(logged).map(move |(changed, logged)| changed.take(logged, fresh_from))
}

/// See the module.
#[derive(Default)]
pub(crate) struct Buffers {
    /// Empty, kept for its capacity.
    pub(super) copies: FxHashMap<PageNo, PageCopy>,
    pub(super) changed: Vec<Changed>,
    pub(super) records: Encoded,
}

impl Buffers {
    /// Keeps a transaction's hash table for its capacity.
    pub(super) fn keep_copies(&mut self, mut copies: FxHashMap<PageNo, PageCopy>) {
        if copies.capacity() <= COPIES_MAX {
            copies.clear();
            self.copies = copies;
        }
    }
}
