//! Iteration over a part of a table, in key order from either end.

use super::Table;
use super::position::{Position, Target};
use crate::engine::tx::Pages;
use crate::error::Result;
use std::ops::Bound;

/// The entries of a table between two keys, as `(key, value)`, in either direction.
pub struct Range<'a, P> {
    pages: &'a P,
    table: Table,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    /// The last entry that was returned from the front, or the place before the first.
    front: Position,
    /// The entries of its leaf that are within `to`, and whether none is in a later leaf.
    front_end: usize,
    is_last_leaf: bool,
    /// Position from the back, once it was used.
    back: Option<Position>,
    is_done: bool,
}

impl<'a, P: Pages> Range<'a, P> {
    pub(crate) fn new(pages: &'a P, table: Table, (from, to): (Bound<&[u8]>, Bound<&[u8]>)) -> Result<Self> {
        let front = Position::before(pages, table, from)?;
        let (from, to) = (from.map(<[u8]>::to_vec), to.map(<[u8]>::to_vec));
        let (front_end, is_last_leaf) = (0, false);
        let mut new =
            Self { pages, table, from, to, front, front_end, is_last_leaf, back: None, is_done: false };
        new.enter_leaf()?;
        Ok(new)
    }

    fn enter_leaf(&mut self) -> Result<()> {
        self.front_end = self.front.count_within(&self.to)?;
        self.is_last_leaf = self.front_end < self.front.node()?.count();
        Ok(())
    }

    /// The next entry, without copying it.
    ///
    /// # Errors
    /// When a page cannot be read; it ends then.
    pub fn next_entry(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.is_done {
            return Ok(None);
        }
        self.is_done = true;
        while self.front.next_index() >= self.front_end {
            if self.is_last_leaf || !self.front.move_to_leaf(self.pages, Target::First)? {
                return Ok(None);
            }
            self.enter_leaf()?;
        }
        self.front.place_on(self.front.next_index());
        let entry = self.front.entry()?;
        let is_before_back = match self.back.as_ref().map(Position::entry).transpose()?.flatten() {
            Some((back, _)) => entry.is_some_and(|(key, _)| key < back),
            None => true,
        };
        self.is_done = !is_before_back;
        Ok(entry.filter(|_| is_before_back))
    }

    /// The next entry from the back, without copying it.
    ///
    /// # Errors
    /// As `next_entry`.
    pub fn next_entry_back(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.is_done {
            return Ok(None);
        }
        self.is_done = true;
        let back = match &mut self.back {
            Some(back) => back,
            none => {
                let to = self.to.as_ref().map(Vec::as_slice);
                none.insert(Position::after(self.pages, self.table, to)?)
            }
        };
        if !back.back(self.pages)? {
            return Ok(None);
        }
        let entry = back.entry()?;
        let is_within = entry.is_some_and(|(key, _)| match &self.from {
            Bound::Unbounded => true,
            Bound::Included(from) => key >= &from[..],
            Bound::Excluded(from) => key > &from[..],
        });
        let is_after_front = match self.front.entry()? {
            Some((front, _)) => entry.is_some_and(|(key, _)| key > front),
            None => true,
        };
        self.is_done = !(is_within && is_after_front);
        Ok(entry.filter(|_| is_within && is_after_front))
    }
}

fn to_owned((key, value): (&[u8], &[u8])) -> (Vec<u8>, Vec<u8>) {
    (key.to_vec(), value.to_vec())
}

impl<P: Pages> Iterator for Range<'_, P> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_entry().map(|entry| entry.map(to_owned)).transpose()
    }
}

impl<P: Pages> DoubleEndedIterator for Range<'_, P> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_entry_back().map(|entry| entry.map(to_owned)).transpose()
    }
}
