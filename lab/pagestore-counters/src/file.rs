//! The files of a store and their cumulative counters.

use filestats::{Counters, FileKind, Latencies};
use published::{FileReading, Way};
use std::fmt;

/// One of the files of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
pub enum FileId {
    /// Two copies of what must be known to open the store.
    Control,
    /// The pages.
    Data,
    /// The virtual log files.
    Log,
}

impl FileId {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Control, Self::Data, Self::Log];

    /// The name of the file in the store's directory.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Data => "data",
            Self::Log => "log",
        }
    }
}

impl FileId {
    pub(crate) fn kind(self) -> FileKind {
        match self {
            Self::Control => FileKind::Other,
            Self::Data => FileKind::Data,
            Self::Log => FileKind::Log,
        }
    }

    /// All of its I/O is direct; the data file is synced, and the others are written through.
    pub(crate) fn way(self) -> Way {
        Way { bypasses_cache: true, is_durable_at_end: self != Self::Data }
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The cumulative counters of one file of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatistics {
    /// The file.
    pub file: FileId,
    /// Successful reads, writes (written through or not) and syncs.
    pub counters: Counters,
    /// Their latency histograms.
    pub latencies: Latencies,
    /// Failed reads, writes and syncs, which `counters` leaves out.
    pub errors: u64,
}

impl FileStatistics {
    pub(crate) fn new(file: FileId, reading: FileReading) -> Self {
        let details = reading.details;
        let errors = [details.read_errors, details.write_errors, details.sync_errors];
        Self {
            file,
            counters: reading.counters,
            latencies: reading.latencies,
            errors: errors.into_iter().fold(0, u64::saturating_add),
        }
    }
}
