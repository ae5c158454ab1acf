use crate::demand::{self, Untimed};
use crate::pressure::{caps_used, was_measured_under};
use crate::{CapUse, Moment};
use capability::{Capability, Curve, Flow, Side, Utilisation};
use filestats::{Delta, Ops};
use seen::{REST_BYTES_MAX, Rest, Seen};
use serde::{Deserialize, Serialize};
use workload::{CapKind, Pattern, Shape};

/// I/Os this large on average are taken for a sequential stream: databases read at random in pages, the
/// kernel's read-ahead and bulk writers go from 128 KiB up.
const SEQUENTIAL_BYTES_MIN: f64 = 128.0 * 1024.0;

/// A sync after more written bytes than this is a checkpoint or a bulk load, not a commit that a log write
/// predicts.
const COMMIT_BYTES_MAX: f64 = 256.0 * 1024.0;

/// Reads are compared with curves of no more than this share of writes, in percent.
const READS_CURVE_WRITES_MAX: u8 = 30;

/// Where the demand lies on a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// The curve it is compared with.
    pub curve: Shape,
    /// Mean outstanding I/Os of the demand (Little 1961).
    pub outstanding: f64,
    /// I/Os a second that reached the storage.
    pub iops: f64,
    /// Mean latency of those, nanoseconds.
    pub latency_ns: f64,
    /// Latency that the curve predicts there, nanoseconds.
    pub expected_ns: f64,
}

/// The figures that the decision table tests, computed once from a stretch of moments.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Seconds with known intervals.
    pub elapsed_s: f64,
    /// Share of the moments in which the database's files were known, 0 to 1.
    pub coverage: f64,
    /// The database's reads, writes and syncs.
    pub database: Option<Delta>,
    /// The device's: the I/O of all processes.
    pub device: Option<Delta>,
    /// Reads that came from the storage; their time is unknown where the database does not time their completion.
    pub storage_reads: Ops,
    /// Log writes and the syncs that make them durable: what one commit waits for.
    pub commits: Ops,
    /// The database does not time its log: a write and a flush of the device stand for a commit.
    pub commits_by_device: bool,
    /// Commits wait for writes that are durable by themselves, and for no sync.
    pub commits_through: bool,
    /// The database does not time its reads to their end: the device's latency stands for them.
    pub reads_by_device: bool,
    /// Mean I/Os the database has outstanding at the storage: slow reads, writes and syncs.
    pub outstanding: f64,
    /// I/Os that the database could time, and does not because its timing is off.
    pub(crate) untimed: Untimed,
    /// Counts of the limits on the database's processes.
    pub(crate) caps: Vec<CapUse>,
    /// Those of them under which the storage was measured: they are part of what it gives.
    pub(crate) storage_caps: Vec<CapUse>,
    /// Utilisation; `None` without capability or without I/O.
    pub utilisation: Option<Utilisation>,
    /// The demand of reads on the curve; `None` where nearly no read reached storage.
    pub reads_place: Option<Place>,
    /// The device's own view of reads: latency over what the curve expects at the device's N.
    pub device_read_ratio: Option<f64>,
    /// The device's own view of writes: latency over the curve's expectation at the device's N.
    pub device_write_ratio: Option<f64>,
    /// Latency of one commit over that of the measured append and sync; where none was measured, over the latency of commits
    /// seen at rest.
    pub commit_ratio: Option<f64>,
    /// Latency of commits seen at rest, nanoseconds, where they are compared with that.
    pub(crate) commit_rest_ns: Option<f64>,
}

/// Latencies of fewer I/Os than this are not compared with anything.
pub(crate) const IOS_TO_COMPARE: u64 = 30;

/// I/O of a database at its storage, a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StorageRates {
    /// Reads that came from the storage.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// Bytes of the reads.
    pub read_bytes: f64,
    /// Bytes of the writes.
    pub written_bytes: f64,
}

impl StorageRates {
    /// Reads and writes.
    pub fn iops(&self) -> f64 {
        self.reads + self.writes
    }
}

impl Figures {
    /// The figures of a stretch of moments.
    pub fn from_moments(moments: &[Moment], capability: Option<&Capability>) -> Figures {
        let known = moments.iter().filter(|moment| moment.database().is_some()).count();
        let known_deltas = moments.iter().filter_map(Moment::database);
        let database = known_deltas.reduce(|sum, next| sum.followed_by(&next));
        let floor_ns = capability.and_then(resting_read_ns);
        let reads = demand::reads(moments, floor_ns);
        let commits = demand::commits(moments);
        let elapsed_ns = database.as_ref().map_or(0, |delta| delta.elapsed_ns);
        let mut figures = Figures {
            elapsed_s: elapsed_ns as f64 / 1e9,
            coverage: if moments.is_empty() { 0.0 } else { known as f64 / moments.len() as f64 },
            storage_reads: reads.ops,
            commits: commits.ops,
            commits_by_device: commits.by_device,
            commits_through: commits.through,
            reads_by_device: false,
            outstanding: demand::outstanding(moments, &reads, &commits, elapsed_ns),
            untimed: demand::untimed_by_choice(moments),
            caps: caps_used(moments),
            storage_caps: Vec::new(),
            utilisation: None,
            reads_place: None,
            device_read_ratio: None,
            device_write_ratio: None,
            commit_ratio: None,
            commit_rest_ns: None,
            database,
            device: demand::device(moments),
        };
        if let Some(capability) = capability {
            let measured = figures.caps.iter().filter(|used| was_measured_under(capability, &used.cap));
            figures.storage_caps = measured.cloned().collect();
            let loads: Vec<MomentLoad> =
                moments.iter().filter_map(|moment| MomentLoad::in_moment(moment, floor_ns)).collect();
            figures.place(capability, &loads);
        }
        figures
    }

    fn place(&mut self, capability: &Capability, loads: &[MomentLoad]) {
        self.utilisation = self.flows().and_then(|flows| utilisation(capability, &flows));
        // A limit's count is exact, the model is fitted.
        self.utilisation = self.utilisation.map(|fitted| {
            let caps = self.storage_caps.iter();
            let counted = caps.map(|used| Utilisation { value: used.share(), binding: used.binding() });
            counted.fold(fitted, |most, next| if next.value > most.value { next } else { most })
        });
        let reads = self.storage_reads;
        let own_ns = reads.latency_ns().known();
        let device_ns = self.device.as_ref().and_then(|device| device.read_latency_ns().known());
        self.reads_by_device = own_ns.is_none() && device_ns.is_some();
        if reads.count >= IOS_TO_COMPARE
            && let (Some(latency_ns), Some(bytes)) = (own_ns.or(device_ns), reads.average_bytes().known())
            && self.elapsed_s > 0.0
        {
            // Among many writes, reads are still best predicted by a curve of reads.
            let shape = shape(bytes, self.write_percent().min(READS_CURVE_WRITES_MAX));
            let stall_ns = |device: &Delta| device.counters.transfers().stall_ns.known().unwrap_or(0) as f64;
            let device =
                self.device.as_ref().map_or(0.0, |device| stall_ns(device) / device.elapsed_ns as f64);
            self.reads_place = capability.nearest_curve(&shape).and_then(|curve| {
                Some(Place {
                    curve: curve.workload,
                    // The queue at the storage holds everybody's I/O, or at least the database's own.
                    outstanding: self.outstanding.max(device),
                    iops: reads.count as f64 / self.elapsed_s,
                    latency_ns,
                    expected_ns: expected_ns(capability, &shape, loads, |load| load.reads)?,
                })
            });
        }
        if let Some(device) = &self.device {
            let (read, write) = (device.counters.read, device.counters.write);
            let expected = |ops: Ops, write_percent: u8, count: fn(&MomentLoad) -> u64| {
                expected_ns(capability, &shape(ops.average_bytes().known()?, write_percent), loads, count)
            };
            let ratio = |ops: Ops, expected: Option<f64>| {
                (ops.count >= IOS_TO_COMPARE).then(|| Some(ops.latency_ns().known()? / expected?))?
            };
            // Writes that a commit waits for flush the device's cache: they take as long as a log write.
            let durable = write.average_bytes().known().filter(|_| self.commits.count >= IOS_TO_COMPARE);
            let durable_ns = durable.and_then(|bytes| log_write_ns(capability, bytes)).unwrap_or(0.0);
            let write_ns = expected(write, 100, |load| load.device_writes).map(|ns| ns.max(durable_ns));
            self.device_read_ratio = ratio(read, expected(read, 0, |load| load.device_reads));
            // Writes are not compared with curves of reads.
            let has_writes = capability.curves.iter().any(|curve| curve.workload.write_percent > 0);
            self.device_write_ratio = ratio(write, write_ns).filter(|_| has_writes);
        }
        self.commit_ratio = self.commit_ns().and_then(|commit_ns| {
            let bytes = self.commits.average_bytes().known()?;
            let expected = expected_commit_ns(capability, bytes)?;
            (self.commits.count >= IOS_TO_COMPARE).then_some(commit_ns / expected)
        });
    }

    /// Compares writes and commits with what they were seen to take at rest, where none were measured.
    pub(crate) fn compare_with_seen(&mut self, seen: &Seen) {
        let at_rest = |ops: Ops, rest: &Rest| {
            let is_alike = ops.average_bytes().known().is_some_and(|bytes| bytes <= REST_BYTES_MAX);
            rest.known_median_ns().filter(|_| is_alike && ops.count >= IOS_TO_COMPARE)
        };
        let times = |ops: Ops, rest_ns: Option<f64>| Some(ops.latency_ns().known()? / rest_ns?);
        if self.commit_ratio.is_none() && !self.commits_by_device {
            let rest_ns = at_rest(self.commits, &seen.commit_rest);
            self.commit_ratio = times(self.commits, rest_ns);
            self.commit_rest_ns = self.commit_ratio.and(rest_ns);
        }
        if self.device_write_ratio.is_none()
            && let Some(write) = self.device.as_ref().map(|device| device.counters.write)
        {
            self.device_write_ratio = times(write, at_rest(write, &seen.write_rest));
        }
    }

    /// I/O that reached the storage, as flows for the cost model: the device's own counts where known (they include
    /// everybody), else the database's. A limit under which the storage was measured counts more: before I/Os are merged,
    /// and flushes too.
    pub(crate) fn flows(&self) -> Option<Vec<Flow>> {
        let delta = self.device.as_ref().or(self.database.as_ref())?;
        let reads = if self.device.is_some() { delta.counters.read } else { self.storage_reads };
        let counted = |ops: Ops, kind: CapKind| {
            let used = self.storage_caps.iter().find(|used| used.cap.kind == kind);
            let count = used.map_or(0, |used| (used.per_second() * delta.elapsed_s()) as u64);
            Ops { count: ops.count.max(count), ..ops }
        };
        let flow = |ops: Ops, side| {
            let bytes = ops.average_bytes().known()?;
            let pattern = if bytes >= SEQUENTIAL_BYTES_MIN { Pattern::Sequential } else { Pattern::Random };
            Some(Flow { side, pattern, per_second: delta.per_second(&ops), bytes })
        };
        let reads = counted(reads, CapKind::ReadIops);
        let writes = counted(delta.counters.write, CapKind::WriteIops);
        let flows = [flow(reads, Side::Read), flow(writes, Side::Write)];
        Some(flows.into_iter().flatten().collect())
    }

    /// Share of writes among what reaches the storage, in percent.
    pub(crate) fn write_percent(&self) -> u8 {
        let (reads, writes) = match (&self.device, &self.database) {
            (Some(device), _) => (device.counters.read.count, device.counters.write.count),
            (None, Some(database)) => (self.storage_reads.count, database.counters.write.count),
            (None, None) => (0, 0),
        };
        let both = reads.saturating_add(writes);
        if both == 0 { 0 } else { (writes as f64 / both as f64 * 100.0).round() as u8 }
    }

    /// The rates of the database's reads from storage and of its writes; `None` where the database is unknown.
    pub fn rates(&self) -> Option<StorageRates> {
        let database = self.database.as_ref().filter(|database| database.elapsed_ns > 0)?;
        let per_second = |count: u64| count as f64 / database.elapsed_s();
        let (reads, writes) = (self.storage_reads, database.counters.write);
        Some(StorageRates {
            reads: per_second(reads.count),
            writes: per_second(writes.count),
            read_bytes: per_second(reads.bytes),
            written_bytes: per_second(writes.bytes),
        })
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

/// The I/Os of one moment, and the concurrency that they had at the storage.
struct MomentLoad {
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

impl MomentLoad {
    fn in_moment(moment: &Moment, floor_ns: Option<u64>) -> Option<MomentLoad> {
        let database = moment.database()?;
        let reads = demand::reads(std::slice::from_ref(moment), floor_ns);
        let own = reads.waited_ns as f64 / database.elapsed_ns as f64;
        let device = moment.device();
        let others = device.and_then(|device| {
            let transfers = device.counters.transfers().stall_ns.known()?;
            let mean = transfers as f64 / device.elapsed_ns as f64;
            // A database that waits for one I/O at least all the time keeps its device busy all the time; if that is
            // not so, its I/Os are held back above the device, and reach it in bursts that say nothing of concurrency.
            let busy = device.outstanding_while_busy().known().filter(|_| own < 1.0);
            Some(busy.unwrap_or(mean))
        });
        Some(MomentLoad {
            reads: reads.ops.count,
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
    loads: &[MomentLoad],
    count: impl Fn(&MomentLoad) -> u64,
) -> Option<f64> {
    let (mut ios, mut sum_ns) = (0.0, 0.0);
    for moment in loads.iter().filter(|moment| count(moment) > 0) {
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
    of_append(capability, bytes, Curve::latency_ns_min).or_else(|| log_write_ns(capability, bytes))
}

/// The processor time of the process that appends and syncs `bytes` bytes, nanoseconds, as it was measured on the file system.
pub(crate) fn commit_cpu_ns(capability: &Capability, bytes: f64) -> Option<f64> {
    of_append(capability, bytes, Curve::cpu_ns_per_io)
}

/// Processor time by which an I/O costs more where its thread sleeps for each than where one is always complete, nanoseconds.
pub(crate) fn wake_cpu_ns(capability: &Capability) -> Option<f64> {
    let reads =
        |curve: &&Curve| curve.workload.pattern == Pattern::Random && curve.workload.write_percent == 0;
    let smallest = capability.curves.iter().filter(reads).min_by_key(|curve| curve.workload.block_bytes)?;
    let of_all = smallest.points.iter().map(|point| point.cpu_ns_per_io);
    let least = of_all.filter(|cpu_ns| *cpu_ns > 0.0).min_by(f64::total_cmp)?;
    Some(smallest.cpu_ns_per_io()? - least)
}

/// Cost of an append of `bytes` bytes and its sync: on the line through the two measured sizes.
fn of_append(capability: &Capability, bytes: f64, cost: fn(&Curve) -> Option<f64>) -> Option<f64> {
    let measured = |shape: Shape| Some((f64::from(shape.block_bytes), cost(capability.curve(&shape)?)?));
    let (small, large) = (measured(Shape::log_append(4096))?, measured(Shape::log_append(61_440))?);
    let per_byte = ((large.1 - small.1) / (large.0 - small.0)).max(0.0);
    Some(small.1 + per_byte * (bytes - small.0).max(0.0))
}

/// The curves' time for a log write of that size, nanoseconds: the nearer of the measured sizes.
fn log_write_ns(capability: &Capability, bytes: f64) -> Option<f64> {
    let bytes = bytes.clamp(512.0, f64::from(workload::Workload::BLOCK_BYTES_MAX)) as u32;
    capability.nearest_curve(&Shape::log_write(bytes))?.latency_ns_min()
}

pub(crate) fn shape(bytes: f64, write_percent: u8) -> Shape {
    let pattern = if bytes >= SEQUENTIAL_BYTES_MIN { Pattern::Sequential } else { Pattern::Random };
    let block_bytes = bytes.clamp(512.0, f64::from(workload::Workload::BLOCK_BYTES_MAX)) as u32;
    Shape { pattern, write_percent, ..Shape::random_read(block_bytes) }
}

/// Median of a small read at rest: the lowest of all curves that read.
fn resting_read_ns(capability: &Capability) -> Option<u64> {
    let reads = capability.curves.iter().filter(|curve| curve.workload.write_percent == 0);
    reads.flat_map(|curve| curve.points.iter().map(|point| point.latency_ns_p50)).min()
}

pub(crate) fn utilisation(capability: &Capability, flows: &[Flow]) -> Option<Utilisation> {
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
    // A part that was not measured (writes, of a read-only capability) is left out, which is a doubt of the
    // verdict.
    let value = flows.iter().filter_map(share).reduce(|sum, more| sum + more)?;
    Some(Utilisation { value, binding: capability::Binding::Operations })
}
