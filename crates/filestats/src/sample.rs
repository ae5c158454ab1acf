use crate::{Counters, Figure, LatencyBuckets};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a file is to the engine that opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A database's data.
    Data,
    /// A log that commits wait for (SQLite's WAL, a transaction log).
    Log,
    /// A rollback journal.
    Journal,
    /// Sorts, spills and other files that do not outlive the session.
    Temp,
    /// A whole block device, the layer below the files.
    Device,
    /// Anything else.
    Other,
}

/// Which file a sample is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Who counts: one running engine or process ("sqlite pid 812"), or "kernel" for a device.
    pub instance: String,
    /// The database the file belongs to, as its users call it.
    pub database: Option<String>,
    /// The engine's number of that database, where it has one.
    pub database_id: Option<u64>,
    /// What tells this file from another of the same name: device and inode, or the engine's file id.
    pub file_id: String,
    /// What the file is for.
    pub kind: FileKind,
    /// Full physical name.
    pub path: String,
    /// Mount point or drive.
    pub drive: Option<String>,
    /// The engine's handle of the open file, where it publishes one.
    pub handle: Option<String>,
}

/// Names the stretch in which the counters only grow. Two samples of one file may be subtracted only if
/// their epochs are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Epoch(pub String);

/// Histograms of one file since its epoch began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Of reads.
    pub read: LatencyBuckets,
    /// Of writes.
    pub write: LatencyBuckets,
    /// Of syncs.
    pub sync: LatencyBuckets,
}

/// One file at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Which file.
    pub file: FileIdentity,
    /// Since when the counters grow.
    pub epoch: Epoch,
    /// The cumulative counters.
    pub counters: Counters,
    /// Bytes on disk.
    pub size_bytes: Figure<u64>,
    /// Cumulative histograms, where the source keeps them.
    pub latencies: Option<Latencies>,
}

/// The cumulative counters of all files of a source at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The source ("sqlite", "diskstats").
    pub source: String,
    /// Wall clock, nanoseconds since 1970, for people.
    pub taken_unix_ns: u64,
    /// The source's monotonic clock in nanoseconds, for elapsed time. Comparable between snapshots of
    /// one boot of the machine only; the epoch sees to that.
    pub clock_ns: u64,
    /// The files.
    pub samples: Vec<Sample>,
}

impl FileIdentity {
    /// What two samples must share to be taken for the same file: who counts, and the name.
    pub fn key(&self) -> (&str, &str) {
        (&self.instance, &self.path)
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Data => "data",
            FileKind::Log => "log",
            FileKind::Journal => "journal",
            FileKind::Temp => "temp",
            FileKind::Device => "device",
            FileKind::Other => "other",
        })
    }
}
