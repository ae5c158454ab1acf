//! Merging leaves: what removals have left of a leaf is moved into a neighbour below the same parent.
//!
//! ```text
//! parent    … | a | b | …      a is sparse after a removal, b too
//!               ▼   ▼
//! parent    … |   b   | …      the fuller one (here b) holds the entries of both, the other is freed
//! ```
//! Both fill at most three quarters of a page then, so that the next insertions do not split it. A leaf is compared with its
//! neighbours only when another sixteenth of it becomes empty, so that a sparse one among full ones costs little.

use super::node::{Node, NodeKind, NodeMut};
use super::{Path, Table};
use crate::engine::cache::Page;
use crate::engine::tx::{META, Pages, WriteTx};
use crate::error::{Error, Result};
use crate::types::PageNo;

/// The space of a leaf is counted in sixteenths.
const PARTS: usize = 16;
/// A leaf of which fewer parts are in use is sparse.
const SPARSE_PARTS: usize = 7;
/// Parts that a merged leaf uses at most.
const MERGED_PARTS_MAX: usize = 12;

/// How full a leaf is, for comparing it before and after a removal.
#[derive(Clone, Copy)]
pub(super) struct Fill(usize);

impl Fill {
    pub(super) fn of_leaf(leaf: &Node<'_>) -> Self {
        Self(leaf.used() * PARTS / leaf.space())
    }

    fn is_sparse(self) -> bool {
        self.0 < SPARSE_PARTS
    }

    /// Whether a leaf that was this full, and is `now`, should be compared with its neighbours.
    pub(super) fn became_sparse(self, now: Self) -> bool {
        now.is_sparse() && now.0 < self.0
    }
}

/// Two leaves whose entries fit into one, in memory.
struct Mergeable {
    left: (PageNo, Page),
    right: (PageNo, Page),
    parent: PageNo,
    left_index: usize,
}

/// A leaf with the entries of two.
pub(super) struct Merged {
    pub(super) leaf: PageNo,
    /// So many of its entries were in the left one.
    pub(super) left_entries: usize,
}

impl WriteTx<'_> {
    /// Merges a leaf with its left neighbour below the same parent, if both fit into one with enough space left. `path`, which
    /// leads to the leaf, leads to the merged one afterwards. If the neighbour cannot be read, or there is no space for its
    /// change, nothing is merged: the removal that made the leaf sparse is done already.
    pub(super) fn merge_with_left(
        &mut self,
        table: Table,
        path: &mut Path,
        leaf: PageNo,
    ) -> Result<Option<Merged>> {
        let Ok(Some(Mergeable { left, right, parent, left_index })) = self.mergeable(path, leaf) else {
            return Ok(None);
        };
        self.finger.forget();
        let (left_node, right_node) = (Node::open(&left.1, left.0)?, Node::open(&right.1, right.0)?);
        let left_entries = left_node.count();
        // The fuller one stays: fewer entries move, and are logged.
        let (merged, (emptied, content)) = if left_node.used() < right_node.used() {
            NodeMut::new(self.change(leaf, right.1)?, leaf).prepend(&left_node)?;
            (leaf, left)
        } else {
            NodeMut::new(self.change(left.0, left.1)?, left.0).append(&right_node)?;
            (left.0, right)
        };
        drop(content);
        // The parent loses the entry of the left leaf. The entry of the right one then refers to the merged leaf.
        if let Some((_, index)) = path.last_mut() {
            *index = left_index;
        }
        self.remove_empty(path.clone(), emptied, table.number)?;
        if merged != leaf {
            NodeMut::new(self.any_page_mut(parent)?, parent).set_child(left_index, merged)?;
        }
        Ok(Some(Merged { leaf: merged, left_entries }))
    }

    fn mergeable(&mut self, path: &Path, leaf: PageNo) -> Result<Option<Mergeable>> {
        let Some((parent, index)) = path.last().copied() else { return Ok(None) };
        let Some(left_index) = index.checked_sub(1) else { return Ok(None) };
        let left = Node::open(&self.page_ref(parent)?, parent)?.child(left_index)?;
        let (left_page, leaf_page) = (self.page(left)?, self.page(leaf)?);
        let (left_node, leaf_node) = (Node::open(&left_page, left)?, Node::open(&leaf_page, leaf)?);
        for node in [&left_node, &leaf_node] {
            if node.kind() != NodeKind::Leaf || node.format() != leaf_node.format() {
                return Err(Error::CorruptTree { page: left, why: "its neighbour is of another kind" });
            }
        }
        let used = left_node.used() + leaf_node.used();
        if used * PARTS > leaf_node.space() * MERGED_PARTS_MAX {
            return Ok(None);
        }
        self.reserve_pages(&[META, left, leaf, parent])?;
        Ok(Some(Mergeable { left: (left, left_page), right: (leaf, leaf_page), parent, left_index }))
    }

    /// Merges a leaf that has become sparse with one of its neighbours below the same parent, if they fit into one.
    pub(super) fn merge_sparse(&mut self, table: Table, mut path: Path, leaf: PageNo) -> Result<()> {
        if self.merge_with_left(table, &mut path, leaf)?.is_some() {
            return Ok(());
        }
        self.merge_with_right(table, &mut path).map(drop)
    }

    /// Merges the leaf at the end of `path` with its right neighbour below the same parent, if both fit into one with enough space
    /// left. `path` leads to the merged one then.
    pub(super) fn merge_with_right(&mut self, table: Table, path: &mut Path) -> Result<Option<Merged>> {
        let Some((parent, index)) = path.last().copied() else { return Ok(None) };
        let page = self.page_ref(parent)?;
        let node = Node::open(&page, parent)?;
        if index == node.count() {
            return Ok(None);
        }
        let right = node.child(index + 1)?;
        drop(page);
        let mut to_right = path.clone();
        to_right.last_mut().expect("it has a parent").1 += 1;
        let merged = self.merge_with_left(table, &mut to_right, right)?;
        if merged.is_some() {
            *path = to_right;
        }
        Ok(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_compared_with_its_neighbours_when_it_is_sparse_and_emptier_than_before() {
        let cases = [
            (8, 7, false),
            (7, 7, false),
            (7, 6, true),
            (9, 2, true),
            (6, 6, false),
            (6, 5, true),
            (3, 8, false),
        ];
        for (before, now, is_compared) in cases {
            assert_eq!(Fill(before).became_sparse(Fill(now)), is_compared, "{before}, {now}");
        }
    }
}
