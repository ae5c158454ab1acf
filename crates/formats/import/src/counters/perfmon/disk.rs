use filestats::{Figure, Reason};
use serde::Serialize;

/// A counter log's disks.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskLog {
    /// Each physical and logical disk.
    pub disks: Vec<Disk>,
}

/// One disk over the time of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// The machine; empty where the log does not name it.
    pub host: String,
    /// "PhysicalDisk" or "LogicalDisk". Both count the same I/O: they are never added up.
    pub object: String,
    /// "1 D:", "D:\mount".
    pub name: String,
    /// In the order of the log. The first one has only what is sampled.
    pub intervals: Vec<DiskInterval>,
}

/// Figures that PerfMon printed of one interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DiskInterval {
    /// When it ended, nanoseconds since 1970.
    pub ended_unix_ns: u64,
    /// How long it was.
    pub elapsed_ns: Figure<u64>,
    /// Reads.
    pub read: DiskOps,
    /// Writes.
    pub write: DiskOps,
    /// Both, as PerfMon counts them together; [`DiskInterval::iops`] is from `read` and `write` where it can be.
    pub transfer: DiskOps,
    /// Current Disk Queue Length: at the instant of the sample only.
    pub queue_sampled: Figure<f64>,
    /// Avg. Disk Queue Length: over the interval.
    pub queue_mean: Figure<f64>,
}

/// Rates and means of one kind of I/O.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DiskOps {
    /// Operations a second.
    pub per_second: Figure<f64>,
    /// Bytes a second.
    pub bytes_per_second: Figure<f64>,
    /// Mean time of one.
    pub latency_ns: Figure<f64>,
}

/// A disk over all intervals whose length is known, each weighed by its length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DiskTotals {
    /// Their summed length.
    pub elapsed_ns: u64,
    /// Number of intervals.
    pub intervals: usize,
    /// Number of further intervals, without a length or without rates.
    pub unknown_intervals: usize,
    /// Operations a second.
    pub iops: Figure<f64>,
    /// MiB a second.
    pub mib_per_s: Figure<f64>,
    /// Mean time of a read, of all reads.
    pub read_latency_ns: Figure<f64>,
    /// Mean time of a write, of all writes.
    pub write_latency_ns: Figure<f64>,
    /// Mean number of outstanding I/Os, by Little's law.
    pub outstanding: Figure<f64>,
    /// Mean of the sampled queue lengths: of instants, not of the time between them.
    pub queue_sampled: Figure<f64>,
    /// The largest of them.
    pub queue_sampled_max: Figure<f64>,
}

impl DiskOps {
    /// Mean number outstanding, N = rate x latency (Little 1961).
    fn outstanding(&self) -> Figure<f64> {
        match self.per_second {
            Figure::Known(0.0) => Figure::Known(0.0),
            rate => rate.zip(self.latency_ns, |rate, latency_ns| rate * latency_ns / 1e9),
        }
    }
}

/// The sum of both, or PerfMon's own figure for both together.
fn either(read: Figure<f64>, write: Figure<f64>, both: Figure<f64>) -> Figure<f64> {
    match read.zip(write, |read, write| read + write) {
        Figure::Unknown { .. } if both.known().is_some() => both,
        sum => sum,
    }
}

impl DiskInterval {
    /// Reads and writes a second.
    pub fn iops(&self) -> Figure<f64> {
        either(self.read.per_second, self.write.per_second, self.transfer.per_second)
    }

    /// MiB a second, both ways.
    pub fn mib_per_s(&self) -> Figure<f64> {
        let DiskInterval { read, write, transfer, .. } = self;
        either(read.bytes_per_second, write.bytes_per_second, transfer.bytes_per_second)
            .map(|bytes| bytes / (1024.0 * 1024.0))
    }

    /// Mean number of outstanding I/Os, N = rate x latency (Little 1961), from reads and writes separately where both are known.
    pub fn outstanding(&self) -> Figure<f64> {
        either(self.read.outstanding(), self.write.outstanding(), self.transfer.outstanding())
    }

    /// Mean bytes of a read or write.
    pub fn average_bytes(&self) -> Figure<f64> {
        match self.iops() {
            Figure::Known(0.0) => Figure::unknown(Reason::NoOperations),
            iops => self.mib_per_s().zip(iops, |mib, iops| mib * 1024.0 * 1024.0 / iops),
        }
    }

    /// Whether anything but a sampled instant is known of it.
    pub fn is_known(&self) -> bool {
        self.elapsed_ns.known().is_some() && self.iops().known().is_some()
    }
}

/// A sum of figures times weights.
#[derive(Default)]
struct Weighed {
    sum: f64,
    weight: f64,
}

impl Weighed {
    fn add(&mut self, figure: Figure<f64>, weight: f64) {
        if let Figure::Known(figure) = figure {
            self.sum += figure * weight;
            self.weight += weight;
        }
    }

    fn mean(&self, otherwise: Reason) -> Figure<f64> {
        if self.weight > 0.0 { Figure::Known(self.sum / self.weight) } else { Figure::unknown(otherwise) }
    }
}

impl Disk {
    /// All intervals together.
    pub fn totals(&self) -> DiskTotals {
        let mut elapsed_ns = 0_u64;
        let mut known = 0;
        let [mut iops, mut mib, mut read, mut write, mut outstanding] = <[Weighed; 5]>::default();
        let mut queue = Weighed::default();
        for interval in &self.intervals {
            queue.add(interval.queue_sampled, 1.0);
            let Some(ns) = interval.elapsed_ns.known().filter(|_| interval.is_known()) else { continue };
            known += 1;
            elapsed_ns = elapsed_ns.saturating_add(ns);
            let seconds = ns as f64 / 1e9;
            iops.add(interval.iops(), seconds);
            mib.add(interval.mib_per_s(), seconds);
            outstanding.add(interval.outstanding(), seconds);
            // A mean of operations is weighed by how many there were.
            for (kind, sum) in [(&interval.read, &mut read), (&interval.write, &mut write)] {
                if let Figure::Known(rate) = kind.per_second {
                    sum.add(kind.latency_ns, rate * seconds);
                }
            }
        }
        let queue_max =
            self.intervals.iter().filter_map(|interval| interval.queue_sampled.known()).reduce(f64::max);
        DiskTotals {
            elapsed_ns,
            intervals: known,
            unknown_intervals: self.intervals.len() - known,
            iops: iops.mean(Reason::NotCounted),
            mib_per_s: mib.mean(Reason::NotCounted),
            read_latency_ns: read.mean(Reason::NoOperations),
            write_latency_ns: write.mean(Reason::NoOperations),
            outstanding: outstanding.mean(Reason::NotCounted),
            queue_sampled: queue.mean(Reason::NotCounted),
            queue_sampled_max: queue_max.map_or(Figure::unknown(Reason::NotCounted), Figure::Known),
        }
    }
}
