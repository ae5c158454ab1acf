use capability::Capability;
use filestats::{Delta, Figure, Reason};
use timeline::{Reading, Sample, Span};
use verdict::{Figures, Moment, Place};
use workload::Shape;

/// One moment of a database on a volume, as the page keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Instant {
    /// The time, and the figures drawn over it.
    pub sample: Sample,
    /// The database's reads from the storage, a second.
    pub reads_per_second: Option<f64>,
    /// Its writes, a second.
    pub writes_per_second: Option<f64>,
    /// Where the demand lies on a curve.
    pub place: Option<Place>,
}

/// The length of a moment of which nothing is known.
const MOMENT_NS: u64 = 1_000_000_000;

impl Instant {
    /// Of a moment.
    ///
    /// # Errors
    /// The stretch of which nothing is known, and why.
    pub fn new(moment: &Moment, capability: Option<&Capability>) -> Result<Instant, (Span, Reason)> {
        let figures = Figures::from_moments(std::slice::from_ref(moment), capability);
        let to_ns = moment.ended_unix_ns;
        let span = |elapsed_ns: u64| Span { from_ns: to_ns.saturating_sub(elapsed_ns), to_ns };
        let Some((database, rates)) = figures.database.as_ref().zip(figures.rates()) else {
            let reason = moment.files.iter().find_map(|file| file.interval.reason());
            return Err((span(MOMENT_NS), reason.unwrap_or(Reason::NotCounted)));
        };
        let (latency_ns, expected_latency_ns) = longest_wait(&figures);
        let reading = Reading {
            utilisation: figures.utilisation.map(|utilisation| utilisation.value),
            outstanding: Some(figures.outstanding),
            latency_ns,
            expected_latency_ns,
            iops: Some(rates.iops()),
            read_bytes_per_second: Some(rates.read_bytes),
            written_bytes_per_second: Some(rates.written_bytes),
        };
        Ok(Instant {
            sample: Sample { span: span(database.elapsed_ns), reading },
            reads_per_second: Some(rates.reads),
            writes_per_second: Some(rates.writes),
            place: figures.reads_place.clone().or_else(|| place(&figures, capability?)),
        })
    }
}

/// Mean latency of what sessions wait for longest, and what the curves expect there: of reads and commits the one that takes more
/// times what is expected; where nothing is expected, the one that more time goes into.
fn longest_wait(figures: &Figures) -> (Option<f64>, Option<f64>) {
    let place = figures.reads_place.as_ref();
    let read_ns = place.map(|place| place.latency_ns).or(figures.storage_reads.latency_ns().known());
    let read = (read_ns, place.map(|place| place.expected_ns));
    let commit_ns = figures.commit_ns();
    let commit = (commit_ns, commit_ns.zip(figures.commit_ratio).map(|(ns, ratio)| ns / ratio));
    let times = |(latency, expected): (Option<f64>, Option<f64>)| Some(latency? / expected?);
    let commit_is_longer = match (times(read), times(commit)) {
        (Some(read), Some(commit)) => commit > read,
        (Some(_), None) => false,
        (None, Some(_)) => true,
        (None, None) => {
            let stall_ns = |stall: Figure<u64>| stall.known().unwrap_or(0);
            stall_ns(figures.commits.stall_ns) > stall_ns(figures.storage_reads.stall_ns)
        }
    };
    if commit_is_longer || read.0.is_none() { commit } else { read }
}

/// The place of a moment with too few reads to be compared, or with writes only: on the nearest curve.
fn place(figures: &Figures, capability: &Capability) -> Option<Place> {
    let reads = figures.storage_reads;
    let device = figures.device.as_ref();
    let (ops, write_percent, elapsed_s) = match device {
        _ if reads.count > 0 => (reads, 0, figures.elapsed_s),
        Some(device) if device.counters.write.count > 0 => (device.counters.write, 100, device.elapsed_s()),
        _ => return None,
    };
    let block_bytes = ops.average_bytes().known()? as u32;
    let shape = Shape { write_percent, ..Shape::random_read(block_bytes) };
    let busy = |device: &Delta| {
        device.counters.transfers().stall_ns.known().map(|ns| ns as f64 / device.elapsed_ns as f64)
    };
    let outstanding = figures.outstanding.max(device.and_then(busy).unwrap_or(0.0));
    Some(Place {
        curve: capability.nearest_curve(&shape)?.workload,
        outstanding,
        iops: ops.count as f64 / elapsed_s,
        latency_ns: ops.latency_ns().known()?,
        expected_ns: capability.expected_latency_ns(&shape, outstanding)?,
    })
}
