//! The cells of neighbouring nodes, and nodes that are full of them.

use super::split::write_inner_cell;
use super::{INNER_CELL_HEADER, LOWEST_AT, Node, NodeKind, NodeMut, RIGHT_AT, UNUSED_AT};
use crate::error::{Error, Result};
use crate::format::codec::{put_u64, u16_at};
use crate::format::page;
use crate::types::PageNo;

/// A cell of an inner node.
pub(crate) fn inner_cell(key: &[u8], child: PageNo) -> Vec<u8> {
    let mut cell = vec![0; INNER_CELL_HEADER + key.len()];
    write_inner_cell(&mut cell, key, child);
    cell
}

/// A node that was filled.
pub(crate) struct Filled {
    /// Keys from here on belong to it; of the first node not used.
    pub separator: Vec<u8>,
    /// Its page.
    pub bytes: Vec<u8>,
}

/// Cells of neighbouring nodes, in key order.
#[derive(Default)]
pub(crate) struct Cells {
    empty: Vec<u8>,
    is_leaf: bool,
    /// Of leaves: the cells, each with the position of its key.
    leaf: Vec<(Vec<u8>, std::ops::Range<usize>)>,
    /// Of inner nodes: the children, each with the separator before it.
    inner: Vec<(Vec<u8>, PageNo)>,
}

impl Cells {
    /// Adds the cells of the next node; keys from `separator` on belong to it.
    pub(crate) fn extend(&mut self, node: &Node<'_>, separator: &[u8]) -> Result<()> {
        if self.empty.is_empty() {
            self.empty = vec![0; node.bytes.len()];
            NodeMut::format(&mut self.empty, node.kind, node.format, page::owner(node.bytes));
            self.is_leaf = node.kind == NodeKind::Leaf;
        }
        let like = Node::open(&self.empty, node.page)?;
        if like.kind != node.kind || like.format != node.format {
            return Err(Error::CorruptTree { page: node.page, why: "its neighbour is of another kind" });
        }
        for index in 0..node.count() {
            if self.is_leaf {
                let header = node.kind.cell_header();
                let key = header..header + node.key(index)?.len();
                self.leaf.push((node.cell(index)?.to_vec(), key));
            } else {
                let separator = if index == 0 { separator } else { node.key(index - 1)? };
                self.inner.push((separator.to_vec(), node.child(index)?));
            }
        }
        if !self.is_leaf {
            let count = node.count();
            let separator = if count == 0 { separator } else { node.key(count - 1)? };
            self.inner.push((separator.to_vec(), node.child(count)?));
        }
        Ok(())
    }

    /// Nodes that hold the cells, each as full as it can be.
    pub(crate) fn fill(&self) -> Result<Vec<Filled>> {
        let node = Node::open(&self.empty, PageNo(0))?;
        if self.is_leaf {
            let groups = groups(&node, self.leaf.iter().map(|(cell, _)| cell.len()));
            return groups.map(|group| self.leaf_of(&node, &self.leaf[group])).collect();
        }
        // The first child of a node has its separator in the parent.
        let mut nodes = Vec::new();
        let mut rest = &self.inner[..];
        while let [(separator, _), others @ ..] = rest {
            let lengths = others.iter().map(|(key, _)| INNER_CELL_HEADER + key.len());
            let more = groups(&node, lengths).next().map_or(0, |group| group.len());
            let (own, after) = rest.split_at(more + 1);
            nodes.push(Filled { separator: separator.clone(), bytes: Self::inner_of(&node, own)? });
            rest = after;
        }
        Ok(nodes)
    }

    fn leaf_of(&self, node: &Node<'_>, own: &[(Vec<u8>, std::ops::Range<usize>)]) -> Result<Filled> {
        let cells: Vec<&[u8]> = own.iter().map(|(cell, _)| &cell[..]).collect();
        let (first, key) = &own[0];
        Ok(Filled { separator: first[key.clone()].to_vec(), bytes: node.pack(&cells)? })
    }

    fn inner_of(node: &Node<'_>, own: &[(Vec<u8>, PageNo)]) -> Result<Vec<u8>> {
        let keys = own.iter().skip(1).map(|(key, _)| key);
        let cells: Vec<_> = keys.zip(own).map(|(key, (_, child))| inner_cell(key, *child)).collect();
        let cells: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
        let mut bytes = node.pack(&cells)?;
        put_u64(&mut bytes, RIGHT_AT, own[own.len() - 1].1.0);
        Ok(bytes)
    }
}

/// Splits cells of these lengths into groups, each as large as a node can hold.
fn groups(
    node: &Node<'_>,
    lengths: impl Iterator<Item = usize>,
) -> impl Iterator<Item = std::ops::Range<usize>> {
    let space = node.space();
    let slot = node.format.slot_bytes();
    let mut lengths = lengths.map(move |length| length + slot).peekable();
    let mut at = 0;
    std::iter::from_fn(move || {
        let begun = at;
        let mut used = 0;
        while let Some(next) = lengths.next_if(|next| used + next <= space) {
            used += next;
            at += 1;
        }
        (at > begun).then_some(begun..at)
    })
}

impl Node<'_> {
    /// Bytes of cells and their slots.
    pub(crate) fn used(&self) -> usize {
        let cells = self.bytes.len().saturating_sub(usize::from(u16_at(self.bytes, LOWEST_AT)));
        let unused = usize::from(u16_at(self.bytes, UNUSED_AT));
        cells.saturating_sub(unused) + self.format.slot_bytes() * self.count
    }

    /// Bytes for cells and their slots.
    pub(crate) fn space(&self) -> usize {
        self.bytes.len() - self.format.slots_at()
    }

    /// Whether cells of these lengths fit in a node.
    pub(crate) fn fits(&self, lengths: impl Iterator<Item = usize>) -> bool {
        lengths.map(|length| length + self.format.slot_bytes()).sum::<usize>() <= self.space()
    }
}
