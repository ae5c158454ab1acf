//! Kernel figures of I/O beside the counters of a device, which begin too late for some waits.
//!
//! ```text
//! a task submits ──> throttle (io.max, blkio), io.latency, io.cost ──> merged into requests ──> the device's counters
//!        │                 └ counts each I/O and flush: CapUse             └ 800 I/Os may be 170 requests
//!        └ waits in all of it: Pressure
//! ```

use crate::Moment;
use crate::thresholds::CAP_REACHED;
use capability::{Binding, Capability};
use filestats::{Figure, Reason};
use serde::{Deserialize, Serialize};
use workload::{Cap, CapKind};

/// How long tasks could not go on because they waited for I/O (Documentation/accounting/psi.rst), in one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Length of the moment, nanoseconds.
    pub elapsed_ns: u64,
    /// Time in which a task of this host was stalled on I/O, nanoseconds.
    pub host_ns: Figure<u64>,
    /// Stalled time of the tasks in the database's control group, nanoseconds.
    pub group_ns: Figure<u64>,
    /// Time in which the busiest block device of this host had I/Os outstanding, nanoseconds.
    pub device_ns: Figure<u64>,
    /// Time in which the volume's device, or one below it, had I/Os in flight and completed none, nanoseconds.
    #[serde(default = "not_counted")]
    pub hung_ns: Figure<u64>,
}

fn not_counted() -> Figure<u64> {
    Figure::unknown(Reason::NotCounted)
}

impl Default for Pressure {
    fn default() -> Pressure {
        let unknown = not_counted();
        Pressure { elapsed_ns: 0, host_ns: unknown, group_ns: unknown, device_ns: unknown, hung_ns: unknown }
    }
}

impl Pressure {
    /// A time of it as a share of the moment, 0 to 1.
    pub fn share(&self, time_ns: Figure<u64>) -> Figure<f64> {
        match self.elapsed_ns {
            0 => Figure::unknown(time_ns.reason().unwrap_or(Reason::NoTimePassed)),
            elapsed_ns => time_ns.map(|ns| (ns as f64 / elapsed_ns as f64).min(1.0)),
        }
    }
}

/// Count of a limit in one moment, or in several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapUse {
    /// The limit.
    pub cap: Cap,
    /// Operations or bytes that were submitted to it, flushes among them, before any were merged.
    pub counted: u64,
    /// In this time, nanoseconds.
    pub elapsed_ns: u64,
}

impl CapUse {
    /// Operations or bytes a second.
    pub fn per_second(&self) -> f64 {
        self.counted as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// The part of the limit that is used, at most 1: more that is submitted waits for its turn.
    pub fn share(&self) -> f64 {
        (self.per_second() / self.cap.per_second.max(1) as f64).min(1.0)
    }

    /// Whether enough of the limit is used that it holds I/O back.
    pub fn is_reached(&self) -> bool {
        self.share() >= CAP_REACHED
    }

    /// The resource that the limit is one of.
    pub(crate) fn binding(&self) -> Binding {
        match self.cap.kind {
            CapKind::ReadIops => Binding::ReadOperations,
            CapKind::WriteIops => Binding::WriteOperations,
            CapKind::ReadBytes => Binding::ReadBandwidth,
            CapKind::WriteBytes => Binding::WriteBandwidth,
        }
    }
}

/// The limits of all moments, each summed.
pub fn caps_used(moments: &[Moment]) -> Vec<CapUse> {
    let mut sums: Vec<CapUse> = Vec::new();
    for one in moments.iter().flat_map(|moment| &moment.caps) {
        match sums.iter_mut().find(|sum| sum.cap == one.cap) {
            None => sums.push(one.clone()),
            Some(sum) => {
                sum.counted = sum.counted.saturating_add(one.counted);
                sum.elapsed_ns = sum.elapsed_ns.saturating_add(one.elapsed_ns);
            }
        }
    }
    sums
}

/// Whether the storage was measured under that limit, or a lower one.
pub(crate) fn was_measured_under(capability: &Capability, cap: &Cap) -> bool {
    let then = &capability.target.caps;
    then.iter()
        .any(|then| then.kind == cap.kind && then.device == cap.device && then.per_second <= cap.per_second)
}
