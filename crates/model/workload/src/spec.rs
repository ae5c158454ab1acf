use crate::{
    Access, Arrival, Burst, Content, Distribution, Extent, Limit, SizeShare, SyncEvery, Verify, Zone,
    format_bytes,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Where in the target the I/Os go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Uniformly random, aligned to the block size.
    Random,
    /// Consecutive blocks; each thread walks its own part of the target and wraps.
    Sequential,
}

/// Whether the operating system's page cache takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Caching {
    /// `O_DIRECT`: every I/O reaches the storage.
    Direct,
    /// Through the page cache: what is measured includes memory.
    Buffered,
    /// Mapped into memory: reads and writes are copies, page faults move the data. Blocking; a write that
    /// must be durable is followed by `msync`.
    Mapped,
}

/// When a write counts as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// When the storage says so; a volatile cache may hold it.
    Cached,
    /// When it would survive a power failure (`RWF_DSYNC`).
    WriteThrough,
    /// When the `fdatasync` after it is done: what a database's commit waits for, the file system's own
    /// journal included where the file grows.
    Synced,
}

/// Shape of each I/O, whatever their number: the part of a workload that a capability curve is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shape {
    /// Bytes of each I/O.
    pub block_bytes: u32,
    /// Where they go.
    pub pattern: Pattern,
    /// Share of writes in percent: a coin thrown for each I/O, not a fixed sequence.
    pub write_percent: u8,
    /// Through the page cache or not.
    pub caching: Caching,
    /// When writes count as complete.
    pub durability: Durability,
}

/// The load on a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workload {
    /// For people; may be empty.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub name: String,
    /// Shape of each I/O.
    #[serde(flatten)]
    pub shape: Shape,
    /// Most I/Os outstanding in each thread; in a closed loop always that many.
    pub outstanding: u32,
    /// Threads, each with its own ring.
    pub threads: u32,
    /// Seed of every random choice: the same seed gives the same offsets in the same order.
    pub seed: u64,
    /// Part of the target in use, and in what order.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub access: Access,
    /// Sizes of the I/Os where they differ; `shape.block_bytes` is then the largest. Empty: all alike.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub sizes: Vec<SizeShare>,
    /// When I/Os are issued.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub arrival: Arrival,
    /// Bounds of a closed loop.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub limit: Limit,
    /// Rests between bursts of a closed loop.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub burst: Option<Burst>,
    /// Syncs between writes.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub sync: Option<SyncEvery>,
    /// Content of writes.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub content: Content,
    /// Whether and how what was written is read again and checked.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub verify: Option<Verify>,
}

/// How long a run goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLength {
    /// Ran before anything is counted.
    pub warm_up: Duration,
    /// The measured time, at most.
    pub duration: Duration,
    /// Ends the run earlier once that many I/Os completed.
    pub ios_max: Option<u64>,
    /// Time that the load goes on after the measured part.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub cool_down: Duration,
}

impl RunLength {
    /// Warm-up, measured time and cool-down.
    pub fn total(&self) -> Duration {
        self.warm_up.saturating_add(self.duration).saturating_add(self.cool_down)
    }
}

/// A workload that cannot be run, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWorkload {
    /// The block size is 0, above 16 MiB, or no multiple of 512 bytes.
    #[error("block size {0} B: give a multiple of 512 bytes, up to 16M")]
    BlockBytes(u32),
    /// More than all I/Os would be writes.
    #[error("write share {0} %: give 0 to 100")]
    WritePercent(u8),
    /// The number of outstanding I/Os is out of range.
    #[error("{0} outstanding I/Os a thread: give 1 to {max}", max = Workload::OUTSTANDING_MAX)]
    Outstanding(u32),
    /// The number of threads is out of range.
    #[error("{0} threads: give 1 to {max}", max = Workload::THREADS_MAX)]
    Threads(u32),
    /// Another field is out of range, or two of them contradict each other.
    #[error("{what}: {remedy}")]
    Field {
        /// The parameter, with its value.
        what: String,
        /// The value to give instead.
        remedy: &'static str,
    },
}

impl Shape {
    /// Direct random reads.
    pub const fn random_read(block_bytes: u32) -> Shape {
        Shape {
            block_bytes,
            pattern: Pattern::Random,
            write_percent: 0,
            caching: Caching::Direct,
            durability: Durability::Cached,
        }
    }

    /// Direct random writes.
    pub const fn random_write(block_bytes: u32) -> Shape {
        Shape { write_percent: 100, ..Shape::random_read(block_bytes) }
    }

    /// Direct sequential reads.
    pub const fn sequential_read(block_bytes: u32) -> Shape {
        Shape { pattern: Pattern::Sequential, ..Shape::random_read(block_bytes) }
    }

    /// Direct sequential writes.
    pub const fn sequential_write(block_bytes: u32) -> Shape {
        Shape { write_percent: 100, ..Shape::sequential_read(block_bytes) }
    }

    /// Sequential writes that count when durable, as a transaction log needs them.
    pub const fn log_write(block_bytes: u32) -> Shape {
        Shape { durability: Durability::WriteThrough, ..Shape::sequential_write(block_bytes) }
    }

    /// Writes that grow a file through the page cache, each followed by `fdatasync`, as the commits of a
    /// database on a file system do.
    pub const fn log_append(block_bytes: u32) -> Shape {
        Shape {
            caching: Caching::Buffered,
            durability: Durability::Synced,
            ..Shape::sequential_write(block_bytes)
        }
    }

    /// Returns this shape with that share of writes.
    #[must_use]
    pub const fn with_writes(self, write_percent: u8) -> Shape {
        Shape { write_percent, ..self }
    }

    /// Whether any I/O may be a write.
    pub const fn writes(&self) -> bool {
        self.write_percent > 0
    }
}

impl From<Shape> for Workload {
    /// A closed loop over the whole target: one thread, one outstanding, seed 0, random content.
    fn from(shape: Shape) -> Workload {
        Workload {
            name: String::new(),
            shape,
            outstanding: 1,
            threads: 1,
            seed: 0,
            access: Access::default(),
            sizes: Vec::new(),
            arrival: Arrival::Closed,
            limit: Limit::default(),
            burst: None,
            sync: None,
            content: Content::default(),
            verify: None,
        }
    }
}

impl Workload {
    /// Most I/Os one thread keeps outstanding.
    pub const OUTSTANDING_MAX: u32 = 16_384;
    /// Most threads of one run.
    pub const THREADS_MAX: u32 = 1024;
    /// Largest I/O.
    pub const BLOCK_BYTES_MAX: u32 = 16 << 20;

    /// Returns this workload with `outstanding` I/Os a thread.
    #[must_use]
    pub fn with_outstanding(self, outstanding: u32) -> Workload {
        Workload { outstanding, ..self }
    }

    /// I/Os outstanding over all threads.
    pub fn outstanding_total(&self) -> u32 {
        self.outstanding.saturating_mul(self.threads)
    }

    /// Whether I/Os come at times of their own, whatever the storage does.
    pub fn is_open_loop(&self) -> bool {
        self.arrival != Arrival::Closed
    }

    /// Mean bytes of an I/O.
    pub fn mean_block_bytes(&self) -> f64 {
        if self.sizes.is_empty() {
            return f64::from(self.shape.block_bytes);
        }
        let sum: f64 =
            self.sizes.iter().map(|size| f64::from(size.block_bytes) * f64::from(size.percent)).sum();
        sum / 100.0
    }

    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// The first field out of range.
    pub fn validate(&self) -> Result<(), InvalidWorkload> {
        if self.shape.block_bytes == 0
            || !self.shape.block_bytes.is_multiple_of(512)
            || self.shape.block_bytes > Self::BLOCK_BYTES_MAX
        {
            return Err(InvalidWorkload::BlockBytes(self.shape.block_bytes));
        }
        if self.shape.write_percent > 100 {
            return Err(InvalidWorkload::WritePercent(self.shape.write_percent));
        }
        if self.outstanding == 0 || self.outstanding > Self::OUTSTANDING_MAX {
            return Err(InvalidWorkload::Outstanding(self.outstanding));
        }
        if self.threads == 0 || self.threads > Self::THREADS_MAX {
            return Err(InvalidWorkload::Threads(self.threads));
        }
        self.validate_sizes()?;
        self.validate_access()?;
        self.validate_demand()
    }

    fn validate_sizes(&self) -> Result<(), InvalidWorkload> {
        if self.sizes.is_empty() {
            return Ok(());
        }
        if let Some(odd) = self.sizes.iter().find(|size| {
            size.block_bytes == 0
                || !size.block_bytes.is_multiple_of(512)
                || size.block_bytes > Self::BLOCK_BYTES_MAX
        }) {
            return Err(InvalidWorkload::BlockBytes(odd.block_bytes));
        }
        let percent: u32 = self.sizes.iter().map(|size| u32::from(size.percent)).sum();
        if percent != 100 {
            return Err(field(
                format!("block sizes of {percent} % of the I/Os"),
                "their shares must sum to 100",
            ));
        }
        if self.sizes.iter().map(|size| size.block_bytes).max() != Some(self.shape.block_bytes) {
            let what = format!(
                "block size {} beside a mix of sizes",
                format_bytes(u64::from(self.shape.block_bytes))
            );
            return Err(field(what, "it must be the largest of the mix"));
        }
        Ok(())
    }

    fn validate_access(&self) -> Result<(), InvalidWorkload> {
        let access = &self.access;
        if let Some(percent) = access.random_percent.filter(|percent| *percent > 100) {
            return Err(field(format!("random share {percent} %"), "give 0 to 100"));
        }
        for (name, bytes) in [("alignment", access.align_bytes), ("stride", access.stride_bytes)] {
            if bytes == Some(0) {
                return Err(field(format!("{name} 0"), "give at least 512 bytes"));
            }
        }
        let random =
            self.shape.pattern == Pattern::Random || access.random_percent.is_some_and(|percent| percent > 0);
        if random && access.same_offset {
            return Err(field("one offset for all outstanding I/Os".into(), "needs a sequential pattern"));
        }
        match &access.distribution {
            Distribution::Uniform => {}
            _ if !random => {
                return Err(field("a distribution of sequential I/Os".into(), "needs a random pattern"));
            }
            Distribution::Zipf { theta } if !theta.is_finite() || *theta < 0.0 || *theta > 10.0 => {
                return Err(field(format!("zipf theta {theta}"), "give 0 to 10"));
            }
            Distribution::Pareto { h } if h.is_nan() || *h <= 0.0 || *h > 0.5 => {
                return Err(field(format!("pareto h {h}"), "give a number above 0, up to 0.5"));
            }
            Distribution::Zones { zones } => {
                let ios: u32 = zones.iter().map(|zone| u32::from(zone.ios_percent)).sum();
                let part = |zone: &Zone| match zone.extent {
                    Extent::Percent(percent) => u32::from(percent),
                    Extent::Bytes(_) => 0,
                };
                let extent: u32 = zones.iter().map(part).sum();
                if ios > 100 || extent > 100 {
                    let what = format!("zones of {ios} % of the I/Os in {extent} % of the target");
                    return Err(field(what, "neither may be above 100"));
                }
                if (ios < 100) && extent == 100 {
                    let what = format!("zones of {ios} % of the I/Os in all of the target");
                    return Err(field(what, "nothing is left of the target for the other I/Os"));
                }
            }
            Distribution::Zipf { .. } | Distribution::Pareto { .. } => {}
        }
        Ok(())
    }

    fn validate_demand(&self) -> Result<(), InvalidWorkload> {
        let rate = match self.arrival {
            Arrival::Closed => None,
            Arrival::Constant { iops } | Arrival::Poisson { iops } => Some(("rate", iops)),
            Arrival::Recorded { speed } => Some(("speed", speed)),
        };
        let rates =
            [rate, self.limit.iops.map(|iops| ("limit", iops)), self.limit.bytes_per_s.map(|b| ("limit", b))];
        if let Some((name, rate)) =
            rates.into_iter().flatten().find(|(_, rate)| !rate.is_finite() || *rate <= 0.0)
        {
            return Err(field(format!("{name} {rate}"), "give a number above 0"));
        }
        if self.is_open_loop() && (self.limit != Limit::default() || self.burst.is_some()) {
            return Err(field("a limit or bursts of an open loop".into(), "give the rate alone"));
        }
        if self.burst.is_some_and(|burst| burst.ios == 0) {
            return Err(field("bursts of 0 I/Os".into(), "give at least 1"));
        }
        if self.sync.is_some_and(|sync| sync.writes == 0) {
            return Err(field("a sync after 0 writes".into(), "give at least 1"));
        }
        if let Content::Random { compressible_percent, duplicate_percent } = self.content
            && (compressible_percent > 100 || duplicate_percent > 100)
        {
            return Err(field("content of more than 100 %".into(), "give 0 to 100"));
        }
        if let Content::Buffer { bytes, .. } = &self.content
            && *bytes < u64::from(self.shape.block_bytes)
        {
            return Err(field(format!("a buffer of {}", format_bytes(*bytes)), "it must hold a block"));
        }
        if self.verify.is_some()
            && (self.content != Content::default() || self.shape.caching == Caching::Mapped)
        {
            let what = "verified writes of a chosen content, or through a mapping".into();
            return Err(field(what, "leave the content to the verification, and the file unmapped"));
        }
        Ok(())
    }
}

fn field(what: String, remedy: &'static str) -> InvalidWorkload {
    InvalidWorkload::Field { what, remedy }
}

/// "random", "sequential".
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// "random read 8 KiB", "sequential write 4 KiB write-through", "random 70/30 8 KiB", "append 4 KiB and sync".
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Shape::log_append(self.block_bytes) {
            return write!(f, "append {} and sync", format_bytes(u64::from(self.block_bytes)));
        }
        write!(f, "{} ", self.pattern)?;
        match self.write_percent {
            0 => write!(f, "read")?,
            100 => write!(f, "write")?,
            writes => write!(f, "{}/{writes}", 100_u8.saturating_sub(writes))?,
        }
        write!(f, " {}", format_bytes(u64::from(self.block_bytes)))?;
        match self.durability {
            Durability::Cached => {}
            Durability::WriteThrough => write!(f, " write-through")?,
            Durability::Synced => write!(f, " synced")?,
        }
        match self.caching {
            Caching::Direct => Ok(()),
            Caching::Buffered => write!(f, " buffered"),
            Caching::Mapped => write!(f, " mapped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_reads_as_people_say_it() {
        let read = Shape::random_read(8192);
        assert_eq!(read.to_string(), "random read 8 KiB");
        assert_eq!(read.with_writes(30).to_string(), "random 70/30 8 KiB");
        assert_eq!(Shape::log_append(4096).to_string(), "append 4 KiB and sync");
        assert_eq!(Shape::log_write(4096).to_string(), "sequential write 4 KiB write-through");
    }

    #[test]
    fn what_cannot_be_run_is_refused_by_name() {
        let read = Workload::from(Shape::random_read(8192));
        assert!(read.validate().is_ok());
        let odd = Workload::from(Shape::random_read(1000));
        assert_eq!(odd.validate(), Err(InvalidWorkload::BlockBytes(1000)));
        assert_eq!(read.clone().with_outstanding(0).validate(), Err(InvalidWorkload::Outstanding(0)));
        let none = Workload { threads: 0, ..read };
        assert_eq!(none.validate(), Err(InvalidWorkload::Threads(0)));
    }
}
