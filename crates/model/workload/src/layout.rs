use crate::{BadQuantity, format_bytes, parse_bytes};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Layout: how the members of a target make one range of bytes.
///
/// ```text
/// span          |0 1 2 3|4 5 6 7|8 9 …     concatenated
/// stripe:64K    |0 3 6 9|1 4 7 …|2 5 8     64 KiB of each in turn
/// ```
///
/// Both are what device-mapper calls `linear` and `striped`, and md `linear` and RAID 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "String", try_from = "String")]
pub enum Layout {
    /// Concatenated members.
    Span,
    /// `unit_bytes` of each member in turn.
    Stripe {
        /// The stripe unit: what lies together on a member. Above 0.
        unit_bytes: u64,
    },
}

/// Text that is no layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadLayout {
    /// Neither of the words.
    #[error("{0:?} is not a layout: span, stripe or stripe:SIZE, as in stripe:64K")]
    Unknown(String),
    /// Its unit is no size.
    #[error("stripe unit: {0}")]
    Unit(BadQuantity),
    /// Its unit cannot be striped by.
    #[error("a stripe unit of {} cannot be: a multiple of 512 bytes above 0", format_bytes(*.0))]
    UnitOf(u64),
}

impl Layout {
    /// The default: the study's, and the default of md's and LVM's.
    pub const UNIT_BYTES: u64 = 64 * 1024;
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Layout::Span => write!(f, "span"),
            Layout::Stripe { unit_bytes } if unit_bytes % 1024 == 0 => {
                write!(f, "stripe:{}K", unit_bytes / 1024)
            }
            Layout::Stripe { unit_bytes } => write!(f, "stripe:{unit_bytes}"),
        }
    }
}

impl FromStr for Layout {
    type Err = BadLayout;

    fn from_str(text: &str) -> Result<Layout, BadLayout> {
        match text.split_once(':') {
            None if text == "span" => Ok(Layout::Span),
            None if text == "stripe" => Ok(Layout::Stripe { unit_bytes: Layout::UNIT_BYTES }),
            Some(("stripe", unit)) => match parse_bytes(unit).map_err(BadLayout::Unit)? {
                unit_bytes if unit_bytes == 0 || unit_bytes % 512 != 0 => Err(BadLayout::UnitOf(unit_bytes)),
                unit_bytes => Ok(Layout::Stripe { unit_bytes }),
            },
            _ => Err(BadLayout::Unknown(text.to_owned())),
        }
    }
}

impl From<Layout> for String {
    fn from(layout: Layout) -> String {
        layout.to_string()
    }
}

impl TryFrom<String> for Layout {
    type Error = BadLayout;

    fn try_from(text: String) -> Result<Layout, BadLayout> {
        text.parse()
    }
}

/// The part of an I/O that falls on one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index of the member, from 0.
    pub member: usize,
    /// Where on it, in bytes.
    pub offset: u64,
    /// Bytes on it.
    pub bytes: u64,
}

/// A layout over members of known sizes: which bytes lie where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutMap {
    layout: Layout,
    /// Of a span: where each member ends.
    ends: Vec<u64>,
    size_bytes: u64,
}

impl LayoutMap {
    /// `layout` over members of these sizes, in bytes. A stripe takes from each as many whole units as the smallest
    /// has, as device-mapper does; a span takes all of each.
    pub fn new(layout: Layout, member_bytes: &[u64]) -> LayoutMap {
        let ends: Vec<u64> = member_bytes
            .iter()
            .scan(0, |end, bytes| {
                *end += bytes;
                Some(*end)
            })
            .collect();
        let size_bytes = match layout {
            Layout::Span => ends.last().copied().unwrap_or(0),
            Layout::Stripe { unit_bytes } => {
                let units = member_bytes.iter().min().map_or(0, |bytes| bytes / unit_bytes);
                units * unit_bytes * member_bytes.len() as u64
            }
        };
        LayoutMap { layout, ends, size_bytes }
    }

    /// Bytes of all members together that the layout uses.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Number of members.
    pub fn members(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of one member that the layout uses.
    pub fn member_bytes(&self, member: usize) -> u64 {
        match self.layout {
            Layout::Span if member == 0 => self.ends.first().copied().unwrap_or(0),
            Layout::Span => self.ends.get(member).map_or(0, |end| end - self.ends[member - 1]),
            Layout::Stripe { .. } => self.size_bytes / (self.ends.len() as u64).max(1),
        }
    }

    /// The part of `bytes` bytes at `offset` that lies together on the member where `offset` lies. `None` at and behind
    /// the end.
    pub fn first_part(&self, offset: u64, bytes: u64) -> Option<Part> {
        if offset >= self.size_bytes {
            return None;
        }
        Some(match self.layout {
            Layout::Span => {
                let member = self.ends.partition_point(|end| *end <= offset);
                let begin = if member == 0 { 0 } else { self.ends[member - 1] };
                Part { member, offset: offset - begin, bytes: bytes.min(self.ends[member] - offset) }
            }
            Layout::Stripe { unit_bytes } => {
                let (unit, within) = (offset / unit_bytes, offset % unit_bytes);
                let members = self.ends.len() as u64;
                Part {
                    member: (unit % members) as usize,
                    offset: unit / members * unit_bytes + within,
                    bytes: bytes.min(unit_bytes - within),
                }
            }
        })
    }

    /// The parts of `bytes` bytes at `offset`, in the order of the bytes; what lies behind the end has none.
    pub fn parts(&self, offset: u64, bytes: u64) -> impl Iterator<Item = Part> + '_ {
        let (mut offset, mut left) = (offset, bytes);
        std::iter::from_fn(move || {
            let part = (left > 0).then(|| self.first_part(offset, left))??;
            offset += part.bytes;
            left -= part.bytes;
            Some(part)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIB: u64 = 1024;

    fn parts(layout: &str, members: &[u64], offset: u64, bytes: u64) -> Vec<(usize, u64, u64)> {
        let map = LayoutMap::new(layout.parse().unwrap(), members);
        map.parts(offset, bytes).map(|part| (part.member, part.offset, part.bytes)).collect()
    }

    #[test]
    fn a_span_goes_on_where_a_member_ends() {
        assert_eq!(parts("span", &[100, 50, 10], 90, 65), [(0, 90, 10), (1, 0, 50), (2, 0, 5)]);
        assert_eq!(parts("span", &[100, 0, 50], 100, 8), [(2, 0, 8)]);
    }

    #[test]
    fn a_stripe_takes_its_unit_of_each_in_turn() {
        let members = [128 * KIB; 3];
        assert_eq!(parts("stripe:64K", &members, 64 * KIB, 64 * KIB), [(1, 0, 64 * KIB)]);
        assert_eq!(parts("stripe:64K", &members, 192 * KIB, 64 * KIB), [(0, 64 * KIB, 64 * KIB)]);
        assert_eq!(
            parts("stripe:64K", &members, 60 * KIB, 72 * KIB),
            [(0, 60 * KIB, 4 * KIB), (1, 0, 64 * KIB), (2, 0, 4 * KIB)]
        );
    }

    #[test]
    fn a_stripe_ends_with_its_smallest_member() {
        let map = LayoutMap::new("stripe:4K".parse().unwrap(), &[10 * KIB, 9 * KIB, 100 * KIB]);
        assert_eq!(map.size_bytes(), 3 * 8 * KIB);
    }

    #[test]
    fn layouts_are_read_as_they_are_written() {
        for text in ["span", "stripe:64K", "stripe:512", "stripe:1024K"] {
            assert_eq!(text.parse::<Layout>().unwrap().to_string(), text);
        }
        assert_eq!("stripe".parse::<Layout>().unwrap().to_string(), "stripe:64K");
        for text in ["", "raid5", "stripe:", "stripe:0", "stripe:100", "span:64K"] {
            assert!(text.parse::<Layout>().is_err(), "{text}");
        }
    }

    proptest! {
        /// Each byte lies on one place of one member, and parts are whole.
        #[test]
        fn no_two_bytes_lie_in_one_place(
            unit in prop::option::of(1u64..4),
            members in prop::collection::vec(0u64..40, 1..5),
        ) {
            let layout = unit.map_or(Layout::Span, |unit| Layout::Stripe { unit_bytes: unit * 2 });
            let map = LayoutMap::new(layout, &members);
            let mut seen = std::collections::BTreeSet::new();
            for offset in 0..map.size_bytes() {
                let part = map.first_part(offset, 1).unwrap();
                prop_assert!(part.offset < members[part.member]);
                prop_assert!(seen.insert((part.member, part.offset)));
            }
            prop_assert!(map.first_part(map.size_bytes(), 1).is_none());
            let all: u64 = map.parts(0, u64::MAX).map(|part| part.bytes).sum();
            prop_assert_eq!(all, map.size_bytes());
        }
    }
}
