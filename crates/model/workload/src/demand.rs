use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// When I/Os are issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Arrival {
    /// A closed loop: a completion is followed by a submission, so that slow storage gets fewer I/Os.
    #[default]
    Closed,
    /// An open loop at even distances: I/Os are issued at their time, whether or not earlier ones completed,
    /// and latency counts from that time too. `iops` over all threads of the workload.
    Constant {
        /// I/Os a second.
        iops: f64,
    },
    /// An open loop at exponentially distributed distances (independent users).
    Poisson {
        /// I/Os a second, on average.
        iops: f64,
    },
    /// The times of a recorded trace, divided by `speed`.
    Recorded {
        /// 1 as recorded, 2 twice as fast.
        speed: f64,
    },
}

/// Bounds of a closed loop, over all threads of the workload. The pace is even: I/Os are spread over time,
/// not sent in clumps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Limit {
    /// I/Os a second.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub iops: Option<f64>,
    /// Bytes a second.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub bytes_per_s: Option<f64>,
}

/// Each thread does `ios` I/Os, then rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Burst {
    /// I/Os of a burst, at least one.
    pub ios: u32,
    /// The rest after it.
    pub pause: Duration,
}

/// A share of the I/Os and their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeShare {
    /// Bytes of each.
    pub block_bytes: u32,
    /// Share of the I/Os; the shares of a workload sum to 100.
    pub percent: u8,
}

/// A sync after every `writes` writes of a thread. It is a barrier as a commit is one: it waits for the
/// thread's outstanding writes, and the next writes wait for it; reads go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SyncEvery {
    /// At least one.
    pub writes: u32,
    /// The call.
    pub how: SyncKind,
}

/// The call that makes writes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SyncKind {
    /// `fsync`: data and all metadata.
    Fsync,
    /// `fdatasync`: data, and the metadata needed to read it.
    Fdatasync,
}

/// Content of writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Content {
    /// Random bytes. Each write is made new by a word in every 4 KiB, so that nothing downstream recognises a
    /// block, at next to no cost.
    Random {
        /// Share of every 4 KiB that is zeros, and so compresses away.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        compressible_percent: u8,
        /// Share of the writes that repeat one of a few blocks, and so can be stored once.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        duplicate_percent: u8,
    },
    /// Every write has new random bytes; costs CPU.
    Fresh,
    /// Zeros.
    Zeros,
    /// Bytes 0, 1 ... 255, 0 ...: what diskspd writes by default.
    Counting,
    /// Each write takes a random place, a multiple of 512 bytes, of a buffer of that size, filled from a file
    /// (repeated where shorter) or with random bytes.
    Buffer {
        /// Size of the buffer, at least the block size.
        bytes: u64,
        /// File that fills it.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        file: Option<PathBuf>,
    },
}

impl Default for Content {
    fn default() -> Content {
        Content::Random { compressible_percent: 0, duplicate_percent: 0 }
    }
}

/// Check of the written data, by reading it after the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// Each block carries its offset, the run's seed and a checksum: finds damaged and misplaced blocks.
    Checksum,
    /// ... and its number among the writes to its place: finds lost writes as well. Costs 4 bytes of memory
    /// a block; two writes of one place are never outstanding together.
    Sequence,
    /// Every byte follows from seed and offset: finds any difference; all writes of one place are alike.
    Content,
}
