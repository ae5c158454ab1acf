//! A node of a tree in a page.
//!
//! ```text
//! 32 kind u8: 1 leaf, 2 inner    34 count u16    36 lowest u16: where the cells begin    38 unused u16: bytes between
//! 40 right u64: in an inner node the child of the keys from the last key on
//! 48 slots u16, one for each cell, in the order of the keys    …    cells, from the end of the page down
//! leaf cell:  key length u16 | value length u16 | key | value
//! inner cell: key length u16 | child u64 | key                 the child holds the keys below the key
//! ```
//! No offset or length read from a page is trusted to lie inside it.

use crate::error::{Error, Result};
use crate::format::codec::{put_u16, put_u64, u16_at, u64_at};
use crate::format::page;
use crate::types::PageNo;

const KIND_AT: usize = 32;
const COUNT_AT: usize = 34;
const LOWEST_AT: usize = 36;
const UNUSED_AT: usize = 38;
const RIGHT_AT: usize = 40;
const SLOTS_AT: usize = 48;
const LEAF_CELL_HEADER: usize = 4;
const INNER_CELL_HEADER: usize = 10;
const SLOT_BYTES: usize = 2;

/// The limit of key and value together: with the cell's header and its slot, an entry takes at most a quarter of a
/// node's space. `Node::split_leaf` and `split_inner` depend on that.
pub(crate) fn entry_bytes_max(page_bytes: usize) -> usize {
    (page_bytes - SLOTS_AT) / 4 - INNER_CELL_HEADER - SLOT_BYTES
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeKind {
    Leaf,
    Inner,
}

/// A node for reading.
pub(crate) struct Node<'a> {
    bytes: &'a [u8],
    page: PageNo,
    kind: NodeKind,
    count: usize,
}

impl<'a> Node<'a> {
    pub(crate) fn open(bytes: &'a [u8], page: PageNo) -> Result<Self> {
        let wrong = |why| Err(Error::CorruptTree { page, why });
        let kind = match bytes[KIND_AT] {
            1 => NodeKind::Leaf,
            2 => NodeKind::Inner,
            _ => return wrong("it is not part of a table"),
        };
        let count = usize::from(u16_at(bytes, COUNT_AT));
        if SLOTS_AT + 2 * count > bytes.len() {
            return wrong("it has more entries than fit");
        }
        Ok(Self { bytes, page, kind, count })
    }

    fn outside(&self) -> Error {
        Error::CorruptTree { page: self.page, why: "an entry lies outside of it" }
    }

    pub(crate) fn kind(&self) -> NodeKind {
        self.kind
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn cell_header(&self) -> usize {
        if self.kind == NodeKind::Leaf { LEAF_CELL_HEADER } else { INNER_CELL_HEADER }
    }

    fn cell_at(&self, index: usize) -> Result<usize> {
        let at = (index < self.count).then(|| usize::from(u16_at(self.bytes, SLOTS_AT + 2 * index)));
        at.filter(|at| *at >= SLOTS_AT).ok_or_else(|| self.outside())
    }

    /// The bytes of a cell.
    fn cell(&self, index: usize) -> Result<&'a [u8]> {
        let at = self.cell_at(index)?;
        let header = self.cell_header();
        let rest = self.bytes.get(at..).filter(|rest| rest.len() >= header).ok_or_else(|| self.outside())?;
        let value = if self.kind == NodeKind::Leaf { usize::from(u16_at(rest, 2)) } else { 0 };
        rest.get(..header + usize::from(u16_at(rest, 0)) + value).ok_or_else(|| self.outside())
    }

    pub(crate) fn key(&self, index: usize) -> Result<&'a [u8]> {
        let cell = self.cell(index)?;
        let header = self.cell_header();
        Ok(&cell[header..header + usize::from(u16_at(cell, 0))])
    }

    pub(crate) fn value(&self, index: usize) -> Result<&'a [u8]> {
        let cell = self.cell(index)?;
        Ok(&cell[LEAF_CELL_HEADER + usize::from(u16_at(cell, 0))..])
    }

    /// Child `index`; the one after the last key is the right child.
    pub(crate) fn child(&self, index: usize) -> Result<PageNo> {
        let child =
            if index == self.count { u64_at(self.bytes, RIGHT_AT) } else { u64_at(self.cell(index)?, 2) };
        Ok(PageNo(child))
    }

    /// Whether `key` is greater than all keys.
    pub(crate) fn is_after(&self, key: &[u8]) -> Result<bool> {
        Ok(self.count == 0 || self.key(self.count - 1)? < key)
    }

    /// The index of `key`, or the index where it would be inserted.
    pub(crate) fn search(&self, key: &[u8]) -> Result<std::result::Result<usize, usize>> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.key(middle)?.cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(Ok(middle)),
            }
        }
        Ok(Err(low))
    }

    /// The index of the child for `key`.
    pub(crate) fn child_index(&self, key: &[u8]) -> Result<usize> {
        Ok(self.search(key)?.map_or_else(|index| index, |index| index + 1))
    }

    /// Whether an entry fits in this leaf. Returns true for a damaged leaf; the insertion detects the damage.
    pub(crate) fn has_room(&self, key: &[u8], value: &[u8]) -> bool {
        let lowest = usize::from(u16_at(self.bytes, LOWEST_AT));
        let free =
            lowest.saturating_sub(SLOTS_AT + 2 * self.count) + usize::from(u16_at(self.bytes, UNUSED_AT));
        lowest < SLOTS_AT + 2 * self.count || free >= LEAF_CELL_HEADER + key.len() + value.len() + 2
    }

    /// Splits this leaf, which is full, with one more entry at `index`. If the entry is the last, only it moves to
    /// the new page, so that ascending keys leave full pages behind; otherwise the bytes are divided in the middle.
    pub(crate) fn split_leaf(&self, index: usize, key: &[u8], value: &[u8]) -> Result<Halves> {
        let mut cell = vec![0; LEAF_CELL_HEADER + key.len() + value.len()];
        write_leaf_cell(&mut cell, key, value);
        let cells = self.cells_with(index, &cell)?;
        if index == self.count {
            return Ok(Halves { left: None, right: self.pack(&cells[index..])?, separator: key.to_vec() });
        }
        let at = middle(&cells) + 1;
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
        let at = if index == self.count { index - 1 } else { middle(&cells) };
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
    fn pack(&self, cells: &[&[u8]]) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.bytes.len()];
        NodeMut::format(&mut bytes, self.kind, page::owner(self.bytes));
        cells.iter().try_for_each(|cell| NodeMut::new(&mut bytes, self.page).append(cell))?;
        Ok(bytes)
    }
}

/// The index of the cell in the middle of the bytes, slots included.
///
/// The cells before it fit in a page, and so do those after it, with or without the cell itself: together all cells
/// take more than a page and at most 5/4 of it, as one entry is at most a quarter. Half of that and one more entry
/// are at most 5/8 + 1/4 = 7/8. It is neither the first nor the last cell, as these are less than half of the
/// total.
fn middle(cells: &[&[u8]]) -> usize {
    let total: usize = cells.iter().map(|cell| cell.len() + SLOT_BYTES).sum();
    let mut below = 0;
    let is_below = |cell: &&&[u8]| {
        below += cell.len() + SLOT_BYTES;
        below * 2 < total
    };
    cells.iter().take_while(is_below).count()
}

fn write_leaf_cell(cell: &mut [u8], key: &[u8], value: &[u8]) {
    put_u16(cell, 0, key.len() as u16);
    put_u16(cell, 2, value.len() as u16);
    cell[LEAF_CELL_HEADER..][..key.len()].copy_from_slice(key);
    cell[LEAF_CELL_HEADER + key.len()..].copy_from_slice(value);
}

fn write_inner_cell(cell: &mut [u8], key: &[u8], child: PageNo) {
    put_u16(cell, 0, key.len() as u16);
    put_u64(cell, 2, child.0);
    cell[INNER_CELL_HEADER..].copy_from_slice(key);
}

/// A full node with one more entry, split in two pages.
pub(crate) struct Halves {
    /// `None`: unchanged.
    pub left: Option<Vec<u8>>,
    pub right: Vec<u8>,
    /// Keys from here on belong to the right half.
    pub separator: Vec<u8>,
}

/// A node for changes.
pub(crate) struct NodeMut<'a> {
    bytes: &'a mut [u8],
    page: PageNo,
}

impl<'a> NodeMut<'a> {
    /// Makes the page an empty node of this table.
    pub(crate) fn format(bytes: &mut [u8], kind: NodeKind, table: u32) {
        bytes.fill(0);
        page::set_owner(bytes, table);
        bytes[KIND_AT] = if kind == NodeKind::Leaf { 1 } else { 2 };
        let end = bytes.len() as u16;
        put_u16(bytes, LOWEST_AT, end);
    }

    pub(crate) fn new(bytes: &'a mut [u8], page: PageNo) -> Self {
        Self { bytes, page }
    }

    fn read(&self) -> Result<Node<'_>> {
        Node::open(self.bytes, self.page)
    }

    pub(crate) fn set_right_child(&mut self, child: PageNo) {
        put_u64(self.bytes, RIGHT_AT, child.0);
    }

    /// Allocates a cell of `bytes` at `index`; `None` if the page is full.
    fn place(&mut self, index: usize, bytes: usize) -> Result<Option<usize>> {
        let count = self.read()?.count();
        let slots_end = SLOTS_AT + 2 * count;
        let lowest = usize::from(u16_at(self.bytes, LOWEST_AT));
        let unused = usize::from(u16_at(self.bytes, UNUSED_AT));
        if lowest < slots_end || lowest > self.bytes.len() || index > count {
            return Err(self.read()?.outside());
        }
        if lowest - slots_end + unused < bytes + 2 {
            return Ok(None);
        }
        if lowest - slots_end < bytes + 2 {
            self.compact()?;
        }
        let lowest = usize::from(u16_at(self.bytes, LOWEST_AT));
        let Some(at) = lowest.checked_sub(bytes).filter(|at| *at >= slots_end + 2) else {
            return Err(self.read()?.outside());
        };
        self.bytes.copy_within(SLOTS_AT + 2 * index..slots_end, SLOTS_AT + 2 * index + 2);
        put_u16(self.bytes, SLOTS_AT + 2 * index, at as u16);
        put_u16(self.bytes, COUNT_AT, count as u16 + 1);
        put_u16(self.bytes, LOWEST_AT, at as u16);
        Ok(Some(at))
    }

    /// Moves the cells together, so that the free space is contiguous.
    fn compact(&mut self) -> Result<()> {
        let node = self.read()?;
        let mut packed = vec![0; self.bytes.len()];
        Self::format(&mut packed, node.kind(), page::owner(self.bytes));
        packed[RIGHT_AT..SLOTS_AT].copy_from_slice(&self.bytes[RIGHT_AT..SLOTS_AT]);
        for index in 0..node.count() {
            NodeMut::new(&mut packed, self.page).append(node.cell(index)?)?;
        }
        self.bytes.copy_from_slice(&packed);
        Ok(())
    }

    /// Appends a cell after the others.
    fn append(&mut self, cell: &[u8]) -> Result<()> {
        let count = self.read()?.count();
        let at = self
            .place(count, cell.len())?
            .ok_or(Error::CorruptTree { page: self.page, why: "its entries overlap" })?;
        self.bytes[at..at + cell.len()].copy_from_slice(cell);
        Ok(())
    }

    /// Inserts an entry; returns false if the page is full.
    pub(crate) fn insert_leaf(&mut self, index: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        let Some(at) = self.place(index, LEAF_CELL_HEADER + key.len() + value.len())? else {
            return Ok(false);
        };
        write_leaf_cell(&mut self.bytes[at..][..LEAF_CELL_HEADER + key.len() + value.len()], key, value);
        Ok(true)
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
        let Some(at) = self.place(index, INNER_CELL_HEADER + key.len())? else { return Ok(false) };
        write_inner_cell(&mut self.bytes[at..][..INNER_CELL_HEADER + key.len()], key, left);
        let node = self.read()?;
        let next = if index + 1 == node.count() { RIGHT_AT } else { node.cell_at(index + 1)? + 2 };
        if next + 8 > self.bytes.len() {
            return Err(self.read()?.outside());
        }
        put_u64(self.bytes, next, right.0);
        Ok(true)
    }

    /// Removes entry `index`.
    pub(crate) fn remove(&mut self, index: usize) -> Result<()> {
        let node = self.read()?;
        let (count, length) = (node.count(), node.cell(index)?.len());
        let at = node.cell_at(index)?;
        self.bytes[at..at + length].fill(0);
        self.bytes.copy_within(SLOTS_AT + 2 * index + 2..SLOTS_AT + 2 * count, SLOTS_AT + 2 * index);
        put_u16(self.bytes, SLOTS_AT + 2 * (count - 1), 0);
        put_u16(self.bytes, COUNT_AT, count as u16 - 1);
        let unused = u16_at(self.bytes, UNUSED_AT).saturating_add(length as u16);
        put_u16(self.bytes, UNUSED_AT, unused);
        Ok(())
    }

    /// Removes child `index`; returns false if it was the only one.
    pub(crate) fn remove_child(&mut self, index: usize) -> Result<bool> {
        let node = self.read()?;
        let count = node.count();
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
