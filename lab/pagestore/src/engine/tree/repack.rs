//! Repacking a tree: neighbouring nodes that are sparse are written into as few pages as they fill. Also which node
//! refers to a page, for moving it.
//!
//! ```text
//! parent        … | a | b | c | d | …          a window of its children
//!                   ▼ cells in key order, each page filled before the next
//! parent        … | a | b | …                  c and d are freed; the next window begins with b, which may be sparse
//! ```
//! Level 1 are the nodes whose children are leaves. Windows do not cross parents, so that one in a hundred leaves may
//! stay sparse; then the parents are repacked in the same way.

use super::node::{self, Cells, Node, NodeKind, NodeMut};
use super::position::{Position, Target};
use super::read::Tables;
use super::{DEPTH_MAX, Table, catalog, root_page, too_deep};
use crate::engine::cache::Page;
use crate::engine::tx::{Pages, WriteTx};
use crate::error::{Error, Result};
use crate::format::codec::put_u64;
use crate::format::page;
use crate::types::PageNo;
use std::ops::Bound;

/// Nodes are repacked if that saves one page in this many, or one of fewer pages.
const SAVED_ONE_IN: usize = 8;

/// The result of repacking one window.
pub(crate) struct Repacked {
    /// Where the next window begins; `None` at the end of the level.
    pub next: Option<Vec<u8>>,
    /// Children that were read.
    pub read: usize,
    /// Pages that were written, the parent not counted; 0: nothing was changed.
    pub written: usize,
    /// Pages that were freed.
    pub freed: usize,
}

/// The reference to a page of a table.
pub(crate) enum Holder {
    /// Child `index` of this node.
    Parent(PageNo, usize),
    /// The name of the table whose root it is.
    Name(String),
}

impl WriteTx<'_> {
    /// The table of this name, or the catalog; `None` if there is none.
    pub(crate) fn table_or_catalog(&self, name: Option<&str>) -> Result<Option<Table>> {
        let Some(name) = name else { return catalog(self).map(Some) };
        match self.table(name) {
            Err(Error::NoSuchTable { .. }) => Ok(None),
            table => table.map(Some),
        }
    }

    /// The first name of a table after this one.
    pub(crate) fn name_after(&self, name: Option<&str>) -> Result<Option<String>> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.as_bytes()));
        let next = self.range_within(catalog(self)?, (from, Bound::Unbounded))?.next().transpose()?;
        Ok(next.map(|(key, _)| String::from_utf8_lossy(&key).into_owned()))
    }

    /// Repacks up to `window` children of one node of this level, from the child that holds `from` on.
    pub(crate) fn repack(
        &mut self,
        table: Table,
        level: usize,
        from: &[u8],
        window: usize,
    ) -> Result<Repacked> {
        let position = Position::find(self, table, Target::Key(from))?;
        let path = &position.path;
        let Some(depth) = path.len().checked_sub(level) else {
            return Ok(Repacked { next: None, read: 0, written: 0, freed: 0 });
        };
        let (parent, first) = path[depth];
        let after = self.separator_after(&path[..depth])?;
        drop(position);
        let before = self.page(parent)?;
        let node = Node::open(&before, parent)?;
        let last = (first + window.max(2) - 1).min(node.count());
        let children = (first..=last).map(|index| node.child(index)).collect::<Result<Vec<_>>>()?;
        let beyond = if last < node.count() { Some(node.key(last)?.to_vec()) } else { after.clone() };
        let read = children.len();
        let unchanged = Repacked { next: beyond, read, written: 0, freed: 0 };
        if children.len() < 2 {
            return Ok(unchanged);
        }
        let contents = children.iter().map(|child| self.page(*child)).collect::<Result<Vec<Page>>>()?;
        let mut cells = Cells::default();
        for (at, (content, child)) in contents.iter().zip(&children).enumerate() {
            let separator = if at == 0 { &[][..] } else { node.key(first + at - 1)? };
            cells.extend(&Node::open(content, *child)?, separator)?;
        }
        let nodes = cells.fill()?;
        let saved = children.len().saturating_sub(nodes.len());
        if nodes.is_empty() || saved < (children.len() / SAVED_ONE_IN).max(1) {
            return Ok(unchanged);
        }
        // The lowest of their pages, in order.
        let mut places = children.clone();
        places.sort_unstable();
        let freed = places.split_off(nodes.len());
        let separators: Vec<_> = nodes.iter().skip(1).map(|filled| filled.separator.clone()).collect();
        let Some(changed) = node.with_children(first..=last, &separators, &places)? else {
            // Their separators are longer, and do not fit.
            return Ok(unchanged);
        };
        self.finger.forget();
        for (filled, place) in nodes.iter().zip(&places) {
            let bytes = self.any_page_mut(*place)?;
            bytes.copy_from_slice(&filled.bytes);
            node::mark_below_root(bytes);
        }
        for place in &freed {
            self.free_any(*place)?;
        }
        self.any_page_mut(parent)?.copy_from_slice(&changed);
        let next = match separators.last() {
            _ if last == node.count() => after,
            Some(separator) => Some(separator.clone()),
            None => Some(from.to_vec()),
        };
        Ok(Repacked { next, read, written: places.len(), freed: freed.len() })
    }

    /// The nearest separator to the right of a path: where the next subtree begins.
    fn separator_after(&self, path: &[(PageNo, usize)]) -> Result<Option<Vec<u8>>> {
        for (inner, index) in path.iter().rev() {
            let page = self.page_ref(*inner)?;
            let node = Node::open(&page, *inner)?;
            if *index < node.count() {
                return Ok(Some(node.key(*index)?.to_vec()));
            }
        }
        Ok(None)
    }

    /// While a root has one child, that moves into it. Returns how many pages were freed.
    pub(crate) fn collapse_root(&mut self, table: Table) -> Result<usize> {
        let (root, _) = root_page(self, table)?;
        for freed in 0..DEPTH_MAX {
            let before = self.page(root)?;
            let node = Node::open(&before, root)?;
            if node.kind() == NodeKind::Leaf || node.count() > 0 {
                return Ok(freed);
            }
            let child = node.child(0)?;
            let mut content = self.page(child)?.to_vec();
            if let Some(entries) = node.entries() {
                node::set_entries(&mut content, entries);
            }
            self.finger.forget();
            self.any_page_mut(root)?.copy_from_slice(&content);
            self.free_any(child)?;
        }
        Err(too_deep(root))
    }

    /// Finds the reference to `page`, which is part of this table; `None` if nothing refers to it.
    pub(crate) fn holder_of(&self, name: Option<&str>, table: Table, page: PageNo) -> Result<Option<Holder>> {
        let (root, content) = root_page(self, table)?;
        if root == page {
            let is_marked = Node::open(&content, root)?.entries().is_some();
            return Ok(name.filter(|_| is_marked).map(|name| Holder::Name(name.into())));
        }
        drop(content);
        let Some(key) = self.key_below(page)? else { return Ok(None) };
        let position = Position::find(self, table, Target::Key(&key))?;
        let children = position.path.iter().skip(1).map(|(inner, _)| *inner).chain([position.leaf]);
        let found = position.path.iter().zip(children).find(|(_, child)| *child == page);
        Ok(found.map(|((parent, index), _)| Holder::Parent(*parent, *index)))
    }

    /// A key that a search for leads through this node.
    fn key_below(&self, mut at: PageNo) -> Result<Option<Vec<u8>>> {
        for _ in 0..DEPTH_MAX {
            let page = self.page_ref(at)?;
            let node = Node::open(&page, at)?;
            if node.count() > 0 {
                return Ok(Some(node.key(0)?.to_vec()));
            }
            if node.kind() == NodeKind::Leaf {
                return Ok(None);
            }
            at = node.child(0)?;
        }
        Err(too_deep(at))
    }

    /// Copies a page of a table to `to`, and lets `holder` refer to that.
    pub(crate) fn move_page(&mut self, page: PageNo, to: PageNo, holder: &Holder) -> Result<()> {
        self.finger.forget();
        let content = self.page(page)?;
        self.any_page_mut(to)?.copy_from_slice(&content);
        match holder {
            Holder::Parent(parent, index) => {
                NodeMut::new(self.any_page_mut(*parent)?, *parent).set_child(*index, to)
            }
            Holder::Name(name) => {
                let catalog = catalog(self)?;
                self.put(catalog, name.as_bytes(), &to.0.to_le_bytes())
            }
        }
    }
}

impl Node<'_> {
    /// This inner node with other children instead of `replaced`, and these separators between them; `None` if they do
    /// not fit.
    fn with_children(
        &self,
        replaced: std::ops::RangeInclusive<usize>,
        separators: &[Vec<u8>],
        children: &[PageNo],
    ) -> Result<Option<Vec<u8>>> {
        let (first, last) = (*replaced.start(), *replaced.end());
        let before = (0..first).map(|index| self.child(index));
        let after = (last + 1..=self.count()).map(|index| self.child(index));
        let all = before.chain(children.iter().map(|child| Ok(*child))).chain(after);
        let all = all.collect::<Result<Vec<PageNo>>>()?;
        let keys_before = (0..first).map(|index| self.key(index));
        let keys_after = (last..self.count()).map(|index| self.key(index));
        let keys = keys_before.chain(separators.iter().map(|key| Ok(&key[..]))).chain(keys_after);
        let keys = keys.collect::<Result<Vec<&[u8]>>>()?;
        let cells: Vec<_> = keys.iter().zip(&all).map(|(key, child)| node::inner_cell(key, *child)).collect();
        if !self.fits(cells.iter().map(Vec::len)) {
            return Ok(None);
        }
        let cells: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
        let mut bytes = self.pack(&cells)?;
        put_u64(&mut bytes, node::RIGHT_AT, all[all.len() - 1].0);
        Ok(Some(bytes))
    }
}

/// The number of a page's table, if it is part of one.
pub(crate) fn table_of(content: &[u8]) -> Option<u32> {
    let owner = page::owner(content);
    (owner == page::OWNER_CATALOG || owner >= page::TABLES_FROM).then_some(owner)
}
