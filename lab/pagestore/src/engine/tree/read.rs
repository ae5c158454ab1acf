//! Reading tables; the same in a snapshot and in the writing transaction.

use super::cursor::Cursor;
use super::node::{Node, NodeKind};
use super::position::{Position, Target};
use super::{DEPTH_MAX, Range, Table, catalog, root_page, too_deep};
use crate::engine::read::PageRef;
use crate::engine::tx::{Pages, ReadTx, WriteTx};
use crate::error::{Error, Result};
use crate::format::codec::u64_at;
use crate::format::page;
use crate::types::PageNo;
use std::ops::{Bound, Deref};

/// A value in its page: it is not copied, and stays what it is for as long as it exists.
pub struct Value<'a> {
    page: PageRef<'a>,
    at: std::ops::Range<usize>,
}

impl Deref for Value<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.page[self.at.clone()]
    }
}

impl AsRef<[u8]> for Value<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Reading tables; the same in a snapshot and in the writing transaction.
pub trait Tables: Pages + Sized {
    /// The table of this name.
    ///
    /// # Errors
    /// When there is none, or a page cannot be read.
    fn table(&self, name: &str) -> Result<Table> {
        let entry = get(self, catalog(self)?, name.as_bytes())?.filter(|entry| entry.len() == 8);
        let Some(entry) = entry else { return Err(Error::NoSuchTable { name: name.into() }) };
        let root = PageNo(u64_at(&entry, 0));
        let number = page::owner(&self.page_ref(root)?);
        if number != page::OWNER_USER && number < page::TABLES_FROM {
            return Err(Error::CorruptTree {
                page: root,
                why: "a table's name leads to it, and it is not a table's",
            });
        }
        Ok(Table { store: self.store(), root, number })
    }

    /// The names of all tables, in order.
    ///
    /// # Errors
    /// When a page cannot be read.
    fn tables(&self) -> Result<Vec<String>> {
        let all = self.range_within(catalog(self)?, (Bound::Unbounded, Bound::Unbounded))?;
        all.map(|entry| entry.map(|(name, _)| String::from_utf8_lossy(&name).into_owned())).collect()
    }

    /// The value at `key`.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(get(self, table, key)?.map(|value| value.to_vec()))
    }

    /// The value at `key`, in its page.
    ///
    /// # Errors
    /// As `get`.
    fn get_ref(&self, table: Table, key: &[u8]) -> Result<Option<Value<'_>>> {
        get(self, table, key)
    }

    /// The number of entries. It is kept with the table; in a store of version 1 all are counted.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    fn len(&self, table: Table) -> Result<u64> {
        let (root, page) = root_page(self, table)?;
        if let Some(entries) = self.changed_entries(root).or(Node::open(&page, root)?.entries()) {
            return Ok(entries);
        }
        let mut position = Position::find(self, table, Target::First)?;
        let mut entries = 0;
        while position.forward(self)? {
            entries += 1;
        }
        Ok(entries)
    }

    /// Whether the table has no entries.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    fn is_empty(&self, table: Table) -> Result<bool> {
        Ok(!Position::find(self, table, Target::First)?.forward(self)?)
    }

    /// The entry with the lowest key.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    fn first(&self, table: Table) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        Ok(self.cursor(table)?.first()?.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }

    /// The entry with the highest key.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    fn last(&self, table: Table) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        Ok(self.cursor(table)?.last()?.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }

    /// The entries from key `from` on, up to and excluding `to`.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    fn range<'a>(&'a self, table: Table, from: &[u8], to: Option<&[u8]>) -> Result<Range<'a, Self>> {
        self.range_within(table, (Bound::Included(from), to.map_or(Bound::Unbounded, Bound::Excluded)))
    }

    /// The entries within these bounds.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    fn range_within<'a>(
        &'a self,
        table: Table,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<Range<'a, Self>> {
        Range::new(self, table, bounds)
    }

    /// A cursor that reads.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    fn cursor(&self, table: Table) -> Result<Cursor<&Self>> {
        Cursor::new(self, table)
    }
}

impl Tables for ReadTx<'_> {}
impl Tables for WriteTx<'_> {}

pub(super) fn get<'a>(pages: &'a impl Pages, table: Table, key: &[u8]) -> Result<Option<Value<'a>>> {
    let (mut at, mut page) = root_page(pages, table)?;
    for _ in 0..DEPTH_MAX {
        let node = Node::open(&page, at)?;
        match node.kind() {
            NodeKind::Inner => {
                at = node.child(node.child_index(key)?)?;
                page = pages.page_ref(at)?;
            }
            NodeKind::Leaf => {
                let Ok(index) = node.search(key)? else { return Ok(None) };
                let at = node.value_range(index)?;
                return Ok(Some(Value { page, at }));
            }
        }
    }
    Err(too_deep(table.root))
}
