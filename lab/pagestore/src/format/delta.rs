//! The difference between two versions of a page, as runs of bytes.
//!
//! ```text
//! run:  offset u16 | length u16 | the new bytes
//!       offset u16 | length u16 with its highest bit set: all of them zeros, as where an entry was removed
//! ```
//! An image is the difference from a page of zeros, so an empty page takes no space. A program that does not know runs of zeros
//! takes a log with one for damaged.

use crate::format::codec::{put_u16, u16_at};
use std::ops::Range;

/// The largest page.
pub(crate) const MAX_PAGE_BYTES: usize = 16 << 10;

/// The base of an image.
pub(crate) static ZEROS: [u8; MAX_PAGE_BYTES] = [0; MAX_PAGE_BYTES];

/// Most of a page is unchanged: it is compared in blocks of this size first …
const BLOCK: usize = 256;
/// … and blocks that differ in strides of this size.
const STRIDE: usize = 64;
const WORD: usize = 8;
/// The header of a run: two runs with a smaller gap are cheaper as one.
pub(crate) const RUN_HEADER: usize = 4;
/// At least so many zeros in a row are a run of their own, which has no bytes. Fewer save too little for the time.
const ZEROS_MIN: usize = 32;
/// Zeros are looked for in steps of this size: `ZEROS_MIN` of them contain a whole one.
const ZEROS_STEP: usize = 16;
/// In the length of a run of zeros.
const IS_ZEROS: u16 = 0x8000;
const _: () = assert!(
    MAX_PAGE_BYTES < IS_ZEROS as usize && ZEROS_MIN > 2 * RUN_HEADER && ZEROS_MIN >= 2 * ZEROS_STEP - 1
);
/// An image is logged instead of changes if it is larger by at most one part in this many.
const IMAGE_EXTRA_DIVISOR: usize = 4;

/// Appends the runs that turn `base` into `new` to `out`; both have the length of a page.
pub(crate) fn encode(base: &[u8], new: &[u8], out: &mut Vec<u8>) {
    debug_assert_eq!(base.len(), new.len());
    let mut run: Option<(usize, usize)> = None;
    for (block, (before, after)) in base.chunks(BLOCK).zip(new.chunks(BLOCK)).enumerate() {
        if before == after {
            continue;
        }
        let strides = before.as_chunks::<STRIDE>().0.iter().zip(after.as_chunks::<STRIDE>().0);
        for (stride, (before, after)) in strides.enumerate() {
            let mut differing = differing(before, after);
            while differing != 0 {
                let first = differing.trailing_zeros() as usize;
                let length = (differing >> first).trailing_ones() as usize;
                differing &= u64::MAX.checked_shl((first + length) as u32).unwrap_or(0);
                let first = block * BLOCK + stride * STRIDE + first;
                run = match run {
                    Some((start, stop)) if first - stop <= RUN_HEADER => Some((start, first + length)),
                    Some(done) => {
                        put_run(done, new, out);
                        Some((first, first + length))
                    }
                    None => Some((first, first + length)),
                };
            }
        }
    }
    if let Some(done) = run {
        put_run(done, new, out);
    }
}

/// A bit for each byte of a stride that differs, the lowest for the first.
fn differing(before: &[u8; STRIDE], after: &[u8; STRIDE]) -> u64 {
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let words = before.as_chunks::<WORD>().0.iter().zip(after.as_chunks::<WORD>().0);
    words.enumerate().fold(0, |bits, (index, (old, other))| {
        let mut differ = u64::from_le_bytes(*old) ^ u64::from_le_bytes(*other);
        // Fold each byte into its lowest bit; then gather those into one byte.
        differ |= differ >> 4;
        differ |= differ >> 2;
        differ |= differ >> 1;
        bits | (((differ & LOWEST).wrapping_mul(GATHER)) >> 56) << (index * WORD)
    })
}

/// Appends the runs of a page's record: the changes since `base`, or an image if there is none. Also logs an image
/// if that is hardly larger, since it makes the page's earlier records unnecessary. Returns whether it is an image.
pub(crate) fn encode_page(base: Option<&[u8]>, new: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let zeros = &ZEROS[..new.len()];
    let Some(base) = base else {
        encode(zeros, new, out);
        return true;
    };
    encode(base, new, out);
    let changes = out.len() - start;
    if changes <= new.len() / 2 {
        return false;
    }
    encode(zeros, new, out);
    let is_image = out.len() - start - changes <= changes + changes / IMAGE_EXTRA_DIVISOR;
    if is_image {
        out.drain(start..start + changes);
    } else {
        out.truncate(start + changes);
    }
    is_image
}

/// Appends a run, and within it the zeros as runs of their own.
fn put_run((mut start, stop): (usize, usize), new: &[u8], out: &mut Vec<u8>) {
    while let Some(zeros) = find_zeros(&new[start..stop]) {
        if zeros.start > 0 {
            put_bytes(start, &new[start..start + zeros.start], out);
        }
        put_header(start + zeros.start, zeros.len() as u16 | IS_ZEROS, out);
        start += zeros.end;
    }
    if start < stop {
        put_bytes(start, &new[start..stop], out);
    }
}

/// The first zeros in a row that are worth a run of their own.
fn find_zeros(bytes: &[u8]) -> Option<Range<usize>> {
    let (steps, rest) = bytes.as_chunks::<ZEROS_STEP>();
    let is_zeros = |step: &&[u8; ZEROS_STEP]| **step == [0; ZEROS_STEP];
    let mut at = 0;
    while at < steps.len() {
        let zeros = steps[at..].iter().take_while(is_zeros).count();
        if zeros > 0 {
            let (before, after) =
                (&bytes[..at * ZEROS_STEP], steps.get(at + zeros).map_or(rest, |step| step));
            let before = before.iter().rev().take_while(|byte| **byte == 0).count();
            let after = after.iter().take_while(|byte| **byte == 0).count();
            let found = at * ZEROS_STEP - before..(at + zeros) * ZEROS_STEP + after;
            if found.len() >= ZEROS_MIN {
                return Some(found);
            }
        }
        at += zeros + 1;
    }
    None
}

fn put_bytes(start: usize, bytes: &[u8], out: &mut Vec<u8>) {
    put_header(start, bytes.len() as u16, out);
    out.extend_from_slice(bytes);
}

fn put_header(start: usize, length: u16, out: &mut Vec<u8>) {
    let mut header = [0; RUN_HEADER];
    put_u16(&mut header, 0, start as u16);
    put_u16(&mut header, 2, length);
    out.extend_from_slice(&header);
}

/// Applies the runs to `page`.
///
/// # Errors
/// When a run is truncated or reaches outside the page.
pub(crate) fn apply(mut runs: &[u8], page: &mut [u8]) -> Result<(), &'static str> {
    while !runs.is_empty() {
        if runs.len() < RUN_HEADER {
            return Err("a run of a page record is cut");
        }
        let (start, length) = (usize::from(u16_at(runs, 0)), u16_at(runs, 2));
        let (is_zeros, length) = (length & IS_ZEROS != 0, usize::from(length & !IS_ZEROS));
        let logged = if is_zeros { 0 } else { length };
        let bytes = runs.get(RUN_HEADER..RUN_HEADER + logged).ok_or("a run of a page record is cut")?;
        let target =
            page.get_mut(start..start + length).ok_or("a run of a page record is outside the page")?;
        if is_zeros {
            target.fill(0);
        } else {
            target.copy_from_slice(bytes);
        }
        runs = &runs[RUN_HEADER + logged..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_encoded_against_a_base_turns_the_base_into_the_page(
            base in proptest::collection::vec(any::<u8>(), 4096),
            changes in proptest::collection::vec(
                (0..4096_usize, prop_oneof![Just(0), any::<u8>()], 1..200_usize), 0..20),
        ) {
            let mut new = base.clone();
            for (at, value, length) in changes {
                let end = (at + length).min(4096);
                new[at..end].fill(value);
            }
            let mut runs = Vec::new();
            encode(&base, &new, &mut runs);
            let mut page = base.clone();
            apply(&runs, &mut page).unwrap();
            prop_assert_eq!(&page, &new);
            prop_assert!(base != new || runs.is_empty());
            prop_assert!(runs.len() <= new.len() + RUN_HEADER);
        }

        #[test]
        fn runs_from_outside_never_panic(runs in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = apply(&runs, &mut [0; 4096]);
        }
    }

    #[test]
    fn one_changed_byte_costs_a_header_and_the_byte() {
        let mut new = [7; 4096];
        new[1001] = 8;
        let mut runs = Vec::new();
        encode(&[7; 4096], &new, &mut runs);
        assert_eq!(runs, [0xe9, 0x03, 1, 0, 8]);
    }

    #[test]
    fn zeros_cost_a_header_where_there_are_many_of_them() {
        let encoded = |zeros: Range<usize>| {
            let mut new = [8; 4096];
            new[zeros].fill(0);
            let mut runs = Vec::new();
            encode(&[7; 4096], &new, &mut runs);
            let mut page = [7; 4096];
            apply(&runs, &mut page).unwrap();
            assert_eq!(page, new);
            runs.len()
        };
        let whole = 4096 + RUN_HEADER;
        assert_eq!(encoded(0..0), whole);
        assert_eq!(encoded(1000..1031), whole, "too few");
        for from in 1000..1016 {
            assert_eq!(encoded(from..from + 32), whole - 32 + 2 * RUN_HEADER);
        }
        assert_eq!(encoded(0..4095), RUN_HEADER + RUN_HEADER + 1);
        assert_eq!(encoded(1..4096), RUN_HEADER + 1 + RUN_HEADER);
        assert_eq!(encoded(0..4096), RUN_HEADER);

        let (mut page, mut runs) = ([7; MAX_PAGE_BYTES], Vec::new());
        encode(&page, &ZEROS, &mut runs);
        apply(&runs, &mut page).unwrap();
        assert_eq!((page, runs.len()), (ZEROS, RUN_HEADER));
    }

    #[test]
    fn a_page_that_changes_nearly_as_a_whole_is_logged_as_an_image_and_else_as_what_changed() {
        let base = [1; 4096];
        let encoded = |new: &[u8; 4096]| {
            let mut runs = vec![9];
            let image = encode_page(Some(&base), new, &mut runs);
            let mut page = if image { [0; 4096] } else { base };
            apply(&runs[1..], &mut page).unwrap();
            assert_eq!(page, *new);
            (image, runs.len() - 1)
        };
        let mut new = base;
        new[100..300].fill(2);
        assert_eq!(encoded(&new), (false, RUN_HEADER + 200));
        new[300..3900].fill(3);
        assert_eq!(encoded(&new), (true, RUN_HEADER + 4096));
        // Half of it changed: an image would take twice as much.
        let mut new = base;
        new[32..2100].fill(2);
        assert_eq!(encoded(&new), (false, RUN_HEADER + 2068));
    }
}
