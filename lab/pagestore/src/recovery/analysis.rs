//! The state that the records of the log lead to, for the strategies that read all of them.

use crate::error::Result;
use crate::log::block::{self, BlockHeader, BlockRecord};
use crate::log::record::Record;
use crate::types::{Lsn, PageNo};
use std::collections::{HashMap, HashSet};

/// The log records of a page since its newest image.
#[derive(Default)]
pub(crate) struct Chain {
    pub lsns: Vec<Lsn>,
    pub bytes: usize,
}

/// The state that the records of the log lead to.
#[derive(Default)]
pub(crate) struct Analysis {
    pub chains: HashMap<PageNo, Chain>,
    /// The records of the open transaction: page, LSN, whether it is an image, bytes.
    pub open: Vec<(PageNo, Lsn, bool, usize)>,
    pub open_tx: u64,
    pub records: u64,
    pub commits: u64,
    pub dropped: u64,
    /// Transactions that have records and no commit.
    pub dead: HashSet<u64>,
    /// Page records that must be redone: images, and changes with an image before them.
    pub changes: u64,
    pub sequence: u64,
    pub tx_max: u64,
}

impl Analysis {
    /// Adds the records of a block from `redo` on.
    pub(crate) fn add_block(&mut self, header: &BlockHeader, used: &[u8], redo: Lsn) -> Result<()> {
        for found in block::records(header, used) {
            let BlockRecord { lsn, tx, record } = found?;
            if lsn < redo {
                continue;
            }
            self.records += 1;
            if tx != 0 && tx != self.open_tx {
                // One transaction writes at a time: the one before ended without a commit.
                self.drop_open();
                self.open_tx = tx;
                self.tx_max = self.tx_max.max(tx);
            }
            match record {
                Record::Page { page, image, runs } => self.open.push((page, lsn, image, runs.len())),
                Record::Commit { sequence } => {
                    self.commits += 1;
                    self.sequence = self.sequence.max(sequence);
                    for (page, lsn, image, bytes) in std::mem::take(&mut self.open) {
                        self.put(page, lsn, image, bytes);
                    }
                }
                Record::Abort => self.drop_open(),
                _ => {}
            }
        }
        Ok(())
    }

    fn put(&mut self, page: PageNo, lsn: Lsn, image: bool, bytes: usize) {
        if image {
            self.chains.insert(page, Chain { lsns: vec![lsn], bytes });
            self.changes += 1;
        } else if let Some(chain) = self.chains.get_mut(&page) {
            chain.lsns.push(lsn);
            chain.bytes += bytes;
            self.changes += 1;
        }
        // A change without an image before it is skipped: the data file had the page when redo moved past its
        // image.
    }

    pub(super) fn drop_open(&mut self) {
        if !self.open.is_empty() {
            self.dead.insert(self.open_tx);
        }
        self.dropped += self.open.len() as u64;
        self.open.clear();
    }
}
