//! Changes of pages that are encoded before the commit, soon after a page was changed, while the processor's caches hold
//! it. A transaction that changes many pages, each once, otherwise reads all of them from memory a second time.
//!
//! ```text
//! page copy ── batch ──▶ encode ──▶ runs in a piece ── commit ──▶ record      a thread encodes from the 513th page on
//!           ── changed again: its runs are not used
//! ```

use crate::engine::cache::Page;
use crate::format::delta::{self, MAX_PAGE_BYTES, RUN_HEADER};
use crate::types::PageNo;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// The runs take at most one in this many bytes of the cache, or one piece. Where they are takes an eighth of that.
const SHARE: usize = 16;
/// Memory is allocated in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;
/// Pages for each piece, at most: as many as the cache holds, if they are small.
const PAGES_OF_PIECE: usize = 256;
const _: () = assert!(PAGES_OF_PIECE * size_of::<Option<Place>>() == PIECE_BYTES / 8);
/// A page's change is encoded as runs, and then as an image to compare.
const PAGE_BYTES_MAX: usize = 2 * (MAX_PAGE_BYTES + RUN_HEADER);
const _: () = assert!(PAGE_BYTES_MAX <= PIECE_BYTES);
/// Pages that the thread encodes together: few enough that the caches still hold them. Without it each page is encoded at once.
const BATCH_PAGES: usize = 32;
/// After this many pages a thread encodes the others.
const PAGES_BEFORE_THREAD: usize = 512;
/// Batches that wait for the thread. When there are more, the transaction waits.
const BATCHES_WAITING_MAX: usize = 8;
/// The bound of waiting pages that `Options::cache_bytes` states.
const _: () = assert!((BATCHES_WAITING_MAX + 2) * BATCH_PAGES == 320);

/// The number of a page among those that were handed over.
#[derive(Clone, Copy)]
pub(super) struct Ahead(usize);

/// The runs of a page.
pub(super) struct Runs<'a> {
    pub(super) bytes: &'a [u8],
    /// They make an image.
    pub(super) image: bool,
}

/// A page to encode.
pub(super) struct Job {
    pub(super) page: PageNo,
    /// `None`: an image is to be logged.
    pub(super) base: Option<Page>,
    content: Page,
}

/// See the module.
pub(super) struct EncodedAhead {
    encoder: Encoder,
    /// Of the next batch.
    waiting: Vec<Job>,
    /// Pages that were handed over in the batches before it.
    given: usize,
    pages_max: usize,
    uses_thread: bool,
    thread: Option<Thread>,
    progress: Arc<Progress>,
}

/// State shared by the transaction and the thread.
#[derive(Default)]
struct Progress {
    /// There was no memory for the runs of a page: more pages are not encoded.
    is_full: AtomicBool,
    /// The runs are not needed any more.
    is_discarded: AtomicBool,
}

struct Thread {
    batches: SyncSender<Vec<Job>>,
    handle: JoinHandle<Encoder>,
}

/// Encodes pages, and keeps their runs.
struct Encoder {
    progress: Arc<Progress>,
    pieces_max: usize,
    pieces: Vec<Vec<u8>>,
    /// Of each page that was handed over; `None` if there was no memory for them, or they were not needed any more.
    runs: Vec<Option<Place>>,
}

/// Where runs are.
struct Place {
    piece: usize,
    bytes: Range<usize>,
    image: bool,
}

impl EncodedAhead {
    /// Without any page yet.
    pub(super) fn new(cache_bytes: usize, uses_thread: bool) -> Self {
        let pieces_max = (cache_bytes / SHARE / PIECE_BYTES).max(1);
        let progress = Arc::<Progress>::default();
        let encoder = Encoder::new(pieces_max, &progress);
        let pages_max = pieces_max * PAGES_OF_PIECE;
        Self { encoder, waiting: Vec::new(), given: 0, pages_max, uses_thread, thread: None, progress }
    }

    /// Adds a page to the batch: what turns `base`, or a page of zeros, into `content` will be encoded. `None` if there is no
    /// memory for more.
    pub(super) fn add(&mut self, page: PageNo, base: Option<Page>, content: Page) -> Option<Ahead> {
        let number = self.given + self.waiting.len();
        let is_full = self.progress.is_full.load(Ordering::Relaxed) || number >= self.pages_max;
        (!is_full).then(|| {
            self.waiting.push(Job { page, base, content });
            Ahead(number)
        })
    }

    /// The pages of the batch, if there are enough of them to encode.
    pub(super) fn full_batch(&mut self) -> Option<&mut [Job]> {
        let enough = if self.thread.is_some() { BATCH_PAGES } else { 1 };
        (self.waiting.len() >= enough).then_some(&mut self.waiting)
    }

    /// Encodes the batch, or has the thread encode it.
    pub(super) fn encode_batch(&mut self) {
        if self.uses_thread && self.thread.is_none() && self.given >= PAGES_BEFORE_THREAD {
            self.start_thread();
        }
        self.given += self.waiting.len();
        match &self.thread {
            Some(thread) => {
                let batch = std::mem::replace(&mut self.waiting, Vec::with_capacity(BATCH_PAGES));
                // It ends early only by a panic, which `finish` passes on.
                let _ = thread.batches.send(batch);
            }
            None => self.encoder.encode_all(self.waiting.drain(..)),
        }
    }

    fn start_thread(&mut self) {
        let (batches, received) = sync_channel(BATCHES_WAITING_MAX);
        let pieces_max = self.encoder.pieces_max - self.encoder.pieces.len();
        let mut encoder = Encoder::new(pieces_max, &self.progress);
        let run = move || {
            while let Ok(batch) = received.recv() {
                encoder.encode_all(batch);
            }
            encoder
        };
        match Builder::new().name("encode".into()).spawn(run) {
            Ok(handle) => self.thread = Some(Thread { batches, handle }),
            Err(_) => self.uses_thread = false,
        }
    }

    /// Waits until the batches are encoded. The pages of the last one, which is not full, are left out.
    pub(super) fn finish(&mut self) {
        self.waiting.clear();
        if let Some(Thread { batches, handle }) = self.thread.take() {
            drop(batches);
            match handle.join() {
                Ok(encoder) => self.encoder.append(encoder),
                Err(panic) if !std::thread::panicking() => resume_unwind(panic),
                Err(_) => {}
            }
        }
    }

    /// The runs of a page, if they were encoded; after `finish`.
    pub(super) fn runs(&self, Ahead(number): Ahead) -> Option<Runs<'_>> {
        let Place { piece, bytes, image } = self.encoder.runs.get(number)?.as_ref()?;
        Some(Runs { bytes: &self.encoder.pieces[*piece][bytes.clone()], image: *image })
    }

    /// Drops all, and encodes no more; what was returned before must not be used any more.
    pub(super) fn discard(&mut self) {
        self.progress.is_full.store(true, Ordering::Relaxed);
        self.progress.is_discarded.store(true, Ordering::Relaxed);
        self.finish();
        (self.encoder.pieces, self.encoder.runs) = (Vec::new(), Vec::new());
    }
}

impl Drop for EncodedAhead {
    fn drop(&mut self) {
        self.discard();
    }
}

impl Encoder {
    fn new(pieces_max: usize, progress: &Arc<Progress>) -> Self {
        Self { progress: Arc::clone(progress), pieces_max, pieces: Vec::new(), runs: Vec::new() }
    }

    /// Takes over what a thread has encoded of the pages after these.
    fn append(&mut self, other: Encoder) {
        let before = self.pieces.len();
        self.pieces.extend(other.pieces);
        let moved = |place: Place| Place { piece: before + place.piece, ..place };
        self.runs.extend(other.runs.into_iter().map(|place| place.map(moved)));
    }

    fn encode_all(&mut self, batch: impl IntoIterator<Item = Job>) {
        for Job { base, content, .. } in batch {
            let runs = self.encode(base.as_deref(), &content);
            self.runs.push(runs);
        }
    }

    fn encode(&mut self, base: Option<&[u8]>, new: &[u8]) -> Option<Place> {
        if self.progress.is_discarded.load(Ordering::Relaxed) {
            return None;
        }
        let fits = |piece: &Vec<u8>| piece.capacity() - piece.len() >= 2 * (new.len() + RUN_HEADER);
        if !self.pieces.last().is_some_and(fits) {
            if self.pieces.len() >= self.pieces_max {
                self.progress.is_full.store(true, Ordering::Relaxed);
                return None;
            }
            self.pieces.push(Vec::with_capacity(PIECE_BYTES));
        }
        let piece = self.pieces.len() - 1;
        let runs = &mut self.pieces[piece];
        let begun = runs.len();
        let image = delta::encode_page(base, new, runs);
        Some(Place { piece, bytes: begun..runs.len(), image })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cache::page_memory::PageMemory;

    #[test]
    fn runs_turn_the_base_into_the_page_and_take_a_bounded_part_of_the_cache() {
        for uses_thread in [false, true] {
            let memory = PageMemory::new(4096);
            let filled = |range: Range<usize>, with: u8| {
                let mut page = memory.allocate();
                page.make_mut().fill(1);
                page.make_mut()[range].fill(with);
                page
            };
            let base = filled(0..0, 1);
            let page = |number: usize| filled(100..500, (2 + number % 250) as u8);
            let mut encoded = EncodedAhead::new(8 << 20, uses_thread);
            let all: Vec<_> = (0..10_000)
                .filter_map(|number| {
                    let ahead = encoded.add(PageNo(number as u64), Some(base.clone()), page(number))?;
                    if encoded.full_batch().is_some() {
                        encoded.encode_batch();
                    }
                    Some((number, ahead))
                })
                .collect();
            assert_eq!(encoded.thread.is_some(), uses_thread);
            assert!(all.len() < 1136 + 320, "{} pages were handed over, many of them for nothing", all.len());
            encoded.finish();
            let bytes: usize = encoded.encoder.pieces.iter().map(Vec::capacity).sum();
            assert_eq!(bytes, 8 * PIECE_BYTES);
            let mut kept = 0;
            for (number, ahead) in all {
                let Some(runs) = encoded.runs(ahead) else { continue };
                let mut now = base.to_vec();
                assert!(!runs.image);
                delta::apply(runs.bytes, &mut now).unwrap();
                assert_eq!(now, page(number).to_vec());
                kept += 1;
            }
            assert!((1050..=1136).contains(&kept), "{kept}");
            encoded.discard();
            assert!(encoded.runs(Ahead(0)).is_none());
        }
    }
    #[test]
    fn pages_without_any_change_take_a_bounded_part_of_the_cache_too() {
        let page = PageMemory::new(4096).zeros();
        let mut encoded = EncodedAhead::new(2 << 20, false);
        let mut handed_over = 0;
        while encoded.add(PageNo(1), Some(page.clone()), page.clone()).is_some() {
            encoded.encode_batch();
            handed_over += 1;
        }
        assert_eq!(handed_over, 512);
    }
}
