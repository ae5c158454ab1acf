//! The numbers that prove a verdict, each with its source and time.

use crate::case::{Case, Wait};
use crate::figures::expected_commit_ns;
use crate::{Evidence, EvidenceUnit};
use workload::{Cap, CapKind};

pub const DATABASE: &str = "the database's file statistics";
pub const DEVICE: &str = "the device's counters (/proc/diskstats)";
pub const CAPABILITY: &str = "measured capability";
pub const COMMITS_BY_DEVICE: &str = "the device's counters, since the database does not time its log";
pub const READS_BY_DEVICE: &str =
    "the device's counters, since the database does not time its reads to their end";
pub const BOTH: &str = "the database or the device, the larger of both";
pub const MODEL: &str = "device rates x measured cost model";

pub fn fact(what: &str, value: f64, unit: EvidenceUnit, source: &str, at: u64) -> Evidence {
    Evidence { what: what.into(), value, unit, source: source.into(), at }
}

impl Wait {
    pub fn device_fact(&self, case: &Case) -> Option<Evidence> {
        let ratio = self.device_ratio?;
        Some(fact("latency at the device over the curve's", ratio, EvidenceUnit::Times, DEVICE, case.ended()))
    }
}

impl Case<'_> {
    pub fn ended(&self) -> u64 {
        self.observation.ended_unix_ns()
    }

    pub fn measured(&self) -> u64 {
        self.capability.map_or(0, |capability| capability.measured_unix_ns)
    }

    pub fn utilisation_fact(&self, value: f64) -> Evidence {
        fact("utilisation", value, EvidenceUnit::Share, MODEL, self.ended())
    }

    pub fn knee(&self) -> Vec<Evidence> {
        let curve = self.figures.reads_place.as_ref().and_then(|place| self.capability?.curve(&place.curve));
        let Some((curve, knee)) = curve.and_then(|curve| Some((curve, curve.knee.as_ref()?))) else {
            return Vec::new();
        };
        let source = format!("{CAPABILITY}, {}", curve.workload);
        vec![
            fact("knee", knee.outstanding, EvidenceUnit::Ios, &source, self.measured()),
            fact("highest rate", knee.iops, EvidenceUnit::PerSecond, &source, self.measured()),
        ]
    }

    pub fn latency(&self) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        if let Some(place) = &self.figures.reads_place {
            let source = format!("{CAPABILITY}, {} at the concurrency of each moment", place.curve);
            evidence.push(fact(
                "latency of reads from storage",
                place.latency_ns,
                EvidenceUnit::Nanoseconds,
                if self.figures.reads_by_device { READS_BY_DEVICE } else { DATABASE },
                self.ended(),
            ));
            evidence.push(fact(
                "latency the curve expects",
                place.expected_ns,
                EvidenceUnit::Nanoseconds,
                &source,
                self.measured(),
            ));
            evidence.push(fact(
                "I/Os outstanding at the storage",
                place.outstanding,
                EvidenceUnit::Ios,
                BOTH,
                self.ended(),
            ));
        }
        if let Some(commit_ns) = self.figures.commit_ns() {
            evidence.push(fact(
                "latency of a commit's write and sync",
                commit_ns,
                EvidenceUnit::Nanoseconds,
                self.commits_source(),
                self.ended(),
            ));
            let bytes = self.figures.commits.average_bytes().known().unwrap_or(4096.0);
            if let Some(expected) =
                self.capability.and_then(|capability| expected_commit_ns(capability, bytes))
            {
                let what = "append and sync of that size, measured";
                evidence.push(fact(what, expected, EvidenceUnit::Nanoseconds, CAPABILITY, self.measured()));
            }
        }
        evidence
    }

    pub fn commits_source(&self) -> &'static str {
        if self.figures.commits_by_device { COMMITS_BY_DEVICE } else { DATABASE }
    }

    pub fn volume(&self) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        if let Some(database) = &self.figures.database {
            let operations = database.counters.operations() as f64;
            evidence.push(fact(
                "I/Os of the database",
                operations,
                EvidenceUnit::Ios,
                DATABASE,
                self.ended(),
            ));
            evidence.push(fact(
                "I/Os a second of the database",
                database.iops(),
                EvidenceUnit::PerSecond,
                DATABASE,
                self.ended(),
            ));
        }
        if let Some(device) = &self.figures.device {
            evidence.push(fact(
                "I/Os a second at the device",
                device.iops(),
                EvidenceUnit::PerSecond,
                DEVICE,
                self.ended(),
            ));
            evidence.push(fact(
                "throughput at the device",
                device.mib_per_s(),
                EvidenceUnit::MibPerSecond,
                DEVICE,
                self.ended(),
            ));
        }
        evidence
    }
}

pub fn cap_unit(cap: &Cap) -> EvidenceUnit {
    match cap.kind {
        CapKind::ReadIops | CapKind::WriteIops => EvidenceUnit::PerSecond,
        CapKind::ReadBytes | CapKind::WriteBytes => EvidenceUnit::BytesPerSecond,
    }
}
