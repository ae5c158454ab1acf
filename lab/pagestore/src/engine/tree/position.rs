//! A place in a table: on an entry, or between two.

use super::merge::Fill;
use super::node::{Node, NodeKind, NodeMut};
use super::{DEPTH_MAX, Path, Table, root_page, too_deep};
use crate::engine::cache::Page;
use crate::engine::read::PageRef;
use crate::engine::tx::{Pages, WriteTx};
use crate::error::Result;
use crate::types::PageNo;
use std::ops::Bound;

/// Key and value.
pub(super) type Entry<'a> = (&'a [u8], &'a [u8]);

/// Which leaf to descend to.
#[derive(Clone, Copy)]
pub(super) enum Target<'k> {
    /// Before the first entry.
    First,
    /// After the last entry.
    Last,
    /// Before the first entry from this key on.
    Key(&'k [u8]),
}

/// See the module.
pub(super) struct Position {
    pub(super) path: Path,
    pub(super) leaf: PageNo,
    /// The leaf's content; `None` only while it is changed.
    page: Option<Page>,
    pub(super) index: usize,
    /// Whether entry `index` has the key that was descended to.
    pub(super) is_exact: bool,
    /// Whether it is on entry `index`; otherwise it is before it.
    is_on: bool,
}

impl Position {
    /// The place before the target.
    pub(super) fn find(pages: &impl Pages, table: Table, target: Target<'_>) -> Result<Self> {
        let (root, page) = root_page(pages, table)?;
        let mut position =
            Self { path: Vec::new(), leaf: root, page: None, index: 0, is_exact: false, is_on: false };
        position.descend(pages, (root, page), target)?;
        Ok(position)
    }

    /// The place before the entries within `from`.
    pub(super) fn before(pages: &impl Pages, table: Table, from: Bound<&[u8]>) -> Result<Self> {
        match from {
            Bound::Unbounded => Self::find(pages, table, Target::First),
            Bound::Included(key) => Self::find(pages, table, Target::Key(key)),
            Bound::Excluded(key) => {
                let mut position = Self::find(pages, table, Target::Key(key))?;
                position.index += usize::from(position.is_exact);
                Ok(position)
            }
        }
    }

    /// The place after the entries within `to`.
    pub(super) fn after(pages: &impl Pages, table: Table, to: Bound<&[u8]>) -> Result<Self> {
        match to {
            Bound::Unbounded => Self::find(pages, table, Target::Last),
            Bound::Excluded(key) => Self::find(pages, table, Target::Key(key)),
            Bound::Included(key) => Self::before(pages, table, Bound::Excluded(key)),
        }
    }

    /// Descends from a node, which lies below `path`.
    fn descend<'a>(
        &mut self,
        pages: &'a impl Pages,
        (mut at, mut page): (PageNo, PageRef<'a>),
        target: Target<'_>,
    ) -> Result<()> {
        loop {
            if self.path.len() >= DEPTH_MAX {
                return Err(too_deep(at));
            }
            let node = Node::open(&page, at)?;
            if node.kind() == NodeKind::Leaf {
                (self.index, self.is_exact) = match target {
                    Target::First => (0, false),
                    Target::Last => (node.count(), false),
                    Target::Key(key) => match node.search(key)? {
                        Ok(index) => (index, true),
                        Err(index) => (index, false),
                    },
                };
                (self.leaf, self.page, self.is_on) = (at, Some(page.into_page()), false);
                return Ok(());
            }
            let index = match target {
                Target::First => 0,
                Target::Last => node.count(),
                Target::Key(key) => node.child_index(key)?,
            };
            self.path.push((at, index));
            at = node.child(index)?;
            page = pages.page_ref(at)?;
        }
    }

    #[inline]
    pub(super) fn node(&self) -> Result<Node<'_>> {
        Node::open(self.page.as_ref().expect("it is there between changes"), self.leaf)
    }

    /// How full the leaf is.
    pub(super) fn fill(&self) -> Result<Fill> {
        self.node().map(|node| Fill::of_leaf(&node))
    }

    /// Moves to entry `index` of its leaf.
    #[inline]
    pub(super) fn place_on(&mut self, index: usize) {
        (self.index, self.is_on) = (index, true);
    }

    /// The index of the next entry, if its leaf has one.
    #[inline]
    pub(super) fn next_index(&self) -> usize {
        self.index + usize::from(self.is_on)
    }

    /// The number of entries of its leaf that are within `to`.
    pub(super) fn count_within(&self, to: &Bound<Vec<u8>>) -> Result<usize> {
        let node = self.node()?;
        match to {
            Bound::Unbounded => Ok(node.count()),
            Bound::Included(to) => node.child_index(to),
            Bound::Excluded(to) => Ok(node.search(to)?.unwrap_or_else(|index| index)),
        }
    }

    /// The entry that it is on.
    #[inline]
    pub(super) fn entry(&self) -> Result<Option<Entry<'_>>> {
        if self.is_on { self.node()?.entry(self.index).map(Some) } else { Ok(None) }
    }

    /// Moves to the next entry; after the last one and returns false if there is none.
    pub(super) fn forward(&mut self, pages: &impl Pages) -> Result<bool> {
        self.index += usize::from(self.is_on);
        self.is_on = false;
        while self.index >= self.node()?.count() {
            if !self.move_to_leaf(pages, Target::First)? {
                return Ok(false);
            }
        }
        self.is_on = true;
        Ok(true)
    }

    /// Moves to the previous entry; before the first one and returns false if there is none.
    pub(super) fn back(&mut self, pages: &impl Pages) -> Result<bool> {
        self.is_on = false;
        while self.index == 0 {
            if !self.move_to_leaf(pages, Target::Last)? {
                return Ok(false);
            }
        }
        self.index -= 1;
        self.is_on = true;
        Ok(true)
    }

    /// Moves to the beginning (`First`) of the next leaf, or the end (`Last`) of the previous one. Returns false if there
    /// is none.
    pub(super) fn move_to_leaf(&mut self, pages: &impl Pages, target: Target<'_>) -> Result<bool> {
        let mut level = self.path.len();
        while let Some(above) = level.checked_sub(1) {
            let (inner, index) = self.path[above];
            let page = pages.page_ref(inner)?;
            let node = Node::open(&page, inner)?;
            let sibling = match target {
                Target::Last => index.checked_sub(1),
                _ => (index < node.count()).then_some(index + 1),
            };
            if let Some(sibling) = sibling {
                let child = node.child(sibling)?;
                self.path.truncate(above);
                self.path.push((inner, sibling));
                self.descend(pages, (child, pages.page_ref(child)?), target)?;
                return Ok(true);
            }
            level = above;
        }
        Ok(false)
    }

    /// Takes the leaf's content, for a change.
    pub(super) fn take_page(&mut self) -> Page {
        self.page.take().expect("it is there between changes")
    }

    /// Refers to the leaf's content no longer.
    pub(super) fn release_page(&mut self) {
        self.page = None;
    }

    /// Makes the leaf one that the transaction has changed, so that removing entries of it cannot fail for lack of memory or
    /// an I/O error unless none is left.
    pub(super) fn prepare_removal(&mut self, tx: &mut WriteTx<'_>, table: Table) -> Result<()> {
        tx.load_entries(table)?;
        let before = self.take_page();
        tx.change(self.leaf, before)?;
        self.page = Some(tx.page(self.leaf)?);
        Ok(())
    }

    /// Removes the entries of the leaf with these indices, which ascend. It is then in the same leaf, at the place of
    /// the first of them; or where that leaf was, if none is left. The leaf may be merged with its left neighbour.
    pub(super) fn remove(&mut self, tx: &mut WriteTx<'_>, table: Table, indices: &[usize]) -> Result<()> {
        let Some(first) = indices.first() else { return Ok(()) };
        let node = self.node()?;
        // The last entry of a leaf goes with the leaf, and the path with it.
        let (emptied, fill) = (indices.len() == node.count(), Fill::of_leaf(&node));
        let key = if emptied { Some(node.key(*first)?.to_vec()) } else { None };
        let before = self.take_page();
        match key {
            Some(key) => {
                drop(before);
                tx.remove_empty(std::mem::take(&mut self.path), self.leaf, table.number)?;
                *self = Self::find(tx, table, Target::Key(&key))?;
            }
            None => {
                let mut node = NodeMut::new(tx.change(self.leaf, before)?, self.leaf);
                node.remove_all(indices)?;
                let became_sparse = fill.became_sparse(Fill::of_leaf(&node.read()?));
                (self.index, self.is_on) = (*first, false);
                if became_sparse && let Some(merged) = tx.merge_with_left(table, &mut self.path, self.leaf)? {
                    self.leaf = merged.leaf;
                    self.index += merged.left_entries;
                }
                self.page = Some(tx.page(self.leaf)?);
            }
        }
        tx.add_entries(table, -(indices.len() as i64))
    }

    /// Removes the entry that it is on; is then before the next one.
    pub(super) fn delete(&mut self, tx: &mut WriteTx<'_>, table: Table) -> Result<()> {
        tx.load_entries(table)?;
        let before = self.fill()?;
        self.remove(tx, table, &[self.index])?;
        if before.became_sparse(self.fill()?) {
            self.release_page();
            let merged = tx.merge_with_right(table, &mut self.path)?;
            self.leaf = merged.map_or(self.leaf, |merged| merged.leaf);
            self.page = Some(tx.page(self.leaf)?);
        }
        Ok(())
    }

    /// Replaces the value of the entry that it is on.
    pub(super) fn replace(&mut self, tx: &mut WriteTx<'_>, table: Table, value: &[u8]) -> Result<()> {
        let key = self.node()?.entry(self.index)?.0.to_vec();
        // The transaction's copy is changed in place if nothing else refers to it.
        drop(self.take_page());
        tx.put_fitting(table, &key, value)?;
        *self = Self::find(tx, table, Target::Key(&key))?;
        self.is_on = true;
        Ok(())
    }
}
