//! Removing the entries for which a condition holds, leaf by leaf: the entries to remove are chosen one by one, and leave
//! the leaf together, in one change of its page, its parents and the number of entries.
//!
//! ```text
//! entry ── condition holds ──▶ chosen, returned ── end of the leaf, or dropped ──▶ the leaf without the chosen ones
//! ```
//! A leaf's change is encoded for the log only after the next leaf was changed, because that may merge the two.

use super::Table;
use super::position::{Position, Target};
use crate::engine::tx::WriteTx;
use crate::error::Result;
use crate::types::PageNo;
use std::ops::Bound;

/// Removes the entries of a range for which a condition holds, one by one as they are requested. What is not requested
/// stays.
///
/// If it is leaked (`std::mem::forget`), the last entries that it returned may stay too.
pub struct ExtractIf<'t, 'a, F> {
    tx: &'t mut WriteTx<'a>,
    table: Table,
    to: Bound<Vec<u8>>,
    condition: F,
    /// Its leaf.
    at: Position,
    /// The entries of the leaf that are still to be examined.
    next: usize,
    end: usize,
    /// Those that were returned and are not removed yet, in order.
    chosen: Vec<usize>,
    /// The leaf that it was in after the last change.
    last_leaf: Option<PageNo>,
    is_done: bool,
}

impl<'t, 'a, F: for<'e> FnMut(&'e [u8], &'e [u8]) -> bool> ExtractIf<'t, 'a, F> {
    fn new(
        tx: &'t mut WriteTx<'a>,
        table: Table,
        (from, to): (Bound<&[u8]>, Bound<&[u8]>),
        condition: F,
    ) -> Result<Self> {
        let at = Position::before(tx, table, from)?;
        let to = to.map(<[u8]>::to_vec);
        let (chosen, last_leaf, is_done) = (Vec::new(), None, false);
        let mut new = Self { tx, table, to, condition, at, next: 0, end: 0, chosen, last_leaf, is_done };
        new.enter_leaf()?;
        Ok(new)
    }

    /// The next entry that was removed.
    ///
    /// # Errors
    /// As `WriteTx::delete`; it ends then.
    pub fn next_entry(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        // An error ends it, and so does a condition that panics.
        while !std::mem::replace(&mut self.is_done, true) {
            if let Some(index) = self.find_in_leaf()? {
                if self.chosen.is_empty() {
                    let (at, table) = (&mut self.at, self.table);
                    self.tx.change_several(|tx| at.prepare_removal(tx, table))?;
                }
                self.chosen.push(index);
                self.is_done = false;
                return self.at.node()?.entry(index).map(Some);
            }
            self.is_done = !self.leave_leaf()?;
        }
        Ok(None)
    }

    /// The next entry of the leaf for which the condition holds.
    fn find_in_leaf(&mut self) -> Result<Option<usize>> {
        let node = self.at.node()?;
        while self.next < self.end {
            let index = self.next;
            let (key, value) = node.entry(index)?;
            self.next += 1;
            if (self.condition)(key, value) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Moves to the next leaf; returns false if the range ends in this one.
    fn leave_leaf(&mut self) -> Result<bool> {
        let count = self.at.node()?.count();
        let (is_last, is_emptied) = (self.end < count, count > 0 && self.chosen.len() == count);
        self.remove_chosen()?;
        // In place of an emptied leaf is another one already.
        if is_last || !is_emptied && !self.at.move_to_leaf(&*self.tx, Target::First)? {
            return Ok(false);
        }
        self.enter_leaf()?;
        Ok(true)
    }

    /// Determines which entries of the leaf lie within the range.
    fn enter_leaf(&mut self) -> Result<()> {
        self.next = self.at.index;
        self.end = self.at.count_within(&self.to)?;
        Ok(())
    }
}

impl<F> ExtractIf<'_, '_, F> {
    /// Removes the chosen entries of the leaf. They were returned: if that fails, the transaction must not go on.
    fn remove_chosen(&mut self) -> Result<()> {
        if self.chosen.is_empty() {
            return Ok(());
        }
        let leaf = self.at.leaf;
        let removed = self.at.remove(self.tx, self.table, &self.chosen);
        self.chosen.clear();
        removed.inspect_err(|error| self.tx.break_off(error))?;
        // The leaf that it is in now may be merged with the next. The others will hardly change again.
        let now = self.at.leaf;
        for changed in [self.last_leaf.replace(now), Some(leaf)].into_iter().flatten() {
            if changed != now {
                self.tx.encode_ahead(changed);
            }
        }
        Ok(())
    }
}

impl<F> Drop for ExtractIf<'_, '_, F> {
    fn drop(&mut self) {
        // An error breaks the transaction, whose next use returns it.
        let _ = self.remove_chosen();
    }
}

impl<F: for<'e> FnMut(&'e [u8], &'e [u8]) -> bool> Iterator for ExtractIf<'_, '_, F> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_entry().map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())));
        next.transpose()
    }
}

impl<'a> WriteTx<'a> {
    /// Removes the entries within these bounds for which `condition` holds, one by one as the result is iterated over.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    pub fn extract_if<F: for<'e> FnMut(&'e [u8], &'e [u8]) -> bool>(
        &mut self,
        table: Table,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        condition: F,
    ) -> Result<ExtractIf<'_, 'a, F>> {
        ExtractIf::new(self, table, bounds, condition)
    }

    /// Removes the entries for which `condition` does not hold; returns their number.
    ///
    /// # Errors
    /// As `delete`.
    pub fn retain(
        &mut self,
        table: Table,
        mut condition: impl for<'e> FnMut(&'e [u8], &'e [u8]) -> bool,
    ) -> Result<u64> {
        self.change_several(|tx| {
            let all = (Bound::Unbounded, Bound::Unbounded);
            let mut extracted = tx.extract_if(table, all, |key, value| !condition(key, value))?;
            let mut removed = 0;
            while extracted.next_entry()?.is_some() {
                removed += 1;
            }
            Ok(removed)
        })
    }
}
