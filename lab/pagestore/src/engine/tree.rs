//! Tables: named B+trees on pages, ordered by the bytes of their keys.

mod cursor;
mod extract;
pub(crate) mod finger;
mod merge;
pub(crate) mod node;
mod position;
mod range;
mod read;
pub(crate) mod repack;
mod table;

use crate::engine::cache::Page;
use crate::engine::read::PageRef;
use crate::engine::tx::{Pages, WriteTx};
use crate::error::{Error, Result};
use crate::format::page;
use crate::types::PageNo;
pub use cursor::Cursor;
pub use extract::ExtractIf;
use merge::Fill;
use node::{Halves, Node, NodeFormat, NodeKind, NodeMut};
use position::{Position, Target};
pub use range::Range;
pub use read::{Tables, Value};
pub use table::Table;

/// The maximum depth. 16 levels with two children each would hold more pages than fit on a disk; a deeper tree is
/// damaged.
const DEPTH_MAX: usize = 64;

/// The inner nodes above a leaf, from the root, each with the index of the child.
type Path = Vec<(PageNo, usize)>;

/// Makes `page` the catalog of a new store, the table of table names.
pub(crate) fn format_catalog(tx: &mut WriteTx<'_>, page: PageNo) -> Result<()> {
    format(tx, page, NodeFormat::Heads, page::OWNER_CATALOG)
}

/// Makes `page` an empty tree of this table.
fn format(tx: &mut WriteTx<'_>, page: PageNo, format: NodeFormat, table: u32) -> Result<()> {
    NodeMut::format(tx.any_page_mut(page)?, NodeKind::Leaf, format, table);
    Ok(())
}

/// The table of table names.
fn catalog(pages: &impl Pages) -> Result<Table> {
    let root = pages.catalog()?;
    Ok(Table { store: pages.store(), root, number: page::owner(&pages.page_ref(root)?) })
}

/// The format of the store's nodes.
fn node_format(pages: &impl Pages) -> Result<NodeFormat> {
    let root = pages.catalog()?;
    Ok(Node::open(&pages.page_ref(root)?, root)?.format())
}

/// Reads the root of a table, after checking that the page still belongs to it. Every use of a table begins with
/// this.
#[inline]
fn root_page(pages: &impl Pages, table: Table) -> Result<(PageNo, PageRef<'_>)> {
    let stale = |why| Err(Error::StaleTable { why });
    if table.store != pages.store() {
        return stale("it is of another store");
    }
    let root = pages.root_of(table.number, table.root);
    let gone = "the table was dropped, or its making rolled back, or a snapshot is older than it";
    if pages.is_cut(root)? {
        return stale(gone);
    }
    match pages.page_ref(root) {
        Ok(page) if page::owner(&page) == table.number && node::is_below_root(&page) => {
            stale("it is of an earlier opening, and a compaction has moved the table since")
        }
        Ok(page) if page::owner(&page) == table.number => Ok((root, page)),
        Ok(_) | Err(Error::NoSuchPage { .. }) => stale(gone),
        Err(error) => Err(error),
    }
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
        let node_format = node_format(self)?;
        let limit = node_format.entry_bytes_max(self.page_bytes()) - 8;
        if name.len() > limit {
            return Err(Error::TooLong { what: "table name", bytes: name.len(), limit });
        }
        let catalog = catalog(self)?;
        if read::get(self, catalog, name.as_bytes())?.is_some() {
            return Err(Error::TableExists { name: name.into() });
        }
        self.change_several(|tx| {
            let (root, number) = (tx.allocate()?, tx.table_number());
            format(tx, root, node_format, number)?;
            tx.put(catalog, name.as_bytes(), &root.0.to_le_bytes())?;
            Ok(Table { store: catalog.store, root, number })
        })
    }

    /// The table of this name, which is created if there is none.
    ///
    /// # Errors
    /// As `table` and `create_table`.
    pub fn open_or_create_table(&mut self, name: &str) -> Result<Table> {
        match self.table(name) {
            Err(Error::NoSuchTable { .. }) => self.create_table(name),
            other => other,
        }
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
            tx.forget_entries(table);
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
        self.check_length(key.len() + value.len())?;
        self.change_several(|tx| tx.put_fitting(table, key, value))
    }

    /// Fails if key and value are too long together.
    fn check_length(&self, bytes: usize) -> Result<()> {
        let page_bytes = self.page_bytes();
        // Most are short enough in every format.
        if bytes <= NodeFormat::Heads.entry_bytes_max(page_bytes) {
            return Ok(());
        }
        let limit = node_format(self)?.entry_bytes_max(page_bytes);
        if bytes <= limit { Ok(()) } else { Err(Error::TooLong { what: "key and value", bytes, limit }) }
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
                return self.add_entries(table, 1);
            }
        }
        let mut at = Position::find(self, table, Target::Key(key))?;
        let (leaf, index) = (at.leaf, at.index);
        self.load_entries(table)?;
        let node = at.node()?;
        if at.is_exact && node.value_range(index)?.len() == value.len() {
            self.point_to(table, &at.path, leaf)?;
            return NodeMut::new(self.change(leaf, at.take_page())?, leaf).replace_value(index, value);
        }
        // A full leaf is not changed here: with ascending keys the split leaves it unchanged.
        if at.is_exact || node.has_room(key, value) {
            self.point_to(table, &at.path, leaf)?;
            let mut node = NodeMut::new(self.change(leaf, at.take_page())?, leaf);
            if at.is_exact {
                node.remove(index)?;
            }
            if node.insert_leaf(index, key, value)? {
                return self.add_entries(table, i64::from(!at.is_exact));
            }
        }
        // The copy of the page is changed in place if nothing else refers to it.
        at.release_page();
        let halves = Node::open(&self.page_ref(leaf)?, leaf)?.split_leaf(index, key, value)?;
        let separator = self.split(leaf, halves)?;
        self.insert_separator(at.path, leaf, separator)?;
        self.add_entries(table, i64::from(!at.is_exact))
    }

    /// Removes `key`; returns whether it existed.
    ///
    /// # Errors
    /// When the handle is stale, and as `page_mut`.
    pub fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        self.change_several(|tx| tx.delete_found(table, key))
    }

    fn delete_found(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        let mut at = Position::find(self, table, Target::Key(key))?;
        if !at.is_exact {
            return Ok(false);
        }
        self.load_entries(table)?;
        let last = at.node()?.count() == 1;
        let before = Fill::of_leaf(&at.node()?);
        let now = self.remove_from_leaf(at.leaf, at.take_page(), at.index)?;
        if last {
            self.remove_empty(at.path, at.leaf, table.number)?;
        } else if before.became_sparse(now) {
            self.merge_sparse(table, at.path, at.leaf)?;
        }
        self.add_entries(table, -1)?;
        Ok(true)
    }

    /// Removes an entry of a leaf that contains `before`; returns how full it is then.
    fn remove_from_leaf(&mut self, leaf: PageNo, before: Page, index: usize) -> Result<Fill> {
        let mut node = NodeMut::new(self.change(leaf, before)?, leaf);
        node.remove(index)?;
        node.read().map(|node| Fill::of_leaf(&node))
    }

    /// Writes the halves of `page` to it and a new page. Returns the first key of the new page, and the page.
    fn split(&mut self, page: PageNo, halves: Halves) -> Result<(Vec<u8>, PageNo)> {
        self.finger.forget();
        let right = self.allocate()?;
        if let Some(left) = halves.left {
            self.any_page_mut(page)?.copy_from_slice(&left);
        }
        self.any_page_mut(right)?.copy_from_slice(&halves.right);
        node::mark_below_root(self.any_page_mut(right)?);
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
            let whole = self.page_ref(parent)?;
            let halves = Node::open(&whole, parent)?.split_inner(index, &separator, left, right)?;
            drop(whole);
            let (key, page) = self.split(parent, halves)?;
            (left, separator, right) = (parent, key, page);
        }
        // The root was split: it keeps its page, and its left half moves.
        let moved = self.allocate()?;
        let bytes = self.page(left)?;
        self.any_page_mut(moved)?.copy_from_slice(&bytes);
        node::mark_below_root(self.any_page_mut(moved)?);
        let format = Node::open(&bytes, left)?.format();
        let root = self.any_page_mut(left)?;
        NodeMut::format(root, NodeKind::Inner, format, page::owner(&bytes));
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
        let format_of_all = Node::open(&self.page(empty)?, empty)?.format();
        while let Some((parent, index)) = path.pop() {
            self.free_any(empty)?;
            let mut node = NodeMut::new(self.any_page_mut(parent)?, parent);
            if node.remove_child(index)? {
                return Ok(());
            }
            // It was the only child.
            empty = parent;
        }
        format(self, empty, format_of_all, table)
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
            let page = self.page_ref(*inner)?;
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

/// The numbers of entries of the tables that the transaction changes; they are stored with the commit.
impl WriteTx<'_> {
    /// Reads the number of a table's entries, before the first change of the table.
    fn load_entries(&mut self, table: Table) -> Result<()> {
        if !self.entries.contains_key(&self.root_of(table.number, table.root)) {
            let (root, page) = root_page(self, table)?;
            let stored = Node::open(&page, root)?.entries();
            drop(page);
            if let Some(entries) = stored {
                self.entries.insert(root, entries);
            }
        }
        Ok(())
    }

    /// The table has more entries by `change`. In a store of version 1 they are not counted.
    fn add_entries(&mut self, table: Table, change: i64) -> Result<()> {
        let root = self.root_of(table.number, table.root);
        let Some(entries) = self.entries.get_mut(&root).filter(|_| change != 0) else { return Ok(()) };
        *entries = entries
            .checked_add_signed(change)
            .ok_or(Error::CorruptTree { page: root, why: "it counts fewer entries than its table has" })?;
        // The root page is changed now, so that the commit need not read it.
        if self.is_changed(root) { Ok(()) } else { self.any_page_mut(root).map(drop) }
    }

    fn forget_entries(&mut self, table: Table) {
        self.entries.remove(&table.root);
    }

    /// Stores the numbers in the tables' root pages.
    pub(super) fn store_entries(&mut self) -> Result<()> {
        let counted = std::mem::take(&mut self.entries);
        self.change_several(|tx| {
            for (root, entries) in counted {
                let page = tx.page(root)?;
                if Node::open(&page, root)?.entries() != Some(entries) {
                    node::set_entries(tx.change(root, page)?, entries);
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
