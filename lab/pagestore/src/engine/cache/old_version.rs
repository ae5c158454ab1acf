//! Old versions of a page: kept for as long as a snapshot may read them, or one that begins before the replacing
//! commit is durable. After a failed log write that commit never becomes durable.
//!
//! ```text
//! Content    in memory
//! Logged     in the log, until that is freed ─── the checkpoint that frees it had captured it ──▶ Stored
//! Stored     in the data file, until a checkpoint overwrites it with a later version
//! ```
//! A transaction larger than memory leaves old versions where they are. A checkpoint writes pages and frees log
//! only when all that it captured is visible, so snapshots that begin afterwards do not need the versions that are
//! lost by it.

use super::{Entry, Lookup, Page, Token};
use crate::types::Lsn;

/// See the module.
pub(super) enum OldVersion {
    Content(Page),
    /// Its records; the first is an image.
    Logged(Vec<Lsn>),
    /// In the data file, while `PageTable::checkpoints` is less than this.
    Stored {
        until: u64,
    },
}

impl OldVersion {
    /// The version with these records since it was last written to the data file.
    pub(super) fn from_chain(chain: Vec<Lsn>) -> Self {
        if chain.is_empty() { Self::Stored { until: u64::MAX } } else { Self::Logged(chain) }
    }

    fn is_lost(&self, freed_before: Lsn, checkpoints: u64) -> bool {
        match self {
            Self::Content(_) => false,
            Self::Logged(chain) => chain[0] < freed_before,
            Self::Stored { until } => *until <= checkpoints,
        }
    }

    pub(super) fn locate(&self, freed_before: Lsn, checkpoints: u64) -> Lookup {
        let token = Token { checkpoints, changes: None };
        match self {
            _ if self.is_lost(freed_before, checkpoints) => Lookup::TooOld,
            Self::Content(content) => Lookup::Cached(content.clone()),
            Self::Logged(chain) => Lookup::Logged(chain.clone(), token),
            Self::Stored { .. } => Lookup::Stored(token),
        }
    }
}

impl Entry {
    /// A checkpoint captured the page: its version in the data file is valid until the count of checkpoints reaches
    /// `until`.
    pub(super) fn mark_captured(&mut self, until: u64) {
        for (_, old) in &mut self.old {
            if let OldVersion::Stored { until: valid_until } = old {
                *valid_until = until.min(*valid_until);
            }
        }
    }

    /// The version whose first record is `first` is now in the data file, and the log before `freed_before` is
    /// about to be freed.
    pub(super) fn mark_written(&mut self, first: Lsn, freed_before: Lsn, checkpoints: u64) {
        for (_, old) in &mut self.old {
            if matches!(old, OldVersion::Logged(chain) if chain[0] == first) {
                *old = OldVersion::from_chain(Vec::new());
            }
        }
        // Drop only a prefix: if a later version were dropped alone, a lookup would find the one before it instead.
        let lost = self.old.iter().take_while(|(_, old)| old.is_lost(freed_before, checkpoints)).count();
        self.old.drain(..lost);
    }
}

#[cfg(test)]
mod tests;
