//! Tables: named B+trees on pages, ordered by the bytes of their keys.

pub(crate) mod finger;
mod node;
mod range;
mod table;

use crate::engine::cache::Page;
use crate::engine::tx::{Pages, ReadTx, WriteTx};
use crate::error::{Error, Result};
use crate::format::codec::u64_at;
use crate::format::page;
use crate::types::PageNo;
use node::{Halves, Node, NodeKind, NodeMut};
pub use range::Range;
pub use table::Table;

/// The maximum depth. 16 levels with two children each would hold more pages than fit on a disk; a deeper tree is
/// damaged.
const DEPTH_MAX: usize = 64;

/// The inner nodes above a leaf, from the root, each with the index of the child.
type Path = Vec<(PageNo, usize)>;

/// Makes `page` an empty tree of this table.
pub(crate) fn format(tx: &mut WriteTx<'_>, page: PageNo, table: u32) -> Result<()> {
    NodeMut::format(tx.any_page_mut(page)?, NodeKind::Leaf, table);
    Ok(())
}

/// The table of table names.
fn catalog(pages: &impl Pages) -> Result<Table> {
    let root = pages.catalog()?;
    Ok(Table { store: pages.store(), root, number: page::owner(&pages.page(root)?) })
}

/// Reads the root of a table, after checking that the page still belongs to it. Every use of a table begins with
/// this.
fn root_page(pages: &impl Pages, table: Table) -> Result<Page> {
    let stale = |why| Err(Error::StaleTable { why });
    if table.store != pages.store() {
        return stale("it is of another store");
    }
    match pages.page(table.root) {
        Ok(root) if page::owner(&root) == table.number => Ok(root),
        Ok(_) | Err(Error::NoSuchPage { .. }) => {
            stale("the table was dropped, or its making rolled back, or a snapshot is older than it")
        }
        Err(error) => Err(error),
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
        let number = page::owner(&self.page(root)?);
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
        let all = Range::new(self, catalog(self)?, &[], None)?;
        all.map(|entry| entry.map(|(name, _)| String::from_utf8_lossy(&name).into_owned())).collect()
    }

    /// The value at `key`.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        get(self, table, key)
    }

    /// The entries from key `from` on, up to and excluding `to`.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    fn range<'a>(&'a self, table: Table, from: &[u8], to: Option<&[u8]>) -> Result<Range<'a, Self>> {
        Range::new(self, table, from, to)
    }
}

impl Tables for ReadTx<'_> {}
impl Tables for WriteTx<'_> {}

fn get(pages: &impl Pages, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let (mut at, mut page) = (table.root, root_page(pages, table)?);
    for _ in 0..DEPTH_MAX {
        let node = Node::open(&page, at)?;
        match node.kind() {
            NodeKind::Inner => {
                at = node.child(node.child_index(key)?)?;
                page = pages.page(at)?;
            }
            NodeKind::Leaf => {
                return match node.search(key)? {
                    Ok(index) => Ok(Some(node.value(index)?.to_vec())),
                    Err(_) => Ok(None),
                };
            }
        }
    }
    Err(too_deep(table.root))
}

fn too_deep(page: PageNo) -> Error {
    Error::CorruptTree { page, why: "the tree below it is a circle" }
}

impl WriteTx<'_> {
    /// Creates an empty table.
    ///
    /// # Errors
    /// When there is one of this name, the name is too long, and as `page_mut`.
    pub fn create_table(&mut self, name: &str) -> Result<Table> {
        let limit = node::entry_bytes_max(self.page_bytes()) - 8;
        if name.len() > limit {
            return Err(Error::TooLong { what: "table name", bytes: name.len(), limit });
        }
        let catalog = catalog(self)?;
        if get(self, catalog, name.as_bytes())?.is_some() {
            return Err(Error::TableExists { name: name.into() });
        }
        self.change_several(|tx| {
            let (root, number) = (tx.allocate()?, tx.table_number());
            format(tx, root, number)?;
            tx.put(catalog, name.as_bytes(), &root.0.to_le_bytes())?;
            Ok(Table { store: catalog.store, root, number })
        })
    }

    /// Drops a table and frees its pages.
    ///
    /// # Errors
    /// When there is none of this name, and as `page_mut`.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        let table = self.table(name)?;
        let catalog = catalog(self)?;
        self.change_several(|tx| {
            tx.delete(catalog, name.as_bytes())?;
            tx.free_tree(table.root, 0)
        })
    }

    fn free_tree(&mut self, at: PageNo, depth: usize) -> Result<()> {
        self.finger.forget();
        if depth > DEPTH_MAX {
            return Err(too_deep(at));
        }
        let page = self.page(at)?;
        let node = Node::open(&page, at)?;
        if node.kind() == NodeKind::Inner {
            for index in 0..=node.count() {
                self.free_tree(node.child(index)?, depth + 1)?;
            }
        }
        self.free_any(at)
    }

    /// Sets the value of `key`, whether it exists or not.
    ///
    /// # Errors
    /// When the handle is stale, key and value do not fit a quarter of a page, and as `page_mut`.
    pub fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let limit = node::entry_bytes_max(self.page_bytes());
        if key.len() + value.len() > limit {
            return Err(Error::TooLong { what: "key and value", bytes: key.len() + value.len(), limit });
        }
        self.change_several(|tx| tx.put_fitting(table, key, value))
    }

    fn put_fitting(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        if let Some(leaf) = self.finger.leaf_of(table, key) {
            let page = self.page(leaf)?;
            let node = Node::open(&page, leaf)?;
            let found = if node.is_after(key)? { Err(node.count()) } else { node.search(key)? };
            if let Err(index) = found
                && node.has_room(key, value)
                && NodeMut::new(self.change(leaf, page)?, leaf).insert_leaf(index, key, value)?
            {
                return Ok(());
            }
        }
        let (path, leaf, page) = self.path_to(table, key)?;
        let node = Node::open(&page, leaf)?;
        let found = node.search(key)?;
        let index = found.unwrap_or_else(|index| index);
        // A full leaf is not changed here: with ascending keys the split leaves it unchanged.
        if found.is_ok() || node.has_room(key, value) {
            self.point_to(table, &path, leaf)?;
            let mut node = NodeMut::new(self.change(leaf, page)?, leaf);
            if found.is_ok() {
                node.remove(index)?;
            }
            if node.insert_leaf(index, key, value)? {
                return Ok(());
            }
        }
        let whole = self.page(leaf)?;
        let halves = Node::open(&whole, leaf)?.split_leaf(index, key, value)?;
        let separator = self.split(leaf, halves)?;
        self.insert_separator(path, leaf, separator)
    }

    /// Removes `key`; returns whether it existed.
    ///
    /// # Errors
    /// When the handle is stale, and as `page_mut`.
    pub fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        self.change_several(|tx| tx.delete_found(table, key))
    }

    fn delete_found(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        let (path, leaf, page) = self.path_to(table, key)?;
        let node = Node::open(&page, leaf)?;
        let Ok(index) = node.search(key)? else { return Ok(false) };
        let last = node.count() == 1;
        NodeMut::new(self.change(leaf, page)?, leaf).remove(index)?;
        if last {
            self.remove_empty(path, leaf, table.number)?;
        }
        Ok(true)
    }

    /// The path to the leaf of `key`, the leaf, and its content.
    fn path_to(&self, table: Table, key: &[u8]) -> Result<(Path, PageNo, Page)> {
        let mut path = Vec::new();
        let (mut at, mut page) = (table.root, root_page(self, table)?);
        for _ in 0..DEPTH_MAX {
            let node = Node::open(&page, at)?;
            if node.kind() == NodeKind::Leaf {
                return Ok((path, at, page));
            }
            let index = node.child_index(key)?;
            path.push((at, index));
            at = node.child(index)?;
            page = self.page(at)?;
        }
        Err(too_deep(table.root))
    }

    /// Writes the halves of `page` to it and a new page. Returns the first key of the new page, and the page.
    fn split(&mut self, page: PageNo, halves: Halves) -> Result<(Vec<u8>, PageNo)> {
        self.finger.forget();
        let right = self.allocate()?;
        if let Some(left) = halves.left {
            self.any_page_mut(page)?.copy_from_slice(&left);
        }
        self.any_page_mut(right)?.copy_from_slice(&halves.right);
        Ok((halves.separator, right))
    }

    /// Records in the parent of `left` that keys from `separator` on are now in `right`.
    fn insert_separator(
        &mut self,
        mut path: Path,
        mut left: PageNo,
        (mut separator, mut right): (Vec<u8>, PageNo),
    ) -> Result<()> {
        while let Some((parent, index)) = path.pop() {
            let mut node = NodeMut::new(self.any_page_mut(parent)?, parent);
            if node.insert_inner(index, &separator, left, right)? {
                return Ok(());
            }
            let whole = self.page(parent)?;
            let halves = Node::open(&whole, parent)?.split_inner(index, &separator, left, right)?;
            let (key, page) = self.split(parent, halves)?;
            (left, separator, right) = (parent, key, page);
        }
        // The root was split: it keeps its page, and its left half moves.
        let moved = self.allocate()?;
        let bytes = self.page(left)?;
        self.any_page_mut(moved)?.copy_from_slice(&bytes);
        let root = self.any_page_mut(left)?;
        NodeMut::format(root, NodeKind::Inner, page::owner(&bytes));
        let mut node = NodeMut::new(root, left);
        node.set_right_child(right);
        if !node.insert_inner(0, &separator, moved, right)? {
            return Err(Error::CorruptTree { page: left, why: "an empty root has no room for an entry" });
        }
        Ok(())
    }

    /// Removes an empty leaf of a table from its parents.
    fn remove_empty(&mut self, mut path: Path, mut empty: PageNo, table: u32) -> Result<()> {
        self.finger.forget();
        while let Some((parent, index)) = path.pop() {
            self.free_any(empty)?;
            let mut node = NodeMut::new(self.any_page_mut(parent)?, parent);
            if node.remove_child(index)? {
                return Ok(());
            }
            // It was the only child.
            empty = parent;
        }
        format(self, empty, table)
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

#[cfg(test)]
mod tests;
