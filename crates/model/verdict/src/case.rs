//! What the rows of the table ask about: the figures of a case, and what they add up to.

use crate::figures::{IOS_TO_COMPARE, expected_commit_ns};
use crate::thresholds::{
    CAP_REACHED, CAPABILITY_DAYS_MAX, COMMIT_RATIO_DEGRADED, ELSEWHERE_SHARE_MIN, FOREIGN_IOPS_MAX,
    LARGER_DATA, OUTSTANDING_IDLE, RATIO_DEGRADED, UTILISATION_NEAR,
};
use crate::{Confidence, Figures, Observation, VerdictKind};
use capability::{Capability, KneeReason};
use filestats::{IoClass, ServiceLevel};
use statistics::IOS_MIN;
use workload::{Cap, CapKind};

/// A latency of the database beside what the curves expect.
pub struct Wait {
    pub what: &'static str,
    /// Measured over expected.
    pub times: f64,
    /// The same as far as it speaks against the storage.
    pub ratio: f64,
    /// What the device below says of the same kind of I/O.
    pub device_ratio: Option<f64>,
}

/// Everything a row may ask about.
pub struct Case<'a> {
    pub observation: &'a Observation,
    pub capability: Option<&'a Capability>,
    pub service_level: &'a ServiceLevel,
    pub figures: Figures,
    /// Utilisation of each moment that has one, with when it ended.
    pub course: Vec<(u64, f64)>,
    /// Outstanding I/Os of the database in each moment, or in each few where the source tells late.
    pub outstanding: Vec<f64>,
}

impl Case<'_> {
    /// What the database waits for longest, measured by the curves: reads or commits.
    pub fn longest_wait(&self) -> Option<Wait> {
        let reads = self.figures.reads_place.as_ref().map(|place| {
            let times = place.latency_ns / place.expected_ns;
            Wait {
                what: "reads from storage",
                times,
                ratio: times,
                device_ratio: self.figures.device_read_ratio,
            }
        });
        let commits = self.figures.commit_ratio.map(|times| Wait {
            what: "commits",
            times,
            // A commit's own overhead is taken off, so that both are measured by the same rod.
            ratio: times * RATIO_DEGRADED / COMMIT_RATIO_DEGRADED,
            device_ratio: self.figures.device_write_ratio,
        });
        reads.into_iter().chain(commits).max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// The longest wait, if somebody has it: a tenth of a session's time, or a broken service level. An idle
    /// database whose rare reads find a sleeping CPU is not in trouble.
    pub fn noticed_wait(&self) -> Option<Wait> {
        let figures = &self.figures;
        let storage_ns = figures.reads_place.as_ref().map(|place| place.latency_ns);
        let broken = |class, ns: Option<f64>| ns.is_some_and(|ns| !self.service_level.kept(class, ns));
        let noticed = figures.outstanding >= OUTSTANDING_IDLE
            || broken(IoClass::Read, storage_ns)
            || broken(IoClass::LogWrite, figures.commit_ns());
        self.longest_wait().filter(|_| noticed)
    }

    pub fn capped_when_measured(&self, cap: &Cap) -> bool {
        self.capability.is_some_and(|capability| {
            capability.target.caps.iter().any(|then| {
                then.kind == cap.kind && then.device == cap.device && then.per_second <= cap.per_second
            })
        })
    }

    /// A cap that was not there (or was higher) at the measurement and is reached now, with the rate.
    pub fn cap_reached(&self) -> Option<(&Cap, f64)> {
        let device = self.figures.device.as_ref()?;
        let seconds = device.elapsed_s();
        let (read, write) = (device.counters.read, device.counters.write);
        let rate = |cap: &Cap| match cap.kind {
            CapKind::ReadIops => read.count as f64 / seconds,
            CapKind::WriteIops => write.count as f64 / seconds,
            CapKind::ReadBytes => read.bytes as f64 / seconds,
            CapKind::WriteBytes => write.bytes as f64 / seconds,
        };
        let caps = self.observation.caps.iter().filter(|cap| !self.capped_when_measured(cap));
        caps.map(|cap| (cap, rate(cap))).find(|(cap, rate)| *rate >= CAP_REACHED * cap.per_second as f64)
    }

    /// How many of the observed commits fit into one of 60 KiB, what that gains, and its time.
    pub fn batching(&self) -> Option<(u64, f64, f64)> {
        let capability = self.capability?;
        let bytes = self.figures.commits.average_bytes().known()?.max(512.0);
        let (one, sixty) =
            (expected_commit_ns(capability, bytes)?, expected_commit_ns(capability, 61_440.0)?);
        let batch = (61_440.0 / bytes).floor();
        let gain = batch * one / sixty;
        (batch >= 2.0 && gain > 1.0).then_some((batch as u64, gain, sixty))
    }

    /// The N that gives the whole throughput of the reads' curve, and how much more than N = 1 that is.
    pub fn widest(&self) -> Option<(u32, f64)> {
        let place = self.figures.reads_place.as_ref()?;
        let curve = self.capability?.curve(&place.curve)?;
        let knee = curve.knee.as_ref()?;
        Some((knee.outstanding_full, knee.iops / curve.points.first()?.iops))
    }

    /// Every doubt takes one step off.
    pub fn confidence(&self, kind: VerdictKind) -> (Confidence, Vec<String>) {
        let mut doubts = Vec::new();
        let figures = &self.figures;
        if kind == VerdictKind::CannotSay {
            return (Confidence::High, doubts);
        }
        let operations = figures.database.as_ref().map_or(0, |database| database.counters.operations());
        if operations < 10 * IOS_MIN {
            doubts.push(format!("only {operations} I/Os were seen"));
        }
        let elsewhere = self.observation.elsewhere();
        for volume in elsewhere.into_iter().filter(|volume| volume.share >= ELSEWHERE_SHARE_MIN) {
            let percent = volume.share * 100.0;
            let drive = volume.drive;
            doubts.push(format!("files on {drive} are not judged here: {percent:.0} % of the time waited"));
        }
        if figures.coverage < 0.9 {
            doubts.push(format!("{:.0} % of the time is unknown", (1.0 - figures.coverage) * 100.0));
        }
        if figures.device.is_none() {
            doubts.push("the device below is not visible, so that others' I/O is not known".into());
        }
        if figures.commits_by_device && figures.commits.count >= IOS_TO_COMPARE {
            doubts.push(
                "the database does not time its log: the device's writes and flushes stand for commits"
                    .into(),
            );
        }
        if figures.reads_by_device && figures.storage_reads.count >= IOS_TO_COMPARE {
            doubts.push(
                "the database does not time its reads to their end: the device's stand for them".into(),
            );
        }
        if figures.untimed.count > 0 {
            let untimed = figures.untimed.count;
            doubts.push(format!("{untimed} I/Os were not timed: timing is off for them"));
        }
        if let Some(capability) = self.capability {
            doubts.extend(doubts_of(capability));
            let larger =
                self.observation.data_bytes.map(|bytes| bytes / capability.conditions.region_bytes.max(1));
            if let Some(times) = larger.filter(|times| *times >= LARGER_DATA) {
                doubts.push(format!(
                    "the data is {times} x as large as what the storage was measured on, which caches may have held"
                ));
            }
            let age_days = self.ended().saturating_sub(capability.measured_unix_ns) as f64 / 86_400e9;
            if age_days > CAPABILITY_DAYS_MAX {
                doubts.push(format!("the storage was measured {age_days:.0} days ago"));
            }
            if let Some(error) = capability.cost_model.as_ref().and_then(|model| model.error)
                && error > 0.2
            {
                doubts.push(format!(
                    "the cost model is off by {:.0} % on mixes kept out of its fit",
                    error * 100.0
                ));
            }
        }
        if kind == VerdictKind::Healthy
            && let Some(used) = figures.utilisation.filter(|u| u.value >= UTILISATION_NEAR)
        {
            doubts.push(format!("{:.0} % is close to the knee", used.value * 100.0));
        }
        if kind == VerdictKind::Healthy
            && let Some(wait) = self.longest_wait().filter(|wait| wait.ratio >= RATIO_DEGRADED)
        {
            let (what, times) = (wait.what, wait.times);
            doubts.push(format!(
                "{what} take {times:.1} x what the curve expects (hardly anybody waits for them)"
            ));
        }
        if kind == VerdictKind::StorageDegraded
            && figures.utilisation.is_some_and(|u| u.value >= UTILISATION_NEAR)
        {
            doubts.push("the demand is close to the knee as well".into());
        }
        let confidence = match doubts.len() {
            0 => Confidence::High,
            1 => Confidence::Medium,
            _ => Confidence::Low,
        };
        (confidence, doubts)
    }
}

/// What speaks against a capability itself.
fn doubts_of(capability: &Capability) -> Vec<String> {
    let mut doubts = Vec::new();
    if capability.cost_model.is_none() {
        doubts.push("writes were not measured: the utilisation is that of the reads alone".into());
    }
    if let Some(iops) = capability.conditions.foreign_iops.filter(|iops| *iops > FOREIGN_IOPS_MAX) {
        doubts.push(format!("others did {iops:.0} I/Os a second while the storage was measured"));
    }
    let mut reasons = capability.curves.iter().filter_map(|curve| Some(curve.knee.as_ref()?.reason));
    if reasons.any(|reason| reason == KneeReason::Client) {
        doubts.push("Headroom's own threads were the limit when it was measured: it may give more".into());
    }
    if capability.curves.iter().flat_map(|curve| &curve.points).any(|point| point.failed > 0) {
        doubts.push("I/Os failed while the storage was measured".into());
    }
    doubts
}
