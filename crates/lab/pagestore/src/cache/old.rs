//! What a page was before a commit, for as long as somebody may read it: a snapshot, or whoever begins before that commit is
//! durable, which after a failed write it never is.
//!
//! ```text
//! Content    in memory
//! Logged     in the log, until that is freed ─── the checkpoint that frees it had captured it ──▶ Stored
//! Stored     in the data file, until a checkpoint writes over it with a later version
//! ```
//! A transaction larger than memory leaves what its pages were where it lies. A checkpoint writes, and frees log, when
//! all that it has captured is visible: what is lost by it no snapshot needs that begins from then on.

use super::{Entry, Lookup, Page, Token};
use crate::types::Lsn;
use std::sync::Arc;

/// See the module.
pub(super) enum Old {
    Content(Page),
    /// Its records, the first of them an image.
    Logged(Vec<Lsn>),
    /// While `PageTable::checkpoints` is less than this.
    Stored {
        until: u64,
    },
}

impl Old {
    /// A version that these are the records of, since it was last written to the data file.
    pub(super) fn of(chain: Vec<Lsn>) -> Self {
        if chain.is_empty() { Self::Stored { until: u64::MAX } } else { Self::Logged(chain) }
    }

    fn is_lost(&self, freed_before: Lsn, checkpoints: u64) -> bool {
        match self {
            Self::Content(_) => false,
            Self::Logged(chain) => chain[0] < freed_before,
            Self::Stored { until } => *until <= checkpoints,
        }
    }

    pub(super) fn lookup(&self, freed_before: Lsn, checkpoints: u64) -> Lookup {
        let token = Token { checkpoints, changes: None };
        match self {
            _ if self.is_lost(freed_before, checkpoints) => Lookup::TooOld,
            Self::Content(content) => Lookup::Cached(Arc::clone(content)),
            Self::Logged(chain) => Lookup::Logged(chain.clone(), token),
            Self::Stored { .. } => Lookup::Stored(token),
        }
    }
}

impl Entry {
    /// The page is captured as it is now: what the data file has of it is there until so many checkpoints are counted.
    pub(super) fn captured(&mut self, until: u64) {
        for (_, old) in &mut self.old {
            if let Old::Stored { until: own } = old {
                *own = until.min(*own);
            }
        }
    }

    /// The version whose first record is `first` is in the data file, and what lies before `freed_before` about to be freed.
    pub(super) fn written(&mut self, first: Lsn, freed_before: Lsn, checkpoints: u64) {
        for (_, old) in &mut self.old {
            if matches!(old, Old::Logged(chain) if chain[0] == first) {
                *old = Old::of(Vec::new());
            }
        }
        // Others have one before them that must not be taken for them.
        let lost = self.old.iter().take_while(|(_, old)| old.is_lost(freed_before, checkpoints)).count();
        self.old.drain(..lost);
    }
}

#[cfg(test)]
mod tests;
