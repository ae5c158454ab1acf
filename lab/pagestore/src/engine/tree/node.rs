//! A node of a tree in a page.
//!
//! ```text
//! 32 kind u8: 3 leaf, 4 inner    33 prefix u8: bytes that all keys have in common, or fewer
//! 34 count u16    36 lowest u16: where the cells begin    38 unused u16: bytes between the cells
//! 40 right u64: in an inner node the child of the keys from the last key on
//! 48 entries u64: in a table's root page the entries of the table; elsewhere all bits 1, or 0 in a page that an older
//!    program has made
//! 56 slots, one for each cell, in the order of the keys    …    cells, from the end of the page down
//! slot:       offset u16 of the cell | head: four bytes of the key after the prefix, padded with zeros
//! leaf cell:  key length u16 | value length u16 | key | value
//! inner cell: key length u16 | child u64 | key                 the child holds the keys below the key
//! ```
//! A search compares heads, which lie side by side, and reads a cell only where they are equal. In a store of version 1
//! the kinds are 1 and 2: without prefix, entries and heads, with the slots at 48. All nodes of a store are of one format.
//!
//! No offset or length read from a page is trusted to lie inside it.

mod change;
mod fill;
mod split;

use crate::error::{Error, Result};
use crate::format::codec::{put_u64, u16_at, u64_at};
use crate::types::PageNo;
pub(crate) use change::NodeMut;
pub(crate) use fill::{Cells, inner_cell};
pub(crate) use split::Halves;
use std::cmp::Ordering;
use std::ops::Range;

const KIND_AT: usize = 32;
const PREFIX_AT: usize = 33;
const COUNT_AT: usize = 34;
const LOWEST_AT: usize = 36;
const UNUSED_AT: usize = 38;
pub(crate) const RIGHT_AT: usize = 40;
const ENTRIES_AT: usize = 48;
/// Instead of the number of entries, in a page that is not a root.
const BELOW_ROOT: u64 = u64::MAX;
const LEAF_CELL_HEADER: usize = 4;
const INNER_CELL_HEADER: usize = 10;

/// The format of a store's nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeFormat {
    /// Of a store of version 1.
    Plain,
    /// With heads of keys beside the offsets.
    Heads,
}

impl NodeFormat {
    const fn slots_at(self) -> usize {
        match self {
            Self::Plain => 48,
            Self::Heads => 56,
        }
    }

    const fn slot_bytes(self) -> usize {
        match self {
            Self::Plain => 2,
            Self::Heads => 6,
        }
    }

    /// The limit of key and value together: with the cell's header and its slot, an entry takes at most a quarter of a
    /// node's space. `Node::split_leaf` and `split_inner` depend on that.
    pub(crate) const fn entry_bytes_max(self, page_bytes: usize) -> usize {
        (page_bytes - self.slots_at()) / 4 - INNER_CELL_HEADER - self.slot_bytes()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeKind {
    Leaf,
    Inner,
}

impl NodeKind {
    const fn cell_header(self) -> usize {
        match self {
            Self::Leaf => LEAF_CELL_HEADER,
            Self::Inner => INNER_CELL_HEADER,
        }
    }
}

/// Kind and format, by the byte in a page.
#[inline]
const fn kind_of(byte: u8) -> Option<(NodeKind, NodeFormat)> {
    match byte {
        1 => Some((NodeKind::Leaf, NodeFormat::Plain)),
        2 => Some((NodeKind::Inner, NodeFormat::Plain)),
        3 => Some((NodeKind::Leaf, NodeFormat::Heads)),
        4 => Some((NodeKind::Inner, NodeFormat::Heads)),
        _ => None,
    }
}

/// Whether a page of a table is an inner node.
pub(crate) fn is_inner(page: &[u8]) -> bool {
    matches!(kind_of(page[KIND_AT]), Some((NodeKind::Inner, _)))
}

/// Whether a page of a table is marked as not being its root.
#[inline]
pub(crate) fn is_below_root(page: &[u8]) -> bool {
    u64_at(page, ENTRIES_AT) == BELOW_ROOT && matches!(kind_of(page[KIND_AT]), Some((_, NodeFormat::Heads)))
}

/// Marks a page of a table, whose format has space for it, as not being its root.
pub(crate) fn mark_below_root(page: &mut [u8]) {
    if matches!(kind_of(page[KIND_AT]), Some((_, NodeFormat::Heads))) {
        put_u64(page, ENTRIES_AT, BELOW_ROOT);
    }
}

/// The first four bytes of the rest of a key. If one head is less than another, so is its key.
#[inline]
fn head_of(rest: &[u8]) -> u32 {
    match rest.first_chunk() {
        Some(four) => u32::from_be_bytes(*four),
        None => rest.iter().enumerate().fold(0, |head, (at, byte)| head | u32::from(*byte) << (24 - 8 * at)),
    }
}

/// The number of bytes that two keys have in common at their beginning, as far as a node can say.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take(usize::from(u8::MAX)).take_while(|(a, b)| a == b).count()
}

/// A node for reading.
pub(crate) struct Node<'a> {
    bytes: &'a [u8],
    page: PageNo,
    kind: NodeKind,
    format: NodeFormat,
    count: usize,
}

impl<'a> Node<'a> {
    #[inline]
    pub(crate) fn open(bytes: &'a [u8], page: PageNo) -> Result<Self> {
        let wrong = |why| Err(Error::CorruptTree { page, why });
        let Some((kind, format)) = kind_of(bytes[KIND_AT]) else { return wrong("it is not part of a table") };
        let count = usize::from(u16_at(bytes, COUNT_AT));
        if format.slots_at() + format.slot_bytes() * count > bytes.len() {
            return wrong("it has more entries than fit");
        }
        Ok(Self { bytes, page, kind, format, count })
    }

    fn outside(&self) -> Error {
        Error::CorruptTree { page: self.page, why: "an entry lies outside of it" }
    }

    #[inline]
    pub(crate) fn kind(&self) -> NodeKind {
        self.kind
    }

    pub(crate) fn format(&self) -> NodeFormat {
        self.format
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Of a root page: the entries of its table, if the store's format counts them.
    pub(crate) fn entries(&self) -> Option<u64> {
        (self.format == NodeFormat::Heads).then(|| u64_at(self.bytes, ENTRIES_AT))
    }

    #[inline]
    fn slot_at(&self, index: usize) -> usize {
        self.format.slots_at() + self.format.slot_bytes() * index
    }

    #[inline]
    fn cell_at(&self, index: usize) -> Result<usize> {
        let at = (index < self.count).then(|| usize::from(u16_at(self.bytes, self.slot_at(index))));
        at.filter(|at| *at >= self.format.slots_at()).ok_or_else(|| self.outside())
    }

    /// The bytes of a cell.
    #[inline]
    fn cell(&self, index: usize) -> Result<&'a [u8]> {
        let at = self.cell_at(index)?;
        let header = self.kind.cell_header();
        let rest = self.bytes.get(at..).filter(|rest| rest.len() >= header).ok_or_else(|| self.outside())?;
        let value = if self.kind == NodeKind::Leaf { usize::from(u16_at(rest, 2)) } else { 0 };
        rest.get(..header + usize::from(u16_at(rest, 0)) + value).ok_or_else(|| self.outside())
    }

    #[inline]
    pub(crate) fn key(&self, index: usize) -> Result<&'a [u8]> {
        let cell = self.cell(index)?;
        let header = self.kind.cell_header();
        Ok(&cell[header..header + usize::from(u16_at(cell, 0))])
    }

    /// Where the value of an entry lies in the page.
    #[inline]
    pub(crate) fn value_range(&self, index: usize) -> Result<Range<usize>> {
        let (at, (key, value)) = (self.cell_at(index)?, self.entry(index)?);
        let start = at + LEAF_CELL_HEADER + key.len();
        Ok(start..start + value.len())
    }

    /// Key and value.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> Result<(&'a [u8], &'a [u8])> {
        let cell = self.cell(index)?;
        Ok(cell[LEAF_CELL_HEADER..].split_at(usize::from(u16_at(cell, 0))))
    }

    /// Child `index`; the one after the last key is the right child.
    #[inline]
    pub(crate) fn child(&self, index: usize) -> Result<PageNo> {
        let child =
            if index == self.count { u64_at(self.bytes, RIGHT_AT) } else { u64_at(self.cell(index)?, 2) };
        Ok(PageNo(child))
    }

    /// Whether `key` is greater than all keys.
    pub(crate) fn is_after(&self, key: &[u8]) -> Result<bool> {
        Ok(self.count == 0 || self.key(self.count - 1)? < key)
    }

    /// The number of bytes that all keys have in common, as far as the node's header says so.
    #[inline]
    fn prefix_bytes(&self) -> usize {
        let counts = self.format == NodeFormat::Heads && self.count > 0;
        if counts { usize::from(self.bytes[PREFIX_AT]) } else { 0 }
    }

    /// The bytes that all keys have in common, read from key `index`.
    #[inline]
    fn prefix_at(&self, index: usize) -> Result<&'a [u8]> {
        match self.prefix_bytes() {
            0 => Ok(&[]),
            length => self.key(index)?.get(..length).ok_or_else(|| self.outside()),
        }
    }

    #[inline]
    fn head(&self, index: usize) -> u32 {
        let at = self.slot_at(index) + 2;
        u32::from_be_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    /// The index of `key`, or the index where it would be inserted.
    ///
    /// The prefix is compared last, with the key beside the place that was found: its cell is read next in any case, and
    /// reading another one would cost a cache miss. An equal key has the prefix.
    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> Result<std::result::Result<usize, usize>> {
        let prefix_bytes = self.prefix_bytes();
        let head = head_of(key.get(prefix_bytes..).unwrap_or_default());
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            let by_head = match self.format {
                NodeFormat::Plain => Ordering::Equal,
                NodeFormat::Heads => self.head(middle).cmp(&head),
            };
            let order = if by_head == Ordering::Equal { self.key(middle)?.cmp(key) } else { by_head };
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(Ok(middle)),
            }
        }
        if prefix_bytes == 0 {
            return Ok(Err(low));
        }
        let prefix = self.prefix_at(low.min(self.count - 1))?;
        Ok(Err(match key[..prefix_bytes.min(key.len())].cmp(prefix) {
            Ordering::Less => 0,
            Ordering::Greater => self.count,
            Ordering::Equal => low,
        }))
    }

    /// The index of the child for `key`.
    #[inline]
    pub(crate) fn child_index(&self, key: &[u8]) -> Result<usize> {
        Ok(self.search(key)?.map_or_else(|index| index, |index| index + 1))
    }

    /// Whether an entry fits in this leaf. Returns true for a damaged leaf; the insertion detects the damage.
    pub(crate) fn has_room(&self, key: &[u8], value: &[u8]) -> bool {
        let lowest = usize::from(u16_at(self.bytes, LOWEST_AT));
        let slots_end = self.slot_at(self.count);
        let free = lowest.saturating_sub(slots_end) + usize::from(u16_at(self.bytes, UNUSED_AT));
        let needed = LEAF_CELL_HEADER + key.len() + value.len() + self.format.slot_bytes();
        lowest < slots_end || free >= needed
    }
}

/// Sets the number of entries in a table's root page, whose format counts them.
pub(crate) fn set_entries(root: &mut [u8], entries: u64) {
    put_u64(root, ENTRIES_AT, entries);
}
