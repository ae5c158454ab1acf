use crate::latency_figures::{Moments, reported_percentile};
use crate::{DeviceFacts, Latencies, LatencyHistogram, Layout, Pool, Slice, Tally, TargetChange, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How I/Os were handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// io_uring, one ring a thread.
    IoUring,
    /// Blocking pread and pwrite, a thread for each outstanding I/O.
    Blocking,
    /// Copies from and to a mapping, a thread for each outstanding I/O.
    Mapped,
    /// Another tool ran the workload: `tool` names it.
    Foreign,
}

/// One direction (reads or writes) of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "IoTotals"))]
pub struct Direction {
    /// I/Os that completed, short and failed ones not among them.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Submission to completion of each.
    pub latency: LatencyHistogram,
    /// Percentiles as another tool reported them, (percent, nanoseconds), rising; 0 and 100 are the shortest and
    /// the longest. Empty for runs of Headroom, which have a histogram. Where the other tool reported no
    /// histogram, `latency` is empty: see [`LatencyFigures`](crate::LatencyFigures).
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub percentiles: Vec<(f64, u64)>,
    /// Mean latency as another tool reported it, nanoseconds.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub mean_ns: Option<f64>,
    /// Standard deviation of the latency as another tool reported it, nanoseconds.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub deviation_ns: Option<f64>,
    /// Failed I/Os by errno; a short transfer counts as `EIO`, none at all as `ENODATA`.
    pub errors: BTreeMap<i32, u64>,
}

/// How busy one core was during the measured part, in percent of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// I/O of one thread for a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadShare {
    /// Reads.
    pub read: Tally,
    /// Writes.
    pub write: Tally,
    /// CPU time the thread used, nanoseconds; of a thread that serves several workloads, its share by I/Os.
    /// 0 where another tool did not report it.
    pub cpu_ns: u64,
    /// The thread's own series, where requested.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub series: Vec<Slice>,
}

/// Waits of an open loop's users: from the time an I/O was meant to start to its completion. A stall of the
/// storage delays all that should have started meanwhile, and shows here in full; latency from submission
/// hides it ("coordinated omission", G. Tene 2013).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Response {
    /// Reads, from their intended start.
    pub read: LatencyHistogram,
    /// Writes, from their intended start.
    pub write: LatencyHistogram,
    /// I/Os whose time came within the measured part but that had not completed at its end.
    pub waiting: u64,
    /// The longest any of those had waited by then.
    pub waiting_ns_max: u64,
    /// Longest that an I/O was handed over late although the storage had room for it: the generator's own
    /// delay. Where it is not small beside the latencies, they are the generator's.
    pub late_ns_max: u64,
}

impl Response {
    /// Reads and writes together.
    pub fn total(&self) -> LatencyHistogram {
        let mut both = self.read.clone();
        both.merge(&self.write);
        both
    }
}

/// Result of reading the written blocks again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verification {
    /// Blocks read and checked.
    pub blocks: u64,
    /// Blocks that were not as written.
    pub bad: u64,
    /// The first of them.
    pub first_bad: Vec<BadBlock>,
}

/// A block that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BadBlock {
    /// Where.
    pub offset_bytes: u64,
    /// Content found: "a block written for offset 8192", "all zeros", "an older write (3, not 5)".
    pub found: String,
}

/// The result of a run.
///
/// An I/O counts if it *completes* in the measured part, with its full latency from submission, also
/// where it was submitted during warm-up: the rate is then the flow across a line, unbiased however long
/// one I/O takes, and Little's law holds between count, latency and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResult {
    /// The requested load.
    pub workload: Workload,
    /// A recorded trace was replayed: its sizes, kinds and offsets, in place of the workload's.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub replayed: bool,
    /// Another tool reported counts and no settings: the size and the share of writes of `workload` follow from the counts, its
    /// pattern, caching, threads and outstanding I/Os are unknown.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub settings_unreported: bool,
    /// The target.
    pub target: String,
    /// How.
    pub backend: Backend,
    /// The other tool and its version, where the result was imported: "fio-3.33", "diskspd 2.2".
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub tool: Option<String>,
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
    /// Percentiles of reads and writes together as another tool reported them, in the form of [`Direction::percentiles`].
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub total_percentiles: Vec<(f64, u64)>,
    /// `fsync` and `fdatasync` calls, which move no bytes of their own.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub sync: Direction,
    /// Of an open loop: what its users waited.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub response: Option<Response>,
    /// Result of checking the written data.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub verification: Option<Verification>,
    /// Bytes of the target that could be used.
    #[serde(default)]
    pub target_bytes: u64,
    /// Width of a row of the series, nanoseconds.
    #[serde(default = "one_second_ns")]
    pub slice_ns: u64,
    /// The run over time: a row each `slice_ns`; the last one may be shorter.
    #[serde(default)]
    pub series: Vec<Slice>,
    /// CPU use of the whole machine.
    pub cores: Vec<CoreUse>,
    /// Shares of the threads.
    pub threads: Vec<ThreadShare>,
    /// The threads that it had in common with the other workloads of its phase.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub pool: Option<Pool>,
    /// How the target's members make one range of bytes, where there are more than one.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub layout: Option<Layout>,
    /// I/O of each member, in their order. Empty where the target is one file or device.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub members: Vec<MemberShare>,
    /// Time of the measured part in which this program was stopped: by a signal, a debugger, a frozen control group, or a hypervisor
    /// that paused the machine. `elapsed_ns` contains it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub stopped_ns: u64,
    /// Time that the machine was suspended in the measured part. `elapsed_ns` does not contain it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub suspended_ns: u64,
    /// Changes of the target by other programs during the run.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub target_changes: Vec<TargetChange>,
    /// The device chain below the target, top first. Empty where it is unknown.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub devices: Vec<DeviceFacts>,
}

/// I/O of one member of a layout. An I/O that crosses from one member to another counts once on each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberShare {
    /// File or device.
    pub path: String,
    /// Its bytes that the layout uses.
    pub bytes: u64,
    /// Reads of it; the latency is that of its own part.
    pub read: Tally,
    /// Writes to it.
    pub write: Tally,
    /// Parts that failed.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub failed: u64,
}

impl Direction {
    /// I/Os that failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The latency that `percent` of the I/Os do not exceed: as another tool reported it, or by the histogram;
    /// `None` where neither says.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        reported_percentile(&self.percentiles, percent).or_else(|| self.latency.percentile_ns(percent))
    }

    /// Adds another thread's part. Of the percentiles that another tool reported only the ends can be merged.
    pub fn merge(&mut self, other: &Direction) {
        self.percentiles = merged_ends(self, other);
        let moments = |of: &Direction| Moments::new(of.mean_ns, of.deviation_ns);
        let both = match (self.count, other.count) {
            (0, _) => moments(other),
            (_, 0) => moments(self),
            (ours, theirs) => moments(self).pooled(ours as f64, &moments(other), theirs as f64),
        };
        (self.mean_ns, self.deviation_ns) = (both.mean_ns, both.deviation_ns);
        self.count += other.count;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
        for (errno, count) in &other.errors {
            *self.errors.entry(*errno).or_default() += count;
        }
    }
}

/// The shortest and the longest of both, where both are known.
fn merged_ends(one: &Direction, other: &Direction) -> Vec<(f64, u64)> {
    match (one.count, other.count) {
        (0, _) => other.percentiles.clone(),
        (_, 0) => one.percentiles.clone(),
        _ => {
            let end = |percent: f64, pick: fn(u64, u64) -> u64| {
                let reported = |direction: &Direction| reported_percentile(&direction.percentiles, percent);
                Some((percent, pick(reported(one)?, reported(other)?)))
            };
            end(0.0, u64::min).into_iter().chain(end(100.0, u64::max)).collect()
        }
    }
}

fn one_second_ns() -> u64 {
    1_000_000_000
}

impl MemberShare {
    /// Reads and writes.
    pub fn total(&self) -> Tally {
        self.read.plus(&self.write)
    }
}

impl ThreadShare {
    /// Reads and writes.
    pub fn total(&self) -> Tally {
        self.read.plus(&self.write)
    }
}

impl RunResult {
    /// A program that was stopped for this share of a run did not load the storage as requested.
    pub const STOPPED_SHARE: f64 = 0.02;

    /// An empty result, to be filled.
    pub fn empty(workload: Workload, target: String) -> RunResult {
        RunResult {
            workload,
            replayed: false,
            settings_unreported: false,
            target,
            backend: Backend::IoUring,
            tool: None,
            started_unix_ns: 0,
            elapsed_ns: 0,
            interrupted: false,
            read: Direction::default(),
            write: Direction::default(),
            total_percentiles: Vec::new(),
            sync: Direction::default(),
            response: None,
            verification: None,
            target_bytes: 0,
            slice_ns: one_second_ns(),
            series: Vec::new(),
            cores: Vec::new(),
            threads: Vec::new(),
            pool: None,
            layout: None,
            members: Vec::new(),
            stopped_ns: 0,
            suspended_ns: 0,
            target_changes: Vec::new(),
            devices: Vec::new(),
        }
    }

    /// "random read 8 KiB"; "read 8 KiB, pattern and caching unknown" where they were not reported.
    pub fn shape_words(&self) -> String {
        if self.replayed {
            return "a recorded trace".into();
        }
        if !self.settings_unreported {
            return self.workload.shape.to_string();
        }
        let operations = match self.workload.shape.write_percent {
            0 => "read".to_owned(),
            100 => "write".to_owned(),
            writes => format!("{}/{writes}", 100_u8.saturating_sub(writes)),
        };
        let size = crate::format_bytes(u64::from(self.workload.shape.block_bytes));
        format!("{operations} {size}, pattern and caching unknown")
    }

    /// Whether the program was stopped, or the machine suspended, for longer than allows the figures to be those of the
    /// requested load.
    pub fn was_stopped(&self) -> bool {
        let (stopped, elapsed) = (self.stopped_ns as f64, self.elapsed_ns as f64);
        self.suspended_ns > 0 || (stopped > 0.0 && stopped >= RunResult::STOPPED_SHARE * elapsed)
    }

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

    /// Requested outstanding I/Os over all threads: this workload's own, or those that the workloads of
    /// a pool share.
    pub fn outstanding_requested(&self) -> u32 {
        match self.pool {
            Some(pool) => pool.threads.saturating_mul(pool.outstanding.unwrap_or(self.workload.outstanding)),
            None => self.workload.outstanding_total(),
        }
    }

    /// Whether other workloads may have had some of them.
    pub fn shares_outstanding(&self) -> bool {
        self.pool.is_some_and(|pool| pool.outstanding.is_some())
    }

    /// Mean outstanding I/Os really reached, by Little's law: IOPS x mean latency.
    pub fn outstanding(&self) -> f64 {
        if self.elapsed_ns == 0 {
            return 0.0;
        }
        self.stall_ns() / self.elapsed_ns as f64
    }

    /// [`Self::outstanding`]; `None` where another tool reported no latency, from which it follows.
    pub fn outstanding_known(&self) -> Option<f64> {
        (self.ios() == 0 || self.mean_latency_ns().is_some()).then(|| self.outstanding())
    }

    /// Mean latency of reads and writes; `None` without I/Os, and where another tool did not report it.
    pub fn mean_latency_ns(&self) -> Option<f64> {
        self.total_latency().mean_ns()
    }

    /// The sums that the series (or the threads, without one) keep.
    pub fn tally(&self) -> Tally {
        let slices = self.series.iter().map(Slice::total);
        let threads = self.threads.iter().map(ThreadShare::total);
        let mut sum = Tally::default();
        if self.series.is_empty() {
            threads.for_each(|share| sum.merge(&share));
        } else {
            slices.for_each(|slice| sum.merge(&slice));
        }
        sum
    }

    /// The latencies of rows `first..=last` of the series, and their exact tallies.
    pub fn part(&self, first: usize, last: usize) -> (Tally, LatencyHistogram) {
        let (mut tally, mut latencies) = (Tally::default(), Latencies::default());
        for slice in self.series.iter().take(last.saturating_add(1)).skip(first) {
            tally.merge(&slice.total());
            latencies.merge(&slice.read_latencies);
            latencies.merge(&slice.write_latencies);
        }
        (tally, latencies.histogram())
    }

    /// CPU time of the load threads for each I/O, nanoseconds; `None` without I/Os, and where another tool
    /// did not report it.
    pub fn cpu_ns_per_io(&self) -> Option<f64> {
        let cpu_ns: f64 = self.threads.iter().map(|thread| thread.cpu_ns as f64).sum();
        (self.ios() > 0 && cpu_ns > 0.0).then(|| cpu_ns / self.ios() as f64)
    }

    /// The busiest load thread's share of a core, 0 to 1: near 1 the client, not the storage, may be the limit.
    pub fn thread_busy_max(&self) -> f64 {
        let busiest = self.threads.iter().map(|thread| thread.cpu_ns).max().unwrap_or(0);
        if self.elapsed_ns == 0 { 0.0 } else { busiest as f64 / self.elapsed_ns as f64 }
    }
}
