//! `/api/v1/devices`: the device of a volume, those that it lies on, and who uses it. Their counters are read by the thread that
//! answers, only while someone looks.

use crate::answer::short;
use host::{DiskCounters, read_diskstats};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use workload::{DeviceFacts, TargetFacts};

/// The last counters of all devices.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    last: Option<Counted>,
    before: Option<Counted>,
}

/// Counters, and when they were read.
type Counted = (Instant, Vec<DiskCounters>);

/// Counters closer together than this say little.
const APART_MIN: Duration = Duration::from_millis(900);
/// Counters that are older than this are not compared.
const AGE_MAX: Duration = Duration::from_secs(30);
const SECTOR_BYTES: u64 = 512;

/// A device's I/O between two instants.
struct Difference {
    elapsed_s: f64,
    reads: u64,
    writes: u64,
    read_bytes: u64,
    written_bytes: u64,
    busy_ms: u64,
    weighted_ms: u64,
    time_ms: u64,
}

impl Devices {
    /// Reads the counters where the last ones are old enough.
    pub fn read(&mut self) {
        let now = Instant::now();
        let is_due = self.last.as_ref().is_none_or(|(at, _)| now.duration_since(*at) >= APART_MIN);
        if let Some(counters) = is_due.then(|| read_diskstats().ok()).flatten() {
            self.before = self.last.replace((now, counters));
        }
    }

    /// Whether there are two readings to compare.
    pub fn is_known(&self) -> bool {
        self.pair().is_some()
    }

    fn pair(&self) -> Option<(&Counted, &Counted)> {
        let (before, last) = (self.before.as_ref()?, self.last.as_ref()?);
        let is_near = last.0.duration_since(before.0) <= AGE_MAX && last.0.elapsed() <= AGE_MAX;
        is_near.then_some((before, last))
    }

    /// The devices of a target, the file system's own first.
    pub fn json(&self, facts: &TargetFacts) -> Vec<Value> {
        let one = |device: &DeviceFacts| {
            let did = self.difference(&device.number);
            let per_second =
                |of: fn(&Difference) -> u64| short(did.as_ref().map(|did| of(did) as f64 / did.elapsed_s));
            let share = |of: fn(&Difference) -> u64| {
                short(did.as_ref().map(|did| of(did) as f64 / 1e3 / did.elapsed_s))
            };
            let latency_ns = did.as_ref().filter(|did| did.reads + did.writes > 0);
            let latency_ns = latency_ns.map(|did| did.time_ms as f64 * 1e6 / (did.reads + did.writes) as f64);
            let is_first = facts.devices.first().is_some_and(|first| first.number == device.number);
            json!({
                "name": device.name,
                "kind": device.kind,
                "model": device.model,
                "mount": facts.mount.as_ref().filter(|_| is_first),
                "parents": below(device, &facts.devices),
                "reads_per_second": per_second(|did| did.reads),
                "writes_per_second": per_second(|did| did.writes),
                "read_bytes_per_second": per_second(|did| did.read_bytes),
                "written_bytes_per_second": per_second(|did| did.written_bytes),
                "busy": share(|did| did.busy_ms).map(|busy| busy.min(1.0)),
                "outstanding": share(|did| did.weighted_ms),
                "latency_ns": short(latency_ns),
            })
        };
        facts.devices.iter().map(one).collect()
    }

    fn difference(&self, number: &str) -> Option<Difference> {
        let ((then_at, then), (now_at, now)) = self.pair()?;
        let of = |all: &'_ [DiskCounters]| all.iter().find(|disk| disk.number.to_string() == number).cloned();
        let (then, now) = (of(then)?, of(now)?);
        let since = |of: &dyn Fn(&DiskCounters) -> u64| of(&now).checked_sub(of(&then));
        let time_ms = |disk: &DiskCounters| disk.reads.time_ms.saturating_add(disk.writes.time_ms);
        Some(Difference {
            elapsed_s: now_at.duration_since(*then_at).as_secs_f64(),
            reads: since(&|disk| disk.reads.count)?,
            writes: since(&|disk| disk.writes.count)?,
            read_bytes: since(&|disk| disk.reads.sectors)?.saturating_mul(SECTOR_BYTES),
            written_bytes: since(&|disk| disk.writes.sectors)?.saturating_mul(SECTOR_BYTES),
            busy_ms: since(&|disk| disk.busy_ms)?,
            weighted_ms: since(&|disk| disk.weighted_ms)?,
            time_ms: since(&time_ms)?,
        })
    }
}

/// The devices that one lies on directly: its members, else the next of the chain.
fn below<'a>(device: &'a DeviceFacts, chain: &'a [DeviceFacts]) -> Vec<&'a str> {
    if let Some(layout) = device.layout.as_ref().filter(|layout| !layout.members.is_empty()) {
        return layout.members.iter().map(String::as_str).collect();
    }
    let at = chain.iter().position(|other| other.number == device.number);
    let is_member = |name: &str| {
        chain
            .iter()
            .filter_map(|other| other.layout.as_ref())
            .any(|layout| layout.members.iter().any(|member| member == name))
    };
    let next = at.and_then(|at| chain.get(at + 1)).map(|next| next.name.as_str());
    // A member's neighbour in the chain is another member, not what it lies on.
    next.filter(|name| !is_member(name)).into_iter().collect()
}
