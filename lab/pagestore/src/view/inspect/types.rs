//! Results of an inspection, and the filter of records.

use crate::types::{Lsn, PageNo};

/// A virtual log file, as `DBCC LOGINFO` lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlfInfo {
    /// Its slot in the log file, from 0.
    pub slot: usize,
    /// Its offset in the log file, in bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its sequence number; 0: never used.
    pub vlf: u32,
    /// 0: reusable, 2: active.
    pub status: u8,
    /// 64 or 128, flipped at every use; 0: never used.
    pub parity: u32,
    /// The last record before it was begun.
    pub created: Lsn,
    /// Bytes of the blocks in it, if it is active.
    pub used_bytes: u64,
    /// Its blocks, if it is active.
    pub blocks: u64,
    /// Page records that its index lists, if it is active, full and has one.
    pub index_entries: Option<u64>,
}

/// The log as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogInfo {
    /// The store's identity.
    pub store: u128,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Log blocks are padded to a multiple of this.
    pub log_sector_bytes: usize,
    /// How often the store was opened.
    pub epoch: u32,
    /// The store was closed properly.
    pub clean: bool,
    /// Recovery begins here.
    pub redo: Lsn,
    /// The last record.
    pub last: Lsn,
    /// The newest commit.
    pub last_sequence: u64,
    /// Commits that recovery would redo.
    pub commits: u64,
    /// Pages that recovery would redo.
    pub pages: u64,
    /// All virtual log files, in the order of their slots.
    pub vlfs: Vec<VlfInfo>,
}

/// A log record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordInfo {
    /// Its LSN.
    pub lsn: Lsn,
    /// Its transaction; 0 for none.
    pub tx: u64,
    /// Its name: "page image", "commit", …
    pub kind: &'static str,
    /// The page, of a page record.
    pub page: Option<PageNo>,
    /// The sequence number, of a commit.
    pub sequence: Option<u64>,
    /// Its length in bytes.
    pub bytes: usize,
    /// Its content.
    pub text: String,
}

/// Selects records; `None` matches all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    /// From this record on.
    pub from: Option<Lsn>,
    /// Up to this record.
    pub to: Option<Lsn>,
    /// Records of this transaction.
    pub tx: Option<u64>,
    /// Records of this page.
    pub page: Option<PageNo>,
}

impl Filter {
    pub(super) fn matches(&self, lsn: Lsn, tx: u64, page: Option<PageNo>) -> bool {
        self.from.is_none_or(|from| lsn >= from)
            && !self.is_past(lsn)
            && self.tx.is_none_or(|wanted| tx == wanted)
            && self.page.is_none_or(|wanted| page == Some(wanted))
    }

    /// Whether no record from here on can match.
    pub(super) fn is_past(&self, lsn: Lsn) -> bool {
        self.to.is_some_and(|to| lsn > to)
    }
}

/// Why the beginning of the log cannot be reused, according to the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyHeld {
    /// Recovery begins here: virtual log files before it are reusable.
    pub redo: Lsn,
    /// The last record.
    pub last: Lsn,
    /// Virtual log files that are needed.
    pub active: usize,
    /// Pages whose newest version is only in the log.
    pub pages: u64,
    /// The page with the oldest first record, and that record.
    pub oldest_page: Option<(PageNo, Lsn)>,
    /// The transaction that has not ended: its number, its first record and the number of its records.
    pub open_transaction: Option<(u64, Lsn, u64)>,
    /// The end of the last checkpoint in the log.
    pub last_checkpoint: Option<Lsn>,
}

/// The records and blocks of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anatomy {
    /// The commit.
    pub sequence: u64,
    /// Its transaction.
    pub tx: u64,
    /// Its first and its last record.
    pub lsns: (Lsn, Lsn),
    /// Page images that it logged, and their bytes.
    pub images: (u64, u64),
    /// Page deltas that it logged, and their bytes.
    pub deltas: (u64, u64),
    /// Blocks that hold its records.
    pub blocks: Vec<BlockInfo>,
}

/// A block of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Its LSN, with record number 0.
    pub lsn: Lsn,
    /// Its bytes on disk.
    pub bytes: u64,
    /// Padding at its end.
    pub padding_bytes: u64,
    /// Records in it.
    pub records: u16,
    /// Commits in it, which became durable together.
    pub commits: u64,
    /// The durable LSN when it was built.
    pub witness: Lsn,
}
