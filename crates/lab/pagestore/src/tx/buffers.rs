//! Memory that one transaction leaves to the next: a commit comes back from its write with the processor's caches cold, and
//! what it does not ask the allocator for it need not look for either.

use super::OwnPage;
use super::records::Encoded;
use crate::cache::Page;
use crate::types::PageNo;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A table of changed pages that had room for more of them is not kept: to go through it takes as long as it is large.
const OWN_MAX: usize = 64;

/// A page that a transaction changed, on its way into the log.
pub(super) struct Changed {
    pub page: PageNo,
    pub own: OwnPage,
    pub image: bool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Buffers {
    /// Empty.
    pub(super) own: FxHashMap<PageNo, OwnPage>,
    pub(super) changed: Vec<Changed>,
    pub(super) records: Encoded,
    /// To be used again, where nobody reads them.
    pub(super) pages: Vec<Page>,
}

impl Buffers {
    /// A page that holds the same.
    pub(super) fn copy_of(&mut self, page: &Page) -> Page {
        if let Some(mut kept) = self.pages.pop()
            && let Some(bytes) = Arc::get_mut(&mut kept)
        {
            bytes.copy_from_slice(page);
            return kept;
        }
        Page::from(&page[..])
    }

    /// Keeps a transaction's table, without what is in it.
    pub(super) fn keep_own(&mut self, mut own: FxHashMap<PageNo, OwnPage>) {
        if own.capacity() <= OWN_MAX {
            own.clear();
            self.own = own;
        }
    }
}
