//! A finger: the leaf of the last insertion and the range of its keys. Insertions in key order, or near each other,
//! need not descend the tree.

use super::node::Node;
use super::{Path, Table, WriteTx};
use crate::error::Result;
use crate::tx::Pages;
use crate::types::PageNo;

/// See the module.
#[derive(Default)]
pub(crate) struct Finger {
    /// The table, whose handle was checked during the descent, and the leaf.
    at: Option<(Table, PageNo)>,
    /// Whether the range is known. It is determined at the second insertion into the leaf, so that a single one
    /// does not pay for it.
    is_bound: bool,
    from: Vec<u8>,
    /// Empty: unbounded.
    to: Vec<u8>,
}

impl Finger {
    /// The leaf, if `key` belongs into it.
    pub(super) fn leaf_of(&self, table: Table, key: &[u8]) -> Option<PageNo> {
        let (own, leaf) = self.at?;
        let inside =
            self.is_bound && own == table && *key >= *self.from && (self.to.is_empty() || *key < *self.to);
        inside.then_some(leaf)
    }

    /// Must be called before a leaf changes its range or its page.
    pub(super) fn forget(&mut self) {
        (self.at, self.is_bound) = (None, false);
    }
}

impl WriteTx<'_> {
    /// Remembers `leaf`, which lies below `path`, for the next insertion.
    pub(super) fn point_to(&mut self, table: Table, path: &Path, leaf: PageNo) -> Result<()> {
        let at = Some((table, leaf));
        if self.finger.at != at {
            (self.finger.at, self.finger.is_bound) = (at, false);
            return Ok(());
        }
        let mut finger = std::mem::take(&mut self.finger);
        finger.from.clear();
        finger.to.clear();
        // The nearest separator on either side, from the root down.
        for (inner, index) in path {
            let page = self.page(*inner)?;
            let node = Node::open(&page, *inner)?;
            if *index > 0 {
                finger.from.clear();
                finger.from.extend_from_slice(node.key(index - 1)?);
            }
            if *index < node.count() {
                finger.to.clear();
                finger.to.extend_from_slice(node.key(*index)?);
            }
        }
        (finger.at, finger.is_bound) = (at, true);
        self.finger = finger;
        Ok(())
    }
}
