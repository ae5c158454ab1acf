use crate::{LatencyHistogram, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How I/Os were handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// io_uring, one ring a thread.
    IoUring,
    /// Blocking pread and pwrite, a thread for each outstanding I/O.
    Blocking,
}

/// One direction (reads or writes) of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// I/Os that completed, short and failed ones not among them.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Submission to completion of each.
    pub latency: LatencyHistogram,
    /// Failed I/Os by errno; a short transfer counts as `EIO`.
    pub errors: BTreeMap<i32, u64>,
}

/// One second of a run (the last one may be shorter).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// When it ends, nanoseconds since the measured part began.
    pub end_ns: u64,
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Summed latency of those reads.
    pub read_stall_ns: u64,
    /// Longest of them.
    pub read_ns_max: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Summed latency of those writes.
    pub write_stall_ns: u64,
    /// Longest of them.
    pub write_ns_max: u64,
}

/// How busy one core was during the measured part, in percent of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreUse {
    /// The kernel's number of the core.
    pub core: u32,
    /// In programs.
    pub user_percent: f64,
    /// In the kernel, interrupts included.
    pub kernel_percent: f64,
    /// Waiting with nothing to run.
    pub idle_percent: f64,
}

/// What one thread did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadShare {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// CPU time the thread used, nanoseconds.
    pub cpu_ns: u64,
}

/// What a run gave.
///
/// An I/O counts if it *completes* in the measured part, with its full latency from submission, also
/// where it was submitted during warm-up: the rate is then the flow across a line, unbiased however long
/// one I/O takes, and Little's law holds between count, latency and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// What was asked.
    pub workload: Workload,
    /// Of which target.
    pub target: String,
    /// How.
    pub backend: Backend,
    /// When the measured part began, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// How long it lasted.
    pub elapsed_ns: u64,
    /// Ended by the user before its time; what is here was measured until then.
    pub interrupted: bool,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// The course of the run.
    pub seconds: Vec<Second>,
    /// CPU use of the whole machine.
    pub cores: Vec<CoreUse>,
    /// Shares of the threads.
    pub threads: Vec<ThreadShare>,
}

impl Direction {
    /// I/Os that failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Adds another thread's part.
    pub fn merge(&mut self, other: &Direction) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
        for (errno, count) in &other.errors {
            *self.errors.entry(*errno).or_default() += count;
        }
    }
}

impl Second {
    /// Adds another thread's same second.
    pub fn merge(&mut self, other: &Second) {
        self.end_ns = self.end_ns.max(other.end_ns);
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.read_stall_ns += other.read_stall_ns;
        self.read_ns_max = self.read_ns_max.max(other.read_ns_max);
        self.writes += other.writes;
        self.write_bytes += other.write_bytes;
        self.write_stall_ns += other.write_stall_ns;
        self.write_ns_max = self.write_ns_max.max(other.write_ns_max);
    }
}

impl RunResult {
    /// I/Os completed, reads and writes.
    pub fn ios(&self) -> u64 {
        self.read.count.saturating_add(self.write.count)
    }

    /// I/Os that failed.
    pub fn failed(&self) -> u64 {
        self.read.failed().saturating_add(self.write.failed())
    }

    /// Measured seconds.
    pub fn elapsed_s(&self) -> f64 {
        self.elapsed_ns as f64 / 1e9
    }

    /// I/Os a second.
    pub fn iops(&self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.ios() as f64 / self.elapsed_s() }
    }

    /// MiB a second.
    pub fn mib_per_s(&self) -> f64 {
        if self.elapsed_ns == 0 {
            return 0.0;
        }
        self.read.bytes.saturating_add(self.write.bytes) as f64 / self.elapsed_s() / (1024.0 * 1024.0)
    }

    /// Latencies of reads and writes together.
    pub fn latency(&self) -> LatencyHistogram {
        let mut both = self.read.latency.clone();
        both.merge(&self.write.latency);
        both
    }

    /// Mean outstanding I/Os really reached, by Little's law: IOPS x mean latency.
    pub fn outstanding(&self) -> f64 {
        if self.elapsed_ns == 0 {
            return 0.0;
        }
        (self.read.latency.sum_ns() as f64 + self.write.latency.sum_ns() as f64) / self.elapsed_ns as f64
    }

    /// CPU time of the load threads for each I/O, nanoseconds; `None` without I/Os.
    pub fn cpu_ns_per_io(&self) -> Option<f64> {
        let cpu_ns: f64 = self.threads.iter().map(|thread| thread.cpu_ns as f64).sum();
        (self.ios() > 0).then(|| cpu_ns / self.ios() as f64)
    }

    /// The busiest load thread's share of a core, 0 to 1: near 1 the client, not the storage, may be the limit.
    pub fn thread_busy_max(&self) -> f64 {
        let busiest = self.threads.iter().map(|thread| thread.cpu_ns).max().unwrap_or(0);
        if self.elapsed_ns == 0 { 0.0 } else { busiest as f64 / self.elapsed_ns as f64 }
    }
}
