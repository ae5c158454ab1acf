//! How far a compaction is.

use crate::types::PageNo;
use std::collections::BTreeMap;

/// Work of a compaction since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Pages that were written fuller than before.
    pub pages_repacked: u64,
    /// Pages that this made free.
    pub pages_freed: u64,
    /// Pages that were moved to a place nearer to the beginning.
    pub pages_moved: u64,
    /// Bytes by which the data file became shorter.
    pub data_bytes_given_back: u64,
    /// Bytes by which the log became shorter.
    pub log_bytes_given_back: u64,
    /// The page that keeps the data file from becoming shorter.
    pub held_by: Option<CompactionHolder>,
    /// It has ended; the next call begins another.
    pub is_done: bool,
}

/// Why the last page keeps a data file from becoming shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionHolder {
    /// A page that cannot be moved is the last one: the user's own, whose number the user knows, or one of a store that
    /// does not say what its pages are for.
    Page(PageNo),
    /// A snapshot still reads pages at their old places. The compaction goes on once it has ended.
    Snapshot,
}

/// See `compaction`.
#[derive(Default)]
pub(crate) struct CompactionState {
    pub(super) phase: Phase,
    pub(super) totals: Compaction,
    /// The names of tables by their numbers, as they were found.
    pub(super) names: BTreeMap<u32, String>,
}

#[derive(Default)]
pub(super) enum Phase {
    /// Sparse nodes are repacked, table by table.
    Repack(RepackAt),
    /// Pages are moved from the end of the data file.
    Move {
        /// How often it has begun.
        pass: u32,
        /// The list of free pages has been emptied for this pass.
        is_begun: bool,
    },
    /// The data file is cut.
    Cut,
    /// The log is shortened.
    Log,
    #[default]
    Begin,
}

/// Where repacking goes on.
#[derive(Clone, Default)]
pub(super) struct RepackAt {
    /// The table; `None`: the catalog.
    pub name: Option<String>,
    /// The level: 1 has the leaves as children.
    pub level: usize,
    /// The first key of the next window.
    pub from: Vec<u8>,
}
