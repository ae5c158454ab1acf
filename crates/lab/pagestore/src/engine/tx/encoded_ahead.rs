//! Changes of pages that are encoded before the commit, soon after a page was changed, while the processor's caches hold
//! it. A transaction that changes many pages, each once, otherwise reads all of them from memory a second time.
//!
//! ```text
//! page copy ── batch ──▶ encode, of many pages by a thread ──▶ runs in a piece ── commit ──▶ record
//!           ── changed again: its runs are not used
//! ```

use crate::engine::cache::Page;
use crate::format::delta::{self, MAX_PAGE_BYTES, RUN_HEADER};
use crate::types::PageNo;
use std::ops::Range;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// It takes at most one in this many bytes of the cache, or one piece.
const SHARE: usize = 16;
/// Memory is allocated in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;
/// A page's change is encoded as runs, and then as an image to compare.
const PAGE_BYTES_MAX: usize = 2 * (MAX_PAGE_BYTES + RUN_HEADER);
const _: () = assert!(PAGE_BYTES_MAX <= PIECE_BYTES);
/// Pages that a thread encodes together: few enough that the caches still hold them. Without it each page is encoded at once.
const BATCH_PAGES: usize = 32;
/// After this many pages a thread encodes the others.
const PAGES_BEFORE_THREAD: usize = 512;
/// Batches that wait for the thread. When there are more, the transaction waits.
const BATCHES_WAITING_MAX: usize = 8;

/// A page whose change is encoded: its number in the order of encoding.
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
    /// Pages of all batches before it.
    given: usize,
    uses_thread: bool,
    thread: Option<Thread>,
}

struct Thread {
    batches: SyncSender<Vec<Job>>,
    handle: JoinHandle<Encoder>,
}

/// Encodes pages, and keeps their runs.
#[derive(Default)]
struct Encoder {
    pieces_max: usize,
    pieces: Vec<Vec<u8>>,
    /// Of each page that was given; `None` if there was no memory for them.
    runs: Vec<Option<Place>>,
}

/// Where runs are.
struct Place {
    piece: usize,
    bytes: Range<usize>,
    image: bool,
}

impl EncodedAhead {
    /// Nothing. The runs take a part of what the cache may take.
    pub(super) fn new(cache_bytes: usize, uses_thread: bool) -> Self {
        let pieces_max = (cache_bytes / SHARE / PIECE_BYTES).max(1);
        let encoder = Encoder { pieces_max, ..Encoder::default() };
        Self { encoder, waiting: Vec::new(), given: 0, uses_thread, thread: None }
    }

    /// Adds a page to the batch: what turns `base`, or a page of zeros, into `content` will be encoded.
    pub(super) fn add(&mut self, page: PageNo, base: Option<Page>, content: Page) -> Ahead {
        self.waiting.push(Job { page, base, content });
        Ahead(self.given + self.waiting.len() - 1)
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
                // It ends only if it has panicked. What it did not encode is encoded at the commit.
                let _ = thread.batches.send(batch);
            }
            None => self.encoder.encode_all(self.waiting.drain(..)),
        }
    }

    fn start_thread(&mut self) {
        let (batches, received) = sync_channel(BATCHES_WAITING_MAX);
        let pieces_max = self.encoder.pieces_max - self.encoder.pieces.len();
        let run = move || {
            let mut encoder = Encoder { pieces_max, ..Encoder::default() };
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
            if let Ok(encoder) = handle.join() {
                self.encoder.append(encoder);
            }
        }
    }

    /// The runs of a page, if they were encoded; after `finish`.
    pub(super) fn runs(&self, Ahead(number): Ahead) -> Option<Runs<'_>> {
        let Place { piece, bytes, image } = self.encoder.runs.get(number)?.as_ref()?;
        Some(Runs { bytes: &self.encoder.pieces[*piece][bytes.clone()], image: *image })
    }

    /// Drops all; what was returned before must not be used any more.
    pub(super) fn clear(&mut self) {
        self.finish();
        self.encoder.pieces.clear();
        self.encoder.runs.clear();
        self.given = 0;
    }
}

impl Drop for EncodedAhead {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Encoder {
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
        let fits = |piece: &Vec<u8>| piece.capacity() - piece.len() >= 2 * (new.len() + RUN_HEADER);
        if !self.pieces.last().is_some_and(fits) {
            if self.pieces.len() >= self.pieces_max {
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
            let page = |number: usize| filled(100..300, (2 + number % 250) as u8);
            let mut encoded = EncodedAhead::new(2 << 20, uses_thread);
            let all: Vec<_> = (0..2000)
                .map(|number| {
                    let ahead = encoded.add(PageNo(number as u64), Some(base.clone()), page(number));
                    if encoded.full_batch().is_some() {
                        encoded.encode_batch();
                    }
                    (number, ahead)
                })
                .collect();
            assert_eq!(encoded.thread.is_some(), uses_thread);
            encoded.finish();
            let bytes: usize = encoded.encoder.pieces.iter().map(Vec::capacity).sum();
            assert_eq!(bytes, 2 * PIECE_BYTES);
            let mut kept = 0;
            for (number, ahead) in all {
                let Some(runs) = encoded.runs(ahead) else { continue };
                let mut now = base.to_vec();
                assert!(!runs.image);
                delta::apply(runs.bytes, &mut now).unwrap();
                assert_eq!(now, page(number).to_vec());
                kept += 1;
            }
            assert!((512..=642).contains(&kept), "{kept}");
            encoded.clear();
            assert!(encoded.runs(Ahead(0)).is_none());
        }
    }
}
