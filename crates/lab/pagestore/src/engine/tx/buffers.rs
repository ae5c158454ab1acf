//! Buffers that a transaction leaves to the next. After a log write the processor's caches are cold, and memory
//! that is not allocated afresh saves the cache misses of the allocator.

use super::encoded_ahead::Ahead;
use super::records::Encoded;
use crate::engine::cache::Page;
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
    /// What has changed since `base`, if that is encoded already.
    pub(super) ahead: Option<Ahead>,
}

impl PageCopy {
    /// A copy that is in use.
    pub(super) fn new(content: Page, base: Option<Page>) -> Self {
        Self { content, base, used: AtomicBool::new(true), ahead: None }
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
    pub copy: PageCopy,
    pub image: bool,
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
