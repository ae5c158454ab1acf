//! Memory of pages. It is in huge pages of the processor where the kernel has any: a tree's pages are scattered, and each
//! would need an address translation of its own.
//!
//! ```text
//! block      a mapping with places for many pages; the more there are, the larger is the next
//! place      room for one page: free, or of one content
//! content    counted by the `Page`s that refer to it; the last of them frees its place
//! ```
//! A freed place is used again before the others: a processor may still have it in its cache. Blocks stay until the store
//! is closed and its last page is dropped. The system clears a huge page when it is used first, which takes a virtual
//! machine a millisecond and more: a thread does that ahead.

use crate::disk::aligned::{ALIGNMENT, HUGE_PAGE_BYTES, HugePageBuffer};
use crate::types::PageNo;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Between two places, so that their pages do not begin at the same place in the processor's caches: a search reads the
/// beginning of each page. It is a cache line.
const GAP_BYTES: usize = 64;
/// Places of the first block, so that a small store uses no huge page.
const FIRST_PLACES: usize = 64;
/// A block is this part of those before it, within bounds.
const BLOCK_SHARE: usize = 8;
const BLOCK_BYTES_MAX: usize = 64 << 20;
/// No page has this number.
const NO_PAGE: u64 = u64::MAX;

/// The bytes of one version of a page, the first 32 of them zeros. They do not change while there is another `Page` that
/// refers to them. A `Page` keeps all page memory of its store, also after that is closed: to keep bytes for long, copy them.
#[derive(Clone)]
pub struct Page(Arc<Content>);

/// Where the bytes of a page are.
#[derive(Clone, Copy)]
struct Place(NonNull<[u8]>);

// SAFETY: the memory is not tied to a thread.
unsafe impl Send for Place {}
// SAFETY: bytes are changed only through a `Page` that is borrowed exclusively and is the only reference to its content.
unsafe impl Sync for Place {}

/// Owns a place, and says what is there: a reader of the cache needs both, and finds them in one cache line.
pub(crate) struct Content {
    place: Place,
    memory: Arc<PageMemory>,
    /// Page of which this is a version, once it is in the cache.
    page: AtomicU64,
    since: AtomicU64,
    was_read: AtomicBool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct PageMemory {
    page_bytes: usize,
    /// Blocks are made ahead by a thread.
    has_thread: AtomicBool,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    free: Vec<Place>,
    blocks: Vec<HugePageBuffer>,
    /// A thread makes the next block.
    is_preparing: bool,
}

impl PageMemory {
    /// Memory for pages of this size.
    pub(crate) fn new(page_bytes: usize) -> Arc<Self> {
        Arc::new(Self { page_bytes, ..Self::default() })
    }

    pub(crate) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The bytes of all blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes()
    }

    /// A page with any bytes.
    pub(crate) fn allocate(self: &Arc<Self>) -> Page {
        let mut places = self.lock();
        if places.free.is_empty() {
            let block = HugePageBuffer::new(places.next_block_bytes(self.page_bytes));
            places.add(block, self.page_bytes);
        }
        let place = places.free.pop().expect("a block has places");
        let prepares = self.has_thread.load(Ordering::Relaxed) && places.is_next_due(self.page_bytes);
        places.is_preparing |= prepares;
        drop(places);
        if prepares {
            let preparation = Preparation(Arc::clone(self));
            let thread = std::thread::Builder::new().name("page memory".into());
            // Without a thread the block is made when it is needed.
            let _ = thread.spawn(move || preparation.run());
        }
        let (since, was_read) = Default::default();
        let page = AtomicU64::new(NO_PAGE);
        Page(Arc::new(Content { place, memory: Arc::clone(self), page, since, was_read }))
    }

    /// Has a thread make blocks ahead from now on.
    pub(crate) fn use_thread(&self) {
        self.has_thread.store(true, Ordering::Relaxed);
    }

    /// A page of zeros.
    pub(crate) fn zeros(self: &Arc<Self>) -> Page {
        let mut page = self.allocate();
        page.make_mut().fill(0);
        page
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next block is being made, until this is dropped.
struct Preparation(Arc<PageMemory>);

impl Preparation {
    /// Makes it, and has the system clear its memory.
    fn run(self) {
        let memory = &self.0;
        let bytes = memory.lock().next_block_bytes(memory.page_bytes);
        let mut block = HugePageBuffer::new(bytes);
        block.bytes_mut().chunks_mut(ALIGNMENT).for_each(|page| page[0] = 0);
        memory.lock().add(block, memory.page_bytes);
    }
}

impl Drop for Preparation {
    fn drop(&mut self) {
        self.0.lock().is_preparing = false;
    }
}

impl Places {
    fn bytes(&self) -> usize {
        self.blocks.iter().map(HugePageBuffer::len).sum()
    }

    fn next_block_bytes(&self, page_bytes: usize) -> usize {
        match self.bytes() {
            0 => FIRST_PLACES * (page_bytes + GAP_BYTES),
            bytes => (bytes / BLOCK_SHARE / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES)
                .clamp(HUGE_PAGE_BYTES, BLOCK_BYTES_MAX),
        }
    }

    /// Whether half of the newest block is used, unless it is the first one: a small store needs no more.
    fn is_next_due(&self, page_bytes: usize) -> bool {
        let newest = || self.blocks.last().map_or(0, HugePageBuffer::len);
        !self.is_preparing && self.blocks.len() > 1 && self.free.len() < newest() / page_bytes / 2
    }

    fn add(&mut self, mut block: HugePageBuffer, page_bytes: usize) {
        // Places with lower addresses are used first, those of a new block last.
        let places = block.bytes_mut().chunks_exact_mut(page_bytes + GAP_BYTES).rev();
        self.free.splice(..0, places.map(|place| Place((&mut place[..page_bytes]).into())));
        self.blocks.push(block);
    }
}

impl Content {
    /// The page that it is a version of.
    #[inline]
    pub(super) fn page_no(&self) -> PageNo {
        PageNo(self.page.load(Ordering::Relaxed))
    }

    /// The commit that made it, or 0: it is the version of all snapshots that were not given up.
    #[inline]
    pub(super) fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    /// A reader has found it.
    #[inline]
    pub(super) fn note_read(&self) {
        if !self.was_read.load(Ordering::Relaxed) {
            self.was_read.store(true, Ordering::Relaxed);
        }
    }
}

impl Deref for Content {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block exists as long as the content. Bytes are changed only by the only reference to the content,
        // borrowed exclusively. A guard of `front` is such a reference: it has a count before the set drops its own.
        unsafe { self.place.0.as_ref() }
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        self.memory.lock().free.push(self.place);
    }
}

impl Page {
    /// The bytes, for a change; `None` if another `Page` refers to them.
    fn get_mut(&mut self) -> Option<&mut [u8]> {
        let content = Arc::get_mut(&mut self.0)?;
        // SAFETY: the block exists as long as the content, which is the only one with this place and is borrowed
        // exclusively.
        Some(unsafe { content.place.0.as_mut() })
    }

    /// The bytes, for a change; a copy of them if another `Page` refers to them.
    pub(crate) fn make_mut(&mut self) -> &mut [u8] {
        if Arc::get_mut(&mut self.0).is_none() {
            *self = self.copy();
        }
        self.get_mut().expect("nothing else refers to it")
    }

    /// Marks it as this version of a page, for good: it comes into the cache.
    pub(super) fn publish(&self, page: PageNo, since: u64) {
        let known = (self.0.page_no(), self.0.since());
        debug_assert!(known.0 == PageNo(NO_PAGE) || known == (page, since), "{page} is {known:?}");
        self.0.page.store(page.0, Ordering::Relaxed);
        self.0.since.store(since, Ordering::Relaxed);
    }

    /// The content that readers get.
    pub(super) fn content(&self) -> &Arc<Content> {
        &self.0
    }

    /// Whether readers have found it since the last call.
    pub(super) fn take_was_read(&self) -> bool {
        self.0.was_read.swap(false, Ordering::Relaxed)
    }

    /// A copy in other memory.
    pub(crate) fn copy(&self) -> Self {
        let mut copy = self.0.memory.allocate();
        copy.make_mut().copy_from_slice(self);
        copy
    }
}

impl Deref for Page {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Arc<Content>> for Page {
    fn from(content: Arc<Content>) -> Self {
        Self(content)
    }
}

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Page({} bytes)", self.len())
    }
}

/// A page in memory of its own.
#[cfg(test)]
impl From<Vec<u8>> for Page {
    fn from(bytes: Vec<u8>) -> Self {
        let mut page = PageMemory::new(bytes.len()).allocate();
        page.make_mut().copy_from_slice(&bytes);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn no_two_pages_share_bytes_and_freed_memory_is_used_again() {
        let memory = PageMemory::new(4096);
        let count = if cfg!(miri) { 3 * FIRST_PLACES } else { 4000 };
        let mut pages: Vec<_> = (0..count).map(|_| memory.zeros()).collect();
        for (number, page) in pages.iter_mut().enumerate() {
            page.make_mut().fill(number as u8);
        }
        assert!(pages.iter().enumerate().all(|(number, page)| page.iter().all(|byte| *byte == number as u8)));
        let blocks = memory.lock().blocks.len();
        pages.truncate(10);
        pages.extend((10..count).map(|_| memory.allocate()));
        assert_eq!(memory.lock().blocks.len(), blocks);
    }

    #[test]
    fn a_page_that_is_shared_is_copied_for_a_change() {
        let memory = PageMemory::new(4096);
        let mut page = memory.zeros();
        let other = page.clone();
        assert!(page.get_mut().is_none());
        page.make_mut()[7] = 1;
        assert_eq!((page[7], other[7]), (1, 0));
        let at = page.as_ptr();
        page.make_mut()[7] = 2;
        assert_eq!((page.as_ptr(), page[7]), (at, 2), "it is the only one now");
    }

    #[test]
    fn the_first_pages_use_little_memory_and_neighbours_begin_in_different_cache_lines() {
        let memory = PageMemory::new(4096);
        let mut pages = vec![memory.allocate()];
        assert!(memory.bytes() < 300 << 10);
        pages.extend((0..100).map(|_| memory.allocate()));
        assert_eq!(memory.lock().blocks[1].len(), HUGE_PAGE_BYTES);
        let lines: Vec<_> = pages.iter().map(|page| page.as_ptr().addr() % 4096 / 64).collect();
        assert!(lines.windows(2).all(|two| two[0] != two[1]), "{lines:?}");
    }

    #[test]
    fn a_thread_makes_the_next_block_when_half_of_the_newest_is_used() {
        let memory = PageMemory::new(4096);
        memory.use_thread();
        let blocks = || memory.lock().blocks.len();
        let mut pages: Vec<_> = (0..FIRST_PLACES).map(|_| memory.allocate()).collect();
        assert_eq!(blocks(), 1);
        pages.extend((0..300).map(|_| memory.allocate()));
        let begun = Instant::now();
        while blocks() < 3 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the thread makes none");
            std::thread::yield_now();
        }
        assert!(!memory.lock().is_preparing);
    }

    #[test]
    fn a_page_outlives_its_memory_and_is_dropped_by_any_thread() {
        let memory = PageMemory::new(4096);
        let page = memory.zeros();
        drop(memory);
        std::thread::spawn(move || assert!(page.iter().all(|byte| *byte == 0))).join().unwrap();
    }
}
