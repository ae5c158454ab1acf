use crate::format_bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Where in the target the I/Os go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Uniformly random, aligned to the block size.
    Random,
    /// One block after the other; each thread walks its own part of the target and wraps.
    Sequential,
}

/// Whether the operating system's page cache takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caching {
    /// `O_DIRECT`: every I/O reaches the storage.
    Direct,
    /// Through the page cache: what is measured includes memory.
    Buffered,
}

/// When a write counts as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// What each I/O is like, whatever their number: the part of a workload that a capability curve is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// What is asked of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Workload {
    /// What each I/O is like.
    #[serde(flatten)]
    pub shape: Shape,
    /// I/Os kept outstanding by each thread: a closed loop, a completion is followed by a submission.
    pub outstanding: u32,
    /// Threads, each with a ring of its own.
    pub threads: u32,
    /// Seed of every random choice: the same seed asks the same offsets in the same order.
    pub seed: u64,
}

/// How long a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLength {
    /// Ran before anything is counted.
    pub warm_up: Duration,
    /// The measured time, at most.
    pub duration: Duration,
    /// Ends the run earlier once that many I/Os completed.
    pub ios_max: Option<u64>,
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

    /// The same with that share of writes.
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
    /// One thread, one outstanding, seed 0.
    fn from(shape: Shape) -> Workload {
        Workload { shape, outstanding: 1, threads: 1, seed: 0 }
    }
}

impl Workload {
    /// Most I/Os one thread keeps outstanding.
    pub const OUTSTANDING_MAX: u32 = 4096;
    /// Most threads of one run.
    pub const THREADS_MAX: u32 = 1024;
    /// Largest I/O.
    pub const BLOCK_BYTES_MAX: u32 = 16 << 20;

    /// The same with `outstanding` I/Os a thread.
    #[must_use]
    pub const fn with_outstanding(self, outstanding: u32) -> Workload {
        Workload { outstanding, ..self }
    }

    /// I/Os outstanding over all threads.
    pub const fn outstanding_total(&self) -> u32 {
        self.outstanding * self.threads
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
        Ok(())
    }
}

/// "random read 8 KiB", "sequential write 4 KiB write-through", "random 70/30 8 KiB", "append 4 KiB and sync".
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Shape::log_append(self.block_bytes) {
            return write!(f, "append {} and sync", format_bytes(u64::from(self.block_bytes)));
        }
        let pattern = match self.pattern {
            Pattern::Random => "random",
            Pattern::Sequential => "sequential",
        };
        write!(f, "{pattern} ")?;
        match self.write_percent {
            0 => write!(f, "read")?,
            100 => write!(f, "write")?,
            writes => write!(f, "{}/{writes}", 100 - writes)?,
        }
        write!(f, " {}", format_bytes(u64::from(self.block_bytes)))?;
        match self.durability {
            Durability::Cached => {}
            Durability::WriteThrough => write!(f, " write-through")?,
            Durability::Synced => write!(f, " synced")?,
        }
        if self.caching == Caching::Buffered {
            write!(f, " buffered")?;
        }
        Ok(())
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
        assert_eq!(read.with_outstanding(0).validate(), Err(InvalidWorkload::Outstanding(0)));
        let none = Workload { threads: 0, ..read };
        assert_eq!(none.validate(), Err(InvalidWorkload::Threads(0)));
    }
}
