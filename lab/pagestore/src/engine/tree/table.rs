//! The handle of a table.

use crate::types::PageNo;

/// A handle of a table, returned by `create_table` and `table`. Any transaction may use it until the table is
/// dropped or its creation rolled back. After that, and in another store, it is refused
/// ([`Error::StaleTable`](crate::Error::StaleTable)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The low half of the store's identity.
    pub(super) store: u64,
    pub(super) root: PageNo,
    /// The owner of its pages. If its root page is reused, the next table has another number.
    pub(super) number: u32,
}

impl Table {
    /// The owner of its pages.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}
