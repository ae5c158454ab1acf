//! Changing a node.

use super::split::{write_inner_cell, write_leaf_cell};
use super::{
    COUNT_AT, INNER_CELL_HEADER, KIND_AT, LEAF_CELL_HEADER, LOWEST_AT, Node, NodeFormat, NodeKind, PREFIX_AT,
    RIGHT_AT, UNUSED_AT, common_prefix, head_of,
};
use crate::error::{Error, Result};
use crate::format::codec::{put_u16, put_u64, u16_at};
use crate::format::page;
use crate::types::PageNo;

/// A node for changes.
pub(crate) struct NodeMut<'a> {
    bytes: &'a mut [u8],
    page: PageNo,
}

impl<'a> NodeMut<'a> {
    /// Makes the page an empty node of this table.
    pub(crate) fn format(bytes: &mut [u8], kind: NodeKind, format: NodeFormat, table: u32) {
        bytes.fill(0);
        page::set_owner(bytes, table);
        bytes[KIND_AT] = match (kind, format) {
            (NodeKind::Leaf, NodeFormat::Plain) => 1,
            (NodeKind::Inner, NodeFormat::Plain) => 2,
            (NodeKind::Leaf, NodeFormat::Heads) => 3,
            (NodeKind::Inner, NodeFormat::Heads) => 4,
        };
        let end = bytes.len() as u16;
        put_u16(bytes, LOWEST_AT, end);
    }

    pub(crate) fn new(bytes: &'a mut [u8], page: PageNo) -> Self {
        Self { bytes, page }
    }

    pub(crate) fn read(&self) -> Result<Node<'_>> {
        Node::open(self.bytes, self.page)
    }

    fn overlapping(&self) -> Error {
        Error::CorruptTree { page: self.page, why: "its entries overlap" }
    }

    pub(crate) fn set_right_child(&mut self, child: PageNo) {
        put_u64(self.bytes, RIGHT_AT, child.0);
    }

    /// Points child `index` to another page.
    pub(crate) fn set_child(&mut self, index: usize, child: PageNo) -> Result<()> {
        let node = self.read()?;
        let at = if index == node.count() { RIGHT_AT } else { node.cell_at(index)? + 2 };
        if at + 8 > self.bytes.len() {
            return Err(self.read()?.outside());
        }
        put_u64(self.bytes, at, child.0);
        Ok(())
    }

    /// Shortens the prefix to what `key` has in common with the others, before it is inserted.
    fn admit(&mut self, key: &[u8]) -> Result<()> {
        let node = self.read()?;
        if node.format == NodeFormat::Plain {
            return Ok(());
        }
        let known = usize::from(self.bytes[PREFIX_AT]);
        let prefix = match node.count {
            0 => 0,
            // The first two keys determine it.
            1 => common_prefix(node.key(0)?, key),
            _ if known == 0 => return Ok(()),
            _ => common_prefix(node.prefix_at(0)?, key),
        };
        if prefix != known { self.set_prefix(prefix) } else { Ok(()) }
    }

    /// Sets the length of the prefix, and all heads accordingly.
    fn set_prefix(&mut self, prefix: usize) -> Result<()> {
        let node = self.read()?;
        let (count, slots_at, slot_bytes) = (node.count, node.slot_at(0), node.format.slot_bytes());
        for index in 0..count {
            let node = self.read()?;
            let head = head_of(node.key(index)?.get(prefix..).ok_or_else(|| node.outside())?);
            self.bytes[slots_at + slot_bytes * index + 2..][..4].copy_from_slice(&head.to_be_bytes());
        }
        self.bytes[PREFIX_AT] = prefix as u8;
        Ok(())
    }

    /// Allocates a cell of `bytes` at `index` for `key`; `None` if the page is full.
    fn place(&mut self, index: usize, bytes: usize, key: &[u8]) -> Result<Option<usize>> {
        let node = self.read()?;
        let (count, format) = (node.count, node.format);
        let (slot, slot_bytes, slots_end) = (node.slot_at(index), format.slot_bytes(), node.slot_at(count));
        let lowest = usize::from(u16_at(self.bytes, LOWEST_AT));
        let unused = usize::from(u16_at(self.bytes, UNUSED_AT));
        if lowest < slots_end || lowest > self.bytes.len() || index > count {
            return Err(self.read()?.outside());
        }
        if lowest - slots_end + unused < bytes + slot_bytes {
            return Ok(None);
        }
        // It chooses the longest prefix, which the key may not have.
        if lowest - slots_end < bytes + slot_bytes {
            self.compact()?;
        }
        self.admit(key)?;
        let lowest = usize::from(u16_at(self.bytes, LOWEST_AT));
        let Some(at) = lowest.checked_sub(bytes).filter(|at| *at >= slots_end + slot_bytes) else {
            return Err(self.read()?.outside());
        };
        self.bytes.copy_within(slot..slots_end, slot + slot_bytes);
        self.put_slot(slot, at, format, key)?;
        put_u16(self.bytes, COUNT_AT, count as u16 + 1);
        put_u16(self.bytes, LOWEST_AT, at as u16);
        Ok(Some(at))
    }

    fn put_slot(&mut self, slot: usize, at: usize, format: NodeFormat, key: &[u8]) -> Result<()> {
        put_u16(self.bytes, slot, at as u16);
        if format == NodeFormat::Heads {
            let prefix = usize::from(self.bytes[PREFIX_AT]);
            let head = head_of(key.get(prefix..).ok_or_else(|| self.overlapping())?);
            self.bytes[slot + 2..slot + 6].copy_from_slice(&head.to_be_bytes());
        }
        Ok(())
    }

    /// Moves the cells together, so that the free space is contiguous.
    fn compact(&mut self) -> Result<()> {
        let node = self.read()?;
        let slots_at = node.slot_at(0);
        let mut packed = vec![0; self.bytes.len()];
        Self::format(&mut packed, node.kind, node.format, page::owner(self.bytes));
        packed[RIGHT_AT..slots_at].copy_from_slice(&self.bytes[RIGHT_AT..slots_at]);
        let cells = (0..node.count).map(|index| node.cell(index)).collect::<Result<Vec<_>>>()?;
        NodeMut::new(&mut packed, self.page).append_all(&cells)?;
        self.bytes.copy_from_slice(&packed);
        Ok(())
    }

    /// Fills this empty node with cells, which are sorted.
    pub(super) fn append_all(&mut self, cells: &[&[u8]]) -> Result<()> {
        let node = self.read()?;
        let (format, header, slots_at) = (node.format, node.kind.cell_header(), node.slot_at(0));
        let slot_bytes = format.slot_bytes();
        let key_of =
            |cell: &'_ [u8]| -> std::ops::Range<usize> { header..header + usize::from(u16_at(cell, 0)) };
        if format == NodeFormat::Heads
            && let [first, others @ ..] = cells
        {
            let first = &first[key_of(first)];
            let prefix = others.iter().map(|cell| common_prefix(first, &cell[key_of(cell)])).min();
            self.bytes[PREFIX_AT] = prefix.unwrap_or(0) as u8;
        }
        let mut lowest = self.bytes.len();
        for (index, cell) in cells.iter().enumerate() {
            let slot = slots_at + slot_bytes * index;
            lowest = lowest.checked_sub(cell.len()).ok_or_else(|| self.overlapping())?;
            if lowest < slots_at + slot_bytes * cells.len() {
                return Err(self.overlapping());
            }
            self.bytes[lowest..lowest + cell.len()].copy_from_slice(cell);
            self.put_slot(slot, lowest, format, &cell[key_of(cell)])?;
        }
        put_u16(self.bytes, COUNT_AT, cells.len() as u16);
        put_u16(self.bytes, LOWEST_AT, lowest as u16);
        Ok(())
    }

    /// Inserts an entry; returns false if the page is full.
    pub(crate) fn insert_leaf(&mut self, index: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        let bytes = LEAF_CELL_HEADER + key.len() + value.len();
        let Some(at) = self.place(index, bytes, key)? else { return Ok(false) };
        write_leaf_cell(&mut self.bytes[at..][..bytes], key, value);
        Ok(true)
    }

    /// Inserts the cells of a leaf before those of this one, which has room for them.
    pub(crate) fn prepend(&mut self, left: &Node<'_>) -> Result<()> {
        for index in (0..left.count).rev() {
            let cell = left.cell(index)?;
            let at = self.place(0, cell.len(), left.key(index)?)?.ok_or_else(|| self.overlapping())?;
            self.bytes[at..at + cell.len()].copy_from_slice(cell);
        }
        Ok(())
    }

    /// Inserts the cells of a leaf after those of this one, which has room for them.
    pub(crate) fn append(&mut self, right: &Node<'_>) -> Result<()> {
        let count = self.read()?.count;
        for index in 0..right.count {
            let cell = right.cell(index)?;
            let at = self.place(count + index, cell.len(), right.key(index)?)?;
            let at = at.ok_or_else(|| self.overlapping())?;
            self.bytes[at..at + cell.len()].copy_from_slice(cell);
        }
        Ok(())
    }

    /// Child `index` was split: `left` has the keys below `key`, `right` those from it on. Returns false if the
    /// page is full.
    pub(crate) fn insert_inner(
        &mut self,
        index: usize,
        key: &[u8],
        left: PageNo,
        right: PageNo,
    ) -> Result<bool> {
        let Some(at) = self.place(index, INNER_CELL_HEADER + key.len(), key)? else { return Ok(false) };
        write_inner_cell(&mut self.bytes[at..][..INNER_CELL_HEADER + key.len()], key, left);
        self.set_child(index + 1, right)?;
        Ok(true)
    }

    /// Replaces the value of entry `index` by one of the same length, in place.
    pub(crate) fn replace_value(&mut self, index: usize, value: &[u8]) -> Result<()> {
        let node = self.read()?;
        let (at, length) = (node.cell_at(index)?, node.cell(index)?.len());
        self.bytes[at + length - value.len()..at + length].copy_from_slice(value);
        Ok(())
    }

    /// Removes entry `index`.
    pub(crate) fn remove(&mut self, index: usize) -> Result<()> {
        self.remove_all(&[index])
    }

    /// Removes the entries with these indices, which ascend.
    pub(crate) fn remove_all(&mut self, indices: &[usize]) -> Result<()> {
        let node = self.read()?;
        let (count, slot_bytes, slots_at) = (node.count, node.format.slot_bytes(), node.slot_at(0));
        let slot_at = |index: usize| slots_at + slot_bytes * index;
        let mut unused = u16_at(self.bytes, UNUSED_AT);
        for index in indices {
            let node = self.read()?;
            let (at, length) = (node.cell_at(*index)?, node.cell(*index)?.len());
            self.bytes[at..at + length].fill(0);
            unused = unused.saturating_add(length as u16);
        }
        // The slots between the removed ones move together.
        let mut kept_to = indices.first().map_or(slot_at(count), |first| slot_at(*first));
        for (nth, index) in indices.iter().enumerate() {
            let next = indices.get(nth + 1).copied().unwrap_or(count);
            self.bytes.copy_within(slot_at(index + 1)..slot_at(next), kept_to);
            kept_to += slot_at(next) - slot_at(index + 1);
        }
        self.bytes[kept_to..slot_at(count)].fill(0);
        put_u16(self.bytes, COUNT_AT, (count - indices.len()) as u16);
        put_u16(self.bytes, UNUSED_AT, unused);
        Ok(())
    }

    /// Removes child `index`; returns false if it was the only one.
    pub(crate) fn remove_child(&mut self, index: usize) -> Result<bool> {
        let node = self.read()?;
        let count = node.count;
        if count == 0 {
            return Ok(false);
        }
        if index == count {
            let last = node.child(count - 1)?;
            self.remove(count - 1)?;
            self.set_right_child(last);
        } else {
            self.remove(index)?;
        }
        Ok(true)
    }
}
