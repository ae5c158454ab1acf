//! The numbers that prove a verdict, each with its source and time.

use crate::case::{Case, Wait};
use crate::figures::{IOS_TO_COMPARE, expected_commit_ns, utilisation};
use crate::{Evidence, Expected, LogTiming};
use capability::{Knee, Origin};
use workload::{Cap, CapKind, DeviceTrouble, Unit};

pub const DATABASE: &str = "the database's file statistics";
pub const COMMITS: &str = "the database's count of commits, those that only read included";
pub const DEVICE: &str = "the device's counters (/proc/diskstats)";
pub const COMMITS_BY_DEVICE: &str = "the device's counters, since the database does not time its log";
pub const COMMITS_BY_KERNEL: &str =
    "the kernel's times of the server's own log writes and syncs, since the database does not time its log";
pub const COUNTED_BY_CAP: &str = "the cap's own count, over what it allows";
pub const READS_BY_DEVICE: &str =
    "the device's counters, since the database does not time its reads to their end";
pub const PROCESSES: &str = "the processes' bytes (/proc/PID/io)";
pub const QUEUED: &str = "the processes' I/Os, counted in the kernel (BPF)";
pub const FAILED: &str = "the results of the processes' I/Os, counted in the kernel (BPF)";
pub const ARRAY: &str = "what md says of the array (sysfs)";
pub const POOL: &str = "device mapper's state of the pool";
/// Source of figures that were learned without a measurement.
pub const SEEN: &str = "what this storage was seen to do";
const DECLARED: &str = "device rates over declared limits";
pub const BOTH: &str = "the database or the device, the larger of both";

/// Findings of a row of the table: the sentence, the numbers and the advice of a verdict. The volume of I/O is added
/// to the numbers of each.
pub(crate) struct Grounds {
    pub summary: String,
    pub evidence: Vec<Evidence>,
    pub next_step: String,
}

impl Wait {
    /// The latency of the same kind of I/O at the device, beside the curve's.
    pub fn device_fact(&self, case: &Case) -> Option<Evidence> {
        let (ratio, latency_ns) = (self.device_ratio?, self.device_ns?);
        let fact = case.observed("latency at the device", latency_ns, Unit::Ns, DEVICE);
        Some(fact.beside(case.expected(latency_ns / ratio, &case.capability_source())))
    }
}

impl Evidence {
    /// Adds the value that it is compared with.
    pub(crate) fn beside(self, expected: Expected) -> Evidence {
        Evidence { expected: Some(expected), ..self }
    }
}

impl Case<'_> {
    pub fn ended(&self) -> u64 {
        self.observation.ended_unix_ns()
    }

    /// A number of the whole observation.
    pub fn observed(&self, what: &str, value: f64, unit: Unit, source: &str) -> Evidence {
        Evidence { what: what.into(), value, unit, source: source.into(), at: self.ended(), expected: None }
    }

    /// A number of the capability.
    pub fn measured(&self, what: &str, value: f64, unit: Unit, source: &str) -> Evidence {
        let at = self.capability.map_or(0, |capability| capability.measured_unix_ns);
        Evidence { at, ..self.observed(what, value, unit, source) }
    }

    /// Expectation from the capability.
    pub fn expected(&self, value: f64, source: &str) -> Expected {
        let at = self.capability.map_or(0, |capability| capability.measured_unix_ns);
        Expected { value, source: source.into(), at }
    }

    /// Where the capability's figures come from: "measured capability".
    pub fn capability_source(&self) -> String {
        format!("{} capability", self.origin())
    }

    /// Origin of the known figures of the storage.
    pub fn origin(&self) -> Origin {
        self.capability.map(|capability| capability.origin).unwrap_or_default()
    }

    /// Source of a utilisation.
    pub fn model_source(&self) -> &'static str {
        match self.origin() {
            Origin::Measured | Origin::Seen => "device rates x measured cost model",
            Origin::Gentle => "device rates over the gently measured curves of reads",
            Origin::Declared => DECLARED,
            Origin::Borrowed => "device rates x borrowed cost model",
        }
    }

    pub fn utilisation_fact(&self, value: f64) -> Evidence {
        let cap = self.figures.storage_caps.iter().find(|used| used.share() == value);
        let source = cap.map_or(self.model_source(), |_| COUNTED_BY_CAP);
        self.observed("utilisation", value, Unit::Share, source)
    }

    /// The utilisation of what is stated of a storage that was measured too.
    pub fn declared_utilisation(&self) -> Option<Evidence> {
        let declared = self.observation.declared.as_ref()?;
        let used = utilisation(declared, &self.figures.flows()?)?;
        let fact = self.observed("utilisation of the declared limits", used.value, Unit::Share, DECLARED);
        Some(Evidence { at: declared.measured_unix_ns, ..fact })
    }

    /// The curve of the reads, its knee, and where both come from.
    fn knee_of_reads(&self) -> Option<(&Knee, String)> {
        let place = self.figures.reads_place.as_ref()?;
        let curve = self.capability?.curve(&place.curve)?;
        Some((curve.knee.as_ref()?, format!("{}, {}", self.capability_source(), curve.workload)))
    }

    /// The highest rate of the reads' curve.
    pub fn highest_rate(&self) -> Option<Evidence> {
        let (knee, source) = self.knee_of_reads()?;
        Some(self.measured("highest rate", knee.iops, Unit::PerSecond, &source))
    }

    /// Number of I/Os that wait at the storage, and the knee: neither is an expectation of the other.
    fn outstanding(&self, outstanding: f64) -> Vec<Evidence> {
        let observed = self.observed("I/Os outstanding at the storage", outstanding, Unit::Ios, BOTH);
        let knee = self.knee_of_reads().map(|(knee, source)| {
            self.measured("I/Os outstanding at the knee", knee.outstanding, Unit::Ios, &source)
        });
        [Some(observed), knee].into_iter().flatten().collect()
    }

    pub fn latency(&self) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        if let Some(place) = &self.figures.reads_place {
            let reads = if self.figures.reads_by_device { READS_BY_DEVICE } else { DATABASE };
            let curve =
                format!("{}, {} at the concurrency of each moment", self.capability_source(), place.curve);
            let latency = self.observed("latency of reads from storage", place.latency_ns, Unit::Ns, reads);
            let expected = self.expected(place.expected_ns, &curve);
            evidence.push(latency.beside(expected));
            evidence.extend(self.outstanding(place.outstanding));
        }
        if let Some(commit_ns) = self.figures.commit_ns() {
            let what = "write and sync of a commit";
            let fact = self.observed(what, commit_ns, Unit::Ns, self.commits_source());
            let bytes = self.figures.commits.average_bytes().known().unwrap_or(4096.0);
            let expected = self.capability.and_then(|capability| expected_commit_ns(capability, bytes));
            let source = format!("{}, an append and sync of that size", self.capability_source());
            let expected = expected.map(|expected_ns| self.expected(expected_ns, &source));
            let at_rest = self.figures.commit_rest_ns.map(|value| Expected {
                value,
                source: "what a commit at rest was seen to take".into(),
                at: self.ended(),
            });
            evidence.push(Evidence { expected: expected.or(at_rest), ..fact });
        }
        evidence
    }

    /// Number of committed transactions, and of transactions for each log write.
    fn commits_shared(&self) -> Vec<Evidence> {
        let Some(per_s) = self.observation.commits_per_s().filter(|per_s| *per_s > 0.0) else {
            return vec![];
        };
        let mut evidence =
            vec![self.observed("transactions committed a second", per_s, Unit::PerSecond, COMMITS)];
        if self.figures.commits.count >= IOS_TO_COMPARE {
            let written = self.figures.commits.count as f64 / self.figures.elapsed_s;
            evidence.push(self.observed(
                "transactions for each write of the log",
                per_s / written,
                Unit::Times,
                COMMITS,
            ));
        }
        evidence
    }

    /// The other programs of this host that used the storage.
    pub fn neighbours(&self) -> Vec<Evidence> {
        let all = self.observation.neighbours.iter();
        let facts = all.flat_map(|one| match one.operations_share {
            None => {
                vec![(format!("part of the bytes on this device that {one} moved"), one.share, PROCESSES)]
            }
            Some(operations) => vec![
                (format!("part of this device's I/Os that {one} did"), operations, QUEUED),
                (format!("part of its bytes that {one} moved"), one.share, QUEUED),
            ],
        });
        facts.map(|(what, value, source)| self.observed(&what, value, Unit::Share, source)).collect()
    }

    /// Failed I/Os, and troubles that the devices report.
    pub fn trouble_facts(&self) -> Vec<Evidence> {
        let failed = self.observation.failures.iter().map(|one| {
            let what = format!("I/Os of {} on {} that failed", one.process, one.path);
            self.observed(&what, one.count as f64, Unit::Ios, FAILED)
        });
        let troubles = self.observation.troubles.iter().map(|one| match one {
            DeviceTrouble::Rebuilding { device, action, done } => {
                let what = format!("part of the {action} of {device}'s members that is done");
                self.observed(&what, done.unwrap_or(0.0), Unit::Share, ARRAY)
            }
            DeviceTrouble::MembersMissing { device, missing } => {
                self.observed(&format!("members that {device} lacks"), *missing as f64, Unit::None, ARRAY)
            }
            DeviceTrouble::PoolFull { device, blocks } => self.observed(
                &format!("blocks in use of the thin pool {device}, all it has"),
                *blocks as f64,
                Unit::Blocks,
                POOL,
            ),
        });
        failed.chain(troubles).collect()
    }

    pub fn commits_source(&self) -> &'static str {
        match self.observation.log_timing {
            _ if self.figures.commits_by_device => COMMITS_BY_DEVICE,
            LogTiming::Kernel => COMMITS_BY_KERNEL,
            LogTiming::Database | LogTiming::Untimed { .. } => DATABASE,
        }
    }

    pub fn volume(&self) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        if let Some(database) = &self.figures.database {
            let operations = database.counters.operations() as f64;
            evidence.extend([
                self.observed("I/Os of the database", operations, Unit::Ios, DATABASE),
                self.observed("I/Os a second of the database", database.iops(), Unit::PerSecond, DATABASE),
            ]);
        }
        evidence.extend(self.commits_shared());
        if let Some(device) = &self.figures.device {
            evidence.extend([
                self.observed("I/Os a second at the device", device.iops(), Unit::PerSecond, DEVICE),
                self.observed("throughput at the device", device.mib_per_s(), Unit::MibPerSecond, DEVICE),
            ]);
        }
        evidence
    }
}

pub fn cap_unit(cap: &Cap) -> Unit {
    match cap.kind {
        CapKind::ReadIops | CapKind::WriteIops => Unit::PerSecond,
        CapKind::ReadBytes | CapKind::WriteBytes => Unit::BytesPerSecond,
    }
}
