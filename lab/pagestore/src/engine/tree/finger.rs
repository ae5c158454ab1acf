//! A finger: the leaf of the last insertion and the range of its keys. Insertions in key order, or near each other,
//! need not descend the tree.

use super::table::Table;
use crate::types::PageNo;

/// See the module.
#[derive(Default)]
pub(crate) struct Finger {
    /// The table, whose handle was checked during the descent, and the leaf.
    pub(super) at: Option<(Table, PageNo)>,
    /// Whether the range is known. It is determined at the second insertion into the leaf, so that a single one
    /// does not pay for it.
    pub(super) is_bound: bool,
    pub(super) from: Vec<u8>,
    /// Empty: unbounded.
    pub(super) to: Vec<u8>,
}

impl Finger {
    /// The leaf, if `key` belongs into it.
    pub(super) fn leaf_of(&self, table: Table, key: &[u8]) -> Option<PageNo> {
        let (known, leaf) = self.at?;
        let inside =
            self.is_bound && known == table && *key >= *self.from && (self.to.is_empty() || *key < *self.to);
        inside.then_some(leaf)
    }

    /// Must be called before a leaf changes its range or its page.
    pub(super) fn forget(&mut self) {
        (self.at, self.is_bound) = (None, false);
    }
}
