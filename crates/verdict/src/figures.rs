use crate::Moment;
use capability::{Capability, Curve, Flow, Side, Utilisation};
use filestats::{Delta, Figure, FileInterval, FileKind, Ops};
use serde::{Deserialize, Serialize};
use workload::{Pattern, Shape};

/// I/Os this large on average are taken for a sequential stream: databases read at random in pages, the
/// kernel's read-ahead and bulk writers go from 128 KiB up.
const SEQUENTIAL_BYTES_MIN: f64 = 128.0 * 1024.0;

/// A sync after more written bytes than this is a checkpoint or a bulk load, not a commit that a log write can
/// foretell.
const COMMIT_BYTES_MAX: f64 = 256.0 * 1024.0;

/// Reads are compared with curves of no more than this share of writes, in percent.
const READS_CURVE_WRITES_MAX: u8 = 30;

/// A read faster than this share of the storage's own median at rest cannot have reached it.
const CACHE_HIT_SHARE: f64 = 0.5;

/// Where the demand lies on a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The curve it is compared with.
    pub curve: Shape,
    /// Mean outstanding I/Os of the demand (Little 1961).
    pub outstanding: f64,
    /// I/Os a second that reached the storage.
    pub iops: f64,
    /// Mean latency of those, nanoseconds.
    pub latency_ns: f64,
    /// What the curve expects there, nanoseconds.
    pub expected_ns: f64,
}

/// Everything the decision table asks about, computed once from a stretch of moments.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Seconds with known intervals.
    pub elapsed_s: f64,
    /// Share of the moments in which the database's files were known, 0 to 1.
    pub coverage: f64,
    /// The database's reads, writes and syncs.
    pub database: Option<Delta>,
    /// The device's, everybody's I/O included.
    pub device: Option<Delta>,
    /// Reads that took long enough to have come from the storage.
    pub storage_reads: Ops,
    /// Log writes and the syncs that make them durable: what one commit waits for.
    pub commits: Ops,
    /// Mean I/Os the database has outstanding at the storage: slow reads, writes and syncs.
    pub outstanding: f64,
    /// Utilisation; `None` without capability or without I/O.
    pub utilisation: Option<Utilisation>,
    /// The demand of reads on the curve; `None` where nearly no read reached storage.
    pub reads_place: Option<Place>,
    /// The device's own view of reads: latency over what the curve expects at the device's N.
    pub device_read_ratio: Option<f64>,
    /// The same of writes.
    pub device_write_ratio: Option<f64>,
    /// What one commit waits, over what the measured append and sync takes.
    pub commit_ratio: Option<f64>,
}

/// Latencies of fewer I/Os than this are not compared with anything.
pub(crate) const IOS_TO_COMPARE: u64 = 30;

impl Figures {
    /// The figures of a stretch of moments.
    pub fn of(moments: &[Moment], capability: Option<&Capability>, page_cache: bool) -> Figures {
        let known = moments.iter().filter(|moment| moment.database().is_some()).count();
        let database = sum(moments.iter().filter_map(Moment::database));
        let device = sum(moments.iter().filter_map(|moment| moment.device().cloned()));
        let elapsed_s = database.as_ref().map_or(0.0, Delta::elapsed_s);
        let floor_ns = capability.and_then(resting_read_ns).filter(|_| page_cache);
        let storage_reads = database.as_ref().map_or(Ops::ZERO, |delta| reads_from_storage(delta, floor_ns));
        let commits = commits(moments);
        let mut figures = Figures {
            elapsed_s,
            coverage: if moments.is_empty() { 0.0 } else { known as f64 / moments.len() as f64 },
            storage_reads,
            commits,
            outstanding: 0.0,
            utilisation: None,
            reads_place: None,
            device_read_ratio: None,
            device_write_ratio: None,
            commit_ratio: None,
            database,
            device,
        };
        figures.outstanding = figures.database_outstanding();
        if let Some(capability) = capability {
            let met: Vec<Met> =
                moments.iter().filter_map(|moment| Met::in_moment(moment, floor_ns)).collect();
            figures.place(capability, &met);
        }
        figures
    }

    fn place(&mut self, capability: &Capability, met: &[Met]) {
        self.utilisation = self.flows().and_then(|flows| utilisation(capability, &flows));
        let reads = self.storage_reads;
        if reads.count >= IOS_TO_COMPARE
            && let (Some(latency_ns), Some(bytes)) =
                (reads.latency_ns().known(), reads.average_bytes().known())
            && self.elapsed_s > 0.0
        {
            // Among many writes, reads are still best foretold by a curve that reads.
            let shape = shape(bytes, self.write_percent().min(READS_CURVE_WRITES_MAX));
            let stall_ns = |device: &Delta| device.counters.transfers().stall_ns.known().unwrap_or(0) as f64;
            let device =
                self.device.as_ref().map_or(0.0, |device| stall_ns(device) / device.elapsed_ns as f64);
            self.reads_place = capability.nearest_curve(&shape).and_then(|curve| {
                Some(Place {
                    curve: curve.workload,
                    // What queues at the storage is everybody's I/O, or at least the database's own.
                    outstanding: self.outstanding.max(device),
                    iops: reads.count as f64 / self.elapsed_s,
                    latency_ns,
                    expected_ns: expected_ns(capability, &shape, met, |met| met.reads)?,
                })
            });
        }
        if let Some(device) = &self.device {
            let (read, write) = (device.counters.read, device.counters.write);
            let expected = |ops: Ops, write_percent: u8, count: fn(&Met) -> u64| {
                expected_ns(capability, &shape(ops.average_bytes().known()?, write_percent), met, count)
            };
            let ratio = |ops: Ops, expected: Option<f64>| {
                (ops.count >= IOS_TO_COMPARE).then(|| Some(ops.latency_ns().known()? / expected?))?
            };
            // Writes that a commit waits for flush the device's cache: they take as long as a log write.
            let durable = write.average_bytes().known().filter(|_| self.commits.count >= IOS_TO_COMPARE);
            let durable_ns = durable.and_then(|bytes| log_write_ns(capability, bytes)).unwrap_or(0.0);
            let write_ns = expected(write, 100, |met| met.device_writes).map(|ns| ns.max(durable_ns));
            self.device_read_ratio = ratio(read, expected(read, 0, |met| met.device_reads));
            self.device_write_ratio = ratio(write, write_ns);
        }
        self.commit_ratio = self.commit_ns().and_then(|commit_ns| {
            let bytes = self.commits.average_bytes().known()?;
            let expected = expected_commit_ns(capability, bytes)?;
            (self.commits.count >= IOS_TO_COMPARE).then_some(commit_ns / expected)
        });
    }

    /// What reached the storage, as flows for the cost model: the device's own counts where known (they
    /// include everybody), else the database's.
    fn flows(&self) -> Option<Vec<Flow>> {
        let delta = self.device.as_ref().or(self.database.as_ref())?;
        let reads = if self.device.is_some() { delta.counters.read } else { self.storage_reads };
        let flow = |ops: Ops, side| {
            let bytes = ops.average_bytes().known()?;
            let pattern = if bytes >= SEQUENTIAL_BYTES_MIN { Pattern::Sequential } else { Pattern::Random };
            Some(Flow { side, pattern, per_second: delta.per_second(&ops), bytes })
        };
        let flows = [flow(reads, Side::Read), flow(delta.counters.write, Side::Write)];
        Some(flows.into_iter().flatten().collect())
    }

    /// Share of writes among what reaches the storage, in percent.
    fn write_percent(&self) -> u8 {
        let (reads, writes) = match (&self.device, &self.database) {
            (Some(device), _) => (device.counters.read.count, device.counters.write.count),
            (None, Some(database)) => (self.storage_reads.count, database.counters.write.count),
            (None, None) => (0, 0),
        };
        let both = reads.saturating_add(writes);
        if both == 0 { 0 } else { (writes as f64 / both as f64 * 100.0).round() as u8 }
    }

    fn database_outstanding(&self) -> f64 {
        let Some(database) = &self.database else { return 0.0 };
        let sync = database.counters.sync.known().and_then(|sync| sync.stall_ns.known()).unwrap_or(0);
        let write = database.counters.write.stall_ns.known().unwrap_or(0);
        let read = self.storage_reads.stall_ns.known().unwrap_or(0);
        (sync as f64 + write as f64 + read as f64) / database.elapsed_ns as f64
    }

    /// Share of the time in which a write or a sync was waited for (more than 1: several at once).
    pub fn commit_share(&self) -> f64 {
        let Some(database) = &self.database else { return 0.0 };
        let stall = self.commits.stall_ns.known().unwrap_or(0);
        stall as f64 / database.elapsed_ns as f64
    }

    /// Mean time of one commit's write and sync, nanoseconds.
    pub fn commit_ns(&self) -> Option<f64> {
        self.commits.latency_ns().known()
    }

    /// The database's mean read latency, cached reads included, nanoseconds.
    pub fn read_ns(&self) -> Option<f64> {
        self.database.as_ref()?.read_latency_ns().known()
    }

    /// I/Os a second that reached the device.
    pub fn device_iops(&self) -> Option<f64> {
        self.device.as_ref().map(Delta::iops)
    }
}

/// What the I/Os of one moment met at the storage.
struct Met {
    /// Reads of the database that reached it.
    reads: u64,
    /// Everybody's reads at the device.
    device_reads: u64,
    /// Everybody's writes at the device.
    device_writes: u64,
    /// Mean I/Os outstanding there while there were any: over all the time of the moment, a burst of
    /// write-back would seem to meet an idle device.
    outstanding: f64,
}

impl Met {
    fn in_moment(moment: &Moment, floor_ns: Option<u64>) -> Option<Met> {
        let database = moment.database()?;
        let reads = reads_from_storage(&database, floor_ns);
        let own = reads.stall_ns.known().unwrap_or(0) as f64 / database.elapsed_ns as f64;
        let device = moment.device();
        let others = device.and_then(|device| {
            let transfers = device.counters.transfers().stall_ns.known()?;
            let mean = transfers as f64 / device.elapsed_ns as f64;
            Some(device.outstanding_while_busy().known().unwrap_or(mean))
        });
        Some(Met {
            reads: reads.count,
            device_reads: device.map_or(0, |device| device.counters.read.count),
            device_writes: device.map_or(0, |device| device.counters.write.count),
            outstanding: own.max(others.unwrap_or(0.0)),
        })
    }
}

/// The latency that the curves expect of I/Os of a shape, each at the concurrency of its own moment: the mean
/// over the moments, weighted by how many of the I/Os fell into each.
fn expected_ns(
    capability: &Capability,
    shape: &Shape,
    met: &[Met],
    count: impl Fn(&Met) -> u64,
) -> Option<f64> {
    let (mut ios, mut sum_ns) = (0.0, 0.0);
    for moment in met.iter().filter(|moment| count(moment) > 0) {
        let weight = count(moment) as f64;
        sum_ns += weight * capability.expected_latency_ns(shape, moment.outstanding)?;
        ios += weight;
    }
    (ios > 0.0).then(|| sum_ns / ios)
}

/// The measured time of a commit of that size, nanoseconds: appended and synced on the file system, or
/// where that was not measured the bare log write.
pub(crate) fn expected_commit_ns(capability: &Capability, bytes: f64) -> Option<f64> {
    // Of a larger write and its sync, the two measured sizes say nothing.
    if bytes > COMMIT_BYTES_MAX {
        return None;
    }
    let of = |shape: Shape| Some((f64::from(shape.block_bytes), capability.curve(&shape)?.latency_ns_min()?));
    let line = |small: (f64, f64), large: (f64, f64)| {
        let per_byte = ((large.1 - small.1) / (large.0 - small.0)).max(0.0);
        small.1 + per_byte * (bytes - small.0).max(0.0)
    };
    let appended = of(Shape::log_append(4096)).zip(of(Shape::log_append(61_440)));
    appended.map(|(small, large)| line(small, large)).or_else(|| log_write_ns(capability, bytes))
}

/// The curves' time for a log write of that size, nanoseconds: the nearer of the measured sizes.
fn log_write_ns(capability: &Capability, bytes: f64) -> Option<f64> {
    let bytes = bytes.clamp(512.0, f64::from(workload::Workload::BLOCK_BYTES_MAX)) as u32;
    capability.nearest_curve(&Shape::log_write(bytes))?.latency_ns_min()
}

fn sum(deltas: impl Iterator<Item = Delta>) -> Option<Delta> {
    deltas.reduce(|sum, next| sum.followed_by(&next))
}

fn shape(bytes: f64, write_percent: u8) -> Shape {
    let pattern = if bytes >= SEQUENTIAL_BYTES_MIN { Pattern::Sequential } else { Pattern::Random };
    let block_bytes = bytes.clamp(512.0, f64::from(workload::Workload::BLOCK_BYTES_MAX)) as u32;
    Shape { pattern, write_percent, ..Shape::random_read(block_bytes) }
}

/// Median of a small read at rest: the lowest of all curves that read.
fn resting_read_ns(capability: &Capability) -> Option<u64> {
    let reads = capability.curves.iter().filter(|curve| curve.workload.write_percent == 0);
    reads.flat_map(|curve| curve.points.iter().map(|point| point.latency_ns_p50)).min()
}

/// The reads that must have come from the storage. With a histogram, those not far below the storage's own
/// latency at rest; without one (or without a page cache), all of them.
fn reads_from_storage(delta: &Delta, floor_ns: Option<u64>) -> Ops {
    let all = delta.counters.read;
    let (Some(floor_ns), Some(latencies)) = (floor_ns, &delta.latencies) else { return all };
    let (count, stall_ns) = latencies.read.at_least((floor_ns as f64 * CACHE_HIT_SHARE) as u64);
    let count = count.min(all.count);
    let bytes = if all.count == 0 {
        0
    } else {
        (u128::from(all.bytes) * u128::from(count) / u128::from(all.count)) as u64
    };
    // Bucket middles may add up to a little more than the exact sum.
    let stall_ns = all.stall_ns.map(|exact| exact.min(stall_ns as u64));
    Ops { count, bytes, stall_ns }
}

/// One operation for each sync of the files that commits wait for, with the writes before it.
fn commits(moments: &[Moment]) -> Ops {
    let files = || moments.iter().flat_map(|moment| &moment.files);
    let syncs = |file: &&FileInterval| {
        let sync = file.interval.known().and_then(|delta| delta.counters.sync.known());
        sync.is_some_and(|sync| sync.count > 0)
    };
    // Where there is a log, commits wait for it alone, and the other files are synced by checkpoints.
    let has_log = files().filter(syncs).any(|file| file.file.kind == FileKind::Log);
    let waited_for = |kind: FileKind| match has_log {
        true => kind == FileKind::Log,
        false => matches!(kind, FileKind::Journal | FileKind::Data),
    };
    let mut sum = Ops::ZERO;
    for delta in files().filter(|file| waited_for(file.file.kind)).filter_map(|file| file.interval.known()) {
        let Figure::Known(sync) = delta.counters.sync else { continue };
        if sync.count == 0 {
            continue;
        }
        let write = delta.counters.write;
        sum = sum.plus(Ops { count: sync.count, bytes: write.bytes, ..sync }).plus(Ops {
            count: 0,
            bytes: 0,
            ..write
        });
    }
    sum
}

fn utilisation(capability: &Capability, flows: &[Flow]) -> Option<Utilisation> {
    if flows.is_empty() {
        return None;
    }
    if let Some(model) = &capability.cost_model {
        return Some(model.utilisation(flows));
    }
    // Without writes measured there is no model: the busiest flow against its nearest curve.
    let share = |flow: &Flow| {
        let writes = if flow.side == Side::Write { 100 } else { 0 };
        let curve: &Curve = capability.nearest_curve(&shape(flow.bytes, writes))?;
        (curve.workload.write_percent == writes).then(|| Some(flow.per_second / curve.iops_max()?))?
    };
    // What was not measured (writes, of a read-only capability) is left out; the verdict says so as a doubt.
    let value = flows.iter().filter_map(share).reduce(|sum, more| sum + more)?;
    Some(Utilisation { value, binding: capability::Binding::Operations })
}
