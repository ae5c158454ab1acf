//! A finger: the leaf of the last insertion and the range of its keys. Insertions in key order, or near each other,
//! need not descend the tree.

use crate::types::PageNo;

/// A handle of a table, returned by `create_table` and `table`. Any transaction may use it until the table is
/// dropped or its creation rolled back. After that, and in another store, it is refused ([`Error::StaleTable`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The low half of the store's identity.
    pub(super) store: u64,
    pub(super) root: PageNo,
    /// The owner of its pages. If its root page is reused, the next table has another number.
    pub(super) number: u32,
}

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
