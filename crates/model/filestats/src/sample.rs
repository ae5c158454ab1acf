use crate::{Counters, Figure, LatencyBuckets, Reason, WaitSample};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Purpose of a file for the engine that opened it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    #[default]
    Other,
}

/// File that a sample is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileIdentity {
    /// The counting program: one running engine or process ("sqlite pid 812"), or "kernel" for a device.
    pub instance: String,
    /// The database the file belongs to, as its users call it.
    pub database: Option<String>,
    /// The engine's number of that database, where it has one.
    pub database_id: Option<u64>,
    /// Identifier that distinguishes this file from another of the same name: device and inode, or the
    /// engine's file id.
    pub file_id: String,
    /// Purpose of the file.
    pub kind: FileKind,
    /// Full physical name.
    pub path: String,
    /// Mount point or drive.
    pub drive: Option<String>,
    /// The engine's handle of the open file, where it publishes one.
    pub handle: Option<String>,
    /// The engine's name of its content ("shop.public.orders"), where known: for display only, not part of the identity.
    #[serde(default)]
    pub object: Option<String>,
}

/// Names the stretch in which the counters only grow. Two samples of one file may be subtracted only if
/// their epochs are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Epoch {
    /// The run of the counting program: which boot, when it started.
    pub run: String,
    /// The last reset of its statistics while it ran; empty where there was none or it is not recorded.
    pub reset: String,
}

/// Meaning of a sample's counters. Figures of different meaning are not to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Meaning {
    /// The counted operations.
    pub counts: Counts,
    /// Time that counts as stall of reads.
    pub read_time: Time,
    /// Time that counts as stall of writes. Syncs are always timed to their completion.
    pub write_time: Time,
    /// Whether operations that the page cache answers are counted.
    pub cache: Cache,
    /// Operation that makes a write durable.
    #[serde(default, skip_serializing_if = "Durable::is_by_sync")]
    pub durable: Durable,
}

/// Unit of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// A request, whatever its size.
    Requests,
    /// A block of a fixed size: several may have been one request.
    Blocks,
}

/// Timed part of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TimeMeaning"))]
#[serde(rename_all = "kebab-case")]
pub enum Time {
    /// From its submission to its completion.
    ToCompletion,
    /// Its submission only, where it is asynchronous: far less than the storage took.
    ToSubmission,
    /// The wait for it, which may begin after its submission: less than the storage took.
    Waiting,
}

/// Where the page cache stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// Operations that the page cache answered are counted and timed like any other.
    Included,
    /// Only what the page cache did not answer: direct I/O, faults of a mapped file that had to read.
    Missed,
    /// The I/O below the page cache: that above it, counted a second time.
    Below,
}

/// Operation that makes a write durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Durable {
    /// A sync after it, if any does.
    #[default]
    BySync,
    /// It goes through to the medium (O_DSYNC): a sync is for what else there is, the file's length.
    ByItself,
}

impl Durable {
    fn is_by_sync(&self) -> bool {
        *self == Durable::BySync
    }
}

/// Histograms of one file since its epoch began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LatencyHistograms"))]
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
    /// The file.
    pub file: Arc<FileIdentity>,
    /// Since when the counters grow.
    pub epoch: Epoch,
    /// Meaning of the counters.
    pub meaning: Meaning,
    /// The cumulative counters.
    pub counters: Counters,
    /// Bytes on disk.
    pub size_bytes: Figure<u64>,
    /// Cumulative histograms, where the source keeps them.
    pub latencies: Option<Latencies>,
}

/// The cumulative counters of all files of a source at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The source ("sqlite:/data/shop.db", "diskstats"): two databases are two sources.
    pub source: String,
    /// Wall clock, nanoseconds since 1970, for people.
    pub taken_unix_ns: u64,
    /// The source's monotonic clock in nanoseconds, for elapsed time. Comparable between snapshots of
    /// one boot of the machine only; the epoch sees to that.
    pub clock_ns: u64,
    /// The epoch in which all files and waits with any operation are here, where the source can promise that: what a
    /// later snapshot of the same epoch has and this one has not began at zero in between.
    pub complete: Option<Epoch>,
    /// The files.
    pub samples: Vec<Sample>,
    /// Waits of its sessions, where the source reports them.
    pub waits: Vec<WaitSample>,
    /// Remarks needed to read it: timing that is off and how to switch it on, a role too weak, events lost.
    pub notes: Vec<String>,
}

impl Snapshot {
    /// Returns a copy without files and notes.
    #[must_use]
    pub fn without_files(&self) -> Snapshot {
        let Snapshot { source, taken_unix_ns, clock_ns, complete, samples: _, waits, notes: _ } = self;
        Snapshot {
            source: source.clone(),
            taken_unix_ns: *taken_unix_ns,
            clock_ns: *clock_ns,
            complete: complete.clone(),
            samples: Vec::new(),
            waits: waits.clone(),
            notes: Vec::new(),
        }
    }

    /// Whether a file that is missing in this snapshot and there in a later one began at zero.
    pub(crate) fn missing_is_zero_until(&self, later: &Snapshot) -> bool {
        self.complete.is_some() && self.complete == later.complete
    }
}

impl Sample {
    /// A sample of a source that knows neither the file's size nor histograms.
    pub fn new(
        file: impl Into<Arc<FileIdentity>>,
        epoch: Epoch,
        meaning: Meaning,
        counters: Counters,
    ) -> Sample {
        let file = file.into();
        let size_bytes = Figure::unknown(Reason::NotCounted);
        Sample { file, epoch, meaning, counters, size_bytes, latencies: None }
    }

    /// Returns the identity of its file, to be changed.
    pub fn file_mut(&mut self) -> &mut FileIdentity {
        Arc::make_mut(&mut self.file)
    }

    /// The file's sample before its first operation.
    pub(crate) fn at_zero(&self) -> Sample {
        Sample {
            counters: self.counters.at_zero(),
            latencies: self.latencies.as_ref().map(|_| Latencies::default()),
            ..self.clone()
        }
    }
}

impl Epoch {
    /// Of statistics that cannot be reset.
    pub fn for_run(run: impl Into<String>) -> Epoch {
        Epoch { run: run.into(), reset: String::new() }
    }

    /// Why the time between `self` and a later epoch is unknown; `None` where they are equal.
    pub(crate) fn ended(&self, later: &Epoch) -> Option<Reason> {
        if self.run != later.run {
            Some(Reason::Restart)
        } else if self.reset != later.reset {
            Some(Reason::StatsReset)
        } else {
            None
        }
    }
}

impl Meaning {
    /// Requests, timed to their completion, whether the page cache answered or not: what a program sees of its I/O.
    pub const REQUESTS: Meaning = Meaning {
        counts: Counts::Requests,
        read_time: Time::ToCompletion,
        write_time: Time::ToCompletion,
        cache: Cache::Included,
        durable: Durable::BySync,
    };
    /// Counters of blocks, several of which may have been one request; otherwise like [`Meaning::REQUESTS`].
    pub const BLOCKS: Meaning = Meaning { counts: Counts::Blocks, ..Meaning::REQUESTS };
}

impl FileIdentity {
    /// Key that two samples of one file share: the counting program and the name.
    pub fn key(&self) -> (&str, &str) {
        (&self.instance, &self.path)
    }

    /// Whether both are the same file, whatever the names of their content.
    pub fn is(&self, other: &FileIdentity) -> bool {
        let FileIdentity { instance, database, database_id, file_id, kind, path, drive, handle, object: _ } =
            self;
        (instance, database, database_id, file_id)
            == (&other.instance, &other.database, &other.database_id, &other.file_id)
            && (kind, path, drive, handle) == (&other.kind, &other.path, &other.drive, &other.handle)
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
