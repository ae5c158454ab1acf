//! Splitting a full node in two pages.

use super::{INNER_CELL_HEADER, LEAF_CELL_HEADER, Node, NodeMut, RIGHT_AT};
use crate::error::{Error, Result};
use crate::format::codec::{put_u16, put_u64, u64_at};
use crate::format::page;
use crate::types::PageNo;

/// A full node with one more entry, split in two pages.
pub(crate) struct Halves {
    /// `None`: unchanged.
    pub left: Option<Vec<u8>>,
    pub right: Vec<u8>,
    /// Keys from here on belong to the right half.
    pub separator: Vec<u8>,
}

impl<'a> Node<'a> {
    /// Splits this leaf, which is full, with one more entry at `index`. If the entry is the last, only it moves to
    /// the new page, so that ascending keys leave full pages behind; otherwise the bytes are divided in the middle.
    pub(crate) fn split_leaf(&self, index: usize, key: &[u8], value: &[u8]) -> Result<Halves> {
        let mut cell = vec![0; LEAF_CELL_HEADER + key.len() + value.len()];
        write_leaf_cell(&mut cell, key, value);
        let cells = self.cells_with(index, &cell)?;
        if index == self.count {
            return Ok(Halves { left: None, right: self.pack(&cells[index..])?, separator: key.to_vec() });
        }
        let at = self.middle(&cells) + 1;
        let right = self.pack(&cells[at..])?;
        let separator = Node::open(&right, self.page)?.key(0)?.to_vec();
        Ok(Halves { left: Some(self.pack(&cells[..at])?), right, separator })
    }

    /// As `split_leaf`, for an inner node whose child `index` was split: `left` has the keys below `key`, `right`
    /// those from it on. One key moves up and is in neither half.
    pub(crate) fn split_inner(
        &self,
        index: usize,
        key: &[u8],
        left: PageNo,
        right: PageNo,
    ) -> Result<Halves> {
        let mut cell = vec![0; INNER_CELL_HEADER + key.len()];
        write_inner_cell(&mut cell, key, left);
        let mut last = self.child(self.count)?;
        // The upper half of the split child belongs to the cell after the new one.
        let mut next = if index < self.count { self.cell(index)?.to_vec() } else { Vec::new() };
        let mut cells = self.cells_with(index, &cell)?;
        match cells.get_mut(index + 1) {
            Some(after) => {
                put_u64(&mut next, 2, right.0);
                *after = &next;
            }
            None => last = right,
        }
        let at = if index == self.count { index - 1 } else { self.middle(&cells) };
        let (mut below, mut above) = (self.pack(&cells[..at])?, self.pack(&cells[at + 1..])?);
        put_u64(&mut below, RIGHT_AT, u64_at(cells[at], 2));
        put_u64(&mut above, RIGHT_AT, last.0);
        Ok(Halves { left: Some(below), right: above, separator: cells[at][INNER_CELL_HEADER..].to_vec() })
    }

    /// The cells, with one more at `index`.
    fn cells_with<'b>(&self, index: usize, cell: &'b [u8]) -> Result<Vec<&'b [u8]>>
    where
        'a: 'b,
    {
        if self.count < 2 {
            return Err(Error::CorruptTree { page: self.page, why: "it is full with less than two entries" });
        }
        let mut cells = (0..self.count).map(|at| self.cell(at)).collect::<Result<Vec<&'b [u8]>>>()?;
        cells.insert(index, cell);
        Ok(cells)
    }

    /// A page that contains these cells.
    pub(crate) fn pack(&self, cells: &[&[u8]]) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.bytes.len()];
        NodeMut::format(&mut bytes, self.kind, self.format, page::owner(self.bytes));
        NodeMut::new(&mut bytes, self.page).append_all(cells)?;
        if let Some(entries) = self.entries() {
            super::set_entries(&mut bytes, entries);
        }
        Ok(bytes)
    }

    /// The index of the cell in the middle of the bytes, slots included.
    ///
    /// The cells before it fit in a page, and so do those after it, with or without the cell itself: together all cells
    /// take more than a page and at most 5/4 of it, as one entry is at most a quarter. Half of that and one more entry
    /// are at most 5/8 + 1/4 = 7/8. It is neither the first nor the last cell, as these are less than half of the
    /// total.
    fn middle(&self, cells: &[&[u8]]) -> usize {
        let slot = self.format.slot_bytes();
        let total: usize = cells.iter().map(|cell| cell.len() + slot).sum();
        let mut below = 0;
        let is_below = |cell: &&&[u8]| {
            below += cell.len() + slot;
            below * 2 < total
        };
        cells.iter().take_while(is_below).count()
    }
}

pub(super) fn write_leaf_cell(cell: &mut [u8], key: &[u8], value: &[u8]) {
    put_u16(cell, 0, key.len() as u16);
    put_u16(cell, 2, value.len() as u16);
    cell[LEAF_CELL_HEADER..][..key.len()].copy_from_slice(key);
    cell[LEAF_CELL_HEADER + key.len()..].copy_from_slice(value);
}

pub(super) fn write_inner_cell(cell: &mut [u8], key: &[u8], child: PageNo) {
    put_u16(cell, 0, key.len() as u16);
    put_u64(cell, 2, child.0);
    cell[INNER_CELL_HEADER..].copy_from_slice(key);
}
