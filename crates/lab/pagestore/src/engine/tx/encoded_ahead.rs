//! Changes of pages that are encoded before the commit, right after a page was changed, while the processor's caches hold
//! it. A transaction that changes many pages, each once, otherwise reads all of them from memory a second time.
//!
//! ```text
//! page copy ── encode ──▶ runs in a piece ── commit ──▶ record
//!           ── changed again: its runs are not used
//! ```

use crate::format::delta::{self, MAX_PAGE_BYTES, RUN_HEADER};
use std::ops::Range;

/// It takes at most one in this many bytes of the cache, or one piece.
const SHARE: usize = 16;
/// Memory is allocated in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;
/// A page's change is encoded as runs, and then as an image to compare.
const PAGE_BYTES_MAX: usize = 2 * (MAX_PAGE_BYTES + RUN_HEADER);
const _: () = assert!(PAGE_BYTES_MAX <= PIECE_BYTES);

/// The runs of a page.
#[derive(Clone)]
pub(super) struct Ahead {
    piece: usize,
    bytes: Range<usize>,
    /// They make an image.
    pub(super) image: bool,
}

impl Ahead {
    /// Bytes of the runs.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct EncodedAhead {
    pieces: Vec<Vec<u8>>,
}

impl EncodedAhead {
    /// Encodes what turns `base`, or a page of zeros, into `new`; `None` if there is no memory for it.
    pub(super) fn encode(&mut self, base: Option<&[u8]>, new: &[u8], cache_bytes: usize) -> Option<Ahead> {
        let fits = |piece: &Vec<u8>| piece.capacity() - piece.len() >= 2 * (new.len() + RUN_HEADER);
        if !self.pieces.last().is_some_and(fits) {
            let pieces_max = (cache_bytes / SHARE / PIECE_BYTES).max(1);
            if self.pieces.len() >= pieces_max {
                return None;
            }
            self.pieces.push(Vec::with_capacity(PIECE_BYTES));
        }
        let piece = self.pieces.len() - 1;
        let runs = &mut self.pieces[piece];
        let begun = runs.len();
        let image = delta::encode_page(base, new, runs);
        Some(Ahead { piece, bytes: begun..runs.len(), image })
    }

    pub(super) fn runs(&self, ahead: &Ahead) -> &[u8] {
        &self.pieces[ahead.piece][ahead.bytes.clone()]
    }

    /// Drops all; what was returned before must not be used any more.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_turn_the_base_into_the_page_and_take_a_bounded_part_of_the_cache() {
        let base = [1; 4096];
        let page = |number: u8| {
            let mut page = base;
            page[100..2000].fill(number);
            page
        };
        let mut encoded = EncodedAhead::default();
        let all: Vec<_> = (2..200)
            .filter_map(|number| Some((number, encoded.encode(Some(&base), &page(number), 2 << 20)?)))
            .collect();
        let memory: usize = encoded.pieces.iter().map(Vec::capacity).sum();
        assert_eq!(memory, 2 * PIECE_BYTES);
        assert!((50..=68).contains(&all.len()), "{}", all.len());
        for (number, ahead) in all {
            let mut now = base;
            assert!(!ahead.image);
            delta::apply(encoded.runs(&ahead), &mut now).unwrap();
            assert_eq!(now, page(number));
        }
    }
}
