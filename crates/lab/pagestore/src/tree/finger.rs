//! The leaf that a transaction put into last, and the keys that belong there: entries that come in the order of their
//! keys, or near each other, need no way down the tree.

use super::node::Node;
use super::{Path, Table, WriteTx};
use crate::error::Result;
use crate::tx::Pages;
use crate::types::PageNo;

/// See the module.
#[derive(Default)]
pub(crate) struct Finger {
    /// The table, whose handle was checked on the way to it, and the leaf.
    at: Option<(Table, PageNo)>,
    /// Whether its bounds are known: they are sought when it is met again, so that one entry alone does not pay for it.
    is_bound: bool,
    from: Vec<u8>,
    /// Empty: no end.
    to: Vec<u8>,
}

impl Finger {
    /// The leaf, where `key` belongs into it.
    pub(super) fn leaf_of(&self, table: Table, key: &[u8]) -> Option<PageNo> {
        let (own, leaf) = self.at?;
        let inside =
            self.is_bound && own == table && *key >= *self.from && (self.to.is_empty() || *key < *self.to);
        inside.then_some(leaf)
    }

    /// To be told before a leaf gets other bounds or another place.
    pub(super) fn forget(&mut self) {
        (self.at, self.is_bound) = (None, false);
    }
}

impl WriteTx<'_> {
    /// The next entry may belong into `leaf` too, which lies below `path`.
    pub(super) fn point_to(&mut self, table: Table, path: &Path, leaf: PageNo) -> Result<()> {
        let at = Some((table, leaf));
        if self.finger.at != at {
            (self.finger.at, self.finger.is_bound) = (at, false);
            return Ok(());
        }
        let mut finger = std::mem::take(&mut self.finger);
        finger.from.clear();
        finger.to.clear();
        // The nearest key to either side, from the root down.
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
