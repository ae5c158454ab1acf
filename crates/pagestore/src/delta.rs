//! What differs between two versions of a page, as runs of bytes.
//!
//! ```text
//! run:  offset u16 | length u16 | the new bytes
//! ```
//! An image is the difference to a page of zeros, so that an empty page costs nothing.

use crate::codec::{put_u16, u16_at};

/// The largest page.
pub(crate) const MAX_PAGE_BYTES: usize = 16 << 10;

/// The base of an image.
pub(crate) static ZEROS: [u8; MAX_PAGE_BYTES] = [0; MAX_PAGE_BYTES];

const STRIDE: usize = 64;
const WORD: usize = 8;
/// A run's header: two runs that are nearer than this are cheaper as one.
const RUN_HEADER: usize = 4;

/// Appends the runs that turn `base` into `new` to `out`; both have the length of a page.
pub(crate) fn encode(base: &[u8], new: &[u8], out: &mut Vec<u8>) {
    debug_assert_eq!(base.len(), new.len());
    let mut run: Option<(usize, usize)> = None;
    for stride in (0..new.len()).step_by(STRIDE) {
        let end = (stride + STRIDE).min(new.len());
        if base[stride..end] == new[stride..end] {
            continue;
        }
        for word in (stride..end).step_by(WORD) {
            if base[word..word + WORD] == new[word..word + WORD] {
                continue;
            }
            let first = (word..).find(|&at| base[at] != new[at]).expect("the words differ");
            let last = (word..word + WORD).rev().find(|&at| base[at] != new[at]).expect("the words differ");
            run = match run {
                Some((start, stop)) if first - stop <= RUN_HEADER => Some((start, last + 1)),
                Some(done) => {
                    put_run(done, new, out);
                    Some((first, last + 1))
                }
                None => Some((first, last + 1)),
            };
        }
    }
    if let Some(done) = run {
        put_run(done, new, out);
    }
}

fn put_run((start, stop): (usize, usize), new: &[u8], out: &mut Vec<u8>) {
    let mut header = [0; RUN_HEADER];
    put_u16(&mut header, 0, start as u16);
    put_u16(&mut header, 2, (stop - start) as u16);
    out.extend_from_slice(&header);
    out.extend_from_slice(&new[start..stop]);
}

/// Writes the runs over `page`.
///
/// # Errors
/// When a run is cut or reaches outside the page.
pub(crate) fn apply(mut runs: &[u8], page: &mut [u8]) -> Result<(), &'static str> {
    while !runs.is_empty() {
        if runs.len() < RUN_HEADER {
            return Err("a run of a page record is cut");
        }
        let (start, length) = (usize::from(u16_at(runs, 0)), usize::from(u16_at(runs, 2)));
        let bytes = runs.get(RUN_HEADER..RUN_HEADER + length).ok_or("a run of a page record is cut")?;
        let target =
            page.get_mut(start..start + length).ok_or("a run of a page record is outside the page")?;
        target.copy_from_slice(bytes);
        runs = &runs[RUN_HEADER + length..];
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
            changes in proptest::collection::vec((0..4096_usize, any::<u8>(), 1..200_usize), 0..20),
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
}
