//! Iteration over a table in key order.

use super::node::{Node, NodeKind};
use super::{DEPTH_MAX, Table, root_page, too_deep};
use crate::engine::cache::Page;
use crate::engine::tx::Pages;
use crate::error::Result;
use crate::types::PageNo;

/// The entries of a table between two keys, as `(key, value)`.
pub struct Range<'a, P> {
    pages: &'a P,
    table: Table,
    /// The nodes on the path to the next entry, each with the index of its next cell or child.
    path: Vec<(PageNo, Page, usize)>,
    to: Option<Vec<u8>>,
    failed: bool,
}

impl<'a, P: Pages> Range<'a, P> {
    pub(crate) fn new(pages: &'a P, table: Table, from: &[u8], to: Option<&[u8]>) -> Result<Self> {
        let root = root_page(pages, table)?;
        let mut range = Self { pages, table, path: Vec::new(), to: to.map(<[u8]>::to_vec), failed: false };
        range.descend(table.root, root, Some(from))?;
        Ok(range)
    }

    /// Descends from a node to the leaf of `from`, or to the first leaf.
    fn descend(&mut self, mut at: PageNo, mut page: Page, from: Option<&[u8]>) -> Result<()> {
        loop {
            if self.path.len() >= DEPTH_MAX {
                return Err(too_deep(self.table.root));
            }
            let node = Node::open(&page, at)?;
            if node.kind() == NodeKind::Leaf {
                let index = match from {
                    Some(key) => node.search(key)?.unwrap_or_else(|index| index),
                    None => 0,
                };
                self.path.push((at, page, index));
                return Ok(());
            }
            let index = from.map_or(Ok(0), |key| node.child_index(key))?;
            let child = node.child(index)?;
            self.path.push((at, page, index + 1));
            (at, page) = (child, self.pages.page(child)?);
        }
    }

    fn step(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        while let Some((at, page, index)) = self.path.last_mut() {
            let node = Node::open(page, *at)?;
            let next = *index;
            *index += 1;
            if node.kind() == NodeKind::Leaf {
                if next < node.count() {
                    let key = node.key(next)?;
                    if self.to.as_deref().is_some_and(|to| key >= to) {
                        self.path.clear();
                        return Ok(None);
                    }
                    return Ok(Some((key.to_vec(), node.value(next)?.to_vec())));
                }
            } else if next <= node.count() {
                let child = node.child(next)?;
                let page = self.pages.page(child)?;
                self.descend(child, page, None)?;
                continue;
            }
            self.path.pop();
        }
        Ok(None)
    }
}

impl<P: Pages> Iterator for Range<'_, P> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step().transpose();
        self.failed = matches!(step, Some(Err(_)));
        step
    }
}
